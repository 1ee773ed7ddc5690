//! The outbox without its connection and its clock: output goes in, calls to the broker come out.
//!
//! Each attempt has its beginning and its end in memory, bounded; pieces of many attempts go into one call, few calls are
//! under way, and what is in one stays here until it is answered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use turno_proto::model::archive::{OutputPiece, OutputStream};
use turno_proto::model::job::JobId;
use turno_proto::model::{Code, Mono, limits};

use super::attempt::{AttemptId, OutboxAttempt, OutputHandling, Room};
use super::event::{CallId, Event, LossReason, Lost, OutboxAnswer, Ticket};

#[derive(Debug)]
struct Call {
    parts: Vec<(Ticket, OutputPiece)>,
    tries: u32,
    /// When it is sent again; `None` while it is under way.
    again: Option<Mono>,
}

#[derive(Debug)]
pub(super) struct Core {
    per_task: u64,
    /// The broker has told how much is kept.
    is_told: bool,
    follow: BTreeSet<(JobId, u32)>,
    attempts: BTreeMap<Ticket, OutboxAttempt>,
    /// Attempts with something to send, by when it is due.
    due: BTreeSet<(Mono, Ticket)>,
    /// Attempts that have ended and are not done with.
    ended: BTreeSet<(Mono, Ticket)>,
    /// Attempts whose tasks wait for room.
    held: BTreeSet<(Mono, Ticket)>,
    /// Attempts that run and whose beginning is complete: whether somebody looks at them must be asked.
    beyond: BTreeSet<Ticket>,
    calls: BTreeMap<CallId, Call>,
    /// The number of the next attempt or call.
    next: u64,
    /// When the broker was last asked anything.
    asked: Option<Mono>,
    /// When it last gave a good answer.
    heard: Mono,
    lost: Lost,
    events: VecDeque<Event>,
}

impl Core {
    pub(super) const fn new(now: Mono) -> Self {
        Self {
            per_task: limits::OUTPUT_PER_TASK_BYTES,
            is_told: false,
            follow: BTreeSet::new(),
            attempts: BTreeMap::new(),
            due: BTreeSet::new(),
            ended: BTreeSet::new(),
            held: BTreeSet::new(),
            beyond: BTreeSet::new(),
            calls: BTreeMap::new(),
            next: 0,
            asked: None,
            heard: now,
            lost: Lost { tasks: 0, bytes: 0 },
            events: VecDeque::new(),
        }
    }

    /// An attempt begins.
    pub(super) fn open(&mut self, id: AttemptId) -> Ticket {
        let ticket = Ticket(self.number());
        self.attempts.insert(ticket, OutboxAttempt::new(id, self.per_task));
        self.index(ticket);
        ticket
    }

    /// It wrote something. Tells whether it may write on; if not, [`Event::Room`] follows.
    pub(super) fn wrote(&mut self, now: Mono, ticket: Ticket, stream: OutputStream, bytes: &[u8]) -> bool {
        let Some(attempt) = self.attempts.get_mut(&ticket) else { return true };
        attempt.wrote(now, stream, bytes);
        let has_room = attempt.has_room();
        if !has_room && attempt.held.is_none() {
            attempt.held = Some(now);
            self.held.insert((now, ticket));
        }
        self.index(ticket);
        has_room
    }

    /// Whether an attempt may write on.
    pub(super) fn has_room(&self, ticket: Ticket) -> bool {
        self.attempts.get(&ticket).is_none_or(OutboxAttempt::has_room)
    }

    /// It will write no more. [`Event::Done`] follows, or an [`Event::Lost`] that says so.
    pub(super) fn end(&mut self, now: Mono, ticket: Ticket) {
        let Some(attempt) = self.attempts.get_mut(&ticket) else { return };
        if attempt.ended.is_none() {
            attempt.ended = Some(now);
            self.ended.insert((now, ticket));
            self.index(ticket);
            self.finish(ticket);
        }
    }

