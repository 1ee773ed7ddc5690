//! A request and its reply.

use turno_engine::Input;
use turno_proto::model::{Code, ConnId, Slots};

use crate::harness::{Harness, ask};
use crate::seen::{delivered, piece, reply, turn, undelivered};

/// Proves S0.32, S0.33, S0.34, S1.31 and I12: a request goes to a worker, a reply goes to the caller and nobody
/// else; many callers may use one number, and each gets its own answer.
#[test]
fn a_reply_finds_its_caller() {
    let mut harness = Harness::new();
    let worker = harness.worker(9, &["q"]);
    let clients = [harness.client(), harness.client(), harness.client()];
    for client in clients {
        let text = client.index.to_string();
        assert_eq!(harness.request(client, ask(1, "q", &text)), [turn(worker, &text)]);
    }
    for client in [clients[2], clients[0], clients[1]] {
        let text = client.index.to_string();
        assert_eq!(harness.reply(worker, &text, &text), [reply(client, 1, &text)]);
    }
    assert_eq!(harness.counters().replied, 3);
}

/// Proves S1.27: the entry is there before the worker can answer: a reply in the very next step finds it.
#[test]
fn a_worker_may_answer_at_once() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    for seq in 0..50 {
        assert_eq!(harness.request(client, ask(seq, "q", "a")), [turn(worker, "a")]);
        assert_eq!(harness.status().in_flight, 1);
        assert_eq!(harness.reply(worker, "a", "A"), [reply(client, seq, "A")]);
        assert_eq!(harness.status().in_flight, 0);
    }
}

/// Proves S1.31: pieces of an answer reach the caller in order and keep the slot; the last one ends the request.
#[test]
fn an_answer_may_come_in_pieces() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(4, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(5, "q", "b")), []);
    assert_eq!(harness.piece(worker, "a", "one"), [piece(client, 4, "one")]);
    assert_eq!(harness.piece(worker, "a", "two"), [piece(client, 4, "two")]);
    assert_eq!(harness.reply(worker, "a", "end"), [reply(client, 4, "end"), turn(worker, "b")]);
    assert_eq!(harness.piece(worker, "a", "more"), []);
    assert_eq!(harness.counters().doubled, 1);
}

/// Proves S0.37: a worker that only acknowledges a request has answered it with nothing.
#[test]
fn an_acknowledged_request_has_an_empty_reply() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.ack(worker, "a"), [reply(client, 1, "")]);
    let counters = harness.counters();
    assert_eq!((counters.replied, counters.acked), (1, 0));
}

/// Proves S0.36, S1.35 and I12: the reply to a caller that is gone is dropped and counted; the slot is free, the
/// entry gone, and a new connection in the same place hears nothing.
#[test]
fn a_reply_to_a_gone_caller_is_dropped() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.leave(client), []);
    assert_eq!(harness.status().in_flight, 1, "the worker goes on");
    let reused = ConnId { index: client.index, generation: 2 };
    harness.connect_as(reused);
    assert_eq!(harness.piece(worker, "a", "piece"), []);
    assert_eq!(harness.reply(worker, "a", "A"), []);
    let view = harness.status();
    assert_eq!((view.counters.unclaimed, view.in_flight, view.slots_used), (1, 0, 0));
}

/// Proves S1.35: requests of a gone caller that still wait are never delivered; sends of it are.
#[test]
fn waiting_requests_end_with_their_caller() {
    let mut harness = Harness::new();
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a")), []);
    let (_, got) = harness.send(client, ask(2, "q", "kept"));
    assert_eq!(got, []);
    assert_eq!(harness.request(client, ask(3, "q", "b").no_reply()), []);
    assert_eq!(harness.leave(client), []);
    let (worker, got) = harness.joining(Slots::Limited(5), &["q"]);
    assert_eq!(got, [crate::seen::sent(worker, "kept")]);
    assert_eq!(harness.status().in_flight, 1);
}

/// Proves S1.33, S2.38 and I13: without a worker a request waits 30 s, not less and not more, then fails as timed
/// out; one with a deadline of its own has that.
#[test]
fn a_request_waits_thirty_seconds_for_a_worker() {
    let mut harness = Harness::new();
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a")), []);
    assert_eq!(harness.request(client, ask(2, "q", "b").within(31_500)), []);
    assert_eq!(harness.pass(29_999), []);
    assert_eq!(harness.pass(1), [undelivered(client, 1, Code::TimedOut)]);
    assert_eq!(harness.pass(1_499), []);
    assert_eq!(harness.pass(1), [undelivered(client, 2, Code::TimedOut)]);
    assert_eq!((harness.status().ready, harness.counters().expired), (0, 2));
}

