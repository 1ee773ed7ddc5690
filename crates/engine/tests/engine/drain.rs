//! Ending in order.

use turno_engine::Input;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::Reason;
use turno_proto::model::{ClosingReason, Code, ConnId, Slots};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, closing, delivered, drained, failed, reply, sent, turn, undelivered};

fn drain(harness: &mut Harness, within_ms: u64) -> Vec<Seen> {
    harness.say(Input::Drain { within_ms })
}

fn shutdown(conn: ConnId, within_ms: u64) -> Seen {
    closing(conn, ClosingReason::Shutdown, within_ms)
}

/// Proves S2.16: an idle broker tells every connection first, whatever it is, then is done at once.
#[test]
fn an_idle_broker_is_drained_at_once() {
    let mut harness = Harness::new();
    assert_eq!(drain(&mut harness, 30_000), [drained(0, 0, 0)]);
    assert_eq!(drain(&mut harness, 30_000), [], "once");

    let mut harness = Harness::new();
    let (client, worker, greeting) = (harness.client(), harness.worker(1, &["q"]), harness.connect());
    let expected = [shutdown(client, 5), shutdown(worker, 5), shutdown(greeting, 5), drained(0, 0, 0)];
    assert_eq!(drain(&mut harness, 5), expected);
    assert_eq!(harness.engine.next_deadline(), None);
}

/// Proves S2.16 and S2.17: CLOSING comes first; what was never delivered is returned; new messages are refused;
/// what runs may finish, and then it is over, once.
#[test]
fn a_drain_with_everything() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(3, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.send(client, ask(2, "q", "b")).1, [sent(worker, "b")]);
    assert_eq!(
        harness.request(client, ask(3, "q", "c").no_reply()),
        [turn(worker, "c").one_way(), delivered(client, 3)]
    );
    assert_eq!(harness.request(client, ask(4, "q", "waits")), []);
    assert_eq!(harness.request(client, ask(5, "q", "waits too").no_reply()), []);
    let (kept, _) = harness.send(client, ask(6, "q", "kept"));
    assert_eq!(
        drain(&mut harness, 30_000),
        [
            shutdown(worker, 30_000),
            shutdown(client, 30_000),
            undelivered(client, 4, Code::Closing),
            undelivered(client, 5, Code::Closing),
        ]
    );
    let refused = [undelivered(client, 7, Code::Closing)];
    assert_eq!(harness.request(client, ask(7, "q", "new")), refused);
    assert_eq!(harness.try_send(client, ask(7, "q", "new")), refused);
    assert_eq!(harness.explain(kept).because.0, Reason::Draining);
    assert!(harness.status().draining);
    assert_eq!(harness.ack(worker, "b"), [], "its slot is free, but nothing new goes out");
    assert_eq!(harness.resize(worker, 9), Ok(vec![]));
    assert_eq!(harness.pass(10_000), []);
    assert_eq!(harness.ack(worker, "c"), []);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A"), drained(2, 0, 1)]);
    assert_eq!(harness.pass(60_000), []);
    assert_eq!((harness.engine.in_flight(), harness.engine.held_in_memory()), (0, 1));
}

/// Proves S2.17, I12 and I13: at the deadline callers of what still runs are told, once: a reply after that reaches
/// nobody, and neither does the request's own deadline.
#[test]
fn a_drain_that_is_cut_short() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(4, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").within(60_000)), [turn(worker, "a").left(Some(60_000))]);
    assert_eq!(harness.request(client, ask(2, "q", "b").within(60_000)), [turn(worker, "b").left(Some(60_000))]);
    assert_eq!(harness.send(client, ask(3, "q", "c")).1, [sent(worker, "c")]);
    assert_eq!(drain(&mut harness, 30_000), [shutdown(worker, 30_000), shutdown(client, 30_000)]);
    assert_eq!(harness.pass(29_999), []);
    let told = [undelivered(client, 1, Code::CutShort), undelivered(client, 2, Code::CutShort), drained(0, 3, 0)];
    assert_eq!(harness.pass(1), told);
    assert_eq!(harness.reply(worker, "a", "A"), [], "it was told already");
    assert_eq!(harness.pass(40_000), [harness.stopped(worker, "b", Code::TimedOut)]);
    assert_eq!(harness.counters().unclaimed, 1);
}

