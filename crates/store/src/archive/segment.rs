//! A segment: one file of records in order of arrival. While it is written to, its index is in memory; once it is
//! sealed, the index is its end, in order, and memory has only which jobs it is for.

mod recover;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::{io, mem};

pub(super) use self::recover::{RecoveredFile, ends};
use super::record::{
    self, ENTRY_BYTES, Footer, HEAD_BYTES, HEADER_BYTES, Head, Key, Kind, RecordSpot, VALUE_BYTES_MAX,
};
use super::trouble::Flaw;
use crate::disk::{DiskFile, read_up_to, write_all_at};
use crate::embedded::window::Window;

/// How many records lie between two places that a segment being written to knows by the number of their arrival.
const STRIDE: usize = 64;
/// Entries that are read or written in one go.
const ENTRIES: usize = 256;

/// A record with what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: Key,
    pub(super) kind: Kind,
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// A file of records.
#[derive(Debug)]
pub(super) struct ArchiveSegment<F> {
    pub(super) number: u32,
    file: F,
    salt: u64,
    /// Bytes the file has.
    pub(super) len: u64,
    /// Where its last record ends.
    pub(super) end: u64,
    /// Bytes of records by job, of jobs that are known.
    pub(super) jobs: BTreeMap<u64, u64>,
    /// The latest arrival in it.
    pub(super) last_seq: u64,
    /// Bytes of it that are no record any more.
    pub(super) gaps: Vec<Gap>,
    /// Something is wrong with it: nothing more is written to it.
    closed: bool,
    index: SegmentIndex,
    /// Flaws that were found and not reported.
    troubles: RefCell<Vec<(Flaw, u64, u64)>>,
    /// A record that cannot be read was told of.
    told: Cell<bool>,
}

/// Bytes that are no record and once were one or several, nobody knows whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    from: u64,
    until: u64,
    /// The highest job that was known when it was found: only this one and those before it can have lost something.
    pub(super) job_max: u64,
}

impl Gap {
    /// The key under which it stands in an index. No job has the number 0.
    fn key(&self) -> Key {
        Key { item: self.job_max, at: self.from, seq: self.until, ..Key::default() }
    }

    const fn of(key: &Key) -> Self {
        Self { from: key.at, until: key.seq, job_max: key.item }
    }

    fn spot(&self) -> RecordSpot {
        let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        RecordSpot { offset: short(self.from), len: short(self.until - self.from), kind: Kind::Gap }
    }
}

/// Some entries of an index that is on the disk: the first key, and the checksum of all of them.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: Key,
    sum: u32,
}

impl Block {
    fn of(entries: &[u8]) -> Option<Self> {
        let (first, _) = record::read_entry(entries.get(..ENTRY_BYTES)?)?;
        Some(Self { first, sum: crc32c::crc32c(entries) })
    }
}

#[derive(Debug)]
enum SegmentIndex {
    /// Being written to.
    Open {
        entries: BTreeMap<Key, RecordSpot>,
        /// Now and then the arrival of a record, and where it begins.
        strides: Vec<(u64, u64)>,
    },
    Sealed {
        footer: Footer,
        blocks: Vec<Block>,
    },
}

impl<F: DiskFile> ArchiveSegment<F> {
    /// A new one, in an empty file.
    pub(super) fn begin(number: u32, file: F, salt: u64) -> io::Result<Self> {
        let header = record::header(salt);
        write_all_at(&file, 0, &header)?;
        Ok(Self::empty(number, file, salt, HEADER_BYTES as u64))
    }

    fn empty(number: u32, file: F, salt: u64, len: u64) -> Self {
        Self {
            number,
            file,
            salt,
            len,
            end: HEADER_BYTES as u64,
            jobs: BTreeMap::new(),
            last_seq: 0,
            gaps: Vec::new(),
            closed: false,
            index: SegmentIndex::empty(),
            troubles: RefCell::default(),
            told: Cell::new(false),
        }
    }

    /// The highest job that may have had something in what cannot be read of it; `None` if that is nothing.
    pub(super) fn job_max(&self) -> Option<u64> {
        self.gaps.iter().map(|gap| gap.job_max).max()
    }

    /// Flaws that were found since the last call.
    pub(super) fn troubles(&mut self) -> Vec<(Flaw, u64, u64)> {
        mem::take(self.troubles.get_mut())
    }

    /// Gaps that its index lists as unreadable.
    pub(super) fn known_gaps(&self) -> Vec<(Flaw, u64, u64)> {
        self.gaps.iter().map(|gap| (Flaw::Gap, gap.from, gap.until)).collect()
    }

