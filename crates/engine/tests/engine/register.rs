//! Workers register, register again, deregister, get lost and come back.

use turno_engine::{Input, WorkerMessage};
use turno_proto::model::view::WorkerState;
use turno_proto::model::{Code, ConnId, Slots, limits};

use crate::harness::{Harness, ask};
use crate::seen::{reply, sent, turn, undelivered};
use crate::views::rota;

/// Proves S0.9, S0.10, S0.11 and S0.23: a worker is recorded with its slots, 10 if it names none, and stands at the
/// end of the rota, which lists everyone with what is in use.
#[test]
fn a_registered_worker_stands_at_the_end_of_the_rota() {
    let mut harness = Harness::new();
    let first = harness.worker(limits::SLOTS, &["q"]);
    let second = harness.worker(3, &["q"]);
    let client = harness.client();
    assert_eq!(harness.rota("q"), rota(&[(first, 0), (second, 0)]));
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(first, "a")]);
    assert_eq!(harness.rota("q"), rota(&[(second, 0), (first, 1)]));
    let views: Vec<_> = harness.consumers("q").into_iter().map(|c| (c.slots, c.used, c.turn, c.in_flight)).collect();
    assert_eq!(views, [(Slots::Limited(3), 0, Some(1), 0), (Slots::Limited(10), 1, Some(2), 1)]);
    let third = harness.worker(1, &["q"]);
    assert_eq!(harness.rota("q"), rota(&[(second, 0), (first, 1), (third, 0)]));
}

/// Proves S0.38 and S1.32: a worker gets nothing before REGISTER and CONSUME, and only from queues it announced.
#[test]
fn only_what_was_announced_is_given() {
    let mut harness = Harness::new();
    let (conn, client) = (harness.client(), harness.client());
    assert_eq!(harness.consume(conn, "q"), Err(Code::NotRegistered));
    assert_eq!(harness.resize(conn, 3), Err(Code::NotRegistered));
    assert_eq!(harness.cancel_queue(conn, "q"), Err(Code::NotRegistered));
    assert_eq!(harness.request(client, ask(1, "q", "a")), []);
    assert_eq!(harness.register(conn, Slots::Limited(5)), Ok(vec![]));
    assert_eq!(harness.consume(conn, "mail"), Ok(vec![]), "another queue's message is not for it");
    assert_eq!(harness.consume(conn, "q"), Ok(vec![turn(conn, "a")]));
    assert_eq!(harness.consume(conn, "q"), Err(Code::AlreadyConsuming));
    assert_eq!(harness.rota("q"), rota(&[(conn, 1)]));
}

/// Proves S1.7: whatever a worker says before its first PING, it is given nothing; the PING itself lets work out.
#[test]
fn no_work_before_the_first_ping() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.connect(), harness.client());
    assert_eq!(harness.register(worker, Slots::Limited(1)), Ok(vec![]));
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(harness.request(client, ask(1, "q", "a")), []);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.resize(worker, 2), Ok(vec![]));
    assert_eq!(harness.register(worker, Slots::Unlimited), Ok(vec![]));
    assert_eq!(harness.pass(3_000), []);
    assert_eq!(harness.worker_view("w0").state, WorkerState::Greeting);
    let left = Some(27_000);
    assert_eq!(harness.ready(worker), [turn(worker, "a").left(left), turn(worker, "b").left(left)]);
    assert_eq!(harness.worker_view("w0").state, WorkerState::Ready);
    assert_eq!(harness.ready(worker), [], "a later PING is a heartbeat, no more");
}

