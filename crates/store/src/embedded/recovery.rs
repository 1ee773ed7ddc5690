//! Recovery: find the log among the files, cut its torn end, refuse damage.
//!
//! Nothing is changed before all of it was read and found good. What a broken process left in the cache of the system
//! may not be on the disk although it can be read: so the last batch is written once more before anything builds on it.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::append::{SpaceEffect, blank_header, hold_length, mix, write_header};
use super::compact::Cleaner;
use super::error::{AppendError, DamageKind, Failed, OpenError};
use super::format::{First, HEADER_BYTES, Point, SegmentHeader};
use super::segment::{Batches, LogSegment, Spare, TableChange, WholeBatch, name, slot_of};
use super::tables::Tables;
use super::window::Window;
use super::{Embedded, Settings};
use crate::batch::Batch;
use crate::disk::{Disk, DiskFile, read_up_to, write_all_at};
use crate::limits::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::store::Epoch;

/// This file says that there was a store here: without it an empty directory would pass for a new one.
pub(super) const SIGN: &str = "turno-store";
const SIGN_TEXT: &[u8] = b"A store of Turno; docs/reference/storage.md says how to read it.\n";

/// The state of the log at its opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// There was no store; now there is one.
    pub is_new: bool,
    /// The file and the byte where the log ended. Whatever was there of a batch that was not completed, and never
    /// confirmed, is written over.
    pub end: (String, u64),
}

impl<D: Disk> Embedded<D> {
    /// Opens the store in a directory, or makes one in an empty directory.
    pub fn open(mut disk: D, mut settings: Settings) -> Result<(Self, Recovered), OpenError> {
        settings.segment_bytes = settings.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX) / 8 * 8;
        let mut window = Window::default();
        let replayed = read_log(&mut disk, &mut window)?;
        let mut recovered = Recovered { is_new: false, end: replayed.end };
        let mut store = Self {
            disk,
            settings,
            log: VecDeque::new(),
            free: replayed.free.into(),
            generations: Vec::new(),
            tables: replayed.tables,
            point: replayed.point,
            cleaner: Cleaner::default(),
            window,
            is_tight: false,
            broken: None,
        };
        for segment in replayed.log {
            store.set_generation(segment.slot, segment.generation());
            store.log.push_back(segment);
        }
        for spare in store.free.iter().filter(|spare| replayed.unused.contains(&spare.slot)) {
            blank_header(spare).map_err(AppendError::into_failed)?;
        }
        store.sort_free();
        if store.log.is_empty() {
            recovered.is_new = true;
            store.begin().map_err(AppendError::into_failed)?;
        } else {
            store.confirm(replayed.last)?;
        }
        store.point.epoch = Epoch(store.point.epoch.0 + 1);
        let opened = store.append(&mut Batch::new(), store.point, SpaceEffect::Frees);
        opened.map_err(AppendError::into_failed)?;
        if !replayed.has_sign {
            store.put_up_sign()?;
        }
        store.trim_free()?;
        match store.keep_reserve(0) {
            Err(AppendError::Full(_)) | Ok(()) => Ok((store, recovered)),
            Err(error) => Err(error.into_failed().into()),
        }
    }

    /// Begins a new log.
    fn begin(&mut self) -> Result<(), AppendError> {
        let spare = match self.free.pop_front() {
            // Its creator may have failed to make its name durable: the sign would then outlive the log.
            Some(spare) => {
                let synced = self.disk.sync_directory();
                synced.map_err(Failed::to("sync the directory of", &name(spare.slot))).map_err(AppendError::Broken)?;
                spare
            }
            None => self.create()?,
        };
        let point = Point { generation: 1, salt: mix(self.settings.salt, 1), batch: 1, tail: 1, ..Point::default() };
        let header = SegmentHeader { point, segment_bytes: self.settings.segment_bytes };
        write_header(&spare, &header)?;
        self.push_segment(spare, header);
        self.point = Point { batch: 0, ..point };
        Ok(())
    }

    fn put_up_sign(&mut self) -> Result<(), Failed> {
        let file = self.disk.create(SIGN).map_err(Failed::to("create", SIGN))?;
        write_all_at(&file, 0, SIGN_TEXT).map_err(Failed::to("write", SIGN))?;
        file.sync().map_err(Failed::to("sync", SIGN))?;
        self.disk.sync_directory().map_err(Failed::to("sync the directory of", SIGN))
    }

    /// Writes and syncs again what the end of the log rests on.
    fn confirm(&mut self, last: Option<Last>) -> Result<(), Failed> {
        if let Some(Last { slot, whole }) = last {
            let segment = self.segment(slot).expect("the last batch is in the log");
            let name = segment.name();
            // As long as the batch that was just read from this file, and found whole.
            let len = usize::try_from(whole.end - whole.start).unwrap_or(usize::MAX);
            let mut bytes = vec![0; len];
            read_up_to(&segment.file, whole.start, &mut bytes).map_err(Failed::to("read", &name))?;
            write_all_at(&segment.file, whole.start, &bytes).map_err(Failed::to("write", &name))?;
            segment.file.sync().map_err(Failed::to("sync", &name))?;
        }
        let head = self.head();
        let name = head.name();
        write_all_at(&head.file, 0, &head.header.encode()).map_err(Failed::to("write", &name))?;
        if head.len > head.end {
            hold_length(&head.file, head.len).map_err(Failed::to("write", &name))?;
        }
        head.file.sync().map_err(Failed::to("sync", &name))?;
        self.disk.sync_directory().map_err(Failed::to("sync the directory of", &name))
    }
}

