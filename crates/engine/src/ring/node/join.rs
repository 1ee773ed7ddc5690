//! Others that want to be members, and becoming one.
//!
//! The joiner asks the member that it wants to send to; word of it goes round; whoever sends to that member sends to the
//! joiner from then on, and says so as its last word on the old path (S3.9 to S3.17).

use std::collections::VecDeque;

use turno_proto::model::ring::{Member, Origin, RingState, Sid};
use turno_proto::model::{Code, ConnId, Mono, limits};

use super::sending::Purpose;
use super::word::{JoinVerdict, NewConn, RingWord};
use super::{Node, RingEffect, RingNews, Role};

/// How often one is asked that has no time for it.
const BUSY_MAX: u32 = 5;
/// The same by one that was a member, and knows others.
const BUSY_AGAIN_MAX: u32 = 2;

/// Somebody who wants to join here.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    pub(super) conn: ConnId,
    member: Member,
    /// When word of it went round; until then those before it have their turn.
    begun: Option<Mono>,
}

/// This node wants to be a member.
#[derive(Clone, Debug)]
pub(super) struct Joining {
    /// Where to ask, one after the other.
    candidates: VecDeque<String>,
    /// The one that is being asked.
    at: Option<String>,
    /// Who that is.
    pub(super) asked: Option<Sid>,
    /// Times that it had no time.
    busy: u32,
    /// It was never a member before.
    is_first: bool,
    /// Who must be at an address, by word of the admin who told it to join there.
    named: Option<(String, Sid)>,
    /// It was out of the ring when it was told to join.
    was_off: bool,
    /// It has told that nobody could be joined.
    told_waiting: bool,
    not_before: Mono,
    /// When it was accepted; from then on the predecessor is waited for.
    placed: Option<Mono>,
    /// The predecessor that the ring chose.
    pub(super) claimed_by: Option<ConnId>,
    /// Word of it came round to itself.
    own_word: Option<NewConn>,
}

impl Joining {
    pub(super) fn at_start(now: Mono, next: String) -> Self {
        Self::new(now, VecDeque::from([next]), true)
    }

    /// Whether a member has accepted it.
    pub(super) const fn is_placed(&self) -> bool {
        self.placed.is_some()
    }

    /// Whether it was never a member before.
    pub(super) const fn is_first(&self) -> bool {
        self.is_first
    }

    /// Who is asked, or will be.
    pub(super) fn first_choice(&self) -> Option<&String> {
        self.at.as_ref().or_else(|| self.candidates.front())
    }

    const fn new(now: Mono, candidates: VecDeque<String>, is_first: bool) -> Self {
        let (at, asked, busy, placed, claimed_by, own_word) = (None, None, 0, None, None, None);
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
            placed,
            claimed_by,
            own_word,
        }
    }
}

