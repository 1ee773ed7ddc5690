//! Exclusive queues: the single consumer and its standbys (S2.19 to S2.26).
//!
//! A queue is free when nobody consumes it, nobody who left it still holds a delivery of it, and what a lost holder had
//! is back in its place. The first who waits is told then, and the queue is kept for it for a moment. Every holder gets
//! a token higher than all before it, also in earlier runs: term first, counter behind it (I8).

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::view::{ExclusiveView, HoldingView};
use turno_proto::model::{Code, ConnId, Delivery, Mono, Token, WorkerId, limits};

use crate::effect::{NativeEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::disk::persist::Persist;
use crate::messages::dispatch::DispatchStep;
use crate::messages::table::message::Stray;
use crate::settings::latest_term;

/// Bits of a token below the term. A run that gives out more tokens reaches into the terms of later milliseconds, which
/// are over by then.
const COUNTER_BITS: u32 = 20;

/// Bits at the end of a token that tell apart brokers that give out tokens for each other's workers.
const OWN_BITS: u32 = 8;

/// How far ahead of ours another broker's clock may be.
const TERM_AHEAD_MS: u64 = 1 << 38;

/// Whether some broker may have given that token out: nobody's clock is years ahead.
pub(in crate::messages) const fn plausible(token: u64, term: u64) -> bool {
    token >> COUNTER_BITS <= latest_term(term, TERM_AHEAD_MS)
}

/// A queue is one worker's alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct Exclusive {
    pub(in crate::messages) token: u64,
    pub(in crate::messages) holder: ConnId,
}

/// How far a worker is on its way to a queue that it was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimStep {
    /// It was told QUEUE_FULL.
    Refused,
    /// It is in the line, with that number.
    Waiting(u64),
    /// The queue is kept for it.
    Offered,
}

#[derive(Clone, Copy, Debug)]
struct ClaimStage {
    /// The handle it asked with.
    handle: u32,
    step: ClaimStep,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    conn: ConnId,
    /// That of QUEUE_AVAILABLE_NOTIFY.
    seq: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueueOffer {
    conn: ConnId,
    until: Mono,
}

/// Standbys of a queue, first come first served.
#[derive(Debug, Default)]
struct WaitingLine {
    waiters: BTreeMap<u64, Waiter>,
    offer: Option<QueueOffer>,
}

/// Tokens, and who waits for what.
#[derive(Debug)]
pub(in crate::messages) struct Exclusives {
    /// The last token given out.
    last: u64,
    /// The highest term of a token that the store knows of: that of this run, or a later one that was heard of.
    stored_term: u64,
    /// Numbers for those who wait.
    numbers: u64,
    /// By queue; none without a waiter or an offer.
    lines: BTreeMap<u32, WaitingLine>,
    stages: BTreeMap<ConnId, BTreeMap<u32, ClaimStage>>,
    /// When which queue is kept no longer.
    deadlines: BTreeSet<(Mono, u32)>,
}

impl Exclusives {
    pub(in crate::messages) const fn new(term: u64) -> Self {
        Self {
            last: term << COUNTER_BITS,
            stored_term: term,
            numbers: 0,
            lines: BTreeMap::new(),
            stages: BTreeMap::new(),
            deadlines: BTreeSet::new(),
        }
    }

    pub(in crate::messages) fn next_deadline(&self) -> Option<Mono> {
        self.deadlines.first().map(|(until, _)| *until)
    }

