//! From segments to what they lead to: a table by hash. Of our own, because it is only looked up and never walked: the
//! order of the standard one differs from process to process, and nothing shall ever depend on it.

use std::hash::{DefaultHasher, Hasher as _};

/// Makes the places of segments unknown to peers, who choose them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(pub(super) u64);

impl Seed {
    fn hash(self, segment: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher.write(segment.as_bytes());
        hasher.finish()
    }
}

/// A table with room to spare: whoever finds his place taken stands in the next free one. Owns nothing while it is empty.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// None, or a power of two of them.
    places: Vec<Option<(Box<str>, usize)>>,
    len: usize,
}

impl Segments {
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, seed: Seed, segment: &str) -> Option<usize> {
        let at = self.find(seed, segment)?;
        self.places[at].as_ref().map(|(_, node)| *node)
    }

    /// Adds one that is not there.
    pub(super) fn insert(&mut self, seed: Seed, segment: &str, node: usize) {
        if (self.len + 1) * 4 > self.places.len() * 3 {
            self.resize(seed, (self.places.len() * 2).max(2));
        }
        self.put(seed, segment.into(), node);
        self.len += 1;
    }

    /// Removes one, if it is there.
    pub(super) fn remove(&mut self, seed: Seed, segment: &str) {
        let Some(mut hole) = self.find(seed, segment) else { return };
        self.places[hole] = None;
        self.len -= 1;
        // Whoever stands behind the hole because it was taken moves up.
        let mut next = self.after(hole);
        while let Some((other, _)) = &self.places[next] {
            let home = self.home(seed, other);
            if self.distance(home, next) >= self.distance(hole, next) {
                self.places.swap(hole, next);
                hole = next;
            }
            next = self.after(next);
        }
        if self.len == 0 {
            self.places = Vec::new();
        } else if self.len * 8 < self.places.len() {
            self.resize(seed, self.places.len() / 2);
        }
    }

    fn find(&self, seed: Seed, segment: &str) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let mut at = self.home(seed, segment);
        while let Some((other, _)) = &self.places[at] {
            if **other == *segment {
                return Some(at);
            }
            at = self.after(at);
        }
        None
    }

    fn put(&mut self, seed: Seed, segment: Box<str>, node: usize) {
        let mut at = self.home(seed, &segment);
        while self.places[at].is_some() {
            at = self.after(at);
        }
        self.places[at] = Some((segment, node));
    }

    fn resize(&mut self, seed: Seed, places: usize) {
        let before = std::mem::take(&mut self.places);
        self.places.resize_with(places, || None);
        for (segment, node) in before.into_iter().flatten() {
            self.put(seed, segment, node);
        }
    }

    /// Where it stands unless that is taken.
    #[expect(clippy::cast_possible_truncation, reason = "the lower bits of a hash are as good as all of them")]
    fn home(&self, seed: Seed, segment: &str) -> usize {
        seed.hash(segment) as usize & (self.places.len() - 1)
    }

    const fn after(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    const fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// It has what a plain map has, through any row of changes; there is always a free place, and never too many.
        #[test]
        fn it_has_what_a_map_has(seed in any::<u64>(), steps in proptest::collection::vec((0u8..60, 0u8..5), 1..400)) {
            let seed = Seed(seed);
            let (mut table, mut plain) = (Segments::default(), BTreeMap::new());
            for (node, (number, what)) in steps.into_iter().enumerate() {
                let segment = format!("s{number}");
                if what == 0 {
                    table.remove(seed, &segment);
                    plain.remove(&segment);
                } else if let Entry::Vacant(entry) = plain.entry(segment) {
                    table.insert(seed, entry.key(), node);
                    entry.insert(node);
                }
                prop_assert_eq!((table.len, table.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert!(table.places.len() * 3 >= table.len * 4 && table.places.len() <= table.len * 8);
                for number in 0..60 {
                    let segment = format!("s{number}");
                    prop_assert_eq!(table.get(seed, &segment), plain.get(&segment).copied());
                }
            }
        }
    }
}
