//! What can be seen of the ring.

use turno_proto::model::ring::view::{MemberView, RingCounters, RingView};
use turno_proto::model::ring::{Member, Sid};

use super::Node;
use super::states::State;

impl Node {
    /// Bytes of publications that have not come round.
    pub(in crate::ring) const fn kept_bytes(&self) -> u64 {
        self.publications.kept().1
    }

    /// Whether the broker links with its next one too.
    pub(in crate::ring) const fn links(&self) -> bool {
        self.settings.links
    }

    /// What it counted.
    pub const fn counters(&self) -> &RingCounters {
        &self.counters
    }

    /// Whom it sends to.
    pub fn next_sid(&self) -> Option<Sid> {
        self.next_peer().map(|peer| peer.origin.sid)
    }

    /// Where it asks, or will ask, for a place.
    pub fn asks(&self) -> Option<&String> {
        match &self.state {
            State::Joining(joining) => joining.first_choice(),
            _ => None,
        }
    }

    /// The ring as this node sees it.
    pub fn view(&self) -> RingView {
        let view = |member: &Member| MemberView {
            sid: member.origin.sid,
            incarnation: member.origin.incarnation,
            address: member.address.clone(),
            native: member.native.clone(),
        };
        let (buffered, buffer_bytes) = self.publications.kept();
        let me = &self.settings.me;
        RingView {
            sid: me.origin.sid,
            incarnation: me.origin.incarnation,
            address: me.address.clone(),
            has_secret: self.settings.has_secret,
            state: self.told,
            since_ms: self.now.millis_since(self.since),
            whole: self.is_whole(),
            previous: self.previous_peer().map(|peer| peer.origin.sid),
            next: self.next_peer().map(|peer| peer.origin.sid),
            members: self.circle().members.iter().map(view).collect(),
            lost: self.roll.lost().map(view).collect(),
            round_trip_us: self.roll.round_trip_us(),
            not_round: self.publications.under_way(),
            oldest_ms: self.publications.oldest().map(|at| self.now.millis_since(at)),
            buffered,
            buffer_bytes,
            slowed: self.publications.is_slowed(),
            counters: self.counters,
            code: self.code.map(|code| code.name().to_owned()),
        }
    }
}