/// Others.
impl Node {
    /// NEWCONN without content: the other end wants to be the predecessor.
    pub(super) fn asked_to_join(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        let Some(peer) = self.conns.get(&id).and_then(|conn| conn.peer.clone()) else {
            return self.turn_away(id, Code::RingRefused, None, out);
        };
        if self.gives_way_to(peer.origin.sid) || self.is_cut_off() {
            self.be_alone(out);
        } else if let Err((code, instead)) = self.may_join(&peer) {
            return self.turn_away(id, code, instead, out);
        }
        if self.is_alone {
            // A ring of one: the joiner is predecessor and next at once (S3.12).
            self.take_as_previous(id, out);
            let word = NewConn { joiner: peer.clone(), content: Some(self.sid()), gap: false, verdict: None, hops: 0 };
            return self.try_for(peer.address, Purpose::Claim(Box::new(word)), out);
        }
        if self.is_end_of(&peer) {
            return self.take_as_previous(id, out);
        }
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.role = Role::Joiner;
        }
        self.joiners.push_back(Joiner { conn: id, member: peer, begun: None });
    }

    /// Whether this one sends to the joiner already, and the circle is open: nobody else can hear of it, and the two close it.
    fn is_end_of(&self, joiner: &Member) -> bool {
        self.next_peer().is_some_and(|next| next.origin == joiner.origin) && !self.is_whole()
    }

    /// Two that ask each other would wait for ever: the lower number is the first of the ring.
    fn gives_way_to(&self, sid: Sid) -> bool {
        let joining = self.joining.as_ref();
        joining.is_some_and(|joining| joining.placed.is_none() && joining.asked == Some(sid) && self.sid() < sid)
    }

    fn may_join(&self, peer: &Member) -> Result<(), (Code, Option<Member>)> {
        let busy = Err((Code::RingBusy, None));
        match self.state {
            RingState::Off | RingState::Leaving => return Err((Code::NotInRing, None)),
            RingState::Joining => return busy,
            RingState::Alone if self.is_alone => return Ok(()),
            _ if self.is_alone || self.next.is_none() => return busy,
            _ => {}
        }
        if let Some(there) = self.roll.member(peer.origin.sid).filter(|there| there.origin != peer.origin)
            && there.address != peer.address
        {
            return Err((Code::DuplicateSid, None));
        }
        if self.roll.count() >= limits::RING_MEMBERS_MAX {
            return Err((Code::RingFull, None));
        }
        if self.joiners.len() >= limits::RING_JOINERS_MAX {
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
        if let Some(Joiner { conn, begun: Some(begun), .. }) = self.joiners.front()
            && self.now.millis_since(*begun) >= patience
        {
            let conn = *conn;
            self.turn_away(conn, Code::RingBusy, None, out);
        }
        if self.joiners.front().is_some_and(|joiner| joiner.begun.is_none()) && self.joining.is_none() {
            self.begin_join(out);
        }
    }

    pub(super) fn joiner_deadline(&self) -> Option<Mono> {
        let begun = self.joiners.front()?.begun.unwrap_or(self.now);
        Some(begun.plus_millis(self.settings.timers.join_ms * 2))
    }

    /// The first of those who wait has its turn.
    fn begin_join(&mut self, out: &mut Vec<RingEffect>) {
        let (sid, gap) = (self.sid(), self.previous.is_none());
        let Some(joiner) = self.joiners.front_mut() else { return };
        joiner.begun = Some(self.now);
        let (conn, joiner) = (joiner.conn, joiner.member.clone());
        let word = NewConn { joiner, content: Some(sid), gap, verdict: None, hops: 0 };
        if !self.pass_on(RingWord::NewConn(word), out) {
            return self.turn_away(conn, Code::RingBusy, None, out);
        }
        let had = self.had();
        self.say(conn, RingWord::Have { had }, out);
        if gap {
            self.joiners.pop_front();
            self.promote(conn, out);
        }
    }

    /// NEWCONN with content, on its way round.
    pub(super) fn somebody_joins(&mut self, id: ConnId, mut word: NewConn, out: &mut Vec<RingEffect>) {
        let Some(content) = word.content else { return };
        if content == self.sid() {
            return self.join_came_round(id, &word, out);
        }
        if word.joiner.origin == self.settings.me.origin {
            // The circle from the member that was asked leads here: once it has accepted, this is its predecessor.
            if let Some(joining) = self.joining.as_mut().filter(|_| word.verdict.is_none()) {
                joining.own_word = Some(word);
            }
            self.claim_for_itself(out);
            return;
        }
        if word.joiner.origin.sid == self.sid() && word.verdict.is_none() {
            word.verdict = Some(JoinVerdict::Refused(Code::DuplicateSid));
        } else if word.verdict.is_none() && self.has_a_twin(&word.joiner) {
            word.verdict = Some(JoinVerdict::Refused(Code::RingBusy));
        } else if word.verdict.is_none() && self.is_claimed(content, word.gap) {
            return self.claim(word, out);
        }
        self.hop(word.hops, |hops| RingWord::NewConn(NewConn { hops, ..word }), out);
    }

    /// Whether another with the same number is about to join here. The words of both cross: the later one tries again, and
    /// finds the earlier one in the ring.
    fn has_a_twin(&self, joiner: &Member) -> bool {
        let joiners = self.joiners.iter().filter(|other| other.begun.is_some());
        joiners.map(|other| other.member.origin).any(|other| other.sid == joiner.origin.sid && other != joiner.origin)
    }

    /// Whether this node is the one that sends to the member that was asked.
    fn is_claimed(&self, content: Sid, gap: bool) -> bool {
        match self.next_peer() {
            Some(next) => next.origin.sid == content,
            None => gap || self.lost_next.as_ref().is_some_and(|lost| lost.member.origin.sid == content),
        }
    }

    fn claim(&mut self, mut word: NewConn, out: &mut Vec<RingEffect>) {
        let is_busy = self.leaving.is_some()
            || self.joining.is_some()
            || self
                .attempt
                .as_ref()
                .is_some_and(|attempt| matches!(attempt.purpose, Purpose::Claim(_) | Purpose::Left(_)));
        if is_busy {
            word.verdict = Some(JoinVerdict::Refused(Code::RingBusy));
            self.pass_on(RingWord::NewConn(word), out);
            return;
        }
        self.drop_attempt(out);
        self.roll.meet(&word.joiner);
        self.try_for(word.joiner.address.clone(), Purpose::Claim(Box::new(word)), out);
    }

    /// Word of a join at this node came back.
    fn join_came_round(&mut self, id: ConnId, word: &NewConn, out: &mut Vec<RingEffect>) {
        let joiner = self.joiners.front().filter(|joiner| joiner.member.origin == word.joiner.origin);
        let joiner = joiner.filter(|joiner| joiner.begun.is_some()).map(|joiner| joiner.conn);
        match (word.verdict, joiner) {
            (Some(JoinVerdict::Claimed), joiner) => {
                // All that came on the old path before is dealt with: it was read in order.
                let by = self.conns.get(&id).and_then(|conn| conn.peer.as_ref());
                if by.is_none_or(|by| by.origin != word.joiner.origin) {
                    self.end_path(id, out);
                }
                match joiner {
                    Some(joiner) => {
                        self.joiners.pop_front();
                        self.promote(joiner, out);
                    }
                    None if self.previous.is_none() => self.miss_previous(word.joiner.origin.sid),
                    None => {}
                }
            }
            (Some(JoinVerdict::Refused(code)), Some(joiner)) => self.turn_away(joiner, code, None, out),
            (None, Some(joiner)) => self.turn_away(joiner, Code::RingBusy, None, out),
            (_, None) => {}
        }
    }

    /// A roll call came round by that connection. If it is the joiner's, and the predecessor is not in the circle, the joiner is in
    /// its place: word of the join was lost, and somebody sends to the joiner all the same.
    pub(super) fn came_by(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        let is_joiner = self.joiners.front().is_some_and(|joiner| joiner.conn == id);
        if is_joiner && self.previous_peer().is_none_or(|previous| !self.is_in_circle(previous.origin)) {
            self.joiners.pop_front();
            self.promote(id, out);
        }
    }

    /// Nothing more comes on that connection.
    fn end_path(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        if self.previous == Some(id) {
            self.previous = None;
        }
        self.close(id, None, out);
    }

    /// Passes a word on that has been through so many members.
    pub(super) fn hop(&mut self, hops: u8, word: impl FnOnce(u8) -> RingWord, out: &mut Vec<RingEffect>) {
        // In a circle that is known to be whole everyone has heard what has been round twice.
        let most = if self.is_whole() { self.roll.count() * 2 } else { usize::from(limits::RING_HOPS_MAX) };
        if usize::from(hops) >= most.min(usize::from(limits::RING_HOPS_MAX)) {
            self.counters.hop_limit += 1;
        } else {
            self.pass_on(word(hops + 1), out);
        }
    }
}

