//! Filters in a tree of segments: what matches a topic is found by walking it, however many filters there are.
//!
//! A walk visits a node at most once, and only nodes that match the topic so far.

use std::collections::BTreeSet;

use super::segments::{Seed, Segments};

/// A tree of patterns.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    vacant: Vec<usize>,
    seed: Seed,
}

const ROOT: usize = 0;

#[derive(Debug, Default)]
struct Node {
    children: Segments,
    star: Option<usize>,
    /// Whose pattern ends here.
    here: BTreeSet<u32>,
    /// Whose pattern has `>` here.
    rest: BTreeSet<u32>,
}

impl Node {
    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.star.is_none() && self.here.is_empty() && self.rest.is_empty()
    }

    fn child(&self, seed: Seed, segment: &str) -> Option<usize> {
        if segment == "*" { self.star } else { self.children.get(seed, segment) }
    }
}

impl Trie {
    pub(super) fn new(seed: u64) -> Self {
        Self { nodes: vec![Node::default()], vacant: Vec::new(), seed: Seed(seed) }
    }

    /// True unless it was there already.
    pub(super) fn insert(&mut self, pattern: &str, receiver: u32) -> bool {
        let mut at = ROOT;
        for segment in pattern.split('.') {
            if segment == ">" {
                return self.nodes[at].rest.insert(receiver);
            }
            at = match self.nodes[at].child(self.seed, segment) {
                Some(child) => child,
                None => self.add(at, segment),
            };
        }
        self.nodes[at].here.insert(receiver)
    }

    fn add(&mut self, parent: usize, segment: &str) -> usize {
        let child = self.vacant.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() - 1
        });
        if segment == "*" {
            self.nodes[parent].star = Some(child);
        } else {
            self.nodes[parent].children.insert(self.seed, segment, child);
        }
        child
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, pattern: &str, receiver: u32) -> bool {
        let mut path = Vec::new();
        let mut at = ROOT;
        let mut removed = None;
        for segment in pattern.split('.') {
            if segment == ">" {
                removed = Some(self.nodes[at].rest.remove(&receiver));
                break;
            }
            let Some(child) = self.nodes[at].child(self.seed, segment) else { return false };
            path.push((at, segment));
            at = child;
        }
        let removed = removed.unwrap_or_else(|| self.nodes[at].here.remove(&receiver));
        // What leads nowhere any more goes.
        while let Some((parent, segment)) = path.pop() {
            if !self.nodes[at].is_empty() {
                break;
            }
            if segment == "*" {
                self.nodes[parent].star = None;
            } else {
                self.nodes[parent].children.remove(self.seed, segment);
            }
            self.nodes[at] = Node::default();
            self.vacant.push(at);
            at = parent;
        }
        if self.is_empty() {
            *self = Self::new(self.seed.0);
        }
        removed
    }

    /// Tells of every receiver with a pattern that matches; of one with several perhaps more than once.
    pub(super) fn matching(&self, topic: &str, mut tell: impl FnMut(u32)) {
        let mut open = vec![(ROOT, Some(topic))];
        while let Some((at, left)) = open.pop() {
            let node = &self.nodes[at];
            let Some(left) = left else {
                node.here.iter().copied().for_each(&mut tell);
                continue;
            };
            node.rest.iter().copied().for_each(&mut tell);
            let (segment, left) = left.split_once('.').map_or((left, None), |(segment, left)| (segment, Some(left)));
            let next = node.star.into_iter().chain(node.children.get(self.seed, segment));
            open.extend(next.map(|child| (child, left)));
        }
    }

    /// Nothing is kept for patterns that are gone; the memory goes with the last.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes[ROOT].is_empty() && self.vacant.len() == self.nodes.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use turno_proto::model::{Filter, Topic};

    use super::*;

    fn told(trie: &Trie, topic: &str) -> BTreeSet<u32> {
        let mut all = BTreeSet::new();
        trie.matching(topic, |receiver| {
            all.insert(receiver);
        });
        all
    }

    fn segment() -> impl Strategy<Value = &'static str> {
        prop_oneof![Just("a"), Just("b"), Just("c")]
    }

    fn pattern() -> impl Strategy<Value = String> {
        let segments = proptest::collection::vec(prop_oneof![3 => segment(), 1 => Just("*")], 0..4);
        (segments, any::<bool>()).prop_map(|(mut segments, rest)| {
            if rest || segments.is_empty() {
                segments.push(">");
            }
            segments.join(".")
        })
    }

    proptest! {
        /// The tree finds what looking at each filter finds, and keeps nothing of what is gone.
        #[test]
        fn the_tree_finds_what_a_scan_finds(
            steps in proptest::collection::vec((pattern(), 0u32..5, any::<bool>()), 1..60),
            topics in proptest::collection::vec(proptest::collection::vec(segment(), 1..5), 1..10),
        ) {
            let mut trie = Trie::new(7);
            let mut plain: BTreeSet<(String, u32)> = BTreeSet::new();
            for (pattern, receiver, add) in steps {
                let key = (pattern.clone(), receiver);
                if add {
                    prop_assert_eq!(trie.insert(&pattern, receiver), plain.insert(key));
                } else {
                    prop_assert_eq!(trie.remove(&pattern, receiver), plain.remove(&key));
                }
                prop_assert_eq!(trie.is_empty(), plain.is_empty());
            }
            for topic in topics {
                let topic: Topic = topic.join(".").parse().unwrap();
                let scanned: BTreeSet<u32> = plain
                    .iter()
                    .filter(|(pattern, _)| pattern.parse::<Filter>().unwrap().matches(&topic))
                    .map(|(_, receiver)| *receiver)
                    .collect();
                prop_assert_eq!(told(&trie, topic.as_str()), scanned, "{}", topic);
            }
        }
    }
}
