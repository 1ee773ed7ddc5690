//! Records of jobs, byte by byte. `docs/reference/storage.md` has the same.
//!
//! Numbers are little-endian, but for those in keys: rising numbers are rising keys there.

mod more;

use std::sync::Arc;

use bytes::Bytes;
use turno_engine::{AttemptCounts, CHUNK_TASKS, ChunkRecord, JobRecord, ShortEnd, StoredJobs, TaskEnd, TaskRecord};
use turno_proto::items;
use turno_proto::model::job::{After, AfterWhen, Array, JobId, JobSpec, TaskState};
use turno_proto::model::limits::PRIORITY_MAX;
use turno_store::Space;

use self::more::JobExtension;

/// Jobs, by number.
pub(super) const JOBS: Space = Space(6);
/// Tasks, by job and place.
pub(super) const TASKS: Space = Space(7);
/// Chunks of tasks that have ended, by job and number.
pub(super) const CHUNKS: Space = Space(8);
/// Items of jobs, by number.
pub(super) const ITEMS: Space = Space(9);

const HELD: u8 = 1;
const HOLD: u8 = 2;
const MAX_PARALLEL: u8 = 4;
const TIME_LIMIT: u8 = 8;
const KEY: u8 = 16;
const CANCELLED: u8 = 32;
/// Needs and tags follow, in a form of their own.
const MORE: u8 = 64;
/// The part that cannot be told from its tasks follows.
const SINCE: u8 = 128;

/// Of a job that this one comes after: it ended otherwise than it had to.
const MISSED: u8 = 128;

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const ENDED: u8 = 2;

const EXIT_CODE: u8 = 4;
const SIGNAL: u8 = 8;

pub(super) const fn job_key(job: JobId) -> [u8; 8] {
    job.0.to_be_bytes()
}

/// The key of a task or a chunk.
pub(super) fn part_key(job: JobId, part: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&job.0.to_be_bytes());
    key[8..].copy_from_slice(&part.to_be_bytes());
    key
}

/// Takes one record in at the start.
pub(super) fn take(space: Space, key: &[u8], value: &[u8], jobs: &mut StoredJobs) -> Option<()> {
    let (job, part) = key.split_first_chunk()?;
    let job = JobId(u64::from_be_bytes(*job));
    if space == JOBS {
        jobs.jobs.push((job, read_job(value).filter(|_| part.is_empty())?));
        return Some(());
    }
    if space == ITEMS {
        // The items are parsed where a task needs them.
        items::count(value).filter(|_| part.is_empty())?;
        jobs.items.push((job, Bytes::copy_from_slice(value)));
        return Some(());
    }
    let part = u32::from_be_bytes(part.try_into().ok()?);
    if space == TASKS {
        jobs.tasks.push((job, part, read_task(value)?));
    } else {
        jobs.chunks.push((job, part, read_chunk(value)?));
    }
    Some(())
}

