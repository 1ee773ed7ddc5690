//! An attempt failed: another one, or the end.

use turno_engine::{Again, Input, WorkerMessage};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, Slots};

use crate::harness::{Harness, ask};
use crate::seen::{body, delivered, failed, piece, reply, sent, turn, undelivered};

/// Proves S2.33 and S2.35: a limit of N allows N redeliveries, so N + 1 deliveries, then the caller hears the last
/// failure; without a limit there is no second delivery.
#[test]
fn a_limit_of_n_allows_n_redeliveries() {
    for (limit, redeliveries) in [(None, 0), (Some(0), 0), (Some(1), 1), (Some(3), 3), (Some(255), 255)] {
        let mut harness = Harness::new();
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        let mut question = ask(1, "q", "a");
        question.message.retries = limit;
        assert_eq!(harness.request(client, question), [turn(worker, "a")]);
        for attempt in 2..=redeliveries + 1 {
            assert_eq!(harness.fail(worker, "a", "no"), [turn(worker, "a").attempt(attempt)], "{limit:?}");
        }
        assert_eq!(harness.fail(worker, "a", "no more"), [failed(client, 1, "no more")], "{limit:?}");
        let counters = harness.counters();
        assert_eq!((counters.retried, counters.dead), (u64::from(redeliveries), 0), "a request is no dead letter");
    }
}

/// Proves S2.34 and S2.35: what a lost worker had goes back to the head and to another worker at once; a request
/// without a limit ends instead.
#[test]
fn a_lost_worker_is_replaced_at_once() {
    let mut harness = Harness::new();
    let (lost, client) = (harness.worker(3, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "once")), [turn(lost, "once")]);
    assert_eq!(harness.request(client, ask(2, "q", "again").retries(1)), [turn(lost, "again")]);
    assert_eq!(harness.send(client, ask(3, "q", "sent")).1, [sent(lost, "sent")]);
    let other = harness.worker(3, &["q"]);
    assert_eq!(
        harness.leave(lost),
        [undelivered(client, 1, Code::WorkerLost), turn(other, "again").attempt(2), sent(other, "sent")]
    );
    assert_eq!(harness.reply(other, "again", "r"), [reply(client, 2, "r")]);
    assert_eq!(harness.ack(other, "sent"), []);
    let counters = harness.counters();
    assert_eq!((counters.lost, counters.retried, counters.returned), (3, 1, 1));
}

/// Proves S2.34 and S0.31: deliveries of a lost worker go back to the head in their old order, before what waited.
#[test]
fn what_a_lost_worker_had_goes_first_in_its_old_order() {
    let mut harness = Harness::new();
    let (lost, client) = (harness.worker(3, &["q", "mail"]), harness.client());
    for (seq, queue, text) in [(1, "q", "a"), (2, "mail", "m"), (3, "q", "b")] {
        assert_eq!(harness.send(client, ask(seq, queue, text)).1, [sent(lost, text).of(queue)]);
    }
    assert_eq!(harness.send(client, ask(4, "q", "c")).1, []);
    assert_eq!(harness.send(client, ask(5, "q", "urgent").priority(9)).1, []);
    assert_eq!(harness.leave(lost), []);
    let (other, got) = harness.joining(Slots::Limited(4), &["q", "mail"]);
    let expected = [sent(other, "urgent"), sent(other, "a"), sent(other, "b"), sent(other, "c")];
    assert_eq!(got, expected);
    assert_eq!(harness.ack(other, "c"), [sent(other, "m").of("mail")]);
}

/// Proves S2.35 and S2.38: the timeout runs on through all attempts; it is never set anew.
#[test]
fn the_timeout_runs_on_through_all_attempts() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let question = ask(1, "q", "a").retries(9).within(10_000);
    assert_eq!(harness.request(client, question), [turn(worker, "a").left(Some(10_000))]);
    assert_eq!(harness.pass(4_000), []);
    assert_eq!(harness.fail(worker, "a", "no"), [turn(worker, "a").attempt(2).left(Some(6_000))]);
    assert_eq!(harness.pass(5_999), []);
    let told = [undelivered(client, 1, Code::TimedOut), harness.stopped(worker, "a", Code::TimedOut)];
    assert_eq!(harness.pass(1), told);
}

/// Proves S2.35 and S2.38: between attempts the deadline holds too.
#[test]
fn the_timeout_passes_while_waiting_for_the_next_attempt() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let question = ask(1, "q", "a").retries(9).within(10_000);
    assert_eq!(harness.request(client, question), [turn(worker, "a").left(Some(10_000))]);
    assert_eq!(harness.leave(worker), []);
    assert_eq!(harness.pass(9_999), []);
    assert_eq!(harness.pass(1), [undelivered(client, 1, Code::TimedOut)]);
}

/// Proves S2.36: the body is kept while retries remain, and a no-reply message ignores its limit: it is written
/// once, never again.
#[test]
fn a_no_reply_message_is_never_retried() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    let _spare = harness.worker(2, &["q"]);
    let question = ask(1, "q", "a").no_reply().retries(9);
    assert_eq!(harness.request(client, question.clone()), [turn(worker, "a").one_way(), delivered(client, 1)]);
    assert_eq!(harness.leave(worker), []);
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, question), [turn(worker, "a").one_way(), delivered(client, 1)]);
    assert_eq!(harness.fail(worker, "a", "no"), []);
    let view = harness.status();
    assert_eq!((view.in_flight, view.ready, view.dead, view.bytes), (0, 0, 0, 0));
    let long = "x".repeat(5_000);
    assert_eq!(harness.request(client, ask(2, "q", &long).retries(1)), [turn(worker, &long)]);
    assert_eq!(harness.status().bytes, 5_128, "kept until the reply");
    assert_eq!(harness.fail(worker, &long, "no"), [turn(worker, &long).attempt(2)]);
}

