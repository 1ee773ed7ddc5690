//! Sends with a dedup id: the same id of the same queue is one message, with one answer for all its senders.

use turno_engine::{
    DedupRecord, DiskEffect, Effect, Engine, Input, NativeEffect, PeerEffect, Persist, Settings, StoreSettings,
};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, ConnId, DedupKey, Durability, Limits, MessageId, Mono, limits};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, sent, undelivered};

const HOUR_MS: u64 = 3_600_000;
/// Unix milliseconds at the engine's zero; the harness's clock begins at 5,000.
const ZERO_UNIX_MS: u64 = 1_700_000_000_000;

fn durable() -> Settings {
    Settings { store: Some(StoreSettings { run: 1, unix_ms: ZERO_UNIX_MS, last_serial: 40 }), ..Settings::default() }
}

fn on_disk(serial: u64) -> (MessageId, Durability) {
    (MessageId::durable(1, serial), Durability::Disk)
}

fn stored(conn: ConnId, seq: u32, (id, durability): (MessageId, Durability)) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Native {
        conn,
        effect: NativeEffect::Stored { seq, id, durability, duplicate: false },
    }))
}

fn again(conn: ConnId, seq: u32, (id, durability): (MessageId, Durability)) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Native {
        conn,
        effect: NativeEffect::Stored { seq, id, durability, duplicate: true },
    }))
}

/// What is to be stored, without the messages themselves.
fn notes(seen: &[Seen]) -> Vec<(u64, Persist)> {
    let notes = seen.iter().filter_map(|seen| match seen {
        Seen::Said(Effect::Disk(DiskEffect::Persist { group, op })) if !matches!(op, Persist::Put { .. }) => {
            Some((*group, op.clone()))
        }
        _ => None,
    });
    notes.collect()
}

/// The key under which a send's dedup id is stored.
fn key(seen: &[Seen]) -> DedupKey {
    let found = notes(seen).into_iter().find_map(|(_, op)| match op {
        Persist::Remember(remembered) => Some(remembered.key),
        _ => None,
    });
    found.expect("a dedup id is stored")
}

fn forget(group: u64, key: DedupKey) -> (u64, Persist) {
    (group, Persist::Forget { key })
}

/// Proves I6: the same id again, from any sender and with any body, gets the answer of the first and adds nothing.
/// Another queue, another id and no id are other messages.
#[test]
fn the_same_id_is_one_message() {
    let mut harness = Harness::new();
    let (client, other) = (harness.client(), harness.client());
    let (id, seen) = harness.send(client, ask(1, "q", "a").dedup("x"));
    let first = (id, Durability::Memory);
    assert_eq!(seen, []);
    assert_eq!(harness.try_send(client, ask(2, "q", "a").dedup("x")), [again(client, 2, first)]);
    assert_eq!(harness.try_send(other, ask(1, "q", "other words").dedup("x").priority(9)), [again(other, 1, first)]);
    assert_eq!((harness.status().ready, harness.counters().sends, harness.counters().refused), (1, 1, 0));
    for (seq, ask) in [(3, ask(3, "r", "a").dedup("x")), (4, ask(4, "q", "a").dedup("y")), (5, ask(5, "q", "a"))] {
        let (id, _) = harness.send(client, ask);
        assert_ne!(id, first.0, "{seq}");
    }
    // Name and id are parted: neither can take a piece of the other.
    harness.send(client, ask(6, "qx", "a").dedup("y"));
    harness.send(client, ask(7, "q", "a").dedup("xy"));
    assert_eq!(harness.status().ready, 6);
}

