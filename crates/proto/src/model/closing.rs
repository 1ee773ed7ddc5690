//! CLOSING: the broker takes no new work.

use serde::{Deserialize, Serialize};

/// Why a side is closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum ClosingReason {
    /// The broker shuts down, or the peer does.
    Shutdown,
    /// Somebody asked this worker to finish what it has and end.
    Stop,
    /// Somebody asked this worker to end at once; what it has goes to others.
    Now,
    /// The broker stays, but takes and hands out no work until RESUMED. Clients with another broker go there.
    Maintenance,
    /// The broker's maintenance is over: work is welcome again.
    Resumed,
}

/// CLOSING: no new work from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// Why the broker closes.
    pub reason: ClosingReason,
    /// When the connection ends at the latest; 0 if the side sets no limit.
    #[serde(default)]
    pub within_ms: u64,
}
