//! A segment: one file of the log, read batch by batch.

use std::io;

use super::format::{HEADER_BYTES, MARKER_BYTES, Marker, SegmentHeader};
use super::place::RecordPlace;
use super::window::Window;
use crate::batch::Op;
use crate::disk::DiskFile;
use crate::record::{self, Raw, padded};
use crate::store::{RecordNo, Space};

/// The name of the file with this number.
pub(super) fn name(slot: u32) -> String {
    format!("segment-{slot:06}")
}

/// The number of the file with this name, if it is one of the log's.
pub(super) fn slot_of(file: &str) -> Option<u32> {
    let slot: u32 = file.strip_prefix("segment-")?.parse().ok()?;
    (name(slot) == file && slot > 0 && slot < crate::limits::SEGMENTS_MAX).then_some(slot)
}

/// A file that is no part of the log now.
#[derive(Debug)]
pub(super) struct Spare<F> {
    pub(super) slot: u32,
    pub(super) file: F,
    /// Bytes the file has.
    pub(super) len: u64,
}

/// A file that is part of the log.
#[derive(Debug)]
pub(super) struct LogSegment<F> {
    pub(super) slot: u32,
    pub(super) file: F,
    pub(super) len: u64,
    pub(super) header: SegmentHeader,
    /// Where the next batch goes; in a sealed segment, where its last batch ends.
    pub(super) end: u64,
}

impl<F> LogSegment<F> {
    pub(super) fn new(spare: Spare<F>, header: SegmentHeader) -> Self {
        let Spare { slot, file, len } = spare;
        Self { slot, file, len, header, end: HEADER_BYTES as u64 }
    }

    pub(super) fn into_spare(self) -> Spare<F> {
        Spare { slot: self.slot, file: self.file, len: self.len }
    }

    pub(super) fn name(&self) -> String {
        name(self.slot)
    }

    pub(super) const fn generation(&self) -> u64 {
        self.header.point.generation
    }

    /// Whether a marker was written in this life of the file.
    fn owns(&self, marker: &Marker) -> bool {
        marker.point.generation == self.generation() && marker.point.salt == self.header.point.salt
    }

    /// How far records may reach.
    pub(super) fn bytes_max(&self) -> u64 {
        self.len.min(u64::from(self.header.segment_bytes))
    }
}

/// A change of the tables by a whole batch.
#[derive(Debug)]
pub(super) enum TableChange {
    Put(RecordNo, RecordPlace),
    Delete(RecordNo),
    Set(Space, Box<[u8]>, RecordPlace),
    Unset(Space, Box<[u8]>),
}

/// A whole batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeBatch {
    pub(super) marker: Marker,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Reads the batches of a segment from the first to the last whole one.
#[derive(Debug)]
pub(super) struct Batches<'a, F> {
    segment: &'a LogSegment<F>,
    window: &'a mut Window,
    at: u64,
    /// The number the next batch must have.
    expected: u64,
    changes: Vec<TableChange>,
}

impl<'a, F: DiskFile> Batches<'a, F> {
    pub(super) fn new(segment: &'a LogSegment<F>, window: &'a mut Window) -> Self {
        window.clear();
        let expected = segment.header.point.batch;
        Self { segment, window, at: HEADER_BYTES as u64, expected, changes: Vec::new() }
    }

    /// From the end of its last whole batch on.
    pub(super) fn behind(segment: &'a LogSegment<F>, window: &'a mut Window, last: u64) -> Self {
        Self { at: segment.end, expected: last + 1, ..Self::new(segment, window) }
    }

    /// Where the next batch would begin.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// The next batch and what it does, or nothing if there is none that is whole.
    pub(super) fn next(&mut self) -> io::Result<Option<(WholeBatch, &mut Vec<TableChange>)>> {
        let Some(marker) = self.read_batch()? else { return Ok(None) };
        let (start, end) = (self.at, self.at + u64::from(marker.bytes) + MARKER_BYTES as u64);
        self.at = end;
        self.expected += 1;
        Ok(Some((WholeBatch { marker, start, end }, &mut self.changes)))
    }

