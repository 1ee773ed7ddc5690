//! Inspection of a directory that may be damaged: its state, and the intact part.
//!
//! Nothing is written, created or locked. While a broker runs on the directory, what is read may change meanwhile.

use std::collections::BTreeMap;

use super::error::OpenError;
use super::format::First;
use super::place::RecordPlace;
use super::reading::Reader;
use super::recovery::{SIGN, read_first, read_log};
use super::segment::{Batches, LogSegment, slot_of};
use super::tables::Tables;
use super::window::Window;
use crate::batch::Op;
use crate::disk::{Disk, DiskFile};
use crate::error::ReadError;
use crate::store::{CommitNo, Epoch, RecordNo, Space, Stored, Usage};

/// The result of inspecting a directory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The log as it would be opened.
    pub log: Result<Log, OpenError>,
    /// The lost and the intact parts, if opening it would be refused because of damage.
    pub damage: Option<Damage>,
}

/// A log that can be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Log {
    /// Segments that count. None: there is no store yet.
    pub segments: u64,
    /// Batches in them.
    pub batches: u64,
    /// Records in those, dead ones included.
    pub records: u64,
    /// Live records, and the space that they take.
    pub usage: Usage,
    /// The number of the last commit.
    pub last_commit: CommitNo,
    /// The epoch of the last owner.
    pub epoch: Epoch,
    /// The file and the byte where the log ends.
    pub end: (String, u64),
    /// Whether a batch was begun there and not completed. Nobody was told of it; the next batch is written over it.
    pub is_torn: bool,
}

/// The damage of a log, and its intact part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Bytes that held batches and no longer do.
    pub places: Vec<DamagedPart>,
    /// Segments that are in no file of the directory.
    pub missing: Vec<u64>,
    /// Batches that are gone. With segments missing at either end of the log there may be more.
    pub lost_batches: u64,
    /// Batches that are whole.
    pub whole_batches: u64,
    /// Records in those, dead ones included.
    pub whole_records: u64,
}

/// A damaged part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPart {
    /// The file's name in the directory.
    pub file: String,
    /// Where the damage begins.
    pub from: u64,
    /// Where a whole batch follows, or the segment ends.
    pub until: u64,
}

/// The live records of a log that can be opened.
#[derive(Debug)]
pub struct Contents<'a, F> {
    tables: &'a Tables,
    log: &'a [LogSegment<F>],
}

impl<F: DiskFile> Contents<'_, F> {
    /// The keyed records of one table, in the order of their keys.
    pub fn keyed(&self, space: Space, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), ReadError> {
        let mut reader = Reader::default();
        for (_, key, place) in self.tables.keyed().filter(|(of, ..)| *of == space) {
            if let Op::Set { value, .. } = reader.read(self.segment(place), place)? {
                visit(key, value);
            }
        }
        Ok(())
    }

    /// Numbered records, those of them that live.
    pub fn numbered(&self, records: &[RecordNo], visit: &mut dyn FnMut(RecordNo, Stored<'_>)) -> Result<(), ReadError> {
        let mut reader = Reader::default();
        for record in records {
            let Some(place) = self.tables.find(*record) else { continue };
            if let Op::Put { space, value, .. } = reader.read(self.segment(place), place)? {
                visit(*record, (space, value));
            }
        }
        Ok(())
    }

    fn segment(&self, place: RecordPlace) -> &LogSegment<F> {
        let found = self.log.iter().find(|segment| segment.slot == place.slot());
        found.expect("a live record is in a segment of the log")
    }
}

/// Looks at the store in a directory.
pub fn inspect<D: Disk>(disk: &mut D) -> Inspection {
    inspect_with(disk, |_| {})
}

