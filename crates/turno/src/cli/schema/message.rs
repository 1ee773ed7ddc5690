//! Messages and why they are where they are, as programs read them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use turno_proto::model::view::{Explanation, MessageKind, MessageState, MessageView, Reason};

use super::Document;
use crate::cli::time::{Clock, rfc3339, seconds};
use crate::cli::words::count;

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
            match workers {
                1 => "the only consumer has not finished its greeting".to_owned(),
                workers => format!("none of the {workers} consumers has finished its greeting"),
            },
            json!({ "workers": workers }),
        ),
        Reason::WorkersDraining { workers } => (
            "workers_draining",
            match workers {
                1 => "the only consumer is draining and takes no new work".to_owned(),
                workers => format!("all {workers} consumers are draining and take no new work"),
            },
            json!({ "workers": workers }),
        ),
        Reason::WorkersDropped { workers } => (
            "workers_dropped",
            format!("no worker consumes the queue: {} because deliveries expired", were_dropped(*workers)),
            json!({ "workers": workers }),
        ),
        Reason::AllBusy { workers, used, ahead, probing, dropped } => (
            "all_busy",
            all_busy(*workers, *used, *ahead, *probing, *dropped),
            json!({ "workers": workers, "used": used, "ahead": ahead, "probing": probing, "dropped": dropped }),
        ),
        Reason::ExclusiveBusy { worker, name, used, ahead } => (
            "exclusive_busy",
            format!(
                "worker {worker} ({name}) has the queue to itself and is busy ({}), {}",
                count(*used, "slot in use", "slots in use"),
                go_first(*ahead)
            ),
            json!({ "worker": worker.to_string(), "name": name, "used": used, "ahead": ahead }),
        ),
        Reason::NotFree { in_flight, waiters } => (
            "not_free",
            format!("nobody has the queue before all of it is settled ({in_flight} in flight, {waiters} standing by)"),
            json!({ "in_flight": in_flight, "waiters": waiters }),
        ),
        Reason::KeptFor { worker, name, left_ms } => (
            "kept_for",
            format!("the queue is free and kept for worker {worker} ({name}), which has not taken it yet"),
            json!({ "worker": worker.to_string(), "name": name, "left_seconds": seconds(*left_ms) }),
        ),
        Reason::Behind { ahead } => {
            let text = format!("{} too", count(*ahead, "message before it waits", "messages before it wait"));
            ("behind", text, json!({ "ahead": ahead }))
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
            format!("it went to {}, and {open} of them did not answer yet", count(*consumers, "consumer", "consumers")),
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
        Reason::Draining => ("draining", "the broker is shutting down".to_owned(), json!({})),
        Reason::Maintenance => {
            ("maintenance", "the broker is drained for maintenance, until `turno resume`".to_owned(), json!({}))
        }
    }
}

/// All that could take it have no room.
fn all_busy(workers: u64, used: u64, ahead: u64, probing: u64, dropped: u64) -> String {
    let mut text = format!("all slots are busy ({used} in use at {})", count(workers, "consumer", "consumers"));
    if probing > 0 {
        text += &format!(", {probing} of them on probation with one delivery at a time");
    }
    if dropped > 0 {
        text += &format!(", {} from the queue", were_dropped(dropped));
    }
    format!("{text}, {}", go_first(ahead))
}

fn were_dropped(workers: u64) -> String {
    count(workers, "worker was dropped", "workers were dropped")
}

fn go_first(ahead: u64) -> String {
    count(ahead, "message goes first", "messages go first")
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