pub(super) fn write_job(record: &JobRecord) -> Vec<u8> {
    let JobRecord { spec, submitted_unix_ms, held, cancelled, cancelled_unix_ms, .. } = record;
    let JobRecord { started_unix_ms, forgiven, passed, missed, .. } = record;
    let JobSpec { name, array, work, slots, priority, retries, backoff_ms, after, key, .. } = &**spec;
    let bit = |bit: u8, set: bool| if set { bit } else { 0 };
    let flags = bit(HELD, *held)
        | bit(HOLD, spec.hold)
        | bit(MAX_PARALLEL, spec.max_parallel.is_some())
        | bit(TIME_LIMIT, spec.time_limit_ms.is_some())
        | bit(KEY, key.is_some())
        | bit(CANCELLED, cancelled_unix_ms.is_some())
        | bit(MORE, more::is_in(spec))
        | bit(SINCE, (*started_unix_ms, *forgiven, *passed) != (None, 0, 0));
    let mut out = Vec::with_capacity(128 + work.len());
    out.extend([flags, *priority, *retries, len_u8(after.len())]);
    out.extend(slots.to_le_bytes());
    out.extend([len_u8(name.len()), key.as_ref().map_or(0, |key| len_u8(key.len()))]);
    for number in [array.first, array.count, array.step, *backoff_ms] {
        out.extend(number.to_le_bytes());
    }
    out.extend(submitted_unix_ms.to_le_bytes());
    out.extend(spec.max_parallel.iter().flat_map(|max| max.to_le_bytes()));
    out.extend(spec.time_limit_ms.iter().flat_map(|limit| limit.to_le_bytes()));
    out.extend(cancelled_unix_ms.iter().flat_map(|at| at.to_le_bytes()));
    if flags & SINCE != 0 {
        out.extend(started_unix_ms.unwrap_or(0).to_le_bytes());
        out.extend(forgiven.to_le_bytes());
        out.extend(passed.to_le_bytes());
    }
    for (at, After { job, when }) in (0..).zip(after) {
        out.extend(job.0.to_le_bytes());
        let when = match when {
            AfterWhen::Ok => 0,
            AfterWhen::Any => 1,
            AfterWhen::Failed => 2,
        };
        let missed = u32::from(*missed).checked_shr(at).unwrap_or(0) & 1 != 0;
        out.push(when | bit(MISSED, missed));
    }
    out.extend(u32::try_from(cancelled.len()).expect("ranges are limited").to_le_bytes());
    for (first, last) in cancelled {
        out.extend(first.to_le_bytes());
        out.extend(last.to_le_bytes());
    }
    if flags & MORE != 0 {
        more::write(spec, &mut out);
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(key.as_deref().unwrap_or_default().as_bytes());
    out.extend_from_slice(work);
    out
}

/// `None` if no version of ours wrote that.
pub(super) fn read_job(bytes: &[u8]) -> Option<JobRecord> {
    let mut rest = Reader(bytes);
    let [flags, priority, retries, afters] = rest.bytes()?;
    let slots = u16::from_le_bytes(rest.bytes()?);
    let [name_len, key_len] = rest.bytes()?;
    if priority > PRIORITY_MAX || slots == 0 || (flags & KEY == 0 && key_len > 0) {
        return None;
    }
    let array = Array { first: rest.u32()?, count: rest.u32()?, step: rest.u32()? };
    array.check().ok()?;
    let backoff_ms = rest.u32()?;
    let submitted_unix_ms = rest.u64()?;
    let max_parallel = if flags & MAX_PARALLEL != 0 { Some(rest.u32()?) } else { None };
    let time_limit_ms = if flags & TIME_LIMIT != 0 { Some(rest.u64()?) } else { None };
    let cancelled_unix_ms = if flags & CANCELLED != 0 { Some(rest.u64()?) } else { None };
    let (mut started_unix_ms, mut forgiven, mut passed) = (None, 0, 0);
    if flags & SINCE != 0 {
        started_unix_ms = Some(rest.u64()?).filter(|at| *at > 0);
        (forgiven, passed) = (rest.u32()?, rest.u16()?);
    }
    let (after, missed) = read_after(&mut rest, afters)?;
    let mut cancelled = Vec::new();
    for _ in 0..rest.u32()? {
        cancelled.push((rest.u32()?, rest.u32()?));
    }
    let more = if flags & MORE != 0 { more::read(&mut rest)? } else { JobExtension::default() };
    let name = rest.text(usize::from(name_len))?.to_owned();
    let key = rest.text(usize::from(key_len))?.to_owned();
    let spec = JobSpec {
        slots,
        priority,
        max_parallel,
        time_limit_ms,
        retries,
        backoff_ms,
        after,
        hold: flags & HOLD != 0,
        key: (flags & KEY != 0).then_some(key),
        labels: more.labels,
        max_failures: more.max_failures,
        tags: more.tags,
        uploads: more.uploads,
        parts: more.parts,
        // They have a record of their own.
        items: Bytes::new(),
        name,
        array,
        work: Bytes::copy_from_slice(rest.0),
    };
    spec.numbers().check().ok()?;
    let held = flags & HELD != 0;
    let spec = Arc::new(spec);
    Some(JobRecord {
        spec,
        submitted_unix_ms,
        held,
        cancelled,
        cancelled_unix_ms,
        started_unix_ms,
        forgiven,
        passed,
        missed,
    })
}

/// The jobs that a job comes after, and which of them ended otherwise than they had to.
fn read_after(rest: &mut Reader<'_>, count: u8) -> Option<(Vec<After>, u16)> {
    let (mut after, mut missed) = (Vec::new(), 0_u16);
    for at in 0..u32::from(count) {
        let job = JobId(rest.u64()?);
        let [byte] = rest.bytes()?;
        let when = match byte & !MISSED {
            0 => AfterWhen::Ok,
            1 => AfterWhen::Any,
            2 => AfterWhen::Failed,
            _ => return None,
        };
        if byte & MISSED != 0 {
            missed |= 1_u16.checked_shl(at)?;
        }
        after.push(After { job, when });
    }
    Some((after, missed))
}

pub(super) fn write_task(record: &TaskRecord) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    match record {
        TaskRecord::Waiting { tried, due_unix_ms } => {
            out.push(WAITING);
            write_tried(*tried, &mut out);
            out.extend(due_unix_ms.to_le_bytes());
        }
        TaskRecord::Running { tried, key, worker, started_unix_ms } => {
            out.push(RUNNING);
            write_tried(*tried, &mut out);
            out.extend(started_unix_ms.to_le_bytes());
            out.push(len_u8(key.len()));
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(worker.as_bytes());
        }
        TaskRecord::Ended(end) => {
            out.push(ENDED);
            write_end(end, &mut out);
        }
    }
    out
}

