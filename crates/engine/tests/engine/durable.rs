//! Sends that outlive the broker: stored first, answered then, and nothing forgotten.

use bytes::Bytes;
use turno_engine::{
    AttemptMark, DiskEffect, Effect, Input, NativeEffect, PeerEffect, Persist, Record, RecoveredMessage, Settings,
    StoreSettings,
};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::{MessageState, Reason};
use turno_proto::model::{Code, ConnId, Durability, MessageId, Moment, Payload, Slots, WorkerId};

use crate::harness::{Harness, START_MS, ask};
use crate::seen::{Seen, body, sent, turn, undelivered};

/// Unix milliseconds at the engine's zero; the harness's clock begins at 5,000.
pub(crate) const ZERO_UNIX_MS: u64 = 1_700_000_000_000;

fn settings() -> Settings {
    let store = Some(StoreSettings { run: 1, unix_ms: ZERO_UNIX_MS, last_serial: 40 });
    Settings { store, ..Settings::default() }
}

fn harness() -> Harness {
    Harness::with(settings())
}

pub(crate) fn record(text: &str) -> Record {
    Record {
        queue: "q".parse().expect("a good name"),
        priority: 4,
        cost: 1,
        retries: 9,
        born_unix_ms: ZERO_UNIX_MS + 5_000,
        deadline_unix_ms: None,
        due_unix_ms: None,
        payload: body(text),
    }
}

fn persist(group: u64, op: Persist) -> Seen {
    Seen::Said(Effect::Disk(DiskEffect::Persist { group, op }))
}

pub(crate) fn put(group: u64, serial: u64, text: &str) -> Seen {
    persist(group, Persist::Put { serial, record: record(text) })
}

pub(crate) fn stored(conn: ConnId, seq: u32, serial: u64) -> Seen {
    let id = MessageId::durable(1, serial);
    Seen::Said(Effect::Peer(PeerEffect::Native {
        conn,
        effect: NativeEffect::Stored { seq, id, durability: Durability::Disk, duplicate: false },
    }))
}

pub(crate) fn remove(group: u64, serial: u64, marked: bool) -> Seen {
    persist(group, Persist::Remove { serial, marked })
}

/// An admin ends a message; what follows.
fn cancel(harness: &mut Harness, id: MessageId) -> Vec<Seen> {
    let (answer, seen) = harness.admin(AdminCall::MessageCancel { id: id.to_string() });
    assert!(answer.is_ok(), "{answer:?}");
    seen
}

/// What was written down of a message's attempts.
pub(crate) fn mark(attempts: u16, failure: Option<Bytes>) -> Option<AttemptMark> {
    Some(AttemptMark { attempts, failure, wait: None })
}

pub(crate) fn survivor(serial: u64, text: &str) -> RecoveredMessage {
    RecoveredMessage { serial, record: record(text), mark: None }
}

/// Proves S2.39 and I1: a send goes to the disk first; only when it is there is its sender answered and a worker given
/// it, and its end is written down too. Serials go on after those of the last run.
#[test]
fn a_send_is_stored_before_anyone_is_told() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.try_send(client, ask(1, "q", "a")), [put(1, 41, "a")]);
    assert_eq!(harness.try_send(client, ask(2, "q", "b")), [put(2, 42, "b")]);
    assert_eq!(harness.try_send(client, ask(3, "q", "c")), [put(3, 43, "c")]);
    assert_eq!(harness.status().ready, 0);
    assert_eq!(
        harness.say(Input::Persisted { group: 2 }),
        [stored(client, 1, 41), sent(worker, "a"), stored(client, 2, 42), sent(worker, "b")]
    );
    assert_eq!(harness.ack(worker, "a"), [remove(4, 41, false)]);
    assert_eq!(harness.say(Input::Persisted { group: 4 }), [stored(client, 3, 43), sent(worker, "c")]);
}

/// Requests stay in memory: nothing of them is written down.
#[test]
fn a_request_needs_no_disk() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "r")), [turn(worker, "r")]);
}

