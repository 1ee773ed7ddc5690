//! Leaving (S3.26 to S3.30), and the shutdown of the ring (S3.42).

use turno_proto::model::ring::{Member, Origin, RingMessage, Sid};
use turno_proto::model::{Code, ConnId, Mono};

use super::sending::Purpose;
use super::states::NodeState;
use super::{ConnectionRole, RingEffect, RingHostEffect, RingNews, RingNode};

/// This node is on its way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    until: Mono,
    pub(super) next: ConnId,
}

impl RingNode {
    /// An admin wants it to leave, or the broker ends.
    pub(super) fn leave(&mut self, out: &mut Vec<RingEffect>) {
        if matches!(self.state, NodeState::Leaving(_)) {
            return;
        }
        let Some(next) = self.state.next() else {
            self.be_off(self.code, out);
            return out.push(RingEffect::Host(RingHostEffect::Left));
        };
        self.drop_attempt(out);
        self.turn_joiners_away(Code::NotInRing, out);
        self.send_all_waiting(out);
        let until = self.now.plus_millis(self.settings.timers.leave_ms);
        self.state = NodeState::Leaving(Leaving { until, next });
        let leaver = self.settings.me.clone();
        self.pass_on(RingMessage::ServOff { leaver, content: None, hops: 0 }, out);
    }

    /// It is out: all that was said is written, then the connections end.
    pub(super) fn gone(&mut self, out: &mut Vec<RingEffect>) {
        self.be_off(None, out);
        out.push(RingEffect::Host(RingHostEffect::Left));
    }

    pub(super) fn tick_leaving(&mut self, out: &mut Vec<RingEffect>) {
        if self.leave_deadline().is_some_and(|until| until <= self.now) {
            self.gone(out);
        }
    }

    pub(super) const fn leave_deadline(&self) -> Option<Mono> {
        match self.state {
            NodeState::Leaving(Leaving { until, .. }) => Some(until),
            NodeState::Alone(_) | NodeState::Joining(_) | NodeState::Member(_) | NodeState::Off => None,
        }
    }

    /// SERVOFF, on its way round.
    pub(super) fn somebody_leaves(
        &mut self,
        id: ConnId,
        leaver: Member,
        content: Option<Box<Member>>,
        hops: u8,
        out: &mut Vec<RingEffect>,
    ) {
        if leaver.origin == self.settings.me.origin {
            // All that this one had to pass on went before.
            if matches!(self.state, NodeState::Leaving(_)) {
                self.gone(out);
            }
            return;
        }
        self.roll.left(leaver.origin);
        let is_next = self.next_peer().is_some_and(|next| next.origin == leaver.origin);
        let Some(successor) = content else { return self.predecessor_leaves(id, leaver, is_next, hops, out) };
        let message = RingMessage::ServOff { leaver, content: Some(successor.clone()), hops: hops.saturating_add(1) };
        if is_next && self.may_rewire() && successor.origin.sid != self.sid() {
            self.drop_attempt(out);
            self.try_for(successor.address, Purpose::Left(Box::new(message)), out);
        } else {
            self.hop(hops, |_| message, out);
        }
    }

    /// The one that sends here leaves. What it still has to pass on is heard until it closes (S3.29).
    fn predecessor_leaves(&mut self, id: ConnId, leaver: Member, is_next: bool, hops: u8, out: &mut Vec<RingEffect>) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.leaving = true;
        if is_next && !matches!(self.state, NodeState::Leaving(_)) {
            // There were two: this one stays alone and says nothing (S3.27).
            conn.role = ConnectionRole::Draining;
            self.previous.conn = None;
            self.be_alone_after(id, out);
        } else {
            let content = Some(Box::new(self.settings.me.clone()));
            self.hop(hops, |hops| RingMessage::ServOff { leaver, content, hops }, out);
        }
    }

    /// Alone, but for what a leaver still says.
    fn be_alone_after(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        let kept = self.conns.remove(&id);
        self.be_alone(out);
        if let Some(kept) = kept {
            self.conns.insert(id, kept);
        }
    }

    /// An admin wants all members to end. Without a secret the others would not believe it: the admin tells each of them.
    pub(super) fn shutdown(&mut self, out: &mut Vec<RingEffect>) {
        if self.settings.has_secret {
            let origin = self.settings.me.origin;
            self.pass_on(RingMessage::Shutdown { origin, hops: 0 }, out);
        }
        self.stop(out);
    }

    /// SHUTDWN, on its way round. The predecessor of its origin does not pass it on. Without a secret anybody on this machine may
    /// have said it, and it counts for nothing.
    pub(super) fn shut_down_by(&mut self, origin: Origin, hops: u8, out: &mut Vec<RingEffect>) {
        if origin.sid == self.sid() {
            if origin != self.settings.me.origin {
                self.counters.forged += 1;
            }
            return;
        }
        if !self.settings.has_secret {
            return self.disbelieve(Some(origin.sid), "SHUTDWN", out);
        }
        if self.next_peer().is_some_and(|next| next.origin.sid != origin.sid) {
            self.hop(hops, |hops| RingMessage::Shutdown { origin, hops }, out);
        }
        self.stop(out);
    }

    /// Counts and tells of a claim that would end this broker, and that nothing proves.
    pub(super) fn disbelieve(&mut self, peer: Option<Sid>, claim: &'static str, out: &mut Vec<RingEffect>) {
        self.counters.forged += 1;
        out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Unproven { peer, claim })));
    }

    fn stop(&mut self, out: &mut Vec<RingEffect>) {
        if !matches!(self.state, NodeState::Off) {
            self.be_off(None, out);
        }
        out.push(RingEffect::Host(RingHostEffect::Stop));
    }
}
