//! Views of links.

use serde::{Deserialize, Serialize};

use crate::model::words::words;
use crate::model::{Moment, Seconds};

words! {
    /// State of a link.
    #[derive(Default)]
    pub enum LinkState {
        /// Connected.
        Up = "up",
        /// The other broker is shutting down or drained: nothing new crosses.
        Closing = "closing",
        /// Being connected.
        Dialling = "dialling",
        /// Not connected; the broker tries again.
        #[default]
        Down = "down",
        /// The address is this broker's own.
        Itself = "itself",
        /// Another link to the same broker exists.
        Doubled = "doubled",
    }
}

/// A link, connected or configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct LinkView {
    /// Name of the other broker; null if it is not known.
    pub name: Option<String>,
    /// State of the link.
    pub state: LinkState,
    /// The latest round trip; null if there was none.
    pub round_trip_seconds: Option<Seconds>,
    /// Free slots that the other broker offers, over all queues.
    pub offered: u64,
    /// Messages that crossed to the other broker and are not settled.
    pub backlog: u64,
    /// Messages that crossed to the other broker so far.
    pub forwarded: u64,
    /// Messages that came from the other broker.
    pub received: u64,
    /// Messages that crossed and came back because no slot was free.
    pub returned: u64,
    /// The configured address; null if the other broker dialled.
    pub target: Option<String>,
    /// Start of the current state.
    pub since_at: Moment,
    /// Why it is not up: a code, see `turno explain`.
    pub code: Option<String>,
    /// Id of the other broker; a broker gets a new id with each start.
    pub broker: Option<String>,
    /// Address of the other broker.
    pub address: Option<String>,
}

/// A broker in the graph of links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct BrokerNode {
    /// Name of the broker.
    pub name: String,
    /// Number of links on the way to it; 0 for this broker.
    pub hops: u64,
    /// Names of the brokers on the way to it, including itself, or ids where the name is not known.
    pub way: Vec<String>,
    /// Names of the brokers that it has links with, or ids where the name is not known.
    pub neighbours: Vec<String>,
    /// Id of the broker; new with each start.
    pub broker: String,
    /// Ids of the brokers on the way to it.
    pub way_ids: Vec<String>,
    /// Ids of the brokers that it has links with, in the order of `neighbours`.
    pub neighbour_ids: Vec<String>,
}
