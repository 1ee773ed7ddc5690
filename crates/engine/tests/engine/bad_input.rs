//! What a peer may get wrong about exclusive queues, cancelling, broadcasts, draining and tokens: each has one stated
//! outcome, and changes nothing else.

use turno_engine::{Broadcast, CallerWord, Effect, Input, PeerEffect, WorkerWord};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{BroadcastEnd, Code, ConnId, Delivery, MessageId};

use crate::desk::{Desk, ask};
use crate::exclusive::{FIRST, Got, idle, refusal};
use crate::seen::{Seen, body, delivered, reply, sent, turn, undelivered};

/// Proves S2.20 and S2.21: the second CONSUME of a queue is `already_consuming`, whichever way it was and is asked for.
/// The first one holds: the queue stays shared or exclusive as it was, under the same token.
#[test]
fn a_queue_is_consumed_once() {
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut desk = Desk::new();
        let (worker, other, client) = (idle(&mut desk), idle(&mut desk), desk.client());
        let got = if first { Got::Alone(FIRST) } else { Got::Shared };
        assert_eq!(desk.ask_for(worker, "q", first), (got, vec![]));
        for _ in 0..2 {
            assert_eq!(desk.ask_for(worker, "q", second), (Got::Error(Code::AlreadyConsuming), vec![]));
        }
        assert_eq!(desk.notify(worker, "q"), refusal(worker, Code::NotRefused), "that was no QUEUE_FULL");
        let token = first.then_some(FIRST);
        let handed = |worker, text| match token {
            Some(token) => turn(worker, text).token(token),
            None => turn(worker, text),
        };
        assert_eq!(desk.request(client, ask(1, "q", "a")), [handed(worker, "a")]);
        assert_eq!(desk.reply(worker, "a", "A"), [reply(client, 1, "A")]);
        assert_eq!(desk.ask_for(other, "q", false).0, if first { Got::Full } else { Got::Shared });
    }
}

/// Proves S2.22, S2.23 and S2.24: QUEUE_AVAILABLE_NOTIFY is good once for each QUEUE_FULL, at every step of a worker's way
/// to a queue; too many of them are `not_refused` and cost no place. There is no line without one, and none without a
/// refusal before it.
#[test]
fn a_wish_is_good_once() {
    let mut desk = Desk::new();
    let (holder, first, second) = (idle(&mut desk), idle(&mut desk), idle(&mut desk));
    let client = desk.client();
    let handle = desk.handle(client, "q");
    let from_nobody = Input::QueueAvailableNotify { conn: client, seq: 88, handle };
    assert_eq!(desk.say(from_nobody), refusal(client, Code::NotRegistered));
    let unknown = Input::QueueAvailableNotify { conn: first, seq: 88, handle: 9 };
    assert_eq!(desk.say(unknown), refusal(first, Code::UnknownHandle));
    assert_eq!(desk.notify(first, "q"), refusal(first, Code::NotRefused), "nothing was asked for");
    assert_eq!(desk.alone(holder, "q"), Got::Alone(FIRST));
    assert_eq!(desk.notify(holder, "q"), refusal(holder, Code::NotRefused), "it has the queue");
    desk.stand_by(first, "q");
    desk.stand_by(second, "q");
    for _ in 0..3 {
        assert_eq!(desk.notify(first, "q"), refusal(first, Code::NotRefused), "it waits");
        assert_eq!(desk.alone(first, "q"), Got::Full);
    }
    let free = desk.available(first, "q");
    assert_eq!(desk.leave(holder), [free], "and it is still the first");
    assert_eq!(desk.notify(first, "q"), refusal(first, Code::NotRefused), "it was told");
    assert_eq!(desk.alone(first, "q"), Got::Alone(FIRST + 1));
    assert_eq!(desk.notify(first, "q"), refusal(first, Code::NotRefused), "it has the queue");
}

