//! Receivers whose filters end at a node of the tree.

use std::collections::BTreeSet;
use std::ops::Range;

use super::numbers::NumberPool;

/// How a filter ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilterEnd {
    /// With the segment that leads to the node.
    Here,
    /// With `*` after it. That needs no node of its own.
    Star,
    /// With `>` after it.
    Rest,
    /// With a dot after it, as a prefix, which means the same. A receiver may have both, and each goes alone.
    Dot,
}

/// A receiver and how its filter ends, in four bytes: nodes are many, and small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark(u32);

/// Bits of a receiver's number.
const NUMBER_BITS: u32 = 29;
const HERE: u32 = 1 << NUMBER_BITS;
const STAR: u32 = 2 << NUMBER_BITS;
const REST: u32 = 3 << NUMBER_BITS;
const DOT: u32 = 4 << NUMBER_BITS;
/// Not a receiver, but an entry of the table of large lists.
const LIST: u32 = 5 << NUMBER_BITS;

/// The marks that match a topic which has so many segments after the node. They are next to each other.
#[inline]
const fn matching(left: usize) -> Range<u32> {
    match left {
        0 => HERE..STAR,
        1 => STAR..LIST,
        _ => REST..LIST,
    }
}

impl Mark {
    const NONE: Self = Self(0);

    fn new(end: FilterEnd, receiver: u32) -> Self {
        assert!(receiver < HERE, "connections and subscribers are limited");
        Self(
            receiver
                | match end {
                    FilterEnd::Here => HERE,
                    FilterEnd::Star => STAR,
                    FilterEnd::Rest => REST,
                    FilterEnd::Dot => DOT,
                },
        )
    }

    const fn receiver(self) -> u32 {
        self.0 & (HERE - 1)
    }

    const fn list(self) -> Option<usize> {
        if self.0 >= LIST { Some((self.0 & (HERE - 1)) as usize) } else { None }
    }
}

/// The receivers of one node: none, one or two, or a list in another table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends([Mark; 2]);

/// The marks of nodes that have more than two.
#[derive(Debug, Default)]
pub(super) struct LargeEnds {
    all: Vec<BTreeSet<u32>>,
    numbers: NumberPool,
}

impl Ends {
    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.0[0].0 == 0
    }

    /// True unless it was there already.
    pub(super) fn insert(&mut self, end: FilterEnd, receiver: u32, lists: &mut LargeEnds) -> bool {
        let mark = Mark::new(end, receiver);
        if let Some(list) = self.0[0].list() {
            return lists.all[list].insert(mark.0);
        }
        if self.0.contains(&mark) {
            return false;
        }
        match self.0 {
            [Mark::NONE, _] => self.0[0] = mark,
            [_, Mark::NONE] => self.0[1] = mark,
            [one, other] => self.0 = [lists.add([one, other, mark]), Mark::NONE],
        }
        true
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, end: FilterEnd, receiver: u32, lists: &mut LargeEnds) -> bool {
        let mark = Mark::new(end, receiver);
        if let Some(list) = self.0[0].list() {
            let removed = lists.all[list].remove(&mark.0);
            if let Some(two) = lists.disperse(list) {
                self.0 = two;
            }
            return removed;
        }
        match self.0 {
            [one, other] if one == mark => self.0 = [other, Mark::NONE],
            [_, other] if other == mark => self.0[1] = Mark::NONE,
            _ => return false,
        }
        true
    }

    /// Tells whose filters match a topic that has so many segments after the node; the others cost nothing.
    #[inline]
    pub(super) fn tell(self, left: usize, lists: &LargeEnds, tell: &mut impl FnMut(u32)) {
        if self.is_empty() {
            return;
        }
        let range = matching(left);
        if let Some(list) = self.0[0].list() {
            return lists.all[list].range(range).for_each(|mark| tell(Mark(*mark).receiver()));
        }
        for mark in self.0 {
            if range.contains(&mark.0) {
                tell(mark.receiver());
            }
        }
    }
}

impl LargeEnds {
    fn add(&mut self, marks: [Mark; 3]) -> Mark {
        let number = self.numbers.take();
        let list = number as usize;
        if list == self.all.len() {
            self.all.push(BTreeSet::new());
        }
        self.all[list].extend(marks.map(|mark| mark.0));
        Mark(LIST | number)
    }

    /// Two receivers need no list.
    fn disperse(&mut self, list: usize) -> Option<[Mark; 2]> {
        let marks = &self.all[list];
        let two = match (marks.first(), marks.last()) {
            (Some(first), Some(last)) if marks.len() == 2 => [Mark(*first), Mark(*last)],
            _ => return None,
        };
        self.all[list] = BTreeSet::new();
        self.numbers.give_back(u32::try_from(list).expect("it was a number"));
        Some(two)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.iter().all(BTreeSet::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn end() -> impl Strategy<Value = FilterEnd> {
        prop_oneof![Just(FilterEnd::Here), Just(FilterEnd::Star), Just(FilterEnd::Rest), Just(FilterEnd::Dot)]
    }

    fn told(ends: Ends, left: usize, lists: &LargeEnds) -> Vec<u32> {
        let mut told = Vec::new();
        ends.tell(left, lists, &mut |receiver| told.push(receiver));
        told.sort_unstable();
        told
    }

    const fn matches(end: FilterEnd, left: usize) -> bool {
        match end {
            FilterEnd::Here => left == 0,
            FilterEnd::Star => left == 1,
            FilterEnd::Rest | FilterEnd::Dot => left > 0,
        }
    }

    proptest! {
        /// The list of all of them, in the table of large lists.
        #[test]
        fn ends_come_and_go(steps in proptest::collection::vec((any::<bool>(), any::<bool>(), end(), 0u32..4), 1..60)) {
            let mut lists = LargeEnds::default();
            let (mut ends, mut plain) = ([Ends::default(); 2], [const { Vec::new() }; 2]);
            for (at, add, end, receiver) in steps {
                let receiver = if receiver == 3 { HERE - 1 } else { receiver };
                let (ends, plain) = (&mut ends[usize::from(at)], &mut plain[usize::from(at)]);
                let there = plain.iter().position(|one| *one == (end, receiver));
                if add {
                    prop_assert_eq!(ends.insert(end, receiver, &mut lists), there.is_none());
                    if there.is_none() {
                        plain.push((end, receiver));
                    }
                } else {
                    prop_assert_eq!(ends.remove(end, receiver, &mut lists), there.is_some());
                    there.map(|there| plain.remove(there));
                }
                for left in 0..4 {
                    let wanted = plain.iter().filter(|(end, _)| matches(*end, left)).map(|(_, receiver)| *receiver);
                    let mut wanted: Vec<u32> = wanted.collect();
                    wanted.sort_unstable();
                    prop_assert_eq!(told(*ends, left, &lists), wanted);
                }
                prop_assert_eq!(ends.is_empty(), plain.is_empty());
            }
            prop_assert_eq!(lists.is_empty(), plain.iter().all(|plain| plain.len() <= 2));
        }
    }
}
