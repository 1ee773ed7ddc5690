//! Client, broker, worker: who says what to whom, and what the broker leaves alone.

use bytes::Bytes;
use turno_engine::{Again, CallerMessage, Deliver, Effect, Input, NativeEffect, PeerEffect, Settings, WorkerMessage};
use turno_proto::model::{Code, Limits, Payload, Slots};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, body, progress, reply, sent, turn, undelivered};

/// Proves S0.1, S0.3 and S0.37: a request goes from the client to the broker to a worker, the reply the same way
/// back, and each step names one connection only.
#[test]
fn the_broker_relays_in_both_directions() {
    let mut harness = Harness::new();
    let worker = harness.worker(1, &["q"]);
    let client = harness.client();
    assert_eq!(harness.request(client, ask(7, "q", "ping")), [turn(worker, "ping")]);
    assert_eq!(harness.reply(worker, "ping", "pong"), [reply(client, 7, "pong")]);
}

/// Proves S0.3 and S0.8: the broker runs nothing itself. Bodies that name its own commands, and queues named
/// after them, are messages like any other and wait for a worker.
#[test]
fn no_body_and_no_queue_name_means_anything_to_the_broker() {
    for text in ["REGISTER", "DEREGISTER", "INCREMENT", "PING", "DRAIN", ""] {
        let mut harness = Harness::new();
        let client = harness.client();
        assert_eq!(harness.request(client, ask(1, "q", text)), [], "{text:?} waits");
        assert_eq!(harness.request(client, ask(2, "REGISTER", text)), [], "{text:?} waits");
        assert_eq!((harness.status().ready, harness.status().workers), (2, 0));
        let (worker, got) = harness.joining(Slots::Limited(2), &["q", "REGISTER"]);
        assert_eq!(got, [turn(worker, text), turn(worker, text).of("REGISTER")]);
    }
}

/// Proves S0.35, S1.17, S1.23 and S1.34: headers and bodies of any shape arrive byte for byte in both directions,
/// the mark of the header block included; not even a broken block is looked into.
#[test]
fn payloads_are_never_looked_into() {
    let large: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
    let table = [
        Payload::default(),
        Payload { headers: true, bytes: Bytes::new() },
        Payload { headers: true, bytes: Bytes::from_static(&[0xFF, 0xFF, 1]) },
        Payload { headers: true, bytes: Bytes::from_static(&[2, 0, 0xC1, 0xC1, b'x']) },
        Payload::body(vec![0, 159, 146, 150, 0, 0]),
        Payload::body(large),
    ];
    for (seq, payload) in (1..).zip(table) {
        let limits = Limits { out_bytes_pause: usize::MAX, ..Limits::default() };
        let mut harness = Harness::with(Settings { limits, ..Settings::default() });
        let worker = harness.worker(2, &["q"]);
        let client = harness.client();
        let out = harness.request(client, ask(seq, "q", "").carrying(payload.clone()));
        let Some(Seen::Turn(given)) = out.first() else { panic!("{out:?}") };
        assert_eq!((out.len(), &given.payload), (1, &payload));
        let text = String::from_utf8_lossy(&payload.bytes).into_owned();
        let delivery = match &harness
            .step(Input::Send { conn: client, message: ask(9, "q", &text).carrying(payload.clone()).message })[..]
        {
            [
                Effect::Peer(PeerEffect::Native { effect: NativeEffect::Stored { .. }, .. }),
                Effect::Peer(PeerEffect::Deliver(Deliver { delivery, payload: given, .. })),
            ] if *given == payload => *delivery,
            other => panic!("{other:?}"),
        };
        let out = harness.say(Input::worker(
            worker,
            delivery,
            WorkerMessage::Fail { again: Again::AsSet, payload: payload.clone() },
        ));
        let Some(Seen::Turn(again)) = out.first() else { panic!("{out:?}") };
        assert_eq!((&again.payload, again.attempt), (&payload, 2));
    }
}

