//! Output of tasks, stored in order of arrival and read by task or by arrival. Live output, for followers only, is in
//! memory.

use std::collections::{BTreeSet, VecDeque};
use std::io;

use super::record::{Key, Kind};
use super::segment_list::{New, SegmentList, Size};
use super::{OUTPUT, Refusal, Room};
use crate::disk::{Disk, DiskFile};

/// Something that a task wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the job.
    pub job: u64,
    /// The number of the task.
    pub task: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// To its standard error, not its standard output.
    pub stderr: bool,
    /// How much the attempt had written before.
    pub at: u64,
    /// Kept in memory only.
    pub live: bool,
    /// The bytes of output.
    pub bytes: Vec<u8>,
    /// Bytes that it wrote here and that are lost to damage; then there are no others.
    pub lost: u64,
}

/// A place in the output of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputPosition {
    /// The number of the task.
    pub task: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The position in the output, in bytes.
    pub at: u64,
}

/// A part of what the tasks of a job wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The pieces of output.
    pub pieces: Vec<Piece>,
    /// Where to go on.
    pub next: OutputPosition,
    /// Up to which arrival this tells all, or which was the latest.
    pub arrived: u64,
    /// There is no more now.
    pub end: bool,
    /// A part of the archive cannot be read that may have held more of this job.
    pub damaged: bool,
}

/// How much of it is wanted.
#[derive(Clone, Copy, Debug)]
pub struct OutputRange<'a> {
    /// The number of the job.
    pub job: u64,
    /// Ranges of task numbers, both ends included; `None`: all of them.
    pub tasks: Option<&'a [(u32, u32)]>,
    /// Bytes; one piece more than that may come.
    pub bytes: usize,
    /// Pieces.
    pub pieces: usize,
}

impl OutputRange<'_> {
    fn has(&self, task: u32) -> bool {
        self.tasks.is_none_or(|tasks| tasks.iter().any(|(first, last)| (*first..=*last).contains(&task)))
    }

    /// The ranges in order, those side by side as one.
    fn ranges(&self) -> Vec<(u32, u32)> {
        let Some(tasks) = self.tasks else { return vec![(0, u32::MAX)] };
        let mut tasks = tasks.to_vec();
        tasks.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (first, last) in tasks {
            match ranges.last_mut() {
                Some((_, before)) if first <= before.saturating_add(1) => *before = last.max(*before),
                _ => ranges.push((first, last)),
            }
        }
        ranges
    }
}

/// More arrivals than there are from one opening of the archive to the next.
const LIFE_NUMBERS: u64 = 1 << 32;

/// All output.
#[derive(Debug)]
pub(super) struct Outputs<F> {
    pub(super) segment_list: SegmentList<F>,
    live: Live,
    piece_bytes: u64,
    /// The number of the latest arrival.
    seq: u64,
    /// The same when the archive was opened.
    opened_at: u64,
}

/// Live output for followers, the oldest first.
#[derive(Debug)]
struct Live {
    pieces: VecDeque<(u64, Piece)>,
    bytes: usize,
    bytes_max: usize,
}

impl<F: DiskFile> Outputs<F> {
    pub(super) fn open<D: Disk<File = F>>(
        disk: &mut D,
        room: &Room,
        now_ms: u64,
        jobs: &BTreeSet<u64>,
    ) -> io::Result<Self> {
        let segment_list = SegmentList::open(disk, OUTPUT, Size::of(room, room.output_bytes, true), room.salt, jobs)?;
        // Later than all that anyone was told of, also of what was in memory after the last record, and whatever the clock says. Only
        // if nothing was kept at all may somebody know of later numbers: `after` looks for that.
        let seq = segment_list.last_seq().saturating_add(LIFE_NUMBERS).max(now_ms << 16);
        let live = Live { pieces: VecDeque::new(), bytes: 0, bytes_max: room.live_bytes };
        Ok(Self { segment_list, live, piece_bytes: room.piece_bytes, seq, opened_at: seq })
    }

    pub(super) fn put<D: Disk<File = F>>(&mut self, disk: &mut D, pieces: Vec<Piece>) -> Result<(), Refusal> {
        let numbered: Vec<(u64, Piece)> = (self.seq + 1..).zip(pieces).collect();
        let kept = numbered.iter().filter(|(_, piece)| !piece.live && !piece.bytes.is_empty());
        let kept: Vec<New<'_>> = kept.map(|(seq, piece)| new(*seq, piece)).collect();
        if !kept.is_empty() {
            self.segment_list.append(disk, &kept)?;
        }
        self.seq += numbered.len() as u64;
        numbered.into_iter().filter(|(_, piece)| piece.live).for_each(|(seq, piece)| self.live.add(seq, piece));
        Ok(())
    }

