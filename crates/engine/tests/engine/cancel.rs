//! Ending a message before its time.

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, MessageId, Seconds, Slots, WorkerId, limits};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, delivered, reply, sent, turn, undelivered};

/// A message ended by an admin: why it was where it was, and what follows.
fn cancel(harness: &mut Harness, id: MessageId) -> (Result<Reason, Code>, Vec<Seen>) {
    let (answer, seen) = harness.admin(AdminCall::MessageCancel { id: id.to_string() });
    let reason = answer.map(|answer| match answer {
        AdminAnswer::Message { explanation } => explanation.because.0,
        other => panic!("{other:?} is no message"),
    });
    (reason, seen)
}

/// Proves I12 and S0.28: a caller takes its own waiting request back; it is never delivered, the rest keeps its
/// order, and a second CANCEL finds nothing.
#[test]
fn a_waiting_request_is_taken_back() {
    let mut harness = Harness::new();
    let (client, other) = (harness.client(), harness.client());
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(harness.request(client, ask(seq, "q", text)), []);
    }
    assert_eq!(harness.cancel(other, 2), [], "it is not theirs");
    assert_eq!(harness.cancel(client, 9), [], "no such request");
    assert_eq!(harness.cancel(client, 2), [undelivered(client, 2, Code::Cancelled)]);
    assert_eq!(harness.cancel(client, 2), []);
    let (worker, got) = harness.joining(Slots::Limited(3), &["q"]);
    assert_eq!(got, [turn(worker, "a"), turn(worker, "c")]);
    assert_eq!(harness.counters().cancelled, 1);
}

/// Proves I11 and I12: what waited behind a request that is taken back goes out at once, if it fits where that did not.
#[test]
fn what_waited_behind_it_goes_on() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "too large for all").cost(2)), []);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.cancel(client, 1), [undelivered(client, 1, Code::Cancelled), turn(worker, "b")]);
}

/// Proves I9 and I12: a running request is over for its caller at once; its worker is told and keeps the slots
/// until it has stopped, or for 10 s.
#[test]
fn a_running_request_is_cancelled() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a").retries(5)), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b").within(60_000)), []);
    let told = [undelivered(client, 1, Code::Cancelled), harness.stopped(worker, "a", Code::Cancelled)];
    assert_eq!(harness.cancel(client, 1), told);
    assert_eq!(harness.cancel(client, 1), []);
    assert_eq!(harness.status().bytes, 128 + 129, "its body is not kept");
    assert_eq!(harness.pass(9_999), []);
    assert_eq!(harness.status().slots_used, 1);
    assert_eq!(harness.pass(1), [turn(worker, "b").left(Some(50_000))]);
    assert_eq!(harness.reply(worker, "a", "A"), []);
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
    assert_eq!((harness.counters().late, harness.counters().cancelled), (1, 1));
}

/// Proves I12: an answered request has nothing left to cancel, and a cancelled one whose number is used again is
/// not confused with the new one.
#[test]
fn cancelling_after_the_end() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.cancel(client, 1), []);
    assert_eq!(harness.request(client, ask(1, "q", "b")), [turn(worker, "b")]);
    assert_eq!(harness.reply(worker, "a", "again"), []);
    let told = [undelivered(client, 1, Code::Cancelled), harness.stopped(worker, "b", Code::Cancelled)];
    assert_eq!(harness.cancel(client, 1), told);
}

