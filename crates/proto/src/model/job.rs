//! Jobs: submissions and views.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::archive::UploadId;
use super::array::list;
pub use super::array::{Array, ArrayError, Numbers, TaskNumbers};
use super::limits::PRIORITY;
pub use super::number::JobId;
use super::reason::Because;
pub use super::reason::{JobReason, TaskReason};
pub use super::spec::{AfterView, CommandView, GivenFileView, SpecView};
pub use super::task::{AttemptView, TaskView};
use super::words::words;
use super::{Moment, Seconds, spec};
use crate::{items, work};

words! {
    /// How the job before must have ended.
    pub enum AfterWhen {
        /// With every task finished.
        Ok = "ok",
        /// In whatever way.
        Any = "any",
        /// With a task that failed, or cancelled.
        Failed = "failed",
    }
}

/// A job that must have ended before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Which one.
    pub job: JobId,
    /// How that job must have ended.
    pub when: AfterWhen,
}

/// The description of a job by its submitter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct JobSpec {
    /// For people, and for its tasks.
    pub name: String,
    /// The numbers of its tasks.
    pub array: Array,
    /// The parts of a list of numbers, see [`Numbers::parts`].
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "list")]
    pub parts: Vec<Array>,
    /// The command of its tasks, as a MessagePack map. Only submitters, workers and the foreman read it;
    /// [`command`](Self::command) gives it decoded.
    #[doc(hidden)]
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
    /// Jobs that must have ended before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// It waits until it is released.
    #[serde(default)]
    pub hold: bool,
    /// The submitter's own key: another job with the same key is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The items, one per task in the order of their numbers, written and read by [`crate::items`]; empty
    /// if the number says it all. [`item`](Self::item) gives one.
    #[doc(hidden)]
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
    #[doc(hidden)]
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

    /// The command of its tasks; `None` if it has a format that this version does not know.
    pub fn command(&self) -> Option<CommandView> {
        work::decode(&self.work).ok().map(CommandView::from)
    }

    /// The number of items.
    pub fn item_count(&self) -> u32 {
        items::count(&self.items).unwrap_or(0)
    }

    /// The fields of the item at that place, from 0 on; `None` if there is none.
    pub fn item(&self, place: u32) -> Option<Vec<&str>> {
        items::get(&self.items, place)
    }
}

const fn one() -> u16 {
    1
}

const fn usual_priority() -> u8 {
    PRIORITY
}

/// The command of a job's tasks: the map in [`JobSpec::work`], written and read by [`crate::work`].
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
    /// The upload that it reads from its standard input; nothing if missing.
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
    /// The uploaded content.
    pub upload: UploadId,
    /// It may be executed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub executable: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

words! {
    /// The state of a job.
    #[derive(Default)]
    pub enum JobState {
        /// No task of it has run.
        #[default]
        Waiting = "waiting",
        /// A task of it runs or has run, and there is more to do.
        Running = "running",
        /// Nothing of it is started until it is released. What runs goes on.
        Held = "held",
        /// Every task finished.
        Finished = "finished",
        /// Every task has ended, and one failed.
        Failed = "failed",
        /// Every task has ended, none failed, and one was cancelled.
        Cancelled = "cancelled",
    }

    /// The state of a task.
    #[derive(Default)]
    pub enum TaskState {
        /// It waits for a slot, for its job or for its next attempt.
        #[default]
        Waiting = "waiting",
        /// It was given to a worker.
        Running = "running",
        /// It did what it should.
        Finished = "finished",
        /// It did not, and has no attempt left.
        Failed = "failed",
        /// Somebody ended it.
        Cancelled = "cancelled",
    }
}

impl JobState {
    /// Nothing of it will happen any more.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}

/// How many tasks are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TaskCounts {
    /// Waiting tasks.
    pub waiting: u32,
    /// Tasks at workers.
    pub running: u32,
    /// Tasks that finished.
    pub finished: u32,
    /// Tasks that failed and have no attempt left.
    pub failed: u32,
    /// Tasks that were cancelled.
    pub cancelled: u32,
}

impl TaskCounts {
    /// Percent of all that have ended, rounded down; 100 if there are none.
    pub fn progress(&self) -> u64 {
        let [waiting, running, finished, failed, cancelled] =
            [self.waiting, self.running, self.finished, self.failed, self.cancelled].map(u64::from);
        let ended = finished + failed + cancelled;
        (ended * 100).checked_div(waiting + running + ended).unwrap_or(100)
    }
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct JobView {
    /// Number of the job.
    pub id: JobId,
    /// Name; not necessarily unique.
    pub name: String,
    /// State of the job.
    pub state: JobState,
    /// Numbers of its tasks.
    pub array: TaskNumbers,
    /// Number of tasks.
    pub tasks: u32,
    /// Number of tasks by state.
    #[serde(flatten)]
    pub counts: TaskCounts,
    /// Running tasks whose worker is lost and might return.
    pub lost: u32,
    /// Slots that a task uses.
    pub slots: u16,
    /// Priority 0 to 9, 9 first.
    pub priority: u8,
    /// Percentage of ended tasks, rounded down.
    pub progress: u64,
    /// Tags.
    pub tags: Vec<String>,
    /// Number of items, one for each task; 0 if the job has none.
    pub items: u32,
    /// When it was submitted.
    pub submitted_at: Moment,
    /// When its first task started; null if none has.
    pub started_at: Option<Moment>,
    /// When its last task ended; null if the job has not ended.
    pub ended_at: Option<Moment>,
    /// Seconds from start to end; null until it has ended. Tables show the time so far.
    pub seconds: Option<Seconds>,
    /// Why no task starts now; null if tasks can start, and for an ended job unless too many tasks failed or a job that it
    /// depends on did not end as required.
    pub because: Option<Because<JobReason>>,
    /// The submission without its items; in MessagePack as it was submitted. Omitted in listings.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "spec::serialize")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<SpecView>"))]
    pub spec: Option<Box<JobSpec>>,
}

impl JobView {
    /// The numbers of its tasks.
    pub fn numbers(&self) -> Numbers<'_> {
        self.array.numbers()
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
