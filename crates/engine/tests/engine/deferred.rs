//! What is too much for one input is done by portions.

use std::num::NonZeroUsize;

use turno_engine::{Input, Settings};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{ClosingReason, Code, ConnId, Slots};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, closing, drained, reply, turn, undelivered};

/// Two in one go.
fn harness() -> Harness {
    Harness::with(Settings { portion: NonZeroUsize::MIN.saturating_add(1), ..Settings::default() })
}

/// Requests that nobody takes, numbered from 1.
fn waiting(harness: &mut Harness, client: ConnId, count: u32) {
    for seq in 1..=count {
        assert_eq!(harness.request(client, ask(seq, "q", &format!("{seq}")).within(60_000)), []);
    }
}

fn returned(client: ConnId, seqs: impl IntoIterator<Item = u32>) -> Vec<Seen> {
    seqs.into_iter().map(|seq| undelivered(client, seq, Code::Closing)).collect()
}

/// Proves S1.35 and I12: the requests of a caller that is gone end two by two, a millisecond apart, oldest first; a
/// queue that nobody knows any more is forgotten with the last of them.
#[test]
fn what_a_caller_leaves_behind_ends_by_portions() {
    let mut harness = harness();
    let client = harness.client();
    waiting(&mut harness, client, 5);
    assert_eq!(harness.leave(client), []);
    for ready in [3, 1] {
        assert_eq!(harness.status().ready, ready);
        assert_eq!(harness.engine.next_deadline(), Some(harness.now().plus_millis(1)));
        assert_eq!(harness.tick(), [], "not before the pause is over");
        assert_eq!(harness.status().ready, ready);
        assert_eq!(harness.pass(1), []);
    }
    let status = harness.status();
    assert_eq!((status.ready, status.queues, status.bytes), (0, 0, 0));
    assert_eq!(harness.engine.next_deadline(), None);
}

/// Proves S1.35 and I11: no worker gets what has lost its caller; others of that queue wait behind it for a moment, those
/// of other queues do not. Workers that run for it are told to stop at once, however many wait.
#[test]
fn nobody_works_for_a_caller_that_is_gone() {
    let mut harness = harness();
    let (client, other) = (harness.client(), harness.client());
    let worker = harness.worker(1, &["q", "free"]);
    let runs = ask(9, "q", "runs").within(60_000).ends_with_caller();
    assert_eq!(harness.request(client, runs), [turn(worker, "runs").left(Some(60_000))]);
    waiting(&mut harness, client, 5);
    assert_eq!(harness.request(other, ask(1, "q", "behind").within(60_000)), []);
    let stopped = harness.stopped(worker, "runs", Code::CallerGone);
    assert_eq!(harness.leave(client), [stopped]);
    assert_eq!(harness.reply(worker, "runs", "late"), [], "there is room now, and nothing to do");
    assert_eq!(harness.status().ready, 4);
    assert_eq!(harness.request(other, ask(2, "free", "at once").no_reply()).len(), 2);
    assert_eq!(harness.ack(worker, "at once"), []);
    assert_eq!(harness.pass(1), []);
    assert_eq!(harness.pass(1), [turn(worker, "behind").left(Some(59_998))]);
    assert_eq!((harness.status().ready, harness.counters().cancelled), (0, 1));
}

/// Proves I11: a worker that was kept for a costly head is everybody's again if it becomes too small for the head while that
/// has lost its caller and waits for its end.
#[test]
fn nobody_too_small_is_kept_for_a_caller_that_is_gone() {
    let mut harness = harness();
    let (client, other) = (harness.client(), harness.client());
    let worker = harness.worker(3, &["q", "other"]);
    assert_eq!(harness.request(other, ask(1, "other", "busy")), [turn(worker, "busy").of("other")]);
    for seq in 1..=2 {
        assert_eq!(harness.request(client, ask(seq, "nobody's", "first")), []);
    }
    assert_eq!(harness.request(client, ask(3, "q", "dear").cost(3)), []);
    assert_eq!(harness.request(other, ask(2, "other", "next")), [], "the worker is kept for the costly head");
    assert_eq!(harness.leave(client), []);
    assert_eq!(harness.status().ready, 2, "the costly one is next to end");
    assert_eq!(harness.resize(worker, 2), Ok(vec![turn(worker, "next").of("other")]));
    assert_eq!(harness.pass(1), []);
    assert_eq!(harness.status().ready, 0);
}

