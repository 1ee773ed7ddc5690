//! The connection from the predecessor: accepted or refused.

use std::collections::BTreeMap;

use turno_proto::model::ring::{ConnectPurpose, Member, RingMessage};
use turno_proto::model::{Code, ConnId, Mono, limits};

use super::heal::LostPrevious;
use super::states::NodeState;
use super::{Conn, ConnectionRole, FRESH_MAX, RingEffect, RingNode};

impl Conn {
    pub(super) const fn new(peer: Option<Member>, role: ConnectionRole, since: Mono) -> Self {
        Self { peer, role, since, caught_up: false, leaving: false, heard: BTreeMap::new() }
    }
}

/// The predecessor of this node, in any state.
#[derive(Debug, Default)]
pub(super) struct Previous {
    pub(super) conn: Option<ConnId>,
    /// It was lost, and the circle has not been whole since.
    pub(super) lost: Option<LostPrevious>,
}

impl RingNode {
    /// Somebody dialled, and showed who it is.
    pub(super) fn accepted(&mut self, id: ConnId, peer: Option<Member>, out: &mut Vec<RingEffect>) {
        let fresh = self.conns.values().filter(|conn| conn.role == ConnectionRole::Fresh).count();
        let verdict = match &peer {
            _ if matches!(self.state, NodeState::Off) => Err(Code::NotInRing),
            _ if fresh >= FRESH_MAX => Err(Code::RingBusy),
            Some(peer) => self.may_speak(peer),
            None => Ok(()),
        };
        // A known member that lives anew, or anybody to one that finds nobody to join. Otherwise nobody is a member by knocking.
        if let (Some(peer), Ok(())) = (&peer, verdict)
            && (matches!(self.state, NodeState::Joining(_)) || self.roll.incarnation(peer.origin.sid).is_some())
        {
            self.roll.meet(peer);
        }
        self.conns.insert(id, Conn::new(peer, ConnectionRole::Fresh, self.now));
        if let Err(code) = verdict {
            self.turn_away(id, code, None, out);
        }
    }

    /// A second broker with this number, or an earlier life of one, has no voice.
    fn may_speak(&self, peer: &Member) -> Result<(), Code> {
        if peer.origin.sid == self.sid() {
            return Err(Code::DuplicateSid);
        }
        if !self.roll.is_plausible(peer.origin.incarnation) {
            return Err(Code::BadBody);
        }
        // Without a secret the later life may be a stranger's claim. On one machine the life that listens at the address is the
        // latest, so that nobody needs to be fenced off.
        let known = self.roll.incarnation(peer.origin.sid).filter(|_| self.settings.has_secret);
        if known.is_some_and(|known| known > peer.origin.incarnation) { Err(Code::Fenced) } else { Ok(()) }
    }

    /// RETCONN without content: the other end wants to send here from now on.
    pub(super) fn opened(&mut self, id: ConnId, purpose: ConnectPurpose, out: &mut Vec<RingEffect>) {
        let Some(peer) = self.conns.get(&id).and_then(|conn| conn.peer.as_ref()) else {
            return self.turn_away(id, Code::RingRefused, None, out);
        };
        match self.may_precede(peer) {
            Ok(()) => {
                if purpose == ConnectPurpose::Join
                    && let NodeState::Joining(joining) = &mut self.state
                {
                    joining.claimed_by = Some(id);
                }
                self.take_as_previous(id, out);
            }
            Err(code) => self.turn_away(id, code, None, out),
        }
    }

    /// Whether that one may be the predecessor.
    fn may_precede(&self, peer: &Member) -> Result<(), Code> {
        match self.state {
            NodeState::Off | NodeState::Leaving(_) | NodeState::Alone(_) => return Err(Code::NotInRing),
            NodeState::Joining(_) => return Ok(()),
            NodeState::Member(_) => {}
        }
        let Some(previous) = self.previous.conn.and_then(|id| self.conns.get(&id)) else { return Ok(()) };
        match &previous.peer {
            _ if previous.leaving => return Ok(()),
            Some(there) if there.origin.sid != peer.origin.sid => {}
            // Two brokers with one sid would take this place from each other without end.
            Some(there) if there.address != peer.address => return Err(Code::DuplicateSid),
            // The same member on another connection.
            Some(_) => return Ok(()),
            None => {}
        }
        if self.is_whole() {
            return Err(Code::RingWhole);
        }
        // Somebody else sends here, and yet the circle has been open for long: the other may know better.
        let broken_ms = self.now.millis_since(self.roll.whole_at());
        if broken_ms >= self.settings.timers.wait_ms { Ok(()) } else { Err(Code::RingBusy) }
    }

    /// That connection is the predecessor's from now on, and hears what this node has.
    pub(super) fn take_as_previous(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        self.promote(id, out);
        let had = self.had();
        self.say(id, RingMessage::Have { had }, out);
    }

    /// That connection is the predecessor's from now on.
    pub(super) fn promote(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        let sid = self.conns.get(&id).and_then(Conn::sid);
        let old = self.previous.conn.replace(id);
        if let Some(old) = old.filter(|old| *old != id)
            && let Some(conn) = self.conns.get_mut(&old)
        {
            if conn.leaving {
                conn.role = ConnectionRole::Draining;
            } else {
                // The same member on another connection hears nothing of it: its old one is broken.
                if conn.sid() != sid {
                    self.say(old, RingMessage::Refused { code: Code::Replaced, instead: None }, out);
                }
                self.close(old, None, out);
            }
        }
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.role = ConnectionRole::Previous;
        }
        self.neighbour_changed();
    }

    /// The sender has replayed what was missing.
    pub(super) fn caught_up(&mut self, id: ConnId, members: Vec<Member>) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.caught_up = true;
        }
        for member in members.iter().take(limits::RING_MEMBERS_MAX) {
            self.roll.know(member);
        }
    }

    /// `--sid auto`: the number after the highest that is known (S3.6).
    pub(super) fn asked_for_sid(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        match self.roll.free_sid() {
            Some(sid) => {
                self.say(id, RingMessage::FreeSid { sid }, out);
                self.close(id, None, out);
            }
            None => self.turn_away(id, Code::RingFull, None, out),
        }
    }

    pub(super) fn previous_peer(&self) -> Option<&Member> {
        self.conns.get(&self.previous.conn?)?.peer.as_ref()
    }
}
