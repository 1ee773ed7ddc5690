//! Frames of links whose inside is wrong. (Truncated ones of every kind are in `tests/frames.rs`.)

use turno_proto::model::link::{BrokerId, LinkMessage, Offer, Path, Presence, Room};
use turno_proto::model::{Code, limits};
use turno_proto::native::{Fault, Frame, HEADER_LEN, Header, Kind, decode, encode_link_message, flags};

use crate::golden;

fn golden_bytes(name: &str) -> Vec<u8> {
    golden::all().into_iter().find(|vector| vector.name == name).expect("as it should be").bytes
}

/// What is read of a frame with that inside.
fn read<'a>(kind: Kind, flags: u8, rest: &'a [u8]) -> Result<Frame<'a>, Fault> {
    let length = u32::try_from(rest.len()).expect("as it should be");
    decode(&Header { kind: kind.number(), flags, seq: 9, word: 3, length }, rest)
}

fn code_of(kind: Kind, flags: u8, rest: &[u8]) -> Option<Code> {
    read(kind, flags, rest).err().map(|fault| fault.code)
}

fn ids(count: u8, first: u8) -> Vec<u8> {
    (first..first + count).flat_map(|id| [id, 0, 0, 0, 0, 0]).collect()
}

/// The fields of FORWARD before its path, without a deadline.
fn head(attempt: u16, cost: u16, priority: u8) -> Vec<u8> {
    let mut rest = vec![7; 16];
    rest.extend_from_slice(&attempt.to_le_bytes());
    rest.extend_from_slice(&cost.to_le_bytes());
    rest.push(priority);
    rest
}

fn forward(head: Vec<u8>, count: u8, ids: &[u8]) -> Vec<u8> {
    [head, vec![count], ids.to_vec(), b"body".to_vec()].concat()
}

#[test]
fn forward_is_read_only_if_it_makes_sense() {
    let sound = || head(1, 1, 4);
    let both = flags::WANTS_REPLY | flags::NO_REPLY;
    let table = [
        (0, forward(sound(), 1, &ids(1, 1)), None),
        (0, forward(sound(), 8, &ids(8, 1)), None),
        (0, forward(sound(), 9, &ids(9, 1)), Some(Code::BadBody)),
        (0, forward(sound(), 0, &[]), Some(Code::BadBody)),
        (0, forward(sound(), 2, &[ids(1, 1), ids(1, 1)].concat()), Some(Code::BadBody)),
        (0, forward(sound(), 255, &ids(1, 1)), Some(Code::BadFrame)),
        (both, forward(sound(), 1, &ids(1, 1)), Some(Code::BadBody)),
        (0, forward(head(0, 1, 4), 1, &ids(1, 1)), Some(Code::BadBody)),
        (0, forward(head(1, 0, 4), 1, &ids(1, 1)), Some(Code::BadBody)),
        (0, forward(head(1, 1, 10), 1, &ids(1, 1)), Some(Code::BadBody)),
    ];
    for (flags, rest, code) in table {
        assert_eq!(code_of(Kind::Forward, flags, &rest), code, "{flags} {rest:?}");
    }
}

#[test]
fn targets_are_few_and_each_of_them_once() {
    let rest = |count: u8, targets: Vec<u8>| [vec![0; 4], vec![count], targets, vec![1], ids(1, 1)].concat();
    let table = [
        (rest(1, ids(1, 1)), None),
        (rest(64, ids(64, 1)), None),
        (rest(65, ids(65, 1)), Some(Code::BadBody)),
        (rest(0, Vec::new()), Some(Code::BadBody)),
        (rest(2, [ids(1, 5), ids(1, 5)].concat()), Some(Code::BadBody)),
    ];
    for (rest, code) in table {
        assert_eq!(code_of(Kind::ForwardBroadcast, 0, &rest), code, "{rest:?}");
        let event = [&[0; 4], &rest[..], &[1, b't']].concat();
        assert_eq!(code_of(Kind::ForwardEvent, 0, &event), code, "{rest:?}");
    }
    let event = [&[0; 4], &rest(1, ids(1, 1))[..], b"\x02.."].concat();
    assert_eq!(code_of(Kind::ForwardEvent, 0, &event), Some(Code::BadTopic));
    // The path of these is looked at in the same way.
    let none = [vec![0; 4], vec![1], ids(1, 1), vec![0]].concat();
    assert_eq!(code_of(Kind::ForwardBroadcast, 0, &none), Some(Code::BadBody));
}

