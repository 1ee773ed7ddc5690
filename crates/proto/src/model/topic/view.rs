//! What can be seen of topics and of those who listen, from outside.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A topic that something was published about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicView {
    /// Its name.
    pub topic: String,
    /// Events so far.
    pub events: u64,
    /// Bytes of what they carried.
    pub bytes: u64,
    /// Milliseconds since the latest.
    pub latest_ms: u64,
    /// Who listens to it now.
    pub subscribers: u64,
}

/// Somebody who listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberView {
    /// Its number, which another may get when it is gone.
    pub number: u32,
    /// The name of the connection, or the id of one that fetches.
    pub name: String,
    /// Where it is; `None` for one that fetches.
    pub address: Option<String>,
    /// Its filters, the first of them.
    pub filters: Vec<String>,
    /// How many it has.
    pub filters_all: u64,
    /// It is closed if it reads too slowly, instead of missing events.
    pub or_close: bool,
    /// Events that were for it.
    pub events: u64,
    /// Those of them that it missed.
    pub dropped: u64,
    /// Events that wait to be fetched; `None` for a connection.
    pub waiting: Option<u64>,
}

/// An event that was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventView {
    /// What it is about.
    pub topic: String,
    /// Whether what it carries begins with a header block.
    pub headers: bool,
    /// What it carries.
    pub payload: Bytes,
}
