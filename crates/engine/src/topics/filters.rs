//! All filters, indexed by the topics that they match.

use turno_proto::model::{Filter, Topic};

use super::ends::FilterEnd;
use super::seeded::Seeded;
use super::trie::{FilterPath, Trie};

/// All filters: finds those that match a topic.
#[derive(Debug)]
pub(super) struct Filters {
    trie: Trie,
    count: usize,
    /// Segments of all of them: each takes memory.
    segments: usize,
}

/// The way of a filter through the tree. `None`: no topic matches it.
fn path(filter: &Filter) -> Option<FilterPath<'_>> {
    let path = |segments, beginning, end| FilterPath { segments, beginning, end };
    match filter {
        Filter::Pattern(pattern) => {
            let (before, last) =
                pattern.rsplit_once('.').map_or((None, &**pattern), |(before, last)| (Some(before), last));
            Some(match last {
                "*" => path(before, b"", FilterEnd::Star),
                ">" => path(before, b"", FilterEnd::Rest),
                _ => path(Some(pattern), b"", FilterEnd::Here),
            })
        }
        Filter::Prefix(prefix) => {
            let dot = prefix.iter().rposition(|byte| *byte == b'.');
            let segments = dot.map(|dot| segments(&prefix[..dot])).map_or(Some(None), |segments| segments.map(Some))?;
            let beginning = &prefix[dot.map_or(0, |dot| dot + 1)..];
            // No topic ends with a dot: what begins with segments and a dot goes on, which is what `>` says.
            Some(path(segments, beginning, if beginning.is_empty() { FilterEnd::Dot } else { FilterEnd::Here }))
        }
    }
}

/// The text that a topic can begin with. Nothing else is published, and in the tree a `*` would mean something.
fn segments(bytes: &[u8]) -> Option<&str> {
    Topic::from_bytes(bytes).ok()?;
    std::str::from_utf8(bytes).ok()
}

impl Filters {
    pub(super) fn new(seed: Seeded) -> Self {
        Self { trie: Trie::new(seed), count: 0, segments: 0 }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) const fn segments(&self) -> usize {
        self.segments
    }

    /// One that the receiver did not have.
    pub(super) fn insert(&mut self, filter: &Filter, receiver: u32) {
        self.count += 1;
        self.segments += filter.segments();
        if let Some(path) = path(filter) {
            assert!(self.trie.insert(path, receiver), "a receiver has each filter once");
        }
    }

    /// One that it had.
    pub(super) fn remove(&mut self, filter: &Filter, receiver: u32) {
        self.count -= 1;
        self.segments -= filter.segments();
        if let Some(path) = path(filter) {
            assert!(self.trie.remove(path, receiver), "a receiver loses what it has");
        }
    }

    /// Tells of every receiver with a filter that matches; of one with several perhaps more than once.
    pub(super) fn matching(&mut self, topic: &Topic, tell: impl FnMut(u32)) {
        self.trie.matching(topic.as_str(), tell);
    }

    /// As if so many more were there.
    #[cfg(test)]
    pub(super) const fn pretend_segments(&mut self, segments: usize) {
        self.segments += segments;
    }

    /// Nothing is kept of filters that are gone.
    pub(super) fn check(&self) {
        if self.count == 0 {
            assert_eq!(self.segments, 0, "segments of no filter");
            assert!(self.trie.is_empty(), "nothing is kept of filters that are gone");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Short ones, the longest that are words of their own, and longer ones.
    fn segment() -> impl Strategy<Value = &'static str> {
        let few = prop_oneof![Just("a"), Just("b"), Just("ab")];
        prop_oneof![3 => few, 1 => Just("seven-7"), 1 => Just("seven-7-8"), 1 => Just("a-rather-long-one")]
    }

    fn pattern() -> impl Strategy<Value = Filter> {
        let segments = proptest::collection::vec(prop_oneof![3 => segment(), 1 => Just("*")], 0..4);
        (segments, any::<bool>()).prop_map(|(mut segments, rest)| {
            if rest || segments.is_empty() {
                segments.push(">");
            }
            segments.join(".").parse().unwrap()
        })
    }

    fn topic() -> impl Strategy<Value = String> {
        proptest::collection::vec(segment(), 1..5).prop_map(|segments| segments.join("."))
    }

    /// With a dot at the end and without, in the middle of a segment, nonsense.
    fn prefix() -> impl Strategy<Value = Filter> {
        let nonsense = prop_oneof![Just("a.*."), Just("."), Just("a.."), Just(""), Just("a.>."), Just("*.")];
        let cut = (topic(), any::<proptest::sample::Index>())
            .prop_map(|(topic, at)| topic[..at.index(topic.len())].to_owned());
        let text =
            prop_oneof![4 => topic().prop_map(|topic| topic + "."), 4 => cut, 1 => nonsense.prop_map(str::to_owned)];
        text.prop_map(|text| Filter::prefix(text.as_bytes()).unwrap())
    }

    proptest! {
        /// The tree finds the same as a scan of all filters, and keeps nothing of removed filters.
        #[test]
        fn what_a_scan_finds_is_found(
            steps in proptest::collection::vec((prop_oneof![pattern(), prefix()], 0u32..5, 0..3), 1..100),
            topics in proptest::collection::vec(topic(), 1..10),
        ) {
            let mut filters = Filters::new(Seeded(7));
            let mut plain: BTreeSet<(Filter, u32)> = BTreeSet::new();
            for (filter, receiver, add) in steps {
                let key = (filter.clone(), receiver);
                match add {
                    0 if plain.remove(&key) => filters.remove(&filter, receiver),
                    1.. if plain.insert(key) => filters.insert(&filter, receiver),
                    _ => {}
                }
                filters.check();
                prop_assert_eq!(filters.count(), plain.len());
                prop_assert_eq!(filters.segments(), plain.iter().map(|(filter, _)| filter.segments()).sum::<usize>());
            }
            for topic in topics {
                let topic: Topic = topic.parse().unwrap();
                let wanted: BTreeSet<u32> =
                    plain.iter().filter(|(filter, _)| filter.matches(&topic)).map(|(_, receiver)| *receiver).collect();
                let mut found = BTreeSet::new();
                filters.matching(&topic, |receiver| {
                    found.insert(receiver);
                });
                prop_assert_eq!(found, wanted, "{}", topic);
            }
            for (filter, receiver) in plain {
                filters.remove(&filter, receiver);
            }
            filters.check();
        }
    }
}