/// Proves I12 and I13: CANCEL of a number that was never used, is another caller's, is a send's, or is that of something
/// over, does nothing and is not answered; a second CANCEL is one of those, whether the message waited, ran or was a
/// broadcast.
#[test]
fn there_is_nothing_to_cancel() {
    let mut desk = Desk::new();
    let (worker, client, other) = (desk.worker(2, &["q"]), desk.client(), desk.client());
    assert_eq!(desk.cancel(client, 1), [], "nothing was asked");
    assert_eq!(desk.request(client, ask(1, "q", "runs")), [turn(worker, "runs")]);
    assert_eq!(desk.cancel(other, 1), [], "another's");
    assert_eq!(desk.cancel(worker, 1), [], "the worker's word for it is FAIL");
    assert_eq!(desk.reply(worker, "runs", "R"), [reply(client, 1, "R")]);
    assert_eq!(desk.cancel(client, 1), [], "answered");
    assert_eq!(desk.send(client, ask(2, "q", "sent")).1, [sent(worker, "sent")]);
    assert_eq!(desk.cancel(client, 2), [], "a send has no caller");
    assert_eq!(
        desk.request(client, ask(3, "q", "noted").no_reply()),
        [turn(worker, "noted").one_way(), delivered(client, 3)]
    );
    assert_eq!(desk.cancel(client, 3), [], "over when it was written");
    assert_eq!(desk.ack(worker, "sent"), []);
    assert_eq!(desk.ack(worker, "noted"), []);

    assert_eq!(desk.request(client, ask(4, "none", "waits")), []);
    assert_eq!(desk.cancel(client, 4), [undelivered(client, 4, Code::Cancelled)]);
    assert_eq!(desk.cancel(client, 4), [], "twice");
    assert_eq!(desk.request(client, ask(5, "q", "held")), [turn(worker, "held")]);
    let stopped = desk.stopped(worker, "held", Code::Cancelled);
    assert_eq!(desk.cancel(client, 5), [undelivered(client, 5, Code::Cancelled), stopped]);
    assert_eq!(desk.cancel(client, 5), [], "twice, while its worker stops");
    assert_eq!(desk.fail(worker, "held", "stopped"), []);
    let handle = desk.handle(client, "q");
    let broadcast =
        Broadcast { seq: 6, handle, deadline_ms: None, no_reply: false, skip_self: false, payload: body("all") };
    assert_eq!(desk.say(Input::Broadcast { conn: client, broadcast }), [turn(worker, "all").cost(0)]);
    assert_eq!(desk.cancel(other, 6), [], "another's");
    assert_eq!(desk.cancel(client, 6).len(), 2);
    assert_eq!(desk.cancel(client, 6), [], "twice");
    assert_eq!(desk.fail(worker, "all", "stopped"), []);
    let counters = desk.counters();
    assert_eq!((counters.cancelled, counters.broadcasts, counters.requests, counters.sends), (3, 1, 4, 1));
    assert_eq!((desk.status().slots_used, desk.status().in_flight, desk.status().bytes), (0, 0, 0));
}

/// Proves I12: by id an admin cancels what there is, whoever sent it, once. Ids that are none, that nothing has and that
/// something had are `not_found`; of what is stopping already it is told where it is, and nothing more happens.
#[test]
fn an_id_is_cancelled_once() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(1, &["q"]), desk.client());
    let cancel = |desk: &mut Desk, id: String| desk.admin(AdminCall::MessageCancel { id });
    for id in ["", "xyz", "ffffffffffffffffffffffffffffffff", &MessageId::new(0, 1, 0).to_string()] {
        assert_eq!(cancel(&mut desk, id.to_owned()), (Err(Code::NotFound), vec![]), "{id:?}");
    }
    let (done, _) = desk.send(client, ask(1, "q", "done"));
    assert_eq!(desk.ack(worker, "done"), []);
    assert_eq!(cancel(&mut desk, done.to_string()), (Err(Code::NotFound), vec![]), "settled");
    assert_eq!(desk.request(client, ask(2, "q", "runs")), [turn(worker, "runs")]);
    let (id, stopped) = (desk.id(worker, "runs").to_string(), desk.stopped(worker, "runs", Code::Cancelled));
    let (answer, seen) = cancel(&mut desk, id.clone());
    assert_eq!((answer.is_ok(), seen), (true, vec![undelivered(client, 2, Code::Cancelled), stopped]));
    let (answer, seen) = cancel(&mut desk, id.clone());
    assert_eq!((answer.is_ok(), seen), (true, vec![]), "it is stopping");
    assert_eq!(desk.fail(worker, "runs", "stopped"), []);
    assert_eq!(cancel(&mut desk, id), (Err(Code::NotFound), vec![]), "gone");
    assert_eq!(desk.counters().cancelled, 1);
}

