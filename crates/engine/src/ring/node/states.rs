//! The states of a ring node, with the data of each. The possible transitions are written here and in
//! docs/how-to/ring.md; a test compares the two.

use turno_proto::model::ConnId;
use turno_proto::model::ring::RingState::{self, Alone, Joining, Leaving, LinkDown, Member, Off, Rewiring};

use super::sending::{Attempt, Membership, Next};
use super::{RingEffect, RingHostEffect, RingNews, RingNode, join, leave};

/// The cause of a transition.
pub type TransitionReason = &'static str;

/// Every way there is.
pub const TRANSITIONS: &[(RingState, RingState, TransitionReason)] = &[
    (Alone, Joining, "told to join, or a ring with a lower sid was found"),
    (Alone, Rewiring, "a broker asks to join"),
    (Alone, Member, "a broker joined"),
    (Alone, Off, "told to leave, or all shut down"),
    (Joining, Member, "the predecessor has connected and replayed"),
    (Joining, Rewiring, "the predecessor has connected, and a broker joins behind"),
    (Joining, LinkDown, "a neighbour was lost as soon as the position was found"),
    (Joining, Alone, "no member can be joined"),
    (Joining, Leaving, "told to leave"),
    (Joining, Off, "told to leave, refused for good, or all shut down"),
    (Member, Rewiring, "a broker joins or leaves behind this one"),
    (Member, LinkDown, "a neighbour is lost"),
    (Member, Joining, "another broker has the position, or a ring with a lower sid was found"),
    (Member, Alone, "the only other member left, or another broker has the same sid"),
    (Member, Leaving, "told to leave"),
    (Member, Off, "all shut down, or fenced off"),
    (Rewiring, Member, "the new next member has accepted, or could not be reached"),
    (Rewiring, LinkDown, "a neighbour is lost"),
    (Rewiring, Joining, "another broker has the position, or a ring with a lower sid was found"),
    (
        Rewiring,
        Alone,
        "the joining broker cannot be reached, the only other member left, or another broker has the same sid",
    ),
    (Rewiring, Leaving, "told to leave"),
    (Rewiring, Off, "all shut down, or fenced off"),
    (LinkDown, Member, "both neighbours are back"),
    (LinkDown, Rewiring, "both neighbours are back, and a broker joins or leaves behind this one"),
    (LinkDown, Joining, "no neighbour returned in time, the ring has ended, or another broker has the position"),
    (LinkDown, Alone, "the only other member is lost"),
    (LinkDown, Leaving, "told to leave"),
    (LinkDown, Off, "told to leave, all shut down, or fenced off"),
    (Leaving, Off, "SERVOFF came back, or took too long"),
    (Off, Joining, "told to join"),
];

/// Where a node is.
#[derive(Debug)]
pub(super) enum NodeState {
    /// A ring of one, and its attempt to send to somebody who joins.
    Alone(Option<Attempt>),
    /// On its way in.
    Joining(Box<join::Joining>),
    /// In the ring, whether its neighbours are there or lost.
    Member(Membership),
    /// On its way out.
    Leaving(leave::Leaving),
    /// Out of the ring.
    Off,
}

impl NodeState {
    /// The connection to the next member.
    #[inline]
    pub(super) const fn next(&self) -> Option<ConnId> {
        match self {
            Self::Joining(joining) => joining.next,
            Self::Member(Membership { next: Next::There(next), .. }) => Some(*next),
            Self::Leaving(leaving) => Some(leaving.next),
            Self::Member(Membership { next: Next::Lost(_), .. }) | Self::Alone(_) | Self::Off => None,
        }
    }

    /// Its attempt to send to another, whatever for.
    pub(super) const fn attempt(&self) -> Option<&Attempt> {
        match self {
            Self::Alone(attempt) => attempt.as_ref(),
            Self::Joining(joining) => joining.attempt(),
            Self::Member(Membership { attempt: Some((attempt, _)), .. }) => Some(attempt),
            Self::Member(_) | Self::Leaving(_) | Self::Off => None,
        }
    }

    pub(super) const fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        match self {
            Self::Alone(attempt) => attempt.as_mut(),
            Self::Joining(joining) => joining.attempt_mut(),
            Self::Member(Membership { attempt: Some((attempt, _)), .. }) => Some(attempt),
            Self::Member(_) | Self::Leaving(_) | Self::Off => None,
        }
    }

    pub(super) const fn is_alone(&self) -> bool {
        matches!(self, Self::Alone(_))
    }

    /// Whether it is on its way, in or out.
    pub(super) const fn is_on_its_way(&self) -> bool {
        matches!(self, Self::Joining(_) | Self::Leaving(_))
    }

    /// Its name, for others.
    const fn name(&self, has_previous: bool) -> RingState {
        match self {
            Self::Alone(None) => Alone,
            Self::Joining(_) => Joining,
            Self::Member(Membership { next: Next::There(_), attempt: None, .. }) if has_previous => Member,
            Self::Member(Membership { next: Next::There(_), .. }) if has_previous => Rewiring,
            Self::Member(_) => LinkDown,
            Self::Alone(Some(_)) => Rewiring,
            Self::Leaving(_) => Leaving,
            Self::Off => Off,
        }
    }
}

impl RingNode {
    /// The end of every step.
    pub(super) fn settle(&mut self, out: &mut Vec<RingEffect>) {
        let (from, to) = (self.told, self.state.name(self.previous.conn.is_some()));
        if from == to {
            return;
        }
        let way = TRANSITIONS.iter().find(|(before, after, _)| (*before, *after) == (from, to));
        debug_assert!(way.is_some(), "no way leads from {} to {}", from.name(), to.name());
        let why = way.map_or("", |(_, _, why)| *why);
        (self.told, self.since) = (to, self.now);
        if to == Member {
            self.code = None;
        }
        out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::State { from, to, why })));
    }
}