fn write_tried(tried: AttemptCounts, out: &mut Vec<u8>) {
    out.extend(tried.attempt.to_le_bytes());
    out.extend(tried.failures.to_le_bytes());
    out.push(tried.losses);
}

fn write_end(end: &TaskEnd, out: &mut Vec<u8>) {
    let state = match end.state {
        TaskState::Finished => 1,
        TaskState::Failed => 2,
        TaskState::Cancelled => 3,
        TaskState::Waiting | TaskState::Running => unreachable!("it has ended"),
    };
    let exit_code = if end.exit_code.is_some() { EXIT_CODE } else { 0 };
    let signal = if end.signal.is_some() { SIGNAL } else { 0 };
    out.push(state | exit_code | signal);
    out.extend(end.attempt.to_le_bytes());
    out.extend(end.started_unix_ms.to_le_bytes());
    out.extend(end.ended_unix_ms.to_le_bytes());
    out.extend(end.exit_code.iter().flat_map(|code| code.to_le_bytes()));
    out.extend(end.signal.iter().flat_map(|signal| signal.to_le_bytes()));
    out.push(len_u8(end.worker.len()));
    out.extend_from_slice(end.worker.as_bytes());
    out.extend_from_slice(end.status.as_bytes());
}

pub(super) fn read_task(bytes: &[u8]) -> Option<TaskRecord> {
    let mut rest = Reader(bytes);
    let record = match rest.bytes()? {
        [WAITING] => TaskRecord::Waiting { tried: rest.tried()?, due_unix_ms: rest.u64()? },
        [RUNNING] => {
            let (tried, started_unix_ms) = (rest.tried()?, rest.u64()?);
            let key = rest.short_text()?;
            TaskRecord::Running { tried, key, worker: rest.last_text()?, started_unix_ms }
        }
        [ENDED] => {
            let [bits] = rest.bytes()?;
            let state = match bits & !(EXIT_CODE | SIGNAL) {
                1 => TaskState::Finished,
                2 => TaskState::Failed,
                3 => TaskState::Cancelled,
                _ => return None,
            };
            let (attempt, started_unix_ms, ended_unix_ms) = (rest.u32()?, rest.u64()?, rest.u64()?);
            let exit_code = if bits & EXIT_CODE != 0 { Some(i32::from_le_bytes(rest.bytes()?)) } else { None };
            let signal = if bits & SIGNAL != 0 { Some(i32::from_le_bytes(rest.bytes()?)) } else { None };
            let worker = rest.short_text()?;
            let status = rest.last_text()?;
            TaskRecord::Ended(TaskEnd {
                state,
                attempt,
                worker,
                started_unix_ms,
                ended_unix_ms,
                exit_code,
                signal,
                status,
            })
        }
        _ => return None,
    };
    rest.0.is_empty().then_some(record)
}