/// Finds the log and reads it from its oldest segment to its end. Changes nothing.
pub(super) fn read_log<D: Disk>(disk: &mut D, window: &mut Window) -> Result<Replayed<D::File>, OpenError> {
    let mut found = FoundFiles::look(disk)?;
    let doubtful = std::mem::take(&mut found.doubtful);
    // A log that is whole without them does not need them. If it is not, they are what is wrong with it.
    let headless = doubtful.first().map(|spare| OpenError::damaged(&name(spare.slot), 0, DamageKind::Header));
    let is_lost = found.segments.is_empty() && doubtful.iter().any(|spare| spare.len > HEADER_BYTES as u64);
    let replayed = found.replay(window).and_then(|replayed| match replayed.last {
        None if replayed.has_sign => Err(OpenError::damaged(SIGN, 0, DamageKind::Missing(replayed.point.tail.max(1)))),
        _ => Ok(replayed),
    });
    match (replayed, headless) {
        (Err(OpenError::Damaged { what: DamageKind::Missing(_), .. }), Some(error)) => Err(error),
        (Ok(_), Some(error)) if is_lost => Err(error),
        (Ok(mut replayed), _) => {
            replayed.unused.extend(doubtful.iter().map(|spare| spare.slot));
            replayed.free.extend(doubtful);
            Ok(replayed)
        }
        (result, _) => result,
    }
}

/// The files of a directory.
struct FoundFiles<F> {
    /// Files with a header, by generation.
    segments: BTreeMap<u64, LogSegment<F>>,
    free: Vec<Spare<F>>,
    /// Files whose header is none. The power may have gone while it was written, and then nothing rests on it: a header is
    /// on the disk before the log goes on behind it.
    doubtful: Vec<Spare<F>>,
    /// A free file whose header says that it comes next.
    unused: Option<u32>,
    has_sign: bool,
}

/// The last whole batch of a log.
struct Last {
    slot: u32,
    whole: WholeBatch,
}

/// A log that was read from its oldest segment to its end.
pub(super) struct Replayed<F> {
    pub(super) log: Vec<LogSegment<F>>,
    pub(super) free: Vec<Spare<F>>,
    /// Free files whose header is to be taken away: it says that they come next, or nothing that makes sense.
    unused: Vec<u32>,
    has_sign: bool,
    pub(super) tables: Tables,
    /// The last batch.
    pub(super) point: Point,
    last: Option<Last>,
    /// The file and the byte where the log ends.
    pub(super) end: (String, u64),
    pub(super) batches: u64,
    /// Records of those batches, dead ones included.
    pub(super) records: u64,
}

