//! What happened at a broker or a queue so far, counted.

use serde::{Deserialize, Serialize};

/// Counters since the broker started. They only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Requests taken in.
    pub requests: u64,
    /// Sends taken in.
    pub sends: u64,
    /// Broadcasts taken in.
    pub broadcasts: u64,
    /// Messages refused at the door.
    pub refused: u64,
    /// Deliveries made.
    pub deliveries: u64,
    /// Deliveries settled by the worker's last REPLY.
    pub replied: u64,
    /// Deliveries settled by ACK.
    pub acked: u64,
    /// Deliveries settled by FAIL.
    pub failed: u64,
    /// Deliveries that ended because the worker was lost.
    pub lost: u64,
    /// Messages put back for another attempt.
    pub retried: u64,
    /// Deliveries given back without counting as an attempt (drain, resize, a lost worker that cannot be blamed on it).
    pub returned: u64,
    /// Messages that passed their deadline.
    pub expired: u64,
    /// Messages cancelled.
    pub cancelled: u64,
    /// Messages that became dead letters.
    pub dead: u64,
    /// Dedup ids forgotten before their hour was over, because their queue had too many.
    pub dedup_forgotten: u64,
    /// Settling frames for a delivery that is no longer the worker's.
    pub late: u64,
    /// Settling frames for a delivery the worker had settled already.
    pub doubled: u64,
    /// Settling frames for a delivery of another worker.
    pub forged: u64,
    /// Replies whose caller was gone.
    pub unclaimed: u64,
    /// Workers dropped from a queue because deliveries expired at them.
    pub dropped: u64,
}