pub(super) fn write_chunk(record: &ChunkRecord) -> Vec<u8> {
    let ChunkRecord { tasks, workers, statuses } = record;
    let mut out = Vec::with_capacity(64 + tasks.len() * 16);
    let short = |len: usize| u16::try_from(len).expect("a chunk is short").to_le_bytes();
    out.extend(short(tasks.len()));
    for ShortEnd { bits, signal, attempt, worker, exit_code, began, took_ms } in tasks {
        out.extend([*bits, *signal]);
        out.extend(attempt.to_le_bytes());
        out.extend(worker.to_le_bytes());
        out.extend(exit_code.to_le_bytes());
        out.extend(began.to_le_bytes());
        out.extend(took_ms.to_le_bytes());
    }
    out.extend(short(workers.len()));
    for worker in workers {
        out.push(len_u8(worker.len()));
        out.extend_from_slice(worker.as_bytes());
    }
    out.extend(short(statuses.len()));
    for (at, status) in statuses {
        out.extend(at.to_le_bytes());
        out.extend(short(status.len()));
        out.extend_from_slice(status.as_bytes());
    }
    out
}

pub(super) fn read_chunk(bytes: &[u8]) -> Option<ChunkRecord> {
    let mut rest = Reader(bytes);
    let len = rest.u16()?;
    if u32::from(len) > CHUNK_TASKS {
        return None;
    }
    let mut tasks = Vec::new();
    for _ in 0..len {
        let [bits, signal] = rest.bytes()?;
        let (attempt, worker) = (rest.u16()?, rest.u16()?);
        let exit_code = i16::from_le_bytes(rest.bytes()?);
        let end = ShortEnd { bits, signal, attempt, worker, exit_code, began: rest.u32()?, took_ms: rest.u32()? };
        tasks.push(Some(end).filter(ShortEnd::is_sound)?);
    }
    let mut workers = Vec::new();
    for _ in 0..rest.u16()? {
        workers.push(rest.short_text()?);
    }
    let mut statuses = Vec::new();
    for _ in 0..rest.u16()? {
        let (at, len) = (rest.u16()?, rest.u16()?);
        statuses.push((Some(at).filter(|at| *at < len_of(&tasks))?, Arc::from(rest.text(usize::from(len))?)));
    }
    rest.0.is_empty().then_some(ChunkRecord { tasks, workers, statuses })
}

fn len_of(tasks: &[ShortEnd]) -> u16 {
    u16::try_from(tasks.len()).unwrap_or(u16::MAX)
}

fn len_u8(len: usize) -> u8 {
    u8::try_from(len).expect("names and keys are limited")
}

/// The bytes that are left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn tried(&mut self) -> Option<AttemptCounts> {
        let (attempt, failures, [losses]) = (self.u32()?, self.u16()?, self.bytes()?);
        Some(AttemptCounts { attempt, failures, losses })
    }

    fn text(&mut self, len: usize) -> Option<&'a str> {
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }

    /// A text behind its length.
    fn short_text(&mut self) -> Option<Arc<str>> {
        let [len] = self.bytes()?;
        self.text(usize::from(len)).map(Arc::from)
    }

    /// All that is left.
    fn last_text(&mut self) -> Option<Arc<str>> {
        self.text(self.0.len()).map(Arc::from)
    }
}

#[cfg(test)]
mod tests;