/// How a segment ends.
struct End {
    /// Its last whole batch.
    last: Option<WholeBatch>,
    /// Where that one ends.
    at: u64,
}

impl End {
    fn is_sealed(&self) -> bool {
        self.last.is_some_and(|last| last.marker.is_seal)
    }
}

impl<F: DiskFile> FoundFiles<F> {
    fn look<D: Disk<File = F>>(disk: &mut D) -> Result<Self, OpenError> {
        let mut names = disk.names().map_err(OpenError::io("list", "the directory"))?;
        names.sort();
        let has_sign = names.iter().any(|name| name == SIGN);
        let (segments, free, doubtful) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut found = Self { segments, free, doubtful, unused: None, has_sign };
        for name in names {
            let Some(slot) = slot_of(&name) else { continue };
            let (spare, first) = read_first(disk, &name, slot)?;
            match first {
                First::Blank => found.free.push(spare),
                First::Newer(found) => return Err(OpenError::Newer { file: name, found, known: super::FORMAT }),
                First::Damaged => found.doubtful.push(spare),
                First::Header(header) => {
                    let generation = header.point.generation;
                    if found.segments.insert(generation, LogSegment::new(spare, header)).is_some() {
                        return Err(OpenError::damaged(&name, 0, DamageKind::Twice(generation)));
                    }
                }
            }
        }
        Ok(found)
    }

    fn replay(mut self, window: &mut Window) -> Result<Replayed<F>, OpenError> {
        let head = self.find_head(window)?;
        let tail = head.map_or(0, |head| head.tail);
        let counting = self.segments.split_off(&tail);
        // Segments that no longer count are free, whatever is in them.
        self.free.extend(self.segments.into_values().map(LogSegment::into_spare));
        let mut replayed = Replayed {
            log: Vec::new(),
            free: self.free,
            unused: self.unused.into_iter().collect(),
            has_sign: self.has_sign,
            tables: Tables::default(),
            point: Point::default(),
            last: None,
            end: (String::new(), 0),
            batches: 0,
            records: 0,
        };
        for (expected, (generation, mut segment)) in (tail..).zip(counting) {
            if generation != expected {
                return Err(OpenError::damaged(&segment.name(), 0, DamageKind::Missing(expected)));
            }
            let is_head = head.is_some_and(|head| head.generation == generation);
            replay_segment(&mut segment, is_head, window, &mut replayed)?;
            replayed.log.push(segment);
        }
        Ok(replayed)
    }

    /// The newest segment that counts; the oldest one that does is in its `tail`.
    fn find_head(&mut self, window: &mut Window) -> Result<Option<Point>, OpenError> {
        let Some(newest) = self.segments.last_entry() else { return Ok(None) };
        let newest = newest.get();
        let (name, point) = (newest.name(), newest.header.point);
        let end = read_end(newest, window)?;
        if let Some(last) = end.last {
            if last.marker.is_seal {
                return Err(OpenError::damaged(&name, last.start, DamageKind::Missing(point.generation + 1)));
            }
            return Ok(Some(Point { tail: last.marker.point.tail, ..point }));
        }
        if point.tail == point.generation {
            // The very first segment, and nothing was ever confirmed in it.
            return Ok(Some(point));
        }
        let Some(before) = self.segments.get(&(point.generation - 1)) else {
            return Err(OpenError::damaged(&name, 0, DamageKind::Missing(point.generation - 1)));
        };
        let end = read_end(before, window)?;
        let Some(last) = end.last else {
            return Err(OpenError::damaged(&before.name(), end.at, DamageKind::Unfinished));
        };
        if end.is_sealed() {
            return Ok(Some(Point { tail: last.marker.point.tail, ..point }));
        }
        // It was made ready, and the power went before it was used: the one before it is still the newest.
        let head = Point { tail: last.marker.point.tail, ..before.header.point };
        let unused = self.segments.remove(&point.generation).expect("it was the newest");
        self.unused = Some(unused.slot);
        self.free.push(unused.into_spare());
        Ok(Some(head))
    }
}

