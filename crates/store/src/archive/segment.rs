//! One file of records in the order in which they came. While it is written to, its index is in memory; once it is sealed,
//! the index is its end, in order, and memory has only which jobs it is for.

use std::collections::BTreeMap;
use std::io;

use super::record::{
    self, ENTRY_BYTES, FOOTER_BYTES, Footer, HEAD_BYTES, HEADER_BYTES, Head, Key, Kind, Spot, VALUE_BYTES_MAX,
};
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
pub(super) struct Segment<F> {
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
    index: Index,
}

#[derive(Debug)]
enum Index {
    /// Being written to.
    Open {
        entries: BTreeMap<Key, Spot>,
        /// Now and then the arrival of a record, and where it begins.
        strides: Vec<(u64, u64)>,
    },
    Sealed(Footer),
}

impl<F: DiskFile> Segment<F> {
    /// A new one, in an empty file.
    pub(super) fn begin(number: u32, file: F, salt: u64) -> io::Result<Self> {
        let header = record::header(salt);
        write_all_at(&file, 0, &header)?;
        let end = HEADER_BYTES as u64;
        Ok(Self { number, file, salt, len: end, end, jobs: BTreeMap::new(), last_seq: 0, index: Index::empty() })
    }

    /// One that was there before; `None` if it is no segment.
    pub(super) fn recover(number: u32, file: F, is_known: impl Fn(u64) -> bool) -> io::Result<Option<Self>> {
        let len = file.len()?;
        let mut header = [0; HEADER_BYTES];
        let there = read_up_to(&file, 0, &mut header)?;
        let Some(salt) = header.get(..there).and_then(record::read_header) else { return Ok(None) };
        let end = HEADER_BYTES as u64;
        let mut segment =
            Self { number, file, salt, len, end, jobs: BTreeMap::new(), last_seq: 0, index: Index::empty() };
        if !segment.read_index(&is_known)? {
            segment.read_records(&is_known)?;
        }
        Ok(Some(segment))
    }

    /// Takes it as sealed, if it is and its index is sound.
    fn read_index(&mut self, is_known: &impl Fn(u64) -> bool) -> io::Result<bool> {
        let Some(at) = self.len.checked_sub(FOOTER_BYTES as u64) else { return Ok(false) };
        let mut bytes = [0; FOOTER_BYTES];
        let there = read_up_to(&self.file, at, &mut bytes)?;
        let footer = bytes.get(..there).and_then(|bytes| Footer::read(bytes, self.salt, self.len));
        let Some(footer) = footer else { return Ok(false) };
        let (mut sum, mut jobs, mut last_seq, mut before) = (0, BTreeMap::new(), 0, None);
        let mut chunk = vec![0; ENTRIES * ENTRY_BYTES];
        let mut at = footer.index;
        while at < footer.index + u64::from(footer.count) * ENTRY_BYTES as u64 {
            let left = usize::try_from(footer.index + u64::from(footer.count) * ENTRY_BYTES as u64 - at);
            let want = chunk.len().min(left.unwrap_or(usize::MAX));
            let Some(into) = chunk.get_mut(..want) else { return Ok(false) };
            if read_up_to(&self.file, at, into)? < want {
                return Ok(false);
            }
            sum = crc32c::crc32c_append(sum, into);
            for bytes in into.chunks_exact(ENTRY_BYTES) {
                let Some((key, spot)) = record::read_entry(bytes) else { return Ok(false) };
                if before.replace(key).is_some_and(|before| before >= key) {
                    return Ok(false);
                }
                if is_known(key.job) {
                    *jobs.entry(key.job).or_insert(0) += record_bytes(&spot);
                }
                last_seq = last_seq.max(key.seq);
            }
            at += want as u64;
        }
        if sum != footer.sum {
            return Ok(false);
        }
        (self.end, self.jobs, self.last_seq, self.index) = (footer.end, jobs, last_seq, Index::Sealed(footer));
        Ok(true)
    }

    /// Reads its records up to the first that is not whole; that is where it ends.
    fn read_records(&mut self, is_known: &impl Fn(u64) -> bool) -> io::Result<()> {
        let mut window = Window::default();
        while let Some(head) = self.head_at(&mut window, self.end, self.len)? {
            self.add(&head, is_known(head.key.job));
        }
        Ok(())
    }

