//! Workers that give slots back themselves: an answer does not, and no answer is needed for it.

use turno_engine::Input;
use turno_proto::model::reason::Reason;
use turno_proto::model::view::MessageState;
use turno_proto::model::{Code, ConnId, Slots, WorkerId};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, delivered, drained, reply, sent, turn, undelivered};

/// Such a worker with that many slots, in the queue `q`.
fn keeping_worker(harness: &mut Harness, slots: u32) -> ConnId {
    let conn = harness.client();
    assert_eq!(register(harness, conn, slots), []);
    assert_eq!(harness.consume(conn, "q"), Ok(vec![]));
    conn
}

fn register(harness: &mut Harness, conn: ConnId, slots: u32) -> Vec<Seen> {
    let slots = Slots::Limited(slots);
    let register = |seq| Input::RegisterKeeping { conn, seq, slots, name: String::new() };
    harness.control(register).expect("anybody may register")
}

fn give_back(harness: &mut Harness, conn: ConnId) -> Vec<Seen> {
    harness.say(Input::GiveBack { conn })
}

fn late(harness: &mut Harness) -> u64 {
    harness.counters().late
}

/// Proves S0.16, S0.17, S0.18 and S0.20: an answer reaches its caller at once and frees no slot; the slot that is given back
/// goes to the message that waits.
#[test]
fn an_answered_delivery_keeps_its_slot_until_it_is_given_back() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 1), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    let id = harness.id(worker, "a");
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")], "the answer alone");
    let explanation = harness.explain(id);
    assert_eq!(explanation.message.state, MessageState::Answered);
    assert_eq!(explanation.because.0, Reason::Answered { worker: WorkerId(1) });
    assert_eq!((harness.status().slots_used, harness.status().ready), (1, 1));
    assert_eq!(give_back(&mut harness, worker), [turn(worker, "b")]);
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
    assert_eq!(give_back(&mut harness, worker), []);
    assert_eq!((harness.status().slots_used, harness.counters().replied, late(&mut harness)), (0, 2, 0));
}

/// Proves S0.16 and S0.17: a worker may be free without an answer; the answer can still come, and frees nothing more.
#[test]
fn a_slot_given_back_before_the_answer_leaves_the_delivery_answerable() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 1), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(give_back(&mut harness, worker), [turn(worker, "b")]);
    assert_eq!(harness.request(client, ask(3, "q", "c")), [], "the slot of b is in use");
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")], "and its own was given back already");
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
    assert_eq!(give_back(&mut harness, worker), [turn(worker, "c")]);
    assert_eq!(late(&mut harness), 0);
}

/// Proves S0.17: what is given back beyond the slots counts as late and changes nothing, for whichever connection.
#[test]
fn giving_back_beyond_the_slots_changes_nothing() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 2), harness.client());
    let native = harness.worker(1, &["other"]);
    assert_eq!(harness.request(client, ask(1, "other", "x")), [turn(native, "x").of("other")]);
    for (count, conn) in (1..).zip([worker, native, client, worker]) {
        assert_eq!(give_back(&mut harness, conn), []);
        assert_eq!(late(&mut harness), count);
    }
    assert_eq!(harness.status().slots_used, 1, "a worker of another kind keeps what it holds");
    for (seq, text) in [(2, "a"), (3, "b")] {
        assert_eq!(harness.request(client, ask(seq, "q", text)), [turn(worker, text)]);
    }
    assert_eq!(harness.request(client, ask(4, "q", "c")), [], "two slots, not three");
    assert_eq!(give_back(&mut harness, worker), [turn(worker, "c")]);
    for _ in 0..2 {
        assert_eq!(give_back(&mut harness, worker), []);
    }
    assert_eq!((harness.status().slots_used, late(&mut harness)), (1, 4), "of three deliveries none has slots");
    assert_eq!(give_back(&mut harness, worker), []);
    assert_eq!(late(&mut harness), 5);
}

/// Proves S1.30: the second answer to a delivery is doubled, whether or not its slot was given back between them.
#[test]
fn a_second_answer_is_dropped() {
    for gives_back in [false, true] {
        let mut harness = Harness::new();
        let (worker, client) = (keeping_worker(&mut harness, 2), harness.client());
        assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
        assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
        if gives_back {
            assert_eq!(give_back(&mut harness, worker), []);
        }
        assert_eq!(harness.reply(worker, "a", "A"), []);
        assert_eq!(harness.counters().doubled, 1);
        assert_eq!(harness.status().slots_used, u64::from(!gives_back));
    }
}

/// Proves S0.16: of a request without a reply, the slot that is given back is all that comes.
#[test]
fn a_request_without_a_reply_ends_with_its_slot() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 1), harness.client());
    let told = [turn(worker, "a").one_way(), delivered(client, 1)];
    assert_eq!(harness.request(client, ask(1, "q", "a").no_reply()), told);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(give_back(&mut harness, worker), [turn(worker, "b")]);
    assert_eq!((harness.counters().acked, harness.status().slots_used), (1, 1));
}

