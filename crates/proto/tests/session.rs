//! The broker's side of a connection: what comes in, what it means, what goes out, and when patience ends.

mod golden;
mod values;

use std::collections::BTreeMap;

use proptest::prelude::*;
use turno_proto::model::{Code, Limits, Mono, Slots, limits};
use turno_proto::native::{
    Config, Connect, Direction, Fault, Frame, HEADER_LEN, Header, Kind, Register, Session, SessionStep, VERSION,
    decode, encode, split,
};

const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// CONNECT, CONFIG, PING, PONG: the bytes of the worked example. Proves S1.6 and S1.7.
#[test]
fn the_greeting_is_connect_config_ping_pong() {
    let golden = golden_by_name();
    let mut session = Session::new(Mono::ZERO, FRAME_BYTES_MAX);
    let mut out = Vec::new();

    assert!(session.greeting());
    let (step, used) = session.step(&golden["example_connect"], &config(), &mut out).unwrap();
    assert_eq!(used, golden["example_connect"].len());
    assert_eq!(step, SessionStep::Opened(connect("w1", 0)));
    assert_eq!(out, golden["example_config"], "CONFIG goes out, with the seq of CONNECT");
    assert!(!session.greeting());

    out.clear();
    let (step, used) = session.step(&golden["example_ping"], &config(), &mut out).unwrap();
    assert_eq!((step, used), (SessionStep::Ready, HEADER_LEN));
    assert_eq!(out, golden["example_pong"], "PONG is written before anybody learns that the peer is ready");
}

/// The greeting in one read, and in reads of one byte: the same steps, the same answers. Proves S1.6.
#[test]
fn the_greeting_does_not_depend_on_how_it_arrives() {
    let golden = golden_by_name();
    let input = [&golden["example_connect"][..], &golden["example_ping"], &golden["example_register"]].concat();
    let answers = [&golden["example_config"][..], &golden["example_pong"]].concat();
    let register = Frame::Register { seq: 3, register: Register::new(Slots::Limited(10), "") };
    let expected = vec![SessionStep::Opened(connect("w1", 0)), SessionStep::Ready, SessionStep::Frame(register)];

    let mut session = Session::new(Mono::ZERO, FRAME_BYTES_MAX);
    let mut out = Vec::new();
    assert_eq!(steps(&mut session, &input, &mut out), Ok(expected));
    assert_eq!(out, answers);

    let mut session = Session::new(Mono::ZERO, FRAME_BYTES_MAX);
    let (mut out, mut start, mut count) = (Vec::new(), 0, 0);
    for end in 1..=input.len() {
        let (step, used) = session.step(&input[start..end], &config(), &mut out).unwrap();
        assert_eq!(used == 0, step == SessionStep::NeedMore);
        count += usize::from(step != SessionStep::NeedMore);
        start += used;
    }
    assert_eq!((count, out), (3, answers));
}

/// A worker that says everything at once is ready at its PING and not before; PONG is the first thing it gets
/// after CONFIG. Proves S1.7.
#[test]
fn the_first_ping_makes_ready_whatever_came_before_it() {
    let frames = [
        Frame::Connect { seq: 1, connect: connect("w1", 0) },
        Frame::Register { seq: 2, register: Register::new(Slots::Unlimited, "") },
        Frame::Open { seq: 3, handle: 1, name: b"echo" },
        Frame::Consume { seq: 4, handle: 1, exclusive: false },
        Frame::Ping { seq: 5 },
        Frame::Ping { seq: 6 },
    ];
    let mut session = Session::new(Mono::ZERO, FRAME_BYTES_MAX);
    let mut out = Vec::new();
    let input = written(&frames);
    let [_, register, open, consume, ..] = frames;
    let expected = vec![
        SessionStep::Opened(connect("w1", 0)),
        SessionStep::Frame(register),
        SessionStep::Frame(open),
        SessionStep::Frame(consume),
        SessionStep::Ready,
        SessionStep::Done,
    ];
    assert_eq!(steps(&mut session, &input, &mut out), Ok(expected));
    let config = Frame::Config { seq: 1, config: Box::new(config()) };
    assert_eq!(read_all(&out), [config, Frame::Pong { seq: 5 }, Frame::Pong { seq: 6 }]);
}