/// Proves I12: an admin ends any message by its id: waiting, running, stopping or dead; ids that are not, or no
/// longer, are not found.
#[test]
fn an_admin_ends_any_message() {
    let mut harness = Harness::new();
    let client = harness.client();
    let (waiting, _) = harness.send(client, ask(1, "q", "a"));
    assert_eq!(cancel(&mut harness, waiting), (Ok(Reason::NoWorker), vec![]));
    assert_eq!(cancel(&mut harness, waiting), (Err(Code::NotFound), vec![]));
    let worker = harness.worker(1, &["q"]);
    let at_worker =
        Reason::AtWorker { worker: WorkerId(1), name: "w1".to_owned(), since_seconds: Seconds::from_millis(0) };
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(worker, "b")]);
    let running = harness.id(worker, "b");
    assert_ne!(running, waiting, "the place is the same, the id is not");
    let told = vec![undelivered(client, 2, Code::Cancelled), harness.stopped(worker, "b", Code::Cancelled)];
    assert_eq!(cancel(&mut harness, running), (Ok(at_worker.clone()), told));
    assert_eq!(cancel(&mut harness, running), (Ok(Reason::Stopping { worker: WorkerId(1) }), vec![]));
    assert_eq!(harness.ack(worker, "b"), []);
    assert_eq!(cancel(&mut harness, running), (Err(Code::NotFound), vec![]));
    let (sent_id, got) = harness.send(client, ask(3, "q", "c"));
    assert_eq!(got, [sent(worker, "c")]);
    let told = vec![harness.stopped(worker, "c", Code::Cancelled)];
    assert_eq!(cancel(&mut harness, sent_id), (Ok(at_worker), told), "a send has nobody to tell");
    assert_eq!(harness.ack(worker, "c"), []);
    let got = [turn(worker, "no reply").one_way(), delivered(client, 9)];
    assert_eq!(harness.request(client, ask(9, "q", "no reply").no_reply()), got);
    let running = harness.id(worker, "no reply");
    let told = vec![harness.stopped(worker, "no reply", Code::Cancelled)];
    let since_now =
        Reason::AtWorker { worker: WorkerId(1), name: "w1".to_owned(), since_seconds: Seconds::from_millis(0) };
    assert_eq!(cancel(&mut harness, running), (Ok(since_now), told), "its caller has had its outcome");
    assert_eq!(harness.ack(worker, "no reply"), []);
    let (dead, _) = harness.send(client, ask(4, "q", "d"));
    assert_eq!(harness.fail_for_good(worker, "d", "no"), []);
    assert_eq!(cancel(&mut harness, dead), (Ok(Reason::Dead { failure: "no".to_owned() }), vec![]));
    assert_eq!((harness.status().dead, harness.status().bytes), (0, 0));
    let (answer, _) = harness.admin(AdminCall::MessageCancel { id: "no id at all".to_owned() });
    assert_eq!(answer, Err(Code::NotFound));
}

/// To end one of many that wait does not take a look at all of them, so that many can be ended beside other work.
#[test]
fn of_what_goes_first_not_all_is_counted() {
    let mut harness = Harness::new();
    let (_, client) = (harness.worker(1, &["q"]), harness.client());
    let ids: Vec<MessageId> = (1..=200).map(|seq| harness.send(client, ask(seq, "q", &seq.to_string())).0).collect();
    let busy =
        |ahead| Reason::AllBusy { workers: 1, used: 1, ahead, probing: 0, dropped: 0, not_reading: 0, brokers: 0 };
    assert_eq!(harness.explain(ids[199]).because.0, busy(198), "who only asks is told");
    assert_eq!(cancel(&mut harness, ids[199]).0, Ok(busy(limits::AHEAD_CANCELLED_MAX)));
    assert_eq!(cancel(&mut harness, ids[51]).0, Ok(busy(50)));
}

/// Proves S2.34: what was cancelled at a worker that is then lost, or deregisters, is over; its slots are too.
#[test]
fn a_cancelled_delivery_of_a_leaving_worker() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    harness.send(client, ask(1, "q", "a"));
    let id = harness.id(worker, "a");
    let told = vec![harness.stopped(worker, "a", Code::Cancelled)];
    assert_eq!(cancel(&mut harness, id).1, told);
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!(harness.status().workers, 1, "it still holds the slot");
    assert_eq!(harness.pass(10_000), []);
    assert_eq!((harness.status().workers, harness.status().in_flight), (0, 0));
}

