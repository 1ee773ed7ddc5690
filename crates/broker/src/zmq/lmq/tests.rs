//! Messages of LMQ peers become inputs, and effects become messages for peers.

use std::collections::BTreeMap;

use turno_engine::{BorrowedPayload, CallerMessage, Deliver, Input, WorkerMessage};
use turno_proto::headers::{self, Headers};
use turno_proto::lmq::VERSION;
use turno_proto::model::{Again, Code, ConnId, Cost, Payload, Slots, limits};
use turno_proto::zmtp::{Message, SocketType};

use super::super::dialect::tests::{CONN, World, deliver, frames_of, reply, settings};
use super::super::endpoint::Count;
use super::super::frames::Frames;
use super::super::settings::{ZmqEndpoint, ZmqRole};

/// The frames of a message.
type Parts = &'static [&'static [u8]];

const SEAT: ConnId = ConnId { index: 100, generation: 1 };
const OTHER: ConnId = ConnId { index: 101, generation: 1 };

fn world() -> World {
    World::new(SocketType::Dealer, ZmqEndpoint { role: ZmqRole::Lmq, ..settings() })
}

/// Handles a delivery as the connection does: if there is no message for the peer, the dialect is told.
fn delivery(world: &mut World, deliver: &Deliver<BorrowedPayload<'_>>) -> Option<Frames> {
    let frames = world.dialect.delivery(deliver).as_ref().map(frames_of);
    if frames.is_none() {
        world.with(|dialect, out| dialect.not_delivered(deliver, out));
    }
    frames
}

/// A payload with an id and perhaps parts.
fn payload(id: &str, parts: Option<&str>, body: &'static [u8]) -> Payload {
    let mut headers = Headers::from([("lmq-id".to_owned(), id.to_owned())]);
    headers.extend(parts.map(|parts| ("parts".to_owned(), parts.to_owned())));
    headers::encode(&headers, body).unwrap()
}

/// The connection, the slots and the name of the worker that inputs register.
fn registered(inputs: Vec<Input>) -> (ConnId, u32, Option<String>) {
    let mut name = None;
    for input in inputs {
        match input {
            Input::Connected { name: given, .. } => name = Some(given),
            Input::RegisterKeeping { conn, slots: Slots::Limited(slots), .. } => return (conn, slots, name),
            _ => {}
        }
    }
    panic!("nobody registers")
}

const REGISTER: Parts = &[b"", VERSION, &[4], b"7", &[8], b"10", b"", b"w1"];
const REGISTERED: Parts = &[b"w1", b"", VERSION, &[6], b"7", b""];

/// Proves S0.2 and S0.35: a request keeps its id and arguments; the answer goes back the way it came, with the same id.
#[test]
fn requests_and_answers_keep_their_frames() {
    let table: [(Parts, Payload, bool, Parts); 4] = [
        (
            &[b"", VERSION, &[4], b"\0\x01", &[1], b""],
            payload("0001", None, &[1]),
            false,
            &[b"", VERSION, &[6], b"\0\x01", b"A", b""],
        ),
        (
            &[b"", VERSION, &[4], b"x", b"", b"", b"c1", b"s1"],
            payload("78", Some("0"), b""),
            false,
            &[b"s1", b"c1", b"", VERSION, &[6], b"x", b"A", b""],
        ),
        (
            &[b"", VERSION, &[4], b"", b"a", b"", b"bc", b""],
            payload("", Some("1 0 2"), b"abc"),
            false,
            &[b"", VERSION, &[6], b"", b"A", b""],
        ),
        (&[b"", VERSION, &[3], b"n", b""], payload("6e", None, b""), true, &[]),
    ];
    for (asked, expected, no_reply, answer) in table {
        let mut world = world();
        world.hear(asked);
        let inputs = world.take();
        let [Input::Open { queue, .. }, Input::Request { conn, message }] = &inputs[..] else { panic!("{inputs:?}") };
        assert_eq!((queue.as_str(), *conn, message.no_reply), ("q", CONN, no_reply));
        let read = |payload: &Payload| headers::decode(payload).unwrap();
        assert_eq!(read(&message.payload), read(&expected), "{asked:?}");
        let seq = message.seq;
        if no_reply {
            assert_eq!(world.dialect.unended(), 1);
            assert_eq!(world.caller_message(seq, CallerMessage::Delivered), None);
        } else {
            assert_eq!(world.caller_message(seq, reply(b"A", false)).unwrap(), answer);
        }
        assert_eq!(world.dialect.unended(), 0);
    }
}

