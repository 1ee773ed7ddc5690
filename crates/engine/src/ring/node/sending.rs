//! The connection to the next member, and attempts to replace it.

use std::collections::VecDeque;

use turno_proto::model::ring::{ConnectPurpose, JoinVerdict, LastReceived, Member, NewConn, RetConn, RingMessage, Sid};
use turno_proto::model::{Code, ConnId, Mono};

use super::heal::LostNext;
use super::joiners::Joiner;
use super::states::NodeState;
use super::{Conn, ConnectionRole, RingEffect, RingHostEffect, RingNews, RingNode, RingPeerEffect};

/// A connection that is being made to have a next one, or another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    target: u32,
    conn: Option<ConnId>,
    until: Mono,
}

impl Attempt {
    pub(super) const fn conn(&self) -> Option<ConnId> {
        self.conn
    }
}

/// The purpose of a member's attempt.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// To send to the same one as before.
    Return,
    /// To send to the successor of a lost member.
    Heal,
    /// To send to a broker that joins between this one and its next. NEWCONN goes out on the old path afterwards.
    Claim(Box<NewConn>),
    /// To send to the successor of a member that leaves. The leaver gets this message afterwards.
    Left(Box<RingMessage>),
}

impl Purpose {
    const fn purpose(&self) -> ConnectPurpose {
        match self {
            Self::Return => ConnectPurpose::Return,
            Self::Heal => ConnectPurpose::Heal,
            Self::Claim(_) => ConnectPurpose::Join,
            Self::Left(_) => ConnectPurpose::Left,
        }
    }
}

/// The state of a member beside its predecessor.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) next: Next,
    /// To send to another.
    pub(super) attempt: Option<(Attempt, Purpose)>,
    pub(super) joiners: VecDeque<Joiner>,
}

/// The next member.
#[derive(Debug)]
pub(super) enum Next {
    There(ConnId),
    Lost(LostNext),
}

impl Next {
    /// From now on that one. Returns the one until now.
    fn replace(&mut self, id: ConnId) -> Option<ConnId> {
        match std::mem::replace(self, Self::There(id)) {
            Self::There(old) => Some(old),
            Self::Lost(_) => None,
        }
    }
}

impl Membership {
    pub(super) const fn new(next: ConnId) -> Self {
        Self { next: Next::There(next), attempt: None, joiners: VecDeque::new() }
    }
}

/// The purpose of an attempt that has ended.
enum EndedAttempt {
    /// To send to somebody who joins one that is alone.
    Alone,
    /// To become a member.
    Joining,
    Member(Purpose),
}

impl RingNode {
    /// Whether it may send to another now: it is a member, and not about to do so for somebody who joins or leaves.
    pub(super) const fn may_rewire(&self) -> bool {
        let NodeState::Member(place) = &self.state else { return false };
        matches!(place.attempt, None | Some((_, Purpose::Return | Purpose::Heal)))
    }

    /// A member begins an attempt; there is none.
    pub(super) fn try_for(&mut self, address: String, purpose: Purpose, out: &mut Vec<RingEffect>) {
        debug_assert!(self.state.attempt().is_none(), "one attempt at a time");
        let attempt = self.attempt(address, out);
        if let NodeState::Member(place) = &mut self.state {
            place.attempt = Some((attempt, purpose));
        }
    }

    /// Wants a connection to send over.
    pub(super) fn attempt(&mut self, address: String, out: &mut Vec<RingEffect>) -> Attempt {
        let until = self.now.plus_millis(self.settings.timers.dial_ms);
        let target = self.new_target();
        out.push(RingEffect::Peer(RingPeerEffect::Dial { target, address }));
        Attempt { target, conn: None, until }
    }

    pub(super) fn new_target(&mut self) -> u32 {
        self.targets = self.targets.wrapping_add(1);
        self.targets
    }

    /// A connection that was wanted is there.
    pub(super) fn dialled(&mut self, target: u32, id: ConnId, peer: Member, out: &mut Vec<RingEffect>) {
        let sid = peer.origin.sid;
        let is_attempt = self.is_attempt(target);
        let is_meant = !is_attempt || self.is_meant(sid);
        // A broker that is not meant is not remembered: it would be asked next.
        if is_meant {
            self.roll.meet(&peer);
        }
        if is_attempt {
            self.conns.insert(id, Conn::new(Some(peer), ConnectionRole::Opening, self.now));
            let message = self.reached(id, sid);
            if sid == self.sid() {
                // One that says my number, or myself.
                self.attempt_failed(Code::DuplicateSid, None, out);
            } else if is_meant {
                self.say(id, message, out);
            } else {
                self.attempt_failed(Code::WrongSid, None, out);
            }
        } else if self.search.dialled(target, id) {
            self.conns.insert(id, Conn::new(Some(peer), ConnectionRole::Probe, self.now));
            self.say(id, RingMessage::Probe(self.circle()), out);
        } else {
            out.push(RingEffect::Peer(RingPeerEffect::Close { conn: id, code: None }));
        }
    }

