//! Dedup ids on a disk that is behind, refuses, and outlives broker after broker.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use turno_engine::{
    CallerWord, Deliver, DiskEffect, Effect, Engine, Input, NativeEffect, Outgoing, PeerEffect, Persist, Record,
    Remembered, WorkerWord,
};
use turno_engine::{Settings, StoreSettings, Survivor};
use turno_proto::model::{Code, ConnId, DedupId, DedupKey, Durability, MessageId, Mono, Payload, Slots};

const QUEUES: [&str; 2] = ["a", "ab"];
const NAMES: [&str; 3] = ["x", "bx", "y"];
const CLIENT: ConnId = ConnId { index: 1, generation: 1 };
const WORKER: ConnId = ConnId { index: 2, generation: 1 };
const HOUR_MS: u64 = 3_600_000;
/// When each run's clock begins.
const START: Mono = Mono::from_millis(5_000);

#[derive(Clone, Debug)]
enum Op {
    Send {
        queue: usize,
        name: usize,
    },
    /// The disk stores that many groups.
    Store(usize),
    /// It refuses the next one.
    Refuse,
    /// Everything a worker has is done.
    AckAll,
    Pass(u64),
    /// The broker ends at once, and the next one begins with what is on disk; that many groups were stored unheard.
    Crash(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => (0..QUEUES.len(), 0..NAMES.len()).prop_map(|(queue, name)| Op::Send { queue, name }),
        6 => (1usize..4).prop_map(Op::Store),
        2 => Just(Op::Refuse),
        2 => Just(Op::AckAll),
        2 => (0u64..200).prop_map(Op::Pass),
        2 => (HOUR_MS / 3..=HOUR_MS).prop_map(Op::Pass),
        2 => (0usize..4).prop_map(Op::Crash),
    ]
}

/// What is stored.
#[derive(Default)]
struct Disk {
    messages: BTreeMap<u64, Record>,
    ids: BTreeMap<[u8; 16], Remembered>,
    /// Every message ever stored, in the order of storing.
    log: Vec<(u64, Record)>,
}

impl Disk {
    fn apply(&mut self, op: Persist) {
        match op {
            Persist::Put { serial, record } => {
                self.log.push((serial, record.clone()));
                assert!(self.messages.insert(serial, record).is_none(), "{serial} is put twice");
            }
            Persist::Remember(remembered) => {
                assert!(self.messages.contains_key(&remembered.serial), "an id comes with its message");
                self.ids.insert(remembered.key.0, remembered);
            }
            // It may never have come here: refused with its message, an hour after that was sent.
            Persist::Forget { key: DedupKey(key) } => drop(self.ids.remove(&key)),
            Persist::Remove { serial, .. } => assert!(self.messages.remove(&serial).is_some(), "only what is stored"),
            Persist::Attempts { .. } | Persist::Dead { .. } | Persist::Retry { .. } => panic!("nobody fails here"),
            _ => panic!("nobody sets anything here"),
        }
    }
}

struct World {
    engine: Engine,
    now: Mono,
    /// Unix milliseconds at this run's zero.
    zero: u64,
    seqs: u32,
    /// Sends that are not answered, and when they came.
    asked: BTreeMap<u32, (usize, usize, u64)>,
    /// The latest answer to each id, and when its message came.
    answers: BTreeMap<(usize, usize), (MessageId, u64)>,
    /// Groups on their way.
    groups: VecDeque<(u64, Vec<Persist>)>,
    disk: Disk,
    held: Vec<Effect>,
}

impl World {
    fn new() -> Self {
        let zero = 1_700_000_000_000;
        let mut world = Self {
            engine: engine(zero, 0),
            now: START,
            zero,
            seqs: 0,
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            groups: VecDeque::new(),
            disk: Disk::default(),
            held: Vec::new(),
        };
        world.connect();
        world
    }

    fn wall(&self) -> u64 {
        self.zero + self.now.as_millis()
    }