    /// A record that cannot be read.
    pub(super) fn trouble_of(&self, spot: &RecordSpot) -> (Flaw, u64, u64) {
        let (from, until) = (u64::from(spot.offset), u64::from(spot.offset) + record_bytes(spot));
        let flaw = if spot.kind == Kind::Torn { Flaw::Torn } else { Flaw::Record };
        (flaw, from, until.min(self.end))
    }

    /// The head at a place, whose checksum is not looked at.
    fn head_at(&self, window: &mut Window, at: u64, end: u64) -> Option<Head> {
        Head::read(&self.window(window, at, HEAD_BYTES, end))
    }

    /// Bytes from a place on, as far as they can be read.
    fn window<'a>(&self, window: &'a mut Window, at: u64, len: usize, end: u64) -> Cow<'a, [u8]> {
        let len = len.min(usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX));
        match window.bytes(&self.file, at, len, end) {
            Ok(bytes) => Cow::Borrowed(bytes),
            // Somewhere in the window the disk cannot read: perhaps not here.
            Err(_) => {
                let mut bytes = vec![0; len];
                let there = read_up_to(&self.file, at, &mut bytes).unwrap_or(0);
                bytes.truncate(there);
                Cow::Owned(bytes)
            }
        }
    }

    /// A record cannot be read. Only the first of a segment is told of.
    fn note(&self, spot: &RecordSpot) {
        if !self.told.replace(true) {
            self.troubles.borrow_mut().push(self.trouble_of(spot));
        }
    }

    /// A record now stands at the end.
    fn add(&mut self, head: &Head, is_known: bool) {
        let SegmentIndex::Open { entries, strides } = &mut self.index else { return };
        let (Ok(offset), Ok(len)) = (u32::try_from(self.end), u32::try_from(head.len)) else { return };
        if entries.len().is_multiple_of(STRIDE) {
            strides.push((head.key.seq, self.end));
        }
        entries.insert(head.key, RecordSpot { offset, len, kind: head.kind });
        let bytes = head.record_bytes() as u64;
        if is_known {
            *self.jobs.entry(head.key.job).or_insert(0) += bytes;
        }
        self.last_seq = self.last_seq.max(head.key.seq);
        self.end += bytes;
        self.len = self.len.max(self.end);
    }

    /// Adds records at the end, which [`record::append`] wrote. If that fails, none of them was there.
    pub(super) fn append(&mut self, records: &[u8]) -> io::Result<()> {
        if let Err(error) = write_all_at(&self.file, self.end, records) {
            // Its partial bytes are written over, or stand before the index.
            self.len = self.file.len().unwrap_or(self.len).max(self.len);
            return Err(error);
        }
        let mut rest = records;
        while let Some(head) = Head::read(rest) {
            self.add(&head, true);
            rest = rest.get(head.record_bytes()..).unwrap_or_default();
        }
        Ok(())
    }

    pub(super) const fn salt(&self) -> u64 {
        self.salt
    }

    pub(super) const fn is_sealed(&self) -> bool {
        matches!(self.index, SegmentIndex::Sealed { .. })
    }

    /// Whether records may be added.
    pub(super) const fn is_open(&self) -> bool {
        !self.is_sealed() && !self.closed
    }

    /// Records it has.
    pub(super) fn count(&self) -> usize {
        match &self.index {
            SegmentIndex::Open { entries, .. } => entries.len(),
            SegmentIndex::Sealed { footer, .. } => footer.count as usize,
        }
    }

    /// The entries of its index while it is in memory: gaps first, then records in order.
    fn entries(&self) -> impl Iterator<Item = (Key, RecordSpot)> {
        let entries = match &self.index {
            SegmentIndex::Open { entries, .. } => Some(entries),
            SegmentIndex::Sealed { .. } => None,
        };
        let records = entries.into_iter().flatten().map(|(key, spot)| (*key, *spot));
        self.gaps.iter().map(|gap| (gap.key(), gap.spot())).chain(records)
    }

    /// Writes the index to its end. Memory has it no longer.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        if self.is_sealed() {
            return Ok(());
        }
        // Behind whatever a failed write left there, so that the footer is the last of the file.
        let index = self.len;
        let (mut at, mut sum, mut count) = (index, 0, 0);
        let entries: Vec<(Key, RecordSpot)> = self.entries().collect();
        let mut all = entries.iter().peekable();
        let (mut blocks, mut bytes) = (Vec::new(), Vec::with_capacity(ENTRIES * ENTRY_BYTES));
        while let Some((key, spot)) = all.next() {
            record::append_entry(&mut bytes, key, spot);
            count += 1;
            if all.peek().is_none() || bytes.len() == ENTRIES * ENTRY_BYTES {
                sum = crc32c::crc32c_append(sum, &bytes);
                write_all_at(&self.file, at, &bytes).inspect_err(|_| self.len = self.file.len().unwrap_or(at))?;
                blocks.extend(Block::of(&bytes));
                at += bytes.len() as u64;
                bytes.clear();
            }
        }
        let footer = Footer { end: self.end, index, count, sum };
        let written = write_all_at(&self.file, at, &footer.encode(self.salt));
        self.len = self.file.len()?.max(at);
        written?;
        self.index = SegmentIndex::Sealed { footer, blocks };
        Ok(())
    }

    /// Nothing of a job is wanted any more. Returns whether it had something.
    pub(super) fn forget(&mut self, job: u64) -> bool {
        self.jobs.remove(&job).is_some()
    }

    /// Bytes of records that are wanted.
    pub(super) fn live_bytes(&self) -> u64 {
        self.jobs.values().sum()
    }

    /// Reads a record; `None` if it is damaged.
    pub(super) fn read(&self, key: &Key, spot: &RecordSpot) -> Option<Record> {
        let found = self.try_read(key, spot);
        if found.is_none() && spot.kind != Kind::Torn {
            self.note(spot);
        }
        found
    }

    fn try_read(&self, key: &Key, spot: &RecordSpot) -> Option<Record> {
        if spot.len as usize > VALUE_BYTES_MAX {
            return None;
        }
        // Names are short and rare: most records are read in one go, and none beyond its end.
        let mut bytes = self.bytes_at(spot, HEAD_BYTES + spot.len as usize);
        let head = Head::read(&bytes).filter(|head| head.key == *key)?;
        if head.record_bytes() > bytes.len() {
            bytes = self.bytes_at(spot, head.record_bytes());
        }
        record_of(&head, self.salt, &bytes)
    }

    /// The name in a damaged record, as it reads now.
    pub(super) fn name_in(&self, key: &Key, spot: &RecordSpot) -> Option<String> {
        let head = Head::read(&self.bytes_at(spot, HEAD_BYTES)).filter(|head| head.key == *key)?;
        let bytes = self.bytes_at(spot, HEAD_BYTES + head.name_len);
        let name = bytes.get(HEAD_BYTES..).filter(|name| !name.is_empty() && name.len() == head.name_len)?;
        String::from_utf8(name.to_vec()).ok()
    }

    /// The bytes of a record, as far as they are there.
    fn bytes_at(&self, spot: &RecordSpot, len: usize) -> Vec<u8> {
        let at = u64::from(spot.offset);
        let there = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len.min(there)];
        let read = read_up_to(&self.file, at, &mut bytes).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }

    /// Goes through its records in the order of their arrival, those after `after`, until `each` wants no more. Of a damaged
    /// one the value is `None`.
    pub(super) fn by_arrival(
        &self,
        after: u64,
        mut each: impl FnMut(&Key, &RecordSpot, Option<&[u8]>) -> bool,
    ) -> io::Result<()> {
        let mut at = HEADER_BYTES as u64;
        if let SegmentIndex::Open { strides, .. } = &self.index {
            let behind = strides.partition_point(|(seq, _)| *seq <= after);
            at = behind.checked_sub(1).and_then(|stride| strides.get(stride)).map_or(at, |(_, at)| *at);
        }
        let mut window = Window::default();
        while at < self.end {
            let head = self.head_at(&mut window, at, self.end);
            let len = head.map_or(HEAD_BYTES, |head| head.record_bytes());
            let bytes = self.window(&mut window, at, len, self.end);
            let whole = head.filter(|head| bytes.get(..len).is_some_and(|bytes| head.is_true_of(self.salt, bytes)));
            let Some(head) = whole else { return self.rest_by_arrival(at, after, each) };
            if head.key.seq > after {
                let value = bytes.get(HEAD_BYTES + head.name_len..len).unwrap_or_default();
                if !each(&head.key, &spot_of(at, &head), Some(value)) {
                    return Ok(());
                }
            }
            at += len as u64;
        }
        Ok(())
    }

    /// The same from a place on where no record can be read: the index says where the others are.
    fn rest_by_arrival(
        &self,
        from: u64,
        after: u64,
        mut each: impl FnMut(&Key, &RecordSpot, Option<&[u8]>) -> bool,
    ) -> io::Result<()> {
        let mut entries = self.entries_from(&Key::default());
        let mut rest = Vec::new();
        while let Some((key, spot)) = entries.peek(self)? {
            entries.pop();
            if u64::from(spot.offset) >= from && key.seq > after {
                rest.push((key, spot));
            }
        }
        rest.sort_unstable_by_key(|(key, spot)| (spot.offset, key.seq));
        for (key, spot) in rest {
            let record = self.read(&key, &spot);
            if !each(&key, &spot, record.as_ref().map(|record| &record.value[..])) {
                break;
            }
        }
        Ok(())
    }

    /// Entries from a key on, a few at a time.
    pub(super) fn entries_from(&self, from: &Key) -> Entries {
        let next = match &self.index {
            SegmentIndex::Open { .. } => 0,
            SegmentIndex::Sealed { blocks, .. } => {
                blocks.partition_point(|block| block.first <= *from).saturating_sub(1)
            }
        };
        Entries { next, from: Some(*from), chunk: Vec::new() }
    }

    /// The entries of a block, or in a segment that is written to those from a key on; none at the end.
    fn chunk(&self, next: usize, from: &Key) -> io::Result<Vec<(Key, RecordSpot)>> {
        match &self.index {
            SegmentIndex::Open { entries, .. } => {
                Ok(entries.range(from..).take(ENTRIES).map(|(key, spot)| (*key, *spot)).collect())
            }
            SegmentIndex::Sealed { footer, blocks } => {
                let Some(block) = blocks.get(next) else { return Ok(Vec::new()) };
                let count = (footer.count as usize).saturating_sub(next * ENTRIES).min(ENTRIES);
                let mut bytes = vec![0; count * ENTRY_BYTES];
                let at = footer.index + (next * ENTRIES * ENTRY_BYTES) as u64;
                let there = read_up_to(&self.file, at, &mut bytes)?;
                if there < bytes.len() || crc32c::crc32c(&bytes) != block.sum {
                    // It was sound when the segment was opened. The next start finds the records without it.
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "the index of a segment is damaged"));
                }
                Ok(bytes.chunks_exact(ENTRY_BYTES).filter_map(record::read_entry).collect())
            }
        }
    }
}

