//! Filters in a tree of segments: what matches a topic is found by walking it, however many filters there are.
//!
//! A walk visits a node at most once, and only nodes that match the topic so far.

use super::name::Name;
use super::receivers::Receivers;
use super::seeded::{Seeded, Table};

/// A tree of patterns.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    vacant: Vec<u32>,
    seed: Seeded,
}

const ROOT: u32 = 0;

/// One of very many, most of which lead to one other at most, and to one receiver: what that takes is all in one place.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Node {
    children: Children,
    star: Option<u32>,
    /// Whose pattern ends here, and how.
    ends: Receivers<(End, u32)>,
}

/// How a pattern ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// With the segment that leads to the node.
    Here,
    /// With `>` after it.
    Rest,
}

/// Where segments lead to.
#[derive(Debug, Default)]
enum Children {
    #[default]
    None,
    One(Name, u32),
    Many(Box<Table<Name, u32>>),
}

impl Children {
    fn get(&self, segment: &str) -> Option<u32> {
        match self {
            Self::None => None,
            Self::One(own, child) => (own.as_bytes() == segment.as_bytes()).then_some(*child),
            Self::Many(many) => many.get(segment.as_bytes()).copied(),
        }
    }

    /// One that was not there.
    fn insert(&mut self, segment: &str, child: u32, seed: Seeded) {
        match self {
            Self::None => *self = Self::One(Name::new(segment.as_bytes()), child),
            Self::One(..) => {
                let mut many = Table::with_hasher(seed);
                if let Self::One(own, one) = std::mem::take(self) {
                    many.insert(own, one);
                }
                many.insert(Name::new(segment.as_bytes()), child);
                *self = Self::Many(Box::new(many));
            }
            Self::Many(many) => drop(many.insert(Name::new(segment.as_bytes()), child)),
        }
    }

    /// One that is there.
    fn remove(&mut self, segment: &str) {
        match self {
            Self::None => {}
            Self::One(..) => *self = Self::None,
            Self::Many(many) => {
                many.remove(segment.as_bytes());
                if many.len() == 1 {
                    let last = many.drain().next();
                    *self = last.map_or(Self::None, |(last, child)| Self::One(last, child));
                }
            }
        }
    }

    const fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl Node {
    const fn is_empty(&self) -> bool {
        self.children.is_empty() && self.star.is_none() && self.ends.is_empty()
    }

    fn child(&self, segment: &str) -> Option<u32> {
        if segment == "*" { self.star } else { self.children.get(segment) }
    }

    fn tell(&self, end: End, tell: &mut impl FnMut(u32)) {
        self.ends.tell_within((end, 0)..=(end, u32::MAX), |(_, receiver)| tell(receiver));
    }
}

impl Trie {
    pub(super) fn new(seed: Seeded) -> Self {
        Self { nodes: vec![Node::default()], vacant: Vec::new(), seed }
    }

    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    fn node_mut(&mut self, at: u32) -> &mut Node {
        &mut self.nodes[at as usize]
    }

    /// True unless it was there already.
    pub(super) fn insert(&mut self, pattern: &str, receiver: u32) -> bool {
        let mut at = ROOT;
        for segment in pattern.split('.') {
            if segment == ">" {
                return self.node_mut(at).ends.insert((End::Rest, receiver));
            }
            at = match self.node(at).child(segment) {
                Some(child) => child,
                None => self.add(at, segment),
            };
        }
        self.node_mut(at).ends.insert((End::Here, receiver))
    }

    fn add(&mut self, parent: u32, segment: &str) -> u32 {
        let child = self.vacant.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            u32::try_from(self.nodes.len() - 1).expect("filters are limited, and their segments")
        });
        let seed = self.seed;
        let node = self.node_mut(parent);
        if segment == "*" {
            node.star = Some(child);
        } else {
            node.children.insert(segment, child, seed);
        }
        child
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, pattern: &str, receiver: u32) -> bool {
        let mut path = Vec::new();
        let mut at = ROOT;
        let mut end = End::Here;
        for segment in pattern.split('.') {
            if segment == ">" {
                end = End::Rest;
                break;
            }
            let Some(child) = self.node(at).child(segment) else { return false };
            path.push((at, segment));
            at = child;
        }
        let removed = self.node_mut(at).ends.remove((end, receiver));
        // What leads nowhere any more goes.
        while let Some((parent, segment)) = path.pop() {
            if !self.node(at).is_empty() {
                break;
            }
            let node = self.node_mut(parent);
            if segment == "*" {
                node.star = None;
            } else {
                node.children.remove(segment);
            }
            self.vacant.push(at);
            at = parent;
        }
        if self.is_empty() {
            *self = Self::new(self.seed);
        }
        removed
    }

    /// Tells of every receiver with a pattern that matches; of one with several perhaps more than once.
    pub(super) fn matching(&self, topic: &str, mut tell: impl FnMut(u32)) {
        self.walk(ROOT, Some(topic), &mut tell);
    }

    /// Goes as deep as the topic has segments, which its length limits.
    fn walk(&self, at: u32, left: Option<&str>, tell: &mut impl FnMut(u32)) {
        let node = self.node(at);
        let Some(left) = left else { return node.tell(End::Here, tell) };
        node.tell(End::Rest, tell);
        if node.star.is_none() && node.children.is_empty() {
            return;
        }
        let (segment, left) = left.split_once('.').map_or((left, None), |(segment, left)| (segment, Some(left)));
        for child in [node.star, node.children.get(segment)].into_iter().flatten() {
            self.walk(child, left, tell);
        }
    }

    /// Nothing is kept for patterns that are gone; the memory goes with the last.
    pub(super) fn is_empty(&self) -> bool {
        self.node(ROOT).is_empty() && self.vacant.len() == self.nodes.len() - 1
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

    /// One line of a processor's cache.
    #[test]
    fn a_node_stays_small() {
        assert_eq!(size_of::<Node>(), 64);
    }

    proptest! {
        /// The tree finds what looking at each filter finds, and keeps nothing of what is gone.
        #[test]
        fn the_tree_finds_what_a_scan_finds(
            steps in proptest::collection::vec((pattern(), 0u32..5, any::<bool>()), 1..60),
            topics in proptest::collection::vec(proptest::collection::vec(segment(), 1..5), 1..10),
        ) {
            let mut trie = Trie::new(Seeded(7));
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
