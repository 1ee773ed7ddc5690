//! The nodes of the filter tree, in a table indexed by their path.
//!
//! Where a node is follows from the hashes of the segments that lead to it, and from nothing that is in memory. So a walk
//! knows where it looks next before it has seen where it is, and the waits for memory overlap. What it then finds is
//! compared in full: the hash says where, never what.

use super::ends::Ends;
use super::numbers::NumberPool;
use super::segments::{SHORT_MAX, SegmentId};

/// One of very many: all that a walk looks at, in half a line of a processor's cache.
#[derive(Debug, Default)]
#[repr(align(32))]
pub(super) struct TrieNode {
    /// The segment that leads to it; `*` for any.
    word: SegmentId,
    /// The filters that end here.
    pub(super) ends: Ends,
    /// The number of the node it comes after.
    parent: u32,
    /// Its own, as long as it is there; zero where no node is.
    pub(super) number: u32,
    /// The hash that its place depends on.
    home: u32,
    /// The ways on from it: a bit for `*`, one for each [`Length`] of beginnings, and above them how many segments.
    ways: u32,
}

/// How long the beginning of a segment is. All that are longer than a few bytes are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Length(u8);

impl Length {
    pub(super) const LONG: Self = Self(SHORT_MAX as u8);

    /// Of one byte at least.
    pub(super) fn of(beginning: &[u8]) -> Self {
        Self(beginning.len().clamp(1, SHORT_MAX + 1) as u8 - 1)
    }

    /// Where it is not [`Self::LONG`].
    pub(super) fn bytes(self) -> usize {
        usize::from(self.0) + 1
    }

    const fn bit(self) -> u32 {
        STAR << (1 + self.0)
    }
}

const STAR: u32 = 1;
const ONE_SEGMENT: u32 = Length::LONG.bit() << 1;

/// A hash of all segments up to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Key(u64);

/// Odd, and half of its bits are set.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Key {
    pub(super) const ROOT: Self = Self(0);

    /// One segment further, by its hash. Peers know nothing of that, so nothing of what follows from it either.
    #[inline]
    pub(super) const fn then(self, hash: u64) -> Self {
        let product = (self.0 ^ hash) as u128 * SPREAD as u128;
        Self(product as u64 ^ (product >> 64) as u64)
    }

    #[inline]
    const fn shard(self) -> usize {
        (self.0 >> (u64::BITS - SHARD_BITS)) as usize
    }

    /// The part that the place depends on: more bits than a table has places.
    #[inline]
    const fn home(self) -> u32 {
        ((self.0 << SHARD_BITS) >> u32::BITS) as u32
    }
}

impl TrieNode {
    const fn is_vacant(&self) -> bool {
        self.number == 0
    }

    #[inline]
    pub(super) const fn has_star(&self) -> bool {
        self.ways & STAR != 0
    }

    #[inline]
    pub(super) const fn has_segments(&self) -> bool {
        self.ways >= ONE_SEGMENT
    }

    #[inline]
    pub(super) const fn has_beginnings(&self) -> bool {
        self.ways & (ONE_SEGMENT - 1) > STAR
    }

    /// From one byte on.
    pub(super) fn beginnings(&self) -> impl Iterator<Item = Length> {
        (0..=Length::LONG.0).map(Length).filter(|length| self.ways & length.bit() != 0)
    }

    pub(super) const fn set_star(&mut self, leads_on: bool) {
        self.ways = if leads_on { self.ways | STAR } else { self.ways & !STAR };
    }

    pub(super) const fn set_beginning(&mut self, length: Length, leads_on: bool) {
        self.ways = if leads_on { self.ways | length.bit() } else { self.ways & !length.bit() };
    }

    pub(super) fn add_segment(&mut self) {
        self.ways = self.ways.checked_add(ONE_SEGMENT).expect("segments of filters are limited");
    }

    pub(super) const fn remove_segment(&mut self) {
        self.ways -= ONE_SEGMENT;
    }