/// Proves S0.12: REGISTER again overwrites the slots and moves the worker to the end; there is no second entry, and
/// what it holds still counts.
#[test]
fn registering_again_overwrites_and_goes_to_the_end() {
    let mut harness = Harness::new();
    let (first, second) = (harness.worker(3, &["q"]), harness.worker(3, &["q"]));
    let client = harness.client();
    for (seq, worker) in [(1, first), (2, second)] {
        assert_eq!(harness.request(client, ask(seq, "q", "a")), [turn(worker, "a")]);
    }
    assert_eq!(harness.rota("q"), rota(&[(first, 1), (second, 1)]));
    assert_eq!(harness.register(first, Slots::Limited(2)), Ok(vec![]));
    assert_eq!(harness.rota("q"), rota(&[(second, 1), (first, 1)]));
    assert_eq!(harness.status().workers, 2);
    assert_eq!(harness.request(client, ask(3, "q", "b")), [turn(second, "b")]);
    assert_eq!(harness.request(client, ask(4, "q", "c")), [turn(first, "c")]);
    assert_eq!(harness.request(client, ask(5, "q", "d")), [turn(second, "d")], "the first is full at 2");
    assert_eq!(harness.request(client, ask(6, "q", "e")), []);
    assert_eq!(harness.reply(first, "a", "A"), [reply(client, 1, "A"), turn(first, "e")]);
}

/// Proves S0.12 and S0.18: REGISTER again with more slots drains the backlog at once; with fewer than are in use
/// nothing comes until enough is settled.
#[test]
fn registering_again_with_work_in_flight() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    for (seq, text) in [(2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        assert_eq!(harness.request(client, ask(seq, "q", text)), []);
    }
    assert_eq!(harness.register(worker, Slots::Limited(3)), Ok(vec![turn(worker, "b"), turn(worker, "c")]));
    assert_eq!(harness.register(worker, Slots::Limited(1)), Ok(vec![]));
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")], "2 in use of 1");
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")], "1 in use of 1");
    assert_eq!(harness.reply(worker, "c", "C"), [reply(client, 3, "C"), turn(worker, "d")]);
}

/// Proves S0.13: 0 slots (as a negative number counts) take no work, until a RESIZE gives some.
#[test]
fn no_slots_take_no_work() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(0, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), []);
    assert_eq!(harness.pass(2_000), []);
    assert_eq!(harness.resize(worker, 1), Ok(vec![turn(worker, "a").left(Some(28_000))]));
}

/// Proves S0.6: an unlimited worker gets everything at once, and only the broker counts: a limited one is never
/// given more than its slots, whatever waits.
#[test]
fn the_broker_alone_enforces_slots() {
    let mut harness = Harness::new();
    let client = harness.client();
    let (limited, _) = harness.joining(Slots::Limited(2), &["q"]);
    for seq in 1..=2 {
        assert_eq!(harness.request(client, ask(seq, "q", "x")), [turn(limited, "x")]);
    }
    for seq in 3..=500 {
        assert_eq!(harness.request(client, ask(seq, "q", "y")), []);
    }
    let (unlimited, got) = harness.joining(Slots::Unlimited, &["q"]);
    assert_eq!(got, vec![turn(unlimited, "y"); 498]);
    assert_eq!(harness.request(client, ask(501, "q", "z").cost(u16::MAX)), [turn(unlimited, "z").cost(u16::MAX)]);
    assert_eq!(harness.rota("q"), rota(&[(limited, 2), (unlimited, 498 + u32::from(u16::MAX))]));
    assert_eq!(harness.status().slots, 2, "unlimited slots are not counted");
}

/// Proves S0.14 and S0.15: DEREGISTER takes the worker out of every rota at once but recalls nothing; the answers
/// still pass, and with the last one the worker is gone.
#[test]
fn deregistering_recalls_nothing() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "mail"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.send(client, ask(2, "mail", "b")).1, [sent(worker, "b").of("mail")]);
    assert_eq!(harness.request(client, ask(3, "q", "c")), []);
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!((harness.rota("q"), harness.rota("mail")), (rota(&[]), rota(&[])));
    assert_eq!(harness.worker_view("w0").state, WorkerState::Draining);
    assert_eq!(harness.consume(worker, "mail"), Err(Code::NotRegistered));
    assert_eq!(harness.deregister(worker), Err(Code::NotRegistered));
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")], "answered, and given nothing new");
    assert_eq!(harness.status().workers, 1);
    assert_eq!(harness.ack(worker, "b"), []);
    assert_eq!(harness.status().workers, 0);
    assert_eq!(harness.deregister(worker), Err(Code::NotRegistered), "no harm");
    assert_eq!(harness.status().counters.late, 0);
}