/// Of a request that fails a client hears nothing, unless the endpoint has a frame for that; pieces are one answer.
#[test]
fn pieces_are_one_answer_and_failures_are_withheld() {
    let mut world = world();
    world.hear(&[b"", VERSION, &[4], b"1", &[1], b""]);
    assert_eq!(world.caller_message(1, reply(b"a", true)), None);
    assert_eq!(world.caller_message(1, reply(b"", false)).unwrap(), [&b""[..], VERSION, &[6], b"1", b"a", b""]);
    world.hear(&[b"", VERSION, &[4], b"2", &[1], b""]);
    let failed = || CallerMessage::Undelivered { code: Code::Failed, payload: Payload::body("no") };
    assert_eq!(world.caller_message(1, failed()), None);
    assert_eq!(world.counted(Count::Withheld), 1);
    let error_frame = Some("ERROR".to_owned());
    let mut told = World::new(SocketType::Dealer, ZmqEndpoint { role: ZmqRole::Lmq, error_frame, ..settings() });
    told.hear(&[b"", VERSION, &[4], b"2", &[1], b""]);
    let expected = [&b""[..], VERSION, &[6], b"2", b"ERROR", b"failed", b"no", b""];
    assert_eq!(told.caller_message(1, failed()).unwrap(), expected);
}

/// Proves S0.9, S0.12 and S0.39: REGISTER is answered; a worker has the seat of its address, and keeps it when it registers again.
#[test]
fn a_worker_is_its_address() {
    let mut world = world();
    world.hear(REGISTER);
    assert_eq!(registered(world.take()), (SEAT, 10, Some("w1".to_owned())));
    assert_eq!(world.said(), [REGISTERED]);
    world.hear(&[b"", VERSION, &[4], b"8", &[8], b"3", b"", b"w1"]);
    assert_eq!(registered(world.take()), (SEAT, 3, None), "no second worker");
    world.hear(&[b"", VERSION, &[3], b"8", &[8], b"4", b"", b"w2"]);
    assert_eq!(registered(world.take()), (OTHER, 4, Some("w2".to_owned())));
    assert_eq!(world.said().len(), 1, "EXEC is not answered");
    assert!(world.dialect.settles());
}

/// Proves S0.13: slots that are no number change nothing and get an error; 0 and less are no slots; too many are the most.
#[test]
fn slots_of_a_worker() {
    let most = limits::SLOTS_MAX;
    for (text, slots) in [("0", 0), ("-1", 0), ("1000000000", most)] {
        let mut world = world();
        world.hear(&[b"", VERSION, &[4], b"7", &[8], text.as_bytes(), b""]);
        assert_eq!(registered(world.take()).1, slots, "{text}");
    }
    let mut world = world();
    world.hear(&[b"", VERSION, &[4], b"7", &[8], b"many", b"", b"w1"]);
    assert_eq!(world.take(), []);
    let said = world.said();
    assert_eq!(said[0][..5], [&b"w1"[..], b"", VERSION, &[6], b"7"]);
    assert_eq!(said[0][5], "bad_slots");
    assert_eq!(world.counted(Count::Refused), 1);
}

