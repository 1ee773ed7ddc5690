//! Healing: the loss of a neighbour (S3.18 to S3.25).
//!
//! A member that lost its next one dials it again each second. A member that lost its predecessor waits for it, then calls for the
//! one that sent to it, then for any that has nobody to send to, and in the end joins again.

use turno_proto::model::ring::{LostMember, Member, RetConn, RingMessage, Sid};
use turno_proto::model::{Code, Mono};

use super::sending::{Membership, Next, Purpose};
use super::states::NodeState;
use super::{Conn, RingEffect, RingHostEffect, RingNode};

/// The next one is lost.
#[derive(Clone, Debug)]
pub(super) struct LostNext {
    pub(super) member: Member,
    at: Mono,
    not_before: Mono,
    /// It will not come back to this place: those after it are tried at once.
    is_gone: bool,
    /// Attempts so far at those after it.
    tries: usize,
    /// How many of these said that they are in no ring.
    out: usize,
}

impl LostNext {
    const fn new(member: Member, at: Mono, is_gone: bool) -> Self {
        Self { member, at, not_before: at, is_gone, tries: 0, out: 0 }
    }
}

/// The predecessor is lost, or was, and the circle has not been whole since.
#[derive(Clone, Debug)]
pub(super) struct LostPrevious {
    pub(super) sid: Sid,
    at: Mono,
    /// When it was last called for another.
    called: Option<Mono>,
    calls: u32,
}

impl RingNode {
    /// The connection to the next one is gone.
    pub(super) fn next_lost(&mut self, conn: Conn, out: &mut Vec<RingEffect>) {
        self.sends_to_nobody(conn);
        self.neighbour_changed();
        if matches!(self.state, NodeState::Leaving(_)) {
            self.gone(out);
        }
    }

    /// A member goes on to look for the one that it sent to; one that joins asks elsewhere.
    fn sends_to_nobody(&mut self, conn: Conn) {
        let Some(member) = conn.peer else { return };
        let is_gone = self.roll.has_left(member.origin.sid);
        match &mut self.state {
            NodeState::Joining(joining) => joining.next = None,
            NodeState::Member(place) => place.next = Next::Lost(LostNext::new(member, self.now, is_gone)),
            NodeState::Alone(_) | NodeState::Leaving(_) | NodeState::Off => {}
        }
    }

    /// The next one said that it takes nothing from here any more.
    pub(super) fn dismissed(&mut self, conn: Conn, code: Code, out: &mut Vec<RingEffect>) {
        let address = conn.peer.as_ref().map(|peer| peer.address.clone());
        self.sends_to_nobody(conn);
        match &mut self.state {
            _ if code == Code::Fenced => {
                out.push(RingEffect::Host(RingHostEffect::Failed(code)));
                self.be_off(Some(code), out);
            }
            // The place that it gave is not available after all: at the start there may be nobody else to ask.
            NodeState::Joining(joining) if joining.is_first() => {
                joining.lost_place();
                self.neighbour_changed();
                self.not_joined(code, None, out);
            }
            // It found another one: it is to be asked for a place.
            NodeState::Member(_) if matches!(code, Code::Replaced | Code::RingWhole) => self.rejoin(address, out),
            NodeState::Member(Membership { next: Next::Lost(lost), .. }) => {
                lost.is_gone = true;
                self.neighbour_changed();
            }
            NodeState::Leaving(_) => self.gone(out),
            NodeState::Alone(_) | NodeState::Joining(_) | NodeState::Member(_) | NodeState::Off => {
                self.neighbour_changed()
            }
        }
    }

    /// The connection from the predecessor is gone.
    pub(super) fn previous_lost(&mut self, conn: Conn, out: &mut Vec<RingEffect>) {
        self.previous.conn = None;
        self.neighbour_changed();
        let Some(sid) = conn.sid() else { return };
        match self.state {
            // In a ring of two the other one closes, and that is its answer.
            NodeState::Leaving(_) if self.next_peer().is_none_or(|next| next.origin.sid == sid) => self.gone(out),
            // The one that wanted to join is gone again.
            NodeState::Alone(_) => self.be_alone(out),
            NodeState::Member(_) => self.miss_previous(sid),
            NodeState::Joining(_) | NodeState::Leaving(_) | NodeState::Off => {}
        }
    }

    /// Whether both neighbours have been lost for so long that others have gone on without this one.
    pub(super) fn is_cut_off(&self) -> bool {
        let wait_ms = self.settings.timers.wait_ms;
        let is_over = |at: Mono| self.now.millis_since(at) >= wait_ms;
        let NodeState::Member(Membership { next: Next::Lost(next), .. }) = &self.state else { return false };
        is_over(next.at) && self.missed().is_some_and(|previous| is_over(previous.at))
    }

    /// The predecessor is lost. One that came meanwhile, and went before the circle was whole again, changes nothing: time
    /// counts from the first.
    pub(super) fn miss_previous(&mut self, sid: Sid) {
        let at = self.now;
        self.previous.lost.get_or_insert(LostPrevious { sid, at, called: None, calls: 0 });
    }

    /// The lost predecessor that is waited for.
    fn missed(&self) -> Option<&LostPrevious> {
        self.previous.lost.as_ref().filter(|_| self.previous.conn.is_none())
    }

