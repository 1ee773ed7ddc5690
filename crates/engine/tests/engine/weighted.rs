//! Messages that take more than one slot, and the worker kept free for them.

use turno_engine::Input;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, ConnId, Slots, WorkerId};

use crate::harness::{Harness, ask};
use crate::seen::{reply, sent, turn, undelivered};

/// A harness where `worker` has 3 slots in "q" and "other", one of them in use by "busy" of "other"; the head of "q"
/// costs 3 and keeps the worker; "next" of "other" waits although there is room.
fn reserved() -> (Harness, ConnId, ConnId) {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(3, &["q", "other"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "other", "busy")), [turn(worker, "busy").of("other")]);
    assert_eq!(harness.request(client, ask(2, "q", "dear").cost(3)), []);
    assert_eq!(harness.request(client, ask(3, "other", "next")), [], "the worker is kept for the costly head");
    (harness, worker, client)
}

/// Why the head of "q" waits.
fn why(harness: &mut Harness) -> Reason {
    let head = harness.waiting("q").remove(0);
    harness.explain(head.parse().expect("an id")).because.0
}

/// Proves I9: the sum of the costs of what a worker holds never passes its slots, and what is settled gives back
/// exactly its cost.
#[test]
fn costs_are_counted() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(5, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "two").cost(2)), [turn(worker, "two").cost(2)]);
    assert_eq!(harness.request(client, ask(2, "q", "three").cost(3)), [turn(worker, "three").cost(3)]);
    assert_eq!(harness.worker_view("w0").used, 5);
    assert_eq!(harness.request(client, ask(3, "q", "one")), []);
    assert_eq!(harness.request(client, ask(4, "q", "four").cost(4)), []);
    assert_eq!(harness.reply(worker, "two", "r"), [reply(client, 1, "r"), turn(worker, "one")]);
    assert_eq!(harness.worker_view("w0").used, 4);
    assert_eq!(harness.reply(worker, "three", "r"), [reply(client, 2, "r"), turn(worker, "four").cost(4)]);
    assert_eq!(harness.worker_view("w0").used, 5);
}

/// Proves I9 and I10: a costly message goes to the first in the rota that has enough, and passing over those that
/// have too little keeps their order.
#[test]
fn a_costly_message_goes_to_the_first_with_enough() {
    let mut harness = Harness::new();
    let [small, large, larger] = [1, 4, 4].map(|slots| harness.worker(slots, &["q"]));
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a").cost(3)), [turn(large, "a").cost(3)]);
    assert_eq!(harness.request(client, ask(2, "q", "b").cost(2)), [turn(larger, "b").cost(2)]);
    assert_eq!(harness.request(client, ask(3, "q", "c")), [turn(small, "c")]);
    assert_eq!(harness.request(client, ask(4, "q", "d").cost(2)), [turn(larger, "d").cost(2)]);
}

/// Proves S0.31 and I11: a head that costs more than anyone has free keeps the next able worker; other queues
/// cannot starve it, and get the worker back when it is delivered.
#[test]
fn a_costly_head_cannot_be_starved() {
    let (mut harness, worker, client) = reserved();
    assert_eq!(why(&mut harness), Reason::Reserved { worker: WorkerId(1), cost: 3, free: 2 });
    for seq in 4..20 {
        assert_eq!(harness.request(client, ask(seq, "other", "more")), []);
    }
    let seen = harness.reply(worker, "busy", "r");
    assert_eq!(seen, [reply(client, 1, "r"), turn(worker, "dear").cost(3)]);
    let other = |text| turn(worker, text).of("other");
    assert_eq!(
        harness.reply(worker, "dear", "r"),
        [reply(client, 2, "r"), other("next"), other("more"), other("more")]
    );
}

/// Proves I11: whichever worker has enough first takes the head, and the one kept for it is everybody's again.
#[test]
fn another_worker_may_take_the_head() {
    let (mut harness, worker, _) = reserved();
    let (other, got) = harness.joining(Slots::Limited(3), &["q"]);
    assert_eq!(got, [turn(other, "dear").cost(3), turn(worker, "next").of("other")]);
}

