//! One job: where each of its tasks is. A task that has not begun costs nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use turno_proto::model::job::{After, JobId, JobSpec, JobState, TaskCounts, TaskState};
use turno_proto::model::{ConnId, Mono};

use super::ended::{Ended, split};
use super::labels::{Labels, labels_of_job};
use super::order::Turn;
use super::ranges::Ranges;
use super::record::{CHUNK_TASKS, JobRecord, TaskEnd, Tried};

/// A job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) spec: Arc<JobSpec>,
    pub(crate) name: Arc<str>,
    /// What a hand must have.
    pub(crate) labels: Labels,
    pub(crate) submitted_unix_ms: u64,
    /// It is on its way to the disk; these wait for it.
    pub(crate) storing: Option<Vec<(ConnId, u32)>>,
    /// It is being removed.
    pub(crate) removing: bool,
    pub(crate) held: bool,
    /// Whether it shall be, by calls on their way to the disk, in order. Nothing is started meanwhile.
    pub(crate) holds: VecDeque<bool>,
    /// Jobs before it that have not ended.
    pub(crate) after: Vec<After>,
    /// Places of tasks that may be started.
    pub(crate) waiting: Ranges,
    /// Those whose next attempt is not due.
    pub(crate) delayed: BTreeMap<u32, Mono>,
    pub(crate) running: BTreeMap<u32, Running>,
    /// How often tasks were tried that have not ended and had an attempt before.
    pub(crate) tried: BTreeMap<u32, Tried>,
    /// Those that are cancelled once that is stored.
    pub(crate) cancelling: Ranges,
    /// What each cancel on its way to the disk was asked to end, in order.
    pub(crate) asking: VecDeque<Ranges>,
    /// All that cancels were asked to end: what of it has not ended otherwise is cancelled.
    pub(crate) asked: Ranges,
    pub(crate) asked_unix_ms: Option<u64>,
    /// Tasks that were cancelled while they waited.
    pub(crate) cancelled: Ranges,
    /// Tasks that had begun and ended.
    pub(crate) ended: Ended,
    /// Tasks that have a record of their own on disk, or on its way there.
    pub(crate) stored: Ranges,
    /// When its first task was given to a worker.
    pub(crate) started_unix_ms: Option<u64>,
    pub(crate) ended_unix_ms: Option<u64>,
    /// Its place among the jobs that something can be started of.
    pub(crate) placed: Option<Turn>,
}

/// A task that a worker has, or had.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) attempt: u32,
    /// The connection whose slots it takes; `None` if that is gone.
    pub(crate) conn: Option<ConnId>,
    /// What its worker is known by.
    pub(crate) key: Arc<str>,
    /// Its worker's name.
    pub(crate) worker: Arc<str>,
    pub(crate) started_unix_ms: u64,
    pub(crate) phase: Phase,
    pub(crate) stop: Option<Stop>,
    /// How it ended, while that is on its way to the disk.
    pub(crate) ending: Option<Box<Ending>>,
    /// When it has had its time.
    pub(crate) limit: Option<Mono>,
    /// When it counts as lost.
    pub(crate) gone: Option<Mono>,
}

/// How far an offer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its start is on its way to the disk; the worker knows nothing of it.
    Storing,
    /// The worker has not answered.
    Offered,
    /// It was accepted.
    Runs,
}

/// Why a task shall stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Cancel,
    TimeLimit,
}

/// The end of an attempt.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    /// Its worker still has its process, and tells when that is gone.
    pub(crate) keeps_slots: bool,
    /// Updates to be acknowledged.
    pub(crate) requests: Vec<(ConnId, u32)>,
}

/// What comes after an attempt.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Ended(TaskEnd),
    /// Another one.
    Again {
        tried: Tried,
        due: Mono,
    },
}