/// Opens a file of the log and reads its first sector.
pub(super) fn read_first<D: Disk>(disk: &mut D, name: &str, slot: u32) -> Result<(Spare<D::File>, First), OpenError> {
    let file = disk.open(name).map_err(OpenError::io("open", name))?;
    let len = file.len().map_err(OpenError::io("measure", name))?;
    let mut sector = [0; HEADER_BYTES];
    let there = read_up_to(&file, 0, &mut sector).map_err(OpenError::io("read", name))?;
    let first = SegmentHeader::decode(sector.get(..there).unwrap_or_default());
    Ok((Spare { slot, file, len }, first))
}

/// Reads a segment to its last whole batch.
fn read_end<F: DiskFile>(segment: &LogSegment<F>, window: &mut Window) -> Result<End, OpenError> {
    let failed = |error: io::Error| OpenError::io("read", &segment.name())(error);
    let mut batches = Batches::new(segment, window);
    let mut last = None;
    while let Some((whole, _)) = batches.next().map_err(failed)? {
        last = Some(whole);
        if whole.marker.is_seal {
            break;
        }
    }
    Ok(End { last, at: batches.at() })
}

fn replay_segment<F: DiskFile>(
    segment: &mut LogSegment<F>,
    is_head: bool,
    window: &mut Window,
    replayed: &mut Replayed<F>,
) -> Result<(), OpenError> {
    let name = segment.name();
    let header = segment.header.point;
    if replayed.last.is_some() && header.batch != replayed.point.batch + 1 {
        return Err(OpenError::damaged(&name, 0, DamageKind::Order));
    }
    let failed = |error: io::Error| OpenError::io("read", &name)(error);
    let mut batches = Batches::new(segment, window);
    let mut point = Point { batch: header.batch.saturating_sub(1), ..header };
    let mut is_sealed = false;
    let mut file_bytes = 0;
    while !is_sealed && let Some((whole, changes)) = batches.next().map_err(failed)? {
        let next = whole.marker.point;
        if next.epoch < replayed.point.epoch || next.commit < replayed.point.commit {
            return Err(OpenError::damaged(&name, whole.start, DamageKind::Order));
        }
        for change in changes.drain(..) {
            match change {
                TableChange::Put(record, place) => replayed.tables.put(record, place),
                TableChange::Delete(record) => replayed.tables.delete(record),
                TableChange::Set(space, key, place) => replayed.tables.set(space, &key, place),
                TableChange::Unset(space, key) => replayed.tables.unset(space, &key),
            }
        }
        is_sealed = whole.marker.is_seal;
        file_bytes = whole.marker.file_bytes;
        replayed.batches += 1;
        replayed.records += u64::from(whole.marker.count);
        point = next;
        replayed.point = next;
        replayed.last = Some(Last { slot: segment.slot, whole });
    }
    let at = batches.at();
    if !is_sealed {
        if batches.is_followed().map_err(failed)? {
            return Err(OpenError::damaged(&name, at, DamageKind::Batch));
        }
        if !is_head {
            return Err(OpenError::damaged(&name, at, DamageKind::Unfinished));
        }
        if segment.len < file_bytes {
            return Err(OpenError::damaged(&name, segment.len, DamageKind::Cut(file_bytes)));
        }
    }
    replayed.point = point;
    replayed.end = (name, at);
    segment.end = at;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::segment::name;
    use super::*;

    #[test]
    fn names_of_files_and_their_numbers() {
        assert_eq!(name(7), "segment-000007");
        assert_eq!(slot_of("segment-000007"), Some(7));
        for other in ["segment-7", "segment-000000", "segment-0000007", "segment-", "turno.lock", "segment-999999"] {
            assert_eq!(slot_of(other), None, "{other}");
        }
    }
}
