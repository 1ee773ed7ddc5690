//! What must be true of the effects, by an account that shares nothing with the engine's.

use std::collections::{BTreeMap, BTreeSet};

use super::casts::Cast;
use turno_engine::{CallerWord, Deliver, Effect, HostEffect, NativeEffect, PeerEffect, Report};
use turno_proto::model::{Code, ConnId, Cost, Delivery, Durability, MessageId, Mono, Slots, limits};

/// How long a stopped delivery keeps its slots.
pub(super) const GRACE_MS: u64 = 10_000;

/// A connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    pub(super) ready: bool,
    pub(super) slots: Option<Slots>,
    pub(super) closed: bool,
    pub(super) consumes: BTreeSet<usize>,
    pub(super) standings: Standings,
}

/// What counts against a worker, by queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Standings {
    expired: BTreeMap<usize, u16>,
    /// It must be told at once.
    due: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
    /// With the last delivery it got since.
    probing: BTreeMap<usize, Option<Delivery>>,
}

impl Standings {
    fn expire(&mut self, queue: usize, delivery: Delivery) {
        if let Some(probe) = self.probing.get(&queue) {
            if *probe == Some(delivery) {
                self.due.insert(queue);
            }
            return;
        }
        let expired = self.expired.entry(queue).or_default();
        *expired += 1;
        if *expired == limits::DROP_AFTER {
            self.due.insert(queue);
        }
    }

    fn drop_from(&mut self, queue: usize) {
        assert!(self.due.remove(&queue), "a worker is dropped for what expired, and once");
        self.expired.remove(&queue);
        self.probing.remove(&queue);
        self.dropped.insert(queue);
    }

    pub(super) fn settle(&mut self, queue: usize, delivery: Delivery) {
        self.expired.remove(&queue);
        if self.probing.get(&queue) == Some(&Some(delivery)) {
            self.probing.remove(&queue);
        }
    }

    pub(super) fn consume(&mut self, queue: usize) {
        if self.dropped.remove(&queue) {
            self.probing.insert(queue, None);
        }
    }

    pub(super) fn leave(&mut self, queue: usize) {
        self.expired.remove(&queue);
        if self.probing.remove(&queue).is_some() {
            self.dropped.insert(queue);
        }
    }
}

/// What a message wants and how far it came.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) caller: ConnId,
    pub(super) seq: u32,
    pub(super) kind: Kind,
    pub(super) queue: usize,
    pub(super) priority: u8,
    pub(super) cost: u16,
    pub(super) retries: u8,
    pub(super) born: Mono,
    pub(super) deadline: Option<Mono>,
    /// Set by STORED, or by the first delivery.
    pub(super) id: Option<MessageId>,
    pub(super) stored: bool,
    /// It outlives the broker.
    pub(super) on_disk: bool,
    /// For its caller.
    pub(super) ended: bool,
    pub(super) cancelled: bool,
    pub(super) settled: bool,
    pub(super) delivered_before: bool,
    /// It was not added: one with its dedup id came before.
    pub(super) duplicate: bool,
    pub(super) dedup_id: Option<u8>,
    /// A request whose worker is told to stop when the caller is gone.
    pub(super) ends_with_caller: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    NoReply,
    Send,
}

impl Message {
    pub(super) fn new(caller: ConnId, seq: u32, kind: Kind, queue: usize, born: Mono) -> Self {
        Self {
            caller,
            seq,
            kind,
            queue,
            priority: 4,
            cost: 1,
            retries: 0,
            born,
            deadline: None,
            id: None,
            stored: false,
            on_disk: false,
            ended: false,
            cancelled: false,
            settled: false,
            delivered_before: false,
            duplicate: false,
            dedup_id: None,
            ends_with_caller: false,
        }
    }

    /// The broker has it, or had it.
    pub(super) fn is_added(&self) -> bool {
        self.stored && !self.duplicate
    }

    fn is_late(&self, now: Mono) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// A request that has less than half of its time left may end as one that would be late.
    fn may_be_late(&self, now: Mono) -> bool {
        let past_half = |deadline: Mono| now.since(self.born) > deadline.since(now);
        self.kind == Kind::Request && self.deadline.is_some_and(past_half)
    }
}

/// A delivery whose slots are in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) worker: ConnId,
    pub(super) delivery: Delivery,
    since: Mono,
    /// When its slots come back by themselves, once it was told to stop.
    pub(super) stops: Option<Mono>,
}

