//! Queues with a single consumer among the other rules: its worker is dropped, and messages go to everybody.

use turno_engine::{Broadcast, BroadcastAnswer, CallerMessage, Effect, Input, NativeEffect, PeerEffect, WorkerMessage};
use turno_proto::model::{BroadcastEnd, Code, ConnId, Token};

use crate::exclusive::{FIRST, Got, idle};
use crate::harness::{Harness, ask};
use crate::seen::{Seen, body, reply, turn, undelivered};

const SHORT_MS: u32 = 200;

/// Hands the holder a request that expires there and that it does not settle; what was told besides its end.
fn expire(harness: &mut Harness, client: ConnId, holder: ConnId, seq: u32, text: &str, token: u64) -> Vec<Seen> {
    let handed = turn(holder, text).left(Some(SHORT_MS)).token(token);
    assert_eq!(harness.request(client, ask(seq, "q", text).within(SHORT_MS)), [handed]);
    let mut seen = harness.pass(SHORT_MS.into());
    let end = [undelivered(client, seq, Code::TimedOut), harness.stopped(holder, text, Code::TimedOut)];
    assert_eq!(seen.drain(..2).collect::<Vec<Seen>>(), end);
    seen
}

fn dropped(harness: &mut Harness, worker: ConnId) -> Seen {
    let handle = harness.handle(worker, "q");
    Seen::Said(Effect::Peer(PeerEffect::Native {
        conn: worker,
        effect: NativeEffect::CancelQueue { handle, reason: Code::Dropped },
    }))
}

/// Proves S2.22, S2.29 and S2.32: a dropped holder loses the queue, to the standby, when it has settled what it still had; the
/// old token opens nothing any more, and the worker comes back only as the next one.
#[test]
fn a_dropped_holder_makes_way_for_the_standby() {
    let mut harness = Harness::new();
    let (holder, standby, client) = (idle(&mut harness), idle(&mut harness), harness.client());
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    harness.stand_by(standby, "q");
    assert_eq!(expire(&mut harness, client, holder, 1, "a", FIRST), []);
    let told = dropped(&mut harness, holder);
    assert_eq!(expire(&mut harness, client, holder, 2, "b", FIRST), [told]);
    assert_eq!(harness.queue("q").exclusive.map(|view| view.token), Some(Token(FIRST)), "it still holds two of them");
    let rows = |harness: &mut Harness| {
        let rows = harness.consumers("q").into_iter();
        let rows = rows.map(|row| (row.worker.0, row.token, row.waits, row.standing.expired > 0));
        rows.collect::<Vec<(u64, Option<Token>, Option<u64>, bool)>>()
    };
    let listed = [(2, None, Some(1), false), (1, None, None, true)];
    assert_eq!(rows(&mut harness), listed, "a dropped worker has the queue no more");
    harness.stand_by(holder, "q");
    let listed = [(2, None, Some(1), false), (1, None, Some(2), true)];
    assert_eq!(rows(&mut harness), listed, "not even for itself: it waits like others, and is listed once");
    assert_eq!(harness.fail(holder, "a", "stopped"), []);
    let free = harness.available(standby, "q");
    assert_eq!(harness.fail(holder, "b", "stopped"), [free]);
    assert_eq!(harness.alone(standby, "q"), Got::Alone(FIRST + 1));
    assert_eq!(harness.request(client, ask(3, "q", "c")), [turn(standby, "c").token(FIRST + 1)]);
    assert_eq!(harness.reply(standby, "c", "C"), [reply(client, 3, "C")]);
}

/// Proves S2.31: without a standby it comes back under a new token, and gets one delivery at a time.
#[test]
fn a_dropped_holder_comes_back_on_probation_under_a_new_token() {
    let mut harness = Harness::new();
    let (holder, client) = (idle(&mut harness), harness.client());
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    for (seq, text) in [(1, "a"), (2, "b")] {
        expire(&mut harness, client, holder, seq, text, FIRST);
        assert_eq!(harness.fail(holder, text, "stopped"), []);
    }
    assert_eq!(harness.queue("q").exclusive, None);
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST + 1));
    assert_eq!(harness.request(client, ask(3, "q", "probe")), [turn(holder, "probe").token(FIRST + 1)]);
    assert_eq!(harness.request(client, ask(4, "q", "next")), []);
    let next = turn(holder, "next").token(FIRST + 1);
    assert_eq!(harness.reply(holder, "probe", "P"), [reply(client, 3, "P"), next]);
}

/// Proves S2.9 and S2.20: a broadcast to an exclusive queue goes to its holder alone, under its token, and its answer under
/// another token is not heard; the queue is free when that part has ended, too.
#[test]
fn a_broadcast_goes_to_the_holder_under_its_token() {
    let mut harness = Harness::new();
    let (holder, standby, client) = (idle(&mut harness), idle(&mut harness), harness.client());
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    harness.stand_by(standby, "q");
    let handle = harness.handle(client, "q");
    let to_all = |seq, text, no_reply| {
        let payload = body(text);
        let broadcast = Broadcast { seq, handle, deadline_ms: None, no_reply, skip_self: false, payload };
        Input::Broadcast { conn: client, broadcast }
    };
    let over = |seq, end| {
        Seen::Said(Effect::Peer(PeerEffect::Caller {
            conn: client,
            seq,
            message: CallerMessage::BroadcastEnd(Box::new(end)),
        }))
    };
    let of_one = BroadcastEnd { consumers: 1, ..BroadcastEnd::default() };
    let seen = harness.say(to_all(1, "news", true));
    assert!(matches!(&seen[0], Seen::Turn(turn) if (turn.worker, turn.token) == (holder, Some(FIRST))), "{seen:?}");
    assert_eq!(seen[1..], [over(1, of_one.clone())]);
    assert_eq!(harness.say(to_all(2, "who", false)), [turn(holder, "who").cost(0).token(FIRST)]);
    let delivery = harness.held(holder, "who");
    let message = Input::worker(holder, delivery, WorkerMessage::Reply { more: false, payload: body("me") });
    assert_eq!(harness.say(message.clone().fenced(FIRST - 1)), []);
    assert_eq!(harness.counters().late, 1);
    assert_eq!(harness.cancel_queue(holder, "q"), Ok(vec![]), "it owes an answer");
    let (name, payload) = (format!("w{}", holder.index).into(), body("me"));
    let answer = Effect::Peer(PeerEffect::Caller {
        conn: client,
        seq: 2,
        message: CallerMessage::BroadcastAnswer(BroadcastAnswer {
            worker: 1,
            name,
            more: false,
            failed: false,
            payload,
        }),
    });
    let free = harness.available(standby, "q");
    let end = over(2, BroadcastEnd { answered: 1, ..of_one });
    assert_eq!(harness.say(message.fenced(FIRST)), [Seen::Said(answer), end, free]);
}