    /// The attempt has a connection. Returns the first message on it.
    fn reached(&mut self, id: ConnId, sid: Sid) -> RingMessage {
        let timers = self.settings.timers;
        let mut until = self.now.plus_millis(timers.dial_ms);
        if let NodeState::Joining(joining) = &mut self.state {
            joining.asked = Some(sid);
            // A joiner may have to wait for those before it.
            until = until.plus_millis(timers.join_ms * 4);
        }
        if let Some(attempt) = self.state.attempt_mut() {
            (attempt.conn, attempt.until) = (Some(id), until);
        }
        let purpose = match &self.state {
            NodeState::Joining(_) => {
                let joiner = self.settings.me.clone();
                return RingMessage::NewConn(NewConn { joiner, content: None, gap: false, verdict: None, hops: 0 });
            }
            NodeState::Member(Membership { attempt: Some((_, purpose)), .. }) => purpose.purpose(),
            NodeState::Alone(_) | NodeState::Member(_) | NodeState::Leaving(_) | NodeState::Off => ConnectPurpose::Join,
        };
        RingMessage::RetConn(RetConn::Open { purpose })
    }

    fn is_attempt(&self, target: u32) -> bool {
        self.state.attempt().is_some_and(|attempt| attempt.target == target)
    }

    pub(super) fn dial_failed(&mut self, target: u32, code: Code, out: &mut Vec<RingEffect>) {
        if self.is_attempt(target) {
            self.attempt_failed(code, None, out);
        } else {
            self.search.dial_failed(target);
        }
    }