    /// The whole record at a place, by its head.
    fn head_at(&self, window: &mut Window, at: u64, end: u64) -> io::Result<Option<Head>> {
        let Some(head) = Head::read(window.bytes(&self.file, at, HEAD_BYTES, end)?) else { return Ok(None) };
        let bytes = window.bytes(&self.file, at, head.record_bytes(), end)?;
        let is_whole = bytes.get(..head.record_bytes()).is_some_and(|bytes| head.is_true_of(self.salt, bytes));
        // Places in it have 32 bits.
        Ok(Some(head).filter(|_| is_whole && u32::try_from(at).is_ok()))
    }

    /// A record now stands at the end.
    fn add(&mut self, head: &Head, is_known: bool) {
        let Index::Open { entries, strides } = &mut self.index else { return };
        let (Ok(offset), Ok(len)) = (u32::try_from(self.end), u32::try_from(head.len)) else { return };
        if entries.len().is_multiple_of(STRIDE) {
            strides.push((head.key.seq, self.end));
        }
        entries.insert(head.key, Spot { offset, len, kind: head.kind });
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
        write_all_at(&self.file, self.end, records)?;
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
        matches!(self.index, Index::Sealed(_))
    }

    /// Records it has.
    pub(super) fn count(&self) -> usize {
        match &self.index {
            Index::Open { entries, .. } => entries.len(),
            Index::Sealed(footer) => footer.count as usize,
        }
    }

    /// Writes the index to its end. Memory has it no longer.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        let Index::Open { entries, .. } = &self.index else { return Ok(()) };
        // Behind whatever a failed write left there, so that the footer is the last of the file.
        let index = self.len;
        let (mut at, mut sum) = (index, 0);
        let mut bytes = Vec::with_capacity(ENTRIES * ENTRY_BYTES);
        let mut left = entries.len();
        for (key, spot) in entries {
            record::append_entry(&mut bytes, key, spot);
            left -= 1;
            if left == 0 || bytes.len() == ENTRIES * ENTRY_BYTES {
                sum = crc32c::crc32c_append(sum, &bytes);
                write_all_at(&self.file, at, &bytes).inspect_err(|_| self.len = self.file.len().unwrap_or(at))?;
                at += bytes.len() as u64;
                bytes.clear();
            }
        }
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let footer = Footer { end: self.end, index, count, sum };
        let written = write_all_at(&self.file, at, &footer.encode(self.salt));
        self.len = self.file.len()?.max(at);
        written?;
        self.index = Index::Sealed(footer);
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
    pub(super) fn read(&self, key: &Key, spot: &Spot) -> io::Result<Option<Record>> {
        if spot.len as usize > VALUE_BYTES_MAX {
            return Ok(None);
        }
        // Names are short and rare: most records are read in one go, and none beyond its end.
        let mut bytes = self.bytes_at(spot, HEAD_BYTES + spot.len as usize)?;
        let Some(head) = Head::read(&bytes).filter(|head| head.key == *key) else { return Ok(None) };
        if head.record_bytes() > bytes.len() {
            bytes = self.bytes_at(spot, head.record_bytes())?;
        }
        Ok(record_of(&head, self.salt, &bytes))
    }

