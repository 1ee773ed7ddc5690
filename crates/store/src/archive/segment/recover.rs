//! A segment that was there before: known by its index if that is sound, else record by record. Bytes that are no record are
//! skipped and stay where they are; the checksum of heads tells where the next record begins.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::{ArchiveSegment, Block, ENTRIES, Gap, SegmentIndex, record_bytes};
use crate::archive::record::{
    self, ArchiveHeader, ENTRY_BYTES, FOOTER_BYTES, Footer, HEAD_BYTES, HEADER_BYTES, Head, Key, Kind, RecordSpot,
};
use crate::archive::trouble::Flaw;
use crate::disk::{DiskFile, read_up_to};
use crate::embedded::window::Window;

/// Bytes that are searched in one go for the head of a record.
const SEARCHED: usize = 4_096;

/// The result of recovering a file.
#[derive(Debug)]
pub(in crate::archive) enum RecoveredFile<F> {
    /// A segment, whatever of it can be read.
    Segment(ArchiveSegment<F>),
    /// A segment of a format that this version does not know.
    Newer,
    /// It has no bytes.
    Empty,
    /// Nothing of it can be read.
    Unreadable,
}

/// The result of reading at a place.
enum Probe {
    Whole(Head),
    /// The head is sound, and what follows is not.
    Damaged(Head),
    Nothing,
}

impl<F: DiskFile> ArchiveSegment<F> {
    /// A segment that was there before, for the jobs that are known. `is_last`: nothing was written after it.
    pub(in crate::archive) fn recover(
        number: u32,
        file: F,
        jobs: &BTreeSet<u64>,
        is_last: bool,
    ) -> io::Result<RecoveredFile<F>> {
        let len = file.len()?;
        if len == 0 {
            return Ok(RecoveredFile::Empty);
        }
        let (header, footer) = ends(&file, len)?;
        let salt = match header {
            ArchiveHeader::Sound(salt) | ArchiveHeader::Repaired(salt) => salt,
            ArchiveHeader::Newer(_) => return Ok(RecoveredFile::Newer),
            ArchiveHeader::Unreadable => return Ok(RecoveredFile::Unreadable),
        };
        let mut segment = Self::empty(number, file, salt, len);
        if header != ArchiveHeader::Sound(salt) {
            segment.close(Flaw::Header, 0, HEADER_BYTES as u64);
        }
        let footer = footer.filter(|(_, of)| *of == salt).map(|(footer, _)| footer);
        if let Some(footer) = footer
            && segment.read_index(footer, jobs).unwrap_or(false)
        {
            return Ok(RecoveredFile::Segment(segment));
        }
        // Places in it have 32 bits.
        let until = footer.map_or(len, |footer| footer.end).min(u32::MAX.into());
        segment.read_records(until, jobs, is_last && footer.is_none());
        if segment.closed && segment.count() == 0 {
            return Ok(RecoveredFile::Unreadable);
        }
        match footer {
            Some(footer) => segment.close(Flaw::Index, footer.index, len),
            None => segment.judge_end(jobs, is_last),
        }
        Ok(RecoveredFile::Segment(segment))
    }

    /// Takes it as sealed, if its index is sound.
    fn read_index(&mut self, footer: Footer, jobs: &BTreeSet<u64>) -> io::Result<bool> {
        let (mut sum, mut before) = (0, None);
        let mut blocks = Vec::new();
        let mut found = IndexContents::default();
        let mut bytes = vec![0; ENTRIES * ENTRY_BYTES];
        let until = footer.index + u64::from(footer.count) * ENTRY_BYTES as u64;
        let mut at = footer.index;
        while at < until {
            let want = bytes.len().min(usize::try_from(until - at).unwrap_or(usize::MAX));
            let Some(into) = bytes.get_mut(..want) else { return Ok(false) };
            if read_up_to(&self.file, at, into)? < want {
                return Ok(false);
            }
            sum = crc32c::crc32c_append(sum, into);
            let Some(block) = Block::of(into) else { return Ok(false) };
            for bytes in into.chunks_exact(ENTRY_BYTES) {
                let Some((key, spot)) = record::read_entry(bytes) else { return Ok(false) };
                if before.replace(key).is_some_and(|before| before >= key) {
                    return Ok(false);
                }
                found.add(&key, &spot, jobs);
            }
            blocks.push(block);
            at += want as u64;
        }
        if sum != footer.sum {
            return Ok(false);
        }
        (self.jobs, self.last_seq, self.gaps) = (found.jobs, found.last_seq, found.gaps);
        (self.end, self.index) = (footer.end, SegmentIndex::Sealed { footer, blocks });
        Ok(true)
    }

    /// Reads its records, and goes on behind what is none. `is_open`: it may end in the middle of a record.
    fn read_records(&mut self, until: u64, jobs: &BTreeSet<u64>, is_open: bool) {
        let mut window = Window::default();
        while self.end < until {
            let at = self.end;
            match self.probe(&mut window, at, until) {
                Probe::Whole(head) => self.add(&head, jobs.contains(&head.key.job)),
                Probe::Damaged(head) if at + head.record_bytes() as u64 <= until => {
                    self.add(&head, jobs.contains(&head.key.job));
                    self.close(Flaw::Record, at, self.end);
                }
                Probe::Damaged(mut head) => {
                    let (len, mut flaw) = (self.len, Flaw::Record);
                    if is_open {
                        (head.kind, flaw) = (Kind::Torn, Flaw::Torn);
                    }
                    self.add(&head, jobs.contains(&head.key.job));
                    (self.end, self.len) = (until, len);
                    self.close(flaw, at, until);
                }
                Probe::Nothing => {
                    self.end = self.next_head(at + 1, until).unwrap_or(until);
                    self.gap(at, self.end, jobs);
                }
            }
        }
    }

