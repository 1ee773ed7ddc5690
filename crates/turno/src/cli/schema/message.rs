//! Messages that were cancelled or retried.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::MessageView;

use super::error::ErrorBody;

/// A message as it was before it was cancelled.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CancelledDocument {
    pub(crate) message: MessageView,
    /// Always true.
    pub(crate) cancelled: bool,
}

/// A message as it was before it was to go on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RetriedMessageDocument {
    pub(crate) message: MessageView,
    /// False if it waited for no time and was no dead letter.
    pub(crate) retried: bool,
}

/// How one of several messages ended: as it was before it was cancelled, or with `error`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CancelledRow {
    /// Its id.
    pub(crate) id: String,
    /// The message as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<MessageView>,
    /// Why it is not cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorBody>,
}

/// Several messages that were cancelled in one go.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CancelledListDocument {
    /// In the order of their ids.
    pub(crate) messages: Vec<CancelledRow>,
    /// How many were cancelled.
    pub(crate) cancelled: u64,
    /// How many were not.
    pub(crate) failed: u64,
    /// How many were not tried, because of what went wrong before.
    pub(crate) untried: u64,
}
