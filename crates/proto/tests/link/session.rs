//! Two ends of a link, byte by byte, and all that may go wrong between them.

use turno_proto::model::{Code, Mono, limits};
use turno_proto::native::{Fault, Frame, HEADER_LEN, Kind, LinkSession, LinkStep, decode, encode, split};

use crate::{SECRET, acceptor, dialler, golden, values};

const NONCE_A: [u8; 32] = [0x41; 32];
const NONCE_B: [u8; 32] = [0x42; 32];

fn at(millis: u64) -> Mono {
    Mono::from_millis(millis)
}

/// An end that dialled, and what it said.
fn dialled(secret: Option<&[u8]>, local: bool) -> (LinkSession, Vec<u8>) {
    let mut said = Vec::new();
    (LinkSession::dial(at(0), dialler(secret), NONCE_A, local, &mut said), said)
}

fn accepted(secret: Option<&[u8]>, local: bool) -> LinkSession {
    LinkSession::accept(at(0), acceptor(secret), NONCE_B, local)
}

/// One whole frame is taken.
fn step<'a>(session: &mut LinkSession, now: Mono, bytes: &'a [u8], out: &mut Vec<u8>) -> Result<LinkStep<'a>, Fault> {
    let (step, used) = session.step(now, bytes, out)?;
    assert_eq!(used, bytes.len());
    Ok(step)
}

/// Both ends of a link that is up.
fn linked() -> (LinkSession, LinkSession) {
    let (mut a, hello) = dialled(Some(SECRET), false);
    let mut b = accepted(Some(SECRET), false);
    let (mut challenge, mut proof) = (Vec::new(), Vec::new());
    assert_eq!(step(&mut b, at(0), &hello, &mut challenge), Ok(LinkStep::Done));
    let greeted = step(&mut a, at(0), &challenge, &mut Vec::new()).expect("as it should be");
    assert_eq!(greeted, LinkStep::Greeted(Box::new(acceptor(None).identity)));
    assert!(a.greeting() && b.greeting());
    assert!(a.prove(at(0), &mut proof));
    let met = step(&mut b, at(0), &proof, &mut Vec::new()).expect("as it should be");
    assert_eq!(met, LinkStep::Linked(Box::new(dialler(None).identity)));
    assert!(!a.greeting() && !b.greeting());
    assert_eq!((a.peer_bytes_max(), b.peer_bytes_max()), (16_777_216, 16_777_216));
    (a, b)
}

fn written(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    bytes
}

/// What was said is one fatal ERROR with that code.
fn assert_says(out: &[u8], code: Code) {
    let piece = split(out, usize::MAX).expect("as it should be").expect("something is said");
    assert_eq!(piece.used, out.len());
    let said = decode(&piece.header, piece.rest).expect("as it should be");
    assert!(matches!(said, Frame::Error { code: told, fatal: true, .. } if told == code), "{said:?}");
}

#[test]
fn a_link_comes_up() {
    let (mut a, mut b) = linked();
    let mut out = Vec::new();
    assert!(!a.prove(at(0), &mut out) && !b.prove(at(0), &mut out), "only once, and only who dialled");
    assert!(out.is_empty());
}

/// Every frame there is, at each stage of the greeting.
#[test]
fn only_one_frame_may_come_at_each_stage() {
    let (_, hello) = dialled(Some(SECRET), false);
    let mut challenge = Vec::new();
    let _ = step(&mut accepted(Some(SECRET), false), at(0), &hello, &mut challenge).expect("as it should be");
    for vector in golden::all() {
        let kind = Kind::from_number(vector.bytes[2]).expect("as it should be");
        let mut waits = accepted(Some(SECRET), false);
        step(&mut waits, at(0), &hello, &mut Vec::new()).expect("as it should be");
        let mut asks = dialled(Some(SECRET), false).0;
        step(&mut asks, at(0), &challenge, &mut Vec::new()).expect("as it should be");
        let stages = [
            (accepted(Some(SECRET), false), [Some(Kind::LinkHello), None]),
            (dialled(Some(SECRET), false).0, [Some(Kind::LinkChallenge), Some(Kind::Error)]),
            (waits, [Some(Kind::LinkProof), Some(Kind::Error)]),
            (asks, [None, Some(Kind::Error)]),
        ];
        for (mut session, expected) in stages {
            let mut out = Vec::new();
            let taken = session.step(at(0), &vector.bytes, &mut out).map(|_| ());
            if !expected.contains(&Some(kind)) {
                let code = if vector.bytes.len() > limits::GREETING_FRAME_BYTES_MAX {
                    Code::FrameTooLarge
                } else {
                    Code::ExpectedConnect
                };
                assert_eq!(taken.unwrap_err().code, code, "{} at {expected:?}", vector.name);
                assert_says(&out, code);
                assert!(session.greeting());
            }
        }
    }
}

