//! Stored records of jobs and tasks, as plain values.

use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::job::{JobId, JobSpec, TaskState};

/// Tasks whose ends are stored together.
pub const CHUNK_TASKS: u32 = 1_024;

/// A job as it is stored: what was asked for, and what was said about all of its tasks since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The description by its submitter. Its items have a record of their own.
    pub spec: Arc<JobSpec>,
    /// When it came, in Unix milliseconds.
    pub submitted_unix_ms: u64,
    /// Nothing of it is started.
    pub held: bool,
    /// Ranges of places, both ends included, that were cancelled: a task there that has not ended otherwise is.
    pub cancelled: Vec<(u32, u32)>,
    /// When the last of them were, in Unix milliseconds.
    pub cancelled_unix_ms: Option<u64>,
    /// When its first task was given to a worker, in Unix milliseconds: the ends of those that are retried are gone.
    pub started_unix_ms: Option<u64>,
    /// Failed tasks that do not count for what may fail.
    pub forgiven: u32,
    /// Which of the jobs it comes after had ended as it wants: bit by bit, in their order. They may be retried since.
    pub passed: u16,
    /// Which of them ended otherwise, so that it was cancelled.
    pub missed: u16,
}

/// A task as it is stored. One without a record has not been started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRecord {
    /// It waits for its next attempt.
    Waiting {
        /// How often it was tried.
        tried: AttemptCounts,
        /// When it is due, in Unix milliseconds; 0: at once.
        due_unix_ms: u64,
    },
    /// It was given to a worker.
    Running {
        /// How often it was tried, this time included.
        tried: AttemptCounts,
        /// The key of the worker over all its connections.
        key: Arc<str>,
        /// The worker's name, for people.
        worker: Arc<str>,
        /// When, in Unix milliseconds.
        started_unix_ms: u64,
    },
    /// It is over.
    Ended(TaskEnd),
}

/// How often a task was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// The number of its latest attempt.
    pub attempt: u32,
    /// Attempts that failed.
    pub failures: u16,
    /// Attempts whose worker was lost.
    pub losses: u8,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEnd {
    /// Finished, failed or cancelled.
    pub state: TaskState,
    /// The number of its last attempt.
    pub attempt: u32,
    /// The worker of that, by its name.
    pub worker: Arc<str>,
    /// When that began, in Unix milliseconds.
    pub started_unix_ms: u64,
    /// When the task ended.
    pub ended_unix_ms: u64,
    /// The exit status of its program.
    pub exit_code: Option<i32>,
    /// The signal that ended its program.
    pub signal: Option<i32>,
    /// The worker's text about a failure; may be empty.
    pub status: Arc<str>,
}

/// How the tasks of a chunk ended, once all of them have. A record that a task has beside this is newer: it was retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRecord {
    /// By place, from the chunk's first on.
    pub tasks: Vec<ShortEnd>,
    /// Workers that they name.
    pub workers: Vec<Arc<str>>,
    /// Texts of failures, by place within the chunk.
    pub statuses: Vec<(u16, Arc<str>)>,
}

/// How a task ended, in 16 bytes: a million of them are kept in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortEnd {
    /// 1 finished, 2 failed, 3 cancelled; 0: not here, it was cancelled while it waited. Plus 4 with an exit code, 8 with
    /// a signal.
    pub bits: u8,
    /// The signal that ended the program, if `bits` has one.
    pub signal: u8,
    /// The last attempt; 65,535 if there were more.
    pub attempt: u16,
    /// Which of the workers, from 1 on; 0: unknown.
    pub worker: u16,
    /// The exit code; the nearest that fits.
    pub exit_code: i16,
    /// When the last attempt began after the job came: milliseconds with the highest bit set, hundredths of a second without.
    pub began: u32,
    /// How long it took, in milliseconds.
    pub took_ms: u32,
}

const STATE: u8 = 3;
const EXIT_CODE: u8 = 4;
const SIGNAL: u8 = 8;
/// Set in `began`: the other bits are milliseconds. Those of 24 days fit; what began later is told in hundredths of a second.
const BEGAN_IN_MS: u32 = 1 << 31;
/// Milliseconds in a hundredth of a second.
const HUNDREDTH_MS: u64 = 10;

