//! Compaction: the live records of the oldest segment are appended again, and its file is free.
//!
//! Promise: the disk holds at most twice the live bytes and four segments (256 MiB) once the committer had time for it.
//! Work begins when the log is longer than one and a half times the live bytes and one and a half segments; the rest of
//! the promise is for the newest segment, which may be empty, and the free files. While batches come, each pays for
//! three times its own bytes of this work; in idle times it goes on by itself.

use super::Embedded;
use super::append::SpaceEffect;
use super::error::{AppendError, Failed};
use super::format::{HEADER_BYTES, Marker, Point};
use super::segment::LogSegment;
use super::window::Window;
use crate::batch::{Batch, Op};
use crate::disk::Disk;
use crate::error::CommitError;
use crate::record::{self, Raw, padded};

/// Bytes moved in one step, at most.
const STEP_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of work that each committed byte pays for.
const PACE: u64 = 3;

#[derive(Debug, Default)]
pub(super) struct Cleaner {
    /// How far the oldest segment is read; 0 before it is begun.
    at: u64,
    /// Bytes of work that are due.
    due: u64,
    /// The newest segment at the last commit. Beyond it there is only what was moved: moving that gains nothing.
    last: u64,
    window: Window,
    batch: Batch,
}

/// The result of reading from the oldest segment.
enum Read {
    Part,
    All,
}

impl<D: Disk> Embedded<D> {
    /// Does the share of work that a batch of `bytes` pays for. The batch is durable already: a failure shows with the
    /// next one.
    pub(super) fn clean_behind(&mut self, bytes: usize) {
        self.cleaner.last = self.head().generation();
        if !self.wants_cleaning() {
            self.cleaner.due = 0;
            return;
        }
        self.cleaner.due += bytes as u64 * PACE;
        while self.cleaner.due >= self.step_bytes() {
            self.cleaner.due -= self.step_bytes();
            if !self.clean().unwrap_or(false) {
                break;
            }
        }
    }

    /// One step; whether there is more to do.
    pub(super) fn clean(&mut self) -> Result<bool, CommitError> {
        if !self.wants_cleaning() {
            return Ok(false);
        }
        if self.garbage() == 0 && self.head_is_wasted() {
            match self.begin_segment() {
                Ok(()) => {}
                Err(AppendError::Full(_)) => return Ok(false),
                Err(error) => {
                    self.failed(self.point.commit, error);
                    return self.check_alive().map(|()| false);
                }
            }
        }
        let mut batch = std::mem::take(&mut self.cleaner.batch);
        let done = self.clean_into(&mut batch);
        batch.clear();
        self.cleaner.batch = batch;
        match done {
            Ok(()) => Ok(self.wants_cleaning()),
            // There is no room to move anything to. When something is deleted, there will be.
            Err(AppendError::Full(_)) => Ok(false),
            Err(error) => {
                self.failed(self.point.commit, error);
                self.check_alive().map(|()| false)
            }
        }
    }

    fn wants_cleaning(&self) -> bool {
        let live = self.tables.live_bytes();
        let segment = u64::from(self.settings.segment_bytes);
        let is_long = self.log_bytes() > live + live / 2 + segment + segment / 2;
        // On a full disk every byte counts.
        let is_tight = self.is_tight && (self.garbage() > 0 || self.head_is_wasted());
        let has_old = self.log.len() > 1 && is_long;
        self.point.tail <= self.cleaner.last && (has_old || is_tight)
    }

    /// Bytes outside the newest segment that hold nothing alive.
    fn garbage(&self) -> u64 {
        self.log.iter().rev().skip(1).map(|segment| self.garbage_in(segment)).sum()
    }

    fn garbage_in(&self, segment: &LogSegment<D::File>) -> u64 {
        (segment.end - HEADER_BYTES as u64).saturating_sub(self.tables.live_in(segment.slot))
    }

    /// Whether so much of the newest segment is dead that, for lack of other room, it is worth to move the rest. A disk
    /// of less than two segments has no other room.
    fn head_is_wasted(&self) -> bool {
        self.log.back().is_some_and(|head| self.garbage_in(head) >= self.step_bytes().max(head.end / 4))
    }

    fn step_bytes(&self) -> u64 {
        STEP_BYTES_MAX.min(u64::from(self.settings.segment_bytes) / 8)
    }

    fn clean_into(&mut self, batch: &mut Batch) -> Result<(), AppendError> {
        let read = self.gather(batch).map_err(AppendError::Broken)?;
        let tail = match read {
            Read::Part if batch.is_empty() => return Ok(()),
            Read::Part => self.point.tail,
            Read::All => self.first_alive(),
        };
        let start = match self.append(batch, Point { tail, ..self.point }, SpaceEffect::Frees) {
            Ok(start) => start,
            Err(error) => {
                // The gathered records were not moved: begin this segment again.
                self.cleaner.at = 0;
                return Err(error);
            }
        };
        self.apply(batch, start);
        if matches!(read, Read::All) {
            self.cleaner.at = 0;
            self.cleaner.window.clear();
            self.free_segments().map_err(AppendError::Broken)?;
        }
        Ok(())
    }

    /// The oldest segment that holds something alive, if the very oldest no longer counts.
    fn first_alive(&self) -> u64 {
        let mut rest = self.log.iter().skip(1).peekable();
        while let Some(segment) = rest.next() {
            if rest.peek().is_none() || self.tables.live_in(segment.slot) > 0 {
                return segment.generation();
            }
        }
        self.point.tail
    }

    /// Copies the next live records of the oldest segment into the batch.
    fn gather(&mut self, batch: &mut Batch) -> Result<Read, Failed> {
        let step_bytes = self.step_bytes();
        let segment = self.log.front().expect("a log has a segment");
        if self.tables.live_in(segment.slot) == 0 {
            return Ok(Read::All);
        }
        let cleaner = &mut self.cleaner;
        if cleaner.at == 0 {
            cleaner.window.clear();
            cleaner.at = HEADER_BYTES as u64;
        }
        let (from, mut at, end) = (cleaner.at, cleaner.at, segment.end);
        let mut left = self.tables.live_in(segment.slot);
        while (batch.len() as u64) < step_bytes && at - from < step_bytes * 4 {
            let raw = next_record(&mut cleaner.window, &segment.file, at, end);
            let raw = raw.map_err(Failed::to("read", &segment.name()))?;
            let len = padded(raw.bytes.len());
            if raw.kind == record::COMMIT {
                if Marker::read(&raw).is_some_and(|marker| marker.is_seal) {
                    return Ok(Read::All);
                }
            } else {
                let place = match raw.op() {
                    Some(Op::Put { record, .. }) => self.tables.find(record),
                    Some(Op::Set { space, key, .. }) => self.tables.find_key(space, key),
                    _ => None,
                };
                if place.is_some_and(|place| place.slot() == segment.slot && place.offset() == at) {
                    batch.append_raw(&raw);
                    left -= len as u64;
                }
            }
            at += len as u64;
            if left == 0 {
                return Ok(Read::All);
            }
        }
        cleaner.at = at;
        Ok(Read::Part)
    }
}

fn next_record<'a>(
    window: &'a mut Window,
    file: &impl crate::disk::DiskFile,
    at: u64,
    end: u64,
) -> std::io::Result<Raw<'a>> {
    let damaged = || std::io::Error::new(std::io::ErrorKind::InvalidData, format!("damaged at byte {at}"));
    let head = window.bytes(file, at, record::HEAD_BYTES, end)?;
    let len = Raw::claimed_len(head).ok_or_else(damaged)?;
    Raw::checked(window.bytes(file, at, len, end)?).ok_or_else(damaged)
}
