//! Invariants of the effects, by an account that shares nothing with the engine's.

use std::collections::{BTreeMap, BTreeSet};

use turno_engine::{Again, Deliver, RecoveredMessage, RetryDelay};
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{Code, ConnId, Cost, DedupKey, Delivery, MessageId, Mono, Seconds, Slots, limits};

use crate::broadcasts::BroadcastState;
use crate::disk::Disk;
use crate::exclusive::ExclusiveQueue;
use crate::listeners::{Expected, Listeners};
use crate::message::{Held, Kind, Message, Peer};
use crate::{HOUR_MS, NAMES};

/// How long a stopped delivery keeps its slots.
pub(crate) const GRACE_MS: u64 = 10_000;

/// CONSUME, which is answered by the next message to its peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    pub(crate) conn: ConnId,
    pub(crate) queue: usize,
    pub(crate) handle: u32,
    pub(crate) exclusive: bool,
}

/// A lane of first deliveries: queue, priority, and whether the message waited for the disk.
type Lane = (usize, u8, bool);

/// The account.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) peers: BTreeMap<ConnId, Peer>,
    /// By seq, which is also the body.
    pub(crate) messages: BTreeMap<u32, Message>,
    pub(crate) held: BTreeMap<u32, Held>,
    /// Broadcasts, by seq, which is also the body.
    pub(crate) casts: BTreeMap<u32, BroadcastState>,
    /// Every delivery ever made, with the number of its message.
    pub(crate) deliveries: Vec<(ConnId, Delivery, u32)>,
    /// The message whose holder speaks right now: only its caller may hear of a reply.
    pub(crate) speaking: Option<u32>,
    pub(crate) asking: Option<Asking>,
    /// The queue that an admin empties right now.
    pub(crate) purging: Option<usize>,
    /// Queues, each by who has it to itself and who waits for it.
    pub(crate) exclusive: [ExclusiveQueue<ConnId>; NAMES.len()],
    pub(crate) settings: [Option<QueueSettings>; NAMES.len()],
    /// The last token given out, by any broker.
    pub(crate) token: u64,
    pub(crate) listeners: Listeners<ConnId>,
    /// The receivers of the event that is published now.
    pub(crate) receivers: BTreeSet<ConnId>,
    /// The expected answer to the call that is made now.
    pub(crate) expected: Option<Expected>,
    /// The broker drains, for maintenance or on its way out.
    pub(crate) closing: bool,
    /// It is on its way out.
    pub(crate) ending: bool,
    pub(crate) drained: u32,
    /// Stored messages take their places later than others.
    pub(crate) lags: bool,
    /// The disk refuses something right now.
    pub(crate) refusing: bool,
    /// The memory is small.
    pub(crate) tight: bool,
    /// The waits of queues that have none of their own.
    retry_delay: RetryDelay,
    stamps: BTreeSet<u32>,
    /// The latest message first delivered.
    first: BTreeMap<Lane, u32>,
    /// The message that came first with a dedup id, and until when it is known.
    known: BTreeMap<DedupKey, (MessageId, Mono)>,
}

impl Oracle {
    pub(crate) fn new(lags: bool, tight: bool, retry_delay: RetryDelay) -> Self {
        Self { lags, tight, retry_delay, ..Self::default() }
    }

    pub(crate) fn watch_delivery(&mut self, now: Mono, deliver: &Deliver) {
        let Deliver { conn, delivery, id, attempt, cost, deadline_ms, wants_reply, token, payload, handle } = deliver;
        let seq = number(&payload.bytes).and_then(|seq| u32::try_from(seq).ok()).expect("bodies are numbers");
        let message = self.messages.get_mut(&seq).expect("I4: only what was sent is delivered");
        let consumed = self.peers.get(conn).and_then(|peer| peer.consumes.get(&message.queue));
        assert_eq!(consumed, Some(handle), "{seq} comes under its queue's handle");
        assert_eq!((*cost, *wants_reply), (Cost::from_word(message.cost), message.kind == Kind::Request), "{seq}");
        assert!(*attempt >= 1 && *attempt <= u16::from(message.retries) + 1, "I2: attempt {attempt} of {seq}");
        let left = message.deadline.map(|deadline| u32::try_from(deadline.millis_left(now)).unwrap_or(u32::MAX));
        assert_eq!(*deadline_ms, left, "{seq} says how long it has");
        assert_eq!(*message.id.get_or_insert(*id), *id, "{seq} has one id");
        message.attempt = *attempt;
        self.exclusive[message.queue].gets(*conn, *token, None);
        self.hand_over(now, seq, *conn, *delivery, *token);
    }

