//! The filter tree: filters by segment.
//!
//! A walk visits a node at most once, and only nodes that match the topic so far.

use std::collections::BTreeMap;

use super::ends::{FilterEnd, LargeEnds};
use super::nodes::{Key, Length, NodePlace, Nodes, ROOT, TrieNode};
use super::seeded::Seeded;
use super::segments::{LongSegments, SHORT_MAX, SegmentId};

/// A tree of filters.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Nodes,
    words: LongSegments,
    lists: LargeEnds,
    /// How many beginnings of a length come after a node, by its number.
    beginnings: BTreeMap<(u32, Length), u32>,
    seed: Seeded,
    /// The hash of `*`.
    star: u64,
    /// Those of a topic; kept for their room only.
    segments: Vec<Segment>,
}

/// A filter as a way through the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterPath<'a> {
    /// Separated by dots; `None`: it begins with how it ends.
    pub(super) segments: Option<&'a str>,
    /// The beginning of the next segment. Empty: it may be any, or there is none.
    pub(super) beginning: &'a [u8],
    pub(super) end: FilterEnd,
}

/// One part of it.
#[derive(Clone, Copy)]
struct FilterPart<'a> {
    bytes: &'a [u8],
    is_whole: bool,
}

/// Where a path goes through, and by what.
struct TrieStep<'a> {
    key: Key,
    parent: u32,
    word: SegmentId,
    part: FilterPart<'a>,
}

/// A segment of a topic. It is hashed once, however many nodes it is looked up from.
#[derive(Clone, Copy, Debug)]
struct Segment {
    word: SegmentId,
    hash: u64,
    /// Where it is in the topic.
    begin: u32,
    end: u32,
}

/// The state of a walk.
struct TrieWalk<'a> {
    topic: &'a [u8],
    segments: &'a [Segment],
}

impl<'a> FilterPath<'a> {
    fn parts(&self) -> impl Iterator<Item = FilterPart<'a>> + use<'a> {
        let segments = self.segments.into_iter().flat_map(|segments| segments.split('.'));
        let beginning = Some(self.beginning).filter(|beginning| !beginning.is_empty());
        segments
            .map(|segment| FilterPart { bytes: segment.as_bytes(), is_whole: true })
            .chain(beginning.map(|bytes| FilterPart { bytes, is_whole: false }))
    }
}

impl FilterPart<'_> {
    fn word(self, words: &LongSegments) -> SegmentId {
        self.shaped(words.get(self.bytes))
    }

    fn shaped(self, word: SegmentId) -> SegmentId {
        if self.is_whole { word } else { word.beginning() }
    }
}

impl Trie {
    pub(super) fn new(seed: Seeded) -> Self {
        Self {
            nodes: Nodes::new(),
            words: LongSegments::new(seed),
            lists: LargeEnds::default(),
            beginnings: BTreeMap::new(),
            seed,
            star: SegmentId::STAR.hash(seed),
            segments: Vec::new(),
        }
    }

    /// True unless it was there already.
    pub(super) fn insert(&mut self, path: FilterPath<'_>, receiver: u32) -> bool {
        let (mut at, mut key) = (ROOT, Key::ROOT);
        for part in path.parts() {
            let (parent, word) = (self.nodes.at(at).number, part.word(&self.words));
            let next = key.then(word.hash(self.seed));
            (at, key) = match self.nodes.find(next, parent, word) {
                Some(child) => (child, next),
                None => self.add(at, key, part),
            };
        }
        self.nodes.at_mut(at).ends.insert(path.end, receiver, &mut self.lists)
    }

    /// A node that was not there.
    fn add(&mut self, at: NodePlace, key: Key, part: FilterPart<'_>) -> (NodePlace, Key) {
        let word = part.shaped(self.words.take(part.bytes));
        let key = key.then(word.hash(self.seed));
        let node = self.nodes.at_mut(at);
        let parent = node.number;
        if word == SegmentId::STAR {
            node.set_star(true);
        } else if part.is_whole {
            node.add_segment();
        } else {
            let length = Length::of(part.bytes);
            node.set_beginning(length, true);
            *self.beginnings.entry((parent, length)).or_default() += 1;
        }
        (self.nodes.insert(key, parent, word), key)
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, path: FilterPath<'_>, receiver: u32) -> bool {
        let mut steps = Vec::new();
        let nothing = FilterPart { bytes: &[], is_whole: true };
        let mut step = TrieStep { key: Key::ROOT, parent: 0, word: SegmentId::default(), part: nothing };
        let mut at = ROOT;
        for part in path.parts() {
            let (parent, word) = (self.nodes.at(at).number, part.word(&self.words));
            let key = step.key.then(word.hash(self.seed));
            let Some(child) = self.nodes.find(key, parent, word) else { return false };
            steps.push(std::mem::replace(&mut step, TrieStep { key, parent, word, part }));
            at = child;
        }
        let removed = self.nodes.at_mut(at).ends.remove(path.end, receiver, &mut self.lists);
        // Nodes that lead nowhere any more are removed.
        while let Some(before) = steps.pop() {
            if !self.nodes.at(at).is_empty() {
                break;
            }
            self.nodes.remove(at);
            // It may be at another place now.
            let parent = self.nodes.find(before.key, before.parent, before.word);
            at = parent.expect("each node comes after one that is there");
            self.forget(at, &step);
            step = before;
        }
        if self.is_empty() {
            *self = Self::new(self.seed);
        }
        removed
    }