/// Proves I6: it does not matter what became of the message; within the window it is not added again, and after it is.
#[test]
fn a_message_that_is_over_is_still_known() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let (acked, seen) = harness.send(client, ask(1, "q", "a").dedup("acked"));
    assert_eq!(seen, [sent(worker, "a")]);
    harness.ack(worker, "a");
    let (expired, _) = harness.send(client, ask(2, "r", "b").dedup("expired").within(10));
    let (cancelled, _) = harness.send(client, ask(3, "r", "c").dedup("cancelled"));
    let (answer, _) = harness.admin(AdminCall::MessageCancel { id: cancelled.to_string() });
    assert!(answer.is_ok());
    harness.pass(HOUR_MS - 1);
    assert_eq!(harness.status().ready, 0);
    for (seq, queue, name, id) in
        [(4, "q", "acked", acked), (5, "r", "expired", expired), (6, "r", "cancelled", cancelled)]
    {
        let seen = harness.try_send(client, ask(seq, queue, "late").dedup(name));
        assert_eq!(seen, [again(client, seq, (id, Durability::Memory))], "{name}");
    }
    harness.pass(1);
    let (id, seen) = harness.send(client, ask(7, "q", "new").dedup("acked"));
    assert_eq!(seen, [sent(worker, "new")]);
    assert_ne!(id, acked);
}

/// The window begins with the first: sending again does not make it longer, and the clock decides, not the tick.
#[test]
fn the_window_is_not_moved_by_sending_again() {
    let mut harness = Harness::new();
    let client = harness.client();
    let (first, _) = harness.send(client, ask(1, "q", "a").dedup("x"));
    harness.clock(harness.now().plus_millis(HOUR_MS - 1));
    assert_eq!(harness.try_send(client, ask(2, "q", "a").dedup("x")), [again(client, 2, (first, Durability::Memory))]);
    harness.clock(harness.now().plus_millis(1));
    let (second, _) = harness.send(client, ask(3, "q", "a").dedup("x"));
    assert_ne!(first, second);
    assert_eq!(harness.try_send(client, ask(4, "q", "a").dedup("x")), [again(client, 4, (second, Durability::Memory))]);
}

/// What was refused is not known: it may be sent again, and is added then.
#[test]
fn a_refused_send_is_not_known() {
    let limits = Limits { memory_bytes_max: 300, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..Settings::default() });
    let (worker, client) = (harness.worker(1, &["r"]), harness.client());
    let (first, _) = harness.send(client, ask(1, "r", "a").dedup("x"));
    let refused = harness.try_send(client, ask(2, "q", "b").dedup("y"));
    assert_eq!(refused, [undelivered(client, 2, Code::OverMemory)]);
    let full = harness.try_send(client, ask(3, "r", "a").dedup("x"));
    assert_eq!(full, [again(client, 3, (first, Durability::Memory))], "a full broker still knows what it has");
    harness.ack(worker, "a");
    harness.send(client, ask(4, "q", "b").dedup("y"));
}

/// A broker that drains takes nothing new, and says of what it has that it has it: the sender need not go elsewhere.
#[test]
fn a_broker_that_drains_knows_what_it_has() {
    let mut harness = Harness::new();
    let (_, client) = (harness.worker(1, &["q"]), harness.client());
    let (first, _) = harness.send(client, ask(1, "q", "a").dedup("x"));
    harness.say(Input::Drain { within_ms: 10_000 });
    assert_eq!(harness.try_send(client, ask(2, "q", "a").dedup("x")), [again(client, 2, (first, Durability::Memory))]);
    assert_eq!(harness.try_send(client, ask(3, "q", "b").dedup("y")), [undelivered(client, 3, Code::Closing)]);
}

