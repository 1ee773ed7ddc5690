//! The end of a broadcast: counts of its outcomes at consumers.

use serde::{Deserialize, Serialize};

use super::WorkerId;

/// A worker that a broadcast went to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Party"))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct BroadcastConsumer {
    /// The consumer's worker id.
    pub worker: WorkerId,
    /// The consumer's name.
    pub name: String,
}

/// The end of a broadcast. Every consumer it went to counts as one of answered, failed, expired and left; of a
/// no-reply broadcast nothing but `consumers` is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct BroadcastEnd {
    /// Consumers it went to.
    pub consumers: u32,
    /// Workers that replied.
    #[serde(default)]
    pub answered: u32,
    /// Workers that reported a failure.
    #[serde(default)]
    pub failed: u32,
    /// Workers that did not answer before the deadline.
    #[serde(default)]
    pub expired: u32,
    /// Workers that were lost or left before they answered.
    #[serde(default)]
    pub left: u32,
    /// The first 100 workers that expired.
    #[serde(default)]
    pub who_expired: Vec<BroadcastConsumer>,
    /// The first 100 workers that left.
    #[serde(default)]
    pub who_left: Vec<BroadcastConsumer>,
}