    /// Nothing leads on from it, and nothing ends here.
    pub(super) const fn is_empty(&self) -> bool {
        self.ways == 0 && self.ends.is_empty()
    }
}

/// Tables that all nodes are spread over. Each grows for itself, so that no filter has to wait until all have moved.
const SHARDS: usize = 64;
const SHARD_BITS: u32 = SHARDS.trailing_zeros();

/// Places of the smallest table.
const PLACES_MIN: usize = 4;

/// All nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    shards: Box<[Shard; SHARDS]>,
    /// Nodes that are there.
    taken: usize,
    numbers: NumberPool,
}

/// Where a node is, until another comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodePlace {
    shard: usize,
    at: usize,
}

/// The first to come and the last to go: nothing is ever in its place.
pub(super) const ROOT: NodePlace = NodePlace { shard: 0, at: 0 };

impl Nodes {
    /// With a root.
    pub(super) fn new() -> Self {
        let shards = Box::new(std::array::from_fn(|_| Shard { places: vacant(PLACES_MIN), taken: 0 }));
        let mut nodes = Self { shards, taken: 0, numbers: NumberPool::default() };
        nodes.insert(Key::ROOT, 0, SegmentId::default());
        nodes
    }

    #[inline]
    pub(super) fn at(&self, place: NodePlace) -> &TrieNode {
        &self.shards[place.shard].places[place.at]
    }

    pub(super) fn at_mut(&mut self, place: NodePlace) -> &mut TrieNode {
        &mut self.shards[place.shard].places[place.at]
    }

    /// Where the node is that comes after that parent by that word.
    #[inline]
    pub(super) fn find(&self, key: Key, parent: u32, word: SegmentId) -> Option<NodePlace> {
        let shard = key.shard();
        Some(NodePlace { shard, at: self.shards[shard].find(key.home(), parent, word)? })
    }

    /// One that was not there. Others may be at other places after it.
    pub(super) fn insert(&mut self, key: Key, parent: u32, word: SegmentId) -> NodePlace {
        self.taken += 1;
        let (home, number) = (key.home(), self.numbers.take() + 1);
        let node = TrieNode { word, ends: Ends::default(), parent, number, home, ways: 0 };
        NodePlace { shard: key.shard(), at: self.shards[key.shard()].insert(node) }
    }

    /// Others may be at other places after it.
    pub(super) fn remove(&mut self, place: NodePlace) {
        self.taken -= 1;
        let node = self.shards[place.shard].remove(place.at);
        self.numbers.give_back(node.number - 1);
    }

    /// None but the root.
    pub(super) const fn is_bare(&self) -> bool {
        self.taken == 1
    }
}

/// A table with open addressing: a node is at the place its home says, or after it, with no vacant place in between.
#[derive(Debug)]
struct Shard {
    places: Vec<TrieNode>,
    /// Nodes that are there.
    taken: usize,
}

impl Shard {
    /// By the upper bits, so that a table of another size has all nodes in the same order.
    #[inline]
    fn place(&self, home: u32) -> usize {
        (home >> (u32::BITS - self.places.len().trailing_zeros())) as usize
    }

    #[inline]
    const fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    #[inline]
    fn find(&self, home: u32, parent: u32, word: SegmentId) -> Option<usize> {
        let mut place = self.place(home);
        loop {
            let node = &self.places[place];
            if node.word == word && node.parent == parent {
                return Some(place);
            }
            if node.is_vacant() {
                return None;
            }
            place = self.after(place);
        }
    }

    fn insert(&mut self, node: TrieNode) -> usize {
        // A third of the places at least is vacant, so that few nodes are far from home.
        if (self.taken + 1) * 3 > self.places.len() * 2 {
            self.resize(self.places.len() * 2);
        }
        self.taken += 1;
        self.put(node)
    }

    fn put(&mut self, node: TrieNode) -> usize {
        let mut place = self.place(node.home);
        while !self.places[place].is_vacant() {
            place = self.after(place);
        }
        self.places[place] = node;
        place
    }