impl SegmentIndex {
    const fn empty() -> Self {
        Self::Open { entries: BTreeMap::new(), strides: Vec::new() }
    }
}

/// Bytes of a record but for its name, which entries do not have.
fn record_bytes(spot: &RecordSpot) -> u64 {
    HEAD_BYTES as u64 + u64::from(spot.len)
}

fn record_of(head: &Head, salt: u64, bytes: &[u8]) -> Option<Record> {
    let record = bytes.get(..head.record_bytes()).filter(|bytes| head.is_true_of(salt, bytes))?;
    let (name, value) = record.get(HEAD_BYTES..)?.split_at_checked(head.name_len)?;
    Some(Record { key: head.key, kind: head.kind, name: name.to_vec(), value: value.to_vec() })
}

fn spot_of(at: u64, head: &Head) -> RecordSpot {
    let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    RecordSpot { offset: short(at), len: short(head.len as u64), kind: head.kind }
}

/// A place in the order of a segment's entries.
#[derive(Debug)]
pub(super) struct Entries {
    /// The block behind `chunk`, in a sealed segment.
    next: usize,
    /// The lowest key of the entry behind `chunk`; `None` at the end.
    from: Option<Key>,
    /// The next ones, the first last.
    chunk: Vec<(Key, RecordSpot)>,
}

impl Entries {
    /// The next entry, which stays. Gaps are not among them.
    pub(super) fn peek<F: DiskFile>(&mut self, segment: &ArchiveSegment<F>) -> io::Result<Option<(Key, RecordSpot)>> {
        while self.chunk.is_empty()
            && let Some(from) = self.from
        {
            let mut chunk = segment.chunk(self.next, &from)?;
            self.next += 1;
            self.from =
                chunk.last().and_then(|(key, _)| Some(Key { seq: key.seq.checked_add(1)?, ..*key }).max(Some(from)));
            chunk.retain(|(key, spot)| *key >= from && spot.kind != Kind::Gap);
            chunk.reverse();
            self.chunk = chunk;
        }
        Ok(self.chunk.last().copied())
    }

    pub(super) fn pop(&mut self) {
        self.chunk.pop();
    }
}
