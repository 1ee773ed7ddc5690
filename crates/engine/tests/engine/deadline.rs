//! Time runs out, is announced, or goes backwards.

use turno_engine::{Input, Settings, WorkerMessage};
use turno_proto::model::{Code, Limits, Mono, Slots, limits};

use crate::harness::{Harness, ask};
use crate::seen::{failed, reply, sent, turn, undelivered};

/// Proves I13 and S2.38: a request that a worker has ends at its deadline; the worker is told, keeps its slots for
/// 10 s of grace, and what it says within that time is late.
#[test]
fn a_running_request_ends_at_its_deadline() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").within(2_000)), [turn(worker, "a").left(Some(2_000))]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.pass(1_999), []);
    let told = [undelivered(client, 1, Code::TimedOut), harness.stopped(worker, "a", Code::TimedOut)];
    assert_eq!(harness.pass(1), told);
    assert_eq!(harness.pass(limits::CANCEL_GRACE_MS - 1), [], "grace");
    assert_eq!(harness.pass(1), [turn(worker, "b").left(Some(18_000))]);
    assert_eq!(harness.reply(worker, "a", "A"), [], "after the grace too");
    assert_eq!((harness.counters().late, harness.counters().expired), (1, 1));
}

/// Proves I13 and I12: a worker that settles within the grace gives its slot back then, once.
#[test]
fn the_grace_ends_with_the_workers_word() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").within(2_000)), [turn(worker, "a").left(Some(2_000))]);
    harness.pass(2_000);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.pass(4_000), []);
    assert_eq!(harness.reply(worker, "a", "A"), [turn(worker, "b").left(Some(26_000))]);
    assert_eq!(harness.pass(20_000), [], "no second end of the same grace");
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
}

/// Proves I9 and S2.34: a worker that is lost within the grace takes nothing with it: the request was over.
#[test]
fn a_worker_lost_within_the_grace() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let question = ask(1, "q", "a").within(2_000).retries(5);
    assert_eq!(harness.request(client, question), [turn(worker, "a").left(Some(2_000))]);
    harness.pass(2_000);
    assert_eq!(harness.leave(worker), []);
    assert_eq!((harness.status().in_flight, harness.status().bytes, harness.counters().lost), (0, 0, 0));
}

/// Proves I4: nothing goes out at or after its deadline, also when the engine was not ticked in between: the head
/// expires when its turn comes.
#[test]
fn nothing_goes_out_after_its_deadline() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "late").within(500)), []);
    assert_eq!(harness.request(client, ask(3, "q", "c")), []);
    harness.clock(harness.now().plus_millis(500));
    let expected =
        [reply(client, 1, "r"), undelivered(client, 2, Code::TimedOut), turn(worker, "c").left(Some(29_500))];
    assert_eq!(harness.reply(worker, "a", "r"), expected);
}

/// Proves S2.35 and I13: an attempt that fails at the deadline is the last, with the worker's text, even if the
/// tick that would have said so has not come.
#[test]
fn a_failure_at_the_deadline_is_the_last() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let question = ask(1, "q", "a").within(500).retries(9);
    assert_eq!(harness.request(client, question), [turn(worker, "a").left(Some(500))]);
    harness.clock(harness.now().plus_millis(500));
    assert_eq!(harness.fail(worker, "a", "no"), [failed(client, 1, "no")]);
    assert_eq!(harness.pass(60_000), []);
}

/// Proves I4 and I13: a deadline of 0 has passed already: never delivered, not even to an idle worker.
#[test]
fn a_deadline_of_nothing() {
    let mut harness = Harness::new();
    let client = harness.client();
    let late = [undelivered(client, 1, Code::TimedOut)];
    assert_eq!(harness.request(client, ask(1, "q", "a").within(0)), late, "without a worker");
    let worker = harness.worker(1, &["q"]);
    assert_eq!(harness.request(client, ask(1, "q", "a").within(0)), late, "beside an idle one");
    assert_eq!(harness.send(client, ask(2, "q", "b").within(0)).1, []);
    assert_eq!(harness.request(client, ask(3, "q", "c").within(1)), [turn(worker, "c").left(Some(1))]);
    assert_eq!((harness.status().ready, harness.counters().expired), (0, 3));
}

