//! What was asked for with a job, as programs read it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::job::{After, AfterWhen, JobSpec, Work, WorkFile};
use turno_proto::work;

use crate::cli::time::seconds;

/// What the tasks of a job do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommandBody {
    /// The program and its arguments, before anything is put in for placeholders.
    pub(crate) argv: Vec<String>,
    /// `argv` is one line for `sh -c`.
    pub(crate) shell: bool,
    /// Where it runs; empty: in a directory of its own if it is given files or brings some back, else where its worker does.
    pub(crate) cwd: String,
    /// Where a worker has no such directory, it runs in one of its own.
    pub(crate) cwd_optional: bool,
    /// Added to the environment of its worker.
    pub(crate) env: BTreeMap<String, String>,
    /// Names that stand for the fields of an item; none if `{}` stands for it.
    pub(crate) columns: Vec<String>,
    /// SHA-256 of what it reads from its standard input; null for nothing.
    pub(crate) stdin: Option<String>,
    /// Files that are put into its directory.
    pub(crate) files: Vec<GivenBody>,
    /// Patterns of files that it brings back.
    pub(crate) collect: Vec<String>,
    /// Where its worker writes what it prints; null: to the broker.
    pub(crate) out_dir: Option<String>,
}

/// A file that a task is given.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GivenBody {
    /// Its path in the task's directory.
    pub(crate) name: String,
    /// SHA-256 of what is in it.
    pub(crate) sha256: String,
    /// It may be executed.
    pub(crate) executable: bool,
}

impl From<Work> for CommandBody {
    fn from(work: Work) -> Self {
        let file = |file: WorkFile| GivenBody {
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

/// A job that must end before.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AfterBody {
    /// Which one.
    pub(crate) job: String,
    /// How: `ok`, `any` or `failed`.
    pub(crate) when: String,
}

/// What was asked for with a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpecBody {
    /// What its tasks do; null if another program wrote it in a way of its own.
    pub(crate) command: Option<CommandBody>,
    /// Tasks that run at a time at most; null without a limit.
    pub(crate) max_parallel: Option<u32>,
    /// Seconds that one attempt may take; null without a limit.
    pub(crate) time_limit_seconds: Option<f64>,
    /// Attempts that a task may have after its first one failed.
    pub(crate) retries: u8,
    /// Seconds before the second attempt; each later one waits twice as long as the one before.
    pub(crate) backoff_seconds: f64,
    /// Tasks that may fail before the rest is cancelled; null without a limit.
    pub(crate) max_failures: Option<u32>,
    /// Labels that a worker must have.
    pub(crate) labels: BTreeMap<String, String>,
    /// Words to find it by.
    pub(crate) tags: Vec<String>,
    /// What must have ended before.
    pub(crate) after: Vec<AfterBody>,
    /// What the submitter knows it by.
    pub(crate) key: Option<String>,
}

impl From<&JobSpec> for SpecBody {
    fn from(spec: &JobSpec) -> Self {
        let after = |after: &After| AfterBody { job: after.job.to_string(), when: when(after.when).to_owned() };
        Self {
            command: work::decode(&spec.work).ok().map(CommandBody::from),
            max_parallel: spec.max_parallel,
            time_limit_seconds: spec.time_limit_ms.map(seconds),
            retries: spec.retries,
            backoff_seconds: seconds(spec.backoff_ms.into()),
            max_failures: spec.max_failures,
            labels: spec.labels.iter().cloned().collect(),
            tags: spec.tags.clone(),
            after: spec.after.iter().map(after).collect(),
            key: spec.key.clone(),
        }
    }
}

/// How a job before must have ended, in one word.
pub(crate) const fn when(when: AfterWhen) -> &'static str {
    match when {
        AfterWhen::Ok => "ok",
        AfterWhen::Any => "any",
        AfterWhen::Failed => "failed",
    }
}