/// Proves I6: the id is stored in the group of its message, and nobody hears of a duplicate before both are there.
#[test]
fn a_duplicate_waits_for_the_disk_with_the_first() {
    let mut harness = Harness::with(durable());
    let (worker, client, other) = (harness.worker(1, &["q"]), harness.client(), harness.client());
    let seen = harness.try_send(client, ask(1, "q", "a").dedup("x"));
    let key = key(&seen);
    let remembered = DedupRecord { key, serial: 41, born_unix_ms: ZERO_UNIX_MS + 5_000 };
    assert!(matches!(
        &seen[0],
        Seen::Said(Effect::Disk(DiskEffect::Persist { group: 1, op: Persist::Put { serial: 41, .. } }))
    ));
    assert_eq!((seen.len(), notes(&seen)), (2, vec![(1, Persist::Remember(remembered))]));
    assert_eq!(harness.try_send(other, ask(7, "q", "a").dedup("x")), []);
    assert_eq!(harness.try_send(client, ask(2, "q", "a").dedup("x")), []);
    assert_eq!(
        harness.say(Input::Persisted { group: 1 }),
        [
            stored(client, 1, on_disk(41)),
            again(other, 7, on_disk(41)),
            again(client, 2, on_disk(41)),
            sent(worker, "a")
        ]
    );
    assert_eq!(harness.try_send(other, ask(8, "q", "a").dedup("x")), [again(other, 8, on_disk(41))]);
    let seen = harness.ack(worker, "a");
    assert_eq!(notes(&seen), [(2, Persist::Remove { serial: 41, marked: false })], "the id outlives its message");
    assert_eq!(harness.try_send(other, ask(9, "q", "a").dedup("x")), [again(other, 9, on_disk(41))]);
}

/// A disk that refuses the first refuses those who sent it again, and the id may come with another.
#[test]
fn a_duplicate_is_refused_with_the_first() {
    let mut harness = Harness::with(durable());
    let (client, other) = (harness.client(), harness.client());
    harness.try_send(client, ask(1, "q", "a").dedup("x"));
    harness.try_send(other, ask(7, "q", "a").dedup("x"));
    let refused = harness.say(Input::Refused { group: 1, code: Code::OverDisk });
    assert_eq!(refused, [undelivered(client, 1, Code::OverDisk), undelivered(other, 7, Code::OverDisk)]);
    assert_eq!(harness.counters().refused, 2);
    harness.try_send(other, ask(8, "q", "a").dedup("x"));
    assert_eq!(harness.say(Input::Persisted { group: 2 }), [stored(other, 8, on_disk(42))]);
}

/// A message that is cancelled on its way to the disk has its answers too, stored or not.
#[test]
fn a_duplicate_of_a_cancelled_message_is_answered() {
    let mut harness = Harness::with(durable());
    let client = harness.client();
    for (group, serial) in [(1, 41), (2, 42)] {
        harness.try_send(client, ask(1, "q", "a").dedup(&serial.to_string()));
        harness.try_send(client, ask(2, "q", "a").dedup(&serial.to_string()));
        let (answer, _) = harness.admin(AdminCall::MessageCancel { id: on_disk(serial).0.to_string() });
        assert!(answer.is_ok());
        if group == 1 {
            let seen = harness.say(Input::Persisted { group });
            assert_eq!(seen[..2], [stored(client, 1, on_disk(41)), again(client, 2, on_disk(41))]);
        }
    }
    // The removal of the first was the second group.
    let refused = harness.say(Input::Refused { group: 3, code: Code::OverDisk });
    assert_eq!(refused, [undelivered(client, 1, Code::OverDisk), undelivered(client, 2, Code::OverDisk)]);
    assert_eq!(harness.status().ready, 0);
}

/// Nobody can fill the broker by sending one message again and again while the disk is slow.
#[test]
fn those_who_wait_for_anothers_message_are_limited() {
    let limits = Limits { in_flight_max: 2, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..durable() });
    let client = harness.client();
    for seq in 1..=3 {
        harness.try_send(client, ask(seq, "q", "a").dedup("x"));
    }
    let refused = harness.try_send(client, ask(4, "q", "a").dedup("x"));
    assert_eq!(refused, [undelivered(client, 4, Code::TooManyInFlight)]);
    assert_eq!(harness.say(Input::Persisted { group: 1 }).len(), 3);
}

