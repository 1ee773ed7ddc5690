//! Messages and why they are where they are, as programs read them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use turno_proto::model::view::{Explanation, MessageKind, MessageState, MessageView, Reason};

use super::Document;
use super::error::ErrorBody;
use crate::cli::time::{Clock, rfc3339, seconds};

/// A message, without its body.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageBody {
    /// Its id.
    pub(crate) id: String,
    /// Its queue.
    pub(crate) queue: String,
    /// `request` or `send`.
    pub(crate) kind: String,
    /// `ready`, `in_flight`, `stopping` or `dead`.
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
    /// The id of the worker that has it.
    pub(crate) worker: Option<String>,
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

/// Why a message is where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReasonBody {
    /// A stable word.
    pub(crate) reason: String,
    /// The same in a sentence.
    pub(crate) text: String,
    /// The numbers and names in that sentence.
    pub(crate) details: Map<String, Value>,
}

impl From<&Reason> for ReasonBody {
    fn from(reason: &Reason) -> Self {
        let (word, text, details) = told(reason);
        let details = match details {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Self { reason: word.to_owned(), text, details }
    }
}

fn told(reason: &Reason) -> (&'static str, String, Value) {
    match reason {
        Reason::NoWorker => ("no_worker", "no worker consumes the queue".to_owned(), json!({})),
        Reason::WorkersGreeting { workers } => (
            "workers_greeting",
            format!("{workers} consume the queue, but none has finished its greeting"),
            json!({ "workers": workers }),
        ),
        Reason::WorkersDraining { workers } => (
            "workers_draining",
            format!("all {workers} consumers are draining and take no new work"),
            json!({ "workers": workers }),
        ),
        Reason::AllBusy { workers, used, ahead } => (
            "all_busy",
            format!("all slots are busy ({used} in use at {workers} consumers), {ahead} messages go first"),
            json!({ "workers": workers, "used": used, "ahead": ahead }),
        ),
        Reason::Behind { ahead } => {
            ("behind", format!("{ahead} messages before it wait too"), json!({ "ahead": ahead }))
        }
        Reason::TooCostly { cost, largest } => (
            "too_costly",
            format!("it takes {cost} slots, and the largest consumer has {largest}"),
            json!({ "cost": cost, "largest": largest }),
        ),
        Reason::Reserved { worker, cost, free } => (
            "reserved",
            format!("it waits for {cost} free slots at worker {worker}, which has {free} free now"),
            json!({ "worker": worker.to_string(), "cost": cost, "free": free }),
        ),
        Reason::AtWorker { worker, name, since_ms } => (
            "at_worker",
            format!("worker {worker} ({name}) works on it"),
            json!({ "worker": worker.to_string(), "name": name, "since_seconds": seconds(*since_ms) }),
        ),
        Reason::AtConsumers { consumers, open } => (
            "at_consumers",
            format!("it went to {consumers} consumers, and {open} of them have not answered"),
            json!({ "consumers": consumers, "open": open }),
        ),
        Reason::Stopping { worker } => (
            "stopping",
            format!("it is over for its caller, and worker {worker} was told to stop"),
            json!({ "worker": worker.to_string() }),
        ),
        Reason::Storing => ("storing", "it is being written to disk".to_owned(), json!({})),
        Reason::Dead { failure } => {
            ("dead", format!("it used up its attempts; the last one said: {failure}"), json!({ "failure": failure }))
        }
        Reason::Draining => ("draining", "the broker is drained, or shutting down".to_owned(), json!({})),
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
