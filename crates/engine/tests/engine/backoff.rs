//! Waits before the next attempt of a failed send.

use turno_engine::{
    Again, AttemptMark, Effect, Input, Persist, RecoveredMessage, RetryDelay, Settings, StoreSettings, Wait,
    WorkerMessage,
};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::RETRY_DELAY_MS_MAX;
use turno_proto::model::view::{MessageState, QueueSettings, Reason};
use turno_proto::model::{Code, ConnId, MessageId, Seconds};

use crate::durable::{ZERO_UNIX_MS, survivor};
use crate::harness::{Harness, START_MS, ask};
use crate::seen::{Seen, body, sent, turn};

/// Too short for a quarter of it to be a millisecond: such a wait is always whole.
const SHORT: RetryDelay = RetryDelay { first_ms: 3, most_ms: 3 };

fn harness(retry_delay: RetryDelay) -> Harness {
    Harness::with_waits(Settings { retry_delay, ..Settings::default() })
}

/// A broker with a store, whose clock shows `ahead_ms` more than at its last start.
fn restarted(survivors: &[RecoveredMessage], ahead_ms: u64) -> Harness {
    let store = Some(StoreSettings { run: 1, unix_ms: ZERO_UNIX_MS + ahead_ms, last_serial: 50 });
    let mut harness = Harness::with_waits(Settings { store, ..Settings::default() });
    survivors.iter().for_each(|survivor| harness.engine.recover(survivor.clone()));
    harness
}

fn fail(harness: &mut Harness, worker: ConnId, text: &str, again: Again) -> Vec<Seen> {
    let delivery = harness.held(worker, text);
    harness.say(Input::worker(worker, delivery, WorkerMessage::Fail { again, payload: body("no") }))
}

fn retry(harness: &mut Harness, id: MessageId) -> (Result<AdminAnswer, Code>, Vec<Seen>) {
    harness.admin(AdminCall::MessageRetry { id: id.to_string() })
}

fn waits(first: Option<u64>, most: Option<u64>) -> Option<QueueSettings> {
    let [retry_delay_seconds, retry_delay_max_seconds] = [first, most].map(|ms| ms.map(Seconds::from_millis));
    Some(QueueSettings { retry_delay_seconds, retry_delay_max_seconds, ..QueueSettings::default() })
}

/// Proves S2.40: each wait is twice the one before, less up to a quarter; nothing is delivered before its end, and it is then.
#[test]
fn a_failed_send_waits_longer_each_time() {
    let mut harness = harness(RetryDelay::default());
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.send(client, ask(1, "q", "a").retries(3));
    for (attempt, whole_ms) in [(2, 1_000), (3, 2_000), (4, 4_000)] {
        assert_eq!(harness.fail(worker, "a", "no"), []);
        let queue = harness.queue("q");
        assert_eq!((queue.ready, queue.delayed, queue.in_flight), (0, 1, 0));
        assert_eq!(harness.pass(whole_ms * 3 / 4 - 1), [], "attempt {attempt}");
        assert_eq!(harness.pass(whole_ms / 4 + 2), [sent(worker, "a").attempt(attempt)]);
    }
    harness.fail(worker, "a", "no");
    assert_eq!((harness.queue("q").delayed, harness.queue("q").dead), (0, 1));
}

/// Proves S2.40: others are delivered meanwhile, and the one that waited goes before them when its time has come. A request does
/// not wait.
#[test]
fn a_wait_holds_up_nobody_else() {
    let mut harness = harness(SHORT);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.send(client, ask(1, "q", "a"));
    harness.send(client, ask(2, "q", "b"));
    harness.send(client, ask(3, "q", "c"));
    assert_eq!(harness.fail(worker, "a", "no"), [sent(worker, "b")]);
    assert_eq!(harness.pass(3), []);
    assert_eq!(harness.ack(worker, "b"), [sent(worker, "a").attempt(2)]);
    assert_eq!(harness.ack(worker, "a"), [sent(worker, "c")]);
    harness.ack(worker, "c");
    harness.request(client, ask(4, "q", "r").retries(1));
    assert_eq!(harness.fail(worker, "r", "no"), [turn(worker, "r").attempt(2)]);
}

