//! A set of numbers, stored as ranges: a million waiting tasks are one entry.

use std::collections::BTreeMap;

/// Numbers in ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    /// From the first number of a range to its last.
    by_first: BTreeMap<u32, u32>,
    len: u32,
}

impl Ranges {
    /// 0 to `count` - 1.
    pub(super) fn up_to(count: u32) -> Self {
        let mut all = Self::default();
        if count > 0 {
            all.insert_range(0, count - 1);
        }
        all
    }

    pub(super) fn of(ranges: &[(u32, u32)]) -> Self {
        let mut all = Self::default();
        for (first, last) in ranges {
            all.insert_range(*first, *last);
        }
        all
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many ranges there are.
    pub(super) fn ranges_len(&self) -> usize {
        self.by_first.len()
    }

    pub(super) fn ranges(&self) -> Vec<(u32, u32)> {
        self.by_first.iter().map(|(first, last)| (*first, *last)).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.by_first.iter().flat_map(|(first, last)| *first..=*last)
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.by_first.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    /// The parts of its ranges that lie between two numbers, both included.
    pub(super) fn within(&self, first: u32, last: u32) -> impl Iterator<Item = (u32, u32)> {
        let before = self.by_first.range(..first).next_back().filter(|(_, end)| **end >= first);
        let inside = (first <= last).then(|| self.by_first.range(first..=last));
        before
            .into_iter()
            .chain(inside.into_iter().flatten())
            .map(move |(from, to)| ((*from).max(first), (*to).min(last)))
    }

    pub(super) fn count_within(&self, first: u32, last: u32) -> u32 {
        self.within(first, last).map(|(first, last)| last - first + 1).sum()
    }

    pub(super) fn insert(&mut self, number: u32) {
        self.insert_range(number, number);
    }

    pub(super) fn insert_range(&mut self, first: u32, last: u32) {
        let (mut from, mut to) = (first, last);
        if let Some((before, end)) = self.by_first.range(..=first).next_back().map(|(before, end)| (*before, *end))
            && end.saturating_add(1) >= first
        {
            from = before;
            to = to.max(end);
            self.take(before);
        }
        while let Some((next, end)) = self.by_first.range(from..=to.saturating_add(1)).next().map(|(n, e)| (*n, *e)) {
            to = to.max(end);
            self.take(next);
        }
        self.put(from, to);
    }

    /// Takes a number out; false if it was not there.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        !self.remove_range(number, number).is_empty()
    }

    /// Takes out what lies between two numbers, both included, and gives it back as ranges.
    pub(super) fn remove_range(&mut self, first: u32, last: u32) -> Vec<(u32, u32)> {
        let taken: Vec<(u32, u32)> = self.within(first, last).collect();
        for (from, to) in &taken {
            let (begin, end) = self.by_first.range(..=*from).next_back().map(|(b, e)| (*b, *e)).expect("it is there");
            self.take(begin);
            if begin < *from {
                self.put(begin, from - 1);
            }
            if *to < end {
                self.put(to + 1, end);
            }
        }
        taken
    }

    /// Takes the lowest number out.
    pub(super) fn pop_first(&mut self) -> Option<u32> {
        let first = self.first()?;
        let last = self.take(first);
        if first < last {
            self.put(first + 1, last);
        }
        Some(first)
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.by_first.first_key_value().map(|(first, _)| *first)
    }

    fn take(&mut self, first: u32) -> u32 {
        let last = self.by_first.remove(&first).expect("a range that was just found");
        self.len -= last - first + 1;
        last
    }

    fn put(&mut self, first: u32, last: u32) {
        self.by_first.insert(first, last);
        self.len += last - first + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_merge_and_split() {
        let mut set = Ranges::up_to(10);
        assert_eq!((set.len(), set.ranges_len(), set.pop_first()), (10, 1, Some(0)));
        assert_eq!(set.remove_range(3, 5), [(3, 5)]);
        assert_eq!(set.ranges(), [(1, 2), (6, 9)]);
        set.insert(4);
        set.insert_range(3, 3);
        assert_eq!(set.ranges(), [(1, 4), (6, 9)]);
        set.insert(5);
        assert_eq!((set.ranges(), set.len(), set.count_within(4, 100)), (vec![(1, 9)], 9, 6));
        assert_eq!((set.contains(0), set.contains(9), set.contains(10)), (false, true, false));
        assert_eq!(Ranges::up_to(0), Ranges::default());
    }

    proptest! {
        /// Whatever is put in and taken out: it is the set it should be, in as few ranges as can be.
        #[test]
        fn it_is_a_set(ops in prop::collection::vec((0u8..4, 0u32..40, 0u32..10), 1..80)) {
            let (mut set, mut model) = (Ranges::default(), BTreeSet::new());
            for (op, first, more) in ops {
                let last = first + more;
                match op {
                    0 => { set.insert(first); model.insert(first); }
                    1 => { set.insert_range(first, last); model.extend(first..=last); }
                    2 => {
                        let taken = set.remove_range(first, last);
                        let expected: Vec<u32> = model.range(first..=last).copied().collect();
                        model.retain(|number| !(first..=last).contains(number));
                        prop_assert_eq!(taken.iter().flat_map(|(a, b)| *a..=*b).collect::<Vec<_>>(), expected);
                    }
                    _ => { prop_assert_eq!(set.pop_first(), model.pop_first()); }
                }
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.len() as usize, model.len());
                prop_assert!(set.ranges().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
                prop_assert_eq!(set.contains(first), model.contains(&first));
                prop_assert_eq!(set.count_within(first, last) as usize, model.range(first..=last).count());
            }
        }
    }
}
