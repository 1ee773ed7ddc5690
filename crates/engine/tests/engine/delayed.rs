//! Sends that are to be delivered later.

use turno_engine::{Effect, Input, Record, RecoveredMessage, Settings, StoreSettings};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::DELAY_MS_MAX;
use turno_proto::model::view::{MessageState, Reason};
use turno_proto::model::{Code, MessageId, Slots, limits};

use crate::durable::{ZERO_UNIX_MS, record, remove, stored, survivor};
use crate::harness::{Harness, START_MS, ask};
use crate::seen::{Seen, Turn, sent, undelivered};

/// A broker with a store that holds these, whose last message had the serial 40.
fn with_store(survivors: &[RecoveredMessage], ahead_ms: u64) -> Harness {
    let store = Some(StoreSettings { run: 1, unix_ms: ZERO_UNIX_MS + ahead_ms, last_serial: 40 });
    let mut harness = Harness::with(Settings { store, ..Settings::default() });
    survivors.iter().for_each(|survivor| harness.engine.recover(survivor.clone()));
    harness
}

/// Everything that the engine wants of the disk is there at once. What follows.
fn read(harness: &mut Harness, serial: u64, record: Record) -> Vec<Seen> {
    harness.say(Input::Loaded { serial, record: Some(record) })
}

fn due(serial: u64, text: &str, due_ms: u64) -> RecoveredMessage {
    let record = Record { due_unix_ms: Some(ZERO_UNIX_MS + START_MS + due_ms), ..record(text) };
    RecoveredMessage { record, ..survivor(serial, text) }
}

/// Proves S2.42: it is delivered when its time has come and no earlier, behind those that were there before; its deadline begins then.
#[test]
fn a_send_is_delivered_when_it_is_due() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let (id, seen) = harness.send(client, ask(1, "q", "later").delay(1_000).within(500));
    assert_eq!(seen, []);
    let explanation = harness.explain(id);
    assert!(matches!(explanation.because.0, Reason::Delayed { failed: 0, .. }), "{explanation:?}");
    assert_eq!((explanation.message.state, harness.status().delayed), (MessageState::Delayed, 1));
    harness.send(client, ask(2, "q", "a"));
    harness.send(client, ask(3, "q", "b"));
    assert_eq!(harness.pass(1_000), []);
    assert_eq!((harness.queue("q").delayed, harness.queue("q").ready), (0, 2));
    assert_eq!(harness.ack(worker, "a"), [sent(worker, "b")]);
    let Seen::Turn(Turn { deadline_ms, .. }) = harness.ack(worker, "b").remove(0) else { panic!("it is its turn") };
    assert_eq!(deadline_ms, Some(500));
    let (late, _) = harness.send(client, ask(4, "q", "late").delay(1_000).within(500));
    harness.pass(1_500);
    assert_eq!(harness.admin(AdminCall::MessageExplain { id: late.to_string() }).0, Err(Code::NotFound), "it expired");
}

/// A delay of more than 366 days is refused, and the longest is not.
#[test]
fn a_delay_has_a_limit() {
    let mut harness = Harness::new();
    let client = harness.client();
    for delay_ms in [DELAY_MS_MAX + 1, u64::MAX] {
        assert_eq!(
            harness.try_send(client, ask(1, "q", "a").delay(delay_ms)),
            [undelivered(client, 1, Code::BadOption)]
        );
    }
    harness.send(client, ask(2, "q", "a").delay(DELAY_MS_MAX));
    assert_eq!(harness.queue("q").delayed, 1);
}

/// Proves S2.42 and I1: a stored one is answered when it is stored, leaves the memory, and is read when it is due.
#[test]
fn a_stored_one_waits_on_disk() {
    let mut harness = with_store(&[], 0);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.try_send(client, ask(1, "q", "a").delay(1_000));
    assert_eq!(harness.say(Input::Persisted { group: 1 }), [stored(client, 1, 41)]);
    assert_eq!((harness.status().bytes, harness.queue("q").delayed), (limits::DELAYED_BYTES, 1));
    assert_eq!(harness.pass(999).len(), 0);
    assert_eq!(harness.pass(1).len(), 1, "it is wanted from the disk");
    assert_eq!(read(&mut harness, 41, record("a")), [sent(worker, "a")]);
    assert_eq!(harness.ack(worker, "a"), [remove(2, 41, false)]);
}