/// The account.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub(super) peers: BTreeMap<ConnId, Peer>,
    /// By seq, which is also the body.
    pub(super) messages: BTreeMap<u32, Message>,
    pub(super) held: BTreeMap<u32, Held>,
    /// Broadcasts, by seq, which is also the body.
    pub(super) casts: BTreeMap<u32, Cast>,
    /// Every delivery ever made.
    pub(super) deliveries: Vec<(ConnId, Delivery, u32)>,
    /// The message whose holder speaks right now: only its caller may hear of a reply.
    pub(super) speaking: Option<u32>,
    pub(super) drained: u32,
    stamps: BTreeSet<u32>,
    /// The latest message first delivered, by queue and priority.
    first: BTreeMap<(usize, u8), u32>,
    /// The message that came first with a dedup id, by queue and id.
    known: BTreeMap<(usize, u8), (MessageId, Mono)>,
}

impl Oracle {
    /// Takes the effects of one input, in order.
    pub(super) fn watch(&mut self, now: Mono, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Peer(effect) => self.watch_peer(now, effect),
                // The disk has an account of its own.
                Effect::Disk(_) => {}
                Effect::Host(HostEffect::Drained(_)) => self.drained += 1,
                Effect::Host(HostEffect::Report(Report::Missing { serial })) => {
                    panic!("{serial} was stored and is missing")
                }
                Effect::Host(_) | Effect::Archive(_) => panic!("{effect:?}, though there are no jobs or losses here"),
            }
        }
        assert!(self.peers.values().all(|peer| peer.standings.due.is_empty()), "a worker is dropped in time");
    }

    fn watch_peer(&mut self, now: Mono, effect: &PeerEffect) {
        match effect {
            PeerEffect::Deliver(deliver) if deliver.cost == Cost::Broadcast => self.cast_delivered(now, deliver),
            PeerEffect::Deliver(deliver) => self.watch_delivery(now, deliver),
            PeerEffect::Caller { conn, seq, word } => self.watch_caller(now, *conn, *seq, word),
            PeerEffect::Native { conn, effect } => self.watch_native(now, *conn, effect),
            PeerEffect::Stop { conn, delivery, reason } => {
                if !self.cast_stopped(now, *conn, *delivery, *reason) {
                    self.stop(now, *conn, *delivery, *reason);
                }
            }
            PeerEffect::Closing { conn, .. } => assert!(self.peers.contains_key(conn)),
            PeerEffect::Answer { .. } => {}
            PeerEffect::Link { .. }
            | PeerEffect::Foreman { .. }
            | PeerEffect::Event { .. }
            | PeerEffect::Dial { .. }
            | PeerEffect::Ring(_) => panic!("{effect:?}, though there are no jobs, topics or links here"),
        }
    }

    fn watch_caller(&mut self, now: Mono, conn: ConnId, seq: u32, word: &CallerWord) {
        match word {
            CallerWord::Reply { more, payload } => {
                assert_eq!(self.speaking, Some(seq), "only the holder's word reaches a caller");
                assert!(payload.is_empty() || payload.bytes == "answer", "{seq}: the words are the holder's");
                if *more {
                    self.open(conn, seq)
                } else {
                    self.end(conn, seq)
                };
            }
            CallerWord::Progress { .. } => {
                assert_eq!(self.speaking, Some(seq), "only the holder's word reaches a caller");
                self.open(conn, seq);
            }
            CallerWord::Delivered => {
                assert_eq!(self.end(conn, seq), Kind::NoReply);
                assert!(self.held.contains_key(&seq), "{seq} was written to a worker");
            }
            CallerWord::Undelivered { code, .. } if self.cast_refused(now, conn, seq, *code) => {}
            CallerWord::Undelivered { code, .. } => {
                self.end(conn, seq);
                let message = &self.messages[&seq];
                match code {
                    Code::TimedOut if message.is_late(now) => {}
                    Code::TimedOut => {
                        assert!(message.may_be_late(now), "{seq} timed out early");
                        assert!(!self.held.contains_key(&seq), "{seq} timed out early at its worker");
                    }
                    Code::Cancelled => assert!(message.cancelled, "nobody cancelled {seq}"),
                    Code::Failed => assert_eq!(self.speaking, Some(seq), "nobody failed {seq}"),
                    _ => {}
                }
            }
            CallerWord::BroadcastAnswer(_) => self.cast_answered(conn, seq),
            CallerWord::BroadcastEnd(end) => self.cast_ended(conn, seq, end),
        }
    }

    fn watch_native(&mut self, now: Mono, conn: ConnId, effect: &NativeEffect) {
        match effect {
            NativeEffect::Stored { seq, id, durability, duplicate } => {
                self.stored(now, conn, *seq, *id, *duplicate);
                self.messages.entry(*seq).and_modify(|message| message.on_disk = *durability == Durability::Disk);
            }
            NativeEffect::CancelQueue { handle, reason } => {
                let peer = self.peers.get_mut(&conn).expect("a worker that is gone is told nothing");
                assert_eq!(*reason, Code::Dropped);
                assert!(peer.consumes.remove(&(*handle as usize)), "only a consumer is dropped");
                peer.standings.drop_from(*handle as usize);
            }
            NativeEffect::Admin { .. } => {}
            NativeEffect::Consuming { .. } | NativeEffect::QueueFull { .. } | NativeEffect::QueueAvailable { .. } => {
                panic!("{effect:?}: nobody wants a queue to itself")
            }
            NativeEffect::Pace => panic!("nobody has that much to read"),
        }
    }

    fn watch_delivery(&mut self, now: Mono, deliver: &Deliver) {
        let Deliver { conn, delivery, id, attempt, cost, deadline_ms, wants_reply, token, payload, handle } = deliver;
        let text = std::str::from_utf8(&payload.bytes).expect("bodies are numbers");
        let seq = text.parse().expect("bodies are numbers");
        let message = self.messages.get_mut(&seq).expect("only what was sent is delivered");
        assert_eq!(*handle as usize, message.queue, "{seq} comes under its queue's handle");
        let plain = (Cost::from_word(message.cost), message.kind == Kind::Request, None);
        assert_eq!((*cost, *wants_reply, *token), plain, "{seq}");
        assert!(*attempt >= 1 && *attempt <= u16::from(message.retries) + 1, "{seq}: attempt {attempt}");
        let left = message.deadline.map(|deadline| deadline.millis_left(now) as u32);
        assert_eq!(*deadline_ms, left, "{seq} says how long it has");
        assert_eq!(*message.id.get_or_insert(*id), *id, "{seq} has one id");
        self.hand_over(now, seq, *conn, *delivery);
    }

    fn stored(&mut self, now: Mono, conn: ConnId, seq: u32, id: MessageId, duplicate: bool) {
        let message = self.messages.get_mut(&seq).expect("only what was sent is stored");
        assert_eq!((message.caller, message.kind, message.stored), (conn, Kind::Send, false));
        (message.stored, message.id, message.duplicate) = (true, Some(id), duplicate);
        let key = message.dedup_id.map(|dedup_id| (message.queue, dedup_id));
        let known = key.and_then(|key| self.known.get(&key)).filter(|(_, until)| *until > now);
        match known {
            Some((first, _)) => assert_eq!((duplicate, *first), (true, id), "I6: {seq} came before"),
            None => assert!(!duplicate, "{seq} is new"),
        }
        if let Some(key) = key.filter(|_| !duplicate) {
            self.known.insert(key, (id, now.plus_millis(super::HOUR_MS)));
        }
    }

    fn hand_over(&mut self, now: Mono, seq: u32, worker: ConnId, delivery: Delivery) {
        let message = &self.messages[&seq];
        assert!(!message.is_late(now), "{seq} goes out after its deadline");
        assert!(!message.settled && !message.cancelled && !message.duplicate, "{seq} is over");
        assert!(!self.held.contains_key(&seq), "{seq} is with one worker at a time");
        if message.kind != Kind::Send {
            assert!(!message.ended, "{seq} is over for its caller");
            assert!(self.peers.contains_key(&message.caller), "{seq}: its caller is gone");
        }
        let peer = self.peers.get(&worker).expect("a worker is connected");
        assert!(peer.ready && !peer.closed && peer.consumes.contains(&message.queue), "{seq} is not for {peer:?}");
        let used = self.used(worker) + u32::from(message.cost);
        match peer.slots {
            Some(Slots::Limited(slots)) => assert!(used <= slots, "{seq}: {used} of {slots} slots"),
            Some(Slots::Unlimited) => {}
            None => panic!("{seq} goes to somebody who is no worker"),
        }
        if let Some(probe) = self.peers.get_mut(&worker).and_then(|peer| peer.standings.probing.get_mut(&message.queue))
        {
            let has = |held: &Held| held.worker == worker && Some(held.delivery) == *probe;
            assert!(!self.held.values().any(has), "{seq}: one probe at a time");
            *probe = Some(delivery);
        }
        let (lane, again) = ((message.queue, message.priority), message.delivered_before);
        if !again {
            let before = self.first.insert(lane, seq);
            assert!(before < Some(seq), "{seq} was overtaken by {before:?}");
        }
        self.messages.get_mut(&seq).expect("looked up above").delivered_before = true;
        self.held.insert(seq, Held { worker, delivery, since: now, stops: None });
        self.note_delivery(worker, delivery, seq);
    }

    pub(super) fn note_delivery(&mut self, worker: ConnId, delivery: Delivery, seq: u32) {
        assert!(self.stamps.insert(delivery.stamp), "every hand-over has a number of its own");
        self.deliveries.push((worker, delivery, seq));
    }

    fn stop(&mut self, now: Mono, worker: ConnId, delivery: Delivery, reason: Code) {
        assert!(self.peers.contains_key(&worker), "a worker that is gone is told nothing");
        let (seq, held) = self
            .held
            .iter_mut()
            .find(|(_, held)| held.worker == worker && held.delivery == delivery)
            .expect("only what a worker holds is stopped");
        assert_eq!(held.stops, None, "told once");
        let seq = *seq;
        let message = &self.messages[&seq];
        let (queue, waited) = (message.queue, held.since.since(message.born));
        let fair = message.deadline.is_some_and(|deadline| waited <= deadline.since(held.since));
        if let Some(peer) = self.peers.get_mut(&worker)
            && (reason == Code::LeaseExpired || reason == Code::TimedOut && fair)
            && peer.consumes.contains(&queue)
        {
            peer.standings.expire(queue, delivery);
        }
        if reason == Code::LeaseExpired {
            self.held.remove(&seq);
        } else {
            held.stops = Some(now.plus_millis(GRACE_MS));
        }
    }

    /// A request that is not over; its caller is there.
    fn open(&self, conn: ConnId, seq: u32) -> Kind {
        let message = self.messages.get(&seq).expect("only what was sent has an outcome");
        assert!(!message.ended, "{seq} has ended already");
        assert_eq!(message.caller, conn, "{seq} is another's");
        assert!(self.peers.contains_key(&conn), "{seq}: its caller is gone");
        message.kind
    }

    fn end(&mut self, conn: ConnId, seq: u32) -> Kind {
        let kind = self.open(conn, seq);
        let message = self.messages.get_mut(&seq).expect("looked up a moment ago");
        assert!(kind != Kind::Send || !message.stored, "{seq}: nobody hears of a send once it is stored");
        message.ended = true;
        kind
    }

    /// The broker is gone, and with it everything but what is stored.
    pub(super) fn restart(&mut self) {
        self.peers.clear();
        self.held.clear();
        self.casts.clear();
        self.deliveries.clear();
        self.stamps.clear();
        for message in self.messages.values_mut().filter(|message| !message.on_disk) {
            (message.id, message.stored) = (None, false);
        }
        let kept: BTreeSet<MessageId> = self.messages.values().filter_map(|message| message.id).collect();
        self.known.retain(|_, (id, _)| kept.contains(id));
    }

    pub(super) fn used(&self, worker: ConnId) -> u32 {
        let held = self.held.iter().filter(|(_, held)| held.worker == worker);
        held.map(|(seq, _)| u32::from(self.messages[seq].cost)).sum()
    }

    pub(super) fn free_all(&mut self, worker: ConnId) {
        self.held.retain(|_, held| held.worker != worker);
        self.cast_left(worker);
    }

    /// A tick comes: grace that is over gives slots back.
    pub(super) fn end_grace(&mut self, now: Mono) {
        self.held.retain(|_, held| held.stops.is_none_or(|at| at > now));
        self.cast_grace(now);
    }

    /// Requests whose caller still waits.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = (u32, &Message)> {
        let requests = self.messages.iter().filter(|(_, message)| message.kind != Kind::Send && !message.ended);
        requests.filter(|(_, message)| self.peers.contains_key(&message.caller)).map(|(seq, message)| (*seq, message))
    }

    /// Requests of a queue that no worker has and whose caller is gone: those that are still there are to end.
    pub(super) fn abandoned(&self, queue: usize) -> usize {
        let requests = self.messages.iter().filter(|(_, message)| message.kind != Kind::Send && message.queue == queue);
        let gone = |message: &Message| !message.ended && !self.peers.contains_key(&message.caller);
        requests.filter(|(seq, message)| gone(message) && !self.held.contains_key(seq)).count()
    }

    /// Workers were told to stop what only a caller who is gone had waited for.
    pub(super) fn check_nobody_works_for(&self, caller: ConnId) {
        for (seq, held) in &self.held {
            let message = &self.messages[seq];
            let over = message.caller == caller && message.ends_with_caller;
            assert!(!over || held.stops.is_some(), "{seq}: nobody waits for it any more");
        }
    }

    /// After a tick nobody waits past a deadline.
    pub(super) fn check_deadlines(&self, now: Mono) {
        self.check_casts(now);
        for (seq, message) in self.unanswered() {
            assert!(!message.is_late(now), "{seq} should have ended by {:?}, it is {now:?}", message.deadline);
        }
    }
}
