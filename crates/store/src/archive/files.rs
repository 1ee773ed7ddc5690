//! Result files of tasks. A file is there when its last piece is; of two with the same name the one of the later
//! attempt counts, and of one attempt the one that was begun later.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::record::{Key, Kind};
use super::segment_list::{FoundRecord, New, SegmentList, Size};
use super::{RESULT, Refusal, Room};
use crate::disk::{Disk, DiskFile};

/// Files that are being written. More: the one that was left alone for the longest must be begun again.
const OPEN_MAX: usize = 4_096;
/// Names of one task's files that are looked at. More: the rest is not there.
const NAMES_MAX: usize = 20_000;

/// A piece of a file.
#[derive(Clone, Copy, Debug)]
pub struct FilePiece<'a> {
    /// The number of the job.
    pub job: u64,
    /// The number of the task.
    pub task: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The file's name.
    pub name: &'a str,
    /// Where the piece begins.
    pub at: u64,
    /// The file ends with it.
    pub last: bool,
    /// The next bytes of the file.
    pub bytes: &'a [u8],
}

/// A file that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    /// The number of the task.
    pub task: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The file's name.
    pub name: String,
    /// The size of the whole file.
    pub size: u64,
    /// It is lost to damage; its name is what can be read of it.
    pub lost: bool,
}

/// A part of the files that tasks of a job brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileList {
    /// By task and name.
    pub rows: Vec<FileRow>,
    /// There are more.
    pub more: bool,
    /// A part of the archive cannot be read that may have held more files of this job.
    pub damaged: bool,
}

/// All results.
#[derive(Debug)]
pub(super) struct Files<F> {
    pub(super) segment_list: SegmentList<F>,
    /// Those being written, by job, task, attempt and name.
    open: BTreeMap<(u64, u32, u32, String), Open>,
    piece_bytes: u64,
    seq: u64,
    /// The file that was read last, and where it is.
    last_read: Option<((u64, u32, String), WholeFile)>,
}

/// A file being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// A number that tells this upload of the file from others.
    item: u64,
    /// Bytes that are there.
    have: u64,
    /// When it was written to last, in arrivals.
    used: u64,
}

/// A file that is there.
#[derive(Clone, Copy, Debug)]
struct WholeFile {
    attempt: u32,
    item: u64,
    size: u64,
    /// Its last piece cannot be read.
    lost: bool,
}

impl<F: DiskFile> Files<F> {
    pub(super) fn open<D: Disk<File = F>>(disk: &mut D, room: &Room, jobs: &BTreeSet<u64>) -> io::Result<Self> {
        let segment_list = SegmentList::open(disk, RESULT, Size::of(room, room.result_bytes, false), !room.salt, jobs)?;
        let seq = segment_list.last_seq();
        Ok(Self { segment_list, open: BTreeMap::new(), piece_bytes: room.piece_bytes, seq, last_read: None })
    }

    pub(super) fn put<D: Disk<File = F>>(&mut self, disk: &mut D, piece: &FilePiece<'_>) -> Result<(), Refusal> {
        let FilePiece { job, task, attempt, name, at, last, bytes } = *piece;
        let id = (job, task, attempt, name.to_owned());
        let end = at.checked_add(bytes.len() as u64).ok_or(Refusal::WrongPlace)?;
        let seq = self.seq + 1;
        let item = match self.open.get(&id) {
            // From the beginning on; whatever was there of it is not.
            _ if at == 0 => seq,
            Some(open) if at == open.have => open.item,
            // It came before, and the answer did not arrive.
            Some(open) if end <= open.have && !last => return Ok(()),
            _ => return Err(Refusal::WrongPlace),
        };
        let key = Key { job, task, attempt, item, at, seq };
        let kind = if last { Kind::Last } else { Kind::Piece };
        self.segment_list.append(disk, &[New { key, kind, name: name.as_bytes(), value: bytes }])?;
        self.seq = seq;
        if last {
            self.open.remove(&id);
            self.last_read = None;
            return Ok(());
        }
        self.open.insert(id, Open { item, have: end, used: seq });
        if self.open.len() > OPEN_MAX
            && let Some(idle) = self.open.iter().min_by_key(|(_, open)| open.used).map(|(id, _)| id.clone())
        {
            self.open.remove(&idle);
        }
        Ok(())
    }