/// Proves I11: taking back a head that held up the rest lets the rest out in the same step.
#[test]
fn cancelling_the_head_lets_the_next_out() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "dear").cost(2)), []);
    assert_eq!(harness.request(client, ask(3, "q", "b")), []);
    assert_eq!(harness.cancel(client, 2), [undelivered(client, 2, Code::Cancelled), turn(worker, "b")]);
}

/// Proves S1.35 and I12: when a caller is gone, its waiting requests end. Those at a worker are stopped if it wanted that,
/// and go on if it did not; nobody is told, nothing is tried again, and the slots come back once.
#[test]
fn requests_of_a_caller_that_is_gone() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(4, &["q"]), harness.client());
    let other = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a").ends_with_caller().retries(3)), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "b").retries(3)), [turn(worker, "b")]);
    let no_reply = ask(3, "q", "c").ends_with_caller().no_reply();
    assert_eq!(harness.request(client, no_reply), [turn(worker, "c").one_way(), delivered(client, 3)]);
    assert_eq!(harness.send(client, ask(4, "q", "d").ends_with_caller()).1, [sent(worker, "d")]);
    assert_eq!(harness.request(client, ask(5, "q", "waits").ends_with_caller()), []);
    assert_eq!(harness.request(other, ask(5, "q", "of another").ends_with_caller()), []);
    let told = [harness.stopped(worker, "a", Code::CallerGone)];
    assert_eq!(harness.leave(client), told, "not the no-reply request, which is done, nor the send, which is its own");
    assert_eq!(harness.counters().cancelled, 1);
    assert_eq!(harness.status().slots_used, 4, "it has been told, but has not stopped yet");
    assert_eq!(harness.reply(worker, "a", "A"), [turn(worker, "of another")]);
    assert_eq!(harness.reply(worker, "a", "again"), []);
    assert_eq!(harness.reply(worker, "b", "B"), []);
    assert_eq!((harness.counters().late, harness.counters().doubled, harness.counters().unclaimed), (1, 1, 1));
    assert_eq!(harness.status().slots_used, 3);
}

