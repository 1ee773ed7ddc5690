//! Where a node is follows from its connections; which ways lead from one state to another is written down here, and in
//! docs/ring.md, which a test compares.

use turno_proto::model::ring::RingState::{self, Alone, Joining, Leaving, LinkDown, Member, Off, Rewiring};

use super::sending::Purpose;
use super::{Node, RingEffect, RingNews};

/// What leads from one state to another.
pub type Why = &'static str;

/// Every way there is.
pub const TRANSITIONS: &[(RingState, RingState, Why)] = &[
    (Alone, Joining, "told to join, or a ring with a lower sid was found"),
    (Alone, Rewiring, "somebody wants to join"),
    (Alone, Member, "somebody joined"),
    (Alone, Off, "told to leave, or all shut down"),
    (Joining, Member, "the predecessor has connected and replayed"),
    (Joining, Rewiring, "the predecessor has connected, and somebody joins behind"),
    (Joining, LinkDown, "a neighbour was lost as soon as the place was found"),
    (Joining, Alone, "nobody can be joined"),
    (Joining, Leaving, "told to leave"),
    (Joining, Off, "told to leave, refused for good, or all shut down"),
    (Member, Rewiring, "somebody joins or leaves behind this one"),
    (Member, LinkDown, "a neighbour is lost"),
    (Member, Joining, "the place is another's, or a ring with a lower sid was found"),
    (Member, Alone, "the only other member left"),
    (Member, Leaving, "told to leave"),
    (Member, Off, "all shut down, or fenced off"),
    (Rewiring, Member, "the new next one has accepted, or could not be reached"),
    (Rewiring, LinkDown, "a neighbour is lost"),
    (Rewiring, Joining, "the place is another's, or a ring with a lower sid was found"),
    (Rewiring, Alone, "the one that wanted to join cannot be reached, or the only other member left"),
    (Rewiring, Leaving, "told to leave"),
    (Rewiring, Off, "all shut down, or fenced off"),
    (LinkDown, Member, "both neighbours are there again"),
    (LinkDown, Rewiring, "both neighbours are there again, and somebody joins or leaves behind this one"),
    (LinkDown, Joining, "nobody came for too long, the ring is over, or the place is another's"),
    (LinkDown, Alone, "the only other member is lost"),
    (LinkDown, Leaving, "told to leave"),
    (LinkDown, Off, "told to leave, all shut down, or fenced off"),
    (Leaving, Off, "SERVOFF came back, or took too long"),
    (Off, Joining, "told to join"),
];

impl Node {
    /// Where the node is by its connections.
    fn derive(&self) -> RingState {
        let claims = self.attempt.as_ref().is_some_and(|attempt| matches!(attempt.purpose, Purpose::Claim(_)));
        if self.is_off {
            Off
        } else if self.leaving.is_some() {
            Leaving
        } else if self.is_alone {
            if claims { Rewiring } else { Alone }
        } else if self.joining.is_some() {
            Joining
        } else if self.next.is_none() || self.previous.is_none() {
            LinkDown
        } else if self.attempt.is_some() {
            Rewiring
        } else {
            Member
        }
    }

    /// The end of every step.
    pub(super) fn settle(&mut self, out: &mut Vec<RingEffect>) {
        let (from, to) = (self.state, self.derive());
        if from == to {
            return;
        }
        let way = TRANSITIONS.iter().find(|(before, after, _)| (*before, *after) == (from, to));
        debug_assert!(way.is_some(), "no way leads from {} to {}", from.name(), to.name());
        let why = way.map_or("", |(_, _, why)| *why);
        (self.state, self.since) = (to, self.now);
        if to == Member {
            self.code = None;
        }
        out.push(RingEffect::Tell(RingNews::State { from, to, why }));
    }
}
