//! Views of topics and subscribers.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::Moment;

/// A topic with published events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TopicView {
    /// Name of the topic.
    pub topic: String,
    /// Events so far.
    pub events: u64,
    /// Bytes of these events.
    pub bytes: u64,
    /// Current subscribers.
    pub subscribers: u64,
    /// Time of the latest event.
    pub latest_at: Moment,
}

/// A subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SubscriberView {
    /// Number of the subscriber; it is reused later.
    pub number: u32,
    /// Name of the connection, or id of a subscriber that fetches.
    pub name: String,
    /// Address; null for a subscriber that fetches.
    pub address: Option<String>,
    /// The first 20 filters.
    pub filters: Vec<String>,
    /// Number of filters.
    pub filters_all: u64,
    /// True if it is disconnected when it reads too slowly; otherwise it misses events.
    pub or_close: bool,
    /// Events that matched its filters.
    pub events: u64,
    /// Events that it missed.
    pub dropped: u64,
    /// Events that wait to be fetched; null for a connection.
    pub waiting: Option<u64>,
}

/// An event that was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventView {
    /// The topic of the event.
    pub topic: String,
    /// Whether what it carries begins with a header block.
    pub headers: bool,
    /// Headers and body of the event.
    pub payload: Bytes,
}
