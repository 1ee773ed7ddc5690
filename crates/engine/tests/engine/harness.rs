//! The harness of the tests: an engine, a clock, and methods for the messages of peers. Every step ends with the
//! engine's own check of itself.

use std::collections::{BTreeMap, BTreeSet};

use turno_engine::ring::PublicationRef;
use turno_engine::{
    Again, Deliver, Effect, Engine, Input, NativeEffect, Outgoing, PeerEffect, RetryDelay, Settings, WorkerMessage,
};
use turno_proto::model::{Code, ConnId, Cost, DedupId, Delivery, MessageId, Mono, Payload, QueueName, Slots};

use crate::seen::{Seen, Turn, body};

/// The time at which the clock of a harness starts.
pub(crate) const START_MS: u64 = 5_000;

/// A message as a caller writes it.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    queue: String,
    pub(crate) message: Outgoing,
    no_reply: bool,
    fail_fast: bool,
}

/// A message with that number, queue and body, and no options.
pub(crate) fn ask(seq: u32, queue: &str, text: &str) -> Ask {
    let message = Outgoing::new(seq, 0, body(text));
    Ask { queue: queue.to_owned(), message, no_reply: false, fail_fast: false }
}

impl Ask {
    pub(crate) fn within(mut self, deadline_ms: u32) -> Self {
        self.message.deadline_ms = Some(deadline_ms);
        self
    }

    pub(crate) fn retries(mut self, retries: u8) -> Self {
        self.message.retries = Some(retries);
        self
    }

    pub(crate) fn priority(mut self, priority: u8) -> Self {
        self.message.priority = Some(priority);
        self
    }

    pub(crate) fn cost(mut self, cost: u16) -> Self {
        self.message.cost = Some(cost);
        self
    }

    pub(crate) fn dedup(mut self, id: &str) -> Self {
        self.message.dedup_id = Some(DedupId::new(id.as_bytes()).expect("tests use good ids"));
        self
    }

    pub(crate) fn delay(mut self, delay_ms: u64) -> Self {
        self.message.delay_ms = delay_ms;
        self
    }

    pub(crate) fn carrying(mut self, payload: Payload) -> Self {
        self.message.payload = payload;
        self
    }

    pub(crate) fn no_reply(mut self) -> Self {
        self.no_reply = true;
        self
    }

    pub(crate) fn ends_with_caller(mut self) -> Self {
        self.message.cancel_on_disconnect = true;
        self
    }

    pub(crate) fn fail_fast(mut self) -> Self {
        self.fail_fast = true;
        self
    }
}

/// An engine, its clock, and what happened so far.
pub(crate) struct Harness {
    pub(crate) engine: Engine,
    now: Mono,
    conns: u32,
    control_seq: u32,
    handles: BTreeMap<(ConnId, String), u32>,
    queues: BTreeMap<(ConnId, u32), String>,
    log: Vec<Effect>,
    stamps: BTreeSet<u32>,
    bodies: BTreeMap<MessageId, Payload>,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    /// Failed sends are tried again at once: their waits have tests of their own, which begin with [`Self::with_waits`].
    pub(crate) fn with(settings: Settings) -> Self {
        Self::with_waits(Settings { retry_delay: RetryDelay::NONE, ..settings })
    }

    pub(crate) fn with_waits(settings: Settings) -> Self {
        let now = Mono::from_millis(START_MS);
        Self {
            engine: Engine::new(settings, now),
            now,
            conns: 0,
            control_seq: 1_000_000,
            handles: BTreeMap::new(),
            queues: BTreeMap::new(),
            log: Vec::new(),
            stamps: BTreeSet::new(),
            bodies: BTreeMap::new(),
        }
    }

    /// A publication of the ring that somebody else owns, now.
    pub(crate) fn lend(&mut self, conn: ConnId, publication: PublicationRef<'_>) -> Vec<Effect> {
        let mut out = Vec::new();
        self.engine.pass(self.now, conn, publication, &mut out);
        self.engine.sanity_check();
        out
    }

