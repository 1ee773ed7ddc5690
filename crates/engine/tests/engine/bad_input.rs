//! What a peer may get wrong about exclusive queues, cancelling, broadcasts, draining and tokens: each has one stated
//! outcome, and changes nothing else.

use turno_engine::{Again, Broadcast, CallerMessage, Effect, Input, PeerEffect, WorkerMessage};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{BroadcastEnd, Code, ConnId, Delivery, MessageId};

use crate::exclusive::{FIRST, Got, idle, refusal};
use crate::harness::{Harness, ask};
use crate::seen::{Seen, body, delivered, reply, sent, turn, undelivered};

/// Proves S2.20 and S2.21: the second CONSUME of a queue is `already_consuming`, whichever way it was and is asked for.
/// The first one holds: the queue stays shared or exclusive as it was, under the same token.
#[test]
fn a_queue_is_consumed_once() {
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut harness = Harness::new();
        let (worker, other, client) = (idle(&mut harness), idle(&mut harness), harness.client());
        let got = if first { Got::Alone(FIRST) } else { Got::Shared };
        assert_eq!(harness.ask_for(worker, "q", first), (got, vec![]));
        for _ in 0..2 {
            assert_eq!(harness.ask_for(worker, "q", second), (Got::Error(Code::AlreadyConsuming), vec![]));
        }
        assert_eq!(harness.notify(worker, "q"), refusal(worker, Code::NotRefused), "that was no QUEUE_FULL");
        let token = first.then_some(FIRST);
        let handed = |worker, text| match token {
            Some(token) => turn(worker, text).token(token),
            None => turn(worker, text),
        };
        assert_eq!(harness.request(client, ask(1, "q", "a")), [handed(worker, "a")]);
        assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
        assert_eq!(harness.ask_for(other, "q", false).0, if first { Got::Full } else { Got::Shared });
    }
}

/// Proves S2.22, S2.23 and S2.24: QUEUE_AVAILABLE_NOTIFY is good once for each QUEUE_FULL, at every step of a worker's way
/// to a queue; too many of them are `not_refused` and cost no place. There is no line without one, and none without a
/// refusal before it.
#[test]
fn a_wish_is_good_once() {
    let mut harness = Harness::new();
    let (holder, first, second) = (idle(&mut harness), idle(&mut harness), idle(&mut harness));
    let client = harness.client();
    let handle = harness.handle(client, "q");
    let from_nobody = Input::QueueAvailableNotify { conn: client, seq: 88, handle };
    assert_eq!(harness.say(from_nobody), refusal(client, Code::NotRegistered));
    let unknown = Input::QueueAvailableNotify { conn: first, seq: 88, handle: 9 };
    assert_eq!(harness.say(unknown), refusal(first, Code::UnknownHandle));
    assert_eq!(harness.notify(first, "q"), refusal(first, Code::NotRefused), "nothing was asked for");
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    assert_eq!(harness.notify(holder, "q"), refusal(holder, Code::NotRefused), "it has the queue");
    harness.stand_by(first, "q");
    harness.stand_by(second, "q");
    for _ in 0..3 {
        assert_eq!(harness.notify(first, "q"), refusal(first, Code::NotRefused), "it waits");
        assert_eq!(harness.alone(first, "q"), Got::Full);
    }
    let free = harness.available(first, "q");
    assert_eq!(harness.leave(holder), [free], "and it is still the first");
    assert_eq!(harness.notify(first, "q"), refusal(first, Code::NotRefused), "it was told");
    assert_eq!(harness.alone(first, "q"), Got::Alone(FIRST + 1));
    assert_eq!(harness.notify(first, "q"), refusal(first, Code::NotRefused), "it has the queue");
}

/// Proves I12 and I13: CANCEL of a number that was never used, is another caller's, is a send's, or is that of something
/// over, does nothing and is not answered; a second CANCEL is one of those, whether the message waited, ran or was a
/// broadcast.
#[test]
fn there_is_nothing_to_cancel() {
    let mut harness = Harness::new();
    let (worker, client, other) = (harness.worker(2, &["q"]), harness.client(), harness.client());
    assert_eq!(harness.cancel(client, 1), [], "nothing was asked");
    assert_eq!(harness.request(client, ask(1, "q", "runs")), [turn(worker, "runs")]);
    assert_eq!(harness.cancel(other, 1), [], "another's");
    assert_eq!(harness.cancel(worker, 1), [], "a worker says FAIL for that");
    assert_eq!(harness.reply(worker, "runs", "R"), [reply(client, 1, "R")]);
    assert_eq!(harness.cancel(client, 1), [], "answered");
    assert_eq!(harness.send(client, ask(2, "q", "sent")).1, [sent(worker, "sent")]);
    assert_eq!(harness.cancel(client, 2), [], "a send has no caller");
    assert_eq!(
        harness.request(client, ask(3, "q", "noted").no_reply()),
        [turn(worker, "noted").one_way(), delivered(client, 3)]
    );
    assert_eq!(harness.cancel(client, 3), [], "over when it was written");
    assert_eq!(harness.ack(worker, "sent"), []);
    assert_eq!(harness.ack(worker, "noted"), []);

    assert_eq!(harness.request(client, ask(4, "none", "waits")), []);
    assert_eq!(harness.cancel(client, 4), [undelivered(client, 4, Code::Cancelled)]);
    assert_eq!(harness.cancel(client, 4), [], "twice");
    assert_eq!(harness.request(client, ask(5, "q", "held")), [turn(worker, "held")]);
    let stopped = harness.stopped(worker, "held", Code::Cancelled);
    assert_eq!(harness.cancel(client, 5), [undelivered(client, 5, Code::Cancelled), stopped]);
    assert_eq!(harness.cancel(client, 5), [], "twice, while its worker stops");
    assert_eq!(harness.fail(worker, "held", "stopped"), []);
    let handle = harness.handle(client, "q");
    let broadcast =
        Broadcast { seq: 6, handle, deadline_ms: None, no_reply: false, skip_self: false, payload: body("all") };
    assert_eq!(harness.say(Input::Broadcast { conn: client, broadcast }), [turn(worker, "all").cost(0)]);
    assert_eq!(harness.cancel(other, 6), [], "another's");
    assert_eq!(harness.cancel(client, 6).len(), 2);
    assert_eq!(harness.cancel(client, 6), [], "twice");
    assert_eq!(harness.fail(worker, "all", "stopped"), []);
    let counters = harness.counters();
    assert_eq!((counters.cancelled, counters.broadcasts, counters.requests, counters.sends), (3, 1, 4, 1));
    assert_eq!((harness.status().slots_used, harness.status().in_flight, harness.status().bytes), (0, 0, 0));
}

