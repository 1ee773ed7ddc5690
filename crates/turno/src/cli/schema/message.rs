//! Messages and why they are where they are, as programs read them.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::{Explanation, MessageKind, MessageState, MessageView};

use super::Document;
use super::error::ErrorBody;
use super::reason::ReasonBody;
use crate::cli::time::{Clock, rfc3339, seconds};

/// A message, without its body.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageBody {
    /// Its id.
    pub(crate) id: String,
    /// Its queue.
    pub(crate) queue: String,
    /// `request`, `send` or `broadcast`.
    pub(crate) kind: String,
    /// `ready`, `in_flight`, `stopping`, `storing` or `dead`.
    pub(crate) state: String,
    /// Attempts begun so far.
    pub(crate) attempts: u16,
    /// Attempts it may have.
    pub(crate) attempts_max: u16,
    /// Its priority, 9 first.
    pub(crate) priority: u8,
    /// Slots a delivery of it takes.
    pub(crate) cost: u16,
    /// Bytes of headers and body.
    pub(crate) bytes: u64,
    /// When it came in.
    pub(crate) received_at: String,
    /// Seconds since it came in.
    pub(crate) age_seconds: f64,
    /// When it expires; null if never.
    pub(crate) deadline_at: Option<String>,
    /// The id of the worker that has it; null also if it crossed to another broker.
    pub(crate) worker: Option<String>,
    /// Brokers that it came through before this one, the first one first: their names, or their ids where those are not
    /// known; none if it was given to this broker.
    pub(crate) came_by: Vec<String>,
}

impl MessageBody {
    pub(crate) fn new(view: &MessageView, clock: &Clock) -> Self {
        Self {
            id: view.id.clone(),
            queue: view.queue.clone(),
            kind: kind(view.kind).to_owned(),
            state: state(view.state).to_owned(),
            attempts: view.attempts,
            attempts_max: view.attempts_max,
            priority: view.priority,
            cost: view.cost,
            bytes: view.bytes,
            received_at: rfc3339(clock.ago(view.age_ms)),
            age_seconds: seconds(view.age_ms),
            deadline_at: view.deadline_ms.map(|ms| rfc3339(clock.ahead(ms))),
            worker: view.worker.map(|worker| worker.to_string()),
            came_by: view.came_by.clone(),
        }
    }
}

pub(crate) const fn kind(kind: MessageKind) -> &'static str {
    match kind {
        MessageKind::Request => "request",
        MessageKind::Send => "send",
        MessageKind::Broadcast => "broadcast",
    }
}

pub(crate) const fn state(state: MessageState) -> &'static str {
    match state {
        MessageState::Ready => "ready",
        MessageState::InFlight => "in_flight",
        MessageState::Stopping => "stopping",
        MessageState::Storing => "storing",
        MessageState::Dead => "dead",
    }
}

/// A message and why it is where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplanationDocument {
    pub(crate) message: MessageBody,
    pub(crate) because: ReasonBody,
}

impl ExplanationDocument {
    pub(crate) fn new(explanation: &Explanation, clock: &Clock) -> Self {
        Self { message: MessageBody::new(&explanation.message, clock), because: ReasonBody::from(&explanation.reason) }
    }
}

impl Document for ExplanationDocument {
    const SCHEMA: &'static str = "turno.explanation/1";
}

/// A message as it was before it was cancelled.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CancelledDocument {
    pub(crate) message: MessageBody,
    /// Always true.
    pub(crate) cancelled: bool,
}

impl Document for CancelledDocument {
    const SCHEMA: &'static str = "turno.cancelled/1";
}

/// How one of several messages ended: as it was before it was cancelled, or with `error`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CancelledRow {
    /// Its id.
    pub(crate) id: String,
    /// The message as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<MessageBody>,
    /// Why it is not cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorBody>,
}

impl Document for CancelledRow {
    const SCHEMA: &'static str = "turno.cancelled_row/1";
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

impl Document for CancelledListDocument {
    const SCHEMA: &'static str = "turno.cancelled_list/1";
}
