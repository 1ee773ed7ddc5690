//! Wrong bytes: each fault has one code, says whether the connection goes on, and harms nobody else.

use turno_e2e::{Broker, Peer, process};
use turno_proto::model::{Code, Cost, Slots};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{Connect, Deliver, Frame, Raw, RawOutgoing, VERSION, encode};

const RAW: Raw<'static> = Raw { headers: false, bytes: b"" };

/// A header by hand.
fn header(kind: u8, flags: u8, seq: u32, word: u32, length: u32) -> Vec<u8> {
    let mut bytes = vec![0x47, 0xC0, kind, flags];
    for number in [seq, word, length] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// A frame by hand: REGISTER or RESIZE with any map.
fn control(kind: u8, seq: u32, map: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, 0, seq, 0, u32::try_from(map.len()).expect("a small map"));
    bytes.extend_from_slice(map);
    bytes
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    bytes
}

fn connect(version: u16) -> Frame<'static> {
    Frame::Connect { seq: 9, connect: Connect { version, name: "p".into(), program: String::new(), heartbeat_ms: 0 } }
}

/// Proves I21: whatever comes instead of a greeting is told its fault and closed, and the broker goes on.
#[test]
fn before_the_greeting_every_fault_has_its_code() {
    let broker = Broker::start();
    let mut long_name = vec![0x81, 0xA4];
    long_name.extend_from_slice(b"name");
    long_name.resize(4_081, b'x');
    let table: &[(&str, Vec<u8>, Code)] = &[
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), Code::BadMagic),
        ("one wrong byte", vec![0x48], Code::BadMagic),
        ("a wrong second byte", vec![0x47, 0xC1], Code::BadMagic),
        ("TLS", vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC], Code::BadMagic),
        ("an unknown type", header(119, 0, 1, 0, 0), Code::UnknownType),
        ("PING first", encoded(&Frame::Ping { seq: 1 }), Code::ExpectedConnect),
        ("REQUEST first", encoded(&Frame::Request(RawOutgoing::new(1, 0, RAW))), Code::ExpectedConnect),
        ("a frame of the broker first", encoded(&Frame::Pong { seq: 1 }), Code::ExpectedConnect),
        ("4,097 bytes", control(16, 1, &long_name), Code::FrameTooLarge),
        ("version 2", encoded(&connect(2)), Code::VersionMismatch),
        ("no map", control(16, 1, b"\xC0"), Code::BadBody),
        ("half a map", control(16, 1, b"\x82\xA4name"), Code::BadBody),
    ];
    for (what, bytes, code) in table {
        let mut peer = Peer::silent(broker.address());
        peer.say_bytes(bytes);
        assert_eq!(peer.closed_with(), *code, "{what}");
    }
    assert_eq!(Peer::greeted(broker.address(), 0).status().connections, 1);
}

/// Proves I21: after the greeting a broken frame ends its connection with its code, and only that one.
#[test]
fn after_the_greeting_a_broken_frame_is_fatal() {
    let broker = Broker::start();
    let mut bystander = Peer::greeted(broker.address(), 0);
    let short_block = {
        let mut bytes = header(40, 0x10, 7, 0, 3);
        bytes.extend_from_slice(&[0xFF, 0x00, 0x80]);
        bytes
    };
    let table: &[(&str, Vec<u8>, Code)] = &[
        ("wrong magic", vec![0; 16], Code::BadMagic),
        ("an unknown type", header(200, 0, 1, 0, 0), Code::UnknownType),
        ("a reserved type", header(79, 0, 1, 0, 0), Code::UnknownType),
        ("a word of the ring", header(95, 0, 1, 0, 0), Code::WrongDirection),
        ("flags that announce more than there is", header(40, 0x0F, 7, 0, 0), Code::BadFrame),
        ("a header block beyond the frame", short_block, Code::BadFrame),
        ("EXTEND without its number", header(48, 0, 1, 0, 0), Code::BadFrame),
        ("bytes where there are none", [header(18, 0, 1, 0, 1), vec![0]].concat(), Code::BadFrame),
        ("a byte over 16 MiB", header(40, 0, 7, 0, 16 * 1024 * 1024 - 15), Code::FrameTooLarge),
        ("4 GiB", header(40, 0, 7, 0, u32::MAX), Code::FrameTooLarge),
        ("a second CONNECT", encoded(&connect(VERSION)), Code::ExpectedConnect),
    ];
    for (what, bytes, code) in table {
        let mut peer = Peer::client(broker.address(), "q");
        peer.say_bytes(bytes);
        assert_eq!(peer.closed_with(), *code, "{what}");
        bystander.sync();
    }
    assert_eq!(bystander.status().connections, 1);
}

/// Proves I21: a length is a claim, and nothing is allocated by a claim.
#[test]
fn claims_of_length_cost_no_memory() {
    let mut broker = Broker::start();
    let before = process::memory_peak(broker.process().id());
    let mut liars: Vec<Peer> = (0..50).map(|_| Peer::client(broker.address(), "q")).collect();
    for liar in &mut liars {
        liar.say_bytes(&header(40, 0, 7, 0, u32::MAX));
    }
    let mut claimants: Vec<Peer> = (0..50).map(|_| Peer::client(broker.address(), "q")).collect();
    for claimant in &mut claimants {
        // Within the limit, so that it is waited for, but it never comes.
        claimant.say_bytes(&header(40, 0, 7, 0, 16 * 1024 * 1024 - 16));
    }
    for liar in &mut liars {
        assert_eq!(liar.closed_with(), Code::FrameTooLarge);
    }
    Peer::client(broker.address(), "q").sync();
    let grown = process::memory_peak(broker.process().id()) - before;
    assert!(grown < 16 << 20, "100 claims cost {grown} bytes");
}