/// Proves S2.37: the late reply of a worker that lost the delivery is discarded; the client hears the other one.
#[test]
fn a_late_reply_of_the_lost_worker_is_discarded() {
    let mut harness = Harness::new();
    let (slow, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").retries(2)), [turn(slow, "a")]);
    let lost = harness.held(slow, "a");
    let other = harness.worker(1, &["q"]);
    let stop = AdminCall::WorkerStop { worker: "w0".to_owned(), now: true };
    assert_eq!(harness.admin(stop).1[1..], [turn(other, "a")], "given back: no attempt counts");
    assert_eq!(harness.reply_to(slow, lost, "late"), []);
    assert_eq!(harness.reply(other, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.reply_to(slow, lost, "later still"), []);
    assert_eq!(harness.leave(slow), []);
    assert_eq!(harness.reply_to(slow, lost, "from the grave"), []);
    assert_eq!(harness.counters().replied, 1);
    assert_eq!(harness.counters().late, 3);
}

/// Proves S1.35 and S2.34: a request whose caller is gone is not tried again, however its attempt ends.
#[test]
fn nobody_works_for_a_gone_caller_again() {
    for way in ["fail", "lost", "given back"] {
        let mut harness = Harness::new();
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        let _other = harness.worker(1, &["q"]);
        assert_eq!(harness.request(client, ask(1, "q", "a").retries(9)), [turn(worker, "a")]);
        assert_eq!(harness.leave(client), []);
        let seen = match way {
            "fail" => harness.fail(worker, "a", "no"),
            "lost" => harness.leave(worker),
            _ => harness.admin(AdminCall::WorkerStop { worker: "w0".to_owned(), now: true }).1[1..].to_vec(),
        };
        assert_eq!(seen, [], "{way}");
        assert_eq!((harness.status().ready, harness.status().in_flight), (0, 0), "{way}");
    }
}

/// A permanent failure of a request ends it with the worker's text, retries or not.
#[test]
fn a_permanent_failure_ends_a_request() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").retries(9)), [turn(worker, "a")]);
    assert_eq!(harness.fail_for_good(worker, "a", "no such user"), [failed(client, 1, "no such user")]);
    let delivery = harness.held(worker, "a");
    let again = Input::worker(worker, delivery, WorkerMessage::Fail { again: Again::Never, payload: body("no") });
    assert_eq!(harness.say(again), []);
    assert_eq!(harness.counters().doubled, 1);
}

/// Proves S2.37 and I12: once its caller has a piece of the reply a request is not tried again, however its attempt
/// ends and whatever its limit: another worker would begin the stream anew.
#[test]
fn a_streamed_reply_is_never_begun_again() {
    let stop = || AdminCall::WorkerStop { worker: "w0".to_owned(), now: true };
    for way in ["fail", "lost", "given back"] {
        let mut harness = Harness::new();
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        let _other = harness.worker(1, &["q"]);
        assert_eq!(harness.request(client, ask(1, "q", "a").retries(9)), [turn(worker, "a")]);
        assert_eq!(harness.piece(worker, "a", "one"), [piece(client, 1, "one")]);
        let (seen, expected) = match way {
            "fail" => (harness.fail(worker, "a", "no"), failed(client, 1, "no")),
            "lost" => (harness.leave(worker), undelivered(client, 1, Code::WorkerLost)),
            _ => (harness.admin(stop()).1[1..].to_vec(), undelivered(client, 1, Code::WorkerLost)),
        };
        assert_eq!(seen, [expected], "{way}");
    }
}

/// Proves S2.34: an attempt that fails while other messages wait goes first again, before them, also when it is
/// the only slot.
#[test]
fn a_failed_attempt_goes_before_the_rest() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").retries(1)), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.request(client, ask(3, "q", "urgent").priority(7)), []);
    assert_eq!(harness.fail(worker, "a", "no"), [turn(worker, "urgent")], "a higher priority is before it");
    assert_eq!(harness.reply(worker, "urgent", "r"), [reply(client, 3, "r"), turn(worker, "a").attempt(2)]);
    assert_eq!(harness.reply(worker, "a", "r"), [reply(client, 1, "r"), turn(worker, "b")]);
}

/// Proves S0.15: a worker that deregistered and ends before it has finished gives back what it holds, in order, and
/// no attempt counts; one that is merely lost has failed.
#[test]
fn a_worker_that_says_goodbye_gives_back() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(worker, "b")]);
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!(harness.leave(worker), []);
    let (other, taken) = harness.joining(Slots::Limited(2), &["q"]);
    assert_eq!(taken, [turn(other, "a"), turn(other, "b")], "first attempts still");
    let counters = harness.counters();
    assert_eq!((counters.returned, counters.lost, counters.retried), (2, 0, 0));
    assert_eq!(
        harness.leave(other),
        [undelivered(client, 2, Code::WorkerLost), undelivered(client, 1, Code::WorkerLost)],
        "no goodbye, no second chance"
    );
}
