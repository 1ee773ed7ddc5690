//! Views of endpoints for ZeroMQ programs.

use serde::{Deserialize, Serialize};

/// An address where ZeroMQ programs connect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct EndpointView {
    /// Name of the endpoint.
    pub name: String,
    /// Address, as ZeroMQ writes it.
    pub address: String,
    /// Queue of plain sockets.
    pub queue: String,
    /// Whether DEALER sockets ask (`client`) or work (`worker`).
    pub role: String,
    /// Prefix of each topic of PUB and SUB sockets.
    pub topic: String,
    /// Mechanism: `NULL`, `PLAIN` or `CURVE`.
    pub mechanism: String,
    /// Number of connected peers.
    pub peers_all: u64,
    /// Messages from peers.
    pub received: u64,
    /// Messages to peers.
    pub sent: u64,
    /// Answers to failed requests that were withheld, because a plain socket has no place for an error.
    pub withheld: u64,
    /// Messages without a valid envelope, which were dropped.
    pub bad_envelope: u64,
    /// Publications and subscriptions without a valid topic, which were dropped.
    pub bad_topic: u64,
    /// Messages and subscriptions that the broker refused.
    pub refused: u64,
    /// Connections whose handshake failed.
    pub bad_handshake: u64,
    /// Connected peers, at most 100, in the order of their connections.
    pub peers: Vec<ZmqPeerView>,
}

/// A connected ZeroMQ peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ZmqPeerView {
    /// Address of the peer.
    pub address: String,
    /// Socket type of the peer.
    pub socket: String,
    /// Identity of the peer, with escapes for bytes that are not printable ASCII; empty if it has none.
    pub identity: String,
    /// User name (PLAIN) or public key (CURVE) of the peer; null with NULL.
    pub user: Option<String>,
}
