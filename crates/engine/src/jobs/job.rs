//! A job with the state of its tasks. A task that has not begun costs nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use turno_proto::model::job::{After, JobId, JobSpec, JobState, TaskCounts, TaskState};
use turno_proto::model::limits::JOB_AFTER_MAX;
use turno_proto::model::{ConnId, Mono};

use super::ended::{EndedTasks, split};
use super::labels::{Labels, labels_of_job};
use super::order::Turn;
use super::ranges::Ranges;
use super::received::ReceivedBytes;
use super::record::{AttemptCounts, CHUNK_TASKS, ChunkRecord, JobRecord, ShortEnd, TaskEnd};
use crate::effect::Caller;

/// A job with the state of its tasks.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) spec: Arc<JobSpec>,
    pub(super) name: Arc<str>,
    /// Labels that a job worker must have.
    pub(super) labels: Labels,
    pub(super) submitted_unix_ms: u64,
    /// It is on its way to the disk; these wait for it.
    pub(super) storing: Option<Vec<Caller>>,
    /// It is being removed.
    pub(super) removing: bool,
    pub(super) held: bool,
    /// Whether it shall be, by calls on their way to the disk, in order. Nothing is started meanwhile.
    pub(super) holds: VecDeque<bool>,
    /// Jobs before it that have not ended.
    pub(super) after: Vec<After>,
    /// Places of tasks that may be started.
    pub(super) waiting: Ranges,
    /// Those whose next attempt is not due.
    pub(super) delayed: BTreeMap<u32, Mono>,
    /// Those that may be started once the worker of an earlier attempt, which was told to stop, has let go of that.
    pub(super) leaving: BTreeSet<u32>,
    pub(super) running: BTreeMap<u32, Running>,
    /// How often tasks were tried that had an attempt before and have not ended, or were cancelled while they waited: the
    /// number of an attempt is never given out again.
    pub(super) tried: BTreeMap<u32, AttemptCounts>,
    /// Those that have ended and wait again once that is stored.
    pub(super) retrying: Ranges,
    /// Those that are cancelled once that is stored.
    pub(super) cancelling: Ranges,
    /// Cancels and retries on their way to the disk, in order.
    pub(super) asking: VecDeque<PendingChange>,
    /// All that cancels were asked to end and no retry has taken back: what of it has not ended otherwise is cancelled.
    pub(super) asked: Ranges,
    pub(super) asked_unix_ms: Option<u64>,
    /// Tasks that were cancelled while they waited.
    pub(super) cancelled: Ranges,
    /// Tasks that were started and have ended.
    pub(super) ended: EndedTasks,
    /// Tasks that have a record of their own on disk, or on its way there.
    pub(super) stored: Ranges,
    /// When its first task was given to a worker.
    pub(super) started_unix_ms: Option<u64>,
    pub(super) ended_unix_ms: Option<u64>,
    /// Failed tasks that count no longer for what may fail: there was a retry since.
    pub(super) forgiven: u32,
    /// Jobs it comes after that ended otherwise than it must: bit by bit, in the order of its spec.
    pub(super) missed: u16,
    /// Its place among the jobs that something can be started of.
    pub(super) placed: Option<Turn>,
}

/// A change of tasks that is on its way to the disk.
#[derive(Debug)]
pub(super) enum PendingChange {
    /// Those of these tasks that have not ended otherwise are cancelled.
    Cancel(Ranges),
    /// These are cancelled no longer, and so many failures do not count any more.
    Retry { lifted: Ranges, forgiven: u32 },
}

impl PendingChange {
    /// By how many ranges more what was cancelled may be told.
    pub(super) fn ranges_len(&self) -> usize {
        match self {
            Self::Cancel(ranges) | Self::Retry { lifted: ranges, .. } => ranges.ranges_len(),
        }
    }
}

/// A task that a worker has, or had.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) attempt: u32,
    /// The connection whose slots it takes; `None` if that is gone.
    pub(super) conn: Option<ConnId>,
    /// The key of its worker.
    pub(super) key: Arc<str>,
    /// Its worker's name.
    pub(super) worker: Arc<str>,
    pub(super) started_unix_ms: u64,
    pub(super) phase: Phase,
    pub(super) stop: Option<StopReason>,
    /// How it ended, while that is on its way to the disk.
    pub(super) ending: Option<Box<AttemptEnding>>,
    /// The end of its time limit.
    pub(super) limit: Option<Mono>,
    /// When it counts as lost.
    pub(super) gone: Option<Mono>,
    /// Bytes and files that its worker handed in.
    pub(super) handed_in: ReceivedBytes,
}

