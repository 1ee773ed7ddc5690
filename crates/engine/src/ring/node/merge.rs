//! The search for lost members, and the merge of two rings.
//!
//! A cut network leaves two rings. Each knows whom it lost. Once one of them is found again, the ring whose lowest number is
//! higher goes over to the other, member by member.

use std::collections::BTreeMap;

use turno_proto::model::ring::{Circle, Member, Origin, RingMessage};
use turno_proto::model::{ConnId, Mono, limits};

use super::states::NodeState;
use super::{RingEffect, RingHostEffect, RingNews, RingNode, RingPeerEffect};

/// Those that are not the lowest of their circle look so many times less often.
const OTHERS_REST: u64 = 5;

/// Looking for lost members.
#[derive(Debug, Default)]
pub(super) struct MemberSearch {
    /// By their number: a connection that is wanted for a question, or there.
    probes: BTreeMap<u32, Option<ConnId>>,
    not_before: Mono,
    /// The next candidate if there are many.
    turn: usize,
}

impl MemberSearch {
    pub(super) fn dialled(&mut self, target: u32, conn: ConnId) -> bool {
        self.probes.get_mut(&target).map(|probe| *probe = Some(conn)).is_some()
    }

    pub(super) fn dial_failed(&mut self, target: u32) {
        self.probes.remove(&target);
    }

    pub(super) fn over(&mut self, conn: ConnId) {
        self.probes.retain(|_, probe| *probe != Some(conn));
    }

    /// Those that are only wanted; existing connections are closed by their owners.
    pub(super) fn drop_all(&mut self, out: &mut Vec<RingEffect>) {
        for (target, _) in std::mem::take(&mut self.probes).into_iter().filter(|(_, conn)| conn.is_none()) {
            out.push(RingEffect::Peer(RingPeerEffect::Forget { target }));
        }
    }

    /// Nothing for a while: it would come to the same.
    pub(super) fn rest(&mut self, now: Mono, millis: u64) {
        self.not_before = self.not_before.max(now.plus_millis(millis));
    }
}

impl RingNode {
    pub(super) fn search_deadline(&self) -> Option<Mono> {
        let is_over = self.state.is_on_its_way() || self.roll.lost().next().is_none();
        (!is_over).then_some(self.search.not_before)
    }

    pub(super) fn tick_search(&mut self, out: &mut Vec<RingEffect>) {
        if self.search_deadline().is_none_or(|at| self.now < at) {
            return;
        }
        let retry_ms = self.settings.timers.retry_ms;
        if !self.is_whole() {
            // It looks soon after the ring is whole again: the lowest member may be new and know of nobody lost.
            return self.search.rest(self.now, retry_ms);
        }
        let is_lowest = self.roll.lowest() == Some(self.sid());
        self.search.rest(self.now, if is_lowest { retry_ms } else { retry_ms * OTHERS_REST });
        for conn in self.search.probes.values().copied().flatten().collect::<Vec<_>>() {
            self.close(conn, None, out);
        }
        self.search.drop_all(out);
        let lost: Vec<String> = self.roll.lost().map(|member| member.address.clone()).collect();
        for step in 0..lost.len().min(limits::RING_PROBES_MAX) {
            let target = self.new_target();
            let address = lost[(self.search.turn + step) % lost.len()].clone();
            self.search.probes.insert(target, None);
            out.push(RingEffect::Peer(RingPeerEffect::Dial { target, address }));
        }
        self.search.turn = self.search.turn.wrapping_add(limits::RING_PROBES_MAX);
    }

    /// Another member asks who is here, and tells who is there.
    pub(super) fn probed(&mut self, id: ConnId, theirs: &Circle, out: &mut Vec<RingEffect>) {
        let peer = self.conns.get(&id).and_then(|conn| conn.peer.clone());
        self.say(id, RingMessage::Circle(self.circle()), out);
        self.close(id, None, out);
        if let Some(peer) = peer {
            self.compare(peer, theirs, out);
        }
    }

    /// A lost member answers.
    pub(super) fn found(&mut self, id: ConnId, theirs: &Circle, out: &mut Vec<RingEffect>) {
        let peer = self.conns.get(&id).and_then(|conn| conn.peer.clone());
        self.search.over(id);
        self.close(id, None, out);
        if let Some(peer) = peer {
            self.compare(peer, theirs, out);
        }
    }

    /// Two rings: the one with the higher lowest number goes over.
    fn compare(&mut self, peer: Member, theirs: &Circle, out: &mut Vec<RingEffect>) {
        let is_settled = !self.state.is_on_its_way() && self.state.attempt().is_none();
        if !(is_settled && theirs.whole && self.is_whole()) {
            return;
        }
        let is_same = theirs.members.iter().any(|member| member.origin.sid == self.sid())
            || (!self.state.is_alone() && self.roll.member(peer.origin.sid).is_some());
        let lowest = theirs.members.iter().map(|member| member.origin.sid).min();
        let own = if self.state.is_alone() { Some(self.sid()) } else { self.roll.lowest() };
        if !is_same && lowest.is_some() && lowest < own {
            let origin = self.settings.me.origin;
            self.pass_on(RingMessage::Merge { origin, contact: peer.clone(), hops: 0 }, out);
            self.go_over(peer, out);
        }
    }

    /// MERGE, on its way round.
    pub(super) fn told_to_merge(&mut self, origin: Origin, contact: Member, hops: u8, out: &mut Vec<RingEffect>) {
        // A member that has gone over, or is there already, does not pass it on: the other ring is not meant.
        let is_there = contact.origin.sid == self.sid() || self.roll.member(contact.origin.sid).is_some();
        let is_over = match &self.state {
            NodeState::Joining(joining) => joining.is_placed(),
            NodeState::Leaving(_) => true,
            NodeState::Alone(_) | NodeState::Member(_) | NodeState::Off => false,
        };
        if origin.sid == self.sid() || is_there || is_over {
            return;
        }
        let message = contact.clone();
        self.hop(hops, |hops| RingMessage::Merge { origin, contact: message, hops }, out);
        if !matches!(self.state, NodeState::Joining(_)) {
            self.go_over(contact, out);
        }
    }

    fn go_over(&mut self, contact: Member, out: &mut Vec<RingEffect>) {
        out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Merge { contact: contact.origin.sid })));
        self.rejoin(Some(contact.address), out);
    }
}