/// Proves S2.43: a delay goes on over a restart; a clock that was set back makes it no longer than it was.
#[test]
fn a_delay_survives_a_restart() {
    let table = [(0, 60_000, 60_000), (20_000, 60_000, 40_000)];
    for (ahead_ms, due_ms, left_ms) in table {
        let mut harness = with_store(&[due(7, "a", due_ms)], ahead_ms);
        harness.worker(1, &["q"]);
        assert_eq!((harness.queue("q").delayed, harness.pass(left_ms - 1)), (1, vec![]), "{ahead_ms}");
        assert_eq!((harness.pass(1).len(), harness.queue("q").delayed), (1, 0), "{ahead_ms}");
    }
    // It came an hour from now by this clock: its whole delay of a minute, from the start on.
    let mut late = due(7, "a", 3_660_000);
    late.record.born_unix_ms += 3_600_000;
    let mut harness = with_store(&[late], 0);
    harness.worker(1, &["q"]);
    assert_eq!(harness.pass(59_999), []);
    assert_eq!(harness.pass(1).len(), 1);
    let mut harness = with_store(&[due(7, "a", 1_000)], 3_600_000);
    let (worker, seen) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(seen, [sent(worker, "a")], "a clock that was set ahead ends it");
}

/// Proves S2.44: one that only the store holds is explained, cancelled and told to go on when it was read.
#[test]
fn one_on_disk_can_be_ended_and_told_to_go_on() {
    let all = [due(7, "a", 60_000), due(8, "b", 50_000), due(9, "c", 40_000)];
    let mut harness = with_store(&all, 0);
    let client = harness.client();
    let ask = |harness: &mut Harness, call: fn(String) -> AdminCall, serial: u64, text: &str| {
        let call = call(MessageId::durable(1, serial).to_string());
        harness.step(Input::Admin { conn: client, seq: 5, call });
        let mut effects = harness.step(Input::Loaded { serial, record: Some(record(text)) });
        effects.retain(|effect| matches!(effect, Effect::Disk(_)));
        effects.len()
    };
    assert_eq!(ask(&mut harness, |id| AdminCall::MessageExplain { id }, 7, "a"), 0);
    assert_eq!(harness.queue("q").delayed, 3);
    assert_eq!(ask(&mut harness, |id| AdminCall::MessageCancel { id }, 7, "a"), 1);
    harness.say(Input::Persisted { group: 1 });
    assert_eq!(ask(&mut harness, |id| AdminCall::MessageRetry { id }, 8, "b"), 1);
    harness.say(Input::Persisted { group: 2 });
    let queue = harness.queue("q");
    assert_eq!((queue.delayed, queue.ready), (1, 1));
    let (worker, seen) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(seen, [sent(worker, "b")]);
    assert_eq!(harness.ack(worker, "b"), [remove(3, 8, true)], "the note that its wait is over goes with it");
}

/// Proves S2.44: a purge removes them too, those on disk as well.
#[test]
fn a_purge_removes_what_waits_for_its_time() {
    let mut harness = with_store(&[due(7, "a", 60_000), due(8, "b", 50_000)], 0);
    let client = harness.client();
    let step = harness.step(Input::Admin {
        conn: client,
        seq: 5,
        call: AdminCall::QueuePurge { queue: "q".to_owned(), limit: 10 },
    });
    assert_eq!(step.iter().filter(|effect| matches!(effect, Effect::Disk(_))).count(), 2);
    harness.say(Input::Persisted { group: 1 });
    assert_eq!(harness.status().delayed, 0);
}

/// A cancel before it is stored, and many that are due at once: in portions, each a millisecond after the one before.
#[test]
fn many_are_due_at_once() {
    let mut harness = Harness::with(Settings { portion: std::num::NonZeroUsize::MIN, ..Settings::default() });
    let client = harness.client();
    for seq in 1..=5 {
        harness.send(client, ask(seq, "q", "a").delay(100));
    }
    harness.pass(100);
    let after_one = harness.queue("q").ready;
    harness.pass(10);
    assert_eq!((after_one < 5, harness.queue("q").ready), (true, 5));
    let Ok(AdminAnswer::Portion { done, .. }) =
        harness.admin(AdminCall::QueuePurge { queue: "q".to_owned(), limit: 10 }).0
    else {
        panic!("a portion")
    };
    assert_eq!(done, 5);
}