/// How far an offer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its start is on its way to the disk; the worker knows nothing of it.
    Storing,
    /// The worker has not answered.
    Offered,
    /// It was accepted.
    Runs,
}

/// Why a task shall stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    Cancel,
    TimeLimit,
}

/// An UPDATE that waits for its OK: the connection it came over, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UpdateId {
    pub(super) conn: ConnId,
    pub(super) request: u32,
}

/// The end of an attempt.
#[derive(Debug)]
pub(super) struct AttemptEnding {
    pub(super) outcome: Outcome,
    /// Its worker still has its process, and tells when that is gone.
    pub(super) keeps_slots: bool,
    /// Updates to be acknowledged.
    pub(super) requests: Vec<UpdateId>,
}

impl AttemptEnding {
    /// With the update that says so, if there is one.
    pub(super) fn new(outcome: Outcome, request: Option<UpdateId>) -> Self {
        Self { outcome, keeps_slots: false, requests: request.into_iter().collect() }
    }
}

/// The consequence of an attempt's end.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Ended(TaskEnd),
    /// Another one.
    Again {
        tried: AttemptCounts,
        due: Mono,
        /// How this one ended.
        end: Box<TaskEnd>,
    },
}

impl Job {
    pub(super) fn new(id: JobId, spec: Arc<JobSpec>, submitted_unix_ms: u64) -> Self {
        Self {
            id,
            name: Arc::from(spec.name.as_str()),
            labels: labels_of_job(&spec.labels),
            submitted_unix_ms,
            storing: None,
            removing: false,
            held: spec.hold,
            holds: VecDeque::new(),
            after: spec.after.clone(),
            waiting: Ranges::up_to(spec.array.count),
            delayed: BTreeMap::new(),
            leaving: BTreeSet::new(),
            running: BTreeMap::new(),
            tried: BTreeMap::new(),
            retrying: Ranges::default(),
            cancelling: Ranges::default(),
            asking: VecDeque::new(),
            asked: Ranges::default(),
            asked_unix_ms: None,
            cancelled: Ranges::default(),
            ended: EndedTasks::default(),
            stored: Ranges::default(),
            started_unix_ms: None,
            ended_unix_ms: None,
            forgiven: 0,
            missed: 0,
            placed: None,
            spec,
        }
    }

    pub(super) fn tried(&self, place: u32) -> AttemptCounts {
        self.tried.get(&place).copied().unwrap_or_default()
    }

