//! A long backlog waits on disk: the store alone holds it, and nobody who waits for a turn can tell.
//!
//! Every body is one byte, which counts for 129. The window of 260 bytes holds three messages, and is filled up when one
//! is left.

use turno_engine::{
    DiskEffect, Effect, HostEffect, Input, NativeEffect, PeerEffect, Record, RecoveredMessage, Report, Settings,
    StoreSettings,
};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{Explanation, MessageState, Reason};
use turno_proto::model::{Code, ConnId, Limits, MessageId, Slots, limits};

use crate::durable::{ZERO_UNIX_MS, mark, put, record, remove, stored, survivor};
use crate::harness::{Ask, Harness, ask};
use crate::seen::{Seen, conn_of, drained, sent, turn, undelivered};

const ADMIN: ConnId = ConnId { index: u32::MAX - 1, generation: 1 };

pub(crate) fn settings() -> Settings {
    let store = Some(StoreSettings { run: 1, unix_ms: ZERO_UNIX_MS, last_serial: 0 });
    Settings { store, hot_bytes: 260, ..Settings::default() }
}

/// A harness with a client, whose first messages have these bodies, in the queue "q"; serials and groups begin with 1.
fn harness_with(texts: &[&str]) -> (Harness, ConnId) {
    let mut harness = Harness::with(settings());
    let client = harness.client();
    for (seq, text) in (1..).zip(texts) {
        send(&mut harness, client, ask(seq, "q", text));
    }
    (harness, client)
}

/// A send that is stored at once, as the group and the serial that its number says.
pub(crate) fn send(harness: &mut Harness, client: ConnId, ask: Ask) -> Vec<Seen> {
    let seq = ask.message.seq;
    assert_eq!(harness.try_send(client, ask).len(), 1, "a send goes to the disk");
    let mut seen = harness.say(Input::Persisted { group: u64::from(seq) });
    assert_eq!(seen.remove(0), stored(client, seq, u64::from(seq)));
    seen
}

pub(crate) fn load(serial: u64) -> Seen {
    Seen::Said(Effect::Disk(DiskEffect::Load { serial }))
}

pub(crate) fn loaded(harness: &mut Harness, serial: u64, text: &str) -> Vec<Seen> {
    harness.say(Input::Loaded { serial, record: Some(record(text)) })
}

fn id(serial: u64) -> MessageId {
    MessageId::durable(1, serial)
}

fn admin(call: AdminCall) -> Input {
    Input::Admin { conn: ADMIN, seq: 1, call }
}

pub(crate) fn explain(serial: u64) -> Input {
    admin(AdminCall::MessageExplain { id: id(serial).to_string() })
}

fn cancel(serial: u64) -> Input {
    admin(AdminCall::MessageCancel { id: id(serial).to_string() })
}

/// Takes the admin's answer out of what happened.
pub(crate) fn answer(seen: &mut Vec<Seen>) -> Result<Explanation, Code> {
    let is_answer = |seen: &Seen| matches!(seen, Seen::Said(effect) if conn_of(effect) == Some(ADMIN));
    let at = seen.iter().position(is_answer).expect("an admin is answered");
    match seen.remove(at) {
        Seen::Said(Effect::Peer(PeerEffect::Answer { result: Err(code), .. })) => Err(code),
        Seen::Said(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) => {
            match *answer {
                AdminAnswer::Message { explanation } => Ok(*explanation),
                other => panic!("{other:?} explains nothing"),
            }
        }
        other => panic!("{other:?} is no answer"),
    }
}

