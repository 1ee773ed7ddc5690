//! Joining: a node asks members for a place until one accepts, then waits for its predecessor.

use std::collections::VecDeque;

use turno_proto::model::ring::{JoinVerdict, Member, NewConn, Origin, RingMessage, Sid};
use turno_proto::model::{Code, ConnId, Mono};

use super::sending::{Attempt, Membership};
use super::states::NodeState;
use super::{RingEffect, RingHostEffect, RingNews, RingNode};

/// How often one is asked that has no time for it.
const BUSY_MAX: u32 = 5;
/// The same by one that was a member, and knows others.
const BUSY_AGAIN_MAX: u32 = 2;

/// This node wants to be a member.
#[derive(Clone, Debug)]
pub(super) struct Joining {
    /// Where to ask, one after the other.
    candidates: VecDeque<String>,
    /// The one that is being asked.
    at: Option<String>,
    /// The sid of that member.
    pub(super) asked: Option<Sid>,
    /// How often it was busy.
    busy: u32,
    /// It was never a member before.
    is_first: bool,
    /// The member that must be at an address, as named by the admin who told it to join there.
    named: Option<(String, Sid)>,
    /// It was out of the ring when it was told to join.
    was_off: bool,
    /// It has told that nobody could be joined.
    told_waiting: bool,
    not_before: Mono,
    stage: JoinStage,
    /// The member it sends to: the one that accepted it, or its next one of before.
    pub(super) next: Option<ConnId>,
    /// The predecessor that the ring chose.
    pub(super) claimed_by: Option<ConnId>,
    /// Its own NEWCONN, which came round to itself.
    pub(super) own_join: Option<NewConn>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
enum JoinStage {
    /// It asks one after the other.
    Asks(Option<Attempt>),
    /// It was accepted then; from then on the predecessor is waited for.
    Placed(Mono),
}

impl Joining {
    pub(super) fn at_start(now: Mono, next: String) -> Self {
        Self::new(now, VecDeque::from([next]), true, None)
    }

    /// Whether a member has accepted it.
    pub(super) const fn is_placed(&self) -> bool {
        matches!(self.stage, JoinStage::Placed(_))
    }

    pub(super) const fn attempt(&self) -> Option<&Attempt> {
        match &self.stage {
            JoinStage::Asks(attempt) => attempt.as_ref(),
            JoinStage::Placed(_) => None,
        }
    }

    pub(super) const fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        match &mut self.stage {
            JoinStage::Asks(attempt) => attempt.as_mut(),
            JoinStage::Placed(_) => None,
        }
    }

    pub(super) const fn take_attempt(&mut self) -> Option<Attempt> {
        match &mut self.stage {
            JoinStage::Asks(attempt) => attempt.take(),
            JoinStage::Placed(_) => None,
        }
    }

    /// The member that was asked has accepted. Returns whom it sent to until now.
    pub(super) const fn placed(&mut self, next: ConnId, now: Mono) -> Option<ConnId> {
        self.stage = JoinStage::Placed(now);
        self.next.replace(next)
    }

    /// The member that had accepted takes it back.
    pub(super) const fn lost_place(&mut self) {
        self.claimed_by = None;
        if self.is_placed() {
            (self.stage, self.next) = (JoinStage::Asks(None), None);
        }
    }

    /// Whether it was never a member before.
    pub(super) const fn is_first(&self) -> bool {
        self.is_first
    }

    /// The address that is asked, or will be.
    pub(super) fn first_choice(&self) -> Option<&String> {
        self.at.as_ref().or_else(|| self.candidates.front())
    }

    const fn new(now: Mono, candidates: VecDeque<String>, is_first: bool, next: Option<ConnId>) -> Self {
        let (at, asked, busy, claimed_by, own_join) = (None, None, 0, None, None);
        let (named, was_off, told_waiting) = (None, false, false);
        Self {
            candidates,
            at,
            asked,
            busy,
            is_first,
            named,
            was_off,
            told_waiting,
            not_before: now,
            stage: JoinStage::Asks(None),
            next,
            claimed_by,
            own_join,
        }
    }
}