/// Proves S1.23 and S1.34: what a worker answers, whole or in pieces, reaches the caller as it was written.
#[test]
fn answers_are_never_looked_into() {
    let mut harness = Harness::new();
    let worker = harness.worker(1, &["q"]);
    let client = harness.client();
    assert_eq!(harness.request(client, ask(3, "q", "a")), [turn(worker, "a")]);
    let delivery = harness.held(worker, "a");
    for more in [true, true, false] {
        let payload = Payload { headers: true, bytes: Bytes::from_static(&[9, 9, 0]) };
        let expected = Effect::Peer(PeerEffect::Caller {
            conn: client,
            seq: 3,
            message: CallerMessage::Reply { more, payload: payload.clone() },
        });
        assert_eq!(
            harness.say(Input::worker(worker, delivery, WorkerMessage::Reply { more, payload })),
            [Seen::Said(expected)]
        );
    }
}

/// Proves S0.2: nothing in the answer tells a client that a broker stood between; it carries the client's own
/// number, and one number may be used again once it is answered.
#[test]
fn a_caller_sees_its_own_numbers_only() {
    let mut harness = Harness::new();
    let worker = harness.worker(1, &["q"]);
    let client = harness.client();
    for seq in [0, 5, 5, u32::MAX, 0] {
        assert_eq!(harness.request(client, ask(seq, "q", "a")), [turn(worker, "a")]);
        assert_eq!(harness.reply(worker, "a", "b"), [reply(client, seq, "b")]);
    }
}

/// Proves S1.13, S1.14 and S1.16: messages of many clients and many queues pass in one step each, rota and pending
/// table live in the one engine, and what it answers about itself is what it did.
#[test]
fn one_place_holds_all_state() {
    let mut harness = Harness::new();
    let workers = [harness.worker(1, &["q", "mail"]), harness.worker(1, &["mail", "q"])];
    let clients = [harness.client(), harness.client()];
    assert_eq!(harness.request(clients[0], ask(1, "q", "a")), [turn(workers[0], "a")]);
    assert_eq!(harness.request(clients[1], ask(1, "mail", "b")), [turn(workers[1], "b").of("mail")]);
    assert_eq!(harness.request(clients[0], ask(2, "mail", "c")), []);
    let view = harness.status();
    assert_eq!((view.connections, view.workers, view.queues), (4, 2, 2));
    assert_eq!((view.slots, view.slots_used, view.ready, view.in_flight), (2, 2, 1, 2));
    assert_eq!((view.counters.requests, view.counters.deliveries), (3, 2));
    assert_eq!(harness.reply(workers[0], "a", "A"), [reply(clients[0], 1, "A"), turn(workers[0], "c").of("mail")]);
    assert_eq!(harness.reply(workers[1], "b", "B"), [reply(clients[1], 1, "B")]);
}

/// Proves S0.1: one connection may be both; its requests may even come back to itself, and end with it.
#[test]
fn a_connection_may_be_client_and_worker() {
    let mut harness = Harness::new();
    let both = harness.worker(2, &["q"]);
    assert_eq!(harness.request(both, ask(1, "q", "a")), [turn(both, "a")]);
    assert_eq!(harness.reply(both, "a", "A"), [reply(both, 1, "A")]);
    assert_eq!(harness.request(both, ask(2, "q", "b").retries(3)), [turn(both, "b")]);
    assert_eq!(harness.request(both, ask(3, "other", "c")), []);
    let other = harness.worker(2, &["q"]);
    assert_eq!(harness.leave(both), [], "nobody is left to tell");
    assert_eq!((harness.status().in_flight, harness.status().ready), (0, 0));
    assert_eq!(harness.rota("q"), crate::views::rota(&[(other, 0)]));
}

/// Proves S0.37: a worker may tell how far it is; only the caller hears it, and only while it waits.
#[test]
fn progress_goes_to_the_caller() {
    let mut harness = Harness::new();
    let worker = harness.worker(2, &["q"]);
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let delivery = harness.held(worker, "a");
    let half = |delivery| Input::worker(worker, delivery, WorkerMessage::Progress { payload: body("50 %") });
    assert_eq!(harness.say(half(delivery)), [progress(client, 1, "50 %")]);
    assert_eq!(
        harness.cancel(client, 1),
        [undelivered(client, 1, Code::Cancelled), harness.stopped(worker, "a", Code::Cancelled),]
    );
    assert_eq!(harness.say(half(delivery)), []);
    let (_, got) = harness.send(client, ask(2, "q", "b"));
    assert_eq!(got, [sent(worker, "b")]);
    let delivery = harness.held(worker, "b");
    assert_eq!(harness.say(half(delivery)), [], "nobody waits for a send");
}
