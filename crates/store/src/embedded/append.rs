//! Appending: one batch, one write, one sync. And making room for it, also on a full disk.

use std::io;

use super::Embedded;
use super::error::{AppendError, Failed};
use super::format::{HEADER_BYTES, MARKER_BYTES, Marker, Point, SegmentHeader};
use super::place::RecordPlace;
use super::segment::{LogSegment, Spare, name};
use crate::batch::{Batch, Op};
use crate::disk::{Disk, DiskFile, write_all_at};
use crate::limits::{FREE_SEGMENTS_MAX, SEGMENTS_MAX};
use crate::record;

const MARKER: u64 = MARKER_BYTES as u64;

/// Zeros are written this many at a time.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// The effect of a batch on the free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpaceEffect {
    /// It puts records: refused when the disk is full.
    Grows,
    /// It only deletes, or moves records so that their segment becomes free: may use the reserve.
    Frees,
}

impl<D: Disk> Embedded<D> {
    /// Appends a batch and syncs it; `point` is what is true with it, but for the batch's number. Where it begins.
    pub(super) fn append(&mut self, batch: &mut Batch, point: Point, fate: SpaceEffect) -> Result<u64, AppendError> {
        let room = self.make_room(batch.len() as u64, fate);
        if fate == SpaceEffect::Grows {
            self.is_tight = matches!(room, Err(AppendError::Full(_)));
        }
        room?;
        self.write_batch(batch, point, false)
    }

    /// Tells the tables what a batch did that begins at `start` of the newest segment.
    pub(super) fn apply(&mut self, batch: &Batch, start: u64) {
        let slot = self.head().slot;
        let (mut ops, mut at) = (batch.ops(), start);
        while let Some((op, len)) = ops.next_with_len() {
            let place = RecordPlace::new(slot, at, len);
            match op {
                Op::Put { record, .. } => self.tables.put(record, place),
                Op::Delete { record } => self.tables.delete(record),
                Op::Set { space, key, .. } => self.tables.set(space, key, place),
                Op::Unset { space, key } => self.tables.unset(space, key),
            }
            at += len as u64;
        }
    }

    /// Writes the batch and its marker into the newest segment, where there must be room, and syncs it.
    fn write_batch(&mut self, batch: &mut Batch, point: Point, is_seal: bool) -> Result<u64, AppendError> {
        let batch_number = self.point.batch + 1;
        let head = self.log.back_mut().expect("a log has a segment");
        let (slot, generation) = (head.slot, head.generation());
        let point = Point { generation, salt: head.header.point.salt, batch: batch_number, ..point };
        let bytes = batch.bytes_mut();
        let len = bytes.len();
        let (count, over_all) = record::seal(bytes);
        let bytes_before = u32::try_from(len).expect("a batch fits into a segment");
        let file_bytes = head.len;
        Marker { point, bytes: bytes_before, count, over_all, is_seal, file_bytes }.append(bytes);
        let start = head.end;
        let written = write_all_at(&head.file, start, bytes);
        let end = start + bytes.len() as u64;
        bytes.truncate(len);
        // Without its sync a batch does not count: if only the room was missing, the same bytes may be written again.
        // The name is made when it is needed: this is done for every batch.
        let failed = |doing| move |error: io::Error| Failed::to(doing, &name(slot))(error);
        written.map_err(failed("write")).map_err(AppendError::of)?;
        head.file.sync().map_err(failed("sync")).map_err(AppendError::Unsynced)?;
        head.end = end;
        head.len = head.len.max(end);
        self.point = point;
        Ok(start)
    }

    /// Makes the newest segment one that holds `bytes` more, and always a seal after them. Before them may come the word
    /// that the file is longer now.
    fn make_room(&mut self, bytes: u64, fate: SpaceEffect) -> Result<(), AppendError> {
        let need = bytes + MARKER + MARKER + MARKER;
        let head = self.head();
        if head.end + need > u64::from(head.header.segment_bytes) {
            self.begin_segment()?;
        }
        match self.prewrite(need) {
            // The room written ahead is used up. The reserve is in a file of its own.
            Err(AppendError::Full(_)) if fate == SpaceEffect::Frees && !self.free.is_empty() => {
                self.begin_segment()?;
                self.prewrite(need)
            }
            Ok(()) if fate == SpaceEffect::Grows => self.keep_reserve(need),
            done => done,
        }
    }