impl RingNode {
    /// An admin wants it to join there.
    pub(super) fn join_at(&mut self, next: String, sid: Option<Sid>, out: &mut Vec<RingEffect>) {
        if matches!(self.state, NodeState::Leaving(_)) {
            return;
        }
        let was_off = matches!(self.state, NodeState::Off);
        self.code = None;
        self.rejoin(Some(next.clone()), out);
        if let NodeState::Joining(joining) = &mut self.state {
            (joining.named, joining.was_off) = (sid.map(|sid| (next, sid)), was_off);
        }
    }

    /// Asks for a place, at that member or at any other that is known.
    pub(super) fn rejoin(&mut self, first: Option<String>, out: &mut Vec<RingEffect>) {
        self.drop_attempt(out);
        self.turn_joiners_away(Code::RingBusy, out);
        let is_first = matches!(&self.state, NodeState::Joining(joining) if joining.is_first);
        let next = self.next_or_lost().map(|next| next.address.clone());
        let mut candidates: VecDeque<String> = first.into_iter().chain(next).collect();
        candidates.extend(self.roll.others().map(|member| member.address.clone()));
        let mut known = std::collections::BTreeSet::new();
        candidates.retain(|address| *address != self.settings.me.address && known.insert(address.clone()));
        self.previous.lost = None;
        self.state = NodeState::Joining(Box::new(Joining::new(self.now, candidates, is_first, self.state.next())));
    }

    /// Two that ask each other would wait for ever: the lower number is the first of the ring.
    pub(super) fn gives_way_to(&self, sid: Sid) -> bool {
        let NodeState::Joining(joining) = &self.state else { return false };
        !joining.is_placed() && joining.asked == Some(sid) && self.sid() < sid
    }

    /// Whether the one that was reached is the one that was named, by an admin or at the start, if this is its place.
    pub(super) fn is_meant(&self, sid: Sid) -> bool {
        let NodeState::Joining(joining) = &self.state else { return true };
        let by_admin = joining.named.as_ref().filter(|(address, _)| joining.at.as_ref() == Some(address));
        let at_start = self.settings.next_sid.filter(|_| joining.is_first && joining.at == self.settings.next);
        by_admin.map(|(_, named)| *named).or(at_start).is_none_or(|named| sid == named)
    }

    /// It is in the circle of the member that has accepted already, and says so as the one that sends there.
    pub(super) fn claim_for_itself(&mut self, out: &mut Vec<RingEffect>) {
        let next = self.next_peer().map(|next| next.origin.sid);
        if let NodeState::Joining(joining) = &mut self.state
            && let Some(message) = joining.own_join.take_if(|message| message.content == next)
        {
            self.pass_on(RingMessage::NewConn(NewConn { verdict: Some(JoinVerdict::Claimed), ..message }), out);
        }
    }

    pub(super) fn tick_joining(&mut self, out: &mut Vec<RingEffect>) {
        self.tick_placed(out);
        let NodeState::Joining(joining) = &mut self.state else { return };
        if !matches!(joining.stage, JoinStage::Asks(None)) || self.now < joining.not_before {
            return;
        }
        let Some(address) = joining.at.take().or_else(|| joining.candidates.pop_front()) else {
            return self.nobody_to_join(out);
        };
        joining.at = Some(address.clone());
        let attempt = self.attempt(address, out);
        if let NodeState::Joining(joining) = &mut self.state {
            joining.stage = JoinStage::Asks(Some(attempt));
        }
    }

    /// Accepted, it waits for its predecessor.
    fn tick_placed(&mut self, out: &mut Vec<RingEffect>) {
        let NodeState::Joining(joining) = &self.state else { return };
        let JoinStage::Placed(placed) = joining.stage else { return };
        let is_caught_up = |id: ConnId| self.conns.get(&id).is_some_and(|conn| conn.caught_up);
        let is_claimed = joining.claimed_by.is_some_and(|id| self.previous.conn == Some(id) && is_caught_up(id));
        let is_late = self.now.millis_since(placed) >= self.settings.timers.join_ms;
        match joining.next {
            Some(next) if is_claimed || self.is_whole() => self.state = NodeState::Member(Membership::new(next)),
            Some(_) if !is_late => {}
            next => {
                self.close_old(next, out);
                self.next_candidate(out);
            }
        }
    }

