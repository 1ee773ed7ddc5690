//! Topics, filters and events.

mod event;
pub mod view;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;

pub use self::event::{Event, EventRef};
use super::limits;

/// The subject of an event: 1 to 255 bytes of UTF-8 without control characters or white space, up to 32 segments separated by
/// `.`, no segment empty, and none of the filter signs `*` and `>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

/// Why a text is no topic, or no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum TopicError {
    /// No characters at all.
    #[error("a topic has at least one character")]
    Empty,
    /// Over the limit of bytes.
    #[error("a topic has at most {} bytes", limits::TOPIC_BYTES_MAX)]
    TooLong,
    /// Not UTF-8.
    #[error("a topic is UTF-8 text")]
    NotUtf8,
    /// A character that topics must not hold.
    #[error("a topic has no white space and no control characters")]
    BadCharacter,
    /// Two dots in a row, or one at an end.
    #[error("a topic has no empty segment: no dot at either end, no two dots in a row")]
    EmptySegment,
    /// Over the limit of segments.
    #[error("a topic has at most {} segments", limits::TOPIC_SEGMENTS_MAX)]
    TooManySegments,
    /// A filter sign in a topic, or beside other characters of a segment.
    #[error("* matches one whole segment and is valid in filters only")]
    BadStar,
    /// The sign for the rest is not the last segment.
    #[error("> matches the rest, as the last segment of a filter only")]
    BadRest,
}

impl Topic {
    /// Checks bytes from a peer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TopicError> {
        checked(bytes)?.parse()
    }

    /// The topic as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Topic {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        check(text)?;
        match text.bytes().find(|byte| matches!(byte, b'*' | b'>')) {
            Some(b'*') => Err(TopicError::BadStar),
            Some(_) => Err(TopicError::BadRest),
            None => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Which topics somebody listens to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filter {
    /// Segments as in a topic; `*` stands for any one, `>` as the last for one or more.
    Pattern(Arc<str>),
    /// Every topic that begins with these bytes; none at all: every topic.
    Prefix(Bytes),
}

impl Filter {
    /// Checks a pattern from a peer.
    pub fn pattern(bytes: &[u8]) -> Result<Self, TopicError> {
        let text = checked(bytes)?;
        check(text)?;
        let mut segments = text.split('.').peekable();
        while let Some(segment) = segments.next() {
            match segment {
                "*" => {}
                ">" if segments.peek().is_some() => return Err(TopicError::BadRest),
                ">" => {}
                _ if segment.contains('*') => return Err(TopicError::BadStar),
                _ if segment.contains('>') => return Err(TopicError::BadRest),
                _ => {}
            }
        }
        Ok(Self::Pattern(text.into()))
    }

    /// Checks a prefix from a peer.
    pub fn prefix(bytes: &[u8]) -> Result<Self, TopicError> {
        if bytes.len() > limits::TOPIC_BYTES_MAX {
            return Err(TopicError::TooLong);
        }
        Ok(Self::Prefix(Bytes::copy_from_slice(bytes)))
    }

    /// The bytes as they stand in a frame.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Pattern(text) => text.as_bytes(),
            Self::Prefix(bytes) => bytes,
        }
    }

    /// How many segments it has. The last of a prefix may be the beginning of one, or nothing.
    pub fn segments(&self) -> usize {
        self.as_bytes().split(|byte| *byte == b'.').count()
    }

    /// Whether that topic is meant. One by one; the engine keeps its many filters in a tree.
    pub fn matches(&self, topic: &Topic) -> bool {
        match self {
            Self::Prefix(bytes) => topic.as_str().as_bytes().starts_with(bytes),
            Self::Pattern(pattern) => {
                let mut topic = topic.as_str().split('.');
                for segment in pattern.split('.') {
                    match (segment, topic.next()) {
                        (_, None) => return false,
                        (">", Some(_)) => return true,
                        ("*", Some(_)) => {}
                        (wanted, Some(have)) if wanted == have => {}
                        _ => return false,
                    }
                }
                topic.next().is_none()
            }
        }
    }
}

/// A filter that a person writes is a pattern.
impl FromStr for Filter {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        Self::pattern(text.as_bytes())
    }
}

impl TryFrom<&str> for Filter {
    type Error = TopicError;

    fn try_from(text: &str) -> Result<Self, TopicError> {
        text.parse()
    }
}

impl TryFrom<&String> for Filter {
    type Error = TopicError;

    fn try_from(text: &String) -> Result<Self, TopicError> {
        text.parse()
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(text) => f.write_str(text),
            Self::Prefix(bytes) => write!(f, "{}…", bytes.escape_ascii()),
        }
    }
}