/// Proves I8: word under a token that nobody was given yet is dropped and counted as forged, of whatever kind it is, also
/// in a shared queue and about a broadcast; the delivery stays its holder's.
#[test]
fn a_token_from_the_future() {
    type Word = fn(ConnId, Delivery) -> Input;
    let words: [Word; 6] = [
        |conn, delivery| Input::worker(conn, delivery, WorkerWord::Reply { more: false, payload: body("x") }),
        |conn, delivery| Input::worker(conn, delivery, WorkerWord::Reply { more: true, payload: body("x") }),
        |conn, delivery| Input::worker(conn, delivery, WorkerWord::Ack),
        |conn, delivery| Input::worker(conn, delivery, WorkerWord::Fail { permanent: false, payload: body("x") }),
        |conn, delivery| Input::worker(conn, delivery, WorkerWord::Extend { lease_ms: 1 }),
        |conn, delivery| Input::worker(conn, delivery, WorkerWord::Progress { payload: body("x") }),
    ];
    for exclusive in [true, false] {
        let mut desk = Desk::new();
        let (worker, client) = (idle(&mut desk), desk.client());
        assert_ne!(desk.ask_for(worker, "q", exclusive).0, Got::Full);
        desk.request(client, ask(1, "q", "a"));
        let handle = desk.handle(client, "q");
        let payload = body("all");
        let broadcast = Broadcast { seq: 2, handle, deadline_ms: None, no_reply: false, skip_self: false, payload };
        desk.say(Input::Broadcast { conn: client, broadcast });
        let mut forged = 0;
        for delivery in [desk.held(worker, "a"), desk.held(worker, "all")] {
            for token in [FIRST + 1, FIRST + (1 << 20), u64::MAX] {
                for word in words {
                    assert_eq!(desk.say(word(worker, delivery).fenced(token)), [], "{token}");
                    forged += 1;
                    assert_eq!(desk.counters().forged, forged, "{token}");
                }
            }
        }
        assert_eq!(desk.reply(worker, "a", "A"), [reply(client, 1, "A")]);
        let seen = desk.reply(worker, "all", "B");
        let end = BroadcastEnd { consumers: 1, answered: 1, ..BroadcastEnd::default() };
        assert_eq!(
            seen[1..],
            [Seen::Said(Effect::Peer(PeerEffect::Caller {
                conn: client,
                seq: 2,
                word: CallerWord::BroadcastEnd(Box::new(end))
            }))]
        );
    }
}

/// Proves S2.16 and S2.17: `resume` of a broker that was never drained, and `drain` of one that is, change nothing and
/// tell nobody.
#[test]
fn draining_twice_and_resuming_for_nothing() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(1, &["q"]), desk.client());
    for (call, told) in [
        (AdminCall::Resume, 0),
        (AdminCall::Drain, 2),
        (AdminCall::Drain, 0),
        (AdminCall::Resume, 2),
        (AdminCall::Resume, 0),
    ] {
        let (answer, seen) = desk.admin(call.clone());
        assert!(answer.is_ok(), "{call:?}");
        assert_eq!(seen.len(), told, "{call:?}");
    }
    assert_eq!(desk.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
}