/// Proves I11: the worker is everybody's again when the head is cancelled, expires, or loses its caller.
#[test]
fn a_reservation_ends_with_its_message() {
    let (mut harness, worker, client) = reserved();
    let freed = turn(worker, "next").of("other");
    assert_eq!(harness.cancel(client, 2), [undelivered(client, 2, Code::Cancelled), freed]);

    let (mut harness, worker, _) = reserved();
    harness.clock(harness.now().plus_millis(30_000));
    let ended = harness.tick();
    assert!(ended.contains(&harness.stopped(worker, "busy", Code::TimedOut)), "{ended:?}");
    assert_eq!(harness.status().ready, 0);

    let mut harness = Harness::new();
    let (worker, client, caller) = (harness.worker(2, &["q", "other"]), harness.client(), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "busy")).1, [sent(worker, "busy")]);
    assert_eq!(harness.request(caller, ask(2, "q", "dear").cost(2)), []);
    assert_eq!(harness.send(client, ask(3, "other", "next")).1, []);
    assert_eq!(harness.leave(caller), [sent(worker, "next").of("other")]);
}

/// Proves I11: a worker that becomes too small for the head, by RESIZE or by REGISTER again, is not kept for it.
#[test]
fn a_reservation_ends_when_the_worker_shrinks() {
    let (mut harness, worker, _) = reserved();
    assert_eq!(harness.resize(worker, 2), Ok(vec![turn(worker, "next").of("other")]));
    assert_eq!(why(&mut harness), Reason::TooCostly { cost: 3, largest: 2 });

    let (mut harness, worker, _) = reserved();
    assert_eq!(harness.register(worker, Slots::Limited(2)), Ok(vec![turn(worker, "next").of("other")]));
    assert_eq!(why(&mut harness), Reason::TooCostly { cost: 3, largest: 2 });

    let (mut harness, worker, _) = reserved();
    assert_eq!(harness.resize(worker, 3), Ok(vec![]), "still large enough");
    assert_eq!(why(&mut harness), Reason::Reserved { worker: WorkerId(1), cost: 3, free: 2 });
    assert_eq!(harness.resize(worker, 4), Ok(vec![turn(worker, "dear").cost(3)]));
}

/// Proves I11: a worker that leaves the queue is not kept for its head; its other queues get their turn at once.
#[test]
fn a_reservation_ends_when_the_worker_leaves_the_queue() {
    let (mut harness, worker, _) = reserved();
    assert_eq!(harness.cancel_queue(worker, "q"), Ok(vec![turn(worker, "next").of("other")]));
    assert_eq!(why(&mut harness), Reason::NoWorker);
}

/// Proves I11 and S2.34: when the kept worker is lost, drained, closing or deregistered, the next able one is kept.
#[test]
fn a_reservation_moves_to_the_next_worker() {
    for way in ["lost", "drained", "closing", "deregistered"] {
        let mut harness = Harness::new();
        let [first, second] = [2, 2].map(|slots| harness.worker(slots, &["q", "other"]));
        let client = harness.client();
        assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(first, "a")]);
        assert_eq!(harness.send(client, ask(2, "q", "b")).1, [sent(second, "b")]);
        assert_eq!(harness.send(client, ask(3, "q", "dear").cost(2)).1, []);
        assert_eq!(why(&mut harness), Reason::Reserved { worker: WorkerId(1), cost: 2, free: 1 });
        assert_eq!(harness.send(client, ask(4, "other", "c")).1, [sent(second, "c").of("other")], "free for others");
        let seen = match way {
            "lost" => harness.leave(first),
            "drained" => harness.admin(AdminCall::WorkerDrain { worker: "w0".to_owned() }).1,
            "closing" => harness.say(Input::PeerClosing { conn: first }),
            _ => harness.deregister(first).unwrap(),
        };
        assert_eq!(seen, [], "{way}");
        if way == "lost" {
            assert_eq!(harness.ack(second, "b"), [sent(second, "a")], "what came back goes first");
            assert_eq!(harness.ack(second, "a"), [], "the head waits for both slots");
        } else {
            assert_eq!(harness.ack(second, "b"), [], "{way}");
        }
        assert_eq!(harness.send(client, ask(5, "other", "d")).1, [], "{way}: kept for the head");
        assert_eq!(harness.ack(second, "c"), [sent(second, "dear").cost(2)], "{way}");
    }
}

