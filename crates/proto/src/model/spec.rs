//! Views of submissions, with the command decoded.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::Seconds;
use super::job::{After, AfterWhen, JobSpec, Work, WorkFile};

/// The submission of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SpecView {
    /// The command; null if it has a format that Turno does not know.
    pub command: Option<CommandView>,
    /// Maximum number of tasks at a time; null if unlimited.
    pub max_parallel: Option<u32>,
    /// Time limit of an attempt; null if there is none.
    pub time_limit_seconds: Option<Seconds>,
    /// Maximum number of retries of a task.
    pub retries: u8,
    /// Delay before the second attempt; doubled for each further attempt.
    pub backoff_seconds: Seconds,
    /// Number of tasks that can fail before the rest is cancelled; null if unlimited.
    pub max_failures: Option<u32>,
    /// Labels that a worker needs.
    pub labels: BTreeMap<String, String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Jobs that must end first.
    pub after: Vec<AfterView>,
    /// Key of the submitter, for repeated submissions; null if there is none.
    pub key: Option<String>,
}

/// A job that must end first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct AfterView {
    /// Number of the job.
    pub job: String,
    /// How it must end.
    pub when: AfterWhen,
}

/// The command of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct CommandView {
    /// Program and arguments, with placeholders.
    pub argv: Vec<String>,
    /// True if `argv` is one line for `sh -c`.
    pub shell: bool,
    /// Directory; empty: a directory of its own if the task has files, else the worker's directory.
    pub cwd: String,
    /// True if a task runs in a directory of its own where `cwd` does not exist.
    pub cwd_optional: bool,
    /// Variables added to the worker's environment.
    pub env: BTreeMap<String, String>,
    /// Names of the fields of an item; empty if `{}` is the whole item.
    pub columns: Vec<String>,
    /// SHA-256 of the standard input; null if it is empty.
    pub stdin: Option<String>,
    /// Files that are copied into the task's directory.
    pub files: Vec<GivenFileView>,
    /// Patterns of result files.
    pub collect: Vec<String>,
    /// Directory at the worker for the output; null: the output goes to the broker.
    pub out_dir: Option<String>,
}

/// An input file of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct GivenFileView {
    /// Path in the task's directory.
    pub name: String,
    /// SHA-256 of its content.
    pub sha256: String,
    /// True if it is executable.
    pub executable: bool,
}

impl From<&JobSpec> for SpecView {
    fn from(spec: &JobSpec) -> Self {
        let after = |after: &After| AfterView { job: after.job.to_string(), when: after.when };
        Self {
            command: spec.command(),
            max_parallel: spec.max_parallel,
            time_limit_seconds: spec.time_limit_ms.map(Seconds::from_millis),
            retries: spec.retries,
            backoff_seconds: Seconds::from_millis(spec.backoff_ms.into()),
            max_failures: spec.max_failures,
            labels: spec.labels.iter().cloned().collect(),
            tags: spec.tags.clone(),
            after: spec.after.iter().map(after).collect(),
            key: spec.key.clone(),
        }
    }
}

impl From<Work> for CommandView {
    fn from(work: Work) -> Self {
        let file = |file: WorkFile| GivenFileView {
            name: file.name,
            sha256: file.upload.to_string(),
            executable: file.executable,
        };
        Self {
            argv: work.argv,
            shell: work.shell,
            cwd: work.cwd,
            cwd_optional: work.cwd_optional,
            env: work.env.into_iter().collect(),
            columns: work.columns,
            stdin: work.stdin.map(|upload| upload.to_string()),
            files: work.files.into_iter().map(file).collect(),
            collect: work.collect,
            out_dir: Some(work.out_dir).filter(|dir| !dir.is_empty()),
        }
    }
}

/// As it was submitted where programs read it, so that it can be submitted again; as it is shown in formats for people.
pub(in crate::model) fn serialize<S: Serializer>(spec: &Option<Box<JobSpec>>, to: S) -> Result<S::Ok, S::Error> {
    match spec.as_deref() {
        Some(spec) if to.is_human_readable() => SpecView::from(spec).serialize(to),
        spec => spec.serialize(to),
    }
}
