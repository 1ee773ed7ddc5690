//! Majordomo, command by command.

use turno_proto::model::{Delivery, Payload, Slots};
use turno_proto::zmtp::SocketType;

use super::super::dialect::tests::{CONN, World, parted, reply, settings};
use super::super::dialect::{HANDLE, SETUP};
use super::super::settings::ZmqEndpoint;
use super::*;

/// The number of the request among inputs, and its payload.
fn request(world: &mut World) -> (u32, u32, Payload) {
    let requests = world.take().into_iter().filter_map(|input| match input {
        Input::Request { message, .. } => Some((message.seq, message.handle, message.payload)),
        Input::Open { .. } => None,
        other => panic!("{other:?}"),
    });
    let all: Vec<_> = requests.collect();
    assert_eq!(all.len(), 1);
    all.into_iter().next().unwrap()
}

/// In both versions, with the empty frame of a REQ socket, the numbers of REQ_CORRELATE, or neither.
#[test]
fn a_client_is_answered_in_its_own_form() {
    let fronts: [&[&[u8]]; 3] = [&[], &[b""], &[b"\0\0\0\x01", b""]];
    for front in fronts {
        let mut one = World::new(SocketType::Dealer, settings());
        one.hear(&[front, &[b"MDPC01", b"echo", b"a", b"b"]].concat());
        let (seq, _, payload) = request(&mut one);
        assert_eq!(payload, parted("1 1", b"ab"));
        assert_eq!(one.caller_message(seq, reply(b"x", true)), None, "MDP/0.1 has one reply");
        let expected: Vec<&[u8]> = [front, &[b"MDPC01", b"echo", b"x", b"y"]].concat();
        assert_eq!(one.caller_message(seq, reply(b"y", false)).unwrap(), expected);
        assert_eq!(one.dialect.unended(), 0);

        let mut two = World::new(SocketType::Dealer, settings());
        two.hear(&[front, &[b"MDPC02", b"\x01", b"echo", b"a"]].concat());
        let (seq, ..) = request(&mut two);
        let partial: Vec<&[u8]> = [front, &[b"MDPC02", b"\x02", b"echo", b"x"]].concat();
        assert_eq!(two.caller_message(seq, reply(b"x", true)).unwrap(), partial);
        let last: Vec<&[u8]> = [front, &[b"MDPC02", b"\x03", b"echo", b"y"]].concat();
        assert_eq!(two.caller_message(seq, reply(b"y", false)).unwrap(), last);
        assert_eq!(two.dialect.unended(), 0);
    }
}

#[test]
fn a_service_is_a_queue_and_has_one_handle() {
    let mut world = World::new(SocketType::Req, settings());
    world.hear(&[b"", b"MDPC01", b"echo", b"x"]);
    let open = |handle, queue: &str| Input::Open { conn: CONN, seq: 0, handle, queue: queue.parse().unwrap() };
    assert_eq!(world.take()[0], open(0, "echo"));
    world.hear(&[b"", b"MDPC01", b"other", b"x"]);
    assert_eq!(world.take()[0], open(1, "other"));
    world.hear(&[b"", b"MDPC01", b"echo", b"x"]);
    assert_eq!(request(&mut world).1, 0);
    world.hear(&[b"", b"MDPC01", b"no queue", b"x"]);
    assert_eq!((world.take(), world.counted(Count::Refused)), (vec![], 1));
    for number in 0..2 * limits::MDP_SERVICES_MAX {
        world.hear(&[b"", b"MDPC01", number.to_string().as_bytes(), b"x"]);
    }
    let opened = world.take().iter().filter(|input| matches!(input, Input::Open { .. })).count();
    assert_eq!(opened, limits::MDP_SERVICES_MAX - 2);
}