/// Proves S2.38: a clock that was set back while the broker was away prolongs no deadline of what waits on disk, however late
/// that is loaded; what came since has all of its time.
#[test]
fn a_clock_set_back_prolongs_no_deadline_on_disk() {
    let started_unix_ms = ZERO_UNIX_MS + 5_000;
    let store = Some(StoreSettings { run: 1, unix_ms: ZERO_UNIX_MS, last_serial: 5 });
    let mut harness = Harness::with(Settings { store, ..settings() });
    let within_20_s =
        |born_unix_ms, text| Record { born_unix_ms, deadline_unix_ms: Some(born_unix_ms + 20_000), ..record(text) };
    // As the clock is now, they come in two hours and in 25 s.
    let d = within_20_s(started_unix_ms + 7_200_000, "d");
    let e = within_20_s(started_unix_ms + 25_000, "e");
    let hot = [(1, "a"), (2, "b"), (3, "c")].map(|(serial, text)| survivor(serial, text));
    let cold =
        [(4, &d), (5, &e)].map(|(serial, record)| RecoveredMessage { record: record.clone(), ..survivor(serial, "") });
    hot.into_iter().chain(cold).for_each(|survivor| harness.engine.recover(survivor));
    let client = harness.client();
    assert_eq!(harness.pass(30_000), []);
    assert_eq!(harness.try_send(client, ask(1, "q", "f").within(20_000)).len(), 1);
    assert_eq!(harness.say(Input::Persisted { group: 1 }), [stored(client, 1, 6)]);
    assert_eq!(harness.pass(15_000), []);
    let (worker, got) = harness.joining(Slots::Limited(6), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4), load(5), load(6)]);
    assert_eq!(harness.say(Input::Loaded { serial: 4, record: Some(d) }), [remove(2, 4, false)]);
    assert_eq!(harness.say(Input::Loaded { serial: 5, record: Some(e) }), [remove(3, 5, false)]);
    let f = within_20_s(started_unix_ms + 30_000, "f");
    assert_eq!(harness.say(Input::Loaded { serial: 6, record: Some(f) }), [sent(worker, "f").left(Some(5_000))]);
}

/// Proves S0.28 and I5: what waits beyond the window waits on disk, is loaded before its turn and in its order, and no
/// turn has to wait for it.
#[test]
fn a_long_backlog_is_loaded_before_its_turn() {
    let mut harness = Harness::with(settings());
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(send(&mut harness, client, ask(1, "q", "a")), [sent(worker, "a")]);
    for (seq, text) in (2..).zip(["b", "c", "d", "e", "f", "g"]) {
        assert_eq!(send(&mut harness, client, ask(seq, "q", text)), []);
    }
    let (view, status) = (harness.queue("q"), harness.status());
    assert_eq!((view.ready, view.in_flight, view.bytes), (6, 1, 7 * 129));
    assert_eq!((status.ready, status.bytes), (6, 4 * 129 + 3 * 12), "in memory");
    assert_eq!(view.head.map(|head| head.len()), Some(3), "only what is at hand can be shown");
    assert_eq!(harness.ack(worker, "a"), [sent(worker, "b"), remove(8, 1, false)]);
    assert_eq!(harness.ack(worker, "b"), [sent(worker, "c"), load(5), load(6), remove(9, 2, false)]);
    assert_eq!(loaded(&mut harness, 5, "e"), []);
    assert_eq!(harness.ack(worker, "c"), [sent(worker, "d"), remove(10, 3, false)]);
    assert_eq!(loaded(&mut harness, 6, "f"), []);
    assert_eq!(harness.ack(worker, "d"), [sent(worker, "e"), load(7), remove(11, 4, false)]);
    assert_eq!(harness.ack(worker, "e"), [sent(worker, "f"), remove(12, 5, false)]);
    assert_eq!(harness.ack(worker, "f"), [remove(13, 6, false)], "the next one is on its way");
    assert_eq!(loaded(&mut harness, 7, "g"), [sent(worker, "g")], "the worker is free");
    assert_eq!(harness.ack(worker, "g"), [remove(14, 7, false)]);
    assert_eq!((harness.status().ready, harness.status().bytes, harness.queue("q").bytes), (0, 0, 0));
}

/// A worker that empties the window gets the rest as it comes, each at once.
#[test]
fn free_slots_take_what_is_loaded() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d", "e", "f", "g"]);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4), load(5), load(6)]);
    assert_eq!(loaded(&mut harness, 4, "d"), [sent(worker, "d")]);
    assert_eq!(loaded(&mut harness, 5, "e"), [sent(worker, "e"), load(7)]);
    assert_eq!(loaded(&mut harness, 6, "f"), [sent(worker, "f")]);
    assert_eq!(loaded(&mut harness, 7, "g"), [sent(worker, "g")]);
}

