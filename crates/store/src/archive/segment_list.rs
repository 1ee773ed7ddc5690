//! A row of segments: records come in at its end, and are read in order over all of them. Where old records may go, the
//! oldest segment does when room is short; where they may not, what nobody wants is left out of what is written anew.

use std::collections::BTreeSet;
use std::{io, mem};

use super::Refusal;
use super::record::{self, HEAD_BYTES, HEADER_BYTES, Key, Kind, RecordSpot};
use super::segment::{ArchiveSegment, Entries, Record, RecoveredFile};
use super::trouble::{FileProblem, Flaw, set_aside, set_aside_from};
use crate::disk::{Disk, DiskFile, is_full};

/// Settings of a list of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Bytes of all its segments.
    pub(super) total: u64,
    /// Bytes of records in one segment.
    pub(super) segment_bytes: u64,
    /// Records in one segment: their index is in memory while it is written to.
    pub(super) segment_records: usize,
    /// Segments.
    pub(super) segments: usize,
    /// Whether the oldest goes when there is no room.
    pub(super) drops_oldest: bool,
}

/// A row of segments, the oldest first. The last one may be open.
#[derive(Debug)]
pub(super) struct SegmentList<F> {
    prefix: &'static str,
    size: Size,
    segments: Vec<ArchiveSegment<F>>,
    /// The highest number a segment had.
    last: u32,
    salt: u64,
    /// Of files that cannot be read the highest job that may have something in them.
    lost: Vec<u64>,
    troubles: Vec<FileProblem>,
}

/// A record to be added.
#[derive(Clone, Copy, Debug)]
pub(super) struct New<'a> {
    pub(super) key: Key,
    pub(super) kind: Kind,
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
}

impl New<'_> {
    const fn bytes(&self) -> u64 {
        (HEAD_BYTES + self.name.len() + self.value.len()) as u64
    }
}