/// Proves I11: a head of higher priority takes the reservation over: a cheap one needs none, so that other queues
/// go on, and a costlier one keeps a worker that is large enough for it.
#[test]
fn a_new_head_changes_the_reservation() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "other"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "other", "busy").cost(2)), [turn(worker, "busy").of("other").cost(2)]);
    assert_eq!(harness.request(client, ask(2, "q", "dear").cost(2)), []);
    assert_eq!(harness.request(client, ask(3, "q", "cheap").priority(9)), []);
    assert_eq!(
        why(&mut harness),
        Reason::AllBusy { workers: 1, used: 2, ahead: 0, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
    );
    assert_eq!(harness.reply(worker, "busy", "r"), [reply(client, 1, "r"), turn(worker, "cheap")]);
    assert_eq!(why(&mut harness), Reason::Reserved { worker: WorkerId(1), cost: 2, free: 1 });

    let mut harness = Harness::new();
    let [small, large] = [2, 4].map(|slots| harness.worker(slots, &["q", "other"]));
    let client = harness.client();
    for (seq, worker, text, cost) in [(1, small, "a", 2), (2, large, "b", 3)] {
        let given = turn(worker, text).of("other").cost(cost);
        assert_eq!(harness.request(client, ask(seq, "other", text).cost(cost)), [given]);
    }
    assert_eq!(harness.request(client, ask(3, "q", "two").cost(2)), []);
    assert_eq!(why(&mut harness), Reason::Reserved { worker: WorkerId(1), cost: 2, free: 0 });
    assert_eq!(harness.request(client, ask(4, "q", "four").cost(4).priority(9)), []);
    assert_eq!(why(&mut harness), Reason::Reserved { worker: WorkerId(2), cost: 4, free: 1 });
    assert_eq!(harness.request(client, ask(5, "other", "c")), [], "kept for the costlier head");
    assert_eq!(harness.reply(large, "b", "r"), [reply(client, 2, "r"), turn(large, "four").cost(4)]);
}

/// Proves S0.31 and S2.34: what comes back from a lost worker is the head again, and a cheap one keeps nobody.
#[test]
fn a_returned_message_is_the_head() {
    let mut harness = Harness::new();
    let [lost, kept] = [1, 2].map(|slots| harness.worker(slots, &["q"]));
    let client = harness.client();
    for (text, worker) in [("a", lost), ("b", kept), ("c", kept)] {
        assert_eq!(harness.send(client, ask(1, "q", text)).1, [sent(worker, text)]);
    }
    assert_eq!(harness.send(client, ask(2, "q", "dear").cost(2)).1, []);
    assert_eq!(harness.leave(lost), []);
    assert_eq!(
        why(&mut harness),
        Reason::AllBusy { workers: 1, used: 2, ahead: 0, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
    );
    assert_eq!(harness.ack(kept, "b"), [sent(kept, "a")]);
    assert_eq!(harness.ack(kept, "a"), []);
    assert_eq!(harness.ack(kept, "c"), [sent(kept, "dear").cost(2)]);
}

/// Proves I11: two costly heads of two queues never wait for each other: each keeps a worker of its own, or waits
/// for the other's to be free.
#[test]
fn two_costly_heads_share_one_worker_in_turn() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "other"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    assert_eq!(harness.send(client, ask(2, "q", "dear").cost(2)).1, []);
    assert_eq!(harness.send(client, ask(3, "other", "dearest").cost(2)).1, []);
    assert_eq!(harness.ack(worker, "a"), [sent(worker, "dear").cost(2)]);
    assert_eq!(harness.ack(worker, "dear"), [sent(worker, "dearest").of("other").cost(2)]);
    assert_eq!(harness.ack(worker, "dearest"), []);
}

/// Proves I9: RESIZE below what is in use recalls nothing and gives nothing until enough came back.
#[test]
fn resizing_below_what_is_in_use() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(6, &["q"]), harness.client());
    for (text, cost) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(harness.send(client, ask(1, "q", text).cost(cost)).1, [sent(worker, text).cost(cost)]);
    }
    assert_eq!(harness.send(client, ask(2, "q", "d")).1, []);
    assert_eq!(harness.resize(worker, 3), Ok(vec![]));
    let view = harness.worker_view("w0");
    assert_eq!((view.slots, view.used), (Slots::Limited(3), 6));
    assert_eq!(harness.ack(worker, "b"), []);
    assert_eq!(harness.ack(worker, "a"), [], "3 of 3");
    assert_eq!(harness.ack(worker, "c"), [sent(worker, "d")]);
    assert_eq!(harness.resize(worker, 6), Ok(vec![]));
}
