//! Live records and their places: an index of numbered records, one of keyed records, and how much of each file is alive.

use std::collections::BTreeMap;

use super::index::RecordIndex;
use super::place::RecordPlace;
use crate::store::{RecordNo, Space};

#[derive(Debug, Default)]
pub(super) struct Tables {
    numbered: RecordIndex,
    keyed: BTreeMap<Space, BTreeMap<Box<[u8]>, RecordPlace>>,
    keyed_len: u64,
    /// Bytes of live records, by the number of their file.
    live: Vec<u64>,
    live_bytes: u64,
}

impl Tables {
    pub(super) const fn numbered_len(&self) -> u64 {
        self.numbered.len()
    }

    pub(super) const fn keyed_len(&self) -> u64 {
        self.keyed_len
    }

    pub(super) const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Bytes of live records in one file.
    pub(super) fn live_in(&self, slot: u32) -> u64 {
        self.live.get(slot as usize).copied().unwrap_or_default()
    }

    pub(super) fn numbered(&self) -> impl Iterator<Item = (RecordNo, RecordPlace)> {
        self.numbered.iter()
    }

    pub(super) fn keyed(&self) -> impl Iterator<Item = (Space, &[u8], RecordPlace)> {
        let in_space = |(space, keys): (&Space, _)| (*space, keys);
        self.keyed.iter().map(in_space).flat_map(|(space, keys): (Space, &BTreeMap<Box<[u8]>, RecordPlace>)| {
            keys.iter().map(move |(key, place)| (space, &**key, *place))
        })
    }

    pub(super) fn find(&self, record: RecordNo) -> Option<RecordPlace> {
        self.numbered.get(record)
    }

    pub(super) fn find_key(&self, space: Space, key: &[u8]) -> Option<RecordPlace> {
        self.keyed.get(&space)?.get(key).copied()
    }

    pub(super) fn put(&mut self, record: RecordNo, place: RecordPlace) {
        let old = self.numbered.insert(record, place);
        self.count(old, Some(place));
    }

    pub(super) fn delete(&mut self, record: RecordNo) {
        let old = self.numbered.remove(record);
        self.count(old, None);
    }

    pub(super) fn set(&mut self, space: Space, key: &[u8], place: RecordPlace) {
        let keys = self.keyed.entry(space).or_default();
        let old = match keys.get_mut(key) {
            Some(there) => Some(std::mem::replace(there, place)),
            None => keys.insert(key.into(), place),
        };
        self.keyed_len += u64::from(old.is_none());
        self.count(old, Some(place));
    }

    pub(super) fn unset(&mut self, space: Space, key: &[u8]) {
        let old = self.keyed.get_mut(&space).and_then(|keys| keys.remove(key));
        self.keyed_len -= u64::from(old.is_some());
        self.count(old, None);
    }

    fn count(&mut self, gone: Option<RecordPlace>, new: Option<RecordPlace>) {
        if let Some(place) = gone {
            self.live_bytes -= place.len();
            *self.live_at(place) -= place.len();
        }
        if let Some(place) = new {
            self.live_bytes += place.len();
            *self.live_at(place) += place.len();
        }
    }

    fn live_at(&mut self, place: RecordPlace) -> &mut u64 {
        let slot = place.slot() as usize;
        if self.live.len() <= slot {
            self.live.resize(slot + 1, 0);
        }
        self.live.get_mut(slot).expect("just made")
    }
}
