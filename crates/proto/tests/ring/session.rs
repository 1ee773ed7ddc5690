//! Two ends of a ring's connection, byte by byte, and all that may go wrong between them.

use turno_proto::model::ring::{Circle, ConnectPurpose, NewConn, RetConn, RingMessage, Sid};
use turno_proto::model::{Code, Mono, limits};
use turno_proto::native::{
    Connect, Fault, Frame, GreetingCredentials, Kind, RingIdentity, RingSession, RingStep, VERSION, decode, split,
};

use crate::{SECRET, acceptor, dialler, golden, member, unnumbered, values, written};

const BEAT_MS: u32 = 200;
const GREETED_BY_MS: u64 = 1_500;

fn at(millis: u64) -> Mono {
    Mono::from_millis(millis)
}

fn dialled(me: GreetingCredentials<RingIdentity>, local: bool) -> (RingSession, Vec<u8>) {
    let mut said = Vec::new();
    (RingSession::dial(at(0), at(GREETED_BY_MS), me, [0x41; 32], local, BEAT_MS, &mut said), said)
}

fn accepted(secret: Option<&[u8]>, local: bool) -> RingSession {
    RingSession::accept(at(0), acceptor(secret), [0x42; 32], local, BEAT_MS)
}

/// One whole frame is taken.
fn step<'a>(session: &mut RingSession, bytes: &'a [u8], out: &mut Vec<u8>) -> Result<RingStep<'a>, Fault> {
    let (step, used) = session.step(at(0), bytes, out)?;
    assert_eq!(used, bytes.len());
    Ok(step)
}

/// Both ends of a connection that is up: who sends, who receives.
fn up(me: GreetingCredentials<RingIdentity>) -> (RingSession, RingSession) {
    let (mut a, hello) = dialled(me.clone(), false);
    let mut b = accepted(Some(SECRET), false);
    let (mut challenge, mut proof) = (Vec::new(), Vec::new());
    assert_eq!(step(&mut b, &hello, &mut challenge), Ok(RingStep::Done));
    let reached = step(&mut a, &challenge, &mut proof).expect("as it should be");
    assert_eq!(reached, RingStep::Reached(Box::new(member(2, 1_700_000_000_500))));
    assert!(!a.greeting() && b.greeting());
    let met = step(&mut b, &proof, &mut Vec::new()).expect("as it should be");
    assert_eq!(met, RingStep::Accepted(me.identity.member.map(Box::new)));
    assert!(!b.greeting());
    (a, b)
}

fn open() -> Frame<'static> {
    Frame::from(RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Return }))
}

/// What was said is one fatal ERROR with that code.
fn assert_says(out: &[u8], code: Code) {
    let piece = split(out, usize::MAX).expect("as it should be").expect("something is said");
    assert_eq!(piece.used, out.len());
    let said = decode(&piece.header, piece.rest).expect("as it should be");
    assert!(matches!(said, Frame::Error { code: told, fatal: true, .. } if told == code), "{said:?}");
}

fn assert_refuses(session: &mut RingSession, bytes: &[u8], code: Code) {
    let mut out = Vec::new();
    assert_eq!(session.step(at(0), bytes, &mut out).map_err(|fault| fault.code), Err(code));
    assert_says(&out, code);
    // Whatever comes behind it is not heard.
    let mut out = Vec::new();
    assert!(session.step(at(0), &written(&open()), &mut out).is_err());
}