/// The same, and what lives there can be read.
pub fn inspect_with<D: Disk>(disk: &mut D, read: impl FnOnce(&Contents<'_, D::File>)) -> Inspection {
    let log = look(disk, read);
    let damage = match &log {
        // A second failure tells no more than the first.
        Err(OpenError::Damaged { .. }) => survey(disk).ok(),
        _ => None,
    };
    Inspection { log, damage }
}

/// The names of a store's files, and the newest format among them; 0 if there is none. Reads no more than headers, so
/// that it can be asked while a broker runs.
pub fn inspect_headers<D: Disk>(disk: &mut D) -> Result<(Vec<String>, u32), OpenError> {
    let mut names = disk.names().map_err(OpenError::io("list", "the directory"))?;
    names.retain(|name| name == SIGN || slot_of(name).is_some());
    names.sort();
    let mut newest = 0;
    for (name, slot) in names.iter().filter_map(|name| Some((name, slot_of(name)?))) {
        match read_first(disk, name, slot) {
            Ok((_, First::Newer(format))) => newest = newest.max(format),
            Ok((_, First::Header(_))) => newest = newest.max(super::FORMAT),
            Ok((_, First::Blank | First::Damaged)) => {}
            // Removed meanwhile.
            Err(OpenError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok((names, newest))
}

fn look<D: Disk>(disk: &mut D, read: impl FnOnce(&Contents<'_, D::File>)) -> Result<Log, OpenError> {
    let mut window = Window::default();
    let replayed = read_log(disk, &mut window)?;
    let Some(head) = replayed.log.last() else { return Ok(Log::default()) };
    read(&Contents { tables: &replayed.tables, log: &replayed.log });
    let torn = Batches::behind(head, &mut window, replayed.point.batch).is_torn();
    let is_torn = torn.map_err(OpenError::io("read", &head.name()))?;
    let free: u64 = replayed.free.iter().map(|spare| spare.len).sum();
    let used: u64 = replayed.log.iter().map(|segment| segment.len).sum();
    let usage = Usage {
        numbered: replayed.tables.numbered_len(),
        keyed: replayed.tables.keyed_len(),
        live_bytes: replayed.tables.live_bytes(),
        disk_bytes: free + used,
        is_tight: false,
    };
    Ok(Log {
        segments: replayed.log.len() as u64,
        batches: replayed.batches,
        records: replayed.records,
        usage,
        last_commit: replayed.point.commit,
        epoch: replayed.point.epoch,
        end: replayed.end,
        is_torn,
    })
}

/// The contents of one segment, read past its damage.
#[derive(Default)]
struct Walk {
    file: String,
    /// Bytes between whole batches.
    gaps: Vec<(u64, u64)>,
    /// The numbers that its batches should have, as far as they were found.
    first: u64,
    next: u64,
    whole: u64,
    records: u64,
    tail: u64,
    is_sealed: bool,
    /// Where its last whole batch ends, and how far the file reaches.
    end: u64,
    until: u64,
}

/// Reads everything that can be read, past every damage.
fn survey<D: Disk>(disk: &mut D) -> Result<Damage, OpenError> {
    let mut names = disk.names().map_err(OpenError::io("list", "the directory"))?;
    names.sort();
    let mut damage = Damage::default();
    let mut walks: BTreeMap<u64, Walk> = BTreeMap::new();
    let mut window = Window::default();
    for (name, slot) in names.iter().filter_map(|name| Some((name, slot_of(name)?))) {
        let (spare, first) = read_first(disk, name, slot)?;
        match first {
            First::Damaged => damage.places.push(DamagedPart { file: name.clone(), from: 0, until: spare.len }),
            First::Blank | First::Newer(_) => {}
            First::Header(header) => {
                let walk = walk(&LogSegment::new(spare, header), &mut window)?;
                // The second of two files with one number cannot be told from the first: the one with more counts.
                let known = walks.entry(header.point.generation).or_default();
                if known.file.is_empty() || known.whole < walk.whole {
                    *known = walk;
                }
            }
        }
    }
    let tail = walks.values().map(|walk| walk.tail).max().unwrap_or(1);
    // Segments that no longer count cannot be damaged.
    walks.retain(|generation, _| *generation >= tail);
    drop_unused(&mut walks);
    judge(&walks, tail, &mut damage);
    Ok(damage)
}

fn walk<F: DiskFile>(segment: &LogSegment<F>, window: &mut Window) -> Result<Walk, OpenError> {
    let header = segment.header.point;
    let file = segment.name();
    let failed = |error| OpenError::io("read", &segment.name())(error);
    let mut walk = Walk { file, first: header.batch, next: header.batch, tail: header.tail, ..Walk::default() };
    let mut batches = Batches::new(segment, window);
    let mut gap = None;
    loop {
        if let Some((whole, _)) = batches.next().map_err(failed)? {
            walk.gaps.extend(gap.take().map(|from| (from, whole.start)));
            walk.whole += 1;
            walk.records += u64::from(whole.marker.count);
            walk.next = whole.marker.point.batch + 1;
            walk.tail = walk.tail.max(whole.marker.point.tail);
            walk.is_sealed = whole.marker.is_seal;
            walk.end = whole.end;
            if walk.is_sealed {
                break;
            }
        } else {
            gap = gap.or_else(|| Some(batches.at()));
            if batches.skip_damage().map_err(failed)?.is_none() {
                break;
            }
        }
    }
    walk.end = walk.end.max(super::format::HEADER_BYTES as u64);
    walk.until = segment.bytes_max().max(walk.end);
    Ok(walk)
}

/// A newest segment that was made ready and never used is no part of the log.
fn drop_unused(walks: &mut BTreeMap<u64, Walk>) {
    let mut newest = walks.iter().rev();
    if let (Some((generation, last)), Some((before, walk))) = (newest.next(), newest.next())
        && last.whole == 0
        && before + 1 == *generation
        && !walk.is_sealed
    {
        walks.pop_last();
    }
}

/// Tells what is missing between the segments and within them.
fn judge(walks: &BTreeMap<u64, Walk>, tail: u64, damage: &mut Damage) {
    let newest = walks.last_key_value();
    let until = newest.map_or(tail, |(generation, walk)| generation + u64::from(walk.is_sealed));
    damage.missing = (tail..=until).filter(|generation| !walks.contains_key(generation)).collect();
    for (generation, walk) in walks {
        let spoilt = |(from, until): (u64, u64)| DamagedPart { file: walk.file.clone(), from, until };
        damage.places.extend(walk.gaps.iter().copied().map(spoilt));
        let is_newest = newest.is_some_and(|(newest, _)| newest == generation);
        if !walk.is_sealed && !is_newest {
            damage.places.push(spoilt((walk.end, walk.until)));
        }
        damage.whole_batches += walk.whole;
        damage.whole_records += walk.records;
    }
    // Batches have numbers without gaps: those between the first and the last that were not found are gone.
    let first = walks.values().next().map_or(0, |walk| walk.first);
    let next = newest.map_or(0, |(_, walk)| walk.next);
    damage.lost_batches = next.saturating_sub(first).saturating_sub(damage.whole_batches);
}
