//! What can be seen of the ring, from outside.

use serde::{Deserialize, Serialize};

use super::{RingState, Sid};
use crate::model::view::is_zero;

/// The ring as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingView {
    /// The broker that was asked.
    pub sid: Sid,
    /// Which of its lives.
    pub incarnation: u64,
    /// Where others reach it.
    pub address: String,
    /// Whether members prove that they know a secret. Without one, nothing said round the ring ends a broker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_secret: bool,
    /// Where it is.
    pub state: RingState,
    /// Milliseconds since it came to that.
    pub since_ms: u64,
    /// Its last roll call came round, and nothing has changed since: the ring is a circle.
    pub whole: bool,
    /// Who sends to it.
    pub previous: Option<Sid>,
    /// Whom it sends to.
    pub next: Option<Sid>,
    /// The circle in order, the broker that was asked first; as its last roll call found it.
    pub members: Vec<MemberView>,
    /// Known members that are not in the circle and did not leave.
    pub lost: Vec<MemberView>,
    /// Microseconds that its last roll call took to come round.
    pub round_trip_us: Option<u64>,
    /// Its own publications that have not come round.
    pub not_round: u64,
    /// Milliseconds since the oldest of them was sent.
    pub oldest_ms: Option<u64>,
    /// Publications of all that are kept, should a neighbour need them again.
    pub buffered: u64,
    /// Bytes of these.
    pub buffer_bytes: u64,
    /// Publishers are slowed down.
    pub slowed: bool,
    /// What was counted.
    pub counters: RingCounters,
    /// Why it is not in the ring, in a word of `turno explain`.
    pub code: Option<String>,
}

/// A member as another sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberView {
    /// Its number.
    pub sid: Sid,
    /// Which of its lives.
    pub incarnation: u64,
    /// Where others reach it.
    pub address: String,
    /// Where it takes clients and links; empty if it does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub native: String,
}

/// What a node of the ring counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingCounters {
    /// Publications of its own.
    pub published: u64,
    /// Of these, those that came round.
    pub came_round: u64,
    /// Publications of others that it got.
    pub received: u64,
    /// Publications that it had already.
    pub duplicates: u64,
    /// Publications that went round while it was not in the ring.
    pub missed: u64,
    /// Frames in its name that it never sent; without a secret also those that would end it, which nothing proves.
    pub forged: u64,
    /// Frames that had been through too many members.
    pub hop_limit: u64,
    /// Publications of members that send more than they may.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flooded: u64,
    /// Greetings and openings that it refused.
    pub refused: u64,
    /// Times that its place changed because a member had fallen.
    pub healed: u64,
}
