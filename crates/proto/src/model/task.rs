//! Views of one task.

use serde::{Deserialize, Serialize};

use super::job::TaskState;
use super::{Moment, Seconds, TaskId};

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TaskView {
    /// Job and number of the task, as commands accept it.
    pub id: TaskId,
    /// Number of the task.
    pub task: u32,
    /// State of the task.
    pub state: TaskState,
    /// Number of the latest attempt, from 1; 0 if there was none.
    pub attempt: u32,
    /// Worker of that attempt; null if there was none.
    pub worker: Option<String>,
    /// When that attempt started.
    pub started_at: Option<Moment>,
    /// When that attempt ended.
    pub ended_at: Option<Moment>,
    /// Duration of that attempt; null until it has ended. Tables show the time so far.
    pub seconds: Option<Seconds>,
    /// Exit code of the program.
    pub exit_code: Option<i32>,
    /// Signal that ended the program.
    pub signal: Option<i32>,
    /// Failure reported by the worker.
    pub status: Option<String>,
    /// For a running task whose worker is lost: when another worker gets it, unless its worker returns; null otherwise.
    pub lost_until: Option<Moment>,
    /// Fields of its item, in a job with items; shortened in listings, and then it ends with `…`.
    pub item: Vec<String>,
}

impl TaskView {
    /// A task of whose latest attempt no more is known than its number.
    #[doc(hidden)]
    pub fn new(id: TaskId, state: TaskState, attempt: u32) -> Self {
        Self { id, task: id.task, state, attempt, ..Self::default() }
    }
}

/// An attempt of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct AttemptView {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// How it ended: `cancelled` also if the worker returned the task, `failed` also if the worker was lost.
    pub state: TaskState,
    /// Worker; empty if it is not known.
    pub worker: String,
    /// When it started.
    pub started_at: Option<Moment>,
    /// When it ended; null if it goes on.
    pub ended_at: Option<Moment>,
    /// Duration; null until it has ended.
    pub seconds: Option<Seconds>,
    /// Exit code of the program.
    pub exit_code: Option<i32>,
    /// Signal that ended the program.
    pub signal: Option<i32>,
    /// Failure reported by the worker, `worker_lost` or `given_back`.
    pub status: Option<String>,
}