    fn remove(&mut self, place: usize) -> TrieNode {
        let node = std::mem::take(&mut self.places[place]);
        self.taken -= 1;
        // Nodes that are further on only because this place was taken move up.
        let last = self.places.len() - 1;
        let far = |from: usize, to: usize| to.wrapping_sub(from) & last;
        let (mut gap, mut next) = (place, self.after(place));
        while !self.places[next].is_vacant() {
            if far(self.place(self.places[next].home), next) >= far(gap, next) {
                self.places.swap(gap, next);
                gap = next;
            }
            next = self.after(next);
        }
        if self.places.len() > PLACES_MIN && self.taken * 8 < self.places.len() {
            self.resize(self.places.len() / 2);
        }
        node
    }

    /// The root stays where it is, since it is the first to be put back.
    fn resize(&mut self, places: usize) {
        let before = std::mem::replace(&mut self.places, vacant(places));
        for node in before {
            if !node.is_vacant() {
                self.put(node);
            }
        }
    }
}

fn vacant(places: usize) -> Vec<TrieNode> {
    std::iter::repeat_with(TrieNode::default).take(places).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use turno_proto::model::limits::SUBSCRIPTION_SEGMENTS_MAX;

    use super::super::seeded::Seeded;
    use super::super::segments::LongSegments;
    use super::*;

    #[test]
    fn a_node_stays_small_and_has_room_for_all_segments() {
        assert_eq!(size_of::<TrieNode>(), 32);
        assert!((u32::MAX / ONE_SEGMENT) as usize > SUBSCRIPTION_SEGMENTS_MAX);
    }

    #[test]
    fn ways_are_told_apart() {
        let mut node = TrieNode::default();
        node.set_star(true);
        assert!(node.has_star() && !node.has_beginnings() && !node.has_segments());
        node.set_star(false);
        node.add_segment();
        assert!(!node.has_star() && !node.has_beginnings() && node.has_segments());
        node.remove_segment();
        for (length, beginning) in [(0, "a"), (6, "seven77"), (7, "eight888"), (7, "a-rather-long-one")] {
            let length = Length(length);
            assert_eq!(Length::of(beginning.as_bytes()), length);
            node.set_beginning(length, true);
            assert!(!node.has_star() && node.has_beginnings() && !node.has_segments());
            assert_eq!(node.beginnings().collect::<Vec<_>>(), [length]);
            node.set_beginning(length, false);
            assert!(node.is_empty());
        }
    }

    proptest! {
        /// Nodes are found wherever they are pushed to, also over the end of the table, and the root stays where it is.
        #[test]
        fn nodes_come_and_go(steps in proptest::collection::vec((0u64..40, any::<bool>()), 1..300)) {
            let mut nodes = Nodes::new();
            let mut there = BTreeMap::new();
            // Many are at home in few places: the first of a table, its last and one between.
            let key = |number: u64| Key([0, u64::MAX >> SHARD_BITS, 1 << (63 - SHARD_BITS)][number as usize % 3]);
            let mut words = LongSegments::new(Seeded(7));
            for (number, add) in steps {
                let word = words.take(&number.to_le_bytes());
                let found = nodes.find(key(number), 1, word).map(|place| nodes.at(place).number);
                prop_assert_eq!(found, there.get(&number).copied());
                match found {
                    None if add => {
                        let place = nodes.insert(key(number), 1, word);
                        there.insert(number, nodes.at(place).number);
                    }
                    Some(_) if !add => {
                        let place = nodes.find(key(number), 1, word).unwrap();
                        nodes.remove(place);
                        there.remove(&number);
                    }
                    _ => {}
                }
                prop_assert_eq!(nodes.at(ROOT).number, 1);
                prop_assert_eq!(nodes.is_bare(), there.is_empty());
                for (number, own) in &there {
                    let place = nodes.find(key(*number), 1, words.get(&number.to_le_bytes()));
                    prop_assert_eq!(place.map(|place| nodes.at(place).number), Some(*own));
                }
                prop_assert!(nodes.shards[0].places.len() <= PLACES_MIN.max((there.len() + 1) * 8));
            }
        }
    }
}
