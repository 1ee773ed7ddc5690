//! How a broadcast ended: what became of it at each of its consumers, as numbers that add up.

use serde::{Deserialize, Serialize};

/// A worker that a broadcast went to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// Its id.
    pub worker: u64,
    /// Its name.
    pub name: String,
}

/// The end of a broadcast. Every consumer it went to counts as one of answered, failed, expired and left; of a
/// no-reply broadcast nothing but `consumers` is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BroadcastEnd {
    /// Consumers it went to.
    pub consumers: u32,
    /// Those that replied.
    #[serde(default)]
    pub answered: u32,
    /// Those that said that they failed.
    #[serde(default)]
    pub failed: u32,
    /// Those that had said nothing when its time was over.
    #[serde(default)]
    pub expired: u32,
    /// Those that were lost or left before they answered.
    #[serde(default)]
    pub left: u32,
    /// The first of those that expired, as many as the limit allows.
    #[serde(default)]
    pub who_expired: Vec<Party>,
    /// The first of those that left, as many as the limit allows.
    #[serde(default)]
    pub who_left: Vec<Party>,
}