    /// One input, now; the effects as they are.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        self.engine.handle(self.now, input, &mut out);
        self.engine.sanity_check();
        for effect in &out {
            if let Effect::Peer(PeerEffect::Deliver(Deliver { delivery, id, payload, cost, .. })) = effect {
                assert!(self.stamps.insert(delivery.stamp), "every delivery has a number of its own");
                let named = id.place().is_none_or(|place| place == delivery.index) || *cost == Cost::Broadcast;
                assert!(
                    named,
                    "a delivery and its message name one place, unless the message outlives the broker or goes to many"
                );
                let first = self.bodies.entry(*id).or_insert_with(|| payload.clone());
                assert_eq!(first, payload, "a message is the same at every attempt");
            }
        }
        self.log.extend(out.iter().cloned());
        out
    }

    /// One input, now; the effects as tests compare them.
    pub(crate) fn say(&mut self, input: Input) -> Vec<Seen> {
        let out = self.step(input);
        self.seen(out)
    }

    /// Everything the engine said so far.
    pub(crate) fn log(&self) -> &[Effect] {
        &self.log
    }

    fn seen(&self, effects: Vec<Effect>) -> Vec<Seen> {
        effects.into_iter().map(|effect| self.see(effect)).collect()
    }

    fn see(&self, effect: Effect) -> Seen {
        match effect {
            Effect::Peer(PeerEffect::Deliver(Deliver {
                conn: worker,
                handle,
                attempt,
                cost,
                deadline_ms,
                wants_reply,
                token,
                payload,
                ..
            })) => {
                let queue = self.queues[&(worker, handle)].clone();
                Seen::Turn(Turn { worker, queue, payload, attempt, cost, deadline_ms, wants_reply, token })
            }
            other => Seen::Said(other),
        }
    }

    /// An input that is answered by OK or ERROR, and that answer comes before all that follows from it.
    pub(crate) fn control(&mut self, input: impl FnOnce(u32) -> Input) -> Result<Vec<Seen>, Code> {
        self.control_seq += 1;
        let expected = self.control_seq;
        let mut out = self.step(input(expected));
        assert!(!out.is_empty(), "a control frame is answered");
        match out.remove(0) {
            Effect::Peer(PeerEffect::Answer { seq, result: Ok(()), .. }) if seq == expected => Ok(self.seen(out)),
            Effect::Peer(PeerEffect::Answer { seq, result: Err(code), .. }) if seq == expected && out.is_empty() => {
                Err(code)
            }
            other => panic!("{other:?} is no answer to {expected}"),
        }
    }
}

/// Coming, going, and what a worker offers.
impl Harness {
    /// A connection that finished its greeting but not its first PING.
    pub(crate) fn connect(&mut self) -> ConnId {
        let conn = ConnId { index: self.conns, generation: 1 };
        self.conns += 1;
        self.connect_as(conn);
        conn
    }

    pub(crate) fn connect_as(&mut self, conn: ConnId) {
        let (name, address) = (format!("w{}", conn.index), format!("10.0.0.{}:7", conn.index));
        assert_eq!(self.say(Input::Connected { conn, name, address }), []);
    }

    /// A connection that only asks.
    pub(crate) fn client(&mut self) -> ConnId {
        let conn = self.connect();
        assert_eq!(self.ready(conn), []);
        conn
    }

    /// A worker in these queues; nothing waits for it.
    pub(crate) fn worker(&mut self, slots: u32, queues: &[&str]) -> ConnId {
        let (worker, got) = self.joining(Slots::Limited(slots), queues);
        assert_eq!(got, [], "use `joining` for a worker that finds work");
        worker
    }

    /// A worker in these queues, and what it was given while it joined them.
    pub(crate) fn joining(&mut self, slots: Slots, queues: &[&str]) -> (ConnId, Vec<Seen>) {
        let conn = self.client();
        assert_eq!(self.register(conn, slots), Ok(vec![]));
        let got = queues.iter().flat_map(|queue| self.consume(conn, queue).expect("a new worker may consume"));
        (conn, got.collect())
    }