/// Proves S0.14 and S0.17: orders about an address that nobody has are dropped without an answer, and counted.
#[test]
fn orders_about_unknown_addresses_are_dropped() {
    let mut world = world();
    for (count, order) in (1..).zip([7, 9]) {
        world.hear(&[b"", VERSION, &[4], b"7", &[order], b"", b"w1"]);
        assert_eq!((world.take(), world.said()), (vec![], vec![]));
        assert_eq!(world.counted(Count::BadEnvelope), count);
    }
    world.hear(REGISTER);
    world.take();
    world.hear(&[b"", VERSION, &[3], b"7", &[7], b"", b"w1"]);
    assert_eq!(world.take(), [Input::GiveBack { conn: SEAT }]);
    world.hear(&[b"", VERSION, &[3], b"7", &[9], b"", b"w1"]);
    let inputs = world.take();
    assert!(matches!(inputs[..], [Input::Deregister { conn: SEAT, .. }]), "{inputs:?}");
    world.hear(&[b"", VERSION, &[3], b"7", &[9], b"", b"w1"]);
    assert_eq!((world.take(), world.counted(Count::BadEnvelope)), (vec![], 3), "it left already");
}

/// Proves S0.33 and S0.35: a worker gets the id and arguments of the request, and its answer passes to the caller.
#[test]
fn a_delivery_and_its_answer() {
    let mut world = world();
    world.hear(REGISTER);
    world.take();
    world.said();
    let asked = payload("0001", Some("1 0"), &[1]);
    let frames = delivery(&mut world, &Deliver { conn: SEAT, ..deliver(&asked) }).unwrap();
    let address = frames.last().unwrap().clone();
    let expected = [&b"w1"[..], b"", VERSION, &[4], b"\0\x01", &[1], b"", b"", &address];
    assert_eq!(frames, expected);
    let answered = |world: &mut World, frames: &[&[u8]]| {
        world.hear(frames);
        world.take()
    };
    let inputs = answered(&mut world, &[&address, b"", VERSION, &[6], b"\0\x01", b"A", b""]);
    let payload = Payload::body("A");
    assert_eq!(inputs, [Input::worker(SEAT, deliver(&asked).delivery, WorkerMessage::Reply { more: false, payload })]);
    let inputs = answered(&mut world, &[&address, b"", VERSION, &[3], b"n", b"x", b""]);
    let [Input::Worker { message: WorkerMessage::Progress { payload }, .. }] = &inputs[..] else {
        panic!("{inputs:?}")
    };
    let message = CallerMessage::Progress { payload: payload.clone() };
    let mut client = self::world();
    client.hear(&[b"", VERSION, &[4], b"1", &[1], b"", b"c1"]);
    assert_eq!(client.caller_message(1, message).unwrap(), [&b"c1"[..], b"", VERSION, &[3], b"n", b"x", b""]);
}

/// Native messages have no id: that of the delivery is taken. A native message without a reply is answered all the same.
#[test]
fn native_messages_come_as_trackexec() {
    let mut world = world();
    world.hear(REGISTER);
    let (native, quiet) = (Payload::body("hi"), payload("01", None, b"x"));
    let frames = delivery(&mut world, &Deliver { conn: SEAT, wants_reply: false, ..deliver(&native) }).unwrap();
    assert_eq!((&*frames[3], frames[4].len(), &*frames[5]), (&[4][..], 8, &b"hi"[..]));
    let frames = delivery(&mut world, &Deliver { conn: SEAT, wants_reply: false, ..deliver(&quiet) }).unwrap();
    assert_eq!(&*frames[3], [3], "EXEC");
    let broadcast = Deliver { conn: SEAT, cost: Cost::Broadcast, ..deliver(&native) };
    world.take();
    assert_eq!(delivery(&mut world, &broadcast), None);
    let inputs = world.take();
    assert!(
        matches!(
            inputs[..],
            [Input::Worker { conn: SEAT, message: WorkerMessage::Fail { again: Again::Never, .. }, .. }]
        ),
        "{inputs:?}"
    );
}