#[test]
fn a_failure_is_withheld_or_told() {
    let failed = || CallerMessage::undelivered(Code::TimedOut);
    let mut world = World::new(SocketType::Req, settings());
    world.hear(&[b"", b"MDPC01", b"echo", b"x"]);
    let (seq, ..) = request(&mut world);
    assert_eq!((world.caller_message(seq, failed()), world.counted(Count::Withheld)), (None, 1));
    let told = ZmqEndpoint { error_frame: Some("E".to_owned()), ..settings() };
    let mut world = World::new(SocketType::Req, told);
    world.hear(&[b"", b"MDPC02", b"\x01", b"echo", b"x"]);
    let (seq, ..) = request(&mut world);
    let expected: &[&[u8]] = &[b"", b"MDPC02", b"\x03", b"echo", b"E", b"timed_out"];
    assert_eq!(world.caller_message(seq, failed()).unwrap(), expected);
}

#[test]
fn commands_that_make_no_sense_are_counted() {
    let bad: [&[&[u8]]; 5] = [
        &[b"", b"MDPC01"],
        &[b"", b"MDPC01", b"echo"],
        &[b"", b"MDPC02", b"\x01", b"echo", b"x"],
        &[b"", b"MDPW01", b"\x01", b"echo"],
        &[b"plain"],
    ];
    let mut client = World::new(SocketType::Dealer, settings());
    client.hear(&[b"", b"MDPC01", b"echo", b"x"]);
    client.take();
    bad.iter().for_each(|message| client.hear(message));
    assert_eq!((client.take(), client.counted(Count::BadEnvelope)), (vec![], 5));
    let mut worker = worker(b"MDPW01");
    let bad: [&[&[u8]]; 6] = [
        &[b"", b"MDPW01"],
        &[b"", b"MDPW01", b"\x09"],
        &[b"", b"MDPW01", b"\x03\x03", b"12345678", b"", b"x"],
        &[b"", b"MDPW01", b"\x03", b"1234567", b"", b"x"],
        &[b"", b"MDPW01", b"\x03", b"12345678", b"x"],
        &[b"", b"MDPW02", b"\x04", b"12345678", b"", b"x"],
    ];
    bad.iter().for_each(|message| worker.hear(message));
    assert_eq!((worker.take(), worker.counted(Count::BadEnvelope)), (vec![], 6));
}

/// Frames of the protocol are no parts.
#[test]
fn a_message_of_too_many_parts_ends_the_connection() {
    let table: [(World, &[&[u8]]); 2] = [
        (World::new(SocketType::Dealer, settings()), &[b"", b"MDPC02", b"\x01", b"echo"]),
        (worker(b"MDPW02"), &[b"", b"MDPW02", b"\x04", b"12345678", b""]),
    ];
    for (mut world, envelope) in table {
        for (parts, end) in
            [(limits::MESSAGE_PARTS_MAX, Ok(())), (limits::MESSAGE_PARTS_MAX + 1, Err(Code::TooManyParts))]
        {
            let message = Message::of(&[envelope, &vec![&b"x"[..]; parts]].concat());
            assert_eq!(world.try_hear(&message), end, "{parts}");
            assert_eq!(world.take().is_empty(), end.is_err());
        }
    }
}

fn worker(header: &[u8]) -> World {
    let mut world = World::new(SocketType::Dealer, settings());
    world.hear(&[b"", header, b"\x01", b"echo"]);
    let (conn, seq) = (CONN, SETUP);
    let setup = [
        Input::Open { conn, seq, handle: HANDLE, queue: "echo".parse().unwrap() },
        Input::Register { conn, seq, slots: Slots::Limited(1), name: String::new() },
        Input::Consume { conn, seq, handle: HANDLE, exclusive: false },
    ];
    assert_eq!(world.take(), setup);
    world
}