    /// Files of a job by task and name, those after `after`.
    pub(super) fn list(&self, job: u64, after: Option<(u32, &str)>, limit: usize) -> io::Result<FileList> {
        let mut rows = Vec::new();
        let from = Key { job, task: after.map_or(0, |(task, _)| task), ..Key::default() };
        let mut records = self.segment_list.from(&from);
        let mut of_task: BTreeMap<String, WholeFile> = BTreeMap::new();
        let mut task = from.task;
        let mut flush = |task: u32, of_task: &mut BTreeMap<String, WholeFile>| {
            let new = |name: &str| after.is_none_or(|(before, last)| (task, name) > (before, last));
            let found = std::mem::take(of_task).into_iter().filter(|(name, _)| new(name));
            let row = |(name, whole): (String, WholeFile)| {
                let WholeFile { attempt, size, lost, .. } = whole;
                FileRow { task, attempt, name, size, lost }
            };
            rows.extend(found.map(row));
            rows.len() > limit
        };
        while let Some(found) = records.next()? {
            if found.key.task != task {
                if flush(task, &mut of_task) {
                    break;
                }
                task = found.key.task;
            }
            if found.spot.kind == Kind::Last && of_task.len() < NAMES_MAX {
                let (name, whole) = named(&found);
                // Later attempts, and later writings, come later.
                of_task.insert(name.unwrap_or_else(|| format!("unreadable-name-{}", found.key.item)), whole);
            }
        }
        flush(task, &mut of_task);
        let (more, damaged) = (rows.len() > limit, self.segment_list.may_have_lost(job));
        rows.truncate(limit);
        Ok(FileList { rows, more, damaged })
    }

    /// A piece of a file, and the size of the whole.
    pub(super) fn read(&mut self, job: u64, task: u32, name: &str, at: u64) -> Result<(Vec<u8>, u64), Refusal> {
        let id = (job, task, name.to_owned());
        let known = self.last_read.as_ref().filter(|(last, _)| *last == id).map(|(_, whole)| *whole);
        let found = match known {
            Some(whole) => Some(whole),
            None => self.find(job, task, name).map_err(Refusal::of)?,
        };
        let Some(whole) = found else { return Err(Refusal::NotFound) };
        if whole.lost {
            return Err(Refusal::Damaged);
        }
        self.last_read = Some((id, whole));
        if at >= whole.size {
            return Ok((Vec::new(), whole.size));
        }
        let from = Key {
            job,
            task,
            attempt: whole.attempt,
            item: whole.item,
            at: at.saturating_sub(self.piece_bytes),
            seq: 0,
        };
        let mut records = self.segment_list.from(&from);
        while let Some(found) = records.next().map_err(Refusal::of)? {
            let key = found.key;
            if (key.task, key.attempt, key.item) != (task, whole.attempt, whole.item) || key.at > at {
                break;
            }
            if key.at + u64::from(found.spot.len) > at {
                // The same piece may be there twice, after a segment was written anew.
                let Some(record) = found.read() else { continue };
                let skip = usize::try_from(at - key.at).unwrap_or(usize::MAX);
                return Ok((record.value.get(skip..).unwrap_or_default().to_vec(), whole.size));
            }
        }
        Err(Refusal::Damaged)
    }

    fn find(&self, job: u64, task: u32, name: &str) -> io::Result<Option<WholeFile>> {
        let mut records = self.segment_list.from(&Key { job, task, ..Key::default() });
        let mut latest = None;
        while let Some(found) = records.next()?.filter(|found| found.key.task == task) {
            if found.spot.kind == Kind::Last
                && let (Some(of), whole) = named(&found)
                && of == name
            {
                latest = Some(whole);
            }
        }
        Ok(latest)
    }

    pub(super) fn forget<D: Disk<File = F>>(&mut self, disk: &mut D, job: u64) -> Result<(), Refusal> {
        self.open.retain(|(of, ..), _| *of != job);
        self.last_read = None;
        self.segment_list.forget(disk, job)
    }
}

/// The file that ends with this piece, and its name, if that can be read.
fn named<F: DiskFile>(found: &FoundRecord<'_, F>) -> (Option<String>, WholeFile) {
    let FoundRecord { key, spot, .. } = found;
    let (size, lost) = (key.at.saturating_add(spot.len.into()), false);
    let whole = WholeFile { attempt: key.attempt, item: key.item, size, lost };
    match found.read() {
        Some(record) => (String::from_utf8(record.name).ok(), whole),
        None => (found.name(), WholeFile { lost: true, ..whole }),
    }
}