    pub(crate) fn ready(&mut self, conn: ConnId) -> Vec<Seen> {
        self.say(Input::Ready { conn })
    }

    pub(crate) fn forget_handles(&mut self, conn: ConnId) {
        self.handles.retain(|(owner, _), _| *owner != conn);
    }

    pub(crate) fn leave(&mut self, conn: ConnId) -> Vec<Seen> {
        self.forget_handles(conn);
        self.say(Input::Disconnected { conn })
    }

    pub(crate) fn register(&mut self, conn: ConnId, slots: Slots) -> Result<Vec<Seen>, Code> {
        self.register_named(conn, slots, "")
    }

    pub(crate) fn register_named(&mut self, conn: ConnId, slots: Slots, name: &str) -> Result<Vec<Seen>, Code> {
        self.control(|seq| Input::Register { conn, seq, slots, name: name.to_owned() })
    }

    pub(crate) fn deregister(&mut self, conn: ConnId) -> Result<Vec<Seen>, Code> {
        self.control(|seq| Input::Deregister { conn, seq })
    }

    pub(crate) fn resize(&mut self, conn: ConnId, slots: u32) -> Result<Vec<Seen>, Code> {
        self.control(|seq| Input::Resize { conn, seq, slots: Slots::Limited(slots) })
    }

    pub(crate) fn consume(&mut self, conn: ConnId, queue: &str) -> Result<Vec<Seen>, Code> {
        let handle = self.handle(conn, queue);
        self.control(|seq| Input::Consume { conn, seq, handle, exclusive: false })
    }

    pub(crate) fn cancel_queue(&mut self, conn: ConnId, queue: &str) -> Result<Vec<Seen>, Code> {
        let handle = self.handle(conn, queue);
        self.control(|seq| Input::CancelQueue { conn, seq, handle })
    }

    pub(crate) fn open(&mut self, conn: ConnId, handle: u32, queue: &str) -> Result<Vec<Seen>, Code> {
        let name: QueueName = queue.parse().expect("tests use good names");
        let result = self.control(|seq| Input::Open { conn, seq, handle, queue: name });
        if result.is_ok() {
            if let Some(before) = self.queues.insert((conn, handle), queue.to_owned()) {
                self.handles.remove(&(conn, before));
            }
            self.handles.insert((conn, queue.to_owned()), handle);
        }
        result
    }

    /// The connection's handle of a queue, opened if need be.
    pub(crate) fn handle(&mut self, conn: ConnId, queue: &str) -> u32 {
        if let Some(handle) = self.handles.get(&(conn, queue.to_owned())) {
            return *handle;
        }
        let used = self.queues.keys().filter(|(owner, _)| *owner == conn).map(|(_, handle)| handle + 1);
        let handle = used.max().unwrap_or(0);
        assert_eq!(self.open(conn, handle, queue), Ok(vec![]));
        handle
    }
}

/// Asking and settling.
impl Harness {
    pub(crate) fn request(&mut self, conn: ConnId, ask: Ask) -> Vec<Seen> {
        let handle = self.handle(conn, &ask.queue);
        let Ask { mut message, no_reply, fail_fast, .. } = ask;
        message.handle = handle;
        self.say(Input::Request { conn, message: Outgoing { no_reply, fail_fast, ..message } })
    }

    /// A send that is taken in: its id, and what follows after STORED.
    pub(crate) fn send(&mut self, conn: ConnId, ask: Ask) -> (MessageId, Vec<Seen>) {
        let seq = ask.message.seq;
        let mut seen = self.try_send(conn, ask);
        match seen.remove(0) {
            Seen::Said(Effect::Peer(PeerEffect::Native {
                conn: to,
                effect: NativeEffect::Stored { seq: at, id, .. },
            })) if to == conn && at == seq => (id, seen),
            other => panic!("{other:?} is no STORED for {seq}"),
        }
    }