    /// Sees to it that, after `need` bytes more, a whole segment's worth of room is written ahead, here and in a free
    /// file: with it the oldest segment can be moved on a full disk too, and deletes are never refused. A short
    /// log needs no more than its own length.
    pub(super) fn keep_reserve(&mut self, need: u64) -> Result<(), AppendError> {
        let kept = self.try_keep_reserve(need);
        self.is_tight = kept.is_err();
        kept
    }

    fn try_keep_reserve(&mut self, need: u64) -> Result<(), AppendError> {
        let segment_bytes = u64::from(self.settings.segment_bytes);
        let wanted = segment_bytes.min(self.log_bytes());
        loop {
            let head = self.head();
            let here = head.len.saturating_sub(head.end + need);
            let free: u64 = self.free.iter().map(|spare| spare.len).sum();
            if here + free >= wanted {
                return Ok(());
            }
            if self.free.is_empty() {
                let spare = self.create()?;
                self.free.push_back(spare);
            }
            let ahead = u64::from(self.settings.prewrite_bytes.max(1));
            let spare = self.free.back_mut().expect("just made");
            let until = segment_bytes.max(spare.len + 1).min(spare.len + ahead);
            let written = write_zeros(&spare.file, spare.len, until).and_then(|()| spare.file.sync());
            written.map_err(Failed::to("extend", &name(spare.slot))).map_err(AppendError::of)?;
            spare.len = until;
        }
    }

    /// Writes zeros ahead of the log, so that later syncs have nothing to do but write: no new blocks, no new length.
    fn prewrite(&mut self, need: u64) -> Result<(), AppendError> {
        let ahead = u64::from(self.settings.prewrite_bytes);
        let head = self.head();
        if head.end + need <= head.len {
            return Ok(());
        }
        let segment_bytes = u64::from(head.header.segment_bytes);
        let wanted = (head.end + need).max(head.len + ahead).min(segment_bytes.max(head.end + need));
        let done = write_zeros(&head.file, head.len, wanted).and_then(|()| head.file.sync());
        done.map_err(Failed::to("extend", &name(head.slot))).map_err(AppendError::of)?;
        head.len = wanted;
        // Said where there was room before: so a file that loses what it gained is known to be cut.
        self.write_batch(&mut Batch::new(), self.point, false).map(|_| ())
    }

    /// Goes on in another file. It is made ready first, then the old segment says that the log goes on there: so a
    /// segment that is missing is missed.
    pub(super) fn begin_segment(&mut self) -> Result<(), AppendError> {
        let spare = match self.free.pop_front() {
            Some(spare) => spare,
            None => self.create()?,
        };
        let generation = self.head().generation() + 1;
        let point = Point {
            generation,
            // With the epoch, so that no two lives of a file have the same, whatever the caller's number is.
            salt: mix(self.settings.salt.wrapping_add(self.point.epoch.0), generation),
            // The seal comes in between.
            batch: self.point.batch + 2,
            ..self.point
        };
        let header = SegmentHeader { point, segment_bytes: self.settings.segment_bytes };
        let ready = write_header(&spare, &header);
        if let Err(error) = ready.and_then(|()| self.write_batch(&mut Batch::new(), self.point, true)) {
            // The log goes on where it is, and another file may be the next one: two with one generation would be
            // refused at the next start. After any other failure nothing goes on, and the seal may be there.
            if matches!(error, AppendError::Full(_)) {
                blank_header(&spare)?;
            }
            self.free.push_front(spare);
            return Err(error);
        }
        self.push_segment(spare, header);
        Ok(())
    }

    /// Makes a file the newest segment. Its header is on the disk.
    pub(super) fn push_segment(&mut self, mut spare: Spare<D::File>, header: SegmentHeader) {
        self.set_generation(spare.slot, header.point.generation);
        spare.len = spare.len.max(HEADER_BYTES as u64);
        self.log.push_back(LogSegment::new(spare, header));
    }

