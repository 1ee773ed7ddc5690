//! Any bytes as a row of things that happen to the engine.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use turno_engine::{
    Broadcast, CallerWord, Deliver, Effect, Engine, HostEffect, Input, NativeEffect, Outgoing, PeerEffect, Policy,
    Settings, WorkerWord,
};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{ConnId, DedupId, Delivery, Limits, MessageId, Mono, Payload, Slots, limits};

use crate::bytes::Bytes;
use crate::engine_topics::Listening;

const PLACES: usize = 4;
const OPS_MAX: usize = 200;
const ADMIN: ConnId = ConnId { index: 1_000, generation: 1 };
const QUEUES: [&str; 3] = ["a", "b", "c.d"];

/// Plays the bytes. All rooms agree after every step, nobody who is gone is spoken to, a request ends at most once, events
/// go to who wants them, and when all peers are gone, nothing is held.
pub fn engine_ops(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let mut play = Play::new(bytes.byte());
    for _ in 0..OPS_MAX {
        if bytes.is_empty() {
            break;
        }
        play.op(&mut bytes);
    }
    for place in 0..PLACES {
        play.leave(place);
    }
    assert_eq!(play.engine.in_flight(), 0, "nobody is left to hold anything");
    play.pass(4_000);
}

struct Play {
    engine: Engine,
    now: Mono,
    places: [Option<ConnId>; PLACES],
    generations: u32,
    /// Numbers of requests that wait for their end. A caller's own numbers are ours, and never the same twice.
    open: BTreeSet<u32>,
    seqs: u32,
    deliveries: Vec<(ConnId, Delivery)>,
    /// The last token.
    tokens: u64,
    ids: Vec<MessageId>,
    drained: u32,
    listening: Listening,
}

impl Play {
    /// The first byte is the broker's settings; the peers are there, and half of them work.
    fn new(manner: u8) -> Self {
        let limits = Limits {
            queues_max: 3,
            in_flight_max: 12,
            memory_bytes_max: if manner & 4 != 0 { 2_000 } else { 1 << 20 },
            dead_max: usize::from(manner >> 6),
            ..Limits::default()
        };
        let settings = Settings {
            limits,
            own_rotas_max: if manner & 64 != 0 { 1 } else { 8 },
            policy: if manner & 1 != 0 { Policy::Fill } else { Policy::LeastRecentlyUsed },
            portion: if manner & 32 != 0 { NonZeroUsize::MIN } else { limits::CHORES_MAX },
            // A configuration may name any lease, even one beyond the end of time.
            lease_ms: (manner & 2 != 0).then_some(if manner & 0x10 != 0 { u64::MAX } else { 1_000 }),
            ..Settings::default()
        };
        let now = Mono::from_millis(1_000);
        let mut play = Self {
            engine: Engine::new(settings, now),
            now,
            places: [None; PLACES],
            generations: 0,
            open: BTreeSet::new(),
            seqs: 0,
            deliveries: Vec::new(),
            tokens: 1 << 20,
            ids: Vec::new(),
            drained: 0,
            listening: Listening::default(),
        };
        for place in 0..PLACES {
            play.connect(place);
        }
        for conn in play.places.into_iter().flatten().take(if manner & 8 != 0 { 2 } else { 0 }) {
            play.step(Input::Ready { conn });
            play.step(Input::Register { conn, seq: 0, slots: Slots::Limited(2), name: String::new() });
            play.step(Input::Consume { conn, seq: 0, handle: 0, exclusive: false });
        }
        play
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.engine.handle(self.now, input, &mut effects);
        self.engine.sanity_check();
        for effect in effects {
            self.watch(effect);
        }
        self.listening.check();
    }

    fn watch(&mut self, effect: Effect) {
        match effect {
            Effect::Peer(effect) => self.watch_peer(effect),
            Effect::Disk(_) | Effect::Host(HostEffect::Report(_)) => panic!("{effect:?} without a store"),
            Effect::Archive(_) => panic!("there are no jobs here"),
            Effect::Host(HostEffect::Ring(_)) => panic!("there is no ring here"),
            Effect::Host(HostEffect::Drained(_)) => {
                self.drained += 1;
                assert_eq!(self.drained, 1, "a drain ends once");
            }
        }
    }

