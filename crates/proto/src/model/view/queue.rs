//! Views of queues and their consumers.

use serde::{Deserialize, Serialize};

use super::{Counters, MessageView};
use crate::model::words::words;
use crate::model::{Moment, Seconds, Slots, Token, WorkerId};

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct QueueView {
    /// Name of the queue.
    pub name: String,
    /// Messages that wait for a free slot.
    pub ready: u64,
    /// Messages that wait for a time: delayed sends, and failed ones until their next attempt.
    pub delayed: u64,
    /// When the next of them is due; null if there is none.
    pub delayed_until: Option<Moment>,
    /// Messages at workers.
    pub in_flight: u64,
    /// Dead letters.
    pub dead: u64,
    /// Bytes of the dead letters, with overhead and failure texts.
    pub dead_bytes: u64,
    /// Bytes of all messages with overhead, in memory or on disk.
    pub bytes: u64,
    /// Age of the oldest waiting message; null if none waits.
    pub oldest_seconds: Option<Seconds>,
    /// Workers that consume the queue.
    pub consumers: u64,
    /// Free slots of its consumers.
    pub slots_free: u64,
    /// True if sends survive a restart of the broker.
    pub durable: bool,
    /// Number of consecutive expired deliveries after which a worker is dropped; 0: never.
    pub drop_after: u16,
    /// Messages in a row that a worker of several queues receives from this one.
    pub weight: u8,
    /// Wait before a send that failed once is tried again; it doubles with each attempt; 0: at once.
    pub retry_delay_seconds: Seconds,
    /// Longest of these waits.
    pub retry_delay_max_seconds: Seconds,
    /// The queue's own settings; null if it has none.
    pub settings: Option<QueueSettings>,
    /// The worker that has the queue exclusively; null if there is none.
    pub exclusive: Option<ExclusiveView>,
    /// Workers that wait for the exclusive queue.
    pub waiters: u64,
    /// Counters since the broker started.
    pub counters: Counters,
    /// The next waiting messages; omitted in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Vec<MessageView>>,
}

/// A queue's own settings; null: the default applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct QueueSettings {
    /// True if sends are stored on disk before they are answered; false: in memory only.
    #[serde(default)]
    pub durable: Option<bool>,
    /// Number of consecutive expired deliveries after which a worker is dropped; 0: never.
    #[serde(default)]
    pub drop_after: Option<u16>,
    /// Messages in a row that a worker of several queues receives from this one.
    #[serde(default)]
    pub weight: Option<u8>,
    /// Wait before a send that failed once is tried again; it doubles with each attempt; 0: at once.
    #[serde(default)]
    pub retry_delay_seconds: Option<Seconds>,
    /// Longest of these waits.
    #[serde(default)]
    pub retry_delay_max_seconds: Option<Seconds>,
}

impl QueueSettings {
    /// These, with what `change` has instead.
    #[must_use]
    pub fn changed_by(self, change: Self) -> Self {
        Self {
            durable: change.durable.or(self.durable),
            drop_after: change.drop_after.or(self.drop_after),
            weight: change.weight.or(self.weight),
            retry_delay_seconds: change.retry_delay_seconds.or(self.retry_delay_seconds),
            retry_delay_max_seconds: change.retry_delay_max_seconds.or(self.retry_delay_max_seconds),
        }
    }
}

/// The holder of an exclusive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ExclusiveView {
    /// The fencing token, a decimal number with up to 20 digits.
    pub token: Token,
    /// Id of the worker; null if it is gone and its last messages are being returned.
    pub worker: Option<WorkerId>,
}

/// A worker of a queue: in its rota, waiting for the exclusive queue, or dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ConsumerView {
    /// Position in the rota, 1 is next; null if the worker was dropped or waits.
    pub turn: Option<u64>,
    /// Id of the worker.
    pub worker: WorkerId,
    /// Name of the worker.
    pub name: String,
    /// Slots; null if unlimited.
    pub slots: Slots,
    /// Slots in use, by all queues of the worker.
    pub used: u32,
    /// Free slots; null if unlimited.
    pub free: Slots,
    /// Messages of this queue at the worker.
    pub in_flight: u64,
    /// Token of the exclusive queue; null if the worker does not hold it.
    pub token: Option<Token>,
    /// Position among the workers that wait for the exclusive queue, 1 is next; null if it does not wait.
    pub waits: Option<u64>,
    /// Its standing.
    #[serde(flatten)]
    pub standing: Standing,
}

/// The standing of a worker in a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Standing {
    /// The state.
    #[serde(rename = "standing")]
    pub state: StandingState,
    /// Consecutive deliveries that expired at the worker.
    pub expired: u32,
    /// When the worker was dropped; null if it was not.
    pub dropped_at: Option<Moment>,
    /// The code of the last expired delivery; null if there is none.
    pub reason: Option<String>,
}

words! {
    /// State of a worker in a queue.
    #[derive(Default)]
    pub enum StandingState {
        /// It receives deliveries.
        #[default]
        Consuming = "consuming",
        /// Its last delivery expired.
        Suspect = "suspect",
        /// Too many consecutive deliveries expired: it receives nothing until it consumes the queue again.
        Dropped = "dropped",
        /// It receives one delivery at a time until it settles one.
        Probing = "probing",
        /// It waits for the exclusive queue.
        Standby = "standby",
    }
}
