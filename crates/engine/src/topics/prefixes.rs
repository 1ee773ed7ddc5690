//! Prefixes of bytes: a topic is looked up once for each length that some prefix has.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::name::Name;
use super::receivers::Receivers;
use super::seeded::{Seeded, Table};

/// Who listens to which prefix.
#[derive(Debug)]
pub(super) struct Prefixes {
    receivers: Table<Name, Receivers>,
    /// How many prefixes have which length.
    lengths: BTreeMap<usize, usize>,
}

impl Prefixes {
    pub(super) fn new(seed: Seeded) -> Self {
        Self { receivers: Table::with_hasher(seed), lengths: BTreeMap::new() }
    }

    /// True unless it was there already.
    pub(super) fn insert(&mut self, prefix: &Bytes, receiver: u32) -> bool {
        let receivers = self.receivers.entry(Name::new(prefix)).or_insert_with(|| {
            *self.lengths.entry(prefix.len()).or_default() += 1;
            Receivers::default()
        });
        receivers.insert(receiver)
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, prefix: &Bytes, receiver: u32) -> bool {
        let Some(receivers) = self.receivers.get_mut(&**prefix) else { return false };
        let removed = receivers.remove(receiver);
        if receivers.is_empty() {
            self.receivers.remove(&**prefix);
            let left = self.lengths.get_mut(&prefix.len()).expect("it had that length");
            *left -= 1;
            if *left == 0 {
                self.lengths.remove(&prefix.len());
            }
        }
        removed
    }

    /// Tells of every receiver with a prefix that matches; of one with several more than once.
    pub(super) fn matching(&self, topic: &[u8], mut tell: impl FnMut(u32)) {
        for length in self.lengths.keys() {
            let Some(prefix) = topic.get(..*length) else { return };
            if let Some(receivers) = self.receivers.get(prefix) {
                receivers.tell(&mut tell);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.receivers.is_empty() && self.lengths.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_looked_up_by_every_length() {
        let mut prefixes = Prefixes::new(Seeded(7));
        let all = [("", 1), ("a", 2), ("ab", 3), ("abc", 4), ("b", 5), ("ab", 6)];
        for (prefix, receiver) in all {
            assert!(prefixes.insert(&Bytes::from_static(prefix.as_bytes()), receiver));
            assert!(!prefixes.insert(&Bytes::from_static(prefix.as_bytes()), receiver));
        }
        for (topic, expected) in
            [("ab", vec![1, 2, 3, 6]), ("abcd", vec![1, 2, 3, 6, 4]), ("x", vec![1]), ("b", vec![1, 5])]
        {
            let mut told = Vec::new();
            prefixes.matching(topic.as_bytes(), |receiver| told.push(receiver));
            assert_eq!(told, expected, "{topic}");
        }
        for (prefix, receiver) in all {
            assert!(!prefixes.is_empty());
            assert!(prefixes.remove(&Bytes::from_static(prefix.as_bytes()), receiver));
            assert!(!prefixes.remove(&Bytes::from_static(prefix.as_bytes()), receiver));
        }
        assert!(prefixes.is_empty());
    }
}