    fn watch_peer(&mut self, effect: PeerEffect) {
        let (conn, ended) = match effect {
            PeerEffect::Deliver(Deliver { conn, delivery, id, attempt, .. }) => {
                assert!(attempt > 0, "attempts are counted from one");
                assert!(!self.deliveries.iter().any(|(_, old)| *old == delivery), "a delivery has its own number");
                self.deliveries.push((conn, delivery));
                self.ids.push(id);
                (conn, None)
            }
            PeerEffect::Caller { conn, seq, word } => match word {
                CallerWord::Reply { more, .. } => (conn, (!more).then_some(seq)),
                CallerWord::Delivered | CallerWord::Undelivered { .. } | CallerWord::BroadcastEnd(_) => {
                    (conn, Some(seq))
                }
                CallerWord::Progress { .. } | CallerWord::BroadcastAnswer(_) => {
                    assert!(self.open.contains(&seq), "word about a request that goes on");
                    (conn, None)
                }
            },
            PeerEffect::Native { conn, effect } => (conn, self.watch_native(effect)),
            PeerEffect::Answer { conn, .. } | PeerEffect::Stop { conn, .. } | PeerEffect::Closing { conn, .. } => {
                (conn, None)
            }
            PeerEffect::Event { event, listeners } => {
                self.listening.gets(&event, &listeners);
                return;
            }
            PeerEffect::Foreman { .. } => panic!("there are no jobs here"),
            PeerEffect::Dial { .. } | PeerEffect::Link { .. } => panic!("there are no links here"),
            PeerEffect::Ring(_) => panic!("there is no ring here"),
        };
        assert!(conn == ADMIN || self.places.contains(&Some(conn)), "{conn:?} is gone, yet spoken to");
        if let Some(seq) = ended {
            assert!(self.open.remove(&seq), "{seq} ends once");
        }
    }

    /// The number that this is the end of, if it is one.
    fn watch_native(&mut self, effect: NativeEffect) -> Option<u32> {
        match effect {
            NativeEffect::Stored { seq, id, .. } => {
                self.ids.push(id);
                return Some(seq);
            }
            NativeEffect::Consuming { token, .. } => {
                assert!(token > self.tokens, "tokens rise");
                self.tokens = token;
            }
            NativeEffect::Admin { answer, .. } => self.listening.answered(&answer),
            NativeEffect::QueueFull { .. }
            | NativeEffect::QueueAvailable { .. }
            | NativeEffect::CancelQueue { .. }
            | NativeEffect::Pace => {}
        }
        None
    }

    fn op(&mut self, bytes: &mut Bytes<'_>) {
        let op = bytes.byte();
        match op % 24 {
            0 => self.connect(usize::from(op / 24) % PLACES),
            1 => self.leave(bytes.below(PLACES)),
            2 => self.pass(u64::from(bytes.byte())),
            3 => self.pass(u64::from(bytes.u16()) / 8),
            4 => self.now = self.now.plus_millis(u64::from(bytes.byte()) * 16),
            5 => {
                self.now = self.now.plus_millis(u64::from(bytes.u32()));
                self.step(Input::Tick);
            }
            6 => self.now = Mono::from_micros(self.now.as_micros().saturating_sub(u64::from(bytes.u16()) * 100)),
            7 => self.step(Input::Tick),
            8 => self.admin(bytes),
            9 if op >= 240 => self.step(Input::Drain { within_ms: u64::from(bytes.u16()) }),
            _ => {
                if let Some(conn) = self.places[bytes.below(PLACES)] {
                    let input = self.input(conn, op % 24, bytes);
                    self.step(input);
                }
            }
        }
    }