/// The oldest id is forgotten when there are too many, in memory and on disk, in one group with what took its place.
#[test]
fn the_oldest_is_forgotten_when_there_are_too_many() {
    let limits = Limits { dedup_ids_max: 2, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..durable() });
    let client = harness.client();
    let oldest = key(&harness.try_send(client, ask(1, "q", "a").dedup("a")));
    harness.try_send(client, ask(2, "q", "b").dedup("b"));
    let seen = harness.try_send(client, ask(3, "q", "c").dedup("c"));
    let remember = DedupRecord { key: key(&seen), serial: 43, born_unix_ms: ZERO_UNIX_MS + 5_000 };
    assert_eq!(notes(&seen), [(3, Persist::Remember(remember)), forget(3, oldest)]);
    harness.say(Input::Persisted { group: 3 });
    assert_eq!(harness.try_send(client, ask(4, "q", "b").dedup("b")), [again(client, 4, on_disk(42))]);
    assert_eq!(key(&harness.try_send(client, ask(5, "q", "a").dedup("a"))), oldest, "a new message under its old key");
    harness.say(Input::Persisted { group: 4 });
    assert_eq!(harness.status().ready, 4);
}

/// Old ids are forgotten on disk too, a thousand at a time, and no sooner than their time is over.
#[test]
fn old_ids_are_forgotten_little_by_little() {
    let mut harness = Harness::with(durable());
    // Without a store of messages this would be slow: the ids come from the last run.
    let of = |n: u16| DedupRecord {
        key: DedupKey([[0; 14].as_slice(), &n.to_be_bytes()].concat().try_into().expect("sixteen bytes")),
        serial: u64::from(n) + 1,
        born_unix_ms: ZERO_UNIX_MS,
    };
    harness.engine.recover_dedup((0..2_500).rev().map(of).collect());
    let forgotten = |harness: &mut Harness, millis| {
        let seen = harness.pass(millis);
        let keys = seen.iter().map(|seen| match seen {
            Seen::Said(Effect::Disk(DiskEffect::Persist { op: Persist::Forget { key }, .. })) => *key,
            other => panic!("{other:?}"),
        });
        keys.collect::<Vec<DedupKey>>()
    };
    assert_eq!(forgotten(&mut harness, HOUR_MS - 5_001), []);
    let keys: Vec<DedupKey> = (0..2_500).map(|n| of(n).key).collect();
    assert_eq!(forgotten(&mut harness, 1), keys[..1_000]);
    assert_eq!(forgotten(&mut harness, 99), []);
    assert_eq!(forgotten(&mut harness, 1), keys[1_000..2_000]);
    assert_eq!(forgotten(&mut harness, HOUR_MS), keys[2_000..]);
    assert_eq!(harness.engine.next_deadline(), None);
}

/// Proves I6 across a restart: what the disk held is known to the next run, for what is left of its hour; its message
/// keeps its id, and new ones get higher serials.
#[test]
fn ids_outlive_the_broker() {
    let mut first = Harness::with(durable());
    let client = first.client();
    let mut disk: Vec<DedupRecord> = Vec::new();
    for (seq, name) in [(1, "early"), (2, "late")] {
        let seen = first.try_send(client, ask(seq, "q", name).dedup(name));
        disk.extend(notes(&seen).iter().filter_map(|(_, op)| match op {
            Persist::Remember(remembered) => Some(*remembered),
            _ => None,
        }));
        first.pass(HOUR_MS / 2);
    }
    disk.reverse();
    // The next run begins an hour after the first: its clock is at 5,000 again. The early one is just over.
    let store = StoreSettings { run: 1, unix_ms: ZERO_UNIX_MS + HOUR_MS, last_serial: 0 };
    let mut second = Harness::with(Settings { store: Some(store), ..Settings::default() });
    second.engine.recover_dedup(disk.clone());
    let client = second.client();
    assert_eq!(second.try_send(client, ask(1, "q", "late").dedup("late")), [again(client, 1, on_disk(42))]);
    let seen = second.try_send(client, ask(2, "q", "early").dedup("early"));
    assert_eq!(notes(&seen).len(), 1, "written over, not forgotten: {seen:?}");
    assert_eq!(second.say(Input::Persisted { group: 1 }), [stored(client, 2, on_disk(43))]);
    let seen = second.pass(HOUR_MS / 2);
    assert_eq!(notes(&seen), [forget(2, disk[0].key)], "the hour is the message's, not the run's");
}