/// A message on its way from the disk keeps its turn: nothing of a lower priority overtakes it, nor does anything that
/// came later, though it be in memory.
#[test]
fn nothing_overtakes_what_is_loaded() {
    let mut harness = Harness::with(settings());
    let client = harness.client();
    for (seq, text) in (1..).zip(["a", "b", "c", "d"]) {
        send(&mut harness, client, ask(seq, "q", text).priority(9));
    }
    assert_eq!(harness.request(client, ask(5, "q", "r").priority(9)), []);
    assert_eq!(harness.request(client, ask(6, "q", "low")), []);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4)]);
    assert_eq!(loaded(&mut harness, 4, "d"), [sent(worker, "d"), turn(worker, "r"), turn(worker, "low")]);
}

/// Another queue's messages do not wait for the disk of this one.
#[test]
fn other_queues_go_on_meanwhile() {
    let (mut harness, client) = harness_with(&["a", "b", "c", "d"]);
    let (worker, got) = harness.joining(Slots::Limited(4), &["q", "other"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4)]);
    assert_eq!(harness.request(client, ask(9, "other", "x")), [turn(worker, "x").of("other")]);
    assert_eq!(harness.request(client, ask(10, "other", "y")), []);
    assert_eq!(harness.ack(worker, "a"), [turn(worker, "y").of("other"), remove(5, 1, false)]);
    assert_eq!(loaded(&mut harness, 4, "d"), []);
    assert_eq!(harness.ack(worker, "b"), [sent(worker, "d"), remove(6, 2, false)]);
}

/// Proves S2.34: what comes back goes before all that is on disk, also before what is on its way.
#[test]
fn another_attempt_goes_before_the_disk() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d", "e"]);
    let (worker, got) = harness.joining(Slots::Limited(3), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4), load(5)]);
    assert_eq!(harness.fail(worker, "b", "oh").len(), 1);
    assert_eq!(harness.say(Input::Persisted { group: 6 }), [sent(worker, "b").attempt(2)]);
    assert_eq!(harness.fail(worker, "a", "oh").len(), 1);
    assert_eq!(loaded(&mut harness, 4, "d"), [sent(worker, "d")], "the attempt of a is not stored yet");
    assert_eq!(harness.say(Input::Persisted { group: 7 }), []);
    assert_eq!(loaded(&mut harness, 5, "e"), []);
    assert_eq!(harness.ack(worker, "b"), [sent(worker, "a").attempt(2), remove(8, 2, true)]);
    assert_eq!(harness.ack(worker, "c"), [sent(worker, "e"), remove(9, 3, false)]);
}

/// A request keeps its place behind a cold tail, and so does a send behind it, which waits in memory for as long as the
/// request is before it and goes to disk then.
#[test]
fn requests_wait_behind_the_disk() {
    let (mut harness, client) = harness_with(&["a", "b", "c", "d"]);
    let memory = |harness: &mut Harness| harness.status().bytes;
    assert_eq!(harness.request(client, ask(9, "q", "r").within(100)), []);
    assert_eq!(harness.try_send(client, ask(5, "q", "e")).len(), 1);
    assert_eq!(harness.say(Input::Persisted { group: 5 }), [stored(client, 5, 6)]);
    assert_eq!(memory(&mut harness), 5 * 129 + 12);
    assert_eq!(harness.explain(id(6)).because.0, Reason::NoWorker);
    assert_eq!(harness.pass(100), [undelivered(client, 9, Code::TimedOut)]);
    assert_eq!(memory(&mut harness), 3 * 129 + 2 * 12, "nothing is between the send and the tail");
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4), load(6)]);
    assert_eq!(loaded(&mut harness, 4, "d"), [sent(worker, "d")]);
    assert_eq!(loaded(&mut harness, 6, "e"), [sent(worker, "e")]);
}