    /// The next member, or the one that was tried in its place, cannot be reached or refuses.
    pub(super) fn not_healed(&mut self, code: Code, out: &mut Vec<RingEffect>) {
        let (now, retry_ms) = (self.now, self.settings.timers.retry_ms);
        let NodeState::Member(Membership { next: Next::Lost(lost), .. }) = &mut self.state else { return };
        lost.not_before = now.plus_millis(retry_ms);
        match code {
            Code::NotInRing if !lost.is_gone && lost.tries == 0 => (lost.is_gone, lost.not_before) = (true, now),
            Code::RingWhole | Code::Replaced => {
                let address = lost.member.address.clone();
                self.rejoin(Some(address), out);
            }
            _ if lost.tries > 0 && !code_is_busy(code) => {
                lost.out += usize::from(code == Code::NotInRing);
                // The one after it, at once, until all were tried.
                if lost.tries < self.roll.count() {
                    lost.not_before = now;
                } else {
                    (lost.tries, lost.out) = (0, 0);
                }
            }
            _ => {}
        }
    }

    /// The way to a leaver's successor failed, and the leaver is gone.
    pub(super) fn retry_soon(&mut self) {
        if let NodeState::Member(Membership { next: Next::Lost(lost), .. }) = &mut self.state {
            lost.not_before = self.now;
        }
    }

    pub(super) fn tick_healing(&mut self, out: &mut Vec<RingEffect>) {
        self.look_for_previous(out);
        self.look_for_next(out);
    }

    fn look_for_previous(&mut self, out: &mut Vec<RingEffect>) {
        let timers = self.settings.timers;
        let NodeState::Member(Membership { next, .. }) = &self.state else { return };
        let Some(lost) = self.missed() else { return };
        let (sid, waited) = (lost.sid, self.now.millis_since(lost.at));
        if waited < timers.wait_ms {
            return;
        }
        if matches!(next, Next::Lost(next) if next.member.origin.sid == sid) {
            // There were two members, and the other is lost.
            return self.be_alone(out);
        }
        if waited >= timers.rejoin_ms {
            return self.rejoin(None, out);
        }
        let pause = if lost.calls < 2 { timers.gap_ms } else { timers.retry_ms };
        if lost.called.is_some_and(|called| self.now.millis_since(called) < pause) {
            return;
        }
        let content = if lost.calls == 0 { LostMember::Sid(sid) } else { LostMember::Gap };
        if let Some(lost) = &mut self.previous.lost {
            (lost.called, lost.calls) = (Some(self.now), lost.calls + 1);
        }
        let caller = self.settings.me.clone();
        self.pass_on(RingMessage::RetConn(RetConn::Call { caller, content, hops: 0 }), out);
    }

    fn look_for_next(&mut self, out: &mut Vec<RingEffect>) {
        let timers = self.settings.timers;
        let NodeState::Member(Membership { next: Next::Lost(lost), attempt: None, .. }) = &mut self.state else {
            return;
        };
        if self.now < lost.not_before {
            return;
        }
        let waited = self.now.millis_since(lost.at);
        if waited >= timers.rejoin_ms {
            return self.rejoin(None, out);
        }
        if !lost.is_gone && waited < timers.wait_ms + timers.retry_ms {
            let address = lost.member.address.clone();
            return self.try_for(address, Purpose::Return, out);
        }
        // Nobody called from behind: those that come after it are tried in their order, and it once more.
        let after = self.roll.after(lost.member.origin.sid);
        let (member, tries) = (lost.member.clone(), lost.tries);
        lost.tries += 1;
        match after.get(tries) {
            Some(next) => self.try_for(next.address.clone(), Purpose::Heal, out),
            // All of them have answered, and none is in the ring any more: there is nothing to come back to. But a predecessor may
            // still have something to say, of a shutdown, too.
            None if lost.is_gone && lost.out == after.len() && self.previous.conn.is_none() => self.rejoin(None, out),
            None => {
                (lost.tries, lost.out) = (0, 0);
                lost.not_before = self.now.plus_millis(timers.retry_ms);
                self.try_for(member.address, Purpose::Return, out);
            }
        }
    }

    pub(super) fn heal_deadline(&self) -> Option<Mono> {
        let NodeState::Member(place) = &self.state else { return None };
        let timers = self.settings.timers;
        let previous = self.missed().map(|lost| {
            let pause = if lost.calls < 2 { timers.gap_ms } else { timers.retry_ms };
            let rejoin = lost.at.plus_millis(timers.rejoin_ms);
            lost.called
                .map_or_else(|| lost.at.plus_millis(timers.wait_ms), |called| called.plus_millis(pause).min(rejoin))
        });
        let next = match place {
            Membership { next: Next::Lost(lost), attempt: None, .. } => Some(lost.not_before),
            _ => None,
        };
        [previous, next].into_iter().flatten().min()
    }

    /// RETCONN with content, on its way round.
    pub(super) fn somebody_calls(&mut self, caller: Member, content: LostMember, hops: u8, out: &mut Vec<RingEffect>) {
        if caller.origin.sid == self.sid() {
            return;
        }
        let is_meant = match content {
            // Reported dead and alive: the caller has lost this one, and hears from it again (S3.23).
            LostMember::Sid(sid) if sid == self.sid() => true,
            LostMember::Sid(sid) => self.next_or_lost().is_some_and(|next| next.origin.sid == sid),
            LostMember::Gap => self.state.next().is_none(),
        };
        if !is_meant {
            self.hop(hops, |hops| RingMessage::RetConn(RetConn::Call { caller, content, hops }), out);
        } else if self.may_rewire() {
            let is_return = content == LostMember::Sid(self.sid());
            self.drop_attempt(out);
            self.try_for(caller.address, if is_return { Purpose::Return } else { Purpose::Heal }, out);
        }
    }
}

const fn code_is_busy(code: Code) -> bool {
    matches!(code, Code::RingBusy)
}