    /// HAVE came: the other end takes this one as its predecessor.
    pub(super) fn welcomed(&mut self, id: ConnId, had: Vec<LastReceived>, out: &mut Vec<RingEffect>) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.role = ConnectionRole::Next;
        let next = conn.sid();
        match &mut self.state {
            NodeState::Alone(_) => self.state = NodeState::Member(Membership::new(id)),
            NodeState::Joining(joining) => {
                let old = joining.placed(id, self.now);
                self.close_old(old, out);
            }
            NodeState::Member(Membership { next: old, attempt, .. }) => {
                let old = old.replace(id);
                if let Some((_, purpose)) = attempt.take() {
                    self.rewired(old, purpose, next, out);
                }
            }
            NodeState::Leaving(_) | NodeState::Off => {}
        }
        self.neighbour_changed();
        self.replay(id, &had, out);
        let members = self.roll.members();
        self.say(id, RingMessage::CaughtUp { members }, out);
        self.claim_for_itself(out);
        self.call_roll(out);
    }

    /// A member sends to another from now on.
    fn rewired(&mut self, old: Option<ConnId>, purpose: Purpose, next: Option<Sid>, out: &mut Vec<RingEffect>) {
        match purpose {
            Purpose::Claim(mut message) => {
                message.verdict = Some(JoinVerdict::Claimed);
                self.retire(old, RingMessage::NewConn(*message), out);
            }
            Purpose::Left(message) => self.retire(old, *message, out),
            Purpose::Return => self.close_old(old, out),
            Purpose::Heal => {
                self.close_old(old, out);
                self.counters.healed += 1;
                if let Some(next) = next {
                    out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Healed { next })));
                }
            }
        }
    }

    /// The last message on the old path; the other end closes it when it has read all.
    fn retire(&mut self, old: Option<ConnId>, message: RingMessage, out: &mut Vec<RingEffect>) {
        let Some(old) = old else { return };
        self.say(old, message, out);
        if let Some(conn) = self.conns.get_mut(&old) {
            (conn.role, conn.since) = (ConnectionRole::Retired, self.now);
        }
    }

    pub(super) fn close_old(&mut self, old: Option<ConnId>, out: &mut Vec<RingEffect>) {
        if let Some(old) = old {
            self.close(old, None, out);
        }
    }

    /// The other end said no.
    pub(super) fn refused(&mut self, id: ConnId, mut code: Code, instead: Option<Member>, out: &mut Vec<RingEffect>) {
        if code == Code::Fenced && !self.settings.has_secret {
            self.disbelieve(self.conns.get(&id).and_then(Conn::sid), "fenced", out);
            code = Code::RingRefused;
        }
        match self.conns.get(&id).map(|conn| conn.role) {
            Some(ConnectionRole::Opening) => self.attempt_failed(code, instead, out),
            Some(ConnectionRole::Next) => {
                let Some(conn) = self.conns.remove(&id) else { return };
                out.push(RingEffect::Peer(RingPeerEffect::Close { conn: id, code: None }));
                self.dismissed(conn, code, out);
            }
            _ => self.close(id, None, out),
        }
    }

    /// The attempt came to nothing.
    pub(super) fn attempt_failed(&mut self, code: Code, instead: Option<Member>, out: &mut Vec<RingEffect>) {
        let Some(ended) = self.end_attempt(out) else { return };
        if code == Code::Fenced {
            out.push(RingEffect::Host(RingHostEffect::Failed(code)));
            return self.be_off(Some(code), out);
        }
        match ended {
            EndedAttempt::Alone => self.be_alone(out),
            EndedAttempt::Joining => self.not_joined(code, instead, out),
            EndedAttempt::Member(Purpose::Return | Purpose::Heal) => self.not_healed(code, out),
            EndedAttempt::Member(purpose) => self.path_stays(purpose, out),
        }
    }

    /// Somebody joins or leaves, and cannot be reached, or something else is more important now: the old path is told.
    fn path_stays(&mut self, purpose: Purpose, out: &mut Vec<RingEffect>) {
        match purpose {
            Purpose::Claim(mut message) => {
                message.verdict = Some(JoinVerdict::Refused(Code::RingBusy));
                self.pass_on(RingMessage::NewConn(*message), out);
            }
            Purpose::Left(message) => {
                if !self.pass_on(*message, out) {
                    self.retry_soon();
                }
            }
            Purpose::Return | Purpose::Heal => {}
        }
    }

    /// Gives the attempt up for something else.
    pub(super) fn drop_attempt(&mut self, out: &mut Vec<RingEffect>) {
        if let Some(EndedAttempt::Member(purpose)) = self.end_attempt(out) {
            self.path_stays(purpose, out);
        }
    }

    fn end_attempt(&mut self, out: &mut Vec<RingEffect>) -> Option<EndedAttempt> {
        let (attempt, ended) = match &mut self.state {
            NodeState::Alone(attempt) => (attempt.take()?, EndedAttempt::Alone),
            NodeState::Joining(joining) => (joining.take_attempt()?, EndedAttempt::Joining),
            NodeState::Member(place) => {
                place.attempt.take().map(|(attempt, purpose)| (attempt, EndedAttempt::Member(purpose)))?
            }
            NodeState::Leaving(_) | NodeState::Off => return None,
        };
        match attempt.conn {
            Some(id) => self.close(id, None, out),
            None => out.push(RingEffect::Peer(RingPeerEffect::Forget { target: attempt.target })),
        }
        Some(ended)
    }

    pub(super) fn tick_attempt(&mut self, out: &mut Vec<RingEffect>) {
        if self.state.attempt().is_some_and(|attempt| attempt.until <= self.now) {
            self.attempt_failed(Code::RingDown, None, out);
        }
        let patience = self.settings.timers.wait_ms;
        let old = self.conns.iter().filter(|(_, conn)| conn.role == ConnectionRole::Retired);
        let late: Vec<ConnId> =
            old.filter(|(_, conn)| self.now.millis_since(conn.since) >= patience).map(|(id, _)| *id).collect();
        for id in late {
            self.close(id, None, out);
        }
    }

    pub(super) fn attempt_deadline(&self) -> Option<Mono> {
        let old = self.conns.values().filter(|conn| conn.role == ConnectionRole::Retired);
        let retired = old.map(|conn| conn.since.plus_millis(self.settings.timers.wait_ms)).min();
        [self.state.attempt().map(|attempt| attempt.until), retired].into_iter().flatten().min()
    }

    /// The member it sends to.
    pub(in crate::ring) fn next_peer(&self) -> Option<&Member> {
        self.conns.get(&self.state.next()?)?.peer.as_ref()
    }

    /// The same, or whom it sent to until that was lost.
    pub(super) fn next_or_lost(&self) -> Option<&Member> {
        match &self.state {
            NodeState::Member(Membership { next: Next::Lost(lost), .. }) => Some(&lost.member),
            NodeState::Alone(_)
            | NodeState::Joining(_)
            | NodeState::Member(_)
            | NodeState::Leaving(_)
            | NodeState::Off => self.next_peer(),
        }
    }
}
