//! Documents of failed tasks.

use schemars::JsonSchema;
use serde::Serialize;

/// Tasks that failed alike: with the same exit code or signal and the same words, but for numbers in them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FailureBody {
    /// The exit status of their programs.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended their programs.
    pub(crate) signal: Option<i32>,
    /// How they failed, in one line: the last one of stderr where the worker told it. Numbers that differ are `#`.
    pub(crate) text: String,
    /// How many they are.
    pub(crate) count: u64,
    /// The first of them, as commands take them: `7.3,9-12`.
    pub(crate) tasks: String,
    /// Whether there are more of them than those.
    pub(crate) more: bool,
}

/// Failed tasks, grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FailuresBody {
    /// The largest groups, the largest first.
    pub(crate) groups: Vec<FailureBody>,
    /// Failed tasks that are in none of these groups.
    pub(crate) others: u64,
}
