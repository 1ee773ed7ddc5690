//! Numbers of requirements: `S2.24` from a source document, `I9` an invariant, `W3` a workload of
//! the budget.

use std::fmt;

use crate::word::is_ident;

/// A requirement's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number {
    pub(crate) group: Group,
    pub(crate) index: u16,
}

/// The document that a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Document(u8),
    Invariant,
    Workload,
}

impl Number {
    /// The number that is all of `text`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (number, len) = Self::read(text)?;
        (len == text.len()).then_some(number)
    }

    /// The number at the start of `text` and its length. A longer word such as `I18n`, or a deeper
    /// number such as `S0.1.2`, is none.
    pub(super) fn read(text: &str) -> Option<(Self, usize)> {
        let (group, index_at) = match text.chars().next()? {
            'S' => {
                let (document, len) = leading_digits(&text[1..])?;
                let rest = text[1 + len..].strip_prefix('.')?;
                (Group::Document(document.parse().ok()?), text.len() - rest.len())
            }
            'I' => (Group::Invariant, 1),
            'W' => (Group::Workload, 1),
            _ => return None,
        };
        let (index, len) = leading_digits(&text[index_at..])?;
        let end = index_at + len;
        let mut after = text[end..].chars();
        let is_longer = match after.next() {
            Some('.') => after.next().is_some_and(|c| c.is_ascii_digit()),
            Some(c) => is_ident(c),
            None => false,
        };
        let index = index.parse().ok()?;
        (!is_longer).then_some((Self { group, index }, end))
    }
}

impl Group {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "I" => Some(Self::Invariant),
            "W" => Some(Self::Workload),
            _ => name.strip_prefix('S')?.parse().ok().map(Self::Document),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if matches!(self.group, Group::Document(_)) { "." } else { "" };
        write!(f, "{}{dot}{}", self.group, self.index)
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(document) => write!(f, "S{document}"),
            Self::Invariant => write!(f, "I"),
            Self::Workload => write!(f, "W"),
        }
    }
}

/// The digits at the start of `text`, if there are any, and how many.
pub(super) fn leading_digits(text: &str) -> Option<(&str, usize)> {
    let len = text.chars().take_while(char::is_ascii_digit).count();
    (len > 0).then(|| (&text[..len], len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_written() {
        for text in ["S0.1", "S2.24", "I9", "I22", "W3"] {
            assert_eq!(Number::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Number::read("S2.24. Then").map(|(_, len)| len), Some(5));
    }

    #[test]
    fn what_is_no_number() {
        for text in ["S0", "S.1", "S0.", "S0.1.2", "I", "I18n", "W3C", "X1", "S0.1a", "", "I9 ", "S999.1"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    #[test]
    fn groups_are_read_and_written() {
        for text in ["S0", "S4", "I", "W"] {
            assert_eq!(Group::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Group::parse("Q"), None);
        assert_eq!(Group::parse("S"), None);
    }
}