/// Proves S2.40: an expired lease is a failure, and the loss of a worker is not.
#[test]
fn a_lease_that_ends_is_followed_by_a_wait_and_a_lost_worker_is_not() {
    let mut harness = Harness::with_waits(Settings { lease_ms: Some(500), retry_delay: SHORT, ..Settings::default() });
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.send(client, ask(1, "q", "a"));
    let stopped = harness.stopped(worker, "a", Code::LeaseExpired);
    assert_eq!(harness.pass(500), [stopped]);
    assert_eq!(harness.queue("q").delayed, 1);
    assert_eq!(harness.pass(3), [sent(worker, "a").attempt(2)]);
    harness.leave(worker);
    assert_eq!((harness.queue("q").delayed, harness.queue("q").ready), (0, 1));
}

/// Proves S2.41: the worker chooses the wait, or gives the send back uncounted; 0 is no wait, and no wait is longer than 30 days.
#[test]
fn a_worker_says_when_to_try_again() {
    let mut harness = harness(SHORT);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let (id, _) = harness.send(client, ask(1, "q", "a").retries(2));
    assert_eq!(fail(&mut harness, worker, "a", Again::After(7_000)), []);
    assert_eq!(harness.pass(6_999), []);
    assert_eq!(harness.pass(1), [sent(worker, "a").attempt(2)]);
    assert_eq!(fail(&mut harness, worker, "a", Again::After(0)), [sent(worker, "a").attempt(3)]);
    for again in [Again::Uncounted(None), Again::Uncounted(Some(3))] {
        assert_eq!(fail(&mut harness, worker, "a", again), []);
        assert_eq!(harness.pass(3), [sent(worker, "a").attempt(3)], "{again:?} counts for nothing");
    }
    assert_eq!(fail(&mut harness, worker, "a", Again::Uncounted(Some(u32::MAX))), []);
    let Reason::Delayed { left_seconds, failed, .. } = harness.explain(id).because.0 else { panic!("it waits") };
    assert_eq!((left_seconds.as_millis(), failed), (RETRY_DELAY_MS_MAX, 2));
    harness.admin(AdminCall::MessageCancel { id: id.to_string() }).0.expect("it is there");
    harness.request(client, ask(2, "q", "r").retries(1));
    assert_eq!(fail(&mut harness, worker, "r", Again::After(9_000)), [turn(worker, "r").attempt(2)]);
    let ended = fail(&mut harness, worker, "r", Again::Uncounted(None));
    assert_eq!(ended.len(), 1, "of a request it counts: {ended:?}");
}

/// Proves S2.44: what waits is explained, cancelled, and told to go on; with that its wait is over on the disk too.
#[test]
fn a_wait_can_be_skipped() {
    let mut harness = restarted(&[], 0);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.try_send(client, ask(1, "q", "a"));
    harness.say(Input::Persisted { group: 1 });
    harness.fail(worker, "a", "no");
    harness.say(Input::Persisted { group: 2 });
    let id = MessageId::durable(1, 51);
    let explanation = harness.explain(id);
    assert_eq!(explanation.message.state, MessageState::Delayed);
    assert!(explanation.message.delayed_until.is_some());
    let step =
        harness.step(Input::Admin { conn: client, seq: 9, call: AdminCall::MessageRetry { id: id.to_string() } });
    let attempts = Persist::Attempts { serial: 51, attempts: 1, wait: None };
    let stored = step
        .iter()
        .any(|effect| matches!(effect, Effect::Disk(turno_engine::DiskEffect::Persist { op, .. }) if *op == attempts));
    assert!(stored, "{step:?}");
    assert_eq!(harness.explain(id).message.state, MessageState::InFlight);
    harness.say(Input::Persisted { group: 3 });
    harness.fail(worker, "a", "no");
    harness.say(Input::Persisted { group: 4 });
    harness.admin(AdminCall::MessageCancel { id: id.to_string() }).0.expect("it is there");
    assert_eq!(retry(&mut harness, id).0, Err(Code::NotFound));
}