    pub(crate) fn undelivered(&mut self, now: Mono, conn: ConnId, seq: u32, code: Code) {
        self.end(conn, seq);
        let message = &self.messages[&seq];
        // A repeated dedup id is looked at first: the message has the outcome of the one that is being stored.
        let as_the_first = code == Code::OverDisk && message.dedup.is_some();
        let right = message.wrong.is_none_or(|wrong| wrong == code) || as_the_first;
        assert!(right, "{seq} is wrong, and {code} is said");
        match code {
            Code::TimedOut if message.is_late(now) => {}
            Code::TimedOut => {
                assert!(message.may_be_late(now), "I13: {seq} timed out early");
                assert!(!self.held.contains_key(&seq), "I13: {seq} timed out early at its worker");
            }
            Code::Cancelled => {
                assert!(message.cancelled || self.purging == Some(message.queue), "nobody cancelled {seq}");
            }
            Code::Failed => assert_eq!(self.speaking, Some(seq), "nobody failed {seq}"),
            Code::UnknownHandle | Code::BadOption => assert!(message.wrong.is_some(), "{seq}: nothing is wrong"),
            Code::OverDisk => assert!(self.refusing, "{seq}: the disk has room"),
            Code::OverMemory => assert!(self.tight, "{seq}: there is memory"),
            Code::Closing | Code::CutShort => assert!(self.closing, "{seq}: the broker does not drain"),
            Code::NoResponder | Code::TooManyInFlight | Code::WorkerLost | Code::LeaseExpired => {}
            other => panic!("{seq} ends with {other}"),
        }
    }

    /// The answer to CONSUME: the token or none, or that the queue is full.
    pub(crate) fn consuming(&mut self, now: Mono, conn: ConnId, answer: Option<Option<u64>>) {
        let Some(Asking { conn: asker, queue, handle, exclusive }) = self.asking.take() else {
            return assert_eq!(answer, Some(None), "nobody asked for a queue");
        };
        assert_eq!(asker, conn, "the answer goes to who asked");
        let after = self.drop_after(queue);
        let free = self.exclusive[queue].is_free() && !self.lags && !self.is_in_job_worker(queue);
        let peer = self.peers.get_mut(&conn).expect("who asks is connected");
        match answer {
            Some(token) => {
                assert_eq!(token.is_some(), exclusive, "I8: a token is for one that is alone");
                self.exclusive[queue].consumes(now, conn, token);
                peer.consumes.insert(queue, handle);
                peer.asked.remove(&queue);
                peer.standings.consume(queue, after);
            }
            None => {
                assert!(!free, "S2.21: nobody has the queue {queue}, and it is full");
                self.exclusive[queue].is_refused(now, conn);
                peer.asked.entry(queue).or_insert(handle);
            }
        }
    }

    pub(crate) fn available(&mut self, now: Mono, conn: ConnId, handle: u32) {
        let peer = self.peers.get(&conn).expect("a worker that is gone is told nothing");
        let queue = peer.handles[&handle];
        assert_eq!(peer.asked.get(&queue), Some(&handle), "S2.25: it is told under the handle that it asked with");
        self.exclusive[queue].is_told(now, conn);
    }

    pub(crate) fn stored(&mut self, conn: ConnId, seq: u32, id: MessageId, duplicate: bool) {
        let message = self.messages.get_mut(&seq).expect("only what was sent is stored");
        assert_eq!((message.caller, message.kind, message.stored), (conn, Kind::Send, false));
        assert!(message.wrong.is_none() || duplicate, "{seq} is wrong, and stored");
        (message.stored, message.id, message.duplicate) = (true, Some(id), duplicate);
        let (key, born) = (message.dedup, message.born);
        let known = key.and_then(|key| self.known.get(&key)).filter(|(_, until)| *until > born);
        match known {
            Some((first, _)) => assert_eq!((duplicate, *first), (true, id), "I6: {seq} came before"),
            None => assert!(!duplicate, "I6: {seq} is new"),
        }
        if let Some(key) = key.filter(|_| !duplicate) {
            self.known.insert(key, (id, born.plus_millis(HOUR_MS)));
        }
    }