/// Every frame there is, said first. Proves S1.6.
#[test]
fn whatever_else_comes_first_ends_the_connection() {
    for vector in golden::all() {
        let mut session = Session::new(Mono::ZERO, FRAME_BYTES_MAX);
        let mut out = Vec::new();
        let (kind, seq) = head(&vector.bytes);
        let step = session.step(&vector.bytes, &config(), &mut out);
        if kind == Kind::LinkHello {
            assert_eq!(
                (step, out.is_empty()),
                (Ok((SessionStep::Link, 0)), true),
                "a link's own session goes on with it"
            );
        } else if kind != Kind::Connect {
            assert_eq!(step, Err(Fault::fatal(Code::ExpectedConnect, seq)), "{}", vector.name);
            assert_ends_with_error(&out, Code::ExpectedConnect, seq);
            assert!(session.greeting(), "{}", vector.name);
        }
    }
}

/// Every frame there is, after CONNECT and again after the first PING.
#[test]
fn after_the_greeting_the_direction_decides() {
    let values: BTreeMap<&str, Frame<'_>> = values::all().into_iter().collect();
    for vector in golden::all() {
        for pinged in [false, true] {
            let mut session = greeted(Mono::ZERO, 0);
            if pinged {
                steps(&mut session, &written(&[Frame::Ping { seq: 1 }]), &mut Vec::new()).unwrap();
            }
            let mut out = Vec::new();
            let (kind, seq) = head(&vector.bytes);
            let step = session.step(&vector.bytes, &config(), &mut out);
            let fatal = |code| Err(Fault::fatal(code, seq));
            let (expected, answer) = match (kind, kind.direction()) {
                (Kind::Connect, _) => (fatal(Code::ExpectedConnect), Some(Code::ExpectedConnect)),
                (_, Direction::ToPeer | Direction::Link | Direction::Ring) => {
                    (fatal(Code::WrongDirection), Some(Code::WrongDirection))
                }
                (Kind::Ping, _) if pinged => (Ok((SessionStep::Done, HEADER_LEN)), None),
                (Kind::Ping, _) => (Ok((SessionStep::Ready, HEADER_LEN)), None),
                _ => (Ok((SessionStep::Frame(values[vector.name].clone()), vector.bytes.len())), None),
            };
            assert_eq!(step, expected, "{} pinged={pinged}", vector.name);
            match (kind, answer) {
                (_, Some(code)) => assert_ends_with_error(&out, code, seq),
                (Kind::Ping, None) => assert_eq!(read_all(&out), [Frame::Pong { seq }]),
                (_, None) => assert!(out.is_empty(), "{}: the session answers nothing else itself", vector.name),
            }
        }
    }
}

#[test]
fn a_wrong_direction_is_told_whatever_is_inside() {
    let wrong = |kind: &&Kind| matches!(kind.direction(), Direction::ToPeer | Direction::Link);
    for kind in Kind::ALL.iter().filter(wrong) {
        let mut out = Vec::new();
        let step = greeted(Mono::ZERO, 0).step(&frame(*kind, 9, b"\xC1 no map"), &config(), &mut out).map(|_| ());
        assert_eq!(step, Err(Fault::fatal(Code::WrongDirection, 9)), "{kind:?}");
        assert_ends_with_error(&out, Code::WrongDirection, 9);
    }
}

#[test]
fn another_version_is_refused() {
    for version in [0, VERSION + 1, u16::MAX] {
        let connect = Connect { version, ..connect("w1", 0) };
        let mut session = Session::new(Mono::ZERO, FRAME_BYTES_MAX);
        let mut out = Vec::new();
        let step = steps(&mut session, &written(&[Frame::Connect { seq: 4, connect }]), &mut out).map(|_| ());
        assert_eq!(step, Err(Fault::fatal(Code::VersionMismatch, 4)), "{version}");
        assert_ends_with_error(&out, Code::VersionMismatch, 4);
        assert!(session.greeting());
    }
}

/// What only refuses a frame later on ends the connection while it is strange.
#[test]
fn a_connect_that_cannot_be_read_ends_the_connection() {
    for rest in [&b""[..], b"\x80", b"\x91\x01", b"\x81\xA7version\xA11"] {
        let mut out = Vec::new();
        let mut session = Session::new(Mono::ZERO, FRAME_BYTES_MAX);
        let step = session.step(&frame(Kind::Connect, 5, rest), &config(), &mut out).map(|_| ());
        assert_eq!(step, Err(Fault::fatal(Code::BadBody, 5)), "{rest:?}");
        assert_ends_with_error(&out, Code::BadBody, 5);
    }
}