#[test]
fn a_worker_gets_requests_and_replies() {
    for (header, last, partial) in [(&b"MDPW01"[..], 3, None), (b"MDPW02", 4, Some(3))] {
        let mut world = worker(header);
        let payload = parted("1 1", b"ab");
        let frames = world.delivery(&payload);
        let expected: [&[u8]; 7] = [b"", header, b"\x02", &frames[3], b"", b"a", b"b"];
        assert_eq!(frames, expected);
        let (conn, delivery) = (CONN, Delivery { index: 5, stamp: 6 });
        if let Some(partial) = partial {
            world.hear(&[b"", header, &[partial], &frames[3], b"", b"x"]);
            assert_eq!(
                world.take(),
                [Input::worker(conn, delivery, WorkerMessage::Reply { more: true, payload: Payload::body("x") })]
            );
        }
        world.hear(&[b"", header, &[last], &frames[3], b"", b"y", b""]);
        assert_eq!(
            world.take(),
            [Input::worker(conn, delivery, WorkerMessage::Reply { more: false, payload: parted("1 0", b"y") })]
        );
        assert!(world.dialect.settles());
    }
    let mut many = World::new(SocketType::Dealer, ZmqEndpoint { slots: Some(7), ..settings() });
    many.hear(&[b"MDPW02", b"\x01", b"echo"]);
    assert!(many.take().iter().any(|input| matches!(input, Input::Register { slots: Slots::Limited(7), .. })));
    assert_eq!(many.delivery(&Payload::body("x"))[0], "MDPW02", "no empty frame, as it came");
}

#[test]
fn heartbeats_go_both_ways() {
    for (header, beat) in [(&b"MDPW01"[..], 4_u8), (b"MDPW02", 5)] {
        let mut world = worker(header);
        let interval = u64::from(limits::MDP_HEARTBEAT_MS);
        assert_eq!(world.tick(interval - 1), Ok(()));
        assert_eq!(world.said().len(), 0);
        for _ in 0..10 {
            world.hear(&[b"", header, &[beat]]);
            assert_eq!(world.tick(interval), Ok(()));
            let expected: [&[u8]; 3] = [b"", header, &[beat]];
            assert_eq!(world.said(), [expected]);
        }
        assert_eq!(world.tick(interval), Ok(()));
        world.said();
        assert_eq!(world.tick(interval), Err(Code::PeerSilent));
        let expected: [&[u8]; 3] = [b"", header, &[beat + 1]];
        assert_eq!(world.said(), [expected], "DISCONNECT");
        assert_eq!(
            world.with(|dialect, out| dialect.tick(false, out)),
            Ok(()),
            "nobody is silent who is not read from"
        );
    }
}

#[test]
fn workers_come_and_go() {
    let mut world = worker(b"MDPW01");
    assert_eq!(world.try_hear(&Message::of(&[b"", b"MDPW01", b"\x05"])), Err(Code::Closing));
    assert_eq!(world.try_hear(&Message::of(&[b"", b"MDPW01", b"\x01", b"echo"])), Err(Code::AlreadyConsuming));
    assert_eq!(world.said()[0][2], &b"\x05"[..]);
    let mut bad = World::new(SocketType::Dealer, settings());
    assert_eq!(bad.try_hear(&Message::of(&[b"", b"MDPW01", b"\x01", b"no queue"])), Err(Code::BadName));
    // It does not know that the broker is another one.
    let mut old = World::new(SocketType::Dealer, settings());
    for command in [&[&b""[..], b"MDPW01", b"\x04"][..], &[b"", b"MDPW01", b"\x03", b"12345678", b"", b"x"]] {
        old.hear(command);
        assert_eq!((old.said()[0][2].as_ref(), old.take()), (&b"\x05"[..], vec![]), "DISCONNECT");
    }
}

#[test]
fn the_broker_answers_for_itself() {
    let mut world = World::new(SocketType::Req, settings());
    world.hear(&[b"", b"MDPC01", b"mmi.service", b"echo"]);
    let inputs = world.take();
    let [Input::Admin { seq, call: AdminCall::QueueShow { queue }, .. }] = &inputs[..] else { panic!("{inputs:?}") };
    assert_eq!(queue, "echo");
    assert_eq!(world.with(|dialect, out| dialect.answer(*seq, Err(Code::NotFound), out)), Ok(()));
    let answer = |code: &'static [u8]| vec![vec![&b""[..], b"MDPC01", b"mmi.service", code]];
    assert_eq!(world.said(), answer(b"404"));
    world.hear(&[b"", b"MDPC01", b"mmi.service", b"no queue"]);
    assert_eq!(world.said(), answer(b"404"));
    world.hear(&[b"", b"MDPC01", b"mmi.unknown", b"x"]);
    assert_eq!(world.said()[0][3], &b"501"[..]);
    assert_eq!((world.take(), world.dialect.unended()), (vec![], 0));
}
