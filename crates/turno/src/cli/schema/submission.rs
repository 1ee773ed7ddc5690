//! Documents of `turno submit --dry-run`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::job::SpecView;

/// The command of one task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubmissionTask {
    /// Its number.
    pub(crate) task: u32,
    /// The program and its arguments, with the task's item put in.
    pub(crate) argv: Vec<String>,
    /// Where it would run; empty: in a directory of its own.
    pub(crate) cwd: String,
    /// Added to the environment of its worker.
    pub(crate) env: BTreeMap<String, String>,
}

/// A file that would go along.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubmissionFile {
    /// Its path in the task's directory.
    pub(crate) name: String,
    /// Where it is here.
    pub(crate) path: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// It may be executed.
    pub(crate) executable: bool,
}

/// A job that was not submitted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubmissionBody {
    /// Its name.
    pub(crate) name: String,
    /// The numbers of its tasks.
    pub(crate) array: String,
    /// How many tasks it has.
    pub(crate) tasks: u32,
    /// Its first task.
    pub(crate) first: SubmissionTask,
    /// Its last task.
    pub(crate) last: SubmissionTask,
    /// Files that tasks are given.
    pub(crate) files: Vec<SubmissionFile>,
    /// The file that tasks read from their standard input; null for nothing.
    pub(crate) stdin: Option<SubmissionFile>,
    /// Bytes of all these files together.
    pub(crate) bytes: u64,
    /// The other options. A job in `after` can be `last`, because the broker was not asked which one that is.
    pub(crate) spec: SpecView,
}

/// The job that would be submitted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubmissionDocument {
    pub(crate) submission: SubmissionBody,
}
