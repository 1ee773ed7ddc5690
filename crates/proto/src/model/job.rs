//! Jobs: what a submitter asks for, and what the broker tells of it.
//!
//! Moments are Unix milliseconds: a job outlives the broker's runs, and the clocks of those.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::archive::UploadId;
use super::array::list;
pub use super::array::{Array, ArrayError, Numbers};
use super::limits::PRIORITY;
pub use super::task::{AttemptView, TaskView};

/// A job's number: 1, 2, 3 … in the order of submission, never used twice by one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How the job before must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AfterWhen {
    /// With every task finished.
    Ok,
    /// In whatever way.
    Any,
    /// With a task that failed, or cancelled.
    Failed,
}

/// A job that must have ended before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Which one.
    pub job: JobId,
    /// How.
    pub when: AfterWhen,
}

/// What a submitter asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// For people, and for its tasks.
    pub name: String,
    /// Its tasks.
    pub array: Array,
    /// The parts of a list of numbers, see [`Numbers::parts`].
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "list")]
    pub parts: Vec<Array>,
    /// What its tasks do, as a MessagePack map. Only workers and what speaks to them make use of it.
    pub work: Bytes,
    /// Slots that a task takes.
    #[serde(default = "one")]
    pub slots: u16,
    /// 0 to 9, 9 first.
    #[serde(default = "usual_priority")]
    pub priority: u8,
    /// Tasks that run at a time at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// Attempts that a task may have after its first one failed.
    #[serde(default)]
    pub retries: u8,
    /// How long the second attempt waits; each one after it waits twice as long as the one before.
    #[serde(default)]
    pub backoff_ms: u32,
    /// What must have ended before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// It waits until it is released.
    #[serde(default)]
    pub hold: bool,
    /// What the submitter knows it by: another with the same one is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What each task is for, one item per task in the order of their numbers, written and read by [`crate::items`]; empty
    /// if the number says it all.
    #[serde(default, skip_serializing_if = "Bytes::is_empty")]
    pub items: Bytes,
    /// Labels that a worker must have to get a task of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// Tasks that may fail. With one more, those that have not ended are cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Files its tasks are given, kept by the broker for as long as the job is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploads: Vec<UploadId>,
}

impl JobSpec {
    /// A job of which nothing more is said than what must be; a map that says no more is read as the same.
    pub fn new(name: impl Into<String>, array: Array, work: Bytes) -> Self {
        Self {
            name: name.into(),
            array,
            parts: Vec::new(),
            work,
            slots: one(),
            priority: PRIORITY,
            max_parallel: None,
            time_limit_ms: None,
            retries: 0,
            backoff_ms: 0,
            after: Vec::new(),
            hold: false,
            key: None,
            items: Bytes::new(),
            labels: Vec::new(),
            max_failures: None,
            tags: Vec::new(),
            uploads: Vec::new(),
        }
    }

    /// The numbers of its tasks.
    pub fn numbers(&self) -> Numbers<'_> {
        Numbers { array: self.array, parts: &self.parts }
    }
}

const fn one() -> u16 {
    1
}

const fn usual_priority() -> u8 {
    PRIORITY
}

/// What the tasks of a job do: the map in [`JobSpec::work`], written and read by [`crate::work`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs; empty: where its worker does, or in a directory of its own if it is given files or brings some back.
    pub cwd: String,
    /// Added to the environment of its worker.
    pub env: Vec<(String, String)>,
    /// Where `cwd` does not exist at a worker, the task runs in a directory of its own: nobody asked for that place, it
    /// is only where the job was submitted.
    #[serde(skip_serializing_if = "is_default")]
    pub cwd_optional: bool,
    /// Words, directory and environment are meant as they are: `{}` stands for nothing else.
    #[serde(skip_serializing_if = "is_default")]
    pub verbatim: bool,
    /// `argv` is one line for `sh -c`.
    #[serde(skip_serializing_if = "is_default")]
    pub shell: bool,
    /// Names for the fields of an item. Without them an item has one field, and `{}` stands for it.
    #[serde(skip_serializing_if = "is_default")]
    pub columns: Vec<String>,
    /// What it reads from its standard input; nothing if missing.
    #[serde(skip_serializing_if = "is_default")]
    pub stdin: Option<UploadId>,
    /// Files that are put into its directory before it starts.
    #[serde(skip_serializing_if = "is_default")]
    pub files: Vec<WorkFile>,
    /// Patterns of files in its directory that are brought back when it has finished.
    #[serde(skip_serializing_if = "is_default")]
    pub collect: Vec<String>,
    /// Its output goes to files in this directory at the worker, and not to the broker.
    #[serde(skip_serializing_if = "is_default")]
    pub out_dir: String,
}

/// A file that a task is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkFile {
    /// Its path in the task's directory.
    pub name: String,
    /// What is in it.
    pub upload: UploadId,
    /// It may be executed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub executable: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a job comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// No task of it has run.
    Waiting,
    /// A task of it runs or has run, and there is more to do.
    Running,
    /// Nothing of it is started until it is released. What runs goes on.
    Held,
    /// Every task finished.
    Finished,
    /// Every task has ended, and one failed.
    Failed,
    /// Every task has ended, none failed, and one was cancelled.
    Cancelled,
}