    const fn next_token(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A token higher than all that were heard of, which ends in those bits.
    pub(in crate::messages) const fn next_token_of(&mut self, own: u64) -> u64 {
        self.last = ((self.last >> OWN_BITS) + 1) << OWN_BITS | own;
        self.last
    }

    /// Whether that token is higher than all that were heard of.
    pub(in crate::messages) const fn is_news(&self, token: u64) -> bool {
        token > self.last
    }

    /// Another broker gave that token out: those from here are higher from now on. Returns its term if the store should know of it.
    fn heard_of(&mut self, token: u64) -> Option<u64> {
        self.last = self.last.max(token);
        let term = token >> COUNTER_BITS;
        let is_later = term > self.stored_term;
        self.stored_term = self.stored_term.max(term);
        is_later.then_some(term)
    }

    /// A run before this one had heard of tokens up to that term.
    fn recover(&mut self, term: u64) {
        self.stored_term = self.stored_term.max(term);
        self.last = self.last.max((term + 1) << COUNTER_BITS);
    }

    /// The queues that somebody waits for.
    pub(in crate::messages) fn waited_for(&self) -> impl Iterator<Item = u32> {
        self.lines.keys().copied()
    }

    fn stage(&self, conn: ConnId, queue: u32) -> Option<ClaimStage> {
        self.stages.get(&conn)?.get(&queue).copied()
    }

    fn waits(&self, queue: u32) -> bool {
        self.lines.contains_key(&queue)
    }

    fn waiters(&self, queue: u32) -> usize {
        self.lines.get(&queue).map_or(0, |line| line.waiters.len() + usize::from(line.offer.is_some()))
    }

    fn offer_of(&self, queue: u32) -> Option<ConnId> {
        self.lines.get(&queue)?.offer.map(|offer| offer.conn)
    }

    /// The worker wants the queue no more, or has it. True if the queue was kept for it.
    fn forget(&mut self, conn: ConnId, queue: u32) -> bool {
        let Some(stages) = self.stages.get_mut(&conn) else { return false };
        let Some(stage) = stages.remove(&queue) else { return false };
        if stages.is_empty() {
            self.stages.remove(&conn);
        }
        let Some(line) = self.lines.get_mut(&queue) else { return false };
        match stage.step {
            ClaimStep::Refused => {}
            ClaimStep::Waiting(number) => drop(line.waiters.remove(&number)),
            ClaimStep::Offered => {
                if let Some(offer) = line.offer.take() {
                    self.deadlines.remove(&(offer.until, queue));
                }
            }
        }
        if line.waiters.is_empty() && line.offer.is_none() {
            self.lines.remove(&queue);
        }
        stage.step == ClaimStep::Offered
    }
}

/// Having a queue.
impl Messages {
    /// Another broker gave that token out. The next run will know, whatever its clock shows: the other's may be ahead.
    pub(in crate::messages) fn heard_of_token(&mut self, token: u64) {
        if let Some(term) = self.exclusives.heard_of(token).filter(|_| self.settings.store.is_some()) {
            self.durable.note(Persist::TokenTerm { term });
        }
    }

    /// Tokens of this run are higher than all of that term.
    pub(crate) fn recover_token_term(&mut self, term: u64) {
        self.exclusives.recover(term);
    }

    /// Whether the worker may consume the queue now.
    pub(in crate::messages) fn may_consume(&self, conn: ConnId, queue: u32, exclusive: bool) -> bool {
        match self.exclusives.offer_of(queue) {
            Some(offered) => return offered == conn,
            // Nobody overtakes those who wait for a queue that is about to be free.
            None if self.exclusives.waits(queue) && self.queues.at(queue).consumers_len() == 0 => return false,
            None => {}
        }
        let place = self.queues.at(queue);
        if exclusive { place.is_unused() } else { place.exclusive.is_none() }
    }

    /// QUEUE_FULL: the worker may ask to be told when the queue is free.
    pub(in crate::messages) fn refuse_queue(&mut self, conn: ConnId, queue: u32, handle: u32) {
        // It was kept for this worker, and somebody at another broker was quicker.
        if self.exclusives.offer_of(queue) == Some(conn) {
            self.give_up_queue(conn, queue);
        }
        let stages = self.exclusives.stages.entry(conn).or_default();
        stages.entry(queue).or_insert(ClaimStage { handle, step: ClaimStep::Refused });
    }

    /// The worker consumes the queue from now on, under that token if nobody else may.
    pub(in crate::messages) fn took_queue(&mut self, conn: ConnId, queue: u32, token: Option<u64>) {
        self.exclusives.forget(conn, queue);
        if let Some(token) = token {
            self.queues.at_mut(queue).exclusive = Some(Exclusive { token, holder: conn });
        }
    }

    /// A token for a worker of this broker.
    pub(in crate::messages) fn next_token(&mut self) -> u64 {
        if self.links.are_used() { self.next_linked_token() } else { self.exclusives.next_token() }
    }

    /// Somebody left the queue, or what it held is settled or back: it may be free now.
    pub(in crate::messages) fn note_unused(&mut self, queue: u32) {
        let Some(place) = self.queues.get(queue) else { return };
        if place.is_unused() && (place.exclusive.is_some() || self.exclusives.waits(queue)) {
            self.agenda.push_back(DispatchStep::Freed(queue));
        }
    }

    /// The queue is free, if nothing came in between: the next one is told (S2.22, S2.24).
    pub(in crate::messages) fn freed(&mut self, queue: u32, out: &mut impl Sink) {
        if self.queues.get(queue).is_none_or(|place| !place.is_unused()) {
            return;
        }
        self.queues.at_mut(queue).exclusive = None;
        if self.is_kept_elsewhere(queue) {
            return;
        }
        let Some(line) = self.exclusives.lines.get_mut(&queue) else { return };
        if line.offer.is_some() {
            return;
        }
        let Some((_, Waiter { conn, seq })) = line.waiters.pop_first() else { return };
        let until = self.now.plus_millis(limits::QUEUE_OFFER_MS);
        line.offer = Some(QueueOffer { conn, until });
        self.exclusives.deadlines.insert((until, queue));
        let stage = self.exclusives.stages.get_mut(&conn).and_then(|stages| stages.get_mut(&queue));
        let stage = stage.expect("who waits has a stage");
        stage.step = ClaimStep::Offered;
        out.peer(PeerEffect::Native { conn, effect: NativeEffect::QueueAvailable { seq, handle: stage.handle } });
    }