/// This one.
impl Node {
    /// An admin wants it to join there.
    pub(super) fn join_at(&mut self, next: String, sid: Option<Sid>, out: &mut Vec<RingEffect>) {
        if self.leaving.is_some() {
            return;
        }
        let was_off = std::mem::take(&mut self.is_off);
        self.code = None;
        self.rejoin(Some(next.clone()), out);
        if let Some(joining) = &mut self.joining {
            (joining.named, joining.was_off) = (sid.map(|sid| (next, sid)), was_off);
        }
    }

    /// Asks for a place, at that member or at any other that is known.
    pub(super) fn rejoin(&mut self, first: Option<String>, out: &mut Vec<RingEffect>) {
        self.drop_attempt(out);
        let is_first = self.joining.take().is_some_and(|joining| joining.is_first);
        for joiner in std::mem::take(&mut self.joiners) {
            self.turn_away(joiner.conn, Code::RingBusy, None, out);
        }
        let next = self
            .next_peer()
            .or_else(|| self.lost_next.as_ref().map(|lost| &lost.member))
            .map(|next| next.address.clone());
        let mut candidates: VecDeque<String> = first.into_iter().chain(next).collect();
        candidates.extend(self.roll.others().map(|member| member.address.clone()));
        let mut known = std::collections::BTreeSet::new();
        candidates.retain(|address| *address != self.settings.me.address && known.insert(address.clone()));
        (self.is_alone, self.lost_next, self.lost_previous) = (false, None, None);
        self.joining = Some(Joining::new(self.now, candidates, is_first));
    }

    /// Whether the one that was reached is the one that was named, by an admin or at the start, if this is its place.
    pub(super) fn is_meant(&self, sid: Sid) -> bool {
        let Some(joining) = &self.joining else { return true };
        let by_admin = joining.named.as_ref().filter(|(address, _)| joining.at.as_ref() == Some(address));
        let at_start = self.settings.next_sid.filter(|_| joining.is_first && joining.at == self.settings.next);
        by_admin.map(|(_, named)| *named).or(at_start).is_none_or(|named| sid == named)
    }