impl<F: DiskFile> SegmentList<F> {
    /// Opens what is there for the jobs that are known. What others left goes; what cannot be read is set aside.
    pub(super) fn open<D: Disk<File = F>>(
        disk: &mut D,
        prefix: &'static str,
        size: Size,
        salt: u64,
        jobs: &BTreeSet<u64>,
    ) -> io::Result<Self> {
        let (last, lost, troubles) = (0, Vec::new(), Vec::new());
        let mut segment_list = Self { prefix, size, segments: Vec::new(), last, salt, lost, troubles };
        let names = disk.names()?;
        for name in &names {
            if let Some((before, job_max)) = set_aside_from(name)
                && let Some(number) = number_of(prefix, before)
            {
                segment_list.last = segment_list.last.max(number);
                segment_list.lose(before.to_owned(), Flaw::SetAside(name.clone()), job_max);
            }
        }
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| number_of(prefix, name)).collect();
        numbers.sort_unstable();
        let (newest, job_max) = (numbers.last().copied(), jobs.last().copied().unwrap_or(0));
        for number in numbers {
            segment_list.last = segment_list.last.max(number);
            let name = name_of(prefix, number);
            let is_last = Some(number) == newest;
            match disk.open(&name).and_then(|file| ArchiveSegment::recover(number, file, jobs, is_last)) {
                Ok(RecoveredFile::Segment(segment)) if !segment.jobs.is_empty() => segment_list.segments.push(segment),
                Ok(RecoveredFile::Segment(segment))
                    if segment.job_max().is_some_and(|max| jobs.range(..=max).next().is_some()) =>
                {
                    segment_list.set_aside(disk, name, segment.job_max().unwrap_or(job_max));
                }
                Ok(RecoveredFile::Segment(_) | RecoveredFile::Empty) => {
                    if let Err(error) = disk.remove(&name) {
                        segment_list.troubles.push(trouble(name, Flaw::Io(error.to_string())));
                    }
                }
                Ok(RecoveredFile::Unreadable | RecoveredFile::Newer) => segment_list.set_aside(disk, name, job_max),
                // Perhaps it can be read the next time.
                Err(error) => segment_list.lose(name, Flaw::Io(error.to_string()), job_max),
            }
        }
        Ok(segment_list)
    }

    /// A file cannot be read: it gets another name, and stays.
    fn set_aside<D: Disk<File = F>>(&mut self, disk: &mut D, name: String, job_max: u64) {
        let flaw = match set_aside(disk, &name, job_max) {
            Ok(aside) => Flaw::SetAside(aside),
            Err(error) => Flaw::Io(error.to_string()),
        };
        self.lose(name, flaw, job_max);
    }

    fn lose(&mut self, file: String, flaw: Flaw, job_max: u64) {
        self.lost.push(job_max);
        self.troubles.push(trouble(file, flaw));
    }

    /// Whether something of a job may have been lost, nobody knows what.
    pub(super) fn may_have_lost(&self, job: u64) -> bool {
        let in_segments = self.segments.iter().filter_map(ArchiveSegment::job_max);
        self.lost.iter().copied().chain(in_segments).any(|job_max| job <= job_max)
    }

    /// Flaws that were found since the last call.
    pub(super) fn troubles(&mut self) -> Vec<FileProblem> {
        let mut found = mem::take(&mut self.troubles);
        for segment in &mut self.segments {
            let number = segment.number;
            let of_segment =
                |(flaw, from, until)| FileProblem { file: name_of(self.prefix, number), from, until, flaw };
            found.extend(segment.troubles().into_iter().map(of_segment));
        }
        found
    }

    /// Bytes of its files.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    pub(super) const fn segments_len(&self) -> usize {
        self.segments.len()
    }

    /// The latest arrival of all.
    pub(super) fn last_seq(&self) -> u64 {
        self.segments.iter().map(|segment| segment.last_seq).max().unwrap_or(0)
    }

    /// Adds records, all of them or none.
    pub(super) fn append<D: Disk<File = F>>(&mut self, disk: &mut D, records: &[New<'_>]) -> Result<(), Refusal> {
        let bytes = records.iter().map(New::bytes).sum();
        self.make_room(disk, bytes)?;
        self.write(disk, records, bytes)
    }

    fn write<D: Disk<File = F>>(&mut self, disk: &mut D, records: &[New<'_>], bytes: u64) -> Result<(), Refusal> {
        let segment = self.open_segment(disk, bytes, records.len())?;
        let mut out = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        for New { key, kind, name, value } in records {
            record::append(&mut out, segment.salt(), key, *kind, name, value);
        }
        segment.append(&out).map_err(Refusal::of)
    }

    /// The last segment, with room for so much.
    fn open_segment<D: Disk<File = F>>(
        &mut self,
        disk: &mut D,
        bytes: u64,
        count: usize,
    ) -> Result<&mut ArchiveSegment<F>, Refusal> {
        let Size { segment_bytes, segment_records, .. } = self.size;
        let is_open = |segment: &ArchiveSegment<F>| {
            segment.is_open()
                && (segment.count() == 0
                    || (segment.end + bytes <= segment_bytes && segment.count() + count <= segment_records))
        };
        if !self.segments.last().is_some_and(is_open) {
            self.seal()?;
            let number = self.last.checked_add(1).ok_or(Refusal::Full)?;
            // Another salt each time: one that somebody found out is of no use for the next.
            self.salt = self.salt.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(number) | 1);
            let file = disk.create(&name_of(self.prefix, number)).map_err(Refusal::of)?;
            self.last = number;
            match ArchiveSegment::begin(number, file, self.salt) {
                Ok(segment) => self.segments.push(segment),
                Err(error) => {
                    disk.remove(&name_of(self.prefix, number)).map_err(Refusal::of)?;
                    return Err(Refusal::of(error));
                }
            }
        }
        self.segments.last_mut().ok_or(Refusal::Full)
    }

    /// Gives every segment its index at the end of its file.
    fn seal(&mut self) -> Result<(), Refusal> {
        self.segments
            .iter_mut()
            .filter(|segment| !segment.is_sealed())
            .try_for_each(ArchiveSegment::seal)
            .map_err(Refusal::of)
    }

    fn is_over(&self, bytes: u64) -> bool {
        self.segments.len() > self.size.segments || self.bytes() + bytes + HEADER_BYTES as u64 > self.size.total
    }

    fn make_room<D: Disk<File = F>>(&mut self, disk: &mut D, bytes: u64) -> Result<(), Refusal> {
        while self.is_over(bytes) {
            if self.size.drops_oldest {
                if self.segments.is_empty() {
                    return Err(Refusal::Full);
                }
                self.remove(disk, 0)?;
            } else if !self.compact(disk)? {
                return Err(Refusal::Full);
            }
        }
        Ok(())
    }

    /// Writes the segment anew that has the most which nobody wants, without that. `false` if none has much of it.
    fn compact<D: Disk<File = F>>(&mut self, disk: &mut D) -> Result<bool, Refusal> {
        let dead = |segment: &ArchiveSegment<F>| segment.end.saturating_sub(segment.live_bytes() + HEADER_BYTES as u64);
        let most = self.segments.iter().enumerate().max_by_key(|(_, segment)| dead(segment));
        let Some((place, segment)) = most.filter(|(_, segment)| dead(segment) * 4 >= segment.end) else {
            return Ok(false);
        };
        let number = segment.number;
        self.seal()?;
        let mut entries = self.at(place)?.entries_from(&Key::default());
        let mut lost = self.at(place)?.job_max();
        loop {
            let segment = self.at(place)?;
            let Some((key, spot)) = entries.peek(segment).map_err(Refusal::of)? else { break };
            entries.pop();
            if !segment.jobs.contains_key(&key.job) {
                continue;
            }
            let Some(Record { key, kind, name, value }) = segment.read(&key, &spot) else {
                lost = lost.max(Some(key.job));
                continue;
            };
            let new = New { key, kind, name: &name, value: &value };
            self.write(disk, &[new], new.bytes())?;
        }
        let place = self.segments.iter().position(|segment| segment.number == number).ok_or(Refusal::Full)?;
        match lost {
            Some(job_max) => self.put_aside(disk, place, job_max),
            None => self.remove(disk, place)?,
        }
        Ok(true)
    }

    /// A segment with something in it that cannot be read leaves the row.
    fn put_aside<D: Disk<File = F>>(&mut self, disk: &mut D, place: usize, job_max: u64) {
        let segment = self.segments.remove(place);
        self.set_aside(disk, name_of(self.prefix, segment.number), job_max);
    }

    fn at(&self, place: usize) -> Result<&ArchiveSegment<F>, Refusal> {
        self.segments.get(place).ok_or(Refusal::Full)
    }

    fn remove<D: Disk<File = F>>(&mut self, disk: &mut D, place: usize) -> Result<(), Refusal> {
        let number = self.at(place)?.number;
        match disk.remove(&name_of(self.prefix, number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Refusal::of(error)),
            _ => {
                self.segments.remove(place);
                Ok(())
            }
        }
    }

    /// Nothing of a job is wanted any more: segments that were for it alone go.
    pub(super) fn forget<D: Disk<File = F>>(&mut self, disk: &mut D, job: u64) -> Result<(), Refusal> {
        let mut place = 0;
        while let Some(segment) = self.segments.get_mut(place) {
            if !segment.forget(job) || !segment.jobs.is_empty() {
                place += 1;
            } else if let Some(job_max) = segment.job_max() {
                self.put_aside(disk, place, job_max);
            } else {
                self.remove(disk, place)?;
            }
        }
        Ok(())
    }

    /// Records of a job from a key on, in order over all segments.
    pub(super) fn from(&self, from: &Key) -> Merge<'_, F> {
        let of_job = self.segments.iter().filter(|segment| segment.jobs.contains_key(&from.job));
        Merge { job: from.job, rows: of_job.map(|segment| (segment, segment.entries_from(from))).collect() }
    }

    /// Goes through records of one segment in the order of their arrival, those after `after`, until `each` wants no
    /// more; of a damaged one the value is `None`. Returns up to which arrival nothing else of that job is there.
    pub(super) fn by_arrival(
        &self,
        job: u64,
        after: u64,
        mut each: impl FnMut(&Key, &RecordSpot, Option<&[u8]>) -> bool,
    ) -> io::Result<Option<u64>> {
        let mut of_job = self.segments.iter().filter(|one| one.last_seq > after && one.jobs.contains_key(&job));
        let Some(segment) = of_job.next() else { return Ok(None) };
        let mut stopped = None;
        segment.by_arrival(after, |key, spot, value| {
            let goes_on = key.job != job || each(key, spot, value);
            if !goes_on {
                stopped = Some(key.seq - 1);
            }
            goes_on
        })?;
        Ok(Some(stopped.unwrap_or(segment.last_seq)))
    }
}

