//! A store on a disk: a log of batches in segment files.
//!
//! Everything is appended; what is dead is left behind until its segment, always the oldest, is read once more, what
//! still lives in it is appended again, and the file is used for a new segment. Because only the oldest segment ever
//! goes, a delete is always younger than what it deletes and may be forgotten with it.
//!
//! Three things must never happen here: a batch written before the one before it is synced; a file used again before a batch is
//! synced that says it no longer counts; anything done after a failed sync.

mod append;
mod compact;
mod error;
mod format;
mod index;
mod inspect;
mod place;
mod reading;
mod recovery;
mod segment;
mod tables;
pub(crate) mod window;

use std::collections::VecDeque;

use crate::batch::Batch;
use crate::disk::Disk;
use crate::error::{CommitError, ReadError, Retry};
use crate::limits;
use crate::record::Raw;
use crate::store::{Capacity, CommitNo, Epoch, Item, RecordNo, Space, Store, Stored, Usage};

use append::SpaceEffect;
use compact::Cleaner;
use error::AppendError;
use format::{MARKER_BYTES, Marker, Point};
use segment::{LogSegment, Spare};
use tables::Tables;
use window::Window;

pub use error::{DamageKind, OpenError};
pub use format::FORMAT;
pub use inspect::{Contents, Damage, DamagedPart, Inspection, Log, inspect, inspect_headers, inspect_with};
pub use recovery::Recovered;

/// How a log is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a new segment; those that are there keep theirs.
    pub segment_bytes: u32,
    /// Bytes written ahead in one go, so that a sync need not wait for the file system's own notes.
    pub prewrite_bytes: u32,
    /// A number that nobody outside can guess: without it a message body could be made to look like the end of a batch.
    /// The caller gives it, because nothing here is left to chance.
    pub salt: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { segment_bytes: limits::SEGMENT_BYTES, prewrite_bytes: limits::PREWRITE_BYTES, salt: 0 }
    }
}

/// A store on a disk. It owns the directory while it is open; see [`FsDisk`](crate::disk::FsDisk).
#[derive(Debug)]
pub struct Embedded<D: Disk> {
    disk: D,
    settings: Settings,
    /// From the oldest segment that counts to the one that is written to. Never empty.
    log: VecDeque<LogSegment<D::File>>,
    /// Files for the next segments; what is written ahead in them is the reserve.
    free: VecDeque<Spare<D::File>>,
    /// The generation of the segment in each file; 0 if the file is free or does not exist.
    generations: Vec<u64>,
    tables: Tables,
    /// The last batch.
    point: Point,
    cleaner: Cleaner,
    window: Window,
    /// The last attempt to keep the reserve found no room.
    is_tight: bool,
    /// Why nothing works any more.
    broken: Option<String>,
}

impl<D: Disk> Embedded<D> {
    fn head(&mut self) -> &mut LogSegment<D::File> {
        self.log.back_mut().expect("a log has a segment")
    }

    /// The segment in this file.
    fn segment(&self, slot: u32) -> Option<&LogSegment<D::File>> {
        let generation = *self.generations.get(slot as usize)?;
        let at = generation.checked_sub(self.log.front()?.generation())?;
        self.log.get(usize::try_from(at).ok()?)
    }

    fn set_generation(&mut self, slot: u32, generation: u64) {
        let slot = slot as usize;
        if self.generations.len() <= slot {
            self.generations.resize(slot + 1, 0);
        }
        if let Some(place) = self.generations.get_mut(slot) {
            *place = generation;
        }
    }

    fn check_alive(&self) -> Result<(), CommitError> {
        match &self.broken {
            Some(why) => Err(CommitError::Unavailable { retry: Retry::Never, why: why.clone() }),
            None => Ok(()),
        }
    }

    fn disk_bytes(&self) -> u64 {
        let free: u64 = self.free.iter().map(|spare| spare.len).sum();
        free + self.log_bytes()
    }

    fn log_bytes(&self) -> u64 {
        self.log.iter().map(|segment| segment.len).sum()
    }

    /// The meaning of a failed append for the caller of commit `no`. After most failures nothing works any more.
    fn failed(&mut self, no: CommitNo, error: AppendError) -> CommitError {
        let (answer, why) = match error {
            AppendError::Full(_) => return CommitError::Full,
            AppendError::Broken(failed) => {
                let why = failed.why();
                (CommitError::Unavailable { retry: Retry::Never, why: why.clone() }, why)
            }
            AppendError::Unsynced(failed) => (CommitError::Unknown(no), failed.why()),
        };
        self.broken = Some(why);
        answer
    }
}

impl<D: Disk> Store for Embedded<D> {
    fn epoch(&self) -> Epoch {
        self.point.epoch
    }

    fn last_commit(&mut self) -> Result<CommitNo, CommitError> {
        self.check_alive()?;
        Ok(self.point.commit)
    }

    fn last_record(&self) -> RecordNo {
        self.point.last_record
    }

    /// Three eighths of a segment: whatever the sizes, two thirds of a segment are filled, so that moving records into
    /// new segments always gains room.
    fn capacity(&self) -> Capacity {
        let segment_bytes = self.settings.segment_bytes as usize;
        Capacity { batch_bytes_max: (segment_bytes / 8 * 3).saturating_sub(2 * MARKER_BYTES) }
    }

    fn commit(&mut self, epoch: Epoch, no: CommitNo, batch: &mut Batch) -> Result<(), CommitError> {
        self.check_alive()?;
        if epoch != self.point.epoch {
            return Err(CommitError::Fenced { by: self.point.epoch });
        }
        if no != self.point.commit.next() {
            return Err(CommitError::OutOfTurn { last: self.point.commit });
        }
        if batch.is_beyond(self.capacity().batch_bytes_max) {
            return Err(CommitError::TooLarge);
        }
        let fate = if batch.has_puts() { SpaceEffect::Grows } else { SpaceEffect::Frees };
        let point = Point { commit: no, last_record: self.point.last_record.max(batch.last_record()), ..self.point };
        match self.append(batch, point, fate) {
            Ok(start) => self.apply(batch, start),
            Err(error) => return Err(self.failed(no, error)),
        }
        self.clean_behind(batch.len());
        Ok(())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(Item<'_>)) -> Result<(), ReadError> {
        self.visit_all(visit)
    }

    fn read(
        &mut self,
        records: &[RecordNo],
        visit: &mut dyn FnMut(RecordNo, Option<Stored<'_>>),
    ) -> Result<(), ReadError> {
        self.read_numbered(records, visit)
    }

    fn read_key(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        self.read_keyed(space, key)
    }

    fn compact(&mut self) -> Result<bool, CommitError> {
        self.check_alive()?;
        self.clean()
    }

    fn usage(&self) -> Usage {
        Usage {
            numbered: self.tables.numbered_len(),
            keyed: self.tables.keyed_len(),
            live_bytes: self.tables.live_bytes(),
            disk_bytes: self.disk_bytes(),
            is_tight: self.is_tight,
        }
    }
}

/// Reads any bytes as one record of a log; the bytes it takes, if it is sound. For fuzzing and for tools.
#[must_use]
pub fn check_record(bytes: &[u8]) -> Option<usize> {
    let raw = Raw::checked(bytes)?;
    (raw.op().is_some() || Marker::read(&raw).is_some()).then_some(raw.bytes.len())
}