/// Proves S0.8 and S0.36: PING is answered; what nobody can do anything with is dropped and counted.
#[test]
fn other_messages() {
    let mut world = world();
    world.hear(&[b"", VERSION, &[1], b"p", b"", b"c1"]);
    assert_eq!(world.said(), [[&b"c1"[..], b"", VERSION, &[2], b"p", b""]]);
    for quiet in [2, 5] {
        world.hear(&[b"", VERSION, &[quiet], b"p", b""]);
    }
    assert_eq!(world.counted(Count::BadEnvelope), 0);
    let bad: [(Parts, Count); 6] = [
        (&[b"", VERSION, &[6], b"1", b""], Count::BadEnvelope),
        (&[b"", b"LMQv200", &[4], b"1", b""], Count::BadEnvelope),
        (&[b"", VERSION, &[9], b"1", b""], Count::BadEnvelope),
        (&[b"hello"], Count::BadEnvelope),
        (&[b"nobody", b"", VERSION, &[6], b"1", b""], Count::Refused),
        (&[&[0; 13], b"", VERSION, &[6], b"1", b""], Count::BadEnvelope),
    ];
    let mut counts: BTreeMap<bool, u64> = BTreeMap::new();
    for (frames, count) in bad {
        world.hear(frames);
        *counts.entry(count == Count::Refused).or_default() += 1;
        let counted = (world.counted(Count::BadEnvelope), world.counted(Count::Refused));
        assert_eq!(counted, (counts[&false], counts.get(&true).copied().unwrap_or_default()), "{frames:?}");
        assert_eq!((world.take(), world.said()), (vec![], vec![]));
    }
    let many = vec![&b"x"[..]; limits::MESSAGE_PARTS_MAX + 1];
    let message = [&[&b""[..], VERSION, &[4], b"1"][..], &many, &[b""]].concat();
    assert_eq!(world.try_hear(&Message::of(&message)), Err(Code::TooManyParts));
}

/// Proves S0.32 and S0.33: a message for somebody's address passes; of one behind a connection the address stays on top.
#[test]
fn a_message_for_an_address_passes() {
    let mut world = world();
    world.hear(REGISTER);
    world.take();
    let frames: &[&[u8]] = &[b"w1", b"", VERSION, &[4], b"1", b"more", b""];
    world.hear(frames);
    let inputs = world.take();
    let [Input::Relay { to: CONN, payload }] = &inputs[..] else { panic!("{inputs:?}") };
    let passing = CallerMessage::Progress { payload: payload.clone() };
    assert_eq!(world.caller_message(0, passing).unwrap(), frames);
}

/// The first that deregistered makes room for a new worker; without one REGISTER is refused.
#[test]
fn a_connection_has_so_many_workers_and_not_more() {
    let mut world = world();
    let register = |world: &mut World, number: usize| {
        let name = format!("w{number}");
        world.hear(&[b"", VERSION, &[4], b"7", &[8], b"1", b"", name.as_bytes()]);
        (world.take(), world.said().remove(0).len())
    };
    for number in 0..limits::LMQ_WORKERS_MAX {
        assert_eq!(register(&mut world, number).1, REGISTERED.len());
    }
    assert_eq!(register(&mut world, 5_000), (vec![], REGISTERED.len() + 2), "an error");
    world.hear(&[b"", VERSION, &[3], b"7", &[9], b"", b"w7"]);
    world.take();
    let (inputs, _) = register(&mut world, 5_000);
    let seventh = ConnId { index: 107, generation: 1 };
    assert_eq!(inputs.first(), Some(&Input::Disconnected { conn: seventh }));
    assert_eq!(register(&mut world, 7).0, [], "its address is nobody's now");
}

/// A socket that asks is one of LMQ from its first message on.
#[test]
fn a_plain_endpoint_tells_lmq_by_its_frames() {
    for theirs in [SocketType::Dealer, SocketType::Req] {
        let mut world = World::new(theirs, settings());
        world.hear(REGISTER);
        assert_eq!(registered(world.take()).0, SEAT);
    }
}
