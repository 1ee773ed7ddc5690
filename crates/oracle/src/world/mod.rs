//! The engine, its peers, its clock and its disk, moved by operations.

mod broadcasts;
mod end;
mod messages;
mod peers;
mod queue_settings;
mod topics;

use turno_engine::{Effect, Engine, Input, NativeEffect, PeerEffect, Settings};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::{Code, ConnId, Mono, Slots};

use crate::disk::Disk;
use crate::op::Op;
use crate::oracle::Oracle;
use crate::setup::Setup;
use crate::{NAMES, PLACES};

const ADMIN: ConnId = ConnId { index: 1_000, generation: 1 };

/// When the clock of each run of the broker begins.
const START: Mono = Mono::from_millis(5_000);

/// The deadline of a request that names none.
const USUAL_MS: u32 = 30_000;

/// A broker and all that surrounds it. It panics at the first thing that cannot be.
#[derive(Debug)]
pub struct World {
    settings: Settings,
    engine: Engine,
    disk: Disk,
    oracle: Oracle,
    clock: Mono,
    /// The latest time the engine was told.
    now: Mono,
    /// Milliseconds at which the clock of this run of the broker began.
    zero_ms: u64,
    places: [Option<ConnId>; PLACES],
    workers: usize,
    generations: u32,
    /// Numbers of messages and events.
    seqs: u32,
    /// The disk stores when it is told to.
    lags: bool,
    /// The broker's own check is left out.
    blind: bool,
    /// How many there were.
    effects: u64,
}

impl World {
    /// A broker with its first peers.
    pub fn new(setup: Setup, blind: bool) -> Self {
        let Setup { settings, lags, workers, .. } = setup;
        let mut world = Self {
            engine: Engine::new(settings.clone(), START),
            oracle: Oracle::new(lags, settings.limits.memory_bytes_max < 1 << 20, settings.retry_delay),
            settings,
            disk: Disk::default(),
            clock: START,
            now: START,
            zero_ms: 0,
            places: [None; PLACES],
            workers,
            generations: 0,
            seqs: 0,
            lags,
            blind,
            effects: 0,
        };
        world.gather();
        world
    }

    /// All are there, and some work.
    fn gather(&mut self) {
        for place in 0..PLACES {
            self.connect(place);
            self.apply(Op::Ready(place));
        }
        for place in 0..self.workers {
            self.apply(Op::Register(place, Slots::Limited(2)));
            for handle in 0..3 {
                self.apply(Op::Consume { place, handle, exclusive: false });
            }
        }
    }

    /// Something happens.
    pub fn apply(&mut self, op: Op) {
        match op {
            Op::Connect(place) => self.connect(place),
            Op::Leave { place, unread } => self.leave(place, unread),
            Op::Rejoin(place) => self.rejoin(place),
            Op::Request { place, options, no_reply, fail_fast } => self.request(place, &options, no_reply, fail_fast),
            Op::Send { place, options } => self.send(place, &options),
            Op::Broadcast { .. } => self.broadcast(&op),
            Op::Settle { ago, report, forger, fence } => self.settle(ago, report, forger, fence),
            Op::Cancel(ago) => self.cancel(ago),
            Op::RetryMessage(ago) => self.promptly(|world| world.retry_message(ago)),
            Op::CancelMessage(ago) => self.promptly(|world| world.cancel_message(ago)),
            Op::Worker(place, what) => self.promptly(|world| world.manage(place, what)),
            Op::Purge { queue, most } => self.promptly(|world| world.purge(queue, most)),
            Op::RetryDead { queue, most } => self.promptly(|world| world.retry_dead(queue, most)),
            Op::PurgeDead { queue, most } => self.promptly(|world| world.purge_dead(queue, most)),
            Op::SetQueue(queue, settings) => self.promptly(|world| world.set_queue(queue, settings)),
            Op::Look { view, at } => self.promptly(|world| world.look(view, at)),
            Op::Topic(place, what) => self.topic(place, what),
            Op::Maintain => self.promptly(Self::maintain),
            Op::GoOn => self.promptly(Self::go_on),
            Op::Drain { within_ms } => self.begin_drain(within_ms),
            Op::Pass(micros) => self.pass(self.whole(micros)),
            Op::Jump(micros) => self.clock = later(self.clock, self.whole(micros)),
            Op::Back(micros) => {
                let micros = self.clock.as_micros().saturating_sub(self.whole(micros));
                self.clock = Mono::from_micros(micros.max(self.zero_ms * 1_000));
            }
            Op::Tick => self.tick(),
            Op::Read(times) => (0..times).for_each(|_| drop(self.read())),
            Op::Store(count) => self.store(count),
            Op::Refuse => self.refuse(),
            Op::Restart { unheard } => self.restart(unheard),
            Op::Ready(place)
            | Op::HasRead(place)
            | Op::Open { place, .. }
            | Op::Register(place, _)
            | Op::Resize(place, _)
            | Op::Deregister(place)
            | Op::Consume { place, .. }
            | Op::Notify { place, .. }
            | Op::CancelQueue { place, .. }
            | Op::PeerClosing(place) => {
                if let Some(conn) = self.places[place] {
                    self.as_worker(conn, &op);
                }
            }
        }
    }

    /// The latest time the engine was told.
    pub const fn now(&self) -> Mono {
        self.now
    }

