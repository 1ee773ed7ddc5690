//! Anything may happen in any order: random peers, messages, words and times, watched by an oracle that keeps an
//! account of its own.

mod casts;
mod disk;
mod exclusive;
mod oracle;
mod restarts;
mod upkeep;
mod world;

use std::num::NonZeroUsize;

use proptest::prelude::*;
use turno_engine::{Policy, Settings, StoreSettings};
use turno_proto::model::{Limits, limits};

use world::World;

/// Places at which one connection at a time sits.
const PLACES: usize = 6;
/// Queues, each connection's handle 0, 1 and 2.
const QUEUES: usize = 3;

/// Unanswered requests of one connection.
const IN_FLIGHT_MAX: usize = 30;

/// How long a dedup id is known.
const HOUR_MS: u64 = 3_600_000;

/// Something that somebody does. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Op {
    Connect(usize),
    Leave(usize),
    Ready(usize),
    Register(usize, u32),
    Resize(usize, u32),
    Deregister(usize),
    Consume(usize, usize),
    CancelQueue(usize, usize),
    PeerClosing(usize),
    Request {
        place: usize,
        options: Options,
        no_reply: bool,
        fail_fast: bool,
    },
    Send {
        place: usize,
        options: Options,
    },
    Broadcast {
        place: usize,
        queue: usize,
        within_ms: Option<u32>,
        no_reply: bool,
        skip_self: bool,
    },
    /// The delivery that many deliveries ago, by its receiver or by whoever sits at that place.
    Settle {
        ago: usize,
        word: Word,
        forger: Option<usize>,
    },
    /// The message that many messages ago, by its caller.
    Cancel(usize),
    /// The same by an admin.
    CancelMessage(usize),
    DrainWorker(usize),
    ResumeWorker(usize),
    StopWorker {
        place: usize,
        now: bool,
    },
    /// An admin empties a queue.
    Purge(usize),
    /// An admin puts a queue's dead letters back.
    RetryDead(usize),
    /// An admin removes a queue's dead letters.
    PurgeDead(usize),
    /// An admin makes a queue durable or volatile, or leaves that to the broker.
    SetQueue(usize, Option<bool>),
    /// An admin drains the broker for maintenance.
    Maintain,
    /// An admin lets it go on.
    GoOn,
    /// Time passes and the shell ticks as told.
    Pass(u64),
    /// Time passes and nobody ticks.
    Jump(u64),
    /// The clock steps back.
    Back(u64),
    /// The disk reads so many of the messages that the engine wants.
    Read(usize),
    /// The broker dies, and another one takes over what is on its disk.
    Restart,
}

#[derive(Clone, Debug)]
struct Options {
    queue: usize,
    cost: u16,
    priority: u8,
    retries: u8,
    within_ms: Option<u32>,
    /// Of a send.
    dedup_id: Option<u8>,
    /// Of a request.
    ends_with_caller: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Reply,
    Piece,
    Ack,
    Fail,
    FailForGood,
    Progress,
    Extend,
}

fn place() -> impl Strategy<Value = usize> {
    0..PLACES
}

/// Mostly cheap, of the usual priority, and with time enough.
fn options() -> impl Strategy<Value = Options> {
    let cost = prop_oneof![6 => Just(1), 2 => Just(2), 1 => Just(3)];
    let priority = prop_oneof![4 => Just(4), 1 => Just(0), 1 => Just(9)];
    let within = prop_oneof![2 => Just(None), 4 => (1u32..20_000).prop_map(Some), 1 => (0u32..50).prop_map(Some)];
    let dedup = prop::option::weighted(0.4, 0u8..4);
    let parts = (0..QUEUES, cost, priority, 0u8..3, within, dedup, any::<bool>());
    parts.prop_map(|(queue, cost, priority, retries, within_ms, dedup_id, ends_with_caller)| Options {
        queue,
        cost,
        priority,
        retries,
        within_ms,
        dedup_id,
        ends_with_caller,
    })
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        6 => Just(Word::Reply),
        4 => Just(Word::Ack),
        3 => Just(Word::Fail),
        1 => Just(Word::FailForGood),
        1 => Just(Word::Piece),
        1 => Just(Word::Progress),
        1 => Just(Word::Extend),
    ]
}

fn broadcast() -> impl Strategy<Value = (usize, usize, Option<u32>, bool, bool)> {
    let within = prop_oneof![2 => Just(None), 4 => (1u32..20_000).prop_map(Some), 1 => (0u32..50).prop_map(Some)];
    (place(), 0..QUEUES, within, prop::bool::weighted(0.2), any::<bool>())
}