/// Proves S2.16 and S2.17: a drain gives waiting requests back two by two, and is over after the last of them.
#[test]
fn a_drain_gives_back_by_portions() {
    let mut harness = harness();
    let client = harness.client();
    waiting(&mut harness, client, 5);
    let mut expected = vec![closing(client, ClosingReason::Shutdown, 30_000)];
    expected.extend(returned(client, 1..=2));
    assert_eq!(harness.say(Input::Drain { within_ms: 30_000 }), expected);
    assert_eq!(harness.pass(1), returned(client, 3..=4));
    let mut expected = returned(client, [5]);
    expected.push(drained(5, 0, 0));
    assert_eq!(harness.pass(1), expected);
    assert_eq!(harness.engine.next_deadline(), None);
}

/// Proves S2.17, I12 and I13: at the deadline all are given back at once, each once.
#[test]
fn a_drain_that_ends_gives_all_back() {
    let mut harness = harness();
    let client = harness.client();
    waiting(&mut harness, client, 6);
    harness.say(Input::Drain { within_ms: 1 });
    let mut expected = returned(client, 3..=6);
    expected.push(drained(6, 0, 0));
    assert_eq!(harness.pass(1), expected);
    assert_eq!(harness.pass(60_000), []);
}

/// Proves S2.17: what was not given back when a maintenance ends waits as before, and is handed out.
#[test]
fn a_maintenance_that_ends_gives_no_more_back() {
    let mut harness = harness();
    let client = harness.client();
    waiting(&mut harness, client, 4);
    assert_eq!(harness.admin(AdminCall::Drain).1[1..], returned(client, 1..=2));
    harness.admin(AdminCall::Resume).0.unwrap();
    assert_eq!(harness.pass(1), []);
    assert_eq!((harness.status().ready, harness.engine.next_deadline().is_some()), (2, true));
    let (worker, got) = harness.joining(Slots::Limited(2), &["q"]);
    assert_eq!(got, [turn(worker, "3").left(Some(59_999)), turn(worker, "4").left(Some(59_999))]);
}

/// Proves I12: only what a caller gets back counts as given back; of one that is gone meanwhile nobody is told.
#[test]
fn a_caller_that_goes_during_a_drain_gets_nothing_back() {
    let mut harness = harness();
    let (client, other) = (harness.client(), harness.client());
    waiting(&mut harness, client, 3);
    waiting(&mut harness, other, 2);
    let told = harness.say(Input::Drain { within_ms: 30_000 });
    assert_eq!(told[2..], returned(client, 1..=2));
    assert_eq!(harness.leave(client), returned(other, 1..=1), "a portion, the one without a caller first");
    let mut expected = returned(other, 2..=2);
    expected.push(drained(4, 0, 0));
    assert_eq!(harness.pass(1), expected);
}

/// Proves I12: requests are found by their numbers from whichever end they are taken back, with others coming and
/// going in between; of two with one number the older is meant.
#[test]
fn numbers_are_found_from_either_end() {
    let mut harness = Harness::new();
    let client = harness.client();
    waiting(&mut harness, client, 6);
    let cancelled = |seq| [undelivered(client, seq, Code::Cancelled)];
    assert_eq!(harness.cancel(client, 2), cancelled(2));
    assert_eq!(harness.cancel(client, 6), cancelled(6), "the newest");
    assert_eq!(harness.request(client, ask(7, "q", "7")), []);
    assert_eq!(harness.request(client, ask(3, "q", "3 again")), []);
    assert_eq!(harness.cancel(client, 9), [], "no such request, and all are looked at");
    assert_eq!(harness.cancel(client, 3), cancelled(3), "the older");
    let worker = harness.joining(Slots::Limited(4), &["q"]).0;
    for text in ["1", "4", "5", "7"] {
        assert_eq!(harness.reply(worker, text, "done")[0], reply(client, text.parse().unwrap(), "done"));
    }
    assert_eq!(harness.status().in_flight, 1);
    assert_eq!(
        harness.cancel(client, 3),
        [cancelled(3)[0].clone(), harness.stopped(worker, "3 again", Code::Cancelled)]
    );
}

/// A message that takes the place of one that was to end is another, and stays.
#[test]
fn what_is_new_at_an_old_place_stays() {
    let mut harness = harness();
    let (client, other) = (harness.client(), harness.client());
    waiting(&mut harness, client, 5);
    assert_eq!(harness.leave(client), []);
    harness.admin(AdminCall::QueuePurge { queue: "q".to_owned(), limit: 100 }).0.expect("it may be emptied");
    assert_eq!(harness.status().ready, 0);
    for seq in 1..=5 {
        assert_eq!(harness.request(other, ask(seq, "q", "new").within(60_000)), []);
    }
    assert_eq!(harness.pass(10), []);
    assert_eq!(harness.status().ready, 5);
}
