//! The oracle of messages: the full history of a world, compared with what brokers do.
//!
//! It knows what was asked, who got what, and how each thing ended, and it complains at the first thing that
//! cannot be: an answer to the wrong caller, a second outcome, a body that changed, work done more often than
//! allowed, a turn out of order.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::limits::DEDUP_WINDOW_MS;
use turno_proto::model::{Code, Delivery, Durability, MessageId, Mono};

use crate::broadcasts::{self, Broadcasts};
use crate::cancels::{Cancels, judge_stop};
use crate::clocks::{Clocks, Span};
use crate::crossings::Crossings;
use crate::drops::{Drops, RequestTimes};
use crate::fences::Fences;
use crate::letters::{AttemptSeen, Letters, StoreContents};
use crate::net::Direction;
use crate::order::{Delivered, Order};
use crate::tasks::Tasks;
use crate::topics::Topics;
use crate::zmq::Ledger;

/// Deadlines travel in whole milliseconds.
const CLOCK_GRAIN_MS: u64 = 1;
/// How long a silent link, and another behind it, may take to be noticed.
const LINK_MS: u64 = 8_000;

/// The state of one message.
#[derive(Debug)]
struct Asked {
    client: usize,
    at: Mono,
    timeout_ms: u64,
    worth_ms: Option<u64>,
    delay_ms: u64,
    work_ms: u64,
    ends_with_caller: bool,
    send: bool,
    retries: u64,
    resend: bool,
    named: bool,
    no_reply: bool,
    priority: u8,
    /// A worker that left may have given it back unfinished.
    returnable: bool,
    /// Its caller closed its connection then, and had no answer.
    farewell: Option<Mono>,
    ended: bool,
    /// Its caller has crashed since.
    forgotten: bool,
    /// The ids under which workers got it.
    ids: BTreeSet<MessageId>,
    /// How often it was handed out, also to ZeroMQ workers, which are not told ids.
    handed: u64,
    /// Where it was stored, for a send, and until when at the latest.
    stored: Option<(MessageId, Mono)>,
    /// The message that it is, by the run of the broker that has it, and when that was heard of.
    known_as: BTreeMap<u64, (MessageId, Mono)>,
}

impl Asked {
    /// It may have been written more than once.
    const fn may_come_again(&self) -> bool {
        self.resend || self.named
    }

    /// How long it is worth delivering, if not for ever and if its sender knows that it is stored.
    fn worth(&self) -> Option<Span> {
        let (_, until) = self.stored?;
        self.worth_ms.map(|ms| Span { from: self.at, until, ms: ms + self.delay_ms })
    }

    /// How long it is to be held back, if its sender knows that it is stored.
    fn delay(&self) -> Option<Span> {
        let (_, until) = self.stored?;
        (self.delay_ms > 0).then_some(Span { from: self.at, until, ms: self.delay_ms })
    }

    /// A worker gets it once more: a request, once for each attempt.
    fn judge_handed(&mut self, number: u64, linked: bool) {
        self.handed += 1;
        let (handed, most) = (self.handed, self.retries + 1);
        let exempt = self.send || self.may_come_again() || self.returnable || linked;
        assert!(handed <= most || exempt, "I2: {number} was handed out {handed} times, {most} allowed");
    }

    /// It is this message. What has a dedup id is one message in each run of a broker, however often it was written; unless a
    /// clock that was set ahead made the broker forget it.
    fn is(&mut self, number: u64, id: MessageId, clocks: &Clocks) {
        let (known_as, since) = *self.known_as.entry(id.run()).or_insert((id, clocks.now));
        if known_as == id || !self.named {
            return;
        }
        let remembered = Span { from: self.at, until: since, ms: DEDUP_WINDOW_MS };
        let forgotten = clocks.may_be_over(clocks.broker_of(id.run()), remembered);
        assert!(forgotten, "I6: {number} is two messages, {known_as} and {id}");
        self.known_as.insert(id.run(), (id, clocks.now));
    }
}

/// A request of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Question {
    pub(crate) client: usize,
    pub(crate) send: bool,
    pub(crate) timeout_ms: u64,
    /// How long a send is worth delivering.
    pub(crate) worth_ms: Option<u64>,
    /// How long it is held back before.
    pub(crate) delay_ms: u64,
    /// How long a request is worth working on.
    pub(crate) work_ms: u64,
    /// Its worker is stopped when the caller is gone.
    pub(crate) ends_with_caller: bool,
    pub(crate) retries: u64,
    pub(crate) resend: bool,
    /// It has a dedup id.
    pub(crate) named: bool,
    pub(crate) no_reply: bool,
    pub(crate) priority: u8,
    /// Its caller has a ZeroMQ socket, and may hear nothing of how it ended.
    pub(crate) unheard: bool,
}

