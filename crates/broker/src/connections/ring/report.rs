//! Reports of the ring node to the host of the broker.

use std::fmt::Display;

use tracing::{info, warn};
use turno_engine::ring::{RingHostEffect, RingNews};
use turno_proto::model::Code;
use turno_proto::model::ring::RingState;

use crate::log_limit::{self, LogKind};

/// Reports that the host of the broker must act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingReport {
    /// It has a place in the ring; or in one of its own, where others join.
    Joined,
    /// It could not join at the start, and goes on trying.
    Waiting,
    /// It could not join at the start, or must not be in the ring.
    Failed(Code),
    /// It is out of the ring, as it was asked to.
    Left,
    /// The whole ring ends: so shall the broker.
    Stop,
}

impl RingReport {
    /// The report in what became of the node's place in the ring, if there is one.
    pub(in super::super) const fn of(effect: &RingHostEffect) -> Option<Self> {
        match effect {
            RingHostEffect::Failed(code) => Some(Self::Failed(*code)),
            RingHostEffect::Left => Some(Self::Left),
            RingHostEffect::Stop => Some(Self::Stop),
            RingHostEffect::Tell(news) => Self::of_news(news),
        }
    }

    const fn of_news(news: &RingNews) -> Option<Self> {
        match news {
            RingNews::Waits { .. } => Some(Self::Waiting),
            RingNews::State { from: RingState::Joining, to, .. } => match to {
                RingState::Joining | RingState::Leaving | RingState::Off => None,
                RingState::Alone | RingState::Member | RingState::Rewiring | RingState::LinkDown => Some(Self::Joined),
            },
            RingNews::State { .. }
            | RingNews::Whole { .. }
            | RingNews::Healed { .. }
            | RingNews::Refused { .. }
            | RingNews::Unproven { .. }
            | RingNews::Merge { .. }
            | RingNews::Namesake { .. }
            | RingNews::Missed { .. }
            | RingNews::Overdue { .. } => None,
        }
    }
}

/// A line of the log.
pub(in super::super) fn log_news(news: &RingNews) {
    match news {
        RingNews::State { from, to, why } => {
            info!(from = from.name(), to = to.name(), why, "ring state changed");
        }
        RingNews::Whole { members, came, went } => {
            info!(members = list(members), came = list(came), went = list(went), "ring is whole");
        }
        RingNews::Healed { next } => info!(%next, "the ring healed around a lost member"),
        RingNews::Waits { code } => warn!(%code, "cannot join the ring yet: retrying every second"),
        RingNews::Namesake { address } => {
            warn!(address, "ring: another broker has the same sid and started earlier: left the ring");
        }
        RingNews::Merge { contact } => info!(%contact, "two rings are merging"),
        RingNews::Refused { peer, code } => {
            let peer = peer.map_or_else(|| "unknown".to_owned(), |sid| sid.to_string());
            if log_limit::admits(LogKind::RingRefused) {
                warn!(peer, %code, "ring: refused a connection");
            }
        }
        RingNews::Unproven { peer, claim } => {
            let peer = peer.map_or_else(|| "unknown".to_owned(), |sid| sid.to_string());
            warn!(peer, claim, "ring: ignored an unauthenticated message (no ring.secret)");
        }
        RingNews::Missed { origin, count } => {
            warn!(%origin, count, "ring: missed publications while out of the ring");
        }
        RingNews::Overdue { seq, millis } => {
            warn!(seq, millis, "ring: a publication has not completed its round for a long time");
        }
    }
}

fn list(of: &[impl Display]) -> String {
    of.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use RingState::{Alone, Joining, Leaving, LinkDown, Member, Off, Rewiring};

    use super::*;

    /// A broker that comes from outside and is not turned away has joined.
    #[test]
    fn who_has_joined() {
        for to in [Alone, Member, Rewiring, LinkDown] {
            let state = |from| RingReport::of(&RingHostEffect::Tell(RingNews::State { from, to, why: "" }));
            assert_eq!((state(Joining), state(Member)), (Some(RingReport::Joined), None), "{to:?}");
        }
        for to in [Leaving, Off] {
            assert_eq!(
                RingReport::of(&RingHostEffect::Tell(RingNews::State { from: Joining, to, why: "" })),
                None,
                "{to:?}"
            );
        }
    }
}