/// Proves S2.33, S2.34 and I2: a failed attempt is written down before the next one, which goes before what waits; the
/// last one makes a dead letter, in one group with what it said.
#[test]
fn a_failed_attempt_is_stored_before_the_next() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.try_send(client, ask(1, "q", "a").retries(1));
    harness.try_send(client, ask(2, "q", "b"));
    harness.say(Input::Persisted { group: 2 });
    let failed = harness.fail(worker, "a", "oh");
    assert_eq!(failed, [sent(worker, "b"), persist(3, Persist::Attempts { serial: 41, attempts: 1, wait: None })]);
    assert_eq!(harness.say(Input::Persisted { group: 3 }), []);
    assert_eq!(harness.ack(worker, "b"), [sent(worker, "a").attempt(2), remove(4, 42, false)]);
    let dead = Persist::Dead { serial: 41, attempts: 2, failure: Bytes::from("no") };
    assert_eq!(harness.fail(worker, "a", "no"), [persist(5, dead)]);
    let id = MessageId::durable(1, 41);
    assert_eq!(harness.explain(id).because.0, Reason::Dead { failure: "no".to_owned() });
    assert_eq!(cancel(&mut harness, id), [remove(6, 41, true)]);
}

/// Proves I2: a loss that counts is written down before the next attempt; one that took several sends writes nothing.
#[test]
fn a_loss_that_counts_is_stored() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    for (seq, text) in (1..).zip(["a", "b", "c"]) {
        harness.try_send(client, ask(seq, "q", text));
    }
    harness.say(Input::Persisted { group: 3 });
    let (next, got) = harness.joining(Slots::Limited(2), &["q"]);
    assert_eq!(got, [sent(next, "c")]);
    assert_eq!(harness.say(Input::Disconnected { conn: worker }), [sent(next, "a")]);
    assert_eq!(harness.ack(next, "c"), [sent(next, "b"), remove(4, 43, false)]);
    assert_eq!(harness.ack(next, "a"), [remove(5, 41, false)]);
    let attempts = persist(6, Persist::Attempts { serial: 42, attempts: 1, wait: None });
    assert_eq!(harness.say(Input::Disconnected { conn: next }), [attempts]);
    let (last, got) = harness.joining(Slots::Limited(2), &["q"]);
    assert_eq!(got, []);
    assert_eq!(harness.say(Input::Persisted { group: 6 }), [sent(last, "b").attempt(2)]);
}

/// A group that the disk has no room for is refused to its sender alone, and nothing of it stays.
#[test]
fn a_full_disk_refuses_the_sender() {
    let mut harness = harness();
    let client = harness.client();
    harness.try_send(client, ask(1, "q", "a"));
    harness.try_send(client, ask(2, "q", "b"));
    let refused = harness.say(Input::Refused { group: 1, code: Code::OverDisk });
    assert_eq!(refused, [undelivered(client, 1, Code::OverDisk)]);
    assert_eq!(harness.say(Input::Persisted { group: 2 }), [stored(client, 2, 42)]);
    assert_eq!((harness.status().ready, harness.counters().refused), (1, 1));
}

/// Proves I2: a failure that the disk has no room for is written down as soon as it can be; there is no other attempt
/// before that. Cancelled meanwhile, the message is over.
#[test]
fn a_failed_attempt_waits_for_room_on_the_disk() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    harness.try_send(client, ask(1, "q", "a"));
    harness.try_send(client, ask(2, "q", "b"));
    harness.say(Input::Persisted { group: 2 });
    harness.fail(worker, "a", "oh");
    harness.fail(worker, "b", "oh");
    let attempts = |group, serial| persist(group, Persist::Attempts { serial, attempts: 1, wait: None });
    for group in [3, 4] {
        assert_eq!(harness.say(Input::Refused { group, code: Code::OverDisk }), []);
    }
    assert_eq!(harness.pass(1_000), [attempts(5, 41), attempts(5, 42)]);
    assert_eq!(harness.say(Input::Refused { group: 5, code: Code::OverDisk }), []);
    assert_eq!(cancel(&mut harness, MessageId::durable(1, 42)), []);
    assert_eq!(harness.pass(1_000), [attempts(6, 41), remove(6, 42, true)]);
    assert_eq!(harness.say(Input::Persisted { group: 6 }), [sent(worker, "a").attempt(2)]);
    assert_eq!(harness.pass(5_000), []);
}