/// A delivery, as the worker saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenDelivery {
    pub(crate) queue: usize,
    pub(crate) id: MessageId,
    /// The life of the broker that it came from.
    pub(crate) life: u64,
    pub(crate) delivery: Delivery,
    pub(crate) attempt: u16,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    asked: BTreeMap<u64, Asked>,
    pub(crate) letters: Letters,
    pub(crate) clocks: Clocks,
    pub(crate) broadcasts: Broadcasts,
    pub(crate) drops: Drops,
    cancels: Cancels,
    pub(crate) order: Order,
    pub(crate) fences: Fences,
    pub(crate) crossings: Crossings,
    /// The store that has each send, by its number.
    owners: BTreeMap<u64, u64>,
    pub(crate) tasks: Tasks,
    pub(crate) topics: Topics,
    pub(crate) zmq: Ledger,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
}

impl Oracle {
    pub(crate) fn asks(&mut self, now: Mono, number: u64, question: Question) {
        let Question { client, send, timeout_ms, worth_ms, delay_ms, work_ms, ends_with_caller, .. } = question;
        let Question { retries, resend, named, no_reply, priority, unheard, .. } = question;
        let asked = Asked {
            client,
            at: now,
            timeout_ms,
            worth_ms,
            delay_ms,
            work_ms,
            ends_with_caller,
            send,
            retries,
            resend,
            named,
            no_reply,
            priority,
            returnable: false,
            farewell: None,
            ended: unheard,
            forgotten: false,
            ids: BTreeSet::new(),
            handed: 0,
            stored: None,
            known_as: BTreeMap::new(),
        };
        assert!(self.asked.insert(number, asked).is_none(), "numbers are given once");
    }

    /// A worker got a message (I4, I6, I15).
    pub(crate) fn handed(&mut self, number: Option<u64>, seen: SeenDelivery) {
        let SeenDelivery { queue, id, life, delivery, attempt } = seen;
        let number = number.expect("I4: a worker got a body that nobody sent");
        let asked = self.asked.get_mut(&number).expect("I4: a worker got a message that nobody sent");
        let Asked { retries, priority, .. } = *asked;
        // A message from a link is judged by the life of its owner.
        let source = self.crossings.source_of(id, attempt, delivery);
        let (life, local) = source.map_or((life, true), |source| (source.life, source.local));
        assert!(u64::from(attempt) <= retries + 1, "I2: attempt {attempt} of {number} is beyond its limit");
        self.letters.handed(number, AttemptSeen { send: asked.send, id, life, attempt, retries });
        asked.is(number, id, &self.clocks);
        asked.ids.insert(id);
        asked.judge_handed(number, self.crossings.on);
        if !asked.send && local {
            self.cancels.handed(number, asked.at, id, delivery.stamp);
        }
        // A send may be delivered twice as the first attempt; a request never is.
        let once = !asked.may_come_again() && !asked.returnable;
        assert!(asked.ids.len() == 1 || !once, "I15: {number} was handed out as {} messages", asked.ids.len());
        // One that was delayed takes its place later.
        if attempt == 1 && once && asked.delay_ms == 0 && !self.crossings.on {
            self.order.sees(Delivered { id, life, send: asked.send, queue, priority, stamp: delivery.stamp });
        }
    }

    /// A ZeroMQ worker got a message (I4).
    pub(crate) fn handed_to_zmq(&mut self, number: u64) {
        self.drops.handed_elsewhere(number);
        if broadcasts::is_one(number) {
            return;
        }
        let asked = self.asked.get_mut(&number).expect("I4: a ZeroMQ worker got a message that nobody sent");
        asked.judge_handed(number, self.crossings.on);
    }

    /// A ZeroMQ peer got an answer: to a request of its own, as its connection knows.
    pub(crate) fn answered_to_zmq(&mut self, number: u64) {
        let asked = self.asked.get(&number).expect("I12: an answer to a question nobody asked");
        assert!(asked.handed > 0, "I12: {number} was answered though no worker had it");
        self.answered += 1;
    }

    /// A broker finds these messages on its disk. What a PUSH socket sent is stored by that.
    pub(crate) fn found(&mut self, truth: &StoreContents) {
        for (serial, number) in &truth.numbers {
            self.letters.found(truth.run, *serial, *number, self.zmq.is_pushed(*number));
        }
    }