    /// A worker that did not take the queue that was kept for it is passed over.
    pub(in crate::messages) fn end_offers(&mut self) {
        while let Some((until, queue)) = self.exclusives.deadlines.first().copied()
            && until <= self.now
        {
            let offered = self.exclusives.offer_of(queue).expect("a deadline is that of an offer");
            self.give_up_queue(offered, queue);
        }
    }
}

/// Waiting for a queue.
impl Messages {
    /// QUEUE_AVAILABLE_NOTIFY: a place in the line, for one that was refused (S2.22, S2.23).
    pub(crate) fn notify(&mut self, conn: ConnId, seq: u32, handle: u32) -> Result<(), Code> {
        let queue = self.peers.get(conn).and_then(|peer| peer.queue_of(handle));
        self.registered(conn)?;
        let queue = queue.ok_or(Code::UnknownHandle)?;
        let stages = self.exclusives.stages.get_mut(&conn).ok_or(Code::NotRefused)?;
        let stage = stages.get_mut(&queue).filter(|stage| stage.step == ClaimStep::Refused).ok_or(Code::NotRefused)?;
        self.exclusives.numbers += 1;
        *stage = ClaimStage { handle, step: ClaimStep::Waiting(self.exclusives.numbers) };
        let line = self.exclusives.lines.entry(queue).or_default();
        line.waiters.insert(self.exclusives.numbers, Waiter { conn, seq });
        self.look_at_claims();
        self.note_unused(queue);
        Ok(())
    }

    /// CANCEL_QUEUE from one that does not consume the queue: it leaves the line.
    pub(in crate::messages) fn give_up_place(&mut self, conn: ConnId, queue: u32) -> Result<(), Code> {
        let stage = self.exclusives.stage(conn, queue).filter(|stage| stage.step != ClaimStep::Refused);
        stage.ok_or(Code::NotFound)?;
        self.give_up_queue(conn, queue);
        Ok(())
    }

    /// The worker waits for the queue no more, and what was kept for it goes to the next.
    fn give_up_queue(&mut self, conn: ConnId, queue: u32) {
        if self.exclusives.forget(conn, queue) {
            self.note_unused(queue);
        }
    }

    /// The worker waits for nothing any more.
    pub(in crate::messages) fn give_up_queues(&mut self, conn: ConnId) {
        let queues = self.exclusives.stages.get(&conn).into_iter().flat_map(BTreeMap::keys).copied();
        for queue in queues.collect::<Vec<u32>>() {
            self.give_up_queue(conn, queue);
        }
    }

    /// The handle stands for another queue now: what was asked with it is over.
    pub(in crate::messages) fn give_up_handle(&mut self, conn: ConnId, queue: u32, handle: u32) {
        if self.exclusives.stage(conn, queue).is_some_and(|stage| stage.handle == handle) {
            self.give_up_queue(conn, queue);
        }
    }
}

/// Tokens.
impl Messages {
    /// Whether what a worker says about a delivery under that token counts: it does not if the queue is another's by now.
    pub(crate) fn passes_fence(&mut self, token: u64, conn: ConnId, delivery: Delivery) -> bool {
        let fenced_off = self.token_of(conn, delivery).is_some_and(|held_with| held_with != Some(token));
        if fenced_off {
            let given_out = token <= self.exclusives.last;
            self.count_stray(if given_out { Stray::Late } else { Stray::Forged });
        }
        !fenced_off
    }

    /// The token of the queue whose delivery the worker holds, if it holds it.
    fn token_of(&self, conn: ConnId, delivery: Delivery) -> Option<Option<u64>> {
        let message = self.messages.get(delivery.index).filter(|message| message.stamp == delivery.stamp)?;
        let held = message.holder() == Some(conn);
        held.then(|| self.queues.at(message.queue).token())
    }
}

/// Telling, and checking.
impl Messages {
    pub(in crate::messages) fn exclusive_view(&self, queue: u32) -> Option<ExclusiveView> {
        let Exclusive { token, holder } = self.queues.at(queue).exclusive?;
        Some(ExclusiveView { token: Token(token), worker: self.peers.worker(holder).map(|worker| WorkerId(worker.id)) })
    }

    pub(in crate::messages) fn waiters_of(&self, queue: u32) -> u64 {
        self.exclusives.waiters(queue) as u64
    }

    /// The standbys of the queue, next first.
    pub(in crate::messages) fn line_of(&self, queue: u32) -> impl Iterator<Item = ConnId> {
        let line = self.exclusives.lines.get(&queue);
        let offered = line.and_then(|line| line.offer).map(|offer| offer.conn);
        let waiting = line.into_iter().flat_map(|line| line.waiters.values()).map(|waiter| waiter.conn);
        offered.into_iter().chain(waiting)
    }

