//! Segments of topics as ids of eight bytes, which are compared at once and take little room.
//!
//! A prefix may end within a segment; of that there is only the beginning, which is another word than the same bytes as a
//! whole.

use super::numbers::NumberPool;
use super::seeded::{Seeded, Table, short};

/// A segment or its beginning: its own bytes if they are few, else a number that is given to it while some node has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentId(u64);

/// Longer segments are numbered. Beside that many bytes there is room for how many they are.
pub(super) const SHORT_MAX: usize = 7;
/// Where a short word says how long it is.
const LONG: u64 = 0x7F << 56;
const BEGINNING: u64 = 1 << 63;

impl SegmentId {
    /// A value that no node has.
    const UNKNOWN: Self = Self(u64::MAX ^ BEGINNING);

    /// `*`, which is no segment of a topic.
    pub(super) const STAR: Self = Self(1 << 56 | b'*' as u64);

    fn of(segment: &[u8]) -> Option<Self> {
        (segment.len() <= SHORT_MAX).then(|| Self((segment.len() as u64) << 56 | short(segment)))
    }

    const fn numbered(number: u32) -> Self {
        Self(LONG | number as u64)
    }

    /// The same bytes, but of a segment that goes on.
    pub(super) const fn beginning(self) -> Self {
        Self(self.0 | BEGINNING)
    }

    pub(super) fn hash(self, seed: Seeded) -> u64 {
        seed.hash(&self.0.to_le_bytes())
    }
}

/// The long segments of all nodes.
#[derive(Debug)]
pub(super) struct LongSegments {
    long: Table<Box<[u8]>, SegmentUse>,
    numbers: NumberPool,
}

#[derive(Debug)]
struct SegmentUse {
    number: u32,
    nodes: u32,
}

impl LongSegments {
    pub(super) fn new(seed: Seeded) -> Self {
        Self { long: Table::with_hasher(seed), numbers: NumberPool::default() }
    }

    /// Of a segment of a topic or a filter.
    #[inline]
    pub(super) fn get(&self, segment: &[u8]) -> SegmentId {
        SegmentId::of(segment).unwrap_or_else(|| self.get_long(segment))
    }

    fn get_long(&self, segment: &[u8]) -> SegmentId {
        self.long.get(segment).map_or(SegmentId::UNKNOWN, |used| SegmentId::numbered(used.number))
    }

    /// For one more node.
    pub(super) fn take(&mut self, segment: &[u8]) -> SegmentId {
        SegmentId::of(segment).unwrap_or_else(|| {
            if let Some(used) = self.long.get_mut(segment) {
                used.nodes += 1;
                return SegmentId::numbered(used.number);
            }
            let number = self.numbers.take();
            self.long.insert(segment.into(), SegmentUse { number, nodes: 1 });
            SegmentId::numbered(number)
        })
    }

    /// A node with this segment was removed.
    pub(super) fn give_back(&mut self, segment: &[u8]) {
        let Some(used) = self.long.get_mut(segment) else { return };
        used.nodes -= 1;
        if used.nodes == 0 {
            self.numbers.give_back(used.number);
            self.long.remove(segment);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.long.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_every_length_have_words_of_their_own() {
        let mut words = LongSegments::new(Seeded(7));
        let segments: Vec<Vec<u8>> = (0..=30)
            .flat_map(|length| [b'a', b'b', 0].map(|byte| vec![byte; length]))
            .filter(|one| one != b"")
            .collect();
        for segment in &segments {
            assert_eq!(words.get(segment) == SegmentId::UNKNOWN, segment.len() > SHORT_MAX);
        }
        let mut known: Vec<u64> = segments.iter().map(|segment| words.take(segment).0).collect();
        for (segment, word) in segments.iter().zip(&known) {
            assert_eq!((words.get(segment).0, words.take(segment).0), (*word, *word), "{segment:?}");
        }
        known.sort_unstable();
        known.dedup();
        assert_eq!(known.len(), segments.len());
        assert!(known.iter().all(|word| known.binary_search(&SegmentId(*word).beginning().0).is_err()));
        assert_eq!(words.get(b"*"), SegmentId::STAR);
        for segment in segments.iter().chain(&segments) {
            assert!(!words.is_empty() || segment.len() <= SHORT_MAX);
            words.give_back(segment);
        }
        assert!(words.is_empty());
    }
}
