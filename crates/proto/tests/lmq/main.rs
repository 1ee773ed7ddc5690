//! LMQ: golden bytes, and tables of bad input.

#[path = "../golden/mod.rs"]
mod golden;

use bytes::Bytes;
use turno_proto::lmq::{
    APP_PING, DEREGISTER, INCREMENT, LmqCommand, LmqFault, LmqMessage, Order, REGISTER, STREAM, is_lmq, slots,
};
use turno_proto::model::limits;
use turno_proto::zmtp::{self, Message};

const ONE: &[u8] = &[0, 0, 0, 1];

fn message(command: LmqCommand, id: &'static [u8], arguments: &[&'static [u8]]) -> LmqMessage {
    LmqMessage::new(command, id, arguments.iter().map(|argument| Bytes::from_static(argument)).collect())
}

fn from(senders: &[&'static str], message: LmqMessage) -> LmqMessage {
    LmqMessage { senders: senders.iter().map(|sender| Bytes::from_static(sender.as_bytes())).collect(), ..message }
}

fn to(top: &[&'static str], message: LmqMessage) -> LmqMessage {
    LmqMessage { top: top.iter().map(|address| Bytes::from_static(address.as_bytes())).collect(), ..message }
}

/// The messages of the vectors, by their names.
fn values() -> Vec<(&'static str, LmqMessage)> {
    use LmqCommand::{Exec, Ping, Pong, Response, TrackAddress, TrackExec};
    vec![
        ("register", message(TrackExec, ONE, &[&[REGISTER], b"10"])),
        ("register_sender", from(&["w1"], message(TrackExec, ONE, &[&[REGISTER], b"10"]))),
        ("registered", message(Response, ONE, &[])),
        ("deregister", message(Exec, b"WORKER", &[&[DEREGISTER]])),
        ("increment", message(Exec, &[0, 0, 0, 2], &[&[INCREMENT]])),
        ("ping", message(Ping, &[0, 0, 0, 3], &[])),
        ("pong", message(Pong, &[0, 0, 0, 3], &[])),
        ("exec_ping", message(Exec, &[0, 0, 0, 4], &[&[APP_PING]])),
        ("trackexec_ping", from(&["c1"], message(TrackExec, &[0, 0, 0, 5], &[&[APP_PING]]))),
        ("response_up", to(&["s1", "c1"], message(Response, &[0, 0, 0, 5], &[]))),
        ("stream", from(&["c1", "s1"], message(TrackExec, &[0, 0, 0, 6], &[&[STREAM], b"STREAM_ID", b"1024"]))),
        ("empty_argument", message(TrackExec, b"", &[b"a", b"", b"b"])),
        ("trackaddress", to(&["c1"], message(TrackAddress, &[0, 0, 0, 5], &[]))),
    ]
}

/// The frames of a vector: all of them are short.
fn parts(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let [_flags, len, rest @ ..] = bytes {
        let (part, behind) = rest.split_at(usize::from(*len));
        parts.push(part);
        bytes = behind;
    }
    parts
}

/// Proves S0.9 and S0.35: REGISTER has its slots in a frame and its address behind, and what is read is written again byte for byte.
#[test]
fn the_golden_bytes_are_read_and_written() {
    let vectors = golden::read(include_str!("../../vectors/lmq.txt"));
    let values = values();
    assert!(vectors.iter().map(|vector| vector.name).eq(values.iter().map(|(name, _)| *name)));
    for (vector, (name, value)) in vectors.iter().zip(values) {
        let read = Message::of(&parts(&vector.bytes));
        assert!(is_lmq(&read), "{name}");
        assert_eq!(LmqMessage::decode(&read), Ok(value.clone()), "{name}");
        let mut written = Vec::new();
        zmtp::encode(value.frames().iter().map(|frame| &**frame), &mut written);
        assert_eq!(written, vector.bytes, "{name}");
    }
}

/// Proves S0.8: three orders are the server's own, all else is not.
#[test]
fn three_orders_are_the_servers() {
    let order = |name: &str| values().into_iter().find(|(other, _)| *other == name).and_then(|(_, one)| one.order());
    for (name, expected) in [
        ("register", Some(Order::Register(Ok(10)))),
        ("deregister", Some(Order::Deregister)),
        ("increment", Some(Order::Increment)),
        ("ping", None),
        ("exec_ping", None),
        ("trackexec_ping", None),
        ("stream", None),
        ("response_up", None),
        ("empty_argument", None),
    ] {
        assert_eq!(order(name), expected, "{name}");
    }
    assert_eq!(message(LmqCommand::Response, ONE, &[&[REGISTER], b"10"]).order(), None, "an answer is no order");
    assert_eq!(message(LmqCommand::Exec, ONE, &[&[REGISTER, 0], b"10"]).order(), None, "the argument is one byte");
    let none = message(LmqCommand::Exec, ONE, &[&[REGISTER]]).order();
    assert_eq!(none, Some(Order::Register(Err(LmqFault::BadSlots))));
}

/// Proves S0.13: a number that is none is told apart, a negative one counts as 0.
#[test]
fn slots_are_a_decimal_number() {
    let most = Ok(limits::SLOTS_MAX);
    for (text, expected) in [
        ("10", Ok(10)),
        ("+3", Ok(3)),
        ("007", Ok(7)),
        ("0", Ok(0)),
        ("-1", Ok(0)),
        ("-99999999999999999999", Ok(0)),
        ("1000000000", most),
        ("99999999999999999999", most),
        ("", Err(LmqFault::BadSlots)),
        ("-", Err(LmqFault::BadSlots)),
        ("ten", Err(LmqFault::BadSlots)),
        ("1.5", Err(LmqFault::BadSlots)),
        (" 10", Err(LmqFault::BadSlots)),
        ("10\n", Err(LmqFault::BadSlots)),
        ("0x10", Err(LmqFault::BadSlots)),
    ] {
        assert_eq!(slots(text.as_bytes()), expected, "{text:?}");
    }
    assert_eq!(slots(b"\xff"), Err(LmqFault::BadSlots));
}

#[test]
fn bad_frames_are_told_apart() {
    const V: &[u8] = turno_proto::lmq::VERSION;
    let long = vec![1; limits::ZMQ_ENVELOPE_BYTES_MAX + 1];
    let id = vec![1; limits::LMQ_ID_BYTES_MAX + 1];
    let too_many = [&[&b"a"[..]; limits::ZMQ_ENVELOPE_FRAMES_MAX][..], &[b"", V, &[4], b"1", b""]].concat();
    let senders = [&[&b""[..], V, &[4], b"1", b""][..], &[&b"a"[..]; limits::ZMQ_ENVELOPE_FRAMES_MAX]].concat();
    let table: [(&[&[u8]], LmqFault); 17] = [
        (&[V, &[4], b"1", b"x"], LmqFault::NoDelimiter),
        (&[b"a"], LmqFault::NoDelimiter),
        (&[&long, b"", V, &[4], b"1", b""], LmqFault::NoDelimiter),
        (&too_many, LmqFault::NoDelimiter),
        (&[b""], LmqFault::WrongVersion),
        (&[b"", b"LMQv200", &[4], b"1", b""], LmqFault::WrongVersion),
        (&[b"", b"", V, &[4], b"1", b""], LmqFault::WrongVersion),
        (&[b"", V], LmqFault::UnknownCommand),
        (&[b"", V, &[0], b"1", b""], LmqFault::UnknownCommand),
        (&[b"", V, &[7], b"1", b""], LmqFault::UnknownCommand),
        (&[b"", V, &[4, 0], b"1", b""], LmqFault::UnknownCommand),
        (&[b"", V, &[], b"1", b""], LmqFault::UnknownCommand),
        (&[b"", V, &[4]], LmqFault::BadId),
        (&[b"", V, &[4], &id, b""], LmqFault::BadId),
        (&[b"", V, &[4], b""], LmqFault::NoEnd),
        (&[b"", V, &[4], b"1", &[8], b"10"], LmqFault::NoEnd),
        (&senders, LmqFault::NoEnd),
    ];
    for (frames, fault) in table {
        assert_eq!(LmqMessage::decode(&Message::of(frames)), Err(fault), "{frames:?}");
    }
    assert!(is_lmq(&Message::of(&[b"", b"LMQv200", &[4]])), "another version is LMQ, too");
    assert!(!is_lmq(&Message::of(&[b"LMQv100"])) && !is_lmq(&Message::of(&[b""])));
}

/// The way back is the way there, backwards.
#[test]
fn an_answer_goes_back_through_the_senders() {
    let asked = from(&["c1", "s1"], message(LmqCommand::TrackExec, ONE, &[&[APP_PING]]));
    assert_eq!(
        asked.answer(LmqCommand::Response, Vec::new()),
        to(&["s1", "c1"], message(LmqCommand::Response, ONE, &[]))
    );
}