/// Ids of the last run that are too many, too old, or from the future by the clock on the wall.
#[test]
fn odd_ids_of_the_last_run_are_borne() {
    let limits = Limits { dedup_ids_max: 2, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..durable() });
    let of = |n: u8, born_unix_ms| DedupRecord { key: DedupKey([n; 16]), serial: n.into(), born_unix_ms };
    let born = [(1, 0), (2, ZERO_UNIX_MS - 2 * HOUR_MS), (3, ZERO_UNIX_MS + 4_000), (4, u64::MAX), (0, ZERO_UNIX_MS)];
    harness.engine.recover_dedup(born.map(|(n, born)| of(n, born)).to_vec());
    harness.engine.sanity_check();
    assert_eq!(notes(&harness.tick()), [1, 2].map(|n| forget(1, DedupKey([n; 16]))));
    let seen = harness.pass(HOUR_MS);
    assert_eq!(notes(&seen), [forget(2, DedupKey([3; 16])), forget(3, DedupKey([4; 16]))]);
}

/// The key on the disk is the same in every run, and in every version to come.
#[test]
fn a_key_is_for_ever() {
    let mut harness = Harness::with(durable());
    let client = harness.client();
    let seen = harness.try_send(client, ask(1, "emails", "a").dedup("order-4711"));
    // BLAKE2s-128 of 06, "emails", "order-4711", by another program.
    assert_eq!(u128::from_be_bytes(key(&seen).0), KEY);
}

const KEY: u128 = 0xDFB1_6F3D_FBF1_CE90_BCED_4085_D7AF_4030;

/// A million ids are kept, found and forgotten; it is one engine's work of a moment.
#[test]
fn a_million_ids_are_known() {
    let count = Limits::default().dedup_ids_max as u64;
    let mut engine = Engine::new(durable(), Mono::ZERO);
    let of = |n: u64| DedupRecord {
        key: DedupKey(u128::from(n).to_le_bytes()),
        serial: n + 1,
        born_unix_ms: ZERO_UNIX_MS + n / 1_000,
    };
    engine.recover_dedup((0..=count).map(of).collect());
    engine.sanity_check();
    let mut out: Vec<Effect> = Vec::new();
    engine.handle(Mono::ZERO, Input::Tick, &mut out);
    assert_eq!(out, [], "nobody knows whose those of the last run are: all of them are kept");
    engine.handle(Mono::from_millis(HOUR_MS + count / 1_000), Input::Tick, &mut out);
    engine.sanity_check();
    assert_eq!(out.len(), limits::DEDUP_SWEEP_MAX, "forgotten little by little");
}

/// Proves I6: ids are bounded per queue: no number of sends elsewhere makes the broker forget one. An id that is forgotten
/// early because its own queue has too many is counted.
#[test]
fn other_queues_never_make_an_id_forgotten() {
    let limits = Limits { dedup_ids_max: 2, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..Settings::default() });
    let client = harness.client();
    let (first, _) = harness.send(client, ask(1, "q", "a").dedup("a"));
    for seq in 2..50 {
        harness.send(client, ask(seq, "other", "x").dedup(&seq.to_string()));
    }
    let known = (first, Durability::Memory);
    assert_eq!(harness.try_send(client, ask(50, "q", "a").dedup("a")), [again(client, 50, known)]);
    assert_eq!((harness.queue("q").counters.dedup_forgotten, harness.queue("other").counters.dedup_forgotten), (0, 46));
    for (seq, id) in [(51, "b"), (52, "c")] {
        harness.send(client, ask(seq, "q", id).dedup(id));
    }
    assert_ne!(harness.send(client, ask(53, "q", "a").dedup("a")).0, first, "two later ones of its own queue");
    assert_eq!(harness.queue("q").counters.dedup_forgotten, 2);
}