/// A client, a link and somebody who says anything at all, on the ring's port.
#[test]
fn strangers_are_turned_away() {
    let connect = Connect { version: VERSION, name: String::new(), program: String::new(), heartbeat_ms: 0 };
    let link = values::all().into_iter().find(|(name, _)| *name == "link_hello").expect("as it should be").1;
    let strangers =
        [Frame::Connect { seq: 1, connect }, link, Frame::Ping { seq: 1 }, Frame::from(RingMessage::AskSid)];
    for stranger in strangers {
        let mut out = Vec::new();
        let fault = accepted(Some(SECRET), true).step(at(0), &written(&stranger), &mut out).unwrap_err();
        assert_eq!(fault.code, Code::ExpectedConnect, "{stranger:?}");
        assert_says(&out, Code::ExpectedConnect);
    }
    let soups: [(&[u8], Code); 3] = [
        (b"GET / HTTP/1.1\r\n\r\n", Code::BadMagic),
        (&[0x47, 0xc0, 79, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Code::UnknownType),
        (&[0x47, 0xc0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0], Code::FrameTooLarge),
    ];
    for (soup, code) in soups {
        let mut out = Vec::new();
        assert_eq!(accepted(None, true).step(at(0), soup, &mut out).unwrap_err().code, code);
        assert_says(&out, code);
    }
}

/// Every frame there is, at each stage of the greeting.
#[test]
fn only_one_frame_may_come_at_each_stage() {
    let (_, hello) = dialled(dialler(Some(SECRET)), false);
    for vector in golden::all() {
        let kind = Kind::from_number(vector.bytes[2]).expect("as it should be");
        let mut waits = accepted(Some(SECRET), false);
        step(&mut waits, &hello, &mut Vec::new()).expect("as it should be");
        let stages = [
            (accepted(Some(SECRET), false), [Some(Kind::RingHello), None]),
            (dialled(dialler(Some(SECRET)), false).0, [Some(Kind::RingChallenge), Some(Kind::Error)]),
            (waits, [Some(Kind::RingProof), Some(Kind::Error)]),
        ];
        for (mut session, expected) in stages {
            if expected.contains(&Some(kind)) {
                continue;
            }
            let long = vector.bytes.len() > limits::GREETING_FRAME_BYTES_MAX;
            let code = if long { Code::FrameTooLarge } else { Code::ExpectedConnect };
            let mut out = Vec::new();
            assert_eq!(session.step(at(0), &vector.bytes, &mut out).unwrap_err().code, code, "{}", vector.name);
            assert_says(&out, code);
            assert!(session.greeting());
        }
    }
}

/// Every frame there is, on a connection that is open, at both ends. Proves that it leads one way (S3.1).
#[test]
fn only_words_of_the_right_direction_may_come() {
    let forward = [
        Kind::NewConn,
        Kind::RetConn,
        Kind::RingPublish,
        Kind::ServOff,
        Kind::ShutDwn,
        Kind::RollCall,
        Kind::CaughtUp,
        Kind::RingProbe,
        Kind::RingMerge,
    ];
    let back = [Kind::RingHave, Kind::RingRefused, Kind::RingCircle];
    for (name, frame) in values::all() {
        let (mut sends, mut receives) = up(dialler(Some(SECRET)));
        step(&mut receives, &written(&open()), &mut Vec::new()).expect("as it should be");
        let kind = frame.kind();
        let alive = matches!(kind, Kind::Ping | Kind::Pong | Kind::Error);
        let asks = frame == Frame::from(RingMessage::AskSid);
        let tells = matches!(&frame, Frame::Ring(message) if matches!(**message, RingMessage::FreeSid { .. }));
        let bytes = written(&frame);
        let check = |session: &mut RingSession, may: bool| {
            let mut out = Vec::new();
            let taken = session.step(at(0), &bytes, &mut out);
            match taken {
                Ok((RingStep::Frame(heard), used)) => {
                    assert!(may && !alive, "{name}");
                    assert_eq!((heard, used), (frame.clone(), bytes.len()), "{name}");
                }
                Ok((RingStep::Done | RingStep::Ended(_), _)) => assert!(alive, "{name}"),
                Ok((other, _)) => panic!("{name}: {other:?}"),
                Err(fault) => {
                    assert!(!may && !alive, "{name}: {fault:?}");
                    assert_eq!(fault.code, Code::WrongDirection, "{name}");
                    assert_says(&out, Code::WrongDirection);
                }
            }
        };
        check(&mut receives, forward.contains(&kind) || asks);
        check(&mut sends, back.contains(&kind) || tells);
    }
}

/// An unknown message ends the connection, from a member too: all numbers of the ring's messages have their meaning, and what
/// another one means may matter (S3.44, see ADR 17).
#[test]
fn an_unknown_word_ends_the_connection() {
    let unknown = [0x47, 0xc0, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (mut sends, mut receives) = up(dialler(Some(SECRET)));
    step(&mut receives, &written(&open()), &mut Vec::new()).expect("as it should be");
    for session in [&mut sends, &mut receives] {
        let mut out = Vec::new();
        let fault = session.step(at(0), &unknown, &mut out).expect_err("nobody knows it");
        assert_eq!((fault.code, fault.fatal), (Code::UnknownType, true));
        assert_says(&out, Code::UnknownType);
    }
}

/// The first message says what the connection is for.
#[test]
fn one_word_opens_a_connection() {
    let newconn = |content| {
        let (joiner, gap, verdict, hops) = (member(1, 1_700_000_000_000), false, None, 0);
        Frame::from(RingMessage::NewConn(NewConn { joiner, content, gap, verdict, hops }))
    };
    let probe = Frame::from(RingMessage::Probe(Circle { whole: true, members: vec![member(1, 1)] }));
    for opening in [newconn(None), open(), probe, Frame::from(RingMessage::AskSid)] {
        let (_, mut receives) = up(dialler(Some(SECRET)));
        let bytes = written(&opening);
        assert_eq!(step(&mut receives, &bytes, &mut Vec::new()), Ok(RingStep::Frame(opening)));
    }
    let openings =
        ["newconn", "retconn_return", "retconn_join", "retconn_heal", "retconn_left", "ring_probe", "ring_sid"];
    for (name, frame) in values::all() {
        if (83..=95).contains(&frame.kind().number()) && !openings.contains(&name) {
            let (_, mut receives) = up(dialler(Some(SECRET)));
            let back = matches!(frame.kind(), Kind::RingHave | Kind::RingRefused | Kind::RingCircle | Kind::RingSid);
            let code = if back { Code::WrongDirection } else { Code::ExpectedConnect };
            assert_refuses(&mut receives, &written(&frame), code);
        }
    }
    // Nothing long comes before it, nor back.
    let long = [&[0x47, 0xc0, 85, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &(2_u32 << 20).to_le_bytes()].concat();
    let (mut sends, mut receives) = up(dialler(Some(SECRET)));
    for session in [&mut sends, &mut receives] {
        assert_eq!(session.step(at(0), &long, &mut Vec::new()).unwrap_err().code, Code::FrameTooLarge);
    }
    let (_, mut receives) = up(dialler(Some(SECRET)));
    step(&mut receives, &written(&open()), &mut Vec::new()).expect("as it should be");
    assert_eq!(receives.step(at(0), &long, &mut Vec::new()), Ok((RingStep::NeedMore, 0)));
}

/// A broker without a number may ask for one, and nothing else. Proves S3.6.
#[test]
fn who_has_no_number_only_asks_for_one() {
    let (mut sends, mut receives) = up(unnumbered(Some(SECRET)));
    let asks = written(&Frame::from(RingMessage::AskSid));
    assert_eq!(step(&mut receives, &asks, &mut Vec::new()), Ok(RingStep::Frame(Frame::from(RingMessage::AskSid))));
    let tells = Frame::from(RingMessage::FreeSid { sid: Sid::new(3) });
    assert_eq!(step(&mut sends, &written(&tells), &mut Vec::new()), Ok(RingStep::Frame(tells)));
    for (_, frame) in values::all() {
        if (83..=94).contains(&frame.kind().number()) {
            let (_, mut receives) = up(unnumbered(Some(SECRET)));
            assert_refuses(&mut receives, &written(&frame), Code::WrongDirection);
            let (_, mut receives) = up(unnumbered(Some(SECRET)));
            step(&mut receives, &asks, &mut Vec::new()).expect("as it should be");
            assert_refuses(&mut receives, &written(&frame), Code::WrongDirection);
        }
    }
}

/// Another secret, none on another machine, and frames of another greeting: each end says why. Proves S3.51.
#[test]
fn who_does_not_know_the_secret_is_refused() {
    let other: &[u8] = b"another secret, as long";
    // The dialler notices first that the proof is not that of its secret.
    let (mut a, hello) = dialled(dialler(Some(other)), false);
    let mut challenge = Vec::new();
    step(&mut accepted(Some(SECRET), false), &hello, &mut challenge).expect("as it should be");
    assert_refuses(&mut a, &challenge, Code::RingRefused);
    // One that does not look is refused by the acceptor: here with frames of an earlier greeting.
    let (mut a, hello) = dialled(dialler(Some(SECRET)), false);
    let (mut challenge, mut proof) = (Vec::new(), Vec::new());
    step(&mut accepted(Some(SECRET), false), &hello, &mut challenge).expect("as it should be");
    step(&mut a, &challenge, &mut proof).expect("as it should be");
    let mut later = RingSession::accept(at(0), acceptor(Some(SECRET)), [0x43; 32], false, BEAT_MS);
    step(&mut later, &hello, &mut Vec::new()).expect("as it should be");
    assert_refuses(&mut later, &proof, Code::RingRefused);
    // No secret, and not on this machine.
    let (_, hello) = dialled(dialler(None), false);
    assert_refuses(&mut accepted(None, false), &hello, Code::RingRefused);
    let (mut a, _) = dialled(dialler(None), false);
    let mut challenge = Vec::new();
    step(&mut accepted(None, true), &hello, &mut challenge).expect("on one machine");
    assert_refuses(&mut a, &challenge, Code::RingRefused);
}

#[test]
fn both_ends_send_signs_of_life_and_give_up_on_silence() {
    let (mut sends, mut receives) = up(dialler(Some(SECRET)));
    for session in [&mut sends, &mut receives] {
        let mut out = Vec::new();
        session.beat(at(0), &mut out);
        assert_eq!(out, written(&Frame::Ping { seq: 1 }));
        session.beat(at(149), &mut out);
        assert_eq!(out.len(), 16, "it is not due");
        session.beat(at(150), &mut out);
        assert_eq!(out[16..], written(&Frame::Ping { seq: 2 }));
        let mut pong = Vec::new();
        assert_eq!(step(session, &written(&Frame::Ping { seq: 9 }), &mut pong), Ok(RingStep::Done));
        assert_eq!(pong, written(&Frame::Pong { seq: 9 }));
        assert_eq!(step(session, &pong, &mut Vec::new()), Ok(RingStep::Done));
        assert_eq!(session.silence_ms(), 600);
        assert_eq!(session.handle_timeout(at(599)), None);
        assert_eq!(session.handle_timeout(at(600)), Some(Code::PeerSilent));
        session.heard(at(600));
        assert_eq!(session.next_deadline(), at(1_200));
    }
}

#[test]
fn a_greeting_takes_only_so_long() {
    let (a, _) = dialled(dialler(None), true);
    let b = accepted(None, true);
    for (mut session, until) in [(a, GREETED_BY_MS), (b, limits::GREETING_MS_MAX)] {
        session.heard(at(100));
        assert_eq!(session.handle_timeout(at(until - 1)), None);
        assert_eq!(session.handle_timeout(at(until)), Some(Code::GreetingTimeout));
        let mut out = Vec::new();
        session.beat(at(100), &mut out);
        assert!(out.is_empty(), "nothing but the greeting");
    }
}

/// The other end's last frame is reported, during the greeting and after it.
#[test]
fn an_error_ends_it() {
    let error = written(&Frame::Error { seq: 0, code: Code::RingRefused, fatal: true, detail: "no" });
    let (mut asks, _) = dialled(dialler(None), true);
    let (mut sends, mut receives) = up(dialler(Some(SECRET)));
    for session in [&mut asks, &mut sends, &mut receives] {
        assert_eq!(step(session, &error, &mut Vec::new()), Ok(RingStep::Ended(Code::RingRefused)));
    }
}