/// Proves I12: by id an admin cancels what there is, no matter who sent it, once. Ids that are none, that nothing has and that
/// something had are `not_found`; of what is stopping already it is told where it is, and nothing more happens.
#[test]
fn an_id_is_cancelled_once() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let cancel = |harness: &mut Harness, id: String| harness.admin(AdminCall::MessageCancel { id });
    for id in ["", "xyz", "ffffffffffffffffffffffffffffffff", &MessageId::new(0, 1, 0).to_string()] {
        assert_eq!(cancel(&mut harness, id.to_owned()), (Err(Code::NotFound), vec![]), "{id:?}");
    }
    let (done, _) = harness.send(client, ask(1, "q", "done"));
    assert_eq!(harness.ack(worker, "done"), []);
    assert_eq!(cancel(&mut harness, done.to_string()), (Err(Code::NotFound), vec![]), "settled");
    assert_eq!(harness.request(client, ask(2, "q", "runs")), [turn(worker, "runs")]);
    let (id, stopped) = (harness.id(worker, "runs").to_string(), harness.stopped(worker, "runs", Code::Cancelled));
    let (answer, seen) = cancel(&mut harness, id.clone());
    assert_eq!((answer.is_ok(), seen), (true, vec![undelivered(client, 2, Code::Cancelled), stopped]));
    let (answer, seen) = cancel(&mut harness, id.clone());
    assert_eq!((answer.is_ok(), seen), (true, vec![]), "it is stopping");
    assert_eq!(harness.fail(worker, "runs", "stopped"), []);
    assert_eq!(cancel(&mut harness, id), (Err(Code::NotFound), vec![]), "gone");
    assert_eq!(harness.counters().cancelled, 1);
}

/// Proves I8: a message under a token that nobody was given yet is dropped and counted as forged, of whatever kind it is, also
/// in a shared queue and about a broadcast; the delivery stays its holder's.
#[test]
fn a_token_from_the_future() {
    type Message = fn(ConnId, Delivery) -> Input;
    let messages: [Message; 6] = [
        |conn, delivery| Input::worker(conn, delivery, WorkerMessage::Reply { more: false, payload: body("x") }),
        |conn, delivery| Input::worker(conn, delivery, WorkerMessage::Reply { more: true, payload: body("x") }),
        |conn, delivery| Input::worker(conn, delivery, WorkerMessage::Ack),
        |conn, delivery| Input::worker(conn, delivery, WorkerMessage::Fail { again: Again::AsSet, payload: body("x") }),
        |conn, delivery| Input::worker(conn, delivery, WorkerMessage::Extend { lease_ms: 1 }),
        |conn, delivery| Input::worker(conn, delivery, WorkerMessage::Progress { payload: body("x") }),
    ];
    for exclusive in [true, false] {
        let mut harness = Harness::new();
        let (worker, client) = (idle(&mut harness), harness.client());
        assert_ne!(harness.ask_for(worker, "q", exclusive).0, Got::Full);
        harness.request(client, ask(1, "q", "a"));
        let handle = harness.handle(client, "q");
        let payload = body("all");
        let broadcast = Broadcast { seq: 2, handle, deadline_ms: None, no_reply: false, skip_self: false, payload };
        harness.say(Input::Broadcast { conn: client, broadcast });
        let mut forged = 0;
        for delivery in [harness.held(worker, "a"), harness.held(worker, "all")] {
            for token in [FIRST + 1, FIRST + (1 << 20), u64::MAX] {
                for message in messages {
                    assert_eq!(harness.say(message(worker, delivery).fenced(token)), [], "{token}");
                    forged += 1;
                    assert_eq!(harness.counters().forged, forged, "{token}");
                }
            }
        }
        assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
        let seen = harness.reply(worker, "all", "B");
        let end = BroadcastEnd { consumers: 1, answered: 1, ..BroadcastEnd::default() };
        assert_eq!(
            seen[1..],
            [Seen::Said(Effect::Peer(PeerEffect::Caller {
                conn: client,
                seq: 2,
                message: CallerMessage::BroadcastEnd(Box::new(end))
            }))]
        );
    }
}

/// Proves S2.16 and S2.17: `resume` of a broker that was never drained, and `drain` of one that is, change nothing and
/// tell nobody.
#[test]
fn draining_twice_and_resuming_for_nothing() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    for (call, told) in [
        (AdminCall::Resume, 0),
        (AdminCall::Drain, 2),
        (AdminCall::Drain, 0),
        (AdminCall::Resume, 2),
        (AdminCall::Resume, 0),
    ] {
        let (answer, seen) = harness.admin(call.clone());
        assert!(answer.is_ok(), "{call:?}");
        assert_eq!(seen.len(), told, "{call:?}");
    }
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
}