/// Proves I21: frames that only a broker sends are fatal from a peer.
#[test]
fn frames_in_the_wrong_direction_are_fatal() {
    let broker = Broker::start();
    let delivery = turno_proto::model::Delivery { index: 0, stamp: 1 };
    let id = turno_proto::model::MessageId::new(1, 1, 1);
    let deliver = Deliver {
        delivery,
        handle: 0,
        id,
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: None,
        wants_reply: true,
        token: None,
        raw: Raw { headers: false, bytes: b"x" },
    };
    let answer = AdminAnswer::Consumers { consumers: Vec::new(), more: 0 };
    let frames = [
        Frame::Pong { seq: 1 },
        Frame::Ok { seq: 1 },
        Frame::Delivered { seq: 1 },
        Frame::Undelivered { seq: 1, code: Code::Failed, raw: RAW },
        Frame::Error { seq: 1, code: Code::Failed, fatal: false, detail: "" },
        Frame::Stored { seq: 1, durability: turno_proto::model::Durability::Memory, id, duplicate: false },
        Frame::AdminAnswer { seq: 1, answer },
        Frame::Deliver(deliver),
    ];
    for frame in frames {
        let mut peer = Peer::greeted(broker.address(), 0);
        peer.say(&frame);
        assert_eq!(peer.closed_with(), Code::WrongDirection, "{frame:?}");
    }
}

/// Proves S0.13: slots that are no number are refused and change nothing, a negative number counts as 0.
#[test]
fn slots_that_are_no_number_change_nothing() {
    let broker = Broker::start();
    let mut admin = Peer::greeted(broker.address(), 0);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(3), "w");
    let refused: &[(&str, &[u8], Code)] = &[
        ("text", b"\x81\xA5slots\xA3ten", Code::BadBody),
        ("a fraction", b"\x81\xA5slots\xCB\x40\x00\x00\x00\x00\x00\x00\x00", Code::BadBody),
        ("a list", b"\x81\xA5slots\x91\x01", Code::BadBody),
        ("no slots at all", b"\x81\xA4name\xA1w", Code::BadBody),
        ("a million and one", b"\x81\xA5slots\xCE\x00\x0F\x42\x41", Code::BadSlots),
        ("more than 32 bits", b"\x81\xA5slots\xCF\x00\x00\x00\x01\x00\x00\x00\x00", Code::BadSlots),
    ];
    for kind in [32, 34] {
        for (what, map, code) in refused {
            worker.say_bytes(&control(kind, 50, map));
            assert_eq!(worker.refused(), (50, *code), "{what}");
            assert_eq!(admin.workers()[0].slots, Slots::Limited(3), "{what}");
        }
    }
    worker.say_bytes(&control(32, 51, b"\x81\xA5slots\xD0\xFB"));
    worker.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 51 }));
    assert_eq!(admin.workers()[0].slots, Slots::Limited(0));
    let mut client = Peer::client(broker.address(), "q");
    client.request(b"x");
    client.sync();
    assert_eq!((admin.status().ready, admin.status().in_flight), (1, 0));
}

/// Proves I21: what is whole but cannot be done is refused by its number, and the connection goes on.
#[test]
fn a_refusal_ends_nothing() {
    let broker = Broker::start();
    let mut peer = Peer::client(broker.address(), "q");
    let register = turno_proto::native::Register::new(Slots::Limited(1), "w");
    let open = |handle, name: &'static [u8]| Frame::Open { seq: 60, handle, name };
    let table = [
        (open(1, b""), Code::BadName),
        (open(1, b"two words"), Code::BadName),
        (open(1, b"a..b"), Code::BadName),
        (open(1, b"all.*"), Code::BadName),
        (open(1, b"\xFF\xFE"), Code::BadName),
        (open(257, b"far"), Code::TooManyHandles),
        (Frame::Consume { seq: 60, handle: 0, exclusive: false }, Code::NotRegistered),
        (Frame::Deregister { seq: 60 }, Code::NotRegistered),
        (Frame::Resize { seq: 60, register }, Code::NotRegistered),
        (Frame::AdminCall { seq: 60, call: AdminCall::WorkerShow { worker: "w".into() } }, Code::NotFound),
    ];
    for (frame, code) in table {
        peer.say(&frame);
        assert_eq!(peer.refused(), (60, code), "{frame:?}");
    }
    peer.say_bytes(&control(112, 61, b"\x81\xA2op\xA4boom"));
    assert_eq!(peer.refused(), (61, Code::BadCall));
    peer.register(Slots::Limited(1), "w");
    peer.say(&Frame::Consume { seq: 62, handle: 7, exclusive: false });
    assert_eq!(peer.refused(), (62, Code::UnknownHandle));
    peer.say(&Frame::Consume { seq: 63, handle: 0, exclusive: false });
    peer.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 63 }));
    peer.say(&Frame::Consume { seq: 64, handle: 0, exclusive: false });
    assert_eq!(peer.refused(), (64, Code::AlreadyConsuming));
}

/// Proves I21: a message that cannot be taken has UNDELIVERED as its outcome.
#[test]
fn messages_are_refused_at_the_door_with_their_code() {
    let broker = Broker::start();
    let mut peer = Peer::client(broker.address(), "q");
    let seq = peer.request_with(b"x", |message| message.handle = 5);
    assert_eq!(peer.undelivered(), (seq, Code::UnknownHandle));
    let seq = peer.request_with(b"x", |message| message.priority = Some(10));
    assert_eq!(peer.undelivered(), (seq, Code::BadOption));
    let seq = peer.request_with(b"x", |message| message.cost = Some(0));
    assert_eq!(peer.undelivered(), (seq, Code::BadOption));
    peer.sync();
    assert_eq!(peer.status().counters.refused, 3);
}
