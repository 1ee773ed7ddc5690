//! Documents of `turno job retry`.

use schemars::JsonSchema;
use serde::Serialize;

use super::job::JobErrorBody;

/// A job of which tasks wait again.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RetriedJob {
    /// The job.
    pub(crate) id: String,
    /// Its name; need not be unique.
    pub(crate) name: String,
    /// How many of its tasks wait again.
    pub(crate) tasks: u64,
}

/// Tasks of jobs that wait again.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobRetryDocument {
    /// The jobs that were named; with `dry_run` what would be done to them.
    pub(crate) jobs: Vec<RetriedJob>,
    /// Nothing was changed.
    pub(crate) dry_run: bool,
    /// Those for which it could not be done; omitted if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<Vec<JobErrorBody>>,
}