    pub(crate) fn try_send(&mut self, conn: ConnId, ask: Ask) -> Vec<Seen> {
        let handle = self.handle(conn, &ask.queue);
        let mut message = ask.message;
        message.handle = handle;
        self.say(Input::Send { conn, message })
    }

    /// The latest delivery of that body to that worker.
    pub(crate) fn held(&self, worker: ConnId, text: &str) -> Delivery {
        self.latest(worker, text).0
    }

    pub(crate) fn id(&self, worker: ConnId, text: &str) -> MessageId {
        self.latest(worker, text).1
    }

    fn latest(&self, worker: ConnId, text: &str) -> (Delivery, MessageId) {
        let found = self.log.iter().rev().find_map(|effect| match effect {
            Effect::Peer(PeerEffect::Deliver(Deliver { conn, delivery, id, payload, .. }))
                if *conn == worker && payload.bytes == text =>
            {
                Some((*delivery, *id))
            }
            _ => None,
        });
        found.expect("that worker got that body")
    }

    pub(crate) fn reply(&mut self, worker: ConnId, text: &str, answer: &str) -> Vec<Seen> {
        let delivery = self.held(worker, text);
        self.reply_to(worker, delivery, answer)
    }

    pub(crate) fn reply_to(&mut self, conn: ConnId, delivery: Delivery, answer: &str) -> Vec<Seen> {
        self.say(Input::worker(conn, delivery, WorkerMessage::Reply { more: false, payload: body(answer) }))
    }

    pub(crate) fn piece(&mut self, conn: ConnId, text: &str, answer: &str) -> Vec<Seen> {
        let delivery = self.held(conn, text);
        self.say(Input::worker(conn, delivery, WorkerMessage::Reply { more: true, payload: body(answer) }))
    }

    pub(crate) fn ack(&mut self, conn: ConnId, text: &str) -> Vec<Seen> {
        let delivery = self.held(conn, text);
        self.say(Input::worker(conn, delivery, WorkerMessage::Ack))
    }

    pub(crate) fn fail(&mut self, conn: ConnId, text: &str, why: &str) -> Vec<Seen> {
        let delivery = self.held(conn, text);
        self.say(Input::worker(conn, delivery, WorkerMessage::Fail { again: Again::AsSet, payload: body(why) }))
    }

    pub(crate) fn fail_for_good(&mut self, conn: ConnId, text: &str, why: &str) -> Vec<Seen> {
        let delivery = self.held(conn, text);
        self.say(Input::worker(conn, delivery, WorkerMessage::Fail { again: Again::Never, payload: body(why) }))
    }

    pub(crate) fn cancel(&mut self, conn: ConnId, seq: u32) -> Vec<Seen> {
        self.say(Input::Cancel { conn, seq })
    }

    /// What a worker is told when a delivery of it shall stop.
    pub(crate) fn stopped(&self, worker: ConnId, text: &str, reason: Code) -> Seen {
        Seen::Said(Effect::Peer(PeerEffect::Stop { conn: worker, delivery: self.held(worker, text), reason }))
    }
}

/// Time.
impl Harness {
    pub(crate) fn now(&self) -> Mono {
        self.now
    }

    /// Sets the clock; the engine hears of it with the next input.
    pub(crate) fn clock(&mut self, now: Mono) {
        self.now = now;
    }

    pub(crate) fn tick(&mut self) -> Vec<Seen> {
        self.say(Input::Tick)
    }

    /// Lets time pass as a shell does: sleeping until the engine's next deadline, and no tick without one. So
    /// whatever happens here was announced in time.
    pub(crate) fn pass(&mut self, millis: u64) -> Vec<Seen> {
        let until = self.now.plus_millis(millis);
        let mut seen = Vec::new();
        let mut naps = 0;
        while let Some(next) = self.engine.next_deadline().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            seen.extend(self.tick());
            assert!(self.engine.next_deadline().is_none_or(|next| next > self.now), "a tick does all that is due");
            naps += 1;
            assert!(naps <= 100 + millis, "the engine lets its shell sleep");
        }
        self.now = until;
        seen
    }
}