/// Proves S2.17: a request whose time is up, or whose worker is lost, ends during the drain as it would have, and
/// the drain with the last one.
#[test]
fn what_runs_may_time_out_during_the_drain() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").within(5_000)), [turn(worker, "a").left(Some(5_000))]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(worker, "b")]);
    assert_eq!(drain(&mut harness, 30_000), [shutdown(worker, 30_000), shutdown(client, 30_000)]);
    let told = [undelivered(client, 1, Code::TimedOut), harness.stopped(worker, "a", Code::TimedOut)];
    assert_eq!(harness.pass(5_000), told);
    assert_eq!(harness.leave(worker), [undelivered(client, 2, Code::WorkerLost), drained(0, 0, 0)]);
}

/// Proves S2.17, I13 and I15: nothing is tried again during a drain. A request whose attempt failed ends with that
/// failure, because `closing` would make its caller start all attempts anew elsewhere; one that was given back
/// unfinished goes back to its caller; a send stays in memory, however it came back.
#[test]
fn nothing_is_tried_again_during_a_drain() {
    for way in ["fail", "lost", "given back"] {
        let mut harness = Harness::new();
        let (worker, client) = (harness.worker(2, &["q"]), harness.client());
        let _idle = harness.worker(2, &["q"]);
        assert_eq!(harness.request(client, ask(1, "q", "a").retries(9)), [turn(worker, "a")]);
        assert_eq!(harness.resize(ConnId { index: 2, generation: 1 }, 0), Ok(vec![]));
        assert_eq!(harness.send(client, ask(2, "q", "b")).1, [sent(worker, "b")]);
        assert_eq!(drain(&mut harness, 30_000).len(), 3);
        match way {
            "fail" => {
                assert_eq!(harness.fail(worker, "a", "no"), [failed(client, 1, "no")]);
                assert_eq!(harness.fail(worker, "b", "no"), [drained(0, 0, 1)]);
            }
            "lost" => {
                let lost = undelivered(client, 1, Code::WorkerLost);
                assert_eq!(harness.leave(worker), [lost, drained(0, 0, 1)]);
            }
            _ => {
                let stop = AdminCall::WorkerStop { worker: "w0".to_owned(), now: true };
                assert_eq!(harness.admin(stop).1[1..], [undelivered(client, 1, Code::Closing), drained(1, 0, 1)]);
            }
        }
    }
}

/// Proves S2.17 and I15: a worker gives back a second attempt during a drain. The first one was made, so `closing` would
/// promise too much.
#[test]
fn a_second_attempt_given_back_is_cut_short() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").retries(9)), [turn(worker, "a")]);
    assert_eq!(harness.fail(worker, "a", "no"), [turn(worker, "a").attempt(2)]);
    assert_eq!(drain(&mut harness, 30_000).len(), 2);
    let stop = AdminCall::WorkerStop { worker: "w0".to_owned(), now: true };
    assert_eq!(harness.admin(stop).1[1..], [undelivered(client, 1, Code::CutShort), drained(1, 0, 0)]);
}

/// Proves S2.17: a failure for good is told as it is, also during a drain.
#[test]
fn a_failure_during_the_drain() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(drain(&mut harness, 30_000).len(), 2);
    assert_eq!(harness.fail(worker, "a", "no"), [failed(client, 1, "no"), drained(0, 0, 0)]);
}

/// Proves S2.17: a costly head that kept a worker waits no more; what a lost worker had comes back before it and
/// nobody is kept for anything.
#[test]
fn reservations_end_with_a_drain() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "other"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    assert_eq!(harness.send(client, ask(2, "q", "dear").cost(2)).1, []);
    assert_eq!(drain(&mut harness, 30_000), [shutdown(worker, 30_000), shutdown(client, 30_000)]);
    assert_eq!(harness.fail(worker, "a", "no"), [drained(0, 0, 2)]);
}