/// Proves S0.14 and S0.41: a worker that deregistered may register again, also while it still holds something, and
/// has to announce its queues anew.
#[test]
fn registering_after_deregistering() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.register(worker, Slots::Limited(2)), Ok(vec![]));
    assert_eq!(harness.consume(worker, "q"), Ok(vec![turn(worker, "b")]));
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
    assert_eq!(harness.register(worker, Slots::Limited(2)), Ok(vec![]));
    assert_eq!(harness.worker_view("w0").id.0, 2, "a worker that was gone comes back as a new one");
}

/// Proves S0.41 and S2.34: a worker that lost its connection registers on a new one under the same name and gets
/// what went back to the queue.
#[test]
fn a_worker_comes_back_on_a_new_connection() {
    let mut harness = Harness::new();
    let client = harness.client();
    let old = harness.worker(1, &["q"]);
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(old, "a")]);
    assert_eq!(harness.leave(old), []);
    let new = ConnId { index: old.index, generation: 2 };
    harness.connect_as(new);
    assert_eq!(harness.ready(new), []);
    assert_eq!(harness.register(new, Slots::Limited(1)), Ok(vec![]));
    let handle = 4;
    assert_eq!(harness.open(new, handle, "q"), Ok(vec![]));
    assert_eq!(harness.consume(new, "q"), Ok(vec![sent(new, "a")]));
    let stale = Input::worker(old, harness.held(new, "a"), WorkerMessage::Ack);
    assert_eq!(harness.say(stale), [], "the old connection's settlement counts for nothing");
    assert_eq!(harness.counters().forged, 1);
    assert_eq!(harness.ack(new, "a"), []);
    assert_eq!(harness.counters().acked, 1);
}

/// Proves S0.12: two connections with one name are two workers; both work.
#[test]
fn two_workers_may_have_one_name() {
    let mut harness = Harness::new();
    let (first, second, client) = (harness.client(), harness.client(), harness.client());
    for worker in [first, second] {
        assert_eq!(harness.register_named(worker, Slots::Limited(1), "same name"), Ok(vec![]));
        assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    }
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(first, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(second, "b")]);
    let pairs = vec![("same name".to_owned(), 1), ("same name".to_owned(), 1)];
    assert_eq!(harness.rota("q"), pairs);
    assert_eq!(harness.leave(first), [undelivered(client, 1, Code::WorkerLost)]);
    assert_eq!(harness.rota("q"), pairs[1..]);
}

/// Proves S0.14: CANCEL_QUEUE leaves one queue only, and again or of a queue not consumed it does no harm.
#[test]
fn leaving_one_queue() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "mail"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.cancel_queue(worker, "q"), Ok(vec![]));
    assert_eq!(harness.cancel_queue(worker, "q"), Err(Code::NotFound));
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.request(client, ask(3, "mail", "c")), [turn(worker, "c").of("mail")]);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.consume(worker, "q"), Ok(vec![turn(worker, "b")]));
    let unopened = |seq| Input::CancelQueue { conn: worker, seq, handle: 99 };
    assert_eq!(harness.control(unopened), Err(Code::UnknownHandle));
    assert_eq!(
        harness.control(|seq| Input::Consume { conn: worker, seq, handle: 99, exclusive: false }),
        Err(Code::UnknownHandle)
    );
}

/// A worker that says CLOSING gets nothing new; what it has it finishes.
#[test]
fn a_worker_that_says_closing_finishes_what_it_has() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.say(Input::PeerClosing { conn: worker }), []);
    assert_eq!(harness.say(Input::PeerClosing { conn: client }), [], "a client's CLOSING changes nothing here");
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    let other = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(other.1, [turn(other.0, "b")]);
    assert_eq!(harness.leave(worker), []);
}