#[test]
fn a_stranger_gets_four_kib_and_a_peer_what_config_says() {
    // The name fills the frame: the rest of the map takes what an empty name leaves.
    let fixed = written(&[Frame::Connect { seq: 1, connect: connect("", 0) }]).len() + 2;
    let of_length = |length: usize| {
        let connect = Connect { name: "x".repeat(length - fixed), ..connect("", 0) };
        written(&[Frame::Connect { seq: 1, connect }])
    };
    let exact = of_length(limits::GREETING_FRAME_BYTES_MAX);
    assert_eq!(exact.len(), limits::GREETING_FRAME_BYTES_MAX);
    let opened = steps(&mut Session::new(Mono::ZERO, FRAME_BYTES_MAX), &exact, &mut Vec::new());
    assert!(matches!(opened.as_deref(), Ok([SessionStep::Opened(_)])));

    let mut out = Vec::new();
    let longer = of_length(limits::GREETING_FRAME_BYTES_MAX + 1);
    let step = Session::new(Mono::ZERO, FRAME_BYTES_MAX).step(&longer[..HEADER_LEN], &config(), &mut out);
    assert_eq!(step, Err(Fault::fatal(Code::FrameTooLarge, 1)), "told by the header alone");
    assert_ends_with_error(&out, Code::FrameTooLarge, 1);

    let claim = |length: usize| {
        let length = u32::try_from(length).unwrap();
        let header = Header { kind: Kind::Request.number(), flags: 0, seq: 2, word: 0, length };
        greeted(Mono::ZERO, 0).step(&header.to_bytes(), &config(), &mut Vec::new()).map(|(_, used)| used)
    };
    assert_eq!(claim(FRAME_BYTES_MAX - HEADER_LEN), Ok(0));
    assert_eq!(claim(FRAME_BYTES_MAX - HEADER_LEN + 1), Err(Fault::fatal(Code::FrameTooLarge, 2)));
}

#[test]
fn the_greeting_has_five_seconds() {
    let began = Mono::from_millis(1_000);
    let mut session = Session::new(began, FRAME_BYTES_MAX);
    session.heard(Mono::from_millis(5_999));
    assert_eq!(session.next_deadline(), Mono::from_millis(6_000), "bytes alone do not extend it");
    assert_eq!(session.handle_timeout(Mono::from_micros(5_999_999)), None);
    assert_eq!(session.handle_timeout(Mono::from_millis(6_000)), Some(Code::GreetingTimeout));
    assert_eq!(session.handle_timeout(Mono::from_millis(60_000)), Some(Code::GreetingTimeout));
}

#[test]
fn the_heartbeat_is_what_was_asked_for_within_bounds() {
    let table = [
        (0, 5_000),
        (1, 250),
        (249, 250),
        (250, 250),
        (251, 251),
        (5_000, 5_000),
        (60_000, 60_000),
        (60_001, 60_000),
        (u32::MAX, 60_000),
    ];
    for (wanted, granted) in table {
        let mut session = Session::new(Mono::ZERO, FRAME_BYTES_MAX);
        let mut out = Vec::new();
        let input = written(&[Frame::Connect { seq: 1, connect: connect("w1", wanted) }]);
        steps(&mut session, &input, &mut out).unwrap();
        let expected = Config { heartbeat_ms: granted, ..config() };
        assert_eq!(read_all(&out), [Frame::Config { seq: 1, config: Box::new(expected) }], "{wanted}");
        assert_eq!(session.next_deadline(), Mono::from_millis(u64::from(granted) * 3), "{wanted}");
    }
}

/// Silent for three heartbeats, and not a microsecond less; any byte begins the count anew. Proves S1.9.
#[test]
fn three_silent_heartbeats_end_the_connection() {
    for heartbeat_ms in [0, 250, 60_000] {
        let patience_ms = u64::from(if heartbeat_ms == 0 { 5_000 } else { heartbeat_ms }) * 3;
        let mut session = greeted(Mono::ZERO, heartbeat_ms);
        for heard_ms in [0, 100, 900_000] {
            session.heard(Mono::from_millis(heard_ms));
            let end = Mono::from_millis(heard_ms + patience_ms);
            assert_eq!(session.next_deadline(), end);
            assert_eq!(session.handle_timeout(Mono::from_micros(end.as_micros() - 1)), None);
            assert_eq!(session.handle_timeout(end), Some(Code::PeerSilent));
        }
    }
}