/// Proves S2.16: who connects during the drain is told at once how long it will take, and may look but not ask.
#[test]
fn connecting_during_a_drain() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(drain(&mut harness, 30_000).len(), 2);
    assert_eq!(harness.pass(10_000), []);
    let late = ConnId { index: 9, generation: 1 };
    let connected = Input::Connected { conn: late, name: "late".to_owned(), address: String::new() };
    assert_eq!(harness.say(connected), [shutdown(late, 20_000)]);
    assert_eq!(harness.register(late, Slots::Limited(1)), Ok(vec![]));
    assert_eq!(harness.consume(late, "q"), Ok(vec![]));
    assert_eq!(harness.request(late, ask(1, "q", "b")), [undelivered(late, 1, Code::Closing)]);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A"), drained(0, 0, 0)]);
}

/// Proves S2.17 and I15: a waiting request that a worker had already begun with is cut short, not given back as
/// untouched: its caller would start all its attempts anew at the next broker. Found by the simulator, seed 100154.
#[test]
fn what_was_begun_is_not_given_back_as_untouched() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "begun").retries(1)), [turn(worker, "begun")]);
    assert_eq!(harness.request(client, ask(2, "q", "untouched").retries(1)), []);
    assert_eq!(harness.leave(worker), [], "both wait, one of them for its second attempt");
    let told = drain(&mut harness, 30_000);
    let begun = undelivered(client, 1, Code::CutShort);
    let untouched = undelivered(client, 2, Code::Closing);
    assert_eq!(told[1..], [begun, untouched, drained(2, 0, 0)]);
}

/// What an admin is answered to a call that changes the broker as a whole: draining, for maintenance, and what follows.
fn change(harness: &mut Harness, call: AdminCall) -> (Result<(bool, bool), Code>, Vec<Seen>) {
    let (answer, seen) = harness.admin(call);
    let state = answer.map(|answer| match answer {
        AdminAnswer::Status { broker } => (broker.draining, broker.maintenance),
        other => panic!("{other:?} is no status"),
    });
    (state, seen)
}

fn maintenance(conn: ConnId) -> Seen {
    closing(conn, ClosingReason::Maintenance, 0)
}

fn resumed(conn: ConnId) -> Seen {
    closing(conn, ClosingReason::Resumed, 0)
}

/// Proves S2.16, S2.17 and I15: for maintenance everyone is told, what was never delivered goes back to its caller, what
/// runs may finish without a limit, nothing is taken or handed out, and questions are answered. Then all of it goes on:
/// sends in their order, and nothing twice.
#[test]
fn maintenance_and_back() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(
        harness.request(client, ask(1, "q", "runs").within(900_000)),
        [turn(worker, "runs").left(Some(900_000))]
    );
    assert_eq!(harness.request(client, ask(2, "q", "waits")), []);
    let (kept, _) = harness.send(client, ask(3, "q", "kept"));
    harness.send(client, ask(4, "q", "kept too"));
    let told = vec![maintenance(worker), maintenance(client), undelivered(client, 2, Code::Closing)];
    assert_eq!(change(&mut harness, AdminCall::Drain), (Ok((true, true)), told));
    assert_eq!(change(&mut harness, AdminCall::Drain), (Ok((true, true)), vec![]), "once");
    assert_eq!(harness.explain(kept).because.0, Reason::Maintenance);
    let refused = [undelivered(client, 5, Code::Closing)];
    assert_eq!(harness.request(client, ask(5, "q", "new")), refused);
    assert_eq!(harness.try_send(client, ask(5, "q", "new")), refused);
    let late = ConnId { index: 9, generation: 1 };
    let connected = Input::Connected { conn: late, name: "late".to_owned(), address: String::new() };
    assert_eq!(harness.say(connected), [maintenance(late)]);
    assert_eq!(harness.pass(800_000), []);
    assert_eq!(harness.reply(worker, "runs", "done"), [reply(client, 1, "done")], "and the drain is not over with it");
    assert_eq!(harness.status().ready, 2);

    let told = vec![resumed(worker), resumed(client), resumed(late), sent(worker, "kept")];
    assert_eq!(change(&mut harness, AdminCall::Resume), (Ok((false, false)), told));
    assert_eq!(change(&mut harness, AdminCall::Resume), (Ok((false, false)), vec![]), "once");
    assert_eq!(harness.ack(worker, "kept"), [sent(worker, "kept too")]);
    assert_eq!(harness.ack(worker, "kept too"), []);
    assert_eq!(harness.request(client, ask(6, "q", "new")), [turn(worker, "new")]);
}