    /// For whom the queue is kept, and for how many milliseconds.
    pub(in crate::messages) fn kept_for(&self, queue: u32) -> Option<(ConnId, u64)> {
        let offer = self.exclusives.lines.get(&queue)?.offer?;
        Some((offer.conn, offer.until.millis_left(self.now)))
    }

    /// The queues that the worker has to itself.
    pub(in crate::messages) fn holdings(&self, conn: ConnId) -> Vec<HoldingView> {
        let Some(worker) = self.peers.worker(conn) else { return Vec::new() };
        let queues = worker.consumes.iter().map(|consuming| self.queues.at(consuming.queue));
        let holding = |place: &crate::messages::queues::queue::Queue| {
            let token = place.exclusive?.token;
            Some(HoldingView { queue: place.name.to_string(), token: Token(token) })
        };
        queues.filter_map(holding).collect()
    }

    /// The queues that the worker waits for.
    pub(in crate::messages) fn waits_for(&self, conn: ConnId) -> Vec<String> {
        let stages = self.exclusives.stages.get(&conn).into_iter().flatten();
        let waiting = stages.filter(|(_, stage)| stage.step != ClaimStep::Refused);
        waiting.map(|(queue, _)| self.queues.at(*queue).name.to_string()).collect()
    }

    /// I8, as far as one broker can show it.
    pub(in crate::messages) fn check_exclusives(&self) {
        let mut tokens = BTreeSet::new();
        for (number, place) in self.queues.after(None) {
            let returning = self.durable.returning().filter(|index| self.messages[*index].queue == number).count();
            assert_eq!(returning, place.returning as usize, "a queue knows how many of its messages come back");
            let Some(Exclusive { token, holder }) = place.exclusive else { continue };
            assert!(tokens.insert(token) && token <= self.exclusives.last, "a token is given out once");
            assert!(!place.is_unused(), "a queue that nobody uses is nobody's");
            assert!(place.consumers().all(|consumer| consumer.worker == holder), "an exclusive queue has one consumer");
            assert!(place.consumers_len() <= 1, "an exclusive queue has one consumer");
            let of_queue = self.messages.iter().filter(|(_, message)| message.queue == number);
            let mut holders = of_queue.filter_map(|(_, message)| message.holder());
            // A broadcast goes to those at other brokers, too.
            let at_holder = holders.all(|worker| worker == holder || self.links.is_link(worker));
            assert!(at_holder, "an exclusive queue's messages are at its holder");
        }
        for (queue, line) in &self.exclusives.lines {
            let place = self.queues.at(*queue);
            assert!(line.offer.is_some() || !line.waiters.is_empty(), "a line has somebody in it");
            let free = place.is_unused() && !self.is_kept_elsewhere(*queue);
            assert!(line.offer.is_some() || !free, "who waits for a free queue is told");
            assert!(line.offer.is_none() || place.consumers_len() == 0, "only a queue that nobody consumes is offered");
            for (number, waiter) in &line.waiters {
                let step = self.exclusives.stage(waiter.conn, *queue).map(|stage| stage.step);
                assert_eq!(step, Some(ClaimStep::Waiting(*number)), "who waits has a stage");
            }
            if let Some(QueueOffer { conn, until }) = line.offer {
                let step = self.exclusives.stage(conn, *queue).map(|stage| stage.step);
                assert_eq!(step, Some(ClaimStep::Offered), "who was told has a stage");
                assert!(self.exclusives.deadlines.contains(&(until, *queue)), "an offer has an end");
            }
        }
        let offers = self.exclusives.lines.values().filter(|line| line.offer.is_some()).count();
        assert_eq!(offers, self.exclusives.deadlines.len(), "only offers have an end");
        let mut waiting = 0;
        for (conn, stages) in &self.exclusives.stages {
            assert!(self.peers.worker(*conn).is_some_and(|worker| !worker.leaving), "only workers wait for queues");
            assert!(!stages.is_empty(), "who waits for nothing is forgotten");
            let worker = self.peers.worker(*conn).expect("seen above");
            for (queue, stage) in stages {
                assert!(worker.position_of(*queue).is_err(), "who has a queue does not wait for it");
                let open = self.peers.get(*conn).and_then(|peer| peer.queue_of(stage.handle));
                assert_eq!(open, Some(*queue), "who waits for a queue has it open");
                waiting += usize::from(stage.step != ClaimStep::Refused);
            }
        }
        let in_lines: usize = self.exclusives.lines.keys().map(|queue| self.exclusives.waiters(*queue)).sum();
        assert_eq!(waiting, in_lines, "who waits is in one line");
    }
}