    fn read_batch(&mut self) -> io::Result<Option<Marker>> {
        self.changes.clear();
        let (mut at, mut count, mut over_all) = (self.at, 0_u32, 0);
        let end = self.segment.bytes_max();
        loop {
            let head = self.window.bytes(&self.segment.file, at, record::HEAD_BYTES, end)?;
            let Some(len) = Raw::claimed_len(head) else { return Ok(None) };
            let bytes = self.window.bytes(&self.segment.file, at, len, end)?;
            let Some(raw) = Raw::checked(bytes) else { return Ok(None) };
            if raw.kind == record::COMMIT {
                let marker = Marker::read(&raw);
                let is_mine = |marker: &Marker| {
                    self.segment.owns(marker)
                        && marker.point.batch == self.expected
                        && marker.point.tail > 0
                        && marker.point.tail <= self.segment.generation()
                        && u64::from(marker.bytes) == at - self.at
                        && (marker.count, marker.over_all) == (count, over_all)
                };
                return Ok(marker.filter(is_mine));
            }
            let Some(op) = raw.op() else { return Ok(None) };
            let place = RecordPlace::new(self.segment.slot, at, padded(len));
            self.changes.push(match op {
                Op::Put { record, .. } => TableChange::Put(record, place),
                Op::Delete { record } => TableChange::Delete(record),
                Op::Set { space, key, .. } => TableChange::Set(space, key.into(), place),
                Op::Unset { space, key } => TableChange::Unset(space, key.into()),
            });
            over_all = crc32c::crc32c_append(over_all, raw.bytes.get(4..8).unwrap_or_default());
            count += 1;
            at += padded(len) as u64;
        }
    }

    /// Whether a batch later than the one that should be here follows anywhere. A batch is written only when the one
    /// before it is synced: so this one was whole once, and is damaged now; it is not the torn end of the log.
    pub(super) fn is_followed(&mut self) -> io::Result<bool> {
        let expected = self.expected;
        Ok(self.find(|segment, marker| segment.owns(marker) && marker.point.batch > expected)?.is_some())
    }

    /// Goes on behind damage, where a later batch seems to begin. `None` if there is none.
    pub(super) fn skip_damage(&mut self) -> io::Result<Option<()>> {
        let expected = self.expected;
        let found = self.find(|segment, marker| segment.owns(marker) && marker.point.batch > expected)?;
        Ok(found.map(|(at, marker)| {
            self.at = self.at.max(at.saturating_sub(u64::from(marker.bytes)));
            self.expected = marker.point.batch;
        }))
    }

    /// Whether a batch was begun here and not completed, as far as that can be told from what a former life of the file
    /// left behind.
    pub(super) fn is_torn(&mut self) -> io::Result<bool> {
        if let Some((_, marker)) = self.find(|_, _| true)? {
            return Ok(self.segment.owns(&marker));
        }
        let (mut at, end) = (self.at, self.segment.bytes_max());
        let mut dirty_until = at;
        while at < end {
            let bytes = self.window.bytes(&self.segment.file, at, 1, end)?;
            if bytes.is_empty() {
                break;
            }
            dirty_until = bytes.iter().rposition(|byte| *byte != 0).map_or(dirty_until, |last| at + last as u64 + 1);
            at += bytes.len() as u64;
        }
        // A file in its first life has zeros to its end; one that was full before has something there.
        Ok(dirty_until > self.at && dirty_until + HEADER_BYTES as u64 <= end)
    }

    /// The next marker from here on that is wanted, and where it begins.
    fn find(&mut self, wanted: impl Fn(&LogSegment<F>, &Marker) -> bool) -> io::Result<Option<(u64, Marker)>> {
        let (mut at, end) = (self.at, self.segment.bytes_max());
        while at + MARKER_BYTES as u64 <= end {
            let bytes = self.window.bytes(&self.segment.file, at, MARKER_BYTES, end)?;
            let marker = Some(bytes)
                .filter(|bytes| Raw::claimed_len(bytes) == Some(MARKER_BYTES))
                .and_then(Raw::checked)
                .and_then(|raw| Marker::read(&raw));
            if let Some(marker) = marker
                && wanted(self.segment, &marker)
            {
                return Ok(Some((at, marker)));
            }
            at += record::ALIGN as u64;
        }
        Ok(None)
    }
}