/// A dead letter that is told to go on is back in its queue.
#[test]
fn a_dead_letter_is_retried_by_its_id() {
    let mut harness = harness(SHORT);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let (id, _) = harness.send(client, ask(1, "q", "a").retries(0));
    harness.fail(worker, "a", "no");
    let (answer, seen) = retry(&mut harness, id);
    let Ok(AdminAnswer::Message { explanation }) = answer else { panic!("{answer:?}") };
    assert_eq!((explanation.message.state, seen), (MessageState::Dead, vec![sent(worker, "a")]));
    let (answer, seen) = retry(&mut harness, id);
    assert!(answer.is_ok() && seen.is_empty(), "what is at a worker stays there");
}

/// Proves S2.43: a wait goes on over a restart. A clock that was set back makes it no longer than it was; one that was set ahead
/// ends it.
#[test]
fn a_wait_survives_a_restart() {
    let wait = Some(Wait { until_unix_ms: ZERO_UNIX_MS + START_MS + 60_000, all_ms: 80_000 });
    let tried = RecoveredMessage { mark: Some(AttemptMark { attempts: 1, failure: None, wait }), ..survivor(7, "a") };
    const HOUR_MS: u64 = 3_600_000;
    let table = [(0, 60_000), (20_000, 40_000), (HOUR_MS, 0)];
    for (ahead_ms, left_ms) in table {
        let mut harness = restarted(std::slice::from_ref(&tried), ahead_ms);
        let (worker, seen) = harness.joining(turno_proto::model::Slots::Limited(1), &["q"]);
        if left_ms == 0 {
            assert_eq!(seen, [sent(worker, "a").attempt(2)]);
            continue;
        }
        assert_eq!((seen, harness.pass(left_ms - 1)), (vec![], vec![]), "{ahead_ms}");
        assert_eq!(harness.pass(1), [sent(worker, "a").attempt(2)], "{ahead_ms}");
    }
    // Back by an hour: the whole wait, from the start on.
    let back = Some(Wait { until_unix_ms: ZERO_UNIX_MS + START_MS + HOUR_MS, all_ms: 80_000 });
    let tried =
        RecoveredMessage { mark: Some(AttemptMark { attempts: 1, failure: None, wait: back }), ..survivor(7, "a") };
    let mut harness = restarted(&[tried], 0);
    let worker = harness.worker(1, &["q"]);
    assert_eq!(harness.pass(79_999), []);
    assert_eq!(harness.pass(1), [sent(worker, "a").attempt(2)]);
}

/// The settings of a queue replace the broker's; those that are too long or contradict each other are refused, also together with
/// the ones that it has.
#[test]
fn a_queue_sets_its_waits() {
    let mut harness = harness(RetryDelay::default());
    let set = |harness: &mut Harness, first, most| {
        harness.admin(AdminCall::QueueSet { queue: "q".to_owned(), settings: waits(first, most) }).0
    };
    let table = [
        (Some(RETRY_DELAY_MS_MAX + 1), None, Err(Code::BadCall)),
        (None, Some(RETRY_DELAY_MS_MAX + 1), Err(Code::BadCall)),
        (Some(2_000), Some(1_999), Err(Code::BadCall)),
        (Some(2), Some(3), Ok((2, 3))),
        (Some(4), None, Err(Code::BadCall)),
        (Some(0), None, Ok((0, 3))),
        (Some(3), Some(RETRY_DELAY_MS_MAX), Ok((3, RETRY_DELAY_MS_MAX))),
    ];
    for (first, most, expected) in table {
        let answer = set(&mut harness, first, most).map(|answer| match answer {
            AdminAnswer::Queue { queue } => {
                (queue.retry_delay_seconds.as_millis(), queue.retry_delay_max_seconds.as_millis())
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(answer, expected, "{first:?} {most:?}");
    }
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.send(client, ask(1, "q", "a"));
    assert_eq!(harness.fail(worker, "a", "no"), []);
    assert_eq!(harness.pass(3), [sent(worker, "a").attempt(2)]);
}
