//! A cache of the last topic, so that a series of events checks and allocates it once.

use turno_proto::model::{Topic, TopicError};

/// The topic that came last.
#[derive(Debug, Default)]
pub(super) struct LastTopic(Option<Topic>);

impl LastTopic {
    /// The topic in these bytes.
    pub(super) fn of(&mut self, bytes: &[u8]) -> Result<&Topic, TopicError> {
        let last = self.0.take().filter(|last| last.as_str().as_bytes() == bytes);
        let topic = last.map_or_else(|| Topic::from_bytes(bytes), Ok)?;
        Ok(self.0.insert(topic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_is_what_its_bytes_say() {
        let mut last = LastTopic::default();
        for text in ["a.b", "a.b", "a", "a.b", "a.bc", "a.b"] {
            assert_eq!(last.of(text.as_bytes()).map(|topic| topic.to_string()).as_deref(), Ok(text));
            assert_eq!(last.of(b"a..b"), Err(TopicError::EmptySegment), "a bad one is not remembered");
        }
    }
}