/// Proves I2: a death that the disk has no room for is written down as soon as it can be, unless the letter is gone by
/// then.
#[test]
fn a_death_waits_for_room_on_the_disk() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(3, &["q"]), harness.client());
    for (seq, text) in (1..).zip(["a", "b"]) {
        harness.try_send(client, ask(seq, "q", text).retries(0));
    }
    harness.say(Input::Persisted { group: 2 });
    let dead = |group, serial| persist(group, Persist::Dead { serial, attempts: 1, failure: Bytes::from("no") });
    assert_eq!(harness.fail(worker, "a", "no"), [dead(3, 41)]);
    assert_eq!(harness.fail(worker, "b", "no"), [dead(4, 42)]);
    for group in [3, 4] {
        assert_eq!(harness.say(Input::Refused { group, code: Code::OverDisk }), []);
    }
    assert_eq!(cancel(&mut harness, MessageId::durable(1, 41)), [remove(5, 41, true)]);
    assert_eq!(harness.pass(1_000), [dead(6, 42)]);
    assert_eq!(harness.say(Input::Persisted { group: 6 }), []);
    assert_eq!(harness.pass(5_000), []);
}

/// Proves I2: a death that the disk refused is written down, too, if somebody wants the letter back meanwhile and the disk refuses
/// that as well.
#[test]
fn a_death_waits_for_room_while_somebody_wants_it_back() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(3, &["q"]), harness.client());
    harness.try_send(client, ask(1, "q", "a").retries(0));
    harness.say(Input::Persisted { group: 1 });
    let dead = |group| persist(group, Persist::Dead { serial: 41, attempts: 1, failure: Bytes::from("no") });
    let refused = |group| Input::Refused { group, code: Code::OverDisk };
    assert_eq!(harness.fail(worker, "a", "no"), [dead(2)]);
    assert_eq!(harness.say(refused(2)), []);
    let admin = ConnId { index: 77, generation: 1 };
    let call = AdminCall::DeadRetry { queue: "q".to_owned(), ids: Vec::new(), oldest: 1 };
    let asked = harness.say(Input::Admin { conn: admin, seq: 1, call });
    assert_eq!(asked, [persist(3, Persist::Retry { serial: 41 })]);
    assert_eq!(harness.pass(1_000), [], "it is neither dead nor alive");
    harness.say(refused(3));
    assert_eq!(harness.pass(1_000), [dead(4)]);
    assert_eq!(harness.say(Input::Persisted { group: 4 }), []);
    assert_eq!(harness.pass(5_000), []);
}

/// Proves I1: a disk may be so full that it does not even take ends; they are written down as soon as it does, once a
/// second and no faster.
#[test]
fn an_end_waits_for_room_on_the_disk() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    harness.try_send(client, ask(1, "q", "a"));
    harness.try_send(client, ask(2, "q", "b"));
    harness.say(Input::Persisted { group: 2 });
    assert_eq!(harness.ack(worker, "a"), [remove(3, 41, false)]);
    assert_eq!(harness.ack(worker, "b"), [remove(4, 42, false)]);
    for group in [3, 4] {
        assert_eq!(harness.say(Input::Refused { group, code: Code::OverDisk }), []);
    }
    assert_eq!(harness.pass(1_000), [remove(5, 41, false), remove(5, 42, false)]);
    assert_eq!(harness.say(Input::Refused { group: 5, code: Code::OverDisk }), []);
    assert_eq!(harness.pass(1_000), [remove(6, 41, false), remove(6, 42, false)]);
    assert_eq!(harness.say(Input::Persisted { group: 6 }), []);
    assert_eq!(harness.pass(5_000), []);
}

/// What is cancelled on its way to the disk is stored, answered, and gone.
#[test]
fn a_message_can_be_cancelled_on_its_way_to_the_disk() {
    let mut harness = harness();
    let client = harness.client();
    harness.try_send(client, ask(1, "q", "a"));
    let id = MessageId::durable(1, 41);
    let explanation = harness.explain(id);
    assert_eq!((explanation.message.state, explanation.because.0), (MessageState::Storing, Reason::Storing));
    assert_eq!(cancel(&mut harness, id), []);
    assert_eq!(harness.say(Input::Persisted { group: 1 }), [stored(client, 1, 41), remove(2, 41, false)]);
    assert_eq!(harness.status().ready, 0);
}

/// What is cancelled while a worker has it is over on disk at once: no restart brings it back while the worker stops.
#[test]
fn a_running_message_is_removed_when_it_is_cancelled() {
    let mut harness = harness();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.try_send(client, ask(1, "q", "a"));
    harness.say(Input::Persisted { group: 1 });
    let stopped = harness.stopped(worker, "a", Code::Cancelled);
    assert_eq!(cancel(&mut harness, MessageId::durable(1, 41)), [stopped, remove(2, 41, false)]);
    assert_eq!(harness.explain(MessageId::durable(1, 41)).because.0, Reason::Stopping { worker: WorkerId(1) });
    assert_eq!(harness.ack(worker, "a"), []);
}