impl ShortEnd {
    /// The same in short, for a job that came at that moment.
    pub(super) fn of(end: &TaskEnd, worker: u16, submitted_unix_ms: u64) -> Self {
        let state = match end.state {
            TaskState::Finished => 1,
            TaskState::Failed => 2,
            TaskState::Cancelled => 3,
            TaskState::Waiting | TaskState::Running => unreachable!("it has ended"),
        };
        let exit_code = if end.exit_code.is_some() { EXIT_CODE } else { 0 };
        let signal = if end.signal.is_some() { SIGNAL } else { 0 };
        let began_ms = end.started_unix_ms.saturating_sub(submitted_unix_ms);
        let began = match u32::try_from(began_ms) {
            Ok(ms) if ms < BEGAN_IN_MS => ms | BEGAN_IN_MS,
            _ => u32::try_from(began_ms / HUNDREDTH_MS).unwrap_or(u32::MAX).min(BEGAN_IN_MS - 1),
        };
        Self {
            bits: state | exit_code | signal,
            signal: end.signal.map_or(0, |signal| u8::try_from(signal.max(0)).unwrap_or(u8::MAX)),
            attempt: u16::try_from(end.attempt).unwrap_or(u16::MAX),
            worker,
            exit_code: end.exit_code.map_or(0, |code| {
                let fitting = code.clamp(i32::from(i16::MIN), i32::from(i16::MAX));
                i16::try_from(fitting).expect("clamped")
            }),
            began,
            took_ms: u32::try_from(end.ended_unix_ms.saturating_sub(end.started_unix_ms)).unwrap_or(u32::MAX),
        }
    }

    /// A task that was cancelled while it waited for another attempt.
    pub(super) fn cancelled_after(attempt: u32) -> Self {
        Self { attempt: u16::try_from(attempt).unwrap_or(u16::MAX), ..Self::default() }
    }

    /// Whether a version of ours could have written that.
    pub const fn is_sound(&self) -> bool {
        let known = self.bits & !(STATE | EXIT_CODE | SIGNAL) == 0;
        known && (self.bits & STATE != 0 || self.bits == 0)
    }

    /// How it ended; `None`: not told here.
    pub const fn state(&self) -> Option<TaskState> {
        match self.bits & STATE {
            1 => Some(TaskState::Finished),
            2 => Some(TaskState::Failed),
            3 => Some(TaskState::Cancelled),
            _ => None,
        }
    }

    pub(super) fn exit_code(&self) -> Option<i32> {
        (self.bits & EXIT_CODE != 0).then_some(i32::from(self.exit_code))
    }

    pub(super) fn signal(&self) -> Option<i32> {
        (self.bits & SIGNAL != 0).then_some(i32::from(self.signal))
    }

    pub(super) fn started_unix_ms(&self, submitted_unix_ms: u64) -> u64 {
        let unit_ms = if self.began & BEGAN_IN_MS != 0 { 1 } else { HUNDREDTH_MS };
        submitted_unix_ms.saturating_add(u64::from(self.began & !BEGAN_IN_MS) * unit_ms)
    }

    pub(super) fn ended_unix_ms(&self, submitted_unix_ms: u64) -> u64 {
        self.started_unix_ms(submitted_unix_ms).saturating_add(u64::from(self.took_ms))
    }
}

/// Everything about jobs that outlived the broker's last run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredJobs {
    /// The highest number of a removed job.
    pub last: u64,
    /// Jobs.
    pub jobs: Vec<(JobId, JobRecord)>,
    /// Items of jobs.
    pub items: Vec<(JobId, Bytes)>,
    /// Tasks, by job and place.
    pub tasks: Vec<(JobId, u32, TaskRecord)>,
    /// Chunks, by job and number.
    pub chunks: Vec<(JobId, u32, ChunkRecord)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_at(started_unix_ms: u64, ended_unix_ms: u64) -> TaskEnd {
        let (worker, status) = (Arc::default(), Arc::default());
        let (state, attempt, exit_code, signal) = (TaskState::Finished, 1, None, None);
        TaskEnd { state, attempt, worker, started_unix_ms, ended_unix_ms, exit_code, signal, status }
    }

    /// Tasks that follow each other on a slot do not seem to overlap: moments are kept to the millisecond, and those that are too
    /// late for it to a hundredth of a second.
    #[test]
    fn moments_are_kept_as_they_are() {
        const CAME: u64 = 1_700_000_000_003;
        const DAY_MS: u64 = 86_400_000;
        let table =
            [(0, 0), (1, 1), (1_239, 1_239), (24 * DAY_MS + 7, 24 * DAY_MS + 7), (25 * DAY_MS + 7, 25 * DAY_MS)];
        for (began, kept) in table {
            let short = ShortEnd::of(&end_at(CAME + began, CAME + began + 17), 0, CAME);
            assert_eq!(short.started_unix_ms(CAME), CAME + kept, "{began}");
            assert_eq!(short.ended_unix_ms(CAME), CAME + kept + 17, "{began}");
        }
        let late = end_at(u64::MAX, u64::MAX);
        assert!(ShortEnd::of(&late, 0, CAME).started_unix_ms(CAME) > CAME + 200 * DAY_MS);
        let before = ShortEnd { began: 123, ..ShortEnd::default() };
        assert_eq!(before.started_unix_ms(CAME), CAME + 1_230, "as earlier versions wrote it");
    }
}