/// Slots that are no number, and other frames that are wrong only inside: an ERROR that names the frame, and the
/// connection goes on as if it had not come. Proves S0.13.
#[test]
fn a_refusal_names_its_frame_and_keeps_the_connection() {
    let table: &[(Kind, &[u8], Code)] = &[
        (Kind::Register, b"\x81\xA5slots\xA3ten", Code::BadBody),
        (Kind::Register, b"\x81\xA5slots\xC3", Code::BadBody),
        (Kind::Register, b"\x81\xA5slots\xCB\x40\x14\0\0\0\0\0\0", Code::BadBody),
        (Kind::Resize, b"\x81\xA5slots\x90", Code::BadBody),
        (Kind::Resize, b"", Code::BadBody),
        (Kind::Closing, b"\x81\xA6reason\xA5later", Code::BadBody),
        (Kind::AdminCall, b"\x81\xA2op\xA7explode", Code::BadCall),
        (Kind::Register, b"\x80", Code::BadBody),
    ];
    for (seq, (kind, rest, code)) in (100..).zip(table) {
        let mut session = greeted(Mono::ZERO, 0);
        let mut input = frame(*kind, seq, rest);
        encode(&Frame::Ping { seq: 7 }, &mut input);
        let mut out = Vec::new();
        let taken = steps(&mut session, &input, &mut out);
        assert_eq!(taken, Ok(vec![SessionStep::Refused(*code), SessionStep::Ready]), "{kind:?} {rest:?}");
        let error = Frame::Error { seq, code: *code, fatal: false, detail: code.text().what };
        assert_eq!(read_all(&out), [error, Frame::Pong { seq: 7 }], "{kind:?} {rest:?}");
    }
}

/// Negative counts as zero, always; too many are refused; nil is unlimited. Proves S0.13.
#[test]
fn slots_are_read_as_meant() {
    let table = [
        (None, Ok(Slots::Unlimited)),
        (Some(i64::MIN), Ok(Slots::Limited(0))),
        (Some(-1), Ok(Slots::Limited(0))),
        (Some(0), Ok(Slots::Limited(0))),
        (Some(10), Ok(Slots::Limited(10))),
        (Some(1_000_000), Ok(Slots::Limited(limits::SLOTS_MAX))),
        (Some(1_000_001), Err(Code::BadSlots)),
        (Some(i64::from(u32::MAX) + 1), Err(Code::BadSlots)),
        (Some(i64::MAX), Err(Code::BadSlots)),
    ];
    for (slots, expected) in table {
        let register = Register { slots, name: String::new(), key: String::new() };
        assert_eq!(register.slots(), expected, "{slots:?}");
        let input = written(&[Frame::Register { seq: 1, register: register.clone() }]);
        let taken = steps(&mut greeted(Mono::ZERO, 0), &input, &mut Vec::new()).unwrap().len();
        assert_eq!(taken, 1, "{slots:?} is well-formed: the frame is handed on");
    }
    for slots in [Slots::Unlimited, Slots::Limited(0), Slots::Limited(limits::SLOTS_MAX)] {
        assert_eq!(Register::new(slots, "w1").slots(), Ok(slots));
    }
}

#[test]
fn long_names_are_cut_between_characters() {
    let table = [
        ("x".repeat(128), "x".repeat(128)),
        ("x".repeat(129), "x".repeat(128)),
        (format!("{}ß", "x".repeat(126)), format!("{}ß", "x".repeat(126))),
        (format!("{}ß", "x".repeat(127)), "x".repeat(127)),
        ("€".repeat(100), "€".repeat(42)),
        ("🦀".repeat(33), "🦀".repeat(32)),
    ];
    for (given, kept) in table {
        let said = Connect { name: given.clone(), program: given.clone(), ..connect("", 0) };
        let input = written(&[Frame::Connect { seq: 1, connect: said }]);
        let expected = Connect { name: kept.clone(), program: kept.clone(), ..connect("", 0) };
        let taken = steps(&mut Session::new(Mono::ZERO, FRAME_BYTES_MAX), &input, &mut Vec::new());
        assert_eq!(taken, Ok(vec![SessionStep::Opened(expected)]));

        let register = |name: &str| Frame::Register { seq: 2, register: Register::new(Slots::Limited(1), name) };
        let input = written(&[register(&given)]);
        let taken = steps(&mut greeted(Mono::ZERO, 0), &input, &mut Vec::new());
        assert_eq!(taken, Ok(vec![SessionStep::Frame(register(&kept))]));
    }
}