/// Every frame there is, over a link that is up, at both ends.
#[test]
fn only_what_is_of_links_may_cross() {
    let crossing = [
        Kind::Ping,
        Kind::Pong,
        Kind::Closing,
        Kind::Error,
        Kind::Open,
        Kind::Ok,
        Kind::Offer,
        Kind::Presence,
        Kind::Relay,
        Kind::Forward,
        Kind::ForwardBroadcast,
        Kind::ForwardEvent,
        Kind::Cancel,
        Kind::Reply,
        Kind::Progress,
        Kind::Delivered,
        Kind::Ack,
        Kind::Fail,
        Kind::Undelivered,
        Kind::Answer,
        Kind::BroadcastEnd,
    ];
    for (name, value) in values::all() {
        let bytes = written(&value);
        let (a, b) = linked();
        for mut session in [a, b] {
            let mut out = Vec::new();
            let taken = session.step(at(0), &bytes, &mut out);
            let fenced = matches!(value, Frame::Fenced { .. });
            if crossing.contains(&value.kind()) && !fenced {
                let (step, used) = taken.expect("as it should be");
                assert_eq!(used, bytes.len(), "{name}");
                match &value {
                    Frame::Ping { seq } => {
                        assert_eq!((step, out.clone()), (LinkStep::Done, written(&Frame::Pong { seq: *seq })));
                    }
                    Frame::Pong { .. } => assert_eq!(step, LinkStep::Done, "nobody asked"),
                    Frame::Error { code, fatal: true, .. } => assert_eq!(step, LinkStep::Ended(*code), "{name}"),
                    _ => assert_eq!(step, LinkStep::Frame(value.clone()), "{name}"),
                }
            } else {
                assert_eq!(taken.unwrap_err().code, Code::WrongDirection, "{name}");
                assert_says(&out, Code::WrongDirection);
            }
        }
    }
}

/// An unreadable frame ends the link: its sender waits for an answer that would never come.
#[test]
fn a_frame_that_cannot_be_read_is_fatal() {
    for vector in golden::all().iter().filter(|vector| vector.name == "offer" || vector.name == "forward") {
        let (mut a, _) = linked();
        let mut bytes = vector.bytes.clone();
        let last = bytes.len() - 1;
        bytes.truncate(HEADER_LEN + 10);
        bytes[12..16].copy_from_slice(&10_u32.to_le_bytes());
        let mut out = Vec::new();
        let fault = a.step(at(0), &bytes, &mut out).unwrap_err();
        assert!(fault.fatal && last > HEADER_LEN + 10);
        assert_says(&out, fault.code);
    }
}

#[test]
fn the_greeting_comes_in_pieces_of_any_size() {
    let (_, hello) = dialled(Some(SECRET), false);
    let mut challenge = Vec::new();
    step(&mut accepted(Some(SECRET), false), at(0), &hello, &mut challenge).expect("as it should be");
    for cut in 0..hello.len() {
        let (mut b, mut out) = (accepted(Some(SECRET), false), Vec::new());
        assert_eq!(b.step(at(0), &hello[..cut], &mut out), Ok((LinkStep::NeedMore, 0)), "{cut}");
        assert!(out.is_empty());
    }
    for cut in 0..challenge.len() {
        let (mut a, mut out) = (dialled(Some(SECRET), false).0, Vec::new());
        assert_eq!(a.step(at(0), &challenge[..cut], &mut out), Ok((LinkStep::NeedMore, 0)), "{cut}");
        assert!(out.is_empty());
    }
}

/// Frames of the greeting whose inside ends early, at every byte, with a header that says so.
#[test]
fn a_greeting_with_its_end_cut_off_is_refused() {
    let (_, hello) = dialled(Some(SECRET), false);
    let mut challenge = Vec::new();
    step(&mut accepted(Some(SECRET), false), at(0), &hello, &mut challenge).expect("as it should be");
    let proof = written(&values::all().into_iter().find(|(name, _)| *name == "link_proof").expect("as it should be").1);
    let mut proving = accepted(Some(SECRET), false);
    step(&mut proving, at(0), &hello, &mut Vec::new()).expect("as it should be");
    let table = [(hello, accepted(Some(SECRET), false)), (challenge, dialled(Some(SECRET), false).0), (proof, proving)];
    for (whole, session) in table {
        for length in 0..whole.len() - HEADER_LEN {
            let mut bytes = whole[..HEADER_LEN + length].to_vec();
            bytes[12..16].copy_from_slice(&u32::try_from(length).expect("as it should be").to_le_bytes());
            let (mut session, mut out) = (session.clone(), Vec::new());
            let fault = session.step(at(0), &bytes, &mut out).unwrap_err();
            assert_eq!((fault.code, fault.fatal), (Code::BadBody, true), "{length}");
            assert_says(&out, Code::BadBody);
            // It is over: not even the right frame helps now.
            assert!(session.step(at(0), &whole, &mut Vec::new()).is_err());
        }
        assert!(session.clone().step(at(0), &whole, &mut Vec::new()).is_ok());
    }
}

