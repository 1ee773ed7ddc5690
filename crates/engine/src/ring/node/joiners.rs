//! Nodes that ask this member for a place.
//!
//! The joiner asks the member that it wants to send to. NEWCONN about it goes round. The member that sent to the asked one sends
//! to the joiner from then on, and says so in its last message on the old path (S3.9 to S3.17).

use turno_proto::model::ring::{JoinVerdict, Member, NewConn, RingMessage, Sid};
use turno_proto::model::{Code, ConnId, Mono, limits};

use super::sending::{Membership, Next, Purpose};
use super::states::NodeState;
use super::{ConnectionRole, RingEffect, RingNode};

/// Somebody who wants to join here.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    pub(super) conn: ConnId,
    member: Member,
    /// When NEWCONN about it was sent; until then those before it have their turn.
    begun: Option<Mono>,
}

impl RingNode {
    /// NEWCONN without content: the other end wants to be the predecessor.
    pub(super) fn asked_to_join(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        let Some(peer) = self.conns.get(&id).and_then(|conn| conn.peer.clone()) else {
            return self.turn_away(id, Code::RingRefused, None, out);
        };
        if self.gives_way_to(peer.origin.sid) || self.is_cut_off() {
            self.be_alone(out);
        } else if self.is_start_of(&peer) {
            self.take_as_previous(id, out);
            self.drop_attempt(out);
            return self.try_for(peer.address, Purpose::Heal, out);
        } else if let Err((code, instead)) = self.may_join(&peer) {
            return self.turn_away(id, code, instead, out);
        }
        if self.state.is_alone() {
            // A ring of one: the joiner is predecessor and next at once (S3.12).
            self.take_as_previous(id, out);
            self.state = NodeState::Alone(Some(self.attempt(peer.address, out)));
        } else if self.is_end_of(&peer) {
            self.take_as_previous(id, out);
        } else if let (NodeState::Member(place), Some(conn)) = (&mut self.state, self.conns.get_mut(&id)) {
            conn.role = ConnectionRole::Joiner;
            place.joiners.push_back(Joiner { conn: id, member: peer, begun: None });
        }
    }

    /// Whether this one sends to the joiner already, and the circle is open: nobody else can hear of it, and the two close it.
    fn is_end_of(&self, joiner: &Member) -> bool {
        self.next_peer().is_some_and(|next| next.origin == joiner.origin) && !self.is_whole()
    }

    /// Whether the joiner sends here already, and this one has lost its next: the two are what is left of a circle, and close it.
    fn is_start_of(&self, joiner: &Member) -> bool {
        let is_open = matches!(&self.state, NodeState::Member(Membership { next: Next::Lost(_), .. }));
        is_open && self.may_rewire() && self.previous_peer().is_some_and(|previous| previous.origin == joiner.origin)
    }

    fn may_join(&self, peer: &Member) -> Result<(), (Code, Option<Member>)> {
        let busy = Err((Code::RingBusy, None));
        let joiners = match &self.state {
            NodeState::Off | NodeState::Leaving(_) => return Err((Code::NotInRing, None)),
            NodeState::Alone(None) => return Ok(()),
            NodeState::Member(Membership { next: Next::There(_), joiners, .. }) => joiners,
            NodeState::Alone(Some(_)) | NodeState::Joining(_) | NodeState::Member(_) => return busy,
        };
        if let Some(there) = self.roll.member(peer.origin.sid).filter(|there| there.origin != peer.origin)
            && there.address != peer.address
        {
            return Err((Code::DuplicateSid, None));
        }
        if self.roll.count() >= limits::RING_MEMBERS_MAX {
            return Err((Code::RingFull, None));
        }
        if joiners.len() >= limits::RING_JOINERS_MAX {
            return busy;
        }
        // While the circle is open, to be in it counts more than to be at the right place.
        if self.settings.sorted && self.is_whole() {
            let place = self.roll.place_of(peer.origin.sid);
            if place.as_ref().is_some_and(|place| place.origin.sid != self.sid()) {
                return Err((Code::Elsewhere, place));
            }
        }
        Ok(())
    }

    pub(super) fn tick_joiners(&mut self, out: &mut Vec<RingEffect>) {
        let patience = self.settings.timers.join_ms * 2;
        let is_late = |joiner: &Joiner| joiner.begun.is_some_and(|begun| self.now.millis_since(begun) >= patience);
        let late = self.joiners().next().filter(|joiner| is_late(joiner)).map(|joiner| joiner.conn);
        if let Some(conn) = late {
            self.turn_away(conn, Code::RingBusy, None, out);
        }
        if self.joiners().next().is_some_and(|joiner| joiner.begun.is_none()) {
            self.begin_join(out);
        }
    }

    /// Joiners at this member, in order.
    pub(super) fn joiners(&self) -> impl Iterator<Item = &Joiner> {
        let joiners = match &self.state {
            NodeState::Member(place) => Some(&place.joiners),
            NodeState::Alone(_) | NodeState::Joining(_) | NodeState::Leaving(_) | NodeState::Off => None,
        };
        joiners.into_iter().flatten()
    }

    /// None of them can join here now.
    pub(super) fn turn_joiners_away(&mut self, code: Code, out: &mut Vec<RingEffect>) {
        let NodeState::Member(place) = &mut self.state else { return };
        for joiner in std::mem::take(&mut place.joiners) {
            self.turn_away(joiner.conn, code, None, out);
        }
    }

    /// The first of them is the predecessor from now on.
    fn promote_joiner(&mut self, out: &mut Vec<RingEffect>) {
        let NodeState::Member(place) = &mut self.state else { return };
        if let Some(joiner) = place.joiners.pop_front() {
            self.promote(joiner.conn, out);
        }
    }