fn checked(bytes: &[u8]) -> Result<&str, TopicError> {
    if bytes.len() > limits::TOPIC_BYTES_MAX {
        return Err(TopicError::TooLong);
    }
    std::str::from_utf8(bytes).map_err(|_| TopicError::NotUtf8)
}

fn check(text: &str) -> Result<(), TopicError> {
    if text.is_empty() {
        return Err(TopicError::Empty);
    }
    if text.len() > limits::TOPIC_BYTES_MAX {
        return Err(TopicError::TooLong);
    }
    // Every event comes by here: one look at each byte, and at characters only where there are others than ASCII's.
    let (mut is_ascii, mut has_bad, mut has_empty, mut last) = (true, false, false, b'.');
    for byte in text.bytes() {
        is_ascii &= byte.is_ascii();
        has_bad |= byte <= b' ' || byte == 0x7f;
        has_empty |= byte == b'.' && last == b'.';
        last = byte;
    }
    if has_bad || !is_ascii && text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(TopicError::BadCharacter);
    }
    if has_empty || last == b'.' {
        return Err(TopicError::EmptySegment);
    }
    if text.split('.').count() > limits::TOPIC_SEGMENTS_MAX {
        return Err(TopicError::TooManySegments);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_filters_are_checked_at_the_door() {
        type Verdict = Result<(), TopicError>;
        use TopicError::{BadCharacter, BadRest, BadStar, Empty, EmptySegment, TooLong, TooManySegments};
        let (long, longer) = ("x".repeat(255), "x".repeat(256));
        let (deep, deeper) = (["x"; 32].join("."), ["x"; 33].join("."));
        // As a topic, and as a filter.
        let table: &[(&str, Verdict, Verdict)] = &[
            ("news", Ok(()), Ok(())),
            ("news.sport.größe", Ok(()), Ok(())),
            (&long, Ok(()), Ok(())),
            (&longer, Err(TooLong), Err(TooLong)),
            (&deep, Ok(()), Ok(())),
            (&deeper, Err(TooManySegments), Err(TooManySegments)),
            ("", Err(Empty), Err(Empty)),
            ("a b", Err(BadCharacter), Err(BadCharacter)),
            ("a\u{2003}b", Err(BadCharacter), Err(BadCharacter)),
            ("a\u{85}", Err(BadCharacter), Err(BadCharacter)),
            ("a\u{7f}", Err(BadCharacter), Err(BadCharacter)),
            ("a\u{1b}[2J", Err(BadCharacter), Err(BadCharacter)),
            ("a..b", Err(EmptySegment), Err(EmptySegment)),
            (".a", Err(EmptySegment), Err(EmptySegment)),
            ("ä.", Err(EmptySegment), Err(EmptySegment)),
            (".", Err(EmptySegment), Err(EmptySegment)),
            ("*", Err(BadStar), Ok(())),
            ("a.*.c", Err(BadStar), Ok(())),
            ("a.b*", Err(BadStar), Err(BadStar)),
            (">", Err(BadRest), Ok(())),
            ("a.>", Err(BadRest), Ok(())),
            ("a.>.c", Err(BadRest), Err(BadRest)),
            ("a.b>", Err(BadRest), Err(BadRest)),
        ];
        for (text, topic, filter) in table {
            assert_eq!(Topic::from_bytes(text.as_bytes()).map(drop), *topic, "{text:?}");
            assert_eq!(Filter::pattern(text.as_bytes()).map(drop), *filter, "{text:?}");
        }
        assert_eq!(Topic::from_bytes(&[0xFF]), Err(TopicError::NotUtf8));
        assert_eq!(Filter::prefix(longer.as_bytes()), Err(TooLong));
        assert!(Filter::prefix(&[0xFF, 0]).is_ok(), "any bytes, as ZeroMQ has it");
    }

    #[test]
    fn a_filter_means_what_the_documents_say() {
        let table = [
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.b", "a", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("*.*", "a.b", true),
            ("a.>", "a", false),
            ("a.>", "a.b", true),
            ("a.>", "a.b.c", true),
            (">", "a", true),
            ("*.b.>", "a.b.c.d", true),
            ("*.b.>", "a.c.b.d", false),
        ];
        for (filter, topic, expected) in table {
            let (filter, topic): (Filter, Topic) = (filter.parse().unwrap(), topic.parse().unwrap());
            assert_eq!(filter.matches(&topic), expected, "{filter} {topic}");
        }
        let topic: Topic = "ab.c".parse().unwrap();
        for (prefix, expected) in
            [("", true), ("a", true), ("ab.", true), ("ab.c", true), ("ab.cd", false), ("b", false)]
        {
            assert_eq!(Filter::prefix(prefix.as_bytes()).unwrap().matches(&topic), expected, "{prefix:?}");
        }
    }
}