/// A message on disk is explained as any other, once it was read: nothing about it is guessed.
#[test]
fn a_cold_message_is_explained() {
    let (mut harness, client) = harness_with(&["a", "b", "c", "d", "e"]);
    assert_eq!(harness.request(client, ask(9, "q", "r")), []);
    let worker = harness.connect();
    assert_eq!(harness.register(worker, Slots::Limited(0)), Ok(vec![]));
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(harness.ready(worker), []);
    assert_eq!(harness.pass(700), []);
    assert_eq!(harness.say(explain(5)), [load(5)]);
    let mut seen = harness.say(Input::Loaded { serial: 5, record: Some(Record { retries: 2, ..record("e") }) });
    let Explanation { message, because } = answer(&mut seen).unwrap();
    assert_eq!(seen, []);
    assert_eq!(*because, Reason::TooCostly { cost: 1, largest: 0 });
    assert_eq!((message.id, message.queue, message.state), (id(5).to_string(), "q".to_owned(), MessageState::Ready));
    assert_eq!(
        (message.attempts, message.attempts_max, message.bytes, message.age_seconds.as_millis()),
        (0, 3, 1, 700)
    );
    let (busy, got) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(got, [sent(busy, "a")]);
    for (serial, text, ahead) in [(4, "d", 2), (5, "e", 3)] {
        assert_eq!(harness.say(explain(serial)), [load(serial)]);
        let reason = answer(&mut loaded(&mut harness, serial, text)).unwrap().because.0;
        assert_eq!(
            reason,
            Reason::AllBusy { workers: 2, used: 1, ahead, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
        );
    }
    let behind = harness.queue("q").ready;
    assert_eq!(behind, 5);
}

/// What was asked about may be anywhere when it was read, or nowhere.
#[test]
fn a_cold_message_may_move_before_it_is_explained() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d"]);
    assert_eq!(harness.say(explain(4)), [load(4)]);
    assert_eq!(harness.say(explain(4)), [load(4)]);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4)]);
    let nobody = Reason::AllBusy { workers: 1, used: 3, ahead: 0, probing: 0, dropped: 0, not_reading: 0, brokers: 0 };
    assert_eq!(answer(&mut loaded(&mut harness, 4, "d")).unwrap().because.0, nobody);
    assert_eq!(answer(&mut loaded(&mut harness, 4, "d")).unwrap().because.0, nobody);
    assert_eq!(loaded(&mut harness, 4, "d"), [sent(worker, "d")]);
    let (mut harness, _) = harness_with(&["a", "b", "c", "d"]);
    harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(loaded(&mut harness, 4, "d").len(), 1);
    assert_eq!(harness.say(explain(4)).len(), 1, "it is in memory again, and answered at once");
    assert_eq!(answer(&mut harness.say(explain(5))), Err(Code::NotFound));
}

/// So many questions wait for the disk, no more.
#[test]
fn the_limit_of_questions() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d"]);
    for _ in 0..limits::QUESTIONS_MAX {
        assert_eq!(harness.say(explain(4)), [load(4)]);
    }
    assert_eq!(answer(&mut harness.say(explain(4))), Err(Code::TooManyInFlight));
    assert!(answer(&mut loaded(&mut harness, 4, "d")).is_ok());
    assert_eq!(harness.say(explain(4)), [load(4)]);
}

/// A message on disk can be cancelled: it is told what it was, and gone.
#[test]
fn a_cold_message_can_be_cancelled() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d", "e", "f"]);
    assert_eq!(harness.say(cancel(5)), [load(5)]);
    assert_eq!(loaded(&mut harness, 5, "e"), [remove(7, 5, false)]);
    let mut seen = harness.say(Input::Persisted { group: 7 });
    assert_eq!(answer(&mut seen).unwrap().message.id, id(5).to_string());
    assert_eq!(seen, []);
    assert_eq!((harness.status().ready, harness.counters().cancelled), (5, 1));
    assert_eq!(answer(&mut harness.say(cancel(5))), Err(Code::NotFound));
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4), load(6)]);
}

/// One that is cancelled on its way to its turn is not handed out when it comes, and what waited for it goes on.
#[test]
fn a_message_can_be_cancelled_while_it_is_loaded() {
    let (mut harness, client) = harness_with(&["a", "b", "c", "d"]);
    assert_eq!(harness.request(client, ask(9, "q", "low").priority(0)), []);
    assert_eq!(harness.say(cancel(4)), [load(4)]);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4)]);
    assert_eq!(loaded(&mut harness, 4, "d"), [turn(worker, "low"), remove(5, 4, false)]);
    let mut seen = harness.say(Input::Persisted { group: 5 });
    assert_eq!(answer(&mut seen).unwrap().message.state, MessageState::Ready);
    assert_eq!(seen, []);
    assert_eq!(harness.say(Input::Loaded { serial: 4, record: None }), [], "the disk was behind");
}

