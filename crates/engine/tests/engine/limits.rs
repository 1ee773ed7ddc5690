//! Refusals on arrival, before a message costs anything.

use turno_engine::{Input, Outgoing, Settings};
use turno_proto::model::{Code, Limits, Slots, limits};

use crate::harness::{Harness, ask};
use crate::seen::{body, reply, sent, turn, undelivered};

fn harness_with(limits: Limits) -> Harness {
    Harness::with(Settings { limits, ..Settings::default() })
}

/// Proves S0.26: a limit can be set: of bytes in memory. What is over it is refused with a stated code, nothing
/// that was taken in is lost, and freed bytes let new messages in.
#[test]
fn the_memory_limit_refuses_before_anything_is_lost() {
    let mut harness = harness_with(Limits { memory_bytes_max: 3 * (128 + 10), ..Limits::default() });
    let client = harness.client();
    let text = "0123456789";
    for seq in 1..=3 {
        assert_eq!(harness.send(client, ask(seq, "q", text)).1, []);
    }
    let refused = |seq| [undelivered(client, seq, Code::OverMemory)];
    assert_eq!(harness.try_send(client, ask(4, "q", "")), refused(4));
    assert_eq!(harness.request(client, ask(5, "other", "")), refused(5));
    assert_eq!((harness.status().bytes, harness.counters().refused), (414, 2));
    let (worker, got) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(got, [sent(worker, text)]);
    assert_eq!(harness.try_send(client, ask(6, "q", text)), refused(6), "what runs counts too");
    assert_eq!(harness.ack(worker, text), [sent(worker, text)]);
    assert_eq!(harness.send(client, ask(7, "q", text)).1, []);
}

/// A connection has so many unanswered requests, no more; an answer makes room for the next, and other connections and
/// sends do not count.
#[test]
fn the_limit_of_unanswered_requests() {
    let mut harness = harness_with(Limits { in_flight_max: 2, ..Limits::default() });
    let (worker, client, other) = (harness.worker(1, &["q"]), harness.client(), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.request(client, ask(3, "q", "c")), [undelivered(client, 3, Code::TooManyInFlight)]);
    assert_eq!(harness.request(other, ask(3, "q", "d")), []);
    assert_eq!(harness.send(client, ask(4, "q", "e")).1, [], "a send is no unanswered request");
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A"), turn(worker, "b")]);
    assert_eq!(harness.request(client, ask(5, "q", "f")), []);
    assert_eq!(harness.cancel(client, 5), [undelivered(client, 5, Code::Cancelled)]);
    assert_eq!(harness.request(client, ask(6, "q", "g").no_reply()), []);
    assert_eq!(harness.request(client, ask(7, "q", "h")), [undelivered(client, 7, Code::TooManyInFlight)]);
}

/// So many queues, no more; one that is forgotten makes room for another.
#[test]
fn the_limit_of_queues() {
    let mut harness = harness_with(Limits { queues_max: 2, ..Limits::default() });
    let client = harness.client();
    assert_eq!(harness.open(client, 0, "a"), Ok(vec![]));
    assert_eq!(harness.open(client, 1, "b"), Ok(vec![]));
    assert_eq!(harness.open(client, 2, "c"), Err(Code::TooManyQueues));
    assert_eq!(harness.open(client, 2, "a"), Ok(vec![]), "a queue that is there");
    assert_eq!(harness.open(client, 1, "a"), Ok(vec![]), "b is forgotten");
    assert_eq!(harness.open(client, 1, "c"), Ok(vec![]));
}

/// Handles are numbers below a limit, close to those in use, and one that was never opened means nothing.
#[test]
fn the_limit_of_handles() {
    let mut harness = Harness::new();
    let client = harness.client();
    for handle in [limits::HANDLE_GAP_MAX + 1, limits::HANDLES_MAX, u32::MAX] {
        assert_eq!(harness.open(client, handle, "q"), Err(Code::TooManyHandles), "{handle}");
    }
    assert_eq!(harness.status().queues, 0, "nothing came into being");
    let mut highest = limits::HANDLE_GAP_MAX;
    while highest < limits::HANDLES_MAX {
        assert_eq!(harness.open(client, highest, "q"), Ok(vec![]), "{highest}");
        highest += limits::HANDLE_GAP_MAX + 1;
    }
    assert_eq!(highest - limits::HANDLE_GAP_MAX, limits::HANDLES_MAX, "the last one was the highest there is");
    assert_eq!(harness.open(client, limits::HANDLES_MAX, "q"), Err(Code::TooManyHandles));
    for handle in [0, 5, limits::HANDLES_MAX, u32::MAX] {
        let message = Outgoing::new(1, handle, body("x"));
        let refused = [undelivered(client, 1, Code::UnknownHandle)];
        let request = Input::Request { conn: client, message: message.clone() };
        assert_eq!(harness.say(request), refused, "{handle}");
        assert_eq!(harness.say(Input::Send { conn: client, message }), refused, "{handle}");
    }
    assert_eq!(harness.counters().refused, 8);
}

/// Options out of range are refused with a stated code, whatever else is true.
#[test]
fn options_out_of_range_are_refused() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(9, &["q"]), harness.client());
    let refused = [undelivered(client, 1, Code::BadOption)];
    for question in [
        ask(1, "q", "x").priority(10),
        ask(1, "q", "x").priority(255),
        ask(1, "q", "x").cost(0),
        ask(1, "empty", "x").priority(10).cost(0).fail_fast(),
    ] {
        assert_eq!(harness.request(client, question.clone()), refused);
        assert_eq!(harness.try_send(client, question), refused);
    }
    assert_eq!(harness.request(client, ask(1, "q", "x").priority(0).cost(9)), [turn(worker, "x").cost(9)]);
    assert_eq!((harness.counters().refused, harness.counters().requests), (8, 1));
}
