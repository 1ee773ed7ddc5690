//! The index of numbered records: about 10 bytes a record, and nothing for unused numbers.
//!
//! Numbers are cut into chunks of 4,096; a chunk holds the low bits of its numbers in order, and their places. A record
//! that dies leaves a hole; when more holes than records are left, the chunk closes up. So a step costs a search in one
//! chunk, and a lonely old record holds one small chunk, not a range of numbers.

use std::collections::BTreeMap;

use super::place::RecordPlace;
use crate::store::RecordNo;

const CHUNK_BITS: u32 = 12;
const CHUNK: usize = 1 << CHUNK_BITS;
const FEW: usize = 8;

#[derive(Debug, Default)]
pub(super) struct RecordIndex {
    chunks: BTreeMap<u64, Chunk>,
    len: u64,
}

#[derive(Debug, Default)]
struct Chunk {
    lows: Vec<u16>,
    /// As many as `lows`; `NOWHERE` is a hole.
    places: Vec<RecordPlace>,
    holes: usize,
}

const fn split(record: RecordNo) -> (u64, u16) {
    #[expect(clippy::cast_possible_truncation, reason = "twelve bits")]
    let low = (record.0 & (CHUNK as u64 - 1)) as u16;
    (record.0 >> CHUNK_BITS, low)
}

impl RecordIndex {
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn get(&self, record: RecordNo) -> Option<RecordPlace> {
        let (high, low) = split(record);
        let chunk = self.chunks.get(&high)?;
        let place = *chunk.places.get(chunk.find(low).ok()?)?;
        (place != RecordPlace::NOWHERE).then_some(place)
    }

    /// Sets a record's place; gives the one it had.
    pub(super) fn insert(&mut self, record: RecordNo, place: RecordPlace) -> Option<RecordPlace> {
        let (high, low) = split(record);
        let old = match self.chunks.get_mut(&high) {
            Some(chunk) => chunk.insert(low, place),
            None => {
                // The last chunk is full now, or was left behind with gaps.
                if let Some(mut last) = self.chunks.last_entry() {
                    last.get_mut().shrink();
                }
                self.chunks.entry(high).or_default().insert(low, place)
            }
        };
        self.len += u64::from(old.is_none());
        old
    }

    /// Forgets a record; gives the place it had.
    pub(super) fn remove(&mut self, record: RecordNo) -> Option<RecordPlace> {
        let (high, low) = split(record);
        let chunk = self.chunks.get_mut(&high)?;
        let at = chunk.find(low).ok()?;
        let old = std::mem::replace(chunk.places.get_mut(at)?, RecordPlace::NOWHERE);
        if old == RecordPlace::NOWHERE {
            return None;
        }
        self.len -= 1;
        chunk.holes += 1;
        if chunk.holes == chunk.lows.len() {
            self.chunks.remove(&high);
        } else if chunk.holes > FEW && chunk.holes * 2 > chunk.lows.len() {
            chunk.close_up();
        }
        Some(old)
    }

    /// Every record and its place, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RecordNo, RecordPlace)> {
        self.chunks.iter().flat_map(|(high, chunk)| {
            let number = move |low: &u16| RecordNo(high << CHUNK_BITS | u64::from(*low));
            let all = chunk.lows.iter().map(number).zip(chunk.places.iter().copied());
            all.filter(|(_, place)| *place != RecordPlace::NOWHERE)
        })
    }
}

impl Chunk {
    fn insert(&mut self, low: u16, place: RecordPlace) -> Option<RecordPlace> {
        match self.find(low) {
            Ok(at) => {
                let old = self.places.get_mut(at).map(|there| std::mem::replace(there, place));
                let old = old.filter(|old| *old != RecordPlace::NOWHERE);
                self.holes -= usize::from(old.is_none());
                old
            }
            Err(at) => {
                self.lows.insert(at, low);
                self.places.insert(at, place);
                None
            }
        }
    }

    fn find(&self, low: u16) -> Result<usize, usize> {
        // Mostly numbers follow each other without a gap, and often the newest is meant.
        if self.lows.last().is_none_or(|last| *last < low) {
            return Err(self.lows.len());
        }
        let first = self.lows.first().copied().unwrap_or_default();
        let guess = usize::from(low.saturating_sub(first));
        if self.lows.get(guess) == Some(&low) {
            return Ok(guess);
        }
        self.lows.binary_search(&low)
    }

    fn close_up(&mut self) {
        let mut places = self.places.iter();
        self.lows.retain(|_| places.next().is_some_and(|place| *place != RecordPlace::NOWHERE));
        self.places.retain(|place| *place != RecordPlace::NOWHERE);
        self.holes = 0;
        self.shrink();
    }

    fn shrink(&mut self) {
        self.lows.shrink_to_fit();
        self.places.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Rng;

    fn place(number: u64) -> RecordPlace {
        RecordPlace::new(1, number % 1_000_000 * 8, 8)
    }

    #[test]
    fn it_does_what_a_plain_map_does() {
        let (mut index, mut map) = (RecordIndex::default(), BTreeMap::new());
        let mut rng = Rng::new(1);
        for step in 0..60_000 {
            let number = RecordNo(if rng.once_in(3) { rng.below(9_000) } else { step / 3 * (1 + step % 2 * 5_000) });
            if rng.once_in(2) {
                assert_eq!(index.remove(number), map.remove(&number));
            } else {
                assert_eq!(index.insert(number, place(step)), map.insert(number, place(step)));
            }
            assert_eq!((index.get(number), index.len()), (map.get(&number).copied(), map.len() as u64));
        }
        assert!(index.iter().eq(map.iter().map(|(number, place)| (*number, *place))));
        for number in map.keys() {
            index.remove(*number);
        }
        assert!(index.chunks.is_empty(), "nothing is held for records that are gone");
    }

    #[test]
    fn a_record_costs_about_ten_bytes() {
        let mut index = RecordIndex::default();
        for number in 0..100_000 {
            index.insert(RecordNo(number), place(number));
        }
        let chunk = |chunk: &Chunk| chunk.lows.capacity() * 2 + chunk.places.capacity() * 8 + size_of::<Chunk>() + 16;
        let bytes: usize = index.chunks.values().map(chunk).sum();
        assert!(bytes < 11 * 100_000, "{bytes}");
    }
}