    fn connect(&mut self) {
        for conn in [CLIENT, WORKER] {
            self.step(Input::Connected { conn, name: String::new(), address: String::new() });
            self.step(Input::Ready { conn });
            for (handle, name) in (0..).zip(QUEUES) {
                self.step(Input::Open { conn, seq: 0, handle, queue: name.parse().expect("a good name") });
            }
        }
        self.step(Input::Register { conn: WORKER, seq: 0, slots: Slots::Limited(3), name: String::new() });
        for handle in [0, 1] {
            self.step(Input::Consume { conn: WORKER, seq: 0, handle, exclusive: false });
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.engine.handle(self.now, input, &mut effects);
        self.engine.sanity_check();
        for effect in effects {
            match effect {
                Effect::Disk(DiskEffect::Persist { group, op }) => match self.groups.back_mut() {
                    Some((last, ops)) if *last == group => ops.push(op),
                    _ => self.groups.push_back((group, vec![op])),
                },
                Effect::Peer(PeerEffect::Native {
                    effect: NativeEffect::Stored { seq, id, durability, duplicate },
                    ..
                }) => self.stored(seq, id, durability, duplicate),
                Effect::Peer(PeerEffect::Caller { seq, word: CallerWord::Undelivered { code, .. }, .. }) => {
                    assert_eq!(code, Code::OverDisk);
                    assert!(self.asked.remove(&seq).is_some(), "{seq} is answered once");
                }
                Effect::Peer(PeerEffect::Deliver(Deliver { .. })) => self.held.push(effect),
                _ => {}
            }
        }
    }

    /// Every answer names a message that is on disk, or was; and within an hour of that message no other.
    fn stored(&mut self, seq: u32, id: MessageId, durability: Durability, duplicate: bool) {
        let (queue, name, at) = self.asked.remove(&seq).expect("answered once");
        assert_eq!(durability, Durability::Disk);
        let (_, record) = self.disk.log.iter().find(|(serial, _)| *serial == id.serial()).expect("on disk first");
        assert_eq!((record.queue.as_str(), &record.payload.bytes[..]), (QUEUES[queue], NAMES[name].as_bytes()));
        let born = record.born_unix_ms;
        assert!(duplicate || born == at, "{seq} is its own message, or a duplicate");
        assert!(at < born + HOUR_MS, "{seq} has the answer of one that is too old");
        let before = self.answers.insert((queue, name), (id, born));
        if let Some((before, born)) = before.filter(|(_, born)| at < born + HOUR_MS) {
            assert_eq!((before, duplicate), (id, before == id && duplicate), "{seq}: one id, one message, {born}");
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send { queue, name } => {
                self.seqs += 1;
                self.asked.insert(self.seqs, (queue, name, self.wall()));
                let handle = u32::try_from(queue).expect("few queues");
                let payload = Payload::body(NAMES[name]);
                let dedup_id = DedupId::new(NAMES[name].as_bytes()).ok();
                let message = Outgoing { dedup_id, ..Outgoing::new(self.seqs, handle, payload) };
                self.step(Input::Send { conn: CLIENT, message });
            }
            Op::Store(count) => {
                if let Some(group) = self.store(count) {
                    self.step(Input::Persisted { group });
                }
            }
            Op::Refuse => {
                if let Some((group, _)) = self.groups.pop_front() {
                    self.step(Input::Refused { group, code: Code::OverDisk });
                }
            }
            Op::AckAll => {
                for effect in std::mem::take(&mut self.held) {
                    let Effect::Peer(PeerEffect::Deliver(Deliver { conn, delivery, .. })) = effect else {
                        unreachable!("only deliveries")
                    };
                    self.step(Input::worker(conn, delivery, WorkerWord::Ack));
                }
            }
            Op::Pass(millis) => {
                let until = self.now.plus_millis(millis);
                while let Some(next) = self.engine.next_deadline().filter(|next| *next <= until) {
                    self.now = self.now.max(next);
                    // The checker of waiting messages would tick away the hour.
                    self.step(Input::Tick);
                    if millis > 1_000 {
                        self.now = self.now.plus_millis(millis / 50).min(until);
                    }
                }
                self.now = until;
            }
            Op::Crash(unheard) => {
                self.store(unheard);
                self.groups.clear();
                self.held.clear();
                self.asked.clear();
                self.zero = self.wall() - START.as_millis();
                self.now = START;
                let last_serial = self.disk.log.iter().map(|(serial, _)| *serial).max().unwrap_or(0);
                self.engine = engine(self.zero, last_serial);
                for (serial, record) in self.disk.messages.clone() {
                    self.engine.recover(Survivor { serial, record, attempts: 0, failure: None });
                }
                self.engine.recover_dedup(self.disk.ids.values().copied().collect());
                self.engine.sanity_check();
                self.connect();
            }
        }
    }

    fn store(&mut self, count: usize) -> Option<u64> {
        let count = count.min(self.groups.len());
        let stored: Vec<(u64, Vec<Persist>)> = self.groups.drain(..count).collect();
        let last = stored.last().map(|(group, _)| *group);
        stored.into_iter().flat_map(|(_, ops)| ops).for_each(|op| self.disk.apply(op));
        last
    }

    /// In any hour each id was stored with one message at most.
    fn judge(&self) {
        let mut born: BTreeMap<(&str, &[u8]), u64> = BTreeMap::new();
        for (serial, record) in &self.disk.log {
            let before = born.insert((record.queue.as_str(), &record.payload.bytes), record.born_unix_ms);
            let apart = before.is_none_or(|before| record.born_unix_ms >= before + HOUR_MS);
            assert!(apart, "I6: {serial} is a second message within the hour");
        }
    }
}

fn engine(unix_ms: u64, last_serial: u64) -> Engine {
    let store = Some(StoreSettings { run: 1, unix_ms, last_serial });
    Engine::new(Settings { store, ..Settings::default() }, START)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x6f6e_6365),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    })]

    /// Proves I6 for any order of sends, crashes, refusals and hours: one id is one message within the window, on disk
    /// and in every answer.
    #[test]
    fn one_id_is_one_message(ops in prop::collection::vec(op(), 20..120)) {
        let mut world = World::new();
        for op in &ops {
            world.apply(op);
        }
        world.apply(&Op::Store(usize::MAX));
        world.judge();
    }
}