    /// A message of a PUSH socket that a broker read in that life was done, is a dead letter, or was refused and counted (I1).
    pub(crate) fn judge_pushes(&self, broker: usize, life: u64, refused: u64, dead: u64) {
        let by_id = |number: &u64| self.asked[number].ids.iter().any(|id| self.letters.is_done(*id));
        let done = |number: &u64| self.letters.is_number_done(*number) || by_id(number);
        let undone: Vec<u64> = self.zmq.pushed_to(broker, life).filter(|number| !done(number)).collect();
        assert!(
            undone.len() as u64 <= refused + dead,
            "I1: {undone:?} were pushed and are not done; {refused} were refused, {dead} are dead letters"
        );
    }

    /// A worker that leaves has it, and may give it back.
    pub(crate) fn may_come_back(&mut self, number: u64, id: MessageId) {
        self.letters.may_come_back(number, id);
        if let Some(asked) = self.asked.get_mut(&number) {
            asked.returnable = true;
        }
    }

    /// When it was asked for and when its caller's time is over, unless it is a send.
    pub(crate) fn times_of(&self, number: u64) -> Option<(Mono, Mono)> {
        let asked = self.asked.get(&number).filter(|asked| !asked.send);
        let times = asked.map(|asked| (asked.at, asked.at.plus_millis(asked.timeout_ms)));
        times.or_else(|| self.broadcasts.times_of(number))
    }

    /// When a request is asked for and worth working on. A send's worker has all the time it wants.
    pub(crate) fn work_of(&self, number: u64) -> Option<RequestTimes> {
        let asked = self.asked.get(&number).filter(|asked| !asked.send)?;
        Some(RequestTimes { asked: asked.at, over: asked.at.plus_millis(asked.work_ms.saturating_sub(CLOCK_GRAIN_MS)) })
    }

    /// Nobody waits for it once it is written: its worker goes on, whatever becomes of its caller.
    pub(crate) fn is_no_reply(&self, number: u64) -> bool {
        self.asked.get(&number).is_none_or(|asked| asked.no_reply)
    }

    /// A worker is told to stop.
    pub(crate) fn stopped(&self, number: u64, reason: Code) {
        if let Some(Asked { farewell: Some(farewell), ends_with_caller: true, at, work_ms, .. }) =
            self.asked.get(&number)
        {
            judge_stop(number, reason, farewell.plus_millis(self.link_ms()), at.plus_millis(*work_ms));
        }
        self.broadcasts.stopped(number, reason, self.link_ms());
    }

    /// There are links in this world.
    pub(crate) const fn linked(&mut self) {
        self.crossings.on = true;
        self.fences.linked = true;
    }

    /// How long it may take until a broker behind a link hears of something: the link may be silent, and so may the next.
    const fn link_ms(&self) -> u64 {
        if self.crossings.on { LINK_MS } else { 0 }
    }

    pub(crate) fn link_gone(&mut self, now: Mono, broker: usize, wire: usize) {
        self.crossings.gone(now, broker, wire);
        self.broadcasts.links_lost = Some(now);
    }

    pub(crate) fn broker_says(&mut self, now: Mono, at: (usize, u64), said: &[(usize, Direction, &[u8])]) {
        self.crossings.broker_says(now, at, said);
        self.broadcasts.links_lost = self.crossings.lost;
    }

    /// A send is in one store only, whichever brokers it crossed to.
    pub(crate) fn judge_owner(&mut self, truth: &StoreContents) {
        for number in truth.numbers.values() {
            if self.asked.get(number).is_none_or(Asked::may_come_again) {
                continue;
            }
            let owner = *self.owners.entry(*number).or_insert(truth.run);
            assert_eq!(owner, truth.run, "I2: {number} is in two stores");
        }
    }

    /// A client got an answer (I12).
    pub(crate) fn replied(&mut self, now: Mono, client: usize, number: u64, right: bool) {
        assert!(right, "I12: {number} got an answer that is not its own");
        let asked = self.asked.get(&number).expect("I12: an answer to a question nobody asked");
        assert!(asked.handed > 0, "I12: {number} was answered though no worker had it");
        assert!(!asked.send, "I12: a send was answered");
        self.answered += 1;
        if !asked.may_come_again() {
            self.drops.replied(now, number);
        }
        self.ends(now, client, number);
    }