    /// What a peer says.
    fn input(&mut self, conn: ConnId, op: u8, bytes: &mut Bytes<'_>) -> Input {
        let (seq, handle) = (0, u32::from(op & 3));
        match op {
            9 => Input::Ready { conn },
            10 => self.listening.input(conn, ADMIN, bytes),
            11 => {
                let handle = if bytes.byte() < 200 { bytes.byte().into() } else { bytes.u32() };
                Input::Open { conn, seq, handle, queue: queue(bytes) }
            }
            12 => Input::Register { conn, seq, slots: slots(bytes), name: String::new() },
            13 => Input::Resize { conn, seq, slots: slots(bytes) },
            14 => Input::Deregister { conn, seq },
            15 | 16 => {
                let how = bytes.byte();
                Input::Consume { conn, seq, handle: u32::from(how & 3), exclusive: how & 0x80 != 0 }
            }
            17 => {
                let (how, handle) = (bytes.byte(), bytes.below(4) as u32);
                if how & 0x80 == 0 {
                    Input::CancelQueue { conn, seq, handle }
                } else {
                    Input::QueueAvailableNotify { conn, seq, handle }
                }
            }
            18 => Input::PeerClosing { conn },
            19 | 20 => {
                let how = bytes.byte();
                let message = self.message(how, bytes);
                Input::Request {
                    conn,
                    message: Outgoing { no_reply: how & 0x40 != 0, fail_fast: how & 0x80 != 0, ..message },
                }
            }
            21 => {
                let how = bytes.byte();
                let mut message = self.message(how, bytes);
                if how & 0x40 != 0 {
                    message.dedup_id = DedupId::new(&[bytes.byte() % 4]).ok();
                }
                if how & 0x80 != 0 {
                    let Outgoing { seq, handle, deadline_ms, payload, .. } = message;
                    let (no_reply, skip_self) = (how & 0x40 != 0, how & 0x10 != 0);
                    let broadcast = Broadcast { seq, handle, deadline_ms, no_reply, skip_self, payload };
                    return Input::Broadcast { conn, broadcast };
                }
                Input::Send { conn, message }
            }
            22 => {
                let word = self.word(conn, bytes);
                // Now and then with a token: the last one, one before it, or one that nobody has.
                match bytes.byte() {
                    ago @ 0..32 => word.fenced(self.tokens + 1 - u64::from(ago)),
                    _ => word,
                }
            }
            _ => Input::Cancel { conn, seq: self.seqs.saturating_sub(bytes.byte().into()).max(handle) },
        }
    }

    /// `how` says which options it names.
    fn message(&mut self, how: u8, bytes: &mut Bytes<'_>) -> Outgoing {
        self.seqs += 1;
        self.open.insert(self.seqs);
        let payload = Payload::body(vec![0; usize::from(how & 0x20) * 8]);
        let mut message = Outgoing::new(self.seqs, u32::from(how & 3), payload);
        if how & 0x04 != 0 {
            message.deadline_ms = Some(if how & 0x20 != 0 { bytes.u32() } else { bytes.u16().into() });
        }
        if how & 0x08 != 0 {
            message.cost = Some(u16::from(bytes.byte()) % 5);
            message.priority = Some(bytes.byte() % 11);
        }
        if how & 0x10 != 0 {
            message.retries = Some(bytes.byte());
        }
        message
    }

    /// A word about a delivery: a late, a forged, or an honest one.
    fn word(&self, sayer: ConnId, bytes: &mut Bytes<'_>) -> Input {
        let (how, ago) = (bytes.byte(), usize::from(bytes.byte()));
        let known = self.deliveries.len().checked_sub(1 + ago).map(|at| self.deliveries[at]);
        let invented = || (sayer, Delivery { index: u32::from(how), stamp: u32::from(how) });
        let (holder, delivery) = known.unwrap_or_else(invented);
        let holder = Some(holder).filter(|holder| self.places.contains(&Some(*holder)));
        let conn = if how & 0x80 != 0 { sayer } else { holder.unwrap_or(sayer) };
        let payload = Payload::body("x");
        match how % 8 {
            0 | 1 => Input::worker(conn, delivery, WorkerWord::Reply { more: false, payload }),
            2 => Input::worker(conn, delivery, WorkerWord::Reply { more: true, payload }),
            3 => Input::worker(conn, delivery, WorkerWord::Ack),
            4 => Input::worker(conn, delivery, WorkerWord::Fail { permanent: false, payload }),
            5 => Input::worker(conn, delivery, WorkerWord::Fail { permanent: true, payload }),
            6 => Input::worker(conn, delivery, WorkerWord::Progress { payload }),
            _ => Input::worker(conn, delivery, WorkerWord::Extend { lease_ms: bytes.u32() }),
        }
    }

