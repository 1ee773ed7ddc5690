//! What the broker tells of one task.

use serde::{Deserialize, Serialize};

use super::job::TaskState;

/// One task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its number.
    pub task: u32,
    /// What it comes to.
    pub state: TaskState,
    /// Its latest attempt, from 1; 0 if it had none.
    pub attempt: u32,
    /// The worker of that attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// When that attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_ms: Option<u64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_ms: Option<u64>,
    /// What its program returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What ended its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What its worker said of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Of a running task whose worker is lost: when it is given to another one, unless its worker comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_until_unix_ms: Option<u64>,
    /// The fields of its item; empty in a job without items. In a listing a long item is cut, see
    /// [`super::limits::LISTED_ITEM_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub item: Vec<String>,
}

/// An attempt of a task that is over, and was followed by another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptView {
    /// Its number, from 1.
    pub attempt: u32,
    /// How it ended. An attempt that its worker gave back counts as cancelled, one whose worker was lost as failed.
    pub state: TaskState,
    /// Its worker.
    pub worker: String,
    /// When it began.
    pub started_unix_ms: u64,
    /// When it ended.
    pub ended_unix_ms: u64,
    /// What its program returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What ended its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What its worker said of a failure, `worker_lost` or `given_back`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

impl TaskView {
    /// A task of whose latest attempt no more is known than its number.
    pub const fn new(task: u32, state: TaskState, attempt: u32) -> Self {
        let (worker, status) = (None, None);
        let (started_unix_ms, ended_unix_ms, exit_code, signal) = (None, None, None, None);
        let lost_until_unix_ms = None;
        let item = Vec::new();
        Self {
            task,
            state,
            attempt,
            worker,
            started_unix_ms,
            ended_unix_ms,
            exit_code,
            signal,
            status,
            lost_until_unix_ms,
            item,
        }
    }
}