    /// Nobody cares for it any more.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.remove(ticket);
        self.strip(ticket);
    }

    /// The next call, if one is to be made now.
    pub(super) fn poll_call(&mut self, now: Mono) -> Option<(CallId, Vec<OutputPiece>)> {
        let under_way = self.calls.values().filter(|call| call.again.is_none()).count();
        if under_way >= limits::OUTBOX_CALLS_MAX {
            return None;
        }
        let id = if under_way < self.calls.len() {
            // Nothing new is sent before the broker took what it did not take the last time.
            let due = self.calls.iter().find(|(_, call)| call.again.is_some_and(|at| at <= now));
            *due?.0
        } else if self.due.first().is_some_and(|(at, _)| *at <= now) {
            self.gather(now)
        } else if under_way == 0 && self.next_question().is_some_and(|at| at <= now) {
            self.add_call(Vec::new())
        } else {
            return None;
        };
        self.asked = Some(now);
        let call = self.calls.get_mut(&id)?;
        call.again = None;
        Some((id, call.parts.iter().map(|(_, piece)| piece.clone()).collect()))
    }

    /// A call has ended.
    pub(super) fn handle_answer(&mut self, now: Mono, id: CallId, answer: OutboxAnswer) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        match answer {
            OutboxAnswer::Again => {
                call.parts.retain(|(ticket, _)| self.attempts.contains_key(ticket));
                let pause = limits::OUTBOX_AGAIN_MS << call.tries.min(8);
                call.tries += 1;
                call.again = Some(now.plus_millis(pause.min(limits::OUTBOX_AGAIN_MS_MAX)));
                if call.parts.is_empty() {
                    // A question is not asked again before its time.
                    self.calls.remove(&id);
                }
            }
            OutboxAnswer::Kept { per_task, follow, refused } => {
                self.heard = now;
                let refused = |id: AttemptId| refused.contains(&(id.job, id.task, id.attempt));
                self.close_call(id, |attempt| refused(attempt).then_some(LossReason::NotOurs));
                self.learn(per_task, follow);
            }
            OutboxAnswer::Refused(code) => self.drop_call(id, code),
        }
    }

    /// Takes the next event.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::handle_tick`] or [`Self::poll_call`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Mono> {
        let under_way = self.calls.values().filter(|call| call.again.is_none()).count();
        let next_call = if under_way >= limits::OUTBOX_CALLS_MAX {
            None
        } else if under_way < self.calls.len() {
            self.calls.values().filter_map(|call| call.again).min()
        } else {
            let question = self.next_question().filter(|_| under_way == 0);
            self.due.first().map(|(at, _)| *at).into_iter().chain(question).min()
        };
        let given_up = self.ended.first().map(|(ended, _)| self.patience(*ended));
        let let_go = self.held.first().map(|(held, _)| self.patience(*held));
        next_call.into_iter().chain(given_up).chain(let_go).min()
    }

    /// Time has passed.
    pub(super) fn handle_tick(&mut self, now: Mono) {
        while let Some((_, ticket)) = self.ended.first().copied().filter(|(at, _)| self.patience(*at) <= now) {
            self.strip(ticket);
            self.give_up(ticket, LossReason::Silence);
        }
        while let Some((_, ticket)) = self.held.first().copied().filter(|(at, _)| self.patience(*at) <= now) {
            let Some(attempt) = self.attempts.get_mut(&ticket) else { return };
            attempt.cut_head();
            self.index(ticket);
        }
    }

    /// Gives up all that is left, and tells what was lost in all.
    pub(super) fn close(&mut self) -> Lost {
        let tickets: Vec<Ticket> = self.attempts.keys().copied().collect();
        for ticket in tickets {
            self.strip(ticket);
            self.give_up(ticket, LossReason::Silence);
        }
        self.lost
    }

    /// Nothing is to be sent or answered.
    pub(super) fn is_quiet(&self) -> bool {
        self.due.is_empty() && self.calls.values().all(|call| call.parts.is_empty())
    }

    /// Until when an attempt waits for the broker: as long as that gives good answers, within reason.
    fn patience(&self, since: Mono) -> Mono {
        let patient = since.max(self.heard).plus_millis(limits::OUTBOX_PATIENCE_MS);
        patient.min(since.plus_millis(limits::OUTBOX_PATIENCE_MS_MAX))
    }

    /// When the broker is to be asked what it wants.
    fn next_question(&self) -> Option<Mono> {
        let again = |asked: Mono| asked.plus_millis(limits::OUTBOX_ASK_MS);
        (!self.is_told || !self.beyond.is_empty()).then(|| self.asked.map_or(Mono::ZERO, again))
    }

    /// Makes a call of what is due, and of what would be soon if there is room.
    fn gather(&mut self, now: Mono) -> CallId {
        let mut room = Room::new();
        let mut parts = Vec::new();
        let order: Vec<Ticket> = self.due.iter().take(limits::OUTPUT_PIECES_MAX).map(|(_, ticket)| *ticket).collect();
        for ticket in order {
            let Some(attempt) = self.attempts.get_mut(&ticket) else { continue };
            let followed = self.follow.contains(&(attempt.id.job, attempt.id.task));
            parts.extend(attempt.take(now, followed, &mut room).into_iter().map(|piece| (ticket, piece)));
            self.index(ticket);
            if room.is_none() {
                break;
            }
        }
        self.add_call(parts)
    }

    fn add_call(&mut self, parts: Vec<(Ticket, OutputPiece)>) -> CallId {
        let id = CallId(self.number());
        self.calls.insert(id, Call { parts, tries: 0, again: None });
        id
    }

    /// A call is done with. Attempts that are not wanted are given up.
    fn close_call(&mut self, id: CallId, refused: impl Fn(AttemptId) -> Option<LossReason>) {
        for ticket in self.end_call(id) {
            let Some(attempt) = self.attempts.get_mut(&ticket) else { continue };
            if let Some(why) = refused(attempt.id) {
                self.give_up(ticket, why);
                continue;
            }
            attempt.under_way = None;
            self.index(ticket);
            self.finish(ticket);
        }
    }

    /// A call is not kept: what was in it is lost, and its attempts go on with what they have.
    fn drop_call(&mut self, id: CallId, code: Code) {
        for ticket in self.end_call(id) {
            let Some(attempt) = self.attempts.get_mut(&ticket) else { continue };
            let bytes = attempt.under_way.take().unwrap_or(0);
            if bytes > 0 {
                self.lose(ticket, bytes, LossReason::Said(code), false);
            }
            self.index(ticket);
            self.finish(ticket);
        }
    }

    /// Takes a call out; tells whose it was.
    fn end_call(&mut self, id: CallId) -> BTreeSet<Ticket> {
        self.calls.remove(&id).into_iter().flat_map(|call| call.parts).map(|(ticket, _)| ticket).collect()
    }

    fn learn(&mut self, per_task: u64, follow: Vec<(JobId, u32)>) {
        let follow: BTreeSet<(JobId, u32)> = follow.into_iter().collect();
        if self.is_told && self.per_task == per_task && self.follow == follow {
            return;
        }
        (self.is_told, self.per_task, self.follow) = (true, per_task, follow);
        let tickets: Vec<Ticket> = self.attempts.keys().copied().collect();
        for ticket in tickets {
            if let Some(attempt) = self.attempts.get_mut(&ticket) {
                attempt.set_per_task(per_task);
            }
            self.index(ticket);
            self.finish(ticket);
        }
    }

    /// The attempt is done with if all that is to be kept of it is.
    fn finish(&mut self, ticket: Ticket) {
        if self.attempts.get(&ticket).is_some_and(OutboxAttempt::is_done) {
            self.remove(ticket);
            self.events.push_back(Event::Done(ticket));
        }
    }

    fn give_up(&mut self, ticket: Ticket, why: LossReason) {
        let Some(attempt) = self.attempts.get_mut(&ticket) else { return };
        let bytes = attempt.give_up();
        let ended = attempt.ended.is_some();
        self.lose(ticket, bytes, why, ended);
        self.index(ticket);
        if ended {
            self.remove(ticket);
        }
    }

    /// Counts and tells what is lost.
    fn lose(&mut self, ticket: Ticket, bytes: u64, why: LossReason, ended: bool) {
        let Some(attempt) = self.attempts.get_mut(&ticket) else { return };
        let first = bytes > 0 && !attempt.has_lost;
        attempt.has_lost |= first;
        self.lost.tasks += u64::from(first);
        self.lost.bytes += bytes;
        self.events.push_back(Event::Lost { ticket, id: attempt.id, bytes, why, ended, first });
    }

    /// Takes the attempt out of all tables but the calls.
    fn remove(&mut self, ticket: Ticket) {
        self.beyond.remove(&ticket);
        if let Some(attempt) = self.attempts.remove(&ticket) {
            attempt.due.map(|at| self.due.remove(&(at, ticket)));
            attempt.ended.map(|at| self.ended.remove(&(at, ticket)));
            attempt.held.map(|at| self.held.remove(&(at, ticket)));
        }
    }

    /// Takes what is the attempt's out of calls that are not under way.
    fn strip(&mut self, ticket: Ticket) {
        self.calls.retain(|_, call| {
            if call.again.is_some() {
                call.parts.retain(|(other, _)| *other != ticket);
            }
            call.again.is_none() || !call.parts.is_empty()
        });
    }

    /// Brings the tables up to what the attempt has become, and tells its task of room.
    fn index(&mut self, ticket: Ticket) {
        let Some(attempt) = self.attempts.get_mut(&ticket) else { return };
        if let Some(held) = attempt.held.filter(|_| attempt.has_room()) {
            attempt.held = None;
            self.held.remove(&(held, ticket));
            self.events.push_back(Event::Room(ticket));
        }
        if attempt.is_beyond() && attempt.ended.is_none() && attempt.fate == OutputHandling::Sent {
            self.beyond.insert(ticket);
        } else {
            self.beyond.remove(&ticket);
        }
        let due = attempt.next_due(self.follow.contains(&(attempt.id.job, attempt.id.task)));
        let before = std::mem::replace(&mut attempt.due, due);
        if before != due {
            before.map(|before| self.due.remove(&(before, ticket)));
            due.map(|due| self.due.insert((due, ticket)));
        }
    }

    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