    /// Takes the oldest segments that no longer count out of the log, and keeps some of their files.
    pub(super) fn free_segments(&mut self) -> Result<(), Failed> {
        while self.log.front().is_some_and(|segment| segment.generation() < self.point.tail) {
            let Some(segment) = self.log.pop_front() else { break };
            self.set_generation(segment.slot, 0);
            self.free.push_back(segment.into_spare());
        }
        self.trim_free()
    }

    /// The longest first: they save the most work later, and on a full disk they hold the reserve.
    pub(super) fn sort_free(&mut self) {
        self.free.make_contiguous().sort_by_key(|spare| std::cmp::Reverse(spare.len));
    }

    /// Removes free files beyond what is kept.
    pub(super) fn trim_free(&mut self) -> Result<(), Failed> {
        self.sort_free();
        while self.free.len() > FREE_SEGMENTS_MAX {
            let Some(spare) = self.free.pop_back() else { break };
            let name = name(spare.slot);
            self.disk.remove(&name).map_err(Failed::to("remove", &name))?;
        }
        Ok(())
    }

    /// An empty file whose name will outlive a power cut.
    pub(super) fn create(&mut self) -> Result<Spare<D::File>, AppendError> {
        let is_free = |slot: &u32| self.generations.get(*slot as usize).is_none_or(|generation| *generation == 0);
        let is_spare = |slot: &u32| self.free.iter().any(|spare| spare.slot == *slot);
        let slot = (1..SEGMENTS_MAX).find(|slot| is_free(slot) && !is_spare(slot));
        let slot = slot.ok_or_else(|| {
            AppendError::of(Failed::to("create", "another segment")(io::ErrorKind::StorageFull.into()))
        })?;
        let name = name(slot);
        let file = self.disk.create(&name).map_err(Failed::to("create", &name)).map_err(AppendError::of)?;
        self.disk.sync_directory().map_err(Failed::to("sync the directory of", &name)).map_err(AppendError::Broken)?;
        Ok(Spare { slot, file, len: 0 })
    }
}

/// Writes a segment's header and syncs it. A file whose header cannot be synced is not to be trusted again.
pub(super) fn write_header<F: DiskFile>(spare: &Spare<F>, header: &SegmentHeader) -> Result<(), AppendError> {
    let name = name(spare.slot);
    let mut written = write_all_at(&spare.file, 0, &header.encode());
    if spare.len > HEADER_BYTES as u64 {
        written = written.and_then(|()| hold_length(&spare.file, spare.len));
    }
    written.map_err(Failed::to("write", &name)).map_err(AppendError::of)?;
    spare.file.sync().map_err(Failed::to("sync", &name)).map_err(AppendError::Broken)
}

/// Makes the next sync one of the file's whole length. A file found longer than the disk knows it, because the sync of its
/// growth failed in another process, would be taken for one that was cut, should the power go.
pub(super) fn hold_length(file: &impl DiskFile, len: u64) -> io::Result<()> {
    write_all_at(file, len - 1, &[0])
}

/// Takes a file's header away.
pub(super) fn blank_header<F: DiskFile>(spare: &Spare<F>) -> Result<(), AppendError> {
    let name = name(spare.slot);
    let blank = write_all_at(&spare.file, 0, &[0; HEADER_BYTES]).and_then(|()| spare.file.sync());
    blank.map_err(Failed::to("blank", &name)).map_err(AppendError::Broken)
}

fn write_zeros(file: &impl DiskFile, from: u64, to: u64) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let len = usize::try_from(to - at).unwrap_or(usize::MAX).min(ZEROS.len());
        write_all_at(file, at, ZEROS.get(..len).unwrap_or_default())?;
        at += len as u64;
    }
    Ok(())
}

/// Another number for every segment.
pub(super) const fn mix(salt: u64, generation: u64) -> u64 {
    crate::disk::Rng::new(salt ^ generation.wrapping_mul(0x9E37_79B9_7F4A_7C15)).any()
}