    /// Without a sound footer nothing says where records ended: what is behind the last of them is the index of a sealed
    /// segment, the rest of a write that was not completed, or damage.
    fn judge_end(&mut self, jobs: &BTreeSet<u64>, is_last: bool) {
        let last = self.gaps.pop_if(|gap| gap.until == self.len);
        match last {
            Some(gap) if self.is_index(&gap) => {
                self.troubles.get_mut().pop();
                self.end = gap.from;
                self.close(Flaw::Index, gap.from, gap.until);
            }
            Some(gap) => self.gaps.push(gap),
            // It was sealed before the next one was begun: its end is missing, and records perhaps with it.
            None if !is_last => self.gap(self.len, self.len, jobs),
            None => {}
        }
    }

    /// Whether these bytes are as long as its index, or begin as that does.
    fn is_index(&self, gap: &Gap) -> bool {
        let mut index = Vec::new();
        self.entries().for_each(|(key, spot)| record::append_entry(&mut index, &key, &spot));
        if gap.until - gap.from == (index.len() + FOOTER_BYTES) as u64 {
            return true;
        }
        index.truncate(usize::try_from(gap.until - gap.from).unwrap_or(usize::MAX));
        let mut there = vec![0; index.len()];
        read_up_to(&self.file, gap.from, &mut there).is_ok() && index == there && !index.is_empty()
    }

    fn gap(&mut self, from: u64, until: u64, jobs: &BTreeSet<u64>) {
        self.gaps.push(Gap { from, until, job_max: jobs.last().copied().unwrap_or(0) });
        self.close(Flaw::Gap, from, until);
    }

    /// Something is wrong with it: nothing more is written to it.
    fn close(&mut self, flaw: Flaw, from: u64, until: u64) {
        self.closed = true;
        self.troubles.get_mut().push((flaw, from, until));
    }

    fn probe(&self, window: &mut Window, at: u64, until: u64) -> Probe {
        let Some(head) = self.head_at(window, at, until) else { return Probe::Nothing };
        let bytes = self.window(window, at, head.record_bytes(), until);
        if bytes.get(..head.record_bytes()).is_some_and(|bytes| head.is_true_of(self.salt, bytes)) {
            Probe::Whole(head)
        } else if bytes.get(..HEAD_BYTES).is_some_and(|bytes| head.is_sound(self.salt, bytes)) {
            Probe::Damaged(head)
        } else {
            Probe::Nothing
        }
    }

    /// Where the next head of a record stands.
    fn next_head(&self, from: u64, until: u64) -> Option<u64> {
        let mut bytes = vec![0; SEARCHED + HEAD_BYTES - 1];
        let mut at = from;
        while at < until {
            let want = bytes.len().min(usize::try_from(until - at).unwrap_or(usize::MAX));
            // Where the disk cannot read there is nothing to be found.
            let there = bytes.get_mut(..want).map_or(0, |into| read_up_to(&self.file, at, into).unwrap_or(0));
            let is_head = |bytes: &[u8]| Head::read(bytes).is_some_and(|head| head.is_sound(self.salt, bytes));
            let found = bytes.get(..there).unwrap_or_default().windows(HEAD_BYTES).position(is_head);
            if let Some(place) = found {
                return Some(at + place as u64);
            }
            at += SEARCHED as u64;
        }
        None
    }
}

/// Reads both ends of a file.
pub(in crate::archive) fn ends<F: DiskFile>(file: &F, len: u64) -> io::Result<(ArchiveHeader, Option<(Footer, u64)>)> {
    let mut bytes = [0; FOOTER_BYTES];
    let footer = match len.checked_sub(FOOTER_BYTES as u64) {
        Some(at) => {
            let there = read_up_to(file, at, &mut bytes).unwrap_or(0);
            bytes.get(..there).and_then(|bytes| Footer::read(bytes, len))
        }
        None => None,
    };
    let mut header = [0; HEADER_BYTES];
    let there = read_up_to(file, 0, &mut header)?;
    let header = ArchiveHeader::read(header.get(..there).unwrap_or_default(), footer.map(|(_, salt)| salt));
    Ok((header, footer))
}

/// The contents of an index.
#[derive(Default)]
struct IndexContents {
    jobs: BTreeMap<u64, u64>,
    last_seq: u64,
    gaps: Vec<Gap>,
}

impl IndexContents {
    fn add(&mut self, key: &Key, spot: &RecordSpot, jobs: &BTreeSet<u64>) {
        if spot.kind == Kind::Gap {
            self.gaps.push(Gap::of(key));
            return;
        }
        if jobs.contains(&key.job) {
            *self.jobs.entry(key.job).or_insert(0) += record_bytes(spot);
        }
        self.last_seq = self.last_seq.max(key.seq);
    }
}
