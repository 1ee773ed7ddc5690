//! Names of queues: one canonical form, checked on arrival.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::limits;

/// A queue's name: 1 to 255 bytes of UTF-8 without control characters or white space, segments separated by
/// `.`, no segment empty, and none of the filter signs `*` and `>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

/// Why a text is not a queue name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum NameError {
    /// No characters at all.
    #[error("a queue name needs at least one character")]
    Empty,
    /// Over the limit of bytes.
    #[error("a queue name has at most {} bytes", limits::QUEUE_NAME_BYTES_MAX)]
    TooLong,
    /// Not UTF-8.
    #[error("a queue name is UTF-8 text")]
    NotUtf8,
    /// A character that names must not hold.
    #[error("a queue name has no white space, no control characters and none of * and >")]
    BadCharacter,
    /// Two dots in a row, or one at an end.
    #[error("a queue name has no empty segment: no dot at either end, no two dots in a row")]
    EmptySegment,
}

impl QueueName {
    /// Checks bytes from a peer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NameError> {
        if bytes.len() > limits::QUEUE_NAME_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        std::str::from_utf8(bytes).map_err(|_| NameError::NotUtf8)?.parse()
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for QueueName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > limits::QUEUE_NAME_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '*' || c == '>') {
            return Err(NameError::BadCharacter);
        }
        if text.split('.').any(str::is_empty) {
            return Err(NameError::EmptySegment);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_at_the_door() {
        let long = "x".repeat(limits::QUEUE_NAME_BYTES_MAX);
        let table: &[(&str, Result<(), NameError>)] = &[
            ("emails", Ok(())),
            ("billing.eu.invoices", Ok(())),
            ("größe", Ok(())),
            (&long, Ok(())),
            (&format!("{long}x"), Err(NameError::TooLong)),
            ("", Err(NameError::Empty)),
            ("a b", Err(NameError::BadCharacter)),
            ("a\0b", Err(NameError::BadCharacter)),
            ("a\n", Err(NameError::BadCharacter)),
            ("a.*", Err(NameError::BadCharacter)),
            (">", Err(NameError::BadCharacter)),
            (".", Err(NameError::EmptySegment)),
            ("a..b", Err(NameError::EmptySegment)),
            ("a.", Err(NameError::EmptySegment)),
        ];
        for (text, expected) in table {
            assert_eq!(QueueName::from_bytes(text.as_bytes()).map(|_| ()), *expected, "{text:?}");
        }
        assert_eq!(QueueName::from_bytes(&[0xFF, 0xFE]), Err(NameError::NotUtf8));
    }
}
