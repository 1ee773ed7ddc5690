//! Any text as what people type: queue names, ids, durations, sizes, counts.

use std::time::Duration;

use turno_proto::model::units::{format_duration, format_size, parse_count, parse_duration, parse_size};
use turno_proto::model::{MessageId, NameError, QueueName, limits};

use turno_oracle::Bytes;

/// Reads the bytes in every way, and writes again what could be read.
pub fn names(data: &[u8]) {
    number(u64::from_le_bytes(Bytes::new(data).array()));
    let name = QueueName::from_bytes(data);
    if let Ok(name) = &name {
        assert!(!data.is_empty() && data.len() <= limits::QUEUE_NAME_BYTES_MAX, "a name has its length");
        assert_eq!(name.as_str().as_bytes(), data, "a name is kept as it came");
        assert!(!name.as_str().contains(|c: char| c.is_whitespace() || c.is_control() || "*>".contains(c)));
        assert!(name.as_str().split('.').all(|segment| !segment.is_empty()), "no segment is empty");
    }
    let Ok(text) = std::str::from_utf8(data) else {
        assert!(matches!(name, Err(NameError::NotUtf8 | NameError::TooLong)), "a name is text");
        return;
    };
    assert_eq!(text.parse(), name, "bytes and text are held to the same rules");
    if let Ok(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&format_duration(duration)), Ok(duration), "{text:?}");
    }
    if let Ok(size) = parse_size(text) {
        assert_eq!(parse_size(&format_size(size)), Ok(size), "{text:?}");
    }
    if let Ok(count) = parse_count(text) {
        assert_eq!(parse_count(&count.to_string()), Ok(count), "{text:?}");
        assert_eq!(parse_size(text), Ok(count), "a bare number is a size too");
    }
    if let Ok(id) = text.parse::<MessageId>() {
        assert_eq!(id.to_string(), text.to_lowercase(), "an id is its digits");
        let again = match id.place() {
            Some(place) => MessageId::new(id.run(), id.serial(), place),
            None => MessageId::durable(id.run(), id.serial()),
        };
        assert_eq!(again, id, "an id is its three parts");
    }
}

/// Every number can be written as a duration and as a size.
fn number(number: u64) {
    let duration = Duration::from_millis(number);
    assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
    assert_eq!(parse_size(&format_size(number)), Ok(number));
}