    /// How many effects there were.
    pub const fn effects(&self) -> u64 {
        self.effects
    }

    /// Stored records have milliseconds only, and so has a world with a store.
    fn whole(&self, micros: u64) -> u64 {
        if self.settings.store.is_some() { micros / 1_000 * 1_000 } else { micros }
    }
}

/// The engine.
impl World {
    /// One input, and what comes of it, judged.
    fn step(&mut self, input: Input) -> Vec<Effect> {
        self.now = self.now.max(self.clock);
        let mut effects = Vec::new();
        self.handle(input, &mut effects);
        if !self.lags {
            self.catch_up(&mut effects);
        }
        self.oracle.watch(self.now, &effects);
        effects
    }

    fn handle(&mut self, input: Input, effects: &mut Vec<Effect>) {
        let (now, from) = (self.engine_time(self.clock), effects.len());
        self.engine.handle(now, input, effects);
        if !self.blind {
            self.engine.sanity_check();
        }
        self.effects += (effects.len() - from) as u64;
        effects[from..].iter().for_each(|effect| self.disk.take(effect));
    }

    /// The disk stores all that it was told to, and what follows from that.
    fn catch_up(&mut self, effects: &mut Vec<Effect>) {
        while let Some(group) = self.disk.store(usize::MAX) {
            self.handle(Input::Persisted { group }, effects);
        }
    }

    fn engine_time(&self, at: Mono) -> Mono {
        Mono::from_micros(at.as_micros().saturating_sub(self.zero_ms * 1_000))
    }

    fn next_deadline(&self) -> Option<Mono> {
        self.engine.next_deadline().map(|at| later(at, self.zero_ms * 1_000))
    }

    /// With a disk that does not lag.
    fn promptly<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let lags = std::mem::replace(&mut self.lags, false);
        self.store(usize::MAX);
        let result = act(self);
        self.lags = lags;
        result
    }

    /// A control frame, answered as the oracle expects.
    fn control(&mut self, input: Input, expected: Result<(), Code>) {
        let shown = format!("{input:?}");
        assert_eq!(self.answer_to(input), expected, "{shown}");
    }

    fn answer_to(&mut self, input: Input) -> Result<(), Code> {
        let shown = format!("{input:?}");
        match self.step(input).first() {
            Some(Effect::Peer(PeerEffect::Answer { result, .. })) => *result,
            other => panic!("{other:?} is no answer to {shown}"),
        }
    }

    fn admin(&mut self, call: AdminCall) -> Result<AdminAnswer, Code> {
        let mut effects = self.step(Input::Admin { conn: ADMIN, seq: 0, call });
        loop {
            if let Some(answer) = admin_answer(effects) {
                return answer;
            }
            assert!(!self.disk.loads.is_empty(), "an admin is answered");
            effects = self.read();
        }
    }
}

/// The disk.
impl World {
    /// It reads one of the messages that the engine wants.
    fn read(&mut self) -> Vec<Effect> {
        self.disk.read().map_or_else(Vec::new, |input| self.step(input))
    }

    /// It stores so many groups, and says so.
    fn store(&mut self, count: usize) {
        if let Some(group) = self.disk.store(count) {
            self.step(Input::Persisted { group });
        }
    }

    fn refuse(&mut self) {
        if let Some(group) = self.disk.refuse() {
            self.oracle.refusing = true;
            self.step(Input::Refused { group, code: Code::OverDisk });
            self.oracle.refusing = false;
        }
    }

    /// Another broker takes over; without a disk there would be nothing left of this one. Its clock begins anew.
    fn restart(&mut self, unheard: usize) {
        let Some(mut store) = self.settings.store else { return };
        self.disk.store(unheard);
        self.disk.crash();
        self.now = self.now.max(self.clock);
        self.clock = self.now;
        self.zero_ms = self.now.as_millis() - START.as_millis();
        (store.unix_ms, store.last_serial) = (self.zero_ms, self.disk.last_serial());
        self.settings.store = Some(store);
        self.settings.run += 1;
        self.settings.term += 1;
        self.oracle.restart(self.now, store.run, &self.disk);
        self.places = [None; PLACES];
        self.engine = Engine::new(self.settings.clone(), START);
        self.engine.recover_dedup(self.disk.remembered.values().copied().collect());
        for (queue, settings) in &self.disk.settings {
            self.engine.recover_queue(queue.clone(), *settings);
        }
        for survivor in self.disk.kept.values() {
            self.engine.recover(survivor.clone());
        }
        self.engine.sanity_check();
        self.gather();
    }
}

fn admin_answer(effects: Vec<Effect>) -> Option<Result<AdminAnswer, Code>> {
    effects.into_iter().find_map(|effect| match effect {
        Effect::Peer(PeerEffect::Native { conn: ADMIN, effect: NativeEffect::Admin { answer, .. } }) => {
            Some(Ok(*answer))
        }
        Effect::Peer(PeerEffect::Answer { conn: ADMIN, result: Err(code), .. }) => Some(Err(code)),
        _ => None,
    })
}

fn later(at: Mono, micros: u64) -> Mono {
    Mono::from_micros(at.as_micros().saturating_add(micros))
}

fn queue_name(queue: usize) -> turno_proto::model::QueueName {
    NAMES[queue].parse().expect("a good name")
}