    pub(super) fn joiner_deadline(&self) -> Option<Mono> {
        let begun = self.joiners().next()?.begun.unwrap_or(self.now);
        Some(begun.plus_millis(self.settings.timers.join_ms * 2))
    }

    /// The first of those who wait has its turn.
    fn begin_join(&mut self, out: &mut Vec<RingEffect>) {
        let (sid, gap) = (self.sid(), self.previous.conn.is_none());
        let NodeState::Member(place) = &mut self.state else { return };
        let Some(joiner) = place.joiners.front_mut() else { return };
        joiner.begun = Some(self.now);
        let (conn, joiner) = (joiner.conn, joiner.member.clone());
        let message = NewConn { joiner, content: Some(sid), gap, verdict: None, hops: 0 };
        if !self.pass_on(RingMessage::NewConn(message), out) {
            return self.turn_away(conn, Code::RingBusy, None, out);
        }
        let had = self.had();
        self.say(conn, RingMessage::Have { had }, out);
        if gap {
            self.promote_joiner(out);
        }
    }

    /// NEWCONN with content, on its way round.
    pub(super) fn somebody_joins(&mut self, id: ConnId, mut message: NewConn, out: &mut Vec<RingEffect>) {
        let Some(content) = message.content else { return };
        if content == self.sid() {
            return self.join_came_round(id, &message, out);
        }
        if message.joiner.origin == self.settings.me.origin {
            // The circle from the member that was asked leads here: once it has accepted, this is its predecessor.
            if let (NodeState::Joining(joining), None) = (&mut self.state, message.verdict) {
                joining.own_join = Some(message);
            }
            self.claim_for_itself(out);
            return;
        }
        if message.joiner.origin.sid == self.sid() && message.verdict.is_none() {
            message.verdict = Some(JoinVerdict::Refused(Code::DuplicateSid));
        } else if message.verdict.is_none() && self.has_a_pair(&message.joiner) {
            message.verdict = Some(JoinVerdict::Refused(Code::RingBusy));
        } else if message.verdict.is_none() && self.is_claimed(content, message.gap) {
            return self.claim(message, out);
        }
        self.hop(message.hops, |hops| RingMessage::NewConn(NewConn { hops, ..message }), out);
    }

    /// Whether another with the same number is about to join here. Both NEWCONNs cross: the later one tries again, and
    /// finds the earlier one in the ring.
    fn has_a_pair(&self, joiner: &Member) -> bool {
        let joiners = self.joiners().filter(|other| other.begun.is_some());
        joiners.map(|other| other.member.origin).any(|other| other.sid == joiner.origin.sid && other != joiner.origin)
    }

    /// Whether this node is the one that sends to the member that was asked.
    fn is_claimed(&self, content: Sid, gap: bool) -> bool {
        let is_next = self.next_or_lost().is_some_and(|next| next.origin.sid == content);
        is_next || (gap && self.state.next().is_none())
    }

    fn claim(&mut self, mut message: NewConn, out: &mut Vec<RingEffect>) {
        if !self.may_rewire() {
            message.verdict = Some(JoinVerdict::Refused(Code::RingBusy));
            self.pass_on(RingMessage::NewConn(message), out);
            return;
        }
        self.drop_attempt(out);
        self.roll.meet(&message.joiner);
        self.try_for(message.joiner.address.clone(), Purpose::Claim(Box::new(message)), out);
    }

    /// NEWCONN about a join at this node came back.
    fn join_came_round(&mut self, id: ConnId, message: &NewConn, out: &mut Vec<RingEffect>) {
        let joiner = self.joiners().next().filter(|joiner| joiner.member.origin == message.joiner.origin);
        let joiner = joiner.filter(|joiner| joiner.begun.is_some()).map(|joiner| joiner.conn);
        match (message.verdict, joiner) {
            (Some(JoinVerdict::Claimed), joiner) => {
                // All that came on the old path before is dealt with: it was read in order.
                let by = self.conns.get(&id).and_then(|conn| conn.peer.as_ref());
                if by.is_none_or(|by| by.origin != message.joiner.origin) {
                    self.end_path(id, out);
                }
                match joiner {
                    Some(_) => self.promote_joiner(out),
                    None if self.previous.conn.is_none() => self.miss_previous(message.joiner.origin.sid),
                    None => {}
                }
            }
            (Some(JoinVerdict::Refused(code)), Some(joiner)) => self.turn_away(joiner, code, None, out),
            (None, Some(joiner)) => self.turn_away(joiner, Code::RingBusy, None, out),
            (_, None) => {}
        }
    }

    /// A roll call came round by that connection. If it is the joiner's, and the predecessor is not in the circle, the joiner is in
    /// its place: NEWCONN about the join was lost, and somebody sends to the joiner all the same.
    pub(super) fn came_by(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        let is_joiner = self.joiners().next().is_some_and(|joiner| joiner.conn == id);
        if is_joiner && self.previous_peer().is_none_or(|previous| !self.is_in_circle(previous.origin)) {
            self.promote_joiner(out);
        }
    }

    /// Nothing more comes on that connection.
    fn end_path(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        if self.previous.conn == Some(id) {
            self.previous.conn = None;
        }
        self.close(id, None, out);
    }

    /// Passes a message on that has been through so many members.
    pub(super) fn hop(&mut self, hops: u8, message: impl FnOnce(u8) -> RingMessage, out: &mut Vec<RingEffect>) {
        // In a circle that is known to be whole everyone has heard what has been round twice.
        let most = if self.is_whole() { self.roll.count() * 2 } else { usize::from(limits::RING_HOPS_MAX) };
        if usize::from(hops) >= most.min(usize::from(limits::RING_HOPS_MAX)) {
            self.counters.hop_limit += 1;
        } else {
            self.pass_on(message(hops + 1), out);
        }
    }
}
