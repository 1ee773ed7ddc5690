//! The right to settle belongs to the worker that holds the delivery, once. Everything else is dropped and counted.

use turno_engine::{Again, Input, WorkerMessage};
use turno_proto::model::view::Counters;
use turno_proto::model::{Code, ConnId, Delivery};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, body, reply, sent, turn, undelivered};

/// The three ways to settle, from one connection.
fn settling(conn: ConnId, delivery: Delivery) -> [Input; 3] {
    let payload = body("x");
    [
        Input::worker(conn, delivery, WorkerMessage::Reply { more: false, payload: payload.clone() }),
        Input::worker(conn, delivery, WorkerMessage::Ack),
        Input::worker(conn, delivery, WorkerMessage::Fail { again: Again::AsSet, payload }),
    ]
}

/// How many were late, doubled and forged.
fn strays(counters: Counters) -> (u64, u64, u64) {
    (counters.late, counters.doubled, counters.forged)
}

/// Proves S1.30, S0.17, I3 and I12: of two equal replies exactly one arrives; the second frees no slot, whichever
/// way it is said.
#[test]
fn of_two_equal_replies_one_arrives() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(worker, "b")]);
    assert_eq!(harness.request(client, ask(3, "q", "c")), []);
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B"), turn(worker, "c")]);
    assert_eq!(harness.reply(worker, "c", "C"), [reply(client, 3, "C")]);
    let again = settling(worker, harness.held(worker, "c"));
    for (count, input) in (1..).zip(again) {
        assert_eq!(harness.say(input), []);
        assert_eq!(strays(harness.counters()), (0, count, 0));
        assert_eq!(harness.status().slots_used, 1, "the slot came back once");
    }
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
}

/// Proves S1.30, I3 and I12: nobody but the holder can settle: not another worker, not the caller itself, not a
/// number that was never given out.
#[test]
fn a_forged_settle_is_dropped() {
    let mut harness = Harness::new();
    let (worker, other, client) = (harness.worker(1, &["q"]), harness.worker(1, &["mail"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let delivery = harness.held(worker, "a");
    let mut count = 0;
    for conn in [other, client] {
        for input in settling(conn, delivery) {
            assert_eq!(harness.say(input), []);
            count += 1;
            assert_eq!(strays(harness.counters()), (0, 0, count));
        }
    }
    let nowhere = Delivery { index: 4_000_000, stamp: delivery.stamp };
    assert_eq!(harness.reply_to(worker, nowhere, "x"), []);
    assert_eq!(strays(harness.counters()), (0, 0, count + 1));
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.reply_to(other, delivery, "x"), [], "also after the end");
    assert_eq!(strays(harness.counters()), (0, 0, count + 2));
}

/// Proves S2.37, I3 and I12: a delivery that was taken from its worker is late, whether its message waits, is with
/// another worker, or is over.
#[test]
fn a_late_settle_is_dropped() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    let first = harness.held(worker, "a");
    assert_eq!(harness.fail(worker, "a", "again"), [sent(worker, "a").attempt(2)]);
    assert_eq!(harness.say(Input::worker(worker, first, WorkerMessage::Ack)), [], "that attempt is over");
    assert_eq!(strays(harness.counters()), (1, 0, 0));
    assert_eq!(harness.resize(worker, 0), Ok(vec![]));
    let second = harness.held(worker, "a");
    assert_eq!(harness.fail(worker, "a", "again"), []);
    assert_eq!(harness.say(Input::worker(worker, second, WorkerMessage::Ack)), [], "it waits");
    assert_eq!(strays(harness.counters()), (2, 0, 0));
    assert_eq!(harness.status().ready, 1, "and goes on waiting");
}

/// Proves I3: a place that was used again does not make an old settlement valid: every delivery has its own number.
#[test]
fn an_old_word_never_settles_a_new_message() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let old = harness.held(worker, "a");
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(worker, "b")]);
    assert_eq!(harness.held(worker, "b").index, old.index, "the same place");
    for input in settling(worker, old) {
        assert_eq!(harness.say(input), []);
    }
    assert_eq!(strays(harness.counters()), (3, 0, 0));
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
}

/// Proves I9, I12 and S0.17: what was told to stop keeps its slots until the worker settles it; that settlement
/// frees them, counts as late, reaches nobody, and the next one frees nothing.
#[test]
fn settling_what_was_stopped_frees_its_slots() {
    for way in 0..3 {
        let mut harness = Harness::new();
        let (worker, client) = (harness.worker(2, &["q"]), harness.client());
        assert_eq!(harness.request(client, ask(1, "q", "a").cost(2)), [turn(worker, "a").cost(2)]);
        let told = [undelivered(client, 1, Code::Cancelled), harness.stopped(worker, "a", Code::Cancelled)];
        assert_eq!(harness.cancel(client, 1), told);
        assert_eq!(harness.request(client, ask(2, "q", "b")), [], "the slots are still in use");
        assert_eq!(harness.piece(worker, "a", "piece"), [], "no settlement");
        assert_eq!(harness.status().slots_used, 2);
        let last_report = settling(worker, harness.held(worker, "a"))[way].clone();
        assert_eq!(harness.say(last_report.clone()), [turn(worker, "b")]);
        assert_eq!(strays(harness.counters()), (1, 0, 0));
        assert_eq!(harness.say(last_report), []);
        assert_eq!(strays(harness.counters()), (1, 1, 0));
        assert_eq!(harness.status().slots_used, 1);
    }
}

/// Proves I3: a worker that deregistered or resized to nothing may still settle what it holds, once.
#[test]
fn settling_after_a_resize_to_nothing() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(3, &["q"]), harness.client());
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(harness.request(client, ask(seq, "q", text)), [turn(worker, text)]);
    }
    assert_eq!(harness.resize(worker, 0), Ok(vec![]));
    assert_eq!(harness.request(client, ask(4, "q", "d")), []);
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(harness.reply(worker, text, "r"), [reply(client, seq, "r")]);
        assert_eq!(harness.reply(worker, text, "r"), []);
    }
    assert_eq!(harness.worker_view("w0").used, 0);
    assert_eq!(harness.resize(worker, 1), Ok(vec![turn(worker, "d")]));
}

/// Proves S0.16: after success and failure alike the slot is free, and the worker's own account says which it was.
#[test]
fn a_worker_has_an_account() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        assert_eq!(harness.request(client, ask(seq, "q", text)), [turn(worker, text)]);
        let told: Vec<Seen> = match text {
            "a" => harness.reply(worker, text, "r"),
            "b" => harness.ack(worker, text),
            "c" => harness.fail(worker, text, "r"),
            _ => harness.fail_for_good(worker, text, "r"),
        };
        assert_eq!(told.len(), 1);
    }
    let view = harness.worker_view("w0");
    assert_eq!((view.deliveries, view.settled, view.failed, view.used), (4, 2, 2, 0));
}