/// Proves I12 and I13: whatever ends a running request first is its only outcome, its slots come back once, and what
/// comes second finds nothing: cancel, reply, time, the caller's end, the worker's end, in every order of two.
#[test]
fn of_two_ends_the_first_counts() {
    type End = (&'static str, fn(&mut Harness, Peers) -> Vec<Seen>);
    #[derive(Clone, Copy)]
    struct Peers {
        worker: turno_proto::model::ConnId,
        client: turno_proto::model::ConnId,
    }
    let ends: [End; 5] = [
        ("cancel", |harness, peers| harness.cancel(peers.client, 1)),
        ("reply", |harness, peers| harness.reply(peers.worker, "a", "A")),
        ("time", |harness, _| harness.pass(5_000)),
        ("caller", |harness, peers| harness.leave(peers.client)),
        ("worker", |harness, peers| harness.leave(peers.worker)),
    ];
    for (first, one) in ends {
        for (second, two) in ends {
            let mut harness = Harness::new();
            let (worker, client) = (harness.worker(2, &["q"]), harness.client());
            let peers = Peers { worker, client };
            let question = ask(1, "q", "a").within(5_000).cost(2).ends_with_caller();
            assert_eq!(harness.request(client, question), [turn(worker, "a").left(Some(5_000)).cost(2)]);
            let gone_twice = first == second && matches!(first, "caller" | "worker");
            let mut seen = one(&mut harness, peers);
            if !gone_twice {
                seen.extend(two(&mut harness, peers));
            }
            let outcomes = seen.iter().filter(|seen| seen.ends(client, 1)).count();
            assert_eq!(outcomes, usize::from(first != "caller"), "{first}, then {second}: {seen:?}");
            // A worker that was told to stop and says nothing more has its slots back after the grace time.
            let after = harness.pass(60_000);
            assert_eq!(
                after.iter().filter(|seen| seen.ends(client, 1)).count(),
                0,
                "{first}, then {second}: {after:?}"
            );
            let status = harness.status();
            assert_eq!((status.in_flight, status.slots_used), (0, 0), "{first}, then {second}");
            assert_eq!(status.bytes, 0, "{first}, then {second}");
        }
    }
}

/// Proves S1.35: who asks itself and goes is gone as a caller and as a worker; nobody else gets what it asked.
#[test]
fn a_caller_that_is_its_own_worker() {
    let mut harness = Harness::new();
    let both = harness.worker(1, &["q"]);
    assert_eq!(harness.request(both, ask(1, "q", "a").ends_with_caller().retries(3)), [turn(both, "a")]);
    assert_eq!(harness.leave(both), []);
    assert_eq!((harness.status().in_flight, harness.status().bytes), (0, 0));
}

/// Proves I12: a caller that uses a number twice cancels the older request first, before and after the first CANCEL
/// has made its list of numbers; numbers of other callers are their own.
#[test]
fn numbers_used_twice() {
    let mut harness = Harness::new();
    let (client, other) = (harness.client(), harness.client());
    for (seq, text) in [(1, "a"), (7, "b"), (7, "c"), (2, "d")] {
        harness.request(client, ask(seq, "q", text));
    }
    harness.request(other, ask(7, "q", "theirs"));
    let cancelled = [undelivered(client, 7, Code::Cancelled)];
    assert_eq!(harness.cancel(client, 7), cancelled);
    harness.request(client, ask(7, "q", "e"));
    assert_eq!(harness.cancel(client, 7), cancelled);
    let (worker, got) = harness.joining(Slots::Limited(9), &["q"]);
    let left = ["a", "d", "theirs", "e"].map(|text| turn(worker, text));
    assert_eq!(got, left);
    assert_eq!(harness.cancel(client, 7)[0], cancelled[0]);
    assert_eq!(harness.cancel(client, 7), []);
}

/// Proves I13: a caller that takes back a hundred thousand requests one by one, newest first, is served in steps that do
/// not grow with what it has: looking through the list each time would take minutes.
#[test]
fn many_requests_are_taken_back_one_by_one() {
    use turno_engine::{CallerMessage, Effect, Engine, Input, Outgoing, PeerEffect, Settings};
    use turno_proto::model::{ConnId, Limits, Mono, Payload};

    const COUNT: u32 = 100_000;
    let limits = Limits { in_flight_max: COUNT, ..Limits::default() };
    let mut engine = Engine::new(Settings { limits, ..Settings::default() }, Mono::ZERO);
    let conn = ConnId { index: 0, generation: 1 };
    let mut out: Vec<Effect> = Vec::new();
    let queue = "q".parse().expect("a good name");
    let hello = Input::Connected { conn, name: String::new(), address: String::new() };
    for input in [hello, Input::Open { conn, seq: 0, handle: 0, queue }] {
        engine.handle(Mono::ZERO, input, &mut out);
    }
    for seq in 0..COUNT {
        let message = Outgoing::new(seq, 0, Payload::default());
        engine.handle(Mono::ZERO, Input::Request { conn, message }, &mut out);
    }
    out.clear();
    for seq in (0..COUNT).rev() {
        engine.handle(Mono::ZERO, Input::Cancel { conn, seq }, &mut out);
    }
    engine.sanity_check();
    let expected = |seq| {
        Effect::Peer(PeerEffect::Caller {
            conn,
            seq,
            message: CallerMessage::Undelivered { code: Code::Cancelled, payload: Payload::default() },
        })
    };
    assert!(out.into_iter().eq((0..COUNT).rev().map(expected)), "each is told once");
    assert_eq!(engine.status().ready, 0);
}