proptest! {
    /// Whatever comes, before the greeting or after it: a step, a refusal or a fault, and each refusal and fault
    /// is said in exactly one ERROR.
    #[test]
    fn any_bytes_lead_to_a_step_or_a_fault(
        kind in prop::sample::select(Kind::ALL),
        seq in any::<u32>(),
        rest in prop::collection::vec(any::<u8>(), 0..60),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        open in any::<bool>(),
    ) {
        let mut session = if open { greeted(Mono::ZERO, 0) } else { Session::new(Mono::ZERO, FRAME_BYTES_MAX) };
        let mut input = frame(kind, seq, &rest);
        input.extend_from_slice(&noise);
        let (mut out, mut start, mut errors) = (Vec::new(), 0, 0);
        loop {
            match session.step(&input[start..], &config(), &mut out) {
                Ok((SessionStep::NeedMore, used)) => {
                    prop_assert_eq!(used, 0);
                    break;
                }
                Ok((SessionStep::Link, used)) => {
                    prop_assert_eq!((used, open, kind), (0, false, Kind::LinkHello));
                    break;
                }
                Ok((step, used)) => {
                    prop_assert!(used >= HEADER_LEN);
                    errors += usize::from(matches!(step, SessionStep::Refused(_)));
                    start += used;
                    prop_assert!(start <= input.len());
                }
                Err(fault) => {
                    prop_assert!(fault.fatal);
                    errors += 1;
                    break;
                }
            }
        }
        let said = read_all(&out).iter().filter(|frame| frame.kind() == Kind::Error).count();
        prop_assert_eq!(said, errors);
    }
}

fn config() -> Config {
    Config {
        broker: "b1".to_owned(),
        program: "turno 0.1.0".to_owned(),
        brokers: vec!["127.0.0.1:7460".to_owned()],
        ..Config::of(&Limits::default())
    }
}

fn connect(name: &str, heartbeat_ms: u32) -> Connect {
    Connect { version: VERSION, name: name.to_owned(), program: "demo 1.0".to_owned(), heartbeat_ms }
}

/// A session that has answered CONNECT.
fn greeted(now: Mono, heartbeat_ms: u32) -> Session {
    let mut session = Session::new(now, FRAME_BYTES_MAX);
    let input = written(&[Frame::Connect { seq: 1, connect: connect("w1", heartbeat_ms) }]);
    steps(&mut session, &input, &mut Vec::new()).expect("a sound greeting");
    session
}

/// Every step until the session wants more bytes.
fn steps<'a>(session: &mut Session, input: &'a [u8], out: &mut Vec<u8>) -> Result<Vec<SessionStep<'a>>, Fault> {
    let (mut start, mut taken) = (0, Vec::new());
    loop {
        let (step, used) = session.step(&input[start..], &config(), out)?;
        if step == SessionStep::NeedMore {
            assert_eq!(start, input.len(), "the input is whole frames");
            return Ok(taken);
        }
        start += used;
        taken.push(step);
    }
}

fn written(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| encode(frame, &mut bytes));
    bytes
}

fn frame(kind: Kind, seq: u32, rest: &[u8]) -> Vec<u8> {
    let length = u32::try_from(rest.len()).expect("a short rest");
    let mut bytes = Header { kind: kind.number(), flags: 0, seq, word: 0, length }.to_bytes().to_vec();
    bytes.extend_from_slice(rest);
    bytes
}

fn head(bytes: &[u8]) -> (Kind, u32) {
    let header = bytes.first_chunk::<HEADER_LEN>().and_then(Header::from_bytes).expect("a header");
    (Kind::from_number(header.kind).expect("a known type"), header.seq)
}

fn read_all(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while let Some(piece) = split(bytes, usize::MAX).expect("the broker writes sound frames") {
        frames.push(decode(&piece.header, piece.rest).expect("the broker writes sound frames"));
        bytes = &bytes[piece.used..];
    }
    assert!(bytes.is_empty(), "the broker writes whole frames");
    frames
}

fn assert_ends_with_error(out: &[u8], code: Code, seq: u32) {
    assert_eq!(read_all(out), [Frame::Error { seq, code, fatal: true, detail: code.text().what }]);
}

fn golden_by_name() -> BTreeMap<&'static str, Vec<u8>> {
    golden::all().into_iter().map(|vector| (vector.name, vector.bytes)).collect()
}
