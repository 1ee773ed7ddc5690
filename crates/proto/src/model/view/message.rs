//! Views of messages and dead letters, with explanations.

use serde::{Deserialize, Serialize};

use super::{Because, Reason};
use crate::model::words::words;
use crate::model::{Moment, Seconds, WorkerId};

/// A message, without its body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct MessageView {
    /// Id of the message.
    pub id: String,
    /// Name of the queue.
    pub queue: String,
    /// Kind of message.
    pub kind: MessageKind,
    /// State of the message.
    pub state: MessageState,
    /// Attempts so far.
    pub attempts: u16,
    /// Maximum number of attempts.
    pub attempts_max: u16,
    /// Priority 0 to 9, 9 first.
    pub priority: u8,
    /// Slots that a delivery uses.
    pub cost: u16,
    /// Bytes of header block and body.
    pub bytes: u64,
    /// When the broker received it.
    pub received_at: Moment,
    /// Seconds since the broker received it.
    pub age_seconds: Seconds,
    /// When it expires; null if never.
    pub deadline_at: Option<Moment>,
    /// When it is delivered at the earliest; null if it does not wait for a time.
    pub delayed_until: Option<Moment>,
    /// Id of the worker that has it; null also if it crossed to another broker.
    pub worker: Option<WorkerId>,
    /// Names of the brokers that it came through, in order, or ids where the name is not known; empty if it was sent to this
    /// broker.
    pub came_by: Vec<String>,
}

words! {
    /// Kind of message.
    #[derive(Default)]
    pub enum MessageKind {
        /// Expects a reply.
        #[default]
        Request = "request",
        /// One-way, settled by the worker.
        Send = "send",
        /// Sent to all consumers.
        Broadcast = "broadcast",
    }

    /// State of a message.
    #[derive(Default)]
    pub enum MessageState {
        /// Waits in the queue.
        #[default]
        Ready = "ready",
        /// Waits for a time.
        Delayed = "delayed",
        /// At a worker.
        InFlight = "in_flight",
        /// Ended for its caller; its worker was told to stop and still uses its slots.
        Stopping = "stopping",
        /// Answered; its worker still uses its slots.
        Answered = "answered",
        /// Being written to disk.
        Storing = "storing",
        /// A dead letter.
        Dead = "dead",
    }
}

/// A message and why it is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Explanation {
    /// The message.
    pub message: MessageView,
    /// Why it is where it is.
    pub because: Because<Reason>,
}

/// A dead letter, without its body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct DeadView {
    /// The message.
    #[serde(flatten)]
    pub message: MessageView,
    /// Text of the last failure; shortened in listings.
    pub failure: String,
}
