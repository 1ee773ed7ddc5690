//! How often something was published about which topic, for the topics that were heard of lately.

use std::collections::{BTreeMap, VecDeque};

use turno_proto::model::limits::TOPICS_COUNTED_MAX;
use turno_proto::model::{Mono, Topic};

use super::Event;

/// Topics, each with its counts. When there are too many, one goes that nothing was heard of since it was last passed
/// over.
#[derive(Debug, Default)]
pub(super) struct Counted {
    topics: BTreeMap<Topic, Count>,
    round: VecDeque<Topic>,
}

/// What was published about a topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) events: u64,
    pub(super) bytes: u64,
    pub(super) latest: Mono,
    heard: bool,
}

impl Counted {
    pub(super) fn count(&mut self, event: &Event, now: Mono) {
        let bytes = event.payload.len() as u64;
        if let Some(count) = self.topics.get_mut(&event.topic) {
            *count = Count { events: count.events + 1, bytes: count.bytes + bytes, latest: now, heard: true };
            return;
        }
        if self.topics.len() >= TOPICS_COUNTED_MAX {
            self.forget_one();
        }
        self.topics.insert(event.topic.clone(), Count { events: 1, bytes, latest: now, heard: false });
        self.round.push_back(event.topic.clone());
    }

    fn forget_one(&mut self) {
        while let Some(topic) = self.round.pop_front() {
            let count = self.topics.get_mut(&topic).expect("each is in the round once");
            if !std::mem::take(&mut count.heard) {
                self.topics.remove(&topic);
                return;
            }
            self.round.push_back(topic);
        }
    }

    /// In order, those after that one.
    pub(super) fn after(&self, after: Option<&Topic>) -> impl Iterator<Item = (&Topic, &Count)> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.topics.range::<Topic, _>((after.map_or(Unbounded, Excluded), Unbounded))
    }

    pub(super) fn check(&self) {
        assert_eq!(self.topics.len(), self.round.len(), "each topic is in the round once");
        assert!(self.topics.len() <= TOPICS_COUNTED_MAX, "topics are limited");
    }
}
