//! Counters of a broker or a queue.

use serde::{Deserialize, Serialize};

/// Counters since the broker started. They only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Counters {
    /// Accepted requests.
    pub requests: u64,
    /// Accepted sends.
    pub sends: u64,
    /// Accepted broadcasts.
    pub broadcasts: u64,
    /// Refused messages.
    pub refused: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// Deliveries settled with a reply.
    pub replied: u64,
    /// Deliveries of sends settled with success.
    pub acked: u64,
    /// Deliveries settled with a failure.
    pub failed: u64,
    /// Deliveries that ended because the worker was lost.
    pub lost: u64,
    /// Messages returned to the queue for another attempt.
    pub retried: u64,
    /// Deliveries returned to the queue that do not count as an attempt (drain, resize, some lost workers).
    pub returned: u64,
    /// Messages that passed their deadline.
    pub expired: u64,
    /// Messages cancelled.
    pub cancelled: u64,
    /// Messages that became dead letters.
    pub dead: u64,
    /// Dedup ids removed before one hour because their queue had too many.
    pub dedup_forgotten: u64,
    /// Results for a delivery that was no longer at the worker.
    pub late: u64,
    /// Results for a delivery that the worker had already settled.
    pub doubled: u64,
    /// Results for a delivery of another worker.
    pub forged: u64,
    /// Replies whose caller was gone.
    pub unclaimed: u64,
    /// Workers dropped from a queue because deliveries expired.
    pub dropped: u64,
}