    fn admin(&mut self, bytes: &mut Bytes<'_>) {
        let op = bytes.byte();
        let worker = || (1 + op / 12).to_string();
        let id = self.ids.len().checked_sub(1 + usize::from(op / 12)).map(|at| self.ids[at].to_string());
        let id = id.unwrap_or_else(|| "x".to_owned());
        let name = QUEUES[usize::from(op / 12) % QUEUES.len()].to_owned();
        let call = match op % 12 {
            _ if op >= 192 => Self::queue_call(op, name, id, bytes.byte()),
            0 => AdminCall::Status,
            1 => AdminCall::QueueLs { after: (op > 100).then_some(name), limit: bytes.byte().into() },
            2 => AdminCall::QueueShow { queue: name },
            3 => AdminCall::QueueConsumers { queue: name },
            4 => AdminCall::WorkerLs { after: (op > 100).then_some(1), limit: bytes.byte().into() },
            5 => AdminCall::WorkerShow { worker: worker() },
            6 => AdminCall::WorkerResize { worker: worker(), slots: slots(bytes) },
            7 => AdminCall::WorkerDrain { worker: worker() },
            8 => AdminCall::WorkerResume { worker: worker() },
            9 => AdminCall::WorkerStop { worker: worker(), now: bytes.byte() & 1 != 0 },
            10 => AdminCall::MessageExplain { id },
            _ => AdminCall::MessageCancel { id },
        };
        self.step(Input::Admin { conn: ADMIN, seq: 0, call });
    }

    /// About a queue as a whole, or its dead letters.
    fn queue_call(op: u8, queue: String, id: String, few: u8) -> AdminCall {
        let named = few & 1 != 0;
        let oldest = u32::from(few / 2) % 4;
        let ids = if named { vec![id.clone()] } else { Vec::new() };
        match op % 6 {
            0 => AdminCall::QueuePurge { queue, limit: oldest },
            1 => AdminCall::DeadLs { queue, after: named.then_some(id), limit: oldest },
            2 => AdminCall::DeadShow { queue, id, from: few.into() },
            3 => AdminCall::DeadRetry { queue, ids, oldest },
            4 => AdminCall::DeadPurge { queue, ids, oldest },
            _ => {
                let settings = QueueSettings {
                    durable: Some(few & 2 != 0),
                    drop_after: (few & 4 != 0).then_some(u16::from(few >> 6)),
                    weight: (few & 8 != 0).then_some(few >> 4),
                };
                AdminCall::QueueSet { queue, settings: named.then_some(settings) }
            }
        }
    }

    fn connect(&mut self, place: usize) {
        if self.places[place].is_some() {
            return;
        }
        self.generations += 1;
        let conn = ConnId { index: place as u32, generation: self.generations };
        self.places[place] = Some(conn);
        self.step(Input::Connected { conn, name: format!("p{place}"), address: String::new() });
        for (handle, name) in (0..).zip(QUEUES) {
            let queue = name.parse().expect("a good name");
            self.step(Input::Open { conn, seq: 0, handle, queue });
        }
    }

    fn leave(&mut self, place: usize) {
        if let Some(conn) = self.places[place].take() {
            self.listening.leaves(conn);
            self.step(Input::Disconnected { conn });
        }
    }

    /// Ticks exactly when the engine asked for it.
    fn pass(&mut self, millis: u64) {
        let until = self.now.plus_millis(millis);
        while let Some(next) = self.engine.next_deadline().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.step(Input::Tick);
        }
        self.now = until;
    }
}

fn queue(bytes: &mut Bytes<'_>) -> turno_proto::model::QueueName {
    let name = ["a", "b", "c.d", "e"][bytes.below(4)];
    name.parse().expect("a good name")
}

fn slots(bytes: &mut Bytes<'_>) -> Slots {
    match bytes.byte() {
        255 => Slots::Unlimited,
        254 => Slots::Limited(bytes.u32()),
        few => Slots::Limited(u32::from(few) % 6),
    }
}