    pub(super) fn join_deadline(&self) -> Option<Mono> {
        let NodeState::Joining(joining) = &self.state else { return None };
        match joining.stage {
            JoinStage::Placed(placed) => Some(placed.plus_millis(self.settings.timers.join_ms)),
            JoinStage::Asks(None) => Some(joining.not_before),
            JoinStage::Asks(Some(_)) => None,
        }
    }

    /// It came to nothing.
    pub(super) fn not_joined(&mut self, code: Code, instead: Option<Member>, out: &mut Vec<RingEffect>) {
        self.code = Some(code);
        // Neighbours that ask each other again and again should not do so at the same moments, nor two with one number.
        let Origin { sid, incarnation } = self.settings.me.origin;
        let pause = self.settings.timers.retry_ms * (16 + incarnation.wrapping_add(sid.get().into()) % 8) / 16;
        let NodeState::Joining(joining) = &mut self.state else { return };
        match code {
            Code::Elsewhere
                if let Some(there) = instead
                    && joining.busy < BUSY_MAX =>
            {
                (joining.at, joining.busy) = (Some(there.address), joining.busy + 1);
                return;
            }
            Code::RingBusy if joining.busy < if joining.is_first { BUSY_MAX } else { BUSY_AGAIN_MAX } => {
                (joining.busy, joining.not_before) = (joining.busy + 1, self.now.plus_millis(pause));
                return;
            }
            // Several that ask each other in a circle at their start: one of them has a lower number than the one it asks.
            Code::RingBusy if joining.is_first && joining.asked.is_some_and(|asked| sid < asked) => {
                return self.be_alone(out);
            }
            // A named member means its ring: another ring that is known from before is not tried instead.
            Code::WrongSid if !joining.is_first => joining.candidates.clear(),
            _ => {}
        }
        if code == Code::DuplicateSid {
            self.search.rest(self.now, self.settings.timers.rejoin_ms);
        }
        self.next_candidate(out);
    }

    /// Asks the next one that is known.
    fn next_candidate(&mut self, out: &mut Vec<RingEffect>) {
        let is_over = |code| matches!(code, Some(Code::DuplicateSid));
        let NodeState::Joining(joining) = &mut self.state else { return };
        (joining.at, joining.busy) = (None, 0);
        joining.lost_place();
        if joining.candidates.is_empty() || is_over(self.code) {
            self.nobody_to_join(out);
        }
    }

    fn nobody_to_join(&mut self, out: &mut Vec<RingEffect>) {
        let code = self.code.unwrap_or(Code::RingDown);
        let NodeState::Joining(joining) = &mut self.state else { return };
        if joining.is_first && self.settings.wait && !matches!(code, Code::Fenced | Code::DuplicateSid) {
            // A member that is known meanwhile looked for this one: its ring is the right one, too.
            let known = self.roll.others().map(|member| member.address.clone());
            joining.candidates = self.settings.next.iter().cloned().chain(known).collect();
            joining.not_before = self.now.plus_millis(self.settings.timers.retry_ms);
            if !std::mem::replace(&mut joining.told_waiting, true) {
                out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Waits { code })));
            }
        } else if joining.is_first {
            out.push(RingEffect::Host(RingHostEffect::Failed(code)));
            self.be_off(Some(code), out);
        } else if let (Some(next), Some(_)) = (joining.next, self.previous.conn) {
            self.state = NodeState::Member(Membership::new(next));
        } else if joining.was_off && code == Code::WrongSid {
            // Alone it would look for those it left, and join them again.
            self.be_off(Some(code), out);
        } else {
            self.be_alone(out);
        }
    }
}
