//! Views of the ring.

use serde::{Deserialize, Serialize};

use super::{RingState, Sid};
use crate::model::text::{one_line, short};
use crate::model::{Code, Moment, Seconds};

/// The ring as one member sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct RingView {
    /// Sid of this broker.
    pub sid: Sid,
    /// Incarnation of this broker: rises with each start.
    pub incarnation: u64,
    /// Address for other members.
    pub address: String,
    /// True if members authenticate with a secret. Without one, any process on this machine can act as a member, and no message
    /// of the ring ends a broker.
    pub secret: bool,
    /// State of this broker in the ring.
    pub state: RingState,
    /// Start of the current state.
    pub since_at: Moment,
    /// True if its last roll call returned and nothing has changed since.
    pub whole: bool,
    /// Why the ring is not whole, in words; null if it is.
    pub why: Option<String>,
    /// Sid of the member that sends to this broker.
    pub previous: Option<Sid>,
    /// Sid of the member that this broker sends to.
    pub next: Option<Sid>,
    /// Members in ring order, this broker first, from the last roll call.
    pub members: Vec<MemberView>,
    /// Members that failed and did not leave.
    pub lost: Vec<MemberView>,
    /// Duration of the last roll call; null if there was none.
    pub round_trip_seconds: Option<Seconds>,
    /// Own publications that have not come round.
    pub not_round: u64,
    /// Age of the oldest of these; null if there is none.
    pub oldest_seconds: Option<Seconds>,
    /// Publications kept for a possible repetition.
    pub buffered: u64,
    /// Bytes of these.
    pub buffer_bytes: u64,
    /// True while publishers are throttled.
    pub slowed: bool,
    /// Counters since the start.
    pub counters: RingCounters,
    /// Why it is not in the ring: a code, see `turno explain`.
    pub code: Option<String>,
}

impl RingView {
    /// The same with what follows from its other fields: what members are to the broker that was asked, and why the ring is no
    /// circle. The broker is in its state for so long.
    #[doc(hidden)]
    #[must_use]
    pub fn told(mut self, since: Seconds) -> Self {
        let (me, previous, next) = (self.sid, self.previous, self.next);
        for member in &mut self.members {
            let is = |sid: Option<Sid>| sid == Some(member.sid) && member.sid != me;
            // In a ring of two the other one is both neighbours.
            let roles = [(member.sid == me, "me"), (is(previous), "previous"), (is(next), "next")];
            member.role = roles.iter().filter(|(is, _)| *is).map(|(_, role)| *role).collect::<Vec<_>>().join(",");
        }
        for member in &mut self.lost {
            "lost".clone_into(&mut member.role);
        }
        self.why = self.why_not_whole(&short(since.duration()));
        self
    }

    /// Why it is no circle now; `None`: it is one, if only of one member.
    fn why_not_whole(&self, since: &str) -> Option<String> {
        let code = || self.code.as_deref().and_then(|code| code.parse::<Code>().ok());
        match self.state {
            RingState::LinkDown => Some(match sids(self.silent()) {
                who if who.is_empty() => format!("broken since {since}"),
                who => format!("broken since {since}: no contact with {who}"),
            }),
            RingState::Joining => Some(match code() {
                Some(code) => format!("joining since {since}: {}", code.text().what),
                None => format!("joining since {since}"),
            }),
            RingState::Leaving => Some(format!("leaving since {since}")),
            RingState::Off => Some(match (code(), self.code.as_deref()) {
                (Some(code), _) => format!("not in the ring since {since}: {}", code.text().what),
                (None, Some(other)) => format!("not in the ring since {since}: {}", one_line(other)),
                (None, None) => format!("left {since} ago"),
            }),
            RingState::Alone if self.lost.is_empty() => None,
            RingState::Alone => Some(format!("alone since {since}; lost: {}", self.lost_sids())),
            RingState::Member | RingState::Rewiring if self.whole => None,
            RingState::Rewiring => Some(format!("rewiring since {since}")),
            RingState::Member => Some("not whole: the last roll call did not complete".to_owned()),
        }
    }

    /// Neighbours that it had in the last whole circle and has not now.
    fn silent(&self) -> impl Iterator<Item = Sid> {
        let others = || self.members.iter().map(|member| member.sid).filter(|sid| *sid != self.sid);
        let previous = others().next_back().filter(|_| self.previous.is_none());
        let next = others().next().filter(|_| self.next.is_none());
        let lost = self.lost.iter().map(|member| member.sid);
        previous.into_iter().chain(next).chain(lost)
    }

    /// The sids of those that are lost, in order.
    pub fn lost_sids(&self) -> String {
        sids(self.lost.iter().map(|member| member.sid))
    }
}

/// Each once, in order.
fn sids(all: impl Iterator<Item = Sid>) -> String {
    let mut all: Vec<Sid> = all.collect();
    all.sort_unstable();
    all.dedup();
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A member of the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct MemberView {
    /// Sid of the member.
    pub sid: Sid,
    /// Its role for this broker: `me`, `previous`, `next`, `previous,next`, `lost`, or empty.
    pub role: String,
    /// Incarnation of the member.
    pub incarnation: u64,
    /// Address for other members.
    pub address: String,
    /// Address for clients and links; null if it is not known.
    pub native: Option<String>,
}

/// Counters of a member. They only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
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
    pub flooded: u64,
    /// Greetings and openings that it refused.
    pub refused: u64,
    /// Times that its place changed because a member had fallen.
    pub healed: u64,
}