    /// Nothing comes after the node by that step any more.
    fn forget(&mut self, at: NodePlace, step: &TrieStep<'_>) {
        self.words.give_back(step.part.bytes);
        let node = self.nodes.at_mut(at);
        if step.word == SegmentId::STAR {
            node.set_star(false);
        } else if step.part.is_whole {
            node.remove_segment();
        } else {
            let length = Length::of(step.part.bytes);
            let left = self.beginnings.get_mut(&(node.number, length)).expect("it was counted");
            *left -= 1;
            if *left == 0 {
                self.beginnings.remove(&(node.number, length));
                node.set_beginning(length, false);
            }
        }
    }

    /// Tells of every receiver with a filter that matches; of one with several perhaps more than once.
    pub(super) fn matching(&mut self, topic: &str, mut tell: impl FnMut(u32)) {
        let topic = topic.as_bytes();
        let mut segments = std::mem::take(&mut self.segments);
        let mut begin = 0;
        for name in topic.split(|byte| *byte == b'.') {
            let word = self.words.get(name);
            let end = begin + name.len() as u32;
            segments.push(Segment { word, hash: word.hash(self.seed), begin, end });
            begin = end + 1;
        }
        self.walk(&TrieWalk { topic, segments: &segments }, ROOT, Key::ROOT, &mut tell);
        segments.clear();
        self.segments = segments;
    }

    /// Goes as deep as the topic has segments, which are limited. Where it goes on follows from the key, which it has, and
    /// not from the node, which may have to be waited for.
    fn walk(&self, walk: &TrieWalk<'_>, at: NodePlace, key: Key, tell: &mut impl FnMut(u32)) {
        let node = self.nodes.at(at);
        node.ends.tell(walk.segments.len(), &self.lists, tell);
        let Some((segment, left)) = walk.segments.split_first() else { return };
        let after = TrieWalk { topic: walk.topic, segments: left };
        if node.has_star() {
            let key = key.then(self.star);
            if let Some(child) = self.nodes.find(key, node.number, SegmentId::STAR) {
                self.walk(&after, child, key, tell);
            }
        }
        if node.has_beginnings() {
            let name = &walk.topic[segment.begin as usize..segment.end as usize];
            self.begin(node, key, name, tell);
        }
        if node.has_segments() {
            let key = key.then(segment.hash);
            if let Some(child) = self.nodes.find(key, node.number, segment.word) {
                self.walk(&after, child, key, tell);
            }
        }
    }

    /// Tells of those to whom the beginning of that segment is enough. It is looked up once for each length that some
    /// beginning here has, or may have if it is long.
    #[inline(never)]
    fn begin(&self, node: &TrieNode, key: Key, name: &[u8], tell: &mut impl FnMut(u32)) {
        let lengths = node.beginnings().flat_map(|length| match length {
            Length::LONG => SHORT_MAX + 1..=name.len(),
            short => short.bytes()..=short.bytes(),
        });
        for beginning in lengths.map_while(|length| name.get(..length)) {
            let word = self.words.get(beginning).beginning();
            if let Some(child) = self.nodes.find(key.then(word.hash(self.seed)), node.number, word) {
                self.nodes.at(child).ends.tell(0, &self.lists, tell);
            }
        }
    }

    /// Nothing is kept for filters that are gone; the memory goes with the last.
    pub(super) fn is_empty(&self) -> bool {
        let is_empty = self.nodes.is_bare() && self.nodes.at(ROOT).is_empty();
        let are_others = self.words.is_empty() && self.lists.is_empty() && self.beginnings.is_empty();
        assert!(!is_empty || are_others, "what nodes need goes with them");
        is_empty
    }
}