impl Job {
    pub(crate) fn new(id: JobId, spec: Arc<JobSpec>, submitted_unix_ms: u64) -> Self {
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
            running: BTreeMap::new(),
            tried: BTreeMap::new(),
            cancelling: Ranges::default(),
            asking: VecDeque::new(),
            asked: Ranges::default(),
            asked_unix_ms: None,
            cancelled: Ranges::default(),
            ended: Ended::default(),
            stored: Ranges::default(),
            started_unix_ms: None,
            ended_unix_ms: None,
            placed: None,
            spec,
        }
    }

    pub(crate) fn tried(&self, place: u32) -> Tried {
        self.tried.get(&place).copied().unwrap_or_default()
    }

    /// These tasks are not tried again.
    pub(crate) fn forget_tries(&mut self, first: u32, last: u32) {
        let tried: Vec<u32> = self.tried.range(first..=last).map(|(place, _)| *place).collect();
        for place in tried {
            self.tried.remove(&place);
        }
    }

    pub(crate) fn counts(&self) -> TaskCounts {
        let delayed = u32::try_from(self.delayed.len()).expect("tasks are limited");
        TaskCounts {
            waiting: self.waiting.len() + delayed + self.cancelling.len(),
            running: u32::try_from(self.running.len()).expect("tasks are limited"),
            finished: self.ended.finished,
            failed: self.ended.failed,
            cancelled: self.ended.cancelled + self.cancelled.len(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.len() + self.cancelled.len() == self.spec.array.count
    }

    pub(crate) fn state(&self) -> JobState {
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

    pub(crate) fn task_state(&self, place: u32) -> TaskState {
        if self.running.contains_key(&place) {
            return TaskState::Running;
        }
        if self.cancelled.contains(place) {
            return TaskState::Cancelled;
        }
        self.ended.get(place).and_then(|end| end.state()).unwrap_or(TaskState::Waiting)
    }

    /// Whether a task of it may be started now, were there a slot.
    pub(crate) fn is_ready(&self) -> bool {
        let barred = self.storing.is_some() || self.held || !self.holds.is_empty() || !self.after.is_empty();
        let full = self.spec.max_parallel.is_some_and(|max| self.running.len() >= max as usize);
        !barred && !full && !self.waiting.is_empty()
    }

    pub(crate) fn turn(&self) -> Turn {
        Turn::new(self.spec.priority, self.started_unix_ms.is_some(), self.id)
    }

    /// The job as it is to be stored.
    pub(crate) fn record(&self) -> JobRecord {
        let mut cancelled = self.asked.clone();
        for asked in &self.asking {
            asked.ranges().into_iter().for_each(|(first, last)| cancelled.insert_range(first, last));
        }
        JobRecord {
            spec: Arc::clone(&self.spec),
            submitted_unix_ms: self.submitted_unix_ms,
            held: self.holds.back().copied().unwrap_or(self.held),
            cancelled: cancelled.ranges(),
            cancelled_unix_ms: self.asked_unix_ms,
        }
    }

    /// Tasks of a chunk.
    pub(crate) fn chunk_len(&self, chunk: u32) -> u32 {
        (self.spec.array.count - chunk * CHUNK_TASKS).min(CHUNK_TASKS)
    }

    /// The first and last place of a chunk.
    pub(crate) fn chunk_places(&self, chunk: u32) -> (u32, u32) {
        let first = chunk * CHUNK_TASKS;
        (first, first + self.chunk_len(chunk) - 1)
    }

    /// Every task of the chunk has ended.
    pub(crate) fn is_full(&self, chunk: u32) -> bool {
        let (first, last) = self.chunk_places(chunk);
        let cancelled = if self.cancelled.is_empty() { 0 } else { self.cancelled.count_within(first, last) };
        self.ended.ended_in(chunk) + cancelled == self.chunk_len(chunk)
    }

    /// The chunk has ended, and there is something of it to be brought together on the disk.
    pub(crate) fn is_worth_writing(&self, chunk: u32) -> bool {
        let (first, last) = self.chunk_places(chunk);
        self.is_full(chunk) && self.stored.within(first, last).next().is_some()
    }

    pub(crate) fn end(&mut self, place: u32, end: &TaskEnd) {
        let (chunk, _) = split(place);
        let tasks = self.chunk_len(chunk);
        self.ended.add(place, tasks, end, self.submitted_unix_ms);
    }
}
