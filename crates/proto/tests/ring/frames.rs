//! Frames of the ring whose inside is wrong. (Truncated ones of every kind are in `tests/frames.rs`.)

use turno_proto::model::ring::{Circle, LastReceived, Member, NewConn, Origin, Publication, RingMessage, Sid};
use turno_proto::model::{Code, limits};
use turno_proto::native::{Frame, HEADER_LEN, Header, Kind, Raw, RawEvent, decode, flags};

use crate::{member, written};

/// What is wrong with a frame, if anything.
fn code_of(frame: &Frame<'_>) -> Option<Code> {
    let bytes = written(frame);
    let header = Header::from_bytes(bytes.first_chunk().expect("a header")).expect("a header");
    decode(&header, &bytes[HEADER_LEN..]).err().map(|fault| fault.code)
}

fn read(kind: Kind, flags: u8, word: u32, rest: &[u8]) -> Result<(), Code> {
    let length = u32::try_from(rest.len()).expect("as it should be");
    decode(&Header { kind: kind.number(), flags, seq: 0, word, length }, rest).map(|_| ()).map_err(|fault| fault.code)
}

const ORIGIN: Origin = Origin { sid: Sid::new(1), incarnation: 7 };

#[test]
fn lists_have_a_limit() {
    let members = |count| vec![member(1, 7); count];
    let table = [(limits::RING_MEMBERS_MAX, None), (limits::RING_MEMBERS_MAX + 1, Some(Code::BadBody))];
    for (count, code) in table {
        let circle = Circle { whole: true, members: members(count) };
        let roll_call = RingMessage::RollCall { origin: ORIGIN, number: 1, round: 0, members: members(count) };
        assert_eq!(code_of(&Frame::from(roll_call)), code);
        assert_eq!(code_of(&Frame::from(RingMessage::CaughtUp { members: members(count) })), code);
        assert_eq!(code_of(&Frame::from(RingMessage::Probe(circle.clone()))), code);
        assert_eq!(code_of(&Frame::from(RingMessage::Circle(circle))), code);
    }
    let table = [(limits::RING_ORIGINS_MAX, None), (limits::RING_ORIGINS_MAX + 1, Some(Code::BadBody))];
    for (count, code) in table {
        let had = vec![LastReceived { origin: ORIGIN, seq: u64::MAX }; count];
        assert_eq!(code_of(&Frame::from(RingMessage::Have { had })), code);
    }
}

/// A list that claims more elements than there are bytes is refused before anything is built.
#[test]
fn nothing_is_built_for_a_claim() {
    // {"members": [4,294,967,295 elements
    let claim = [&[0x81, 0xa7][..], b"members", &[0xdd, 0xff, 0xff, 0xff, 0xff]].concat();
    assert_eq!(read(Kind::CaughtUp, 0, 0, &claim), Err(Code::BadBody));
    let claim = [&[0x81, 0xa3][..], b"had", &[0xdd, 0xff, 0xff, 0xff, 0xff]].concat();
    assert_eq!(read(Kind::RingHave, 0, 0, &claim), Err(Code::BadBody));
}

#[test]
fn addresses_have_a_limit() {
    let with =
        |address: &str, native: &str| Member { address: address.to_owned(), native: native.to_owned(), ..member(1, 7) };
    let (most, more) = ("x".repeat(limits::RING_ADDRESS_BYTES_MAX), "x".repeat(limits::RING_ADDRESS_BYTES_MAX + 1));
    let table = [
        (with(&most, &most), None),
        (with("h:1", ""), None),
        (with("", ""), Some(Code::BadBody)),
        (with(&more, ""), Some(Code::BadBody)),
        (with("h:1", &more), Some(Code::BadBody)),
    ];
    for (member, code) in table {
        let sound = || crate::member(2, 7);
        let newconn = NewConn { joiner: member.clone(), content: None, gap: false, verdict: None, hops: 0 };
        let refused = RingMessage::Refused { code: Code::RingBusy, instead: Some(member.clone()) };
        let content = RingMessage::ServOff { leaver: sound(), content: Some(Box::new(member.clone())), hops: 0 };
        let messages = [
            RingMessage::NewConn(newconn),
            refused,
            content,
            RingMessage::ServOff { leaver: member.clone(), content: None, hops: 0 },
            RingMessage::Merge { origin: ORIGIN, contact: member.clone(), hops: 0 },
            RingMessage::CaughtUp { members: vec![sound(), member] },
        ];
        for message in messages {
            assert_eq!(code_of(&Frame::from(message.clone())), code, "{message:?}");
        }
    }
}

/// Proves S3.37: a fixed form with its byte order (the golden vectors have every frame); of priorities there are none, ADR 17.
#[test]
fn a_publication_is_read_only_if_it_makes_sense() {
    let publish = |seq, after| {
        let event = RawEvent { topic: b"t", payload: Raw { headers: false, bytes: b"" } };
        Frame::RingPublish(Publication { origin: ORIGIN, seq, after, round: 0, hops: 0, event })
    };
    let table = [
        ((1, 0), None),
        ((9, 3), None),
        ((0, 0), Some(Code::BadBody)),
        ((3, 3), Some(Code::BadBody)),
        ((3, 4), Some(Code::BadBody)),
    ];
    for ((seq, after), code) in table {
        assert_eq!(code_of(&publish(seq, after)), code, "{seq} after {after}");
    }
    // A topic, or a header block, that runs past the end.
    let mut rest = written(&publish(1, 0)).split_off(HEADER_LEN);
    assert_eq!(read(Kind::RingPublish, flags::HEADERS, 0, &rest), Err(Code::BadFrame));
    rest[35] = 2;
    assert_eq!(read(Kind::RingPublish, 0, 0, &rest), Err(Code::BadFrame));
}

#[test]
fn a_number_is_a_number() {
    assert_eq!(read(Kind::RingSid, flags::FREE, 65_535, &[]), Ok(()));
    assert_eq!(read(Kind::RingSid, flags::FREE, 65_536, &[]), Err(Code::BadBody));
    assert_eq!(read(Kind::RingSid, 0, 65_536, &[]), Ok(()), "a question has none");
    assert_eq!(read(Kind::RingSid, 0, 0, &[0]), Err(Code::BadFrame));
    assert_eq!(
        read(Kind::RetConn, 0, 0, &[0x81, 0xa6, b'e', b'r', b'r', b'a', b'n', b'd', 0xa1, b'x']),
        Err(Code::BadBody)
    );
}