impl JobState {
    /// Nothing of it will happen any more.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}

/// What a task comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// It waits for a slot, for its job or for its next attempt.
    Waiting,
    /// It was given to a worker.
    Running,
    /// It did what it should.
    Finished,
    /// It did not, and has no attempt left.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

/// How many tasks are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCounts {
    /// See [`TaskState::Waiting`].
    pub waiting: u32,
    /// See [`TaskState::Running`].
    pub running: u32,
    /// See [`TaskState::Finished`].
    pub finished: u32,
    /// See [`TaskState::Failed`].
    pub failed: u32,
    /// See [`TaskState::Cancelled`].
    pub cancelled: u32,
}

/// Why a job does not go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum JobReason {
    /// Somebody holds it.
    Held,
    /// Other jobs must end first.
    After {
        /// Those.
        jobs: Vec<JobId>,
    },
    /// It depends on a job that ended otherwise than it must: it can never begin, and is cancelled.
    Missed {
        /// That job.
        job: JobId,
        /// How that job had to end.
        when: AfterWhen,
    },
    /// No worker for jobs is connected, or all of them are being stopped.
    NoWorker,
    /// No worker has all the labels that it asks for.
    NoLabels {
        /// Those.
        labels: Vec<(String, String)>,
    },
    /// No worker has as many slots as one task takes.
    TooWide {
        /// Slots a task takes.
        slots: u16,
        /// Slots of the largest worker.
        largest: u32,
    },
    /// Every slot is taken.
    Busy {
        /// Slots of all workers.
        slots: u64,
        /// Tasks of other jobs whose turn is before.
        ahead: u64,
    },
    /// As many tasks run as may at a time.
    MaxParallel {
        /// How many may.
        max: u32,
    },
    /// More of its tasks failed than may: nothing more of it is started, and what has not ended is cancelled.
    MaxFailures {
        /// How many may.
        max: u32,
    },
    /// Its tasks wait for their next attempt.
    Backoff {
        /// Milliseconds until the first of them is due.
        in_ms: u64,
    },
    /// Workers that it may use have room, and cannot be given anything now: they have not answered what they were given
    /// last, rest after a refusal, or have less room than they say. Only `job.show` and `job.explain` look that closely.
    Unready {
        /// How many of them.
        workers: u32,
    },
    /// The worker that has room for it is kept free for a task of another job, which takes more. Only `job.show` and
    /// `job.explain` look that closely.
    Kept {
        /// That job.
        job: JobId,
        /// The worker.
        worker: String,
    },
    /// What somebody asked for is on its way to the disk.
    Storing,
    /// The broker is drained.
    Draining,
    /// The disk takes nothing.
    Disk,
}

/// Why a task is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum TaskReason {
    /// It waits to be started.
    Waits {
        /// What for.
        why: JobReason,
        /// Tasks of the same job whose turn is before.
        before: u32,
    },
    /// It waited and was cancelled, and that is on its way to the disk.
    Cancelling,
    /// It was given to a worker, which hears of it once that is on disk.
    Starting {
        /// The worker.
        worker: String,
    },
    /// Its worker was told, and has not answered.
    Offered {
        /// The worker.
        worker: String,
    },
    /// It runs.
    Runs {
        /// Its worker.
        worker: String,
        /// For how many milliseconds.
        for_ms: u64,
    },
    /// Its worker was told to stop it, and has not said that it does.
    Stopping {
        /// Its worker.
        worker: String,
        /// Because it had its time, and not because somebody cancelled it.
        time_limit: bool,
    },
    /// Its worker is not connected, or did not name it when it came back. If nothing is heard of it, it waits for another
    /// attempt.
    Away {
        /// Its worker.
        worker: String,
        /// Milliseconds until then.
        left_ms: u64,
    },
    /// It is over, and that is on its way to the disk.
    Ending {
        /// Its worker.
        worker: String,
    },
    /// It did what it should.
    Finished,
    /// It did not, and has no attempt left.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobView {
    /// Its number.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// What it comes to.
    pub state: JobState,
    /// Its tasks.
    pub array: Array,
    /// The parts of a list of numbers, see [`Numbers::parts`].
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "list")]
    pub parts: Vec<Array>,
    /// How many are in which state.
    pub tasks: TaskCounts,
    /// Slots a task takes.
    pub slots: u16,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Items that its tasks are for, one each; 0 if their numbers say it all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub items: u32,
    /// When it came.
    pub submitted_unix_ms: u64,
    /// When its first task was given to a worker.
    pub started_unix_ms: Option<u64>,
    /// When its last task ended.
    pub ended_unix_ms: Option<u64>,
    /// Running tasks whose worker is lost and may still come back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lost: u32,
    /// Why nothing of it is started now; `None` if something is, or if it has ended, unless by
    /// [`JobReason::MaxFailures`] or [`JobReason::Missed`]. Only `job.show` and `job.ls` tell of [`JobReason::Busy`]: who is ahead takes a look at
    /// all jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<JobReason>,
    /// All that was asked for but its items; not in listings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<JobSpec>>,
}

impl JobView {
    /// The numbers of its tasks.
    pub fn numbers(&self) -> Numbers<'_> {
        Numbers { array: self.array, parts: &self.parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_says_no_more_than_it_must_is_a_new_spec() {
        #[derive(Serialize)]
        struct Least {
            name: &'static str,
            array: Array,
            work: Bytes,
        }
        let work = Bytes::from_static(b"\x80");
        let map = rmp_serde::to_vec_named(&Least { name: "sim", array: Array::ONE, work: work.clone() }).unwrap();
        assert_eq!(rmp_serde::from_slice::<JobSpec>(&map).unwrap(), JobSpec::new("sim", Array::ONE, work));
    }
}