/// A send is settled by its answer alone: a slot that is given back names no delivery, and what is acknowledged must be done.
#[test]
fn a_send_is_settled_by_its_answer_alone() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 2), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a").retries(1)).1, [sent(worker, "a")]);
    assert_eq!(harness.send(client, ask(2, "q", "b").retries(1)).1, [sent(worker, "b")]);
    assert_eq!(harness.reply(worker, "b", ""), []);
    assert_eq!(give_back(&mut harness, worker), []);
    assert_eq!(give_back(&mut harness, worker), [], "it is free, and has not said that a is done");
    assert_eq!(harness.status().slots_used, 0);
    let other = harness.worker(1, &["q"]);
    assert_eq!(harness.leave(worker), [sent(other, "a").attempt(2)], "so that a goes to another");
}

/// Proves S0.12: REGISTER again overwrites the slots; those of deliveries that it holds stay in use.
#[test]
fn registering_again_overwrites_the_slots_beside_work_in_flight() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 2), harness.client());
    for (seq, text) in [(1, "a"), (2, "b")] {
        assert_eq!(harness.request(client, ask(seq, "q", text)), [turn(worker, text)]);
    }
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.request(client, ask(3, "q", "c")), []);
    assert_eq!(register(&mut harness, worker, 3), [turn(worker, "c")], "two of three are in use");
    assert_eq!(register(&mut harness, worker, 1), []);
    assert_eq!(harness.request(client, ask(4, "q", "d")), []);
    assert_eq!(give_back(&mut harness, worker), [], "three in use, then two");
    assert_eq!(give_back(&mut harness, worker), []);
    assert_eq!(give_back(&mut harness, worker), [turn(worker, "d")]);
    assert_eq!(register(&mut harness, worker, 0), []);
    assert_eq!(give_back(&mut harness, worker), []);
    assert_eq!(harness.request(client, ask(5, "q", "e")), [], "without slots it gets nothing");
}

/// Proves S0.15: DEREGISTER recalls nothing: what is not answered can be; what is answered needs no slot any more.
#[test]
fn a_worker_that_deregistered_can_answer_what_it_holds() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 4), harness.client());
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        assert_eq!(harness.request(client, ask(seq, "q", text)), [turn(worker, text)]);
    }
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    let stopped = [undelivered(client, 2, Code::Cancelled), harness.stopped(worker, "b", Code::Cancelled)];
    assert_eq!(harness.cancel(client, 2), stopped);
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!(harness.status().in_flight, 2, "c and d");
    assert_eq!(give_back(&mut harness, worker), [], "the slot of d");
    assert_eq!(harness.reply(worker, "c", "C"), [reply(client, 3, "C")]);
    assert_eq!(harness.reply(worker, "d", "D"), [reply(client, 4, "D")]);
    assert_eq!((harness.status().workers, harness.status().in_flight), (0, 0), "it is no worker any more");
    assert_eq!(register(&mut harness, worker, 1), [], "but may be one again");
}

/// It cannot be told to stop: what ended for its caller keeps its slot until the worker gives it back, however long that takes.
#[test]
fn what_ended_for_its_caller_keeps_its_slot() {
    for answers in [false, true] {
        let mut harness = Harness::new();
        let (worker, client) = (keeping_worker(&mut harness, 1), harness.client());
        assert_eq!(harness.request(client, ask(1, "q", "a").within(100)), [turn(worker, "a").left(Some(100))]);
        assert_eq!(harness.send(client, ask(2, "q", "b")).1, []);
        let told = [undelivered(client, 1, Code::TimedOut), harness.stopped(worker, "a", Code::TimedOut)];
        assert_eq!(harness.pass(100), told);
        assert_eq!(harness.pass(3_600_000), []);
        assert_eq!(harness.status().slots_used, 1);
        if answers {
            assert_eq!(harness.reply(worker, "a", "A"), []);
            assert_eq!((late(&mut harness), harness.status().slots_used), (1, 1));
        }
        assert_eq!(give_back(&mut harness, worker), [sent(worker, "b")]);
    }
}

/// A delivery without slots that ends for its caller is forgotten after the usual grace.
#[test]
fn what_ended_after_its_slot_was_given_back_is_forgotten() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 1), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(give_back(&mut harness, worker), []);
    let told = [undelivered(client, 1, Code::Cancelled), harness.stopped(worker, "a", Code::Cancelled)];
    assert_eq!(harness.cancel(client, 1), told);
    assert_eq!(harness.status().in_flight, 1);
    assert_eq!(harness.pass(10_000), []);
    assert_eq!(harness.status().in_flight, 0);
    assert_eq!(harness.reply(worker, "a", "A"), []);
    assert_eq!(late(&mut harness), 1);
}

/// A worker that is lost takes nothing with it but what is answered.
#[test]
fn a_lost_worker_leaves_what_is_not_answered() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 3), harness.client());
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(harness.request(client, ask(seq, "q", text).retries(1)), [turn(worker, text)]);
    }
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
    let other = harness.worker(0, &["q"]);
    assert_eq!(harness.leave(worker), []);
    assert_eq!((harness.status().ready, harness.status().in_flight), (2, 0));
    let got = harness.resize(other, 2).expect("it may");
    assert_eq!(got, [turn(other, "a").attempt(2), turn(other, "c").attempt(2)]);
}

/// The broker does not wait for slots when it ends: their callers have their answers.
#[test]
fn an_answered_delivery_does_not_hold_up_a_drain() {
    let mut harness = Harness::new();
    let (worker, client) = (keeping_worker(&mut harness, 2), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(worker, "b")]);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    harness.say(Input::Drain { within_ms: 60_000 });
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B"), drained(0, 0, 0)]);
}