/// Records in order over several segments.
#[derive(Debug)]
pub(super) struct Merge<'a, F> {
    job: u64,
    rows: Vec<(&'a ArchiveSegment<F>, Entries)>,
}

/// A record's place, found and not read.
#[derive(Debug)]
pub(super) struct FoundRecord<'a, F> {
    segment: &'a ArchiveSegment<F>,
    pub(super) key: Key,
    pub(super) spot: RecordSpot,
}

impl<F: DiskFile> FoundRecord<'_, F> {
    /// Reads it; `None` if it is damaged.
    pub(super) fn read(&self) -> Option<Record> {
        self.segment.read(&self.key, &self.spot)
    }

    /// The name in it, as it reads now though it is damaged.
    pub(super) fn name(&self) -> Option<String> {
        self.segment.name_in(&self.key, &self.spot)
    }
}

impl<'a, F: DiskFile> Merge<'a, F> {
    /// The next record of the job.
    pub(super) fn next(&mut self) -> io::Result<Option<FoundRecord<'a, F>>> {
        let mut first: Option<(Key, RecordSpot, usize)> = None;
        for (place, (segment, entries)) in self.rows.iter_mut().enumerate() {
            if let Some((key, spot)) = entries.peek(segment)?
                && key.job == self.job
                && first.is_none_or(|(least, ..)| key < least)
            {
                first = Some((key, spot, place));
            }
        }
        Ok(first.and_then(|(key, spot, place)| {
            let (segment, entries) = self.rows.get_mut(place)?;
            entries.pop();
            Some(FoundRecord { segment, key, spot })
        }))
    }
}

impl Refusal {
    pub(super) fn of(error: io::Error) -> Self {
        match error.kind() {
            _ if is_full(&error) => Self::NoRoom,
            io::ErrorKind::InvalidData => Self::Damaged,
            _ => Self::Io(error),
        }
    }
}

/// Something is wrong with a file as a whole.
const fn trouble(file: String, flaw: Flaw) -> FileProblem {
    FileProblem { file, from: 0, until: 0, flaw }
}

fn name_of(prefix: &str, number: u32) -> String {
    format!("{prefix}-{number:06}")
}

pub(super) fn number_of(prefix: &str, name: &str) -> Option<u32> {
    let number = name.strip_prefix(prefix)?.strip_prefix('-')?;
    let number = number.parse().ok()?;
    (name_of(prefix, number) == name).then_some(number)
}