/// A queue may be gone when what was loaded for it comes, and its name be another's.
#[test]
fn a_load_may_outlive_its_queue() {
    let (mut harness, client) = harness_with(&["a", "b", "c", "d"]);
    assert_eq!(harness.say(cancel(4)), [load(4)]);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got.last(), Some(&load(4)));
    for text in ["a", "b", "c"] {
        harness.ack(worker, text);
    }
    harness.leave(worker);
    harness.leave(client);
    assert_eq!(harness.status().queues, 1, "it is not forgotten while the store holds something of it");
    assert_eq!(loaded(&mut harness, 4, "d"), [remove(8, 4, false)]);
    assert!(answer(&mut harness.say(Input::Persisted { group: 8 })).is_ok());
    assert_eq!(harness.status().queues, 0);
    let other = harness.client();
    assert_eq!(harness.open(other, 0, "other"), Ok(vec![]));
    assert_eq!(loaded(&mut harness, 4, "d"), []);
}

/// Proves S2.38: nobody looks at the deadline of a message on disk until it is loaded; then it ends as any other.
#[test]
fn a_late_message_ends_when_it_is_loaded() {
    let (mut harness, client) = harness_with(&["a", "b", "c"]);
    send(&mut harness, client, ask(4, "q", "d").within(100));
    send(&mut harness, client, ask(5, "q", "e").within(300));
    assert_eq!(harness.pass(200), []);
    assert_eq!(harness.status().ready, 5);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), sent(worker, "c"), load(4), load(5)]);
    let until = |text: &str, ms| {
        let deadline_unix_ms = Some(ZERO_UNIX_MS + 5_000 + ms);
        Some(Record { deadline_unix_ms, ..record(text) })
    };
    assert_eq!(harness.say(Input::Loaded { serial: 4, record: until("d", 100) }), [remove(6, 4, false)]);
    assert_eq!((harness.status().ready, harness.counters().expired), (1, 1));
    let got = harness.say(Input::Loaded { serial: 5, record: until("e", 300) });
    assert_eq!(got, [sent(worker, "e").left(Some(100))]);
    let (mut harness, _) = harness_with(&["a", "b", "c", "d"]);
    assert_eq!(harness.pass(200), []);
    let (worker, got) = harness.joining(Slots::Limited(2), &["q"]);
    assert_eq!(got, [sent(worker, "a"), sent(worker, "b"), load(4)]);
    let late = harness.say(Input::Loaded { serial: 4, record: until("d", 100) });
    assert_eq!(late, [remove(5, 4, false)], "at once, though its turn has not come");
}

/// A message that is loaded before its turn has its deadline again.
#[test]
fn a_loaded_message_has_its_deadline() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d"]);
    let (worker, _) = harness.joining(Slots::Limited(2), &["q"]);
    let deadline_unix_ms = Some(ZERO_UNIX_MS + 5_000 + 300);
    let soon = Some(Record { deadline_unix_ms, ..record("d") });
    assert_eq!(harness.say(Input::Loaded { serial: 4, record: soon }), []);
    assert_eq!(harness.pass(300), [remove(5, 4, false)]);
    assert_eq!(harness.ack(worker, "a"), [sent(worker, "c"), remove(6, 1, false)]);
}

/// A store that does not have what it confirmed is told of, and what waited for the message goes on.
#[test]
fn a_missing_message_is_told_of() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d", "e", "f"]);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(got[3..], [load(4), load(5), load(6)]);
    let missing = |serial| Seen::Said(Effect::Host(HostEffect::Report(Report::Missing { serial })));
    assert_eq!(harness.say(Input::Loaded { serial: 4, record: None }), [missing(4)]);
    assert_eq!(loaded(&mut harness, 5, "e"), [sent(worker, "e")]);
    assert_eq!((harness.status().ready, harness.counters().deliveries), (1, 4));
    assert_eq!(harness.say(explain(6)), [load(6)]);
    assert_eq!(harness.say(Input::Loaded { serial: 6, record: None }), [missing(6)]);
    let mut seen = harness.say(Input::Loaded { serial: 6, record: None });
    assert_eq!((answer(&mut seen), seen), (Err(Code::NotFound), vec![]));
}