/// Proves S2.16 and S2.17: a broker that is drained for maintenance still ends in order, and one that ends can be neither
/// drained for maintenance nor told to go on.
#[test]
fn the_end_of_a_drained_broker() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "runs")), [turn(worker, "runs")]);
    let told = vec![maintenance(worker), maintenance(client)];
    assert_eq!(change(&mut harness, AdminCall::Drain), (Ok((true, true)), told));
    assert_eq!(drain(&mut harness, 30_000), [shutdown(worker, 30_000), shutdown(client, 30_000)]);
    for call in [AdminCall::Drain, AdminCall::Resume] {
        assert_eq!(change(&mut harness, call), (Err(Code::Closing), vec![]));
    }
    assert!(!harness.status().maintenance);
    assert_eq!(harness.reply(worker, "runs", "done"), [reply(client, 1, "done"), drained(0, 0, 0)]);
    assert_eq!(change(&mut harness, AdminCall::Resume), (Err(Code::Closing), vec![]));

    let mut harness = Harness::new();
    assert_eq!(change(&mut harness, AdminCall::Drain), (Ok((true, true)), vec![]), "nobody to tell, nothing is over");
    assert_eq!(drain(&mut harness, 30_000), [drained(0, 0, 0)]);
}

/// Proves S2.17, I13 and I15: nothing is tried again during maintenance: a request whose attempt fails ends with that
/// failure; a send whose worker is lost waits, counted, and goes to another once work is welcome again.
#[test]
fn failures_during_maintenance() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").retries(9)), [turn(worker, "a")]);
    assert_eq!(harness.send(client, ask(2, "q", "b")).1, [sent(worker, "b")]);
    let other = harness.worker(2, &["q"]);
    assert_eq!(change(&mut harness, AdminCall::Drain).1.len(), 3);
    assert_eq!(harness.fail(worker, "a", "no"), [failed(client, 1, "no")]);
    assert_eq!(harness.leave(worker), []);
    let told = vec![resumed(client), resumed(other), sent(other, "b").attempt(2)];
    assert_eq!(change(&mut harness, AdminCall::Resume).1, told);
}

/// Proves S2.18: a worker that says CLOSING gets nothing new; what it holds it finishes, and its reply counts; what waits
/// goes to others; a costly head that kept it free finds another.
#[test]
fn a_worker_that_closes() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "dear").cost(2)), []);
    assert_eq!(harness.say(Input::PeerClosing { conn: worker }), []);
    assert_eq!(harness.request(client, ask(3, "q", "b")), [], "behind the costly one");
    let (other, got) = harness.joining(Slots::Limited(3), &["q"]);
    assert_eq!(got, [turn(other, "dear").cost(2), turn(other, "b")]);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.request(client, ask(4, "q", "c")), [], "there is room, but not for new work");
    assert_eq!(harness.leave(worker), []);
    assert_eq!(harness.reply(other, "b", "B"), [reply(client, 3, "B"), turn(other, "c")]);
}

/// Proves S0.12: a worker that said CLOSING and registers again takes new work.
#[test]
fn a_worker_that_closes_and_registers_again() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.say(Input::PeerClosing { conn: worker }), []);
    assert_eq!(harness.request(client, ask(1, "q", "a")), []);
    assert_eq!(harness.register(worker, Slots::Limited(2)), Ok(vec![turn(worker, "a")]));
}