fn op() -> impl Strategy<Value = Op> {
    let settle = (0usize..10, word(), prop::option::weighted(0.1, place()));
    let request = (place(), options(), prop::bool::weighted(0.15), prop::bool::weighted(0.1));
    prop_oneof![
        2 => place().prop_map(Op::Connect),
        2 => place().prop_map(Op::Leave),
        3 => place().prop_map(Op::Ready),
        3 => (place(), 0u32..6).prop_map(|(place, slots)| Op::Register(place, slots)),
        2 => (place(), 0u32..6).prop_map(|(place, slots)| Op::Resize(place, slots)),
        1 => place().prop_map(Op::Deregister),
        4 => (place(), 0..QUEUES).prop_map(|(place, queue)| Op::Consume(place, queue)),
        1 => (place(), 0..QUEUES).prop_map(|(place, queue)| Op::CancelQueue(place, queue)),
        1 => place().prop_map(Op::PeerClosing),
        22 => request.prop_map(|(place, options, no_reply, fail_fast)| {
            Op::Request { place, options, no_reply, fail_fast }
        }),
        16 => (place(), options()).prop_map(|(place, options)| Op::Send { place, options }),
        6 => broadcast().prop_map(|(place, queue, within_ms, no_reply, skip_self)| {
            Op::Broadcast { place, queue, within_ms, no_reply, skip_self }
        }),
        34 => settle.prop_map(|(ago, word, forger)| Op::Settle { ago, word, forger }),
        3 => (0usize..20).prop_map(Op::Cancel),
        2 => (0usize..20).prop_map(Op::CancelMessage),
        1 => place().prop_map(Op::DrainWorker),
        2 => place().prop_map(Op::ResumeWorker),
        1 => (place(), any::<bool>()).prop_map(|(place, now)| Op::StopWorker { place, now }),
        1 => (0..QUEUES).prop_map(Op::Purge),
        3 => (0..QUEUES).prop_map(Op::RetryDead),
        1 => (0..QUEUES).prop_map(Op::PurgeDead),
        1 => (0..QUEUES, any::<Option<bool>>()).prop_map(|(queue, durable)| Op::SetQueue(queue, durable)),
        1 => Just(Op::Maintain),
        3 => Just(Op::GoOn),
        8 => (0u64..3_000).prop_map(Op::Pass),
        1 => (3_000u64..40_000).prop_map(Op::Pass),
        2 => (0u64..3_000).prop_map(Op::Jump),
        1 => Just(Op::Jump(HOUR_MS)),
        1 => (0u64..3_000).prop_map(Op::Back),
        8 => (1usize..4).prop_map(Op::Read),
        1 => Just(Op::Restart),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let policy = prop_oneof![3 => Just(Policy::LeastRecentlyUsed), 1 => Just(Policy::Fill)];
    // With few rotas of their own, workers of two or three queues belong to crews.
    let own_rotas_max = prop_oneof![Just(0usize), Just(1), Just(8)];
    let lease_ms = prop::option::weighted(0.3, 500u64..5_000);
    let store = prop::option::of(Just(StoreSettings { run: 1, unix_ms: 1_000_000, last_serial: 0 }));
    // With a small window, stored messages wait on disk.
    let hot_bytes = prop_oneof![1 => Just(1u64), 2 => Just(300), 1 => Just(1_000), 1 => Just(limits::HOT_BYTES)];
    // With small portions, what a caller leaves behind ends later.
    let portion = prop_oneof![Just(NonZeroUsize::MIN), Just(limits::CHORES_MAX)];
    let all = (policy, lease_ms, own_rotas_max, store, hot_bytes, portion);
    all.prop_map(|(policy, lease_ms, own_rotas_max, store, hot_bytes, portion)| {
        let limits = Limits { in_flight_max: IN_FLIGHT_MAX as u32, ..Limits::default() };
        Settings { policy, lease_ms, limits, own_rotas_max, store, hot_bytes, portion, ..Settings::default() }
    })
}

proptest! {
    // Seeded: the same cases in every run, so that a failure is a change's and not the day's.
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x7075_6e74),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    })]

    /// Proves I1, I3, I4, I5, I6, I9, I11, I12, I13, S0.26, S0.28, S0.29, S1.30, S2.9, S2.12, S2.13, S2.14,
    /// S2.15, S2.35 and S2.37 for any order of events:
    /// each request ends exactly once, in time, and never after its caller left; nothing goes out after its deadline
    /// or to a worker without room; first deliveries keep their order; no stored send is lost, whether it waits
    /// in memory or on disk, and whether the broker dies; one dedup id is one message; a broadcast goes to everyone once, and what its end
    /// tells is what happened; and when the faults stop, everything drains.
    #[test]
    fn whatever_happens(
        settings in settings(),
        ops in prop::collection::vec(op(), 100..200),
        draining in any::<bool>(),
    ) {
        let mut world = World::new(settings);
        for op in ops {
            world.apply(op);
        }
        if draining {
            world.drain();
        } else {
            world.settle_everything();
        }
    }
}