    /// The bytes of a record, as far as they are there.
    fn bytes_at(&self, spot: &Spot, len: usize) -> io::Result<Vec<u8>> {
        let at = u64::from(spot.offset);
        let there = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len.min(there)];
        let read = read_up_to(&self.file, at, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Goes through its records in the order of their arrival, those after `after`, until `each` wants no more.
    pub(super) fn by_arrival(&self, after: u64, mut each: impl FnMut(&Key, Kind, &[u8]) -> bool) -> io::Result<()> {
        let mut at = HEADER_BYTES as u64;
        if let Index::Open { strides, .. } = &self.index {
            let behind = strides.partition_point(|(seq, _)| *seq <= after);
            at = behind.checked_sub(1).and_then(|stride| strides.get(stride)).map_or(at, |(_, at)| *at);
        }
        let mut window = Window::default();
        while at < self.end {
            // A record that is not whole any more takes those behind it along: nothing says where they begin.
            let Some(head) = self.head_at(&mut window, at, self.end)? else { return Ok(()) };
            if head.key.seq > after {
                let bytes = window.bytes(&self.file, at, head.record_bytes(), self.end)?;
                let value = bytes.get(HEAD_BYTES + head.name_len..head.record_bytes()).unwrap_or_default();
                if !each(&head.key, head.kind, value) {
                    return Ok(());
                }
            }
            at += head.record_bytes() as u64;
        }
        Ok(())
    }

    /// Entries from a key on, a few at a time.
    pub(super) fn entries_from(&self, from: &Key) -> io::Result<Entries> {
        let next = match &self.index {
            Index::Open { .. } => 0,
            Index::Sealed(footer) => self.find(footer, from)?,
        };
        Ok(Entries { next, from: Some(*from), chunk: Vec::new() })
    }

    /// The number of the first entry that is not before a key.
    fn find(&self, footer: &Footer, from: &Key) -> io::Result<u32> {
        let (mut low, mut high) = (0, footer.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut bytes = [0; ENTRY_BYTES];
            let at = footer.index + u64::from(middle) * ENTRY_BYTES as u64;
            read_up_to(&self.file, at, &mut bytes)?;
            match record::read_entry(&bytes) {
                Some((key, _)) if key < *from => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// The entries that come next; none at the end.
    fn chunk(&self, next: u32, from: Option<&Key>) -> io::Result<Vec<(Key, Spot)>> {
        match &self.index {
            Index::Open { entries, .. } => {
                let from = from.copied().unwrap_or_default();
                Ok(entries.range(from..).take(ENTRIES).map(|(key, spot)| (*key, *spot)).collect())
            }
            Index::Sealed(footer) => {
                let count = (footer.count.saturating_sub(next) as usize).min(ENTRIES);
                let mut bytes = vec![0; count * ENTRY_BYTES];
                let at = footer.index + u64::from(next) * ENTRY_BYTES as u64;
                let there = read_up_to(&self.file, at, &mut bytes)?;
                Ok(bytes
                    .get(..there)
                    .unwrap_or_default()
                    .chunks_exact(ENTRY_BYTES)
                    .map_while(record::read_entry)
                    .collect())
            }
        }
    }
}

impl Index {
    const fn empty() -> Self {
        Self::Open { entries: BTreeMap::new(), strides: Vec::new() }
    }
}

/// Bytes of a record but for its name, which entries do not have.
fn record_bytes(spot: &Spot) -> u64 {
    HEAD_BYTES as u64 + u64::from(spot.len)
}

fn record_of(head: &Head, salt: u64, bytes: &[u8]) -> Option<Record> {
    let record = bytes.get(..head.record_bytes()).filter(|bytes| head.is_true_of(salt, bytes))?;
    let (name, value) = record.get(HEAD_BYTES..)?.split_at_checked(head.name_len)?;
    Some(Record { key: head.key, kind: head.kind, name: name.to_vec(), value: value.to_vec() })
}

/// A place in the order of a segment's entries.
#[derive(Debug)]
pub(super) struct Entries {
    /// The number of the entry behind `chunk`, in a sealed segment.
    next: u32,
    /// What the entry behind `chunk` is not before, in one that is written to.
    from: Option<Key>,
    /// The next ones, the first last.
    chunk: Vec<(Key, Spot)>,
}

impl Entries {
    /// The next entry, which stays.
    pub(super) fn peek<F: DiskFile>(&mut self, segment: &Segment<F>) -> io::Result<Option<(Key, Spot)>> {
        if self.chunk.is_empty()
            && let Some(from) = self.from
        {
            let mut chunk = segment.chunk(self.next, Some(&from))?;
            self.next += u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            self.from = chunk.last().and_then(|(key, _)| Some(Key { seq: key.seq.checked_add(1)?, ..*key }));
            chunk.reverse();
            self.chunk = chunk;
        }
        Ok(self.chunk.last().copied())
    }

    pub(super) fn pop(&mut self) {
        self.chunk.pop();
    }
}