fn path(ids: &[u64]) -> Path {
    Path::new(ids.iter().map(|id| BrokerId::new(*id))).expect("as it should be")
}

fn inside(message: &LinkMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_link_message(message, &mut bytes);
    bytes.split_off(HEADER_LEN)
}

/// The longest that may be told can be read, and nothing beyond it.
#[test]
fn lists_have_an_end() {
    let room = Room { path: path(&[1, 2, 3, 4, 5, 6, 7, 8]), free: u32::MAX, token: Some(u64::MAX) };
    let queue = "q".repeat(limits::QUEUE_NAME_BYTES_MAX);
    let offer = Offer { queue, held: u32::MAX, rooms: vec![room.clone(); limits::BROKERS_MAX] };
    let offers = |offers| inside(&LinkMessage::Offers(offers));
    let longest = offers(vec![offer.clone(); limits::OFFERS_MAX]);
    assert!(longest.len() + HEADER_LEN <= limits::LINK_FRAME_BYTES, "{}", longest.len());
    assert_eq!(code_of(Kind::Offer, 0, &longest), None);
    assert_eq!(code_of(Kind::Offer, 0, &offers(vec![offer.clone(); limits::OFFERS_MAX + 1])), Some(Code::BadBody));
    let wrong = [
        Offer { rooms: vec![room; limits::BROKERS_MAX + 1], ..offer.clone() },
        Offer { rooms: vec![Room { path: Path::default(), free: 1, token: None }], ..offer.clone() },
        Offer { queue: String::new(), ..offer.clone() },
        Offer { queue: "two words".to_owned(), ..offer },
    ];
    for offer in wrong {
        assert_eq!(code_of(Kind::Offer, 0, &offers(vec![offer.clone()])), Some(Code::BadBody), "{}", offer.queue);
    }

    let presence = Presence {
        path: path(&[1, 2, 3, 4, 5, 6, 7, 8]),
        name: "n".repeat(limits::PEER_NAME_BYTES_MAX),
        neighbours: vec![BrokerId::new(u64::MAX); limits::LINKS_MAX],
        listens: true,
        ring: None,
    };
    let told = |brokers| inside(&LinkMessage::Presence(brokers));
    let longest = told(vec![presence.clone(); limits::BROKERS_MAX]);
    assert!(longest.len() + HEADER_LEN <= limits::LINK_FRAME_BYTES);
    assert_eq!(code_of(Kind::Presence, 0, &longest), None);
    let wrong = [
        vec![presence.clone(); limits::BROKERS_MAX + 1],
        vec![Presence { path: Path::default(), ..presence.clone() }],
        vec![Presence { name: "n".repeat(limits::PEER_NAME_BYTES_MAX + 1), ..presence.clone() }],
        vec![Presence { neighbours: vec![BrokerId::new(1); limits::LINKS_MAX + 1], ..presence }],
    ];
    for brokers in wrong {
        assert_eq!(code_of(Kind::Presence, 0, &told(brokers)), Some(Code::BadBody));
    }
}

/// Ids of more than 48 bits, ways that are too long or meet themselves, and lists that claim more than is there.
#[test]
fn what_no_broker_would_tell_is_refused() {
    let one = b"\x81\xa6offers\x91\x83\xa5queue\xa1q\xa4held\x00\xa5rooms\x91\x82\xa4path";
    let free = b"\xa4free\x01";
    let ways: [(&[u8], bool); 6] = [
        (b"\x91\x01", true),
        (b"\x92\x01\x02", true),
        (b"\x92\x01\x01", false),
        (b"\x91\xcf\x00\x01\x00\x00\x00\x00\x00\x00", false),
        (b"\x99\x01\x02\x03\x04\x05\x06\x07\x08\x09", false),
        (b"\xdd\xff\xff\xff\xff\x01", false),
    ];
    for (way, sound) in ways {
        let rest = [&one[..], way, &free[..]].concat();
        assert_eq!(code_of(Kind::Offer, 0, &rest), (!sound).then_some(Code::BadBody), "{way:?}");
    }
}

#[test]
fn a_headers_block_stays_within_its_frame() {
    for name in ["forward_no_reply", "forward_broadcast_no_reply", "forward_event_headers"] {
        let mut bytes = golden_bytes(name);
        let kind = Kind::from_number(bytes[2]).expect("as it should be");
        // The length before the block of 5 bytes, of which two are body.
        let at = bytes.len() - 9;
        bytes[at] = 8;
        assert_eq!(code_of(kind, bytes[3], &bytes[HEADER_LEN..]), Some(Code::BadFrame), "{name}");
    }
}
