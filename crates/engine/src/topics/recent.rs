//! Recent topics, with their counts of events and subscribers.

use std::collections::VecDeque;

use turno_proto::model::limits::{TOPIC_RECEIVERS_KNOWN_MAX, TOPICS_COUNTED_MAX};
use turno_proto::model::topic::EventRef;
use turno_proto::model::{Mono, Topic};

use super::seeded::{Seeded, Table};

/// Topics, each with its counts. When there are too many, one goes that nothing was heard of since it was last passed
/// over.
#[derive(Debug)]
pub(super) struct RecentTopics {
    topics: Table<Topic, KnownTopic>,
    round: VecDeque<Topic>,
}

/// The entry of a topic.
#[derive(Debug)]
pub(super) struct KnownTopic {
    count: Count,
    heard: bool,
    /// Its receivers, and the version of all filters that this is true for; `None` if they are not known.
    receivers: Vec<u32>,
    as_of: Option<u64>,
}

/// Counters of a topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) events: u64,
    pub(super) bytes: u64,
    pub(super) latest: Mono,
}

impl RecentTopics {
    pub(super) fn new(seed: Seeded) -> Self {
        Self { topics: Table::with_hasher(seed), round: VecDeque::new() }
    }

    /// Tells who it is for. False if that must be looked up: filters may have changed since it was.
    pub(super) fn count(&mut self, event: EventRef<'_>, now: Mono, version: u64, found: &mut Vec<u32>) -> bool {
        let bytes = event.bytes.len() as u64;
        if let Some(known) = self.topics.get_mut(event.topic) {
            let Count { events, bytes: before, .. } = known.count;
            known.count = Count { events: events + 1, bytes: before + bytes, latest: now };
            known.heard = true;
            let is_known = known.as_of == Some(version);
            if is_known {
                found.extend_from_slice(&known.receivers);
            }
            return is_known;
        }
        if self.topics.len() >= TOPICS_COUNTED_MAX {
            self.forget_one();
        }
        let count = Count { events: 1, bytes, latest: now };
        let known = KnownTopic { count, heard: false, receivers: Vec::new(), as_of: None };
        self.topics.insert(event.topic.clone(), known);
        self.round.push_back(event.topic.clone());
        false
    }

    /// Keeps who listens to a topic. Where they are many, looking them up is little beside telling them.
    pub(super) fn learn(&mut self, topic: &Topic, receivers: &[u32], version: u64) {
        let Some(known) = self.topics.get_mut(topic) else { return };
        known.receivers.clear();
        known.as_of = (receivers.len() <= TOPIC_RECEIVERS_KNOWN_MAX).then_some(version);
        if known.as_of.is_some() {
            known.receivers.extend_from_slice(receivers);
        }
    }

    fn forget_one(&mut self) {
        while let Some(topic) = self.round.pop_front() {
            let known = self.topics.get_mut(&topic).expect("each is in the round once");
            if !std::mem::take(&mut known.heard) {
                self.topics.remove(&topic);
                return;
            }
            self.round.push_back(topic);
        }
    }

    /// So many after that one, in order, and whether there are more.
    pub(super) fn after(&self, after: Option<&Topic>, limit: usize) -> (Vec<(Topic, Count)>, bool) {
        let all = self.topics.iter().filter(|(topic, _)| after.is_none_or(|after| *topic > after));
        let mut page: Vec<(Topic, Count)> = all.map(|(topic, known)| (topic.clone(), known.count)).collect();
        page.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let more = page.len() > limit;
        page.truncate(limit);
        (page, more)
    }

    pub(super) fn check(&self) {
        assert_eq!(self.topics.len(), self.round.len(), "each topic is in the round once");
        assert!(self.topics.len() <= TOPICS_COUNTED_MAX, "topics are limited");
        let known = self.topics.values().map(|known| known.receivers.len());
        assert!(known.max().is_none_or(|most| most <= TOPIC_RECEIVERS_KNOWN_MAX), "known receivers are limited");
    }
}