    /// From a place on, by task, attempt and position.
    pub(super) fn from(&self, want: &OutputRange<'_>, from: OutputPosition) -> io::Result<Output> {
        let damaged = self.segment_list.may_have_lost(want.job);
        let mut output = Output { next: from, arrived: self.seq, damaged, ..Output::default() };
        let mut bytes = 0;
        for (first, last) in want.ranges() {
            if last < from.task {
                continue;
            }
            let begin =
                if first > from.task { OutputPosition { task: first, ..OutputPosition::default() } } else { from };
            // A piece that began before the place may reach beyond it.
            let at = begin.at.saturating_sub(self.piece_bytes);
            let key = Key { job: want.job, task: begin.task, attempt: begin.attempt, at, ..Key::default() };
            let (mut told, mut lost) = (begin, None);
            let mut records = self.segment_list.from(&key);
            while let Some(found) = records.next()?.filter(|found| found.key.task <= last) {
                let (key, len) = (found.key, u64::from(found.spot.len));
                if (told.task, told.attempt) != (key.task, key.attempt) {
                    output.lose(&mut told, &mut lost, u64::MAX);
                    told = OutputPosition { task: key.task, attempt: key.attempt, at: 0 };
                }
                if key.at.saturating_add(len) <= told.at {
                    continue;
                }
                if bytes >= want.bytes || output.pieces.len() >= want.pieces {
                    output.next = told;
                    return Ok(output);
                }
                let record = found.read();
                output.lose(&mut told, &mut lost, key.at);
                let Some(record) = record else {
                    // Unless it came twice.
                    Lost::add(&mut lost, &key, found.spot.kind, len);
                    continue;
                };
                // Bytes that came twice are returned once.
                let skip = usize::try_from(told.at.saturating_sub(key.at)).unwrap_or(usize::MAX);
                let piece = piece(&key, record.kind, record.value.get(skip..).unwrap_or_default(), skip as u64);
                bytes += piece.bytes.len();
                told.at = key.at.saturating_add(len);
                output.next = told;
                output.pieces.push(piece);
            }
            output.lose(&mut told, &mut lost, u64::MAX);
        }
        output.end = true;
        Ok(output)
    }

    /// In the order of arrival, what came after `after`.
    pub(super) fn after(&self, want: &OutputRange<'_>, after: u64) -> io::Result<Output> {
        // Such a number was given when the clock was ahead of what it is now. All that came since the archive was opened is news.
        let after = if after > self.seq { self.opened_at } else { after };
        let mut found: Vec<(u64, Piece)> = Vec::new();
        let mut bytes = 0;
        let upto = self.segment_list.by_arrival(want.job, after, |key, spot, value| {
            if want.has(key.task) {
                if bytes >= want.bytes || found.len() >= want.pieces {
                    return false;
                }
                bytes += value.map_or(0, <[u8]>::len);
                found.push((
                    key.seq,
                    match value {
                        Some(value) => piece(key, spot.kind, value, 0),
                        None => Piece { lost: spot.len.into(), ..piece(key, spot.kind, &[], 0) },
                    },
                ));
            }
            true
        })?;
        let mut arrived = upto.unwrap_or(self.seq);
        for (seq, piece) in self.live.after(after).take_while(|(seq, _)| *seq <= arrived) {
            if piece.job == want.job && want.has(piece.task) {
                if bytes >= want.bytes.saturating_mul(2) {
                    arrived = seq - 1;
                    break;
                }
                bytes += piece.bytes.len();
                found.push((*seq, piece.clone()));
            }
        }
        found.retain(|(seq, _)| *seq <= arrived);
        found.sort_by_key(|(seq, _)| *seq);
        let pieces = found.into_iter().map(|(_, piece)| piece).collect();
        let (end, damaged) = (upto.is_none() && arrived == self.seq, self.segment_list.may_have_lost(want.job));
        Ok(Output { pieces, arrived, end, damaged, ..Output::default() })
    }

    pub(super) fn forget<D: Disk<File = F>>(&mut self, disk: &mut D, job: u64) -> Result<(), Refusal> {
        self.live.forget(job);
        self.segment_list.forget(disk, job)
    }
}

/// A part of what an attempt wrote that cannot be read, unless a record that follows has it as well.
#[derive(Clone, Copy, Debug)]
struct Lost {
    key: Key,
    kind: Kind,
    until: u64,
}

impl Lost {
    /// A record of that length cannot be read, either.
    fn add(lost: &mut Option<Self>, key: &Key, kind: Kind, len: u64) {
        let until = key.at.saturating_add(len);
        match lost {
            Some(lost) => lost.until = lost.until.max(until),
            None => *lost = Some(Self { key: *key, kind, until }),
        }
    }
}

impl Output {
    /// Tells of what is lost before `before`, of what was told up to a place.
    fn lose(&mut self, told: &mut OutputPosition, lost: &mut Option<Lost>, before: u64) {
        let Some(Lost { key, kind, until }) = *lost else { return };
        let (from, end) = (key.at.max(told.at), until.min(before));
        if from < end {
            self.pieces.push(Piece { at: from, lost: end - from, ..piece(&key, kind, &[], 0) });
            told.at = end;
            self.next = *told;
        }
        if until <= before {
            *lost = None;
        }
    }
}

impl Live {
    fn add(&mut self, seq: u64, piece: Piece) {
        self.bytes += weight(&piece);
        self.pieces.push_back((seq, piece));
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.pieces.pop_front()
        {
            self.bytes -= weight(&oldest);
        }
    }

    fn after(&self, after: u64) -> impl Iterator<Item = &(u64, Piece)> {
        let from = self.pieces.partition_point(|(seq, _)| *seq <= after);
        self.pieces.range(from..)
    }

    fn forget(&mut self, job: u64) {
        self.pieces.retain(|(_, piece)| piece.job != job);
        self.bytes = self.pieces.iter().map(|(_, piece)| weight(piece)).sum();
    }
}

const fn weight(piece: &Piece) -> usize {
    piece.bytes.len() + size_of::<(u64, Piece)>()
}

fn new(seq: u64, piece: &Piece) -> New<'_> {
    let Piece { job, task, attempt, stderr, at, live: _, bytes, lost: _ } = piece;
    let key = Key { job: *job, task: *task, attempt: *attempt, item: 0, at: *at, seq };
    New { key, kind: if *stderr { Kind::Stderr } else { Kind::Stdout }, name: &[], value: bytes }
}

fn piece(key: &Key, kind: Kind, bytes: &[u8], skipped: u64) -> Piece {
    let Key { job, task, attempt, at, .. } = *key;
    let (stderr, at) = (kind == Kind::Stderr, at.saturating_add(skipped));
    Piece { job, task, attempt, stderr, at, live: false, bytes: bytes.to_vec(), lost: 0 }
}