/// A caller that asked not to wait fails at once where nobody consumes, and waits for a slot where somebody does.
#[test]
fn failing_fast_without_a_responder() {
    let mut harness = Harness::new();
    let client = harness.client();
    let refused = [undelivered(client, 1, Code::NoResponder)];
    assert_eq!(harness.request(client, ask(1, "q", "a").fail_fast()), refused);
    let worker = harness.worker(1, &["q"]);
    assert_eq!(harness.request(client, ask(2, "q", "b").fail_fast()), [turn(worker, "b")]);
    assert_eq!(harness.request(client, ask(3, "q", "c").fail_fast()), [], "busy is not missing");
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!(harness.request(client, ask(1, "q", "d").fail_fast()), refused, "the last one left");
    assert_eq!(harness.counters().refused, 2);
}

/// Proves S2.11 and S2.12: a no-reply request is over for its caller when it is written to a worker, which frees
/// its bytes and its place among the caller's; the worker's slot is its own until it says that it is done.
#[test]
fn a_no_reply_request_is_freed_when_written() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let long = "x".repeat(10_000);
    let expected = [turn(worker, &long).one_way(), delivered(client, 1)];
    assert_eq!(harness.request(client, ask(1, "q", &long).no_reply()), expected);
    assert_eq!(harness.status().bytes, 128, "only what holds the slot is left");
    assert_eq!(harness.cancel(client, 1), [], "nothing is left to cancel");
    assert_eq!(harness.request(client, ask(2, "q", "b").no_reply()), []);
    assert_eq!(harness.reply(worker, &long, "unwanted"), [turn(worker, "b").one_way(), delivered(client, 2)]);
    assert_eq!(harness.leave(client), []);
    assert_eq!(harness.ack(worker, "b"), []);
    let view = harness.status();
    assert_eq!((view.bytes, view.in_flight, view.slots_used), (0, 0, 0));
    assert_eq!((view.counters.replied, view.counters.acked), (1, 1));
}

/// Proves S2.11 and I13: a no-reply request that expires while it waits has its one outcome all the same: it was
/// not written to anyone.
#[test]
fn a_no_reply_request_expires_while_it_waits() {
    let mut harness = Harness::new();
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a").no_reply().within(700)), []);
    assert_eq!(harness.pass(699), []);
    assert_eq!(harness.pass(1), [undelivered(client, 1, Code::TimedOut)]);
    assert_eq!((harness.status().ready, harness.counters().expired), (0, 1));
}

/// Proves I12: a number used twice at a time is the caller's affair: both requests end, each once.
#[test]
fn a_number_in_use_twice_ends_twice() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(1, "q", "b")), [turn(worker, "b")]);
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 1, "B")]);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
}

/// Proves I12: what comes from a connection the engine does not know is refused or ignored, and changes nothing.
#[test]
fn strangers_change_nothing() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let conn = ConnId { index: worker.index, generation: 9 };
    let message = ask(4, "q", "x").message;
    let request = Input::Request { conn, message: message.clone() };
    assert_eq!(harness.say(request), [undelivered(conn, 4, Code::CallerGone)]);
    assert_eq!(harness.say(Input::Send { conn, message }), [undelivered(conn, 4, Code::CallerGone)]);
    let delivery = harness.held(worker, "a");
    assert_eq!(harness.reply_to(conn, delivery, "stolen"), []);
    for input in [
        Input::Ready { conn },
        Input::Cancel { conn, seq: 1 },
        Input::PeerClosing { conn },
        Input::Disconnected { conn },
        Input::Register { conn, seq: 1, slots: Slots::Unlimited, name: String::new() },
    ] {
        assert_eq!(harness.say(input.clone()), [], "{input:?}");
    }
    assert_eq!(harness.control(|seq| Input::Resize { conn, seq, slots: Slots::Unlimited }), Err(Code::NotRegistered));
    assert_eq!(harness.control(|seq| Input::Deregister { conn, seq }), Err(Code::NotRegistered));
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
}