    fn hand_over(&mut self, now: Mono, seq: u32, worker: ConnId, delivery: Delivery, token: Option<u64>) {
        let message = &self.messages[&seq];
        assert!(!message.is_late(now), "{seq} goes out after its deadline");
        assert!(message.not_before <= now, "S2.40, S2.42: {seq} goes out at {now:?}, before {:?}", message.not_before);
        assert!(!message.settled && !message.cancelled && !message.duplicate, "{seq} is over");
        assert!(message.wrong.is_none() && !self.closing, "{seq} is not to be handed out");
        assert!(!self.held.contains_key(&seq), "{seq} is with one worker at a time");
        if message.kind != Kind::Send {
            assert!(!message.ended, "{seq} is over for its caller");
            assert!(self.peers.contains_key(&message.caller), "{seq}: its caller is gone");
        }
        let used = self.used(worker) + u64::from(message.cost);
        let peer = self.peers.get_mut(&worker).expect("a worker is connected");
        assert!(peer.takes(message.queue) && !peer.paced, "{seq} is not for {peer:?}");
        match peer.slots {
            Some(Slots::Limited(slots)) => assert!(used <= u64::from(slots), "I9: {seq}: {used} of {slots} slots"),
            Some(Slots::Unlimited) => {}
            None => panic!("{seq} goes to somebody who is no worker"),
        }
        if let Some(probe) = peer.standings.probe(message.queue) {
            let has = |held: &Held| held.worker == worker && Some(held.delivery) == *probe;
            assert!(!self.held.values().any(has), "S2.32: {seq}: one probe at a time");
            *probe = Some(delivery);
        }
        let lane = (message.queue, message.priority, self.lags && message.on_disk);
        if !message.delivered_before && !message.is_delayed {
            let before = self.first.insert(lane, seq);
            assert!(before < Some(seq), "I5: {seq} was overtaken by {before:?}");
        }
        self.messages.get_mut(&seq).expect("looked up above").delivered_before = true;
        self.held.insert(seq, Held { worker, delivery, token, since: now, stops: None });
        self.note_delivery(worker, delivery, seq);
    }

    pub(crate) fn note_delivery(&mut self, worker: ConnId, delivery: Delivery, seq: u32) {
        assert!(self.stamps.insert(delivery.stamp), "every delivery has a number of its own");
        self.deliveries.push((worker, delivery, seq));
    }

    pub(crate) fn stop(&mut self, now: Mono, worker: ConnId, delivery: Delivery, reason: Code) {
        assert!(self.peers.contains_key(&worker), "a worker that is gone is told nothing");
        let (seq, held) = self
            .held
            .iter_mut()
            .find(|(_, held)| held.worker == worker && held.delivery == delivery)
            .expect("only what a worker holds is stopped");
        assert_eq!(held.stops, None, "told once");
        let seq = *seq;
        let message = &self.messages[&seq];
        let queue = message.queue;
        // The broker knows the age of a delivery in whole milliseconds.
        let waited_ms = held.since.millis_since(message.born);
        let fair = message.deadline.is_some_and(|deadline| 2 * waited_ms <= deadline.millis_since(message.born));
        if reason == Code::LeaseExpired {
            self.held.remove(&seq);
            self.wait(now, seq, Again::AsSet);
        } else {
            held.stops = Some(now.plus_millis(GRACE_MS));
        }
        let after = self.drop_after(queue);
        if let Some(peer) = self.peers.get_mut(&worker)
            && (reason == Code::LeaseExpired || reason == Code::TimedOut && fair)
            && peer.consumes.contains_key(&queue)
        {
            peer.standings.expire(queue, delivery, after);
        }
    }