/// Proves I13: the usual deadline can be set, and nobody's is longer than the longest.
#[test]
fn deadlines_are_bounded() {
    let limits = Limits { request_deadline_ms: 700, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..Settings::default() });
    let (worker, client) = (harness.worker(9, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a").left(Some(700))]);
    let longest = Some(limits::REQUEST_DEADLINE_MS_MAX);
    assert_eq!(harness.request(client, ask(2, "q", "b").within(u32::MAX)), [turn(worker, "b").left(longest)]);
    let longest = Some(limits::SEND_DEADLINE_MS_MAX);
    assert_eq!(harness.send(client, ask(3, "q", "c").within(u32::MAX)).1, [sent(worker, "c").left(longest)]);
}

/// Proves I13: the engine's next deadline is never later than what is due: a shell that ticks only then sees each
/// request end within its millisecond, at whatever moment it came.
#[test]
fn the_next_deadline_is_never_late() {
    let mut harness = Harness::new();
    let client = harness.client();
    let mut due = Vec::new();
    let rows = [(0, 300), (1, 300), (999, 364), (1_500, 301), (64_001, 4_100), (70_000, 30_000)];
    for (seq, (micros, within)) in (0..).zip(rows) {
        harness.clock(Mono::from_micros(5_000_000 + micros));
        assert_eq!(harness.request(client, ask(seq, "q", "x").within(within)), []);
        due.push((harness.now().plus_millis(u64::from(within)), undelivered(client, seq, Code::TimedOut)));
    }
    due.sort_by_key(|(at, _)| *at);
    let mut ended = Vec::new();
    while let Some(next) = harness.engine.next_deadline() {
        harness.clock(harness.now().max(next));
        let now = harness.now();
        ended.extend(harness.tick().into_iter().map(|seen| (now, seen)));
    }
    assert_eq!(ended.len(), due.len());
    for ((at, seen), (expected_at, expected)) in ended.into_iter().zip(due) {
        assert_eq!(seen, expected);
        assert!(at >= expected_at && at < expected_at.plus_millis(1), "{expected_at:?} came at {at:?}");
    }
}

/// Proves I13: time that goes backwards counts as standing still: nothing panics, nothing ends early or lives
/// longer.
#[test]
fn time_that_goes_backwards_stands_still() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let start = harness.now();
    harness.clock(start.plus_millis(1_000));
    assert_eq!(harness.request(client, ask(1, "q", "a").within(1_000)), [turn(worker, "a").left(Some(1_000))]);
    harness.clock(Mono::ZERO);
    assert_eq!(harness.request(client, ask(2, "q", "b").within(1_000)), []);
    assert_eq!(harness.tick(), []);
    assert_eq!(harness.status().up_seconds.as_millis(), 1_000);
    harness.clock(start.plus_millis(1_999));
    assert_eq!(harness.tick(), []);
    harness.clock(start.plus_millis(2_000));
    let told = [
        undelivered(client, 1, Code::TimedOut),
        harness.stopped(worker, "a", Code::TimedOut),
        undelivered(client, 2, Code::TimedOut),
    ];
    assert_eq!(harness.tick(), told);
}

/// Proves I13: a tick without anything due does nothing, however often, and a jump of days does all at once.
#[test]
fn ticks_are_harmless() {
    let mut harness = Harness::new();
    for _ in 0..3 {
        assert_eq!(harness.tick(), []);
    }
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    for _ in 0..3 {
        assert_eq!(harness.tick(), []);
    }
    harness.clock(harness.now().plus_millis(864_000_000));
    let told = [
        undelivered(client, 1, Code::TimedOut),
        harness.stopped(worker, "a", Code::TimedOut),
        undelivered(client, 2, Code::TimedOut),
    ];
    assert_eq!(harness.tick(), told);
    assert_eq!(harness.pass(limits::CANCEL_GRACE_MS), []);
    assert_eq!(harness.engine.next_deadline(), None);
}

/// Proves I13: requests of a gone caller still end for their worker: at the deadline it is told to stop.
#[test]
fn the_deadline_of_a_gone_caller() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.leave(client), []);
    assert_eq!(harness.pass(30_000), [harness.stopped(worker, "a", Code::TimedOut)]);
    assert_eq!(harness.say(Input::worker(worker, harness.held(worker, "a"), WorkerMessage::Ack)), []);
    let (late, got) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!((got, harness.rota("q").len()), (vec![], 2), "{late:?}");
}

/// Proves S2.38 and I13: a worker lost after the deadline, but before anyone looked at the clock, changes nothing
/// about the outcome.
#[test]
fn a_worker_lost_too_late_is_a_time_out() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").within(100).retries(3)), [turn(worker, "a").left(Some(100))]);
    harness.clock(harness.now().plus_millis(100));
    assert_eq!(harness.leave(worker), [undelivered(client, 1, Code::TimedOut)]);
}

/// Proves I4: a head that has expired does not cost its queue the turn; the next one of the same queue takes it.
#[test]
fn an_expired_head_leaves_its_turn_to_the_next() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q", "other"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "other", "busy")).1, [sent(worker, "busy").of("other")]);
    assert_eq!(harness.request(client, ask(2, "q", "late").within(500)), []);
    assert_eq!(harness.send(client, ask(3, "q", "next")).1, []);
    assert_eq!(harness.send(client, ask(4, "other", "other")).1, []);
    harness.clock(harness.now().plus_millis(500));
    assert_eq!(harness.ack(worker, "busy"), [undelivered(client, 2, Code::TimedOut), sent(worker, "next")]);
    assert_eq!(harness.ack(worker, "next"), [sent(worker, "other").of("other")]);
}
