//! Views of the ring.

use turno_proto::model::ring::view::{MemberView, RingCounters, RingView};
use turno_proto::model::ring::{Member, Sid};
use turno_proto::model::{Moment, Mono, Seconds};

use super::RingNode;
use super::states::NodeState;

impl RingNode {
    /// Bytes of publications that have not come round.
    pub(in crate::ring) const fn kept_bytes(&self) -> u64 {
        self.publications.kept().1
    }

    /// Whether the broker links with its next one too.
    pub(in crate::ring) const fn links(&self) -> bool {
        self.settings.links
    }

    /// The node's counters.
    pub const fn counters(&self) -> &RingCounters {
        &self.counters
    }

    /// The sid of the next member.
    pub fn next_sid(&self) -> Option<Sid> {
        self.next_peer().map(|peer| peer.origin.sid)
    }

    /// Where it asks, or will ask, for a place.
    pub fn asks(&self) -> Option<&String> {
        match &self.state {
            NodeState::Joining(joining) => joining.first_choice(),
            NodeState::Alone(_) | NodeState::Member(_) | NodeState::Leaving(_) | NodeState::Off => None,
        }
    }

    /// Since when it is in its state.
    pub(in crate::ring) const fn since(&self) -> Mono {
        self.since
    }

    /// The ring as this node sees it, but for calendar times and texts.
    pub fn view(&self) -> RingView {
        let view = |member: &Member| MemberView {
            sid: member.origin.sid,
            role: String::new(),
            incarnation: member.origin.incarnation,
            address: member.address.clone(),
            native: Some(member.native.clone()).filter(|native| !native.is_empty()),
        };
        let (buffered, buffer_bytes) = self.publications.kept();
        let me = &self.settings.me;
        RingView {
            sid: me.origin.sid,
            incarnation: me.origin.incarnation,
            address: me.address.clone(),
            secret: self.settings.has_secret,
            state: self.told,
            since_at: Moment::default(),
            whole: self.is_whole(),
            why: None,
            previous: self.previous_peer().map(|peer| peer.origin.sid),
            next: self.next_peer().map(|peer| peer.origin.sid),
            members: self.circle().members.iter().map(view).collect(),
            lost: self.roll.lost().map(view).collect(),
            round_trip_seconds: self.roll.round_trip_us().map(Seconds::from_micros),
            not_round: self.publications.under_way(),
            oldest_seconds: self.publications.oldest().map(|at| Seconds::from_millis(self.now.millis_since(at))),
            buffered,
            buffer_bytes,
            slowed: self.publications.is_slowed(),
            counters: self.counters,
            code: self.code.map(|code| code.name().to_owned()),
        }
    }
}