/// Proves S0.26: the limit of memory counts what is in memory. What is on disk counts for a few bytes.
#[test]
fn the_memory_limit_counts_what_is_in_memory() {
    let limits = Limits { memory_bytes_max: 3 * 129 + 129 + 100, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..settings() });
    let client = harness.client();
    for seq in 1..=12 {
        send(&mut harness, client, ask(seq, "q", "x"));
    }
    assert_eq!(harness.status().bytes, 3 * 129 + 9 * 12);
    assert_eq!(harness.try_send(client, ask(13, "q", "x")), [undelivered(client, 13, Code::OverMemory)]);
    assert_eq!(harness.queue("q").bytes, 12 * 129);
}

/// A drain loads nothing, and what is on disk does not end with the broker.
#[test]
fn a_drain_leaves_the_disk_alone() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d", "e"]);
    let (worker, got) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(got, [sent(worker, "a")]);
    assert_eq!(harness.say(Input::Drain { within_ms: 1_000 }).len(), 2);
    assert_eq!(harness.say(cancel(2)), [remove(6, 2, false)]);
    assert_eq!(harness.say(cancel(3)), [remove(7, 3, false)]);
    assert_eq!(harness.say(Input::Persisted { group: 7 }).len(), 2, "both are told");
    assert_eq!(harness.status().ready, 2);
    assert_eq!(harness.ack(worker, "a"), [remove(8, 1, false), drained(0, 0, 0)]);
}

/// Proves I1: what outlived the last run is at hand as far as the window reaches, and what was tried before is at hand
/// in any case; the rest stays on disk and comes in its order.
#[test]
fn survivors_stay_on_disk() {
    let mut harness = Harness::with(settings());
    let tried = |serial, text| RecoveredMessage { mark: mark(1, None), ..survivor(serial, text) };
    let survivors = [
        survivor(1, "a"),
        tried(2, "b"),
        survivor(4, "c"),
        survivor(5, "d"),
        tried(6, "e"),
        survivor(7, "f"),
        RecoveredMessage { record: Record { priority: 0, ..record("low") }, ..survivor(8, "") },
    ];
    for survivor in survivors {
        harness.engine.recover(survivor);
        harness.engine.sanity_check();
    }
    let status = harness.status();
    assert_eq!((status.ready, status.bytes), (7, 4 * 129 + 131 + 2 * 12));
    let client = harness.client();
    assert_eq!(harness.try_send(client, ask(1, "q", "g")), [put(1, 9, "g")]);
    assert_eq!(harness.say(Input::Persisted { group: 1 }), [stored(client, 1, 9)]);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    let [a, b, c, e] = ["a", "b", "c", "e"].map(|text| sent(worker, text));
    assert_eq!(got, [a, b.attempt(2), c, e.attempt(2), load(5), load(7), load(9)]);
    assert_eq!(loaded(&mut harness, 5, "d"), [sent(worker, "d")]);
    assert_eq!(loaded(&mut harness, 7, "f"), [sent(worker, "f")]);
    assert_eq!(loaded(&mut harness, 9, "g"), [sent(worker, "g"), sent(worker, "low")]);
}

/// Nothing is loaded during maintenance. What is short by then is loaded when it is over.
#[test]
fn what_is_short_is_loaded_after_maintenance() {
    let (mut harness, _) = harness_with(&["a", "b", "c", "d", "e", "f"]);
    harness.say(admin(AdminCall::Drain));
    for serial in [1, 2] {
        let seen = harness.say(cancel(serial));
        assert!(!seen.contains(&load(4)), "{seen:?}");
    }
    let seen = harness.say(admin(AdminCall::Resume));
    assert!(seen.contains(&load(4)), "{seen:?}");
}
