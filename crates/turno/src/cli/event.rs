//! Printing of events, and advice on invalid topics.

use turno_client::{Event, Filter, Topic, TopicError};
use turno_proto::model::Code;

use super::error::Failure;
use super::global::Format;
use super::schema::topic::EventDocument;
use super::schema::{envelope, line};
use super::shown::escaped;

/// Characters of a typed text that an error repeats. More: cut.
const SHOWN_CHARS_MAX: usize = 80;

/// The bytes of one event; none where all of them go into one document.
pub(crate) fn printed(event: &Event, format: Format, raw: bool) -> Vec<u8> {
    match format {
        Format::Json => Vec::new(),
        Format::Jsonl => line(&envelope(&EventDocument::from(event))).into_bytes(),
        Format::Name => format!("{}\n", escaped(event.topic.as_str())).into_bytes(),
        Format::Text | Format::Wide if raw => event.body.to_vec(),
        Format::Text | Format::Wide => {
            let mut line = format!("{} ", escaped(event.topic.as_str())).into_bytes();
            line.extend_from_slice(&event.body);
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            line
        }
    }
}

/// Checks a topic before anything is asked of a broker.
pub(crate) fn check_topic(text: &str) -> Result<(), Failure> {
    text.parse::<Topic>().map(drop).map_err(|error| refused(text, "topic", error))
}

/// Checks filters before anything is asked of a broker.
pub(crate) fn filters(texts: &[String], prefix: bool) -> Result<Vec<Filter>, Failure> {
    let parse = |text: &String| {
        let filter = if prefix { Filter::prefix(text.as_bytes()) } else { text.parse() };
        filter.map_err(|error| refused(text, "filter", error))
    };
    texts.iter().map(parse).collect()
}

fn refused(text: &str, what: &str, error: TopicError) -> Failure {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Failure::new(Code::BadTopic, format!("invalid {what} {shown:?}")).why(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line() {
        let event = |body: &'static [u8]| Event::new("a.b".parse().unwrap(), body);
        let table: [(&[u8], Format, bool, &[u8]); 7] = [
            (b"x", Format::Text, false, b"a.b x\n"),
            (b"x\n", Format::Wide, false, b"a.b x\n"),
            (b"", Format::Text, false, b"a.b \n"),
            (b"\xff", Format::Text, true, b"\xff"),
            (b"x", Format::Name, false, b"a.b\n"),
            (b"x", Format::Json, false, b""),
            (
                b"x",
                Format::Jsonl,
                true,
                b"{\"schema\":\"turno.event/1\",\"topic\":\"a.b\",\"body\":\"x\",\"encoding\":\"utf8\",\"headers\":{}}\n",
            ),
        ];
        for (body, format, raw, expected) in table {
            let printed = printed(&event(body), format, raw);
            assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(expected));
        }
    }

    #[test]
    fn what_is_no_topic_is_told_in_short() {
        let failure = check_topic(&"x".repeat(100_000)).unwrap_err();
        assert_eq!((failure.code(), failure.exit()), (Code::BadTopic, 2));
        assert!(failure.what().len() < 120, "{}", failure.what());
        let failure = filters(&["a".to_owned(), "a.>.b".to_owned()], false).unwrap_err();
        assert_eq!(failure.what(), "invalid filter \"a.>.b\"");
        assert!(filters(&["a.>.b".to_owned(), String::new()], true).is_ok(), "as prefixes they are nothing special");
    }
}
