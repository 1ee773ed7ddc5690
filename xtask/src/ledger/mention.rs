//! Numbers mentioned in a line of text, and shorthand that hides some of them.

use super::number::{Number, leading_digits};
use crate::word::is_ident;

/// Requirements that a line mentions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mention {
    Number(Number),
    /// Such as `S0.1–S0.3` or `S0.1/2`: a search for the numbers inside would not find it.
    Shorthand(String),
}

/// Signs that make a range of two numbers.
const DASHES: [&str; 8] = ["-", "\u{2010}", "\u{2011}", "–", "—", "..=", "..", "…"];

/// Words that make a range of two numbers.
const RANGE_WORDS: [&str; 3] = ["to", "through", "until"];

pub(super) fn mentions(line: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let rest = &line[at..];
        let is_inside_word = line[..at].ends_with(is_ident);
        let Some((number, len)) = Number::read(rest).filter(|_| !is_inside_word) else {
            at += c.len_utf8();
            continue;
        };
        match shorthand_tail_len(&rest[len..]) {
            Some(tail_len) => {
                found.push(Mention::Shorthand(rest[..len + tail_len].to_owned()));
                at += len + tail_len;
            }
            None => {
                found.push(Mention::Number(number));
                at += len;
            }
        }
    }
    found
}

/// Length of what turns the number before `rest` into shorthand for several.
fn shorthand_tail_len(rest: &str) -> Option<usize> {
    let number_len = |text: &str| Number::read(text).map(|(_, len)| len);
    let digits_len = |text: &str| leading_digits(text).map(|(_, len)| len);
    // `S0.1/S0.2` writes both out, `S0.1/2` does not.
    let (tail, tail_len) = match rest.strip_prefix('/') {
        Some(tail) => (tail, digits_len(tail)?),
        None => match strip_any(rest, &DASHES) {
            // Tight, digits are enough, as in `S0.1-3`; `S0.1-based` is a word.
            Some(tail) => (tail, number_len(tail).or_else(|| digits_len(tail))?),
            // With blanks around it, only a second number tells a range from a dash in a sentence.
            None => {
                let joined = rest.strip_prefix(' ')?;
                let tail = strip_any(joined, &DASHES).or_else(|| strip_any(joined, &RANGE_WORDS))?;
                let tail = tail.strip_prefix(' ')?;
                (tail, number_len(tail)?)
            }
        },
    };
    Some(rest.len() - tail.len() + tail_len)
}

fn strip_any<'a>(text: &'a str, prefixes: &[&str]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(line: &str) -> Vec<String> {
        let name = |mention| match mention {
            Mention::Number(number) => number.to_string(),
            Mention::Shorthand(text) => format!("<{text}>"),
        };
        mentions(line).into_iter().map(name).collect()
    }

    #[test]
    fn numbers_written_out() {
        assert_eq!(numbers("S0.1, S0.12 and (I9): W3."), ["S0.1", "S0.12", "I9", "W3"]);
        assert_eq!(numbers("S0.1/S0.2 – least recently used"), ["S0.1", "S0.2"]);
        assert_eq!(numbers("S0.1 - 3 workers; S0.2: to S; S0.3-based; S0.4..."), ["S0.1", "S0.2", "S0.3", "S0.4"]);
    }

    #[test]
    fn other_words_are_no_numbers() {
        assert!(numbers("xS0.1 _I9 I18n W3C S0 äI9").is_empty());
    }

    #[test]
    fn ranges_and_other_shorthand() {
        for text in ["S0.1–S0.3", "S0.1-3", "S0.1 – S0.3", "S0.1..S0.3", "S0.1…3", "S4.19/20", "I1 to I3", "I1-I3"]
        {
            assert_eq!(numbers(&format!("see {text}, now")), [format!("<{text}>")]);
        }
    }
}