/// Proves S2.38: time passes on the way to the disk too; what is late when it arrives goes to nobody.
#[test]
fn a_deadline_can_pass_on_the_way_to_the_disk() {
    let mut harness = harness();
    let (_, client) = (harness.worker(1, &["q"]), harness.client());
    harness.try_send(client, ask(1, "q", "a").within(100));
    harness.pass(200);
    assert_eq!(harness.say(Input::Persisted { group: 1 }), [stored(client, 1, 41), remove(2, 41, false)]);
    assert_eq!(harness.counters().expired, 1);
}

/// A drain waits for the disk, and what is on it does not end with the broker.
#[test]
fn a_drain_waits_for_the_disk() {
    let mut harness = harness();
    let client = harness.client();
    harness.try_send(client, ask(1, "q", "a"));
    let told = harness.say(Input::Drain { within_ms: 1_000 });
    assert!(!told.contains(&crate::seen::drained(0, 0, 0)), "{told:?}");
    let ended = harness.say(Input::Persisted { group: 1 });
    assert_eq!(ended, [stored(client, 1, 41), crate::seen::drained(0, 0, 0)]);
}

/// Proves I1 and I2: what outlived the last run is handed out in its order, with its attempts and its deadline; dead
/// letters are still there; new messages come after them, under higher numbers.
#[test]
fn survivors_take_their_places() {
    let mut harness = harness();
    harness.engine.recover(survivor(7, "first"));
    harness.engine.recover(RecoveredMessage { mark: mark(3, None), ..survivor(9, "tried") });
    let late = Record { deadline_unix_ms: Some(ZERO_UNIX_MS + 4_000), ..record("late") };
    harness.engine.recover(RecoveredMessage { record: late, ..survivor(11, "late") });
    let dead = RecoveredMessage { mark: mark(10, Some(Bytes::from("never"))), ..survivor(12, "dead") };
    harness.engine.recover(dead);
    let with_headers = Payload { headers: true, ..body("\0\0urgent") };
    let urgent = Record { priority: 9, payload: with_headers.clone(), ..record("") };
    harness.engine.recover(RecoveredMessage { record: urgent, ..survivor(13, "") });
    harness.engine.sanity_check();
    assert_eq!((harness.status().ready, harness.status().dead), (4, 1));
    let client = harness.client();
    assert_eq!(harness.try_send(client, ask(1, "q", "new")), [put(1, 41, "new")]);
    harness.say(Input::Persisted { group: 1 });
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    let Seen::Turn(mut urgent) = sent(worker, "") else { unreachable!("a turn") };
    urgent.payload = with_headers;
    assert_eq!(
        got,
        [
            Seen::Turn(urgent),
            sent(worker, "first"),
            sent(worker, "tried").attempt(4),
            sent(worker, "new"),
            remove(2, 11, false),
        ]
    );
    assert_eq!(harness.explain(MessageId::durable(1, 12)).because.0, Reason::Dead { failure: "never".to_owned() });
    assert_eq!(harness.ack(worker, "tried"), [remove(3, 9, true)]);
}

/// Proves I1: a clock that was set back while the broker was away makes no deadline later than it was long, and no age
/// negative.
#[test]
fn a_clock_set_back_prolongs_no_deadline() {
    const MONTH_MS: u64 = 30 * 24 * 3_600_000;
    let mut harness = harness();
    let born_unix_ms = ZERO_UNIX_MS + MONTH_MS;
    let record = Record { born_unix_ms, deadline_unix_ms: Some(born_unix_ms + 20_000), ..record("late") };
    harness.engine.recover(RecoveredMessage { record, ..survivor(7, "late") });
    harness.engine.sanity_check();
    let view = harness.explain(MessageId::durable(1, 7)).message;
    let now_ms = ZERO_UNIX_MS + START_MS;
    assert_eq!((view.age_seconds.as_millis(), view.deadline_at), (0, Some(Moment::from_unix_ms(now_ms + 20_000))));
    assert_eq!(harness.pass(19_999), []);
    assert_eq!(harness.pass(1), [remove(1, 7, false)]);
}
