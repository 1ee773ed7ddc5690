//! What can be seen of links, from outside.

use serde::{Deserialize, Serialize};

/// How far a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkState {
    /// Both brokers greeted each other.
    Up,
    /// The other broker is about to end, or in maintenance: nothing crosses, what is there may finish.
    Closing,
    /// On its way: dialled, greeting.
    Dialling,
    /// Not there; dialled again in a moment.
    Down,
    /// The address is this broker's own.
    Itself,
    /// Another link leads to the same broker already.
    Doubled,
}

/// A link, or an address that one is wanted to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkView {
    /// The address as it was given; `None`: the other broker dialled.
    pub target: Option<String>,
    /// The other broker's name, once it is known.
    pub name: Option<String>,
    /// The other broker's id, once it is known.
    pub broker: Option<String>,
    /// Where the other end is, if there is one.
    pub address: Option<String>,
    /// How far it is.
    pub state: LinkState,
    /// Milliseconds since it came to that.
    pub since_ms: u64,
    /// The latest round trip.
    pub round_trip_us: Option<u64>,
    /// Free slots that the other end offers, over all queues.
    pub offered: u64,
    /// Messages that crossed to the other end and are not settled.
    pub backlog: u64,
    /// Messages that crossed to the other end.
    pub forwarded: u64,
    /// Messages that came from there.
    pub received: u64,
    /// Messages that crossed and came back, because there was no room any more.
    pub returned: u64,
    /// Why it is not up, in a word of `turno explain`.
    pub code: Option<String>,
}

/// A broker as others know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerNode {
    /// Its id.
    pub broker: String,
    /// Its name.
    pub name: String,
    /// Brokers on the way to it, itself included; none: it is the one that was asked.
    pub path: Vec<String>,
    /// Those that it has links with.
    pub neighbours: Vec<String>,
}