    /// The worker of a send failed it, or held it too long: it waits, unless that was its last attempt.
    pub(crate) fn wait(&mut self, now: Mono, seq: u32, again: Again) {
        let message = &self.messages[&seq];
        let settings = self.settings[message.queue].unwrap_or_default();
        let of_queue = |own: Option<Seconds>, usual: u64| own.map_or(usual, Seconds::as_millis);
        let first_ms = of_queue(settings.retry_delay_seconds, self.retry_delay.first_ms);
        let most_ms = of_queue(settings.retry_delay_max_seconds, self.retry_delay.most_ms.max(first_ms));
        // A quarter of the wait is left to chance.
        let of_attempt = |attempt: u16| {
            let whole = (1..attempt).fold(first_ms.min(most_ms), |wait, _| wait.saturating_mul(2).min(most_ms));
            whole - whole / 4
        };
        let least_ms = match again {
            Again::AsSet => of_attempt(message.attempt),
            Again::Uncounted(None) => of_attempt(1),
            Again::After(ms) | Again::Uncounted(Some(ms)) => u64::from(ms),
            Again::Never => return,
        };
        if message.kind == Kind::Send {
            self.messages.get_mut(&seq).expect("looked up above").not_before = now.plus_millis(least_ms);
        }
    }

    /// A request that is not over; its caller is there.
    pub(crate) fn open(&self, conn: ConnId, seq: u32) -> Kind {
        let message = self.messages.get(&seq).expect("only what was sent has an outcome");
        assert!(!message.ended, "I12: {seq} has ended already");
        assert_eq!(message.caller, conn, "I12: {seq} is another's");
        // The answer to a send comes when the disk has it; its caller may have gone meanwhile.
        assert!(message.kind == Kind::Send || self.peers.contains_key(&conn), "{seq}: its caller is gone");
        message.kind
    }

    pub(crate) fn end(&mut self, conn: ConnId, seq: u32) -> Kind {
        let kind = self.open(conn, seq);
        let message = self.messages.get_mut(&seq).expect("looked up a moment ago");
        assert!(kind != Kind::Send || !message.stored, "{seq}: nobody hears of a send once it is stored");
        message.ended = true;
        kind
    }
}

/// Peers, time, and the disk.
impl Oracle {
    /// Deliveries in a row that may expire at a worker of that queue.
    pub(crate) fn drop_after(&self, queue: usize) -> u16 {
        self.settings[queue].and_then(|settings| settings.drop_after).unwrap_or(limits::DROP_AFTER)
    }

    /// The broker is gone, and with it everything but what is stored. Nothing that was confirmed as stored is lost (I1).
    pub(crate) fn restart(&mut self, now: Mono, run: u64, disk: &Disk) {
        let id = |serial| MessageId::new(run, serial, u32::MAX);
        let kept = disk.kept.iter().map(|(serial, kept)| (disk.numbers[serial], (id(*serial), kept)));
        let kept: BTreeMap<u32, (MessageId, &RecoveredMessage)> = kept.collect();
        for message in self.messages.values_mut().filter(|message| message.kind == Kind::Send) {
            let over = message.settled || message.cancelled || message.is_late(now);
            match kept.get(&message.seq) {
                Some((id, kept)) => {
                    // An end that was not stored never was.
                    (message.id, message.stored, message.on_disk) = (Some(*id), true, true);
                    (message.settled, message.cancelled) = (false, false);
                    message.deadline = kept.record.deadline_unix_ms.map(Mono::from_millis);
                    let waits = match &kept.mark {
                        Some(mark) => mark.wait.map(|wait| wait.until_unix_ms),
                        None => kept.record.due_unix_ms,
                    };
                    message.not_before = waits.map_or(Mono::ZERO, Mono::from_millis);
                }
                None if message.is_added() && message.on_disk => assert!(over, "I1: {} is lost", message.seq),
                None => (message.id, message.stored) = (None, false),
            }
        }
        let remembered = disk.remembered.values().map(|kept| {
            let born = self.messages[&disk.numbers[&kept.serial]].born;
            (kept.key, (id(kept.serial), born.plus_millis(HOUR_MS)))
        });
        let known = remembered.collect();
        let (messages, token) = (std::mem::take(&mut self.messages), self.token);
        let (first, settings) = (std::mem::take(&mut self.first), self.settings);
        *self = Self { messages, token, first, settings, known, ..Self::new(self.lags, self.tight, self.retry_delay) };
    }

    pub(crate) fn used(&self, worker: ConnId) -> u64 {
        let held = self.held.iter().filter(|(_, held)| held.worker == worker);
        held.map(|(seq, _)| u64::from(self.messages[seq].cost)).sum()
    }