    /// The member that was asked has accepted.
    pub(super) fn place_found(&mut self) {
        if let Some(joining) = &mut self.joining {
            joining.placed = Some(self.now);
        }
    }

    /// It is in the circle of the member that has accepted already, and says so as the one that sends there.
    pub(super) fn claim_for_itself(&mut self, out: &mut Vec<RingEffect>) {
        let next = self.next_peer().map(|next| next.origin.sid);
        let word = self.joining.as_mut().and_then(|joining| joining.own_word.take_if(|word| word.content == next));
        if let Some(word) = word {
            self.pass_on(RingWord::NewConn(NewConn { verdict: Some(JoinVerdict::Claimed), ..word }), out);
        }
    }

    /// The member that had accepted takes it back.
    pub(super) const fn lost_place(&mut self) {
        if let Some(joining) = &mut self.joining {
            (joining.placed, joining.claimed_by) = (None, None);
        }
    }

    pub(super) fn tick_joining(&mut self, out: &mut Vec<RingEffect>) {
        let Some(joining) = &self.joining else { return };
        if let Some(placed) = joining.placed {
            let is_caught_up = |id: ConnId| self.conns.get(&id).is_some_and(|conn| conn.caught_up);
            let is_claimed = joining.claimed_by.is_some_and(|id| self.previous == Some(id) && is_caught_up(id));
            if self.next.is_none() {
                self.next_candidate(out);
            } else if is_claimed || self.is_whole() {
                self.joining = None;
            } else if self.now.millis_since(placed) >= self.settings.timers.join_ms {
                if let Some(next) = self.next.take() {
                    self.close(next, None, out);
                }
                self.next_candidate(out);
            }
        }
        let Some(joining) = &mut self.joining else { return };
        if self.attempt.is_some() || joining.placed.is_some() || self.now < joining.not_before {
            return;
        }
        match joining.at.take().or_else(|| joining.candidates.pop_front()) {
            Some(address) => {
                joining.at = Some(address.clone());
                self.try_for(address, Purpose::Join, out);
            }
            None => self.nobody_to_join(out),
        }
    }

    pub(super) fn join_deadline(&self) -> Option<Mono> {
        let joining = self.joining.as_ref()?;
        match joining.placed {
            Some(placed) => Some(placed.plus_millis(self.settings.timers.join_ms)),
            None => self.attempt.is_none().then_some(joining.not_before),
        }
    }

    /// It came to nothing.
    pub(super) fn not_joined(&mut self, code: Code, instead: Option<Member>, out: &mut Vec<RingEffect>) {
        self.code = Some(code);
        // Neighbours that ask each other again and again should not do so at the same moments, nor two with one number.
        let Origin { sid, incarnation } = self.settings.me.origin;
        let pause = self.settings.timers.retry_ms * (16 + incarnation.wrapping_add(sid.get().into()) % 8) / 16;
        let Some(joining) = &mut self.joining else { return };
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
            // Whoever names a member means its ring: another that is known from before is none to try instead.
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
        let Some(joining) = &mut self.joining else { return };
        (joining.at, joining.busy, joining.placed, joining.claimed_by) = (None, 0, None, None);
        if joining.candidates.is_empty() || is_over(self.code) {
            self.nobody_to_join(out);
        }
    }

    fn nobody_to_join(&mut self, out: &mut Vec<RingEffect>) {
        let code = self.code.unwrap_or(Code::RingDown);
        let Some(joining) = &mut self.joining else { return };
        if joining.is_first && self.settings.wait && !matches!(code, Code::Fenced | Code::DuplicateSid) {
            // Whoever is known meanwhile looked for this one: its ring is the right one, too.
            let known = self.roll.others().map(|member| member.address.clone());
            joining.candidates = self.settings.next.iter().cloned().chain(known).collect();
            joining.not_before = self.now.plus_millis(self.settings.timers.retry_ms);
            if !std::mem::replace(&mut joining.told_waiting, true) {
                out.push(RingEffect::Tell(RingNews::Waits { code }));
            }
        } else if joining.is_first {
            out.push(RingEffect::Failed(code));
            self.be_off(Some(code), out);
        } else if self.next.is_some() && self.previous.is_some() {
            self.joining = None;
        } else if joining.was_off && code == Code::WrongSid {
            // Alone it would look for those it left, and join them again.
            self.be_off(Some(code), out);
        } else {
            self.be_alone(out);
        }
    }
}