    pub(super) fn counts(&self) -> TaskCounts {
        let later = u32::try_from(self.delayed.len() + self.leaving.len()).expect("tasks are limited");
        TaskCounts {
            waiting: self.waiting.len() + later + self.cancelling.len(),
            running: u32::try_from(self.running.len()).expect("tasks are limited"),
            finished: self.ended.finished,
            failed: self.ended.failed,
            cancelled: self.ended.cancelled + self.cancelled.len(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.len() + self.cancelled.len() == self.spec.array.count
    }

    pub(super) fn state(&self) -> JobState {
        if self.has_ended() {
            let TaskCounts { failed, cancelled, .. } = self.counts();
            return match (failed, cancelled) {
                (0, 0) => JobState::Finished,
                (0, _) => JobState::Cancelled,
                _ => JobState::Failed,
            };
        }
        match (self.held, self.started_unix_ms) {
            (true, _) => JobState::Held,
            (false, Some(_)) => JobState::Running,
            (false, None) => JobState::Waiting,
        }
    }

    pub(super) fn task_state(&self, place: u32) -> TaskState {
        if self.running.contains_key(&place) {
            return TaskState::Running;
        }
        if self.cancelled.contains(place) {
            return TaskState::Cancelled;
        }
        self.ended.get(place).and_then(|end| end.state()).unwrap_or(TaskState::Waiting)
    }

    /// Whether a task of it may be started now, were there a slot.
    pub(super) fn is_ready(&self) -> bool {
        let barred = self.storing.is_some() || self.held || !self.holds.is_empty() || !self.after.is_empty();
        let barred = barred || self.has_too_many_failures();
        let full = self.spec.max_parallel.is_some_and(|max| self.running.len() >= max as usize);
        !barred && !full && !self.waiting.is_empty()
    }

    pub(super) fn turn(&self) -> Turn {
        Turn::new(self.spec.priority, self.started_unix_ms.is_some(), self.id)
    }

    /// The job as it is to be stored.
    pub(super) fn record(&self) -> JobRecord {
        let (mut cancelled, mut forgiven) = (self.asked.clone(), self.forgiven);
        for ask in &self.asking {
            forgiven = apply(ask, &mut cancelled).unwrap_or(forgiven);
        }
        let passed =
            self.spec.after.iter().take(JOB_AFTER_MAX).enumerate().filter(|(_, one)| !self.after.contains(one));
        JobRecord {
            spec: Arc::clone(&self.spec),
            submitted_unix_ms: self.submitted_unix_ms,
            held: self.holds.back().copied().unwrap_or(self.held),
            cancelled: cancelled.ranges(),
            cancelled_unix_ms: self.asked_unix_ms,
            started_unix_ms: self.started_unix_ms,
            forgiven,
            passed: passed.map(|(at, _)| 1 << at).sum(),
            missed: self.missed,
        }
    }

    /// A job it comes after ended otherwise than it must.
    pub(super) fn miss(&mut self, one: After) {
        let at = self.spec.after.iter().take(JOB_AFTER_MAX).position(|other| *other == one);
        self.missed |= at.map_or(0, |at| 1 << at);
    }

    /// The first of those.
    pub(super) fn first_missed(&self) -> Option<After> {
        self.spec.after.get(self.missed.trailing_zeros() as usize).copied()
    }

    /// The next of what is asked for is stored.
    pub(super) fn asked_next(&mut self) {
        let ask = self.asking.pop_front().expect("cancels and retries are stored in order");
        self.forgiven = apply(&ask, &mut self.asked).unwrap_or(self.forgiven);
    }

    /// Tasks of a chunk.
    fn chunk_len(&self, chunk: u32) -> u32 {
        (self.spec.array.count - chunk * CHUNK_TASKS).min(CHUNK_TASKS)
    }

    /// The first and last place of a chunk.
    pub(super) fn chunk_places(&self, chunk: u32) -> (u32, u32) {
        let first = chunk * CHUNK_TASKS;
        (first, first + self.chunk_len(chunk) - 1)
    }

    /// Every task of the chunk has ended.
    fn is_full(&self, chunk: u32) -> bool {
        let (first, last) = self.chunk_places(chunk);
        let cancelled = if self.cancelled.is_empty() { 0 } else { self.cancelled.count_within(first, last) };
        self.ended.ended_in(chunk) + cancelled == self.chunk_len(chunk)
    }

    /// The chunk has ended, and there is something of it to be brought together on the disk.
    pub(super) fn is_worth_writing(&self, chunk: u32) -> bool {
        let (first, last) = self.chunk_places(chunk);
        let changes = self.retrying.within(first, last).next().is_some();
        self.is_full(chunk) && !changes && self.stored.within(first, last).next().is_some()
    }

    /// A chunk as it is stored, once all of it has ended; `None` if no task of it had begun.
    pub(super) fn chunk_record(&mut self, chunk: u32) -> Option<ChunkRecord> {
        let (first, last) = self.chunk_places(chunk);
        if self.tried.range(first..=last).next().is_some() {
            self.ended.open(chunk, last - first + 1);
        }
        let mut record = self.ended.chunk_record(chunk)?;
        for (place, tried) in self.tried.range(first..=last) {
            record.tasks[split(*place).1] = ShortEnd::cancelled_after(tried.attempt);
        }
        Some(record)
    }

    pub(super) fn end(&mut self, place: u32, end: &TaskEnd) {
        let (chunk, _) = split(place);
        let tasks = self.chunk_len(chunk);
        self.ended.add(place, tasks, end, self.submitted_unix_ms);
    }

    /// The latest attempt of a task that has ended or waits, 0 if it had none.
    pub(super) fn latest_attempt(&self, place: u32) -> u32 {
        self.ended.get(place).map_or_else(|| self.tried(place).attempt, |end| u32::from(end.attempt))
    }

    /// An ended task waits again.
    pub(super) fn reopen(&mut self, place: u32) {
        if self.ended.take(place).is_none() {
            self.cancelled.remove(place);
        }
    }
}

/// Adds the tasks that a change cancels. Returns the failures that count no longer, if those are others.
fn apply(ask: &PendingChange, cancelled: &mut Ranges) -> Option<u32> {
    match ask {
        PendingChange::Cancel(asked) => {
            asked.ranges().into_iter().for_each(|(first, last)| cancelled.insert_range(first, last));
            None
        }
        PendingChange::Retry { lifted, forgiven } => {
            lifted.ranges().into_iter().for_each(|(first, last)| drop(cancelled.remove_range(first, last)));
            Some(*forgiven)
        }
    }
}