    /// Some worker has something of the queue.
    fn is_in_job_worker(&self, queue: usize) -> bool {
        self.held.keys().any(|seq| self.messages[seq].queue == queue) || self.is_cast_in_job_worker(queue)
    }

    /// It has a queue to itself, or something of such a queue, or waits for one.
    pub(crate) fn keeps_a_queue(&self, conn: ConnId) -> bool {
        let alone = self.exclusive.iter().any(|queue| queue.holder() == Some(conn) || queue.waits(conn));
        let held = self.held.values().filter(|held| held.worker == conn).map(|held| held.token);
        let parts = self.casts.values().flat_map(|cast| cast.parts()).filter(|(at, _)| *at == conn);
        alone || held.chain(parts.map(|(_, (_, token))| token)).any(|token| token.is_some())
    }

    pub(crate) fn free_all(&mut self, worker: ConnId) {
        self.held.retain(|_, held| held.worker != worker);
        self.cast_left(worker);
    }

    /// The worker has no queue any more, and waits for none.
    pub(crate) fn leaves_queues(&mut self, conn: ConnId) {
        self.exclusive.iter_mut().for_each(|queue| queue.leave(conn));
        if let Some(peer) = self.peers.get_mut(&conn) {
            peer.consumes.clear();
            peer.asked.clear();
            peer.standings = crate::standings::Standings::default();
        }
    }

    /// A tick comes: grace that is over gives slots back.
    pub(crate) fn end_grace(&mut self, now: Mono) {
        self.held.retain(|_, held| held.stops.is_none_or(|at| at > now));
        self.cast_grace(now);
    }

    /// Requests whose caller still waits.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = (u32, &Message)> {
        let requests = self.messages.iter().filter(|(_, message)| message.kind != Kind::Send && !message.ended);
        requests.filter(|(_, message)| self.peers.contains_key(&message.caller)).map(|(seq, message)| (*seq, message))
    }

    /// Sends whose sender is there, and waits for an answer.
    pub(crate) fn unconfirmed(&self) -> Vec<u32> {
        let sends = self.messages.values().filter(|message| message.kind == Kind::Send);
        let open = sends.filter(|message| !message.stored && !message.ended);
        open.filter(|message| self.peers.contains_key(&message.caller)).map(|message| message.seq).collect()
    }

    /// Requests of a queue that no worker has and whose caller is gone: those that are still there are to end.
    pub(crate) fn abandoned(&self, queue: usize) -> usize {
        let requests = self.messages.iter().filter(|(_, message)| message.kind != Kind::Send && message.queue == queue);
        let gone = |message: &Message| !message.ended && !self.peers.contains_key(&message.caller);
        requests.filter(|(seq, message)| gone(message) && !self.held.contains_key(seq)).count()
    }

    /// Workers were told to stop what only a caller who is gone had waited for.
    pub(crate) fn check_nobody_works_for(&self, caller: ConnId) {
        for (seq, held) in &self.held {
            let message = &self.messages[seq];
            let over = message.caller == caller && message.ends_with_caller && !message.ended;
            assert!(!over || held.stops.is_some(), "{seq}: nobody waits for it any more");
        }
    }

    /// After a tick nobody waits past a deadline. `writes`: the disk is behind, perhaps with a failed attempt that it refused.
    pub(crate) fn check_deadlines(&mut self, now: Mono, writes: bool) {
        self.check_casts(now);
        for (seq, message) in self.unanswered() {
            let late = message.deadline.is_some_and(|deadline| due(deadline) <= now);
            assert!(!late, "I13: {seq} should have ended by {:?}, it is {now:?}", message.deadline);
        }
        self.exclusive.iter_mut().for_each(|queue| queue.timers_ran(now, 0, writes));
    }
}

/// When the broker looks at that deadline: its clockwork knows whole milliseconds.
pub(crate) const fn due(deadline: Mono) -> Mono {
    Mono::from_micros(deadline.as_micros().div_ceil(1_000) * 1_000)
}

/// The number of a message or an event, by its body.
pub(crate) fn number(body: &[u8]) -> Option<u64> {
    std::str::from_utf8(body).ok()?.trim_end().parse().ok()
}