    /// A connection of a client carries an answer, whether the client wants it or not (I12).
    pub(crate) fn overhears(&self, client: usize, number: u64) {
        if broadcasts::is_one(number) {
            return self.broadcasts.overhears(client, number);
        }
        let asked = self.asked.get(&number).expect("I12: an answer to a question nobody asked");
        let own = asked.client == client && !asked.forgotten;
        assert!(own, "I12: the answer to {number} goes to another than asked it");
    }

    pub(crate) fn stored(&mut self, now: Mono, client: usize, number: u64, id: MessageId, durability: Durability) {
        let asked = self.asked.get_mut(&number).expect("only what was sent is stored");
        asked.stored = Some((id, now));
        asked.is(number, id, &self.clocks);
        if durability == Durability::Disk {
            self.letters.told(number, id, asked.worth(), asked.delay());
        }
        self.answered += 1;
        self.ends(now, client, number);
    }

    pub(crate) fn failed(&mut self, now: Mono, client: usize, number: u64, code: Option<Code>) {
        self.failed += 1;
        if let Some(asked) = self.asked.get(&number) {
            // A client with nowhere else to go waits for a drained broker until its time is over.
            let own_ms = asked.worth_ms.map_or(asked.timeout_ms, |worth_ms| worth_ms.min(asked.timeout_ms));
            let in_time = now < asked.at.plus_millis(own_ms);
            let untouched = code == Some(Code::Closing) && asked.ids.is_empty() && in_time;
            assert!(!untouched, "S2.18: {number} was lost by a broker that closed, and nobody had it");
            if code == Some(Code::Cancelled) && !asked.may_come_again() && !asked.send {
                self.cancels.over(now, number);
            }
        }
        if code == Some(Code::TimedOut)
            && let Some(asked) = self.asked.get(&number)
        {
            let timeout_ms = asked.worth_ms.unwrap_or(asked.timeout_ms);
            let left_ms = asked.at.plus_millis(timeout_ms).millis_left(now);
            // A request that has waited for half of its time and would be late is not handed out.
            let most_ms = if asked.send { 0 } else { asked.timeout_ms / 2 };
            assert!(left_ms <= most_ms + CLOCK_GRAIN_MS, "I13: {number} timed out {left_ms} ms before its deadline");
        }
        self.ends(now, client, number);
    }

    /// Every question ends once, in time, at the one who asked (I12, I13).
    pub(crate) fn ends(&mut self, now: Mono, client: usize, number: u64) {
        let asked = self.asked.get_mut(&number).expect("only what was asked ends");
        assert_eq!(asked.client, client, "I12: the outcome of {number} went to another");
        assert!(!asked.ended, "I12: {number} ended twice");
        asked.ended = true;
        let late = now.millis_since(asked.at).saturating_sub(asked.timeout_ms);
        assert!(late <= 1_100, "I13: {number} ended {late} ms after its deadline");
    }

    /// The client is gone: nobody waits for its questions.
    pub(crate) fn forgets(&mut self, client: usize, farewell: Option<Mono>) {
        self.broadcasts.forgets(client, farewell);
        for asked in self.asked.values_mut().filter(|asked| asked.client == client && !asked.forgotten) {
            asked.farewell = farewell.filter(|_| !asked.ended);
            asked.ended = true;
            asked.forgotten = true;
        }
    }

    /// At the end nothing is open (I13), and first deliveries went out in the order they came in (I5).
    pub(crate) fn judge(&mut self) {
        for (number, asked) in &self.asked {
            assert!(asked.ended, "I13: {number} never ended");
        }
        self.broadcasts.judge();
        self.cancels.judge();
        self.order.judge();
    }

    /// A send that a broker stored and still had time for was done, or is a dead letter (I3).
    pub(crate) fn judge_sends(&self, run: u64, dead: u64) {
        let broker = self.clocks.broker_of(run);
        let stored = self.asked.iter().filter(|(_, asked)| asked.stored.is_some_and(|(id, _)| id.run() == run));
        let in_time = |asked: &Asked| !asked.worth().is_some_and(|worth| self.clocks.may_be_over(broker, worth));
        let done = |number: u64, asked: &Asked| {
            asked.stored.is_some_and(|(id, _)| self.letters.is_done(id)) || self.letters.is_number_done(number)
        };
        let undone = stored.filter(|(number, asked)| in_time(asked) && !done(**number, asked));
        let undone: Vec<_> = undone.map(|(number, asked)| (number, asked.stored)).collect();
        assert!(undone.len() as u64 <= dead, "I3: {undone:?} were stored and never done, only {dead} are dead letters");
    }
}