#[cfg(test)]
impl Core {
    /// All tables agree, and nothing is larger than it may be.
    pub(super) fn check(&self) {
        let looked_at = |attempt: &OutboxAttempt| self.follow.contains(&(attempt.id.job, attempt.id.task));
        for (ticket, attempt) in &self.attempts {
            attempt.check();
            assert_eq!(attempt.due, attempt.next_due(looked_at(attempt)), "it is sent in time");
            assert_eq!(attempt.held.is_some(), attempt.held.is_some_and(|at| self.held.contains(&(at, *ticket))));
            assert!(attempt.held.is_none() || !attempt.has_room(), "an attempt that waits has no room");
            assert_eq!(attempt.ended.is_some(), attempt.ended.is_some_and(|at| self.ended.contains(&(at, *ticket))));
            assert!(!attempt.is_done(), "what is done with is gone");
            let calls = self.calls.values().filter(|call| call.parts.iter().any(|(other, _)| other == ticket)).count();
            assert!(calls <= 1, "one call at a time has pieces of an attempt");
            assert_eq!(attempt.under_way.is_some(), calls == 1, "what is under way is in a call");
        }
        let sum = |count: fn(&OutboxAttempt) -> bool| self.attempts.values().filter(|attempt| count(attempt)).count();
        assert_eq!(self.due.len(), sum(|attempt| attempt.due.is_some()));
        assert_eq!(self.held.len(), sum(|attempt| attempt.held.is_some()));
        assert_eq!(self.ended.len(), sum(|attempt| attempt.ended.is_some()));
        assert!(self.beyond.iter().all(|ticket| self.attempts.contains_key(ticket)));
        for call in self.calls.values() {
            assert!(call.parts.len() <= limits::OUTPUT_PIECES_MAX, "the broker takes so many pieces");
            let bytes: usize = call.parts.iter().map(|(_, piece)| piece.bytes.len()).sum();
            assert!(bytes <= limits::PIECE_BYTES_MAX, "the broker takes so many bytes");
            assert!(call.again.is_none() || !call.parts.is_empty(), "no question waits");
        }
        let under_way = self.calls.values().filter(|call| call.again.is_none()).count();
        assert!(under_way <= limits::OUTBOX_CALLS_MAX, "so many calls are under way");
    }

    /// The bytes that were lost so far.
    pub(super) const fn lost(&self) -> Lost {
        self.lost
    }

    pub(super) const fn is_told(&self) -> bool {
        self.is_told
    }

    /// Bytes in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let calls = self.calls.values().flat_map(|call| &call.parts).map(|(_, piece)| piece.bytes.len()).sum::<usize>();
        self.attempts.values().map(OutboxAttempt::len).sum::<usize>() + calls
    }
}
