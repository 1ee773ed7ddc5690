//! Events: owned, and borrowed from a buffer.

use bytes::Bytes;

use super::Topic;
use crate::model::Payload;

/// Something that was published. A frame lends topic and payload as they stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<T = Topic, P = Payload> {
    /// The topic.
    pub topic: T,
    /// Headers and body.
    pub payload: P,
}

/// An event where it lies, in a read buffer or in an [`Event`]. Most go on at once and are never owned; what keeps one
/// copies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRef<'a> {
    /// The topic.
    pub topic: &'a Topic,
    /// Whether `bytes` begins with a header block.
    pub headers: bool,
    /// Header block, if any, and body.
    pub bytes: &'a [u8],
    /// The same bytes, if they are shared: then nothing is copied.
    shared: Option<&'a Bytes>,
}

impl<'a> EventRef<'a> {
    /// An event whose bytes are somebody else's.
    #[inline]
    pub const fn passing(topic: &'a Topic, headers: bool, bytes: &'a [u8]) -> Self {
        Self { topic, headers, bytes, shared: None }
    }

    /// One of its own.
    pub fn to_event(&self) -> Event {
        let bytes = self.shared.map_or_else(|| Bytes::copy_from_slice(self.bytes), Bytes::clone);
        Event { topic: self.topic.clone(), payload: Payload { headers: self.headers, bytes } }
    }
}

impl<'a> From<&'a Event> for EventRef<'a> {
    #[inline]
    fn from(event: &'a Event) -> Self {
        let Payload { headers, ref bytes } = event.payload;
        Self { topic: &event.topic, headers, bytes, shared: Some(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_passed_and_is_copied_only_from_elsewhere() {
        let (topic, bytes) = ("a.b".parse::<Topic>().unwrap(), Bytes::from_static(b"hello"));
        let event = Event { topic: topic.clone(), payload: Payload { headers: true, bytes: bytes.clone() } };
        let kept = EventRef::from(&event).to_event();
        assert_eq!(kept, event);
        assert_eq!(kept.payload.bytes.as_ptr(), bytes.as_ptr(), "shared");
        let kept = EventRef::passing(&topic, true, &bytes).to_event();
        assert_eq!(kept, event);
        assert_ne!(kept.payload.bytes.as_ptr(), bytes.as_ptr(), "copied");
    }
}