#[test]
fn a_frame_that_is_too_long_is_refused_by_its_header() {
    let head = |kind: Kind, length: usize| {
        let mut bytes = written(&Frame::Ping { seq: 5 });
        bytes[2] = kind.number();
        bytes[12..16].copy_from_slice(&u32::try_from(length).expect("as it should be").to_le_bytes());
        bytes
    };
    let greeting_max = limits::GREETING_FRAME_BYTES_MAX - HEADER_LEN;
    for (session, kind) in
        [(accepted(Some(SECRET), false), Kind::LinkHello), (dialled(Some(SECRET), false).0, Kind::LinkChallenge)]
    {
        let mut out = Vec::new();
        let fits = head(kind, greeting_max);
        assert_eq!(session.clone().step(at(0), &fits, &mut out), Ok((LinkStep::NeedMore, 0)));
        let fault = session.clone().step(at(0), &head(kind, greeting_max + 1), &mut out).unwrap_err();
        assert_eq!(fault, Fault::fatal(Code::FrameTooLarge, 5));
        assert_says(&out, Code::FrameTooLarge);
    }
    // Over a link that is up: a client's longest frame and the fields of FORWARD.
    let most = 16_777_216 + limits::LINK_FIELDS_BYTES - HEADER_LEN;
    let (mut a, _) = linked();
    assert_eq!(a.step(at(0), &head(Kind::Forward, most), &mut Vec::new()), Ok((LinkStep::NeedMore, 0)));
    let fault = a.step(at(0), &head(Kind::Forward, most + 1), &mut Vec::new()).unwrap_err();
    assert_eq!(fault.code, Code::FrameTooLarge);
}

/// A wrong secret is told to the other end, once by each: the dialling end sees it first.
#[test]
fn a_wrong_secret_ends_the_greeting() {
    let (mut a, hello) = dialled(Some(b"another secret of links"), false);
    let (mut b, mut challenge, mut out) = (accepted(Some(SECRET), false), Vec::new(), Vec::new());
    step(&mut b, at(0), &hello, &mut challenge).expect("as it should be");
    let fault = a.step(at(0), &challenge, &mut out).unwrap_err();
    assert_eq!(fault.code, Code::LinkRefused);
    assert_says(&out, Code::LinkRefused);
    assert!(!a.prove(at(0), &mut Vec::new()));
    let ended = step(&mut b, at(0), &out, &mut Vec::new()).expect("as it should be");
    assert_eq!(ended, LinkStep::Ended(Code::LinkRefused), "and nothing is said to that");
}

/// Silence, in the greeting and after it.
#[test]
fn silence_ends_a_link() {
    let greeting = limits::GREETING_MS_MAX;
    let (a, _) = dialled(Some(SECRET), false);
    assert_eq!(a.handle_timeout(at(greeting - 1)), None);
    assert_eq!(a.handle_timeout(at(greeting)), Some(Code::GreetingTimeout));

    let (_, mut b) = linked();
    let silence = u64::from(limits::LINK_HEARTBEAT_MS) * 3;
    assert_eq!(b.next_deadline(), at(silence));
    assert_eq!(b.handle_timeout(at(silence - 1)), None);
    assert_eq!(b.handle_timeout(at(silence)), Some(Code::PeerSilent));
    b.heard(at(1_000));
    assert_eq!(b.handle_timeout(at(silence)), None);
    assert_eq!(b.handle_timeout(at(silence + 1_000)), Some(Code::PeerSilent));
}

/// Each end sends a PING each heartbeat, the first at once, and measures what comes back.
#[test]
fn both_ends_ping_and_measure() {
    let (a, b) = linked();
    for (mut here, mut there) in [(a.clone(), b.clone()), (b, a)] {
        let mut ping = Vec::new();
        here.beat(at(10), &mut ping);
        assert_eq!(ping, written(&Frame::Ping { seq: 1 }));
        let mut none = Vec::new();
        here.beat(at(1_009), &mut none);
        assert!(none.is_empty());
        let mut pong = Vec::new();
        assert_eq!(step(&mut there, at(11), &ping, &mut pong), Ok(LinkStep::Done));
        let measured = step(&mut here, Mono::from_micros(12_500), &pong, &mut Vec::new());
        assert_eq!(measured, Ok(LinkStep::RoundTrip(2_500)));
        assert_eq!(step(&mut here, at(13), &pong, &mut Vec::new()), Ok(LinkStep::Done), "once for each PING");

        // Slower than the heartbeat: each PONG belongs to its own PING, and none is kept for ever.
        for second in 1..=10 {
            here.beat(at(10 + 1_000 * second), &mut Vec::new());
        }
        let pong = written(&Frame::Pong { seq: 3 });
        assert_eq!(step(&mut here, at(10_010), &pong, &mut Vec::new()), Ok(LinkStep::RoundTrip(8_000_000)));
        let unmeasured = written(&Frame::Pong { seq: 11 });
        assert_eq!(step(&mut here, at(10_010), &unmeasured, &mut Vec::new()), Ok(LinkStep::Done));
    }
    let (mut waits, _) = dialled(Some(SECRET), false);
    let mut none = Vec::new();
    waits.beat(at(1_000), &mut none);
    assert!(none.is_empty(), "not before the link is up");
}
