//! The report of a job, as programs hear of it.

use schemars::JsonSchema;
use serde::Serialize;

/// A report that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReportDocument {
    /// The job it tells.
    pub(crate) job: String,
    /// The file it is in.
    pub(crate) file: String,
    /// The size of the file.
    pub(crate) bytes: u64,
    /// How many tasks it tells.
    pub(crate) tasks: u64,
}
