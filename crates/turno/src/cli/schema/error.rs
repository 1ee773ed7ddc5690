//! The document of a failure.

use schemars::JsonSchema;
use serde::Serialize;

/// Why a command failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// Stable word; `turno explain` knows more about it.
    pub(crate) code: String,
    /// The failure, in one line.
    pub(crate) message: String,
    /// Why it happens.
    pub(crate) why: String,
    /// Advice.
    pub(crate) hint: String,
    /// The command that tells more.
    pub(crate) docs: String,
    /// Further text, where that is more than a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// The document of a command that failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorDocument {
    pub(crate) error: ErrorBody,
}
