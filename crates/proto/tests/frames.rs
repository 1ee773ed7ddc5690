//! The codec against every frame there can be and every byte a peer could send.

mod golden;
mod seed;

use proptest::prelude::*;
use turno_proto::model::{Code, limits};
use turno_proto::native::admin::AdminAnswer;
use turno_proto::native::{Fault, Frame, HEADER_LEN, Header, Kind, Raw, RawOutgoing, decode, encode, flags, split};

use crate::seed::any_seed;

const SEQ: u32 = 77;

proptest! {
    #[test]
    fn any_frame_comes_back_as_it_was(seed in any_seed()) {
        let frame = seed.frame();
        let bytes = written(&frame);
        let piece = split(&bytes, bytes.len()).expect("a sound frame").expect("a whole frame");
        prop_assert_eq!(piece.used, bytes.len());
        let read = decode(&piece.header, piece.rest).expect("a sound frame");
        prop_assert_eq!(written(&read), bytes.clone());
        prop_assert_eq!(read, frame);
    }

    /// What is shown as JSON can be read again: one type serves both.
    #[test]
    fn any_answer_comes_back_from_json(seed in any_seed()) {
        let mut answer = seed.answer();
        // A submission is shown with its work read, and not to be submitted again.
        if let AdminAnswer::Jobs { jobs, .. } = &mut answer {
            jobs.iter_mut().for_each(|job| job.spec = None);
        } else if let AdminAnswer::Job { job } | AdminAnswer::TaskExplained { job, .. } = &mut answer {
            job.spec = None;
        }
        let json = serde_json::to_string(&answer).expect("an answer is JSON");
        prop_assert_eq!(serde_json::from_str::<AdminAnswer>(&json).expect(&json), answer);
    }

    #[test]
    fn any_bytes_are_read_or_refused(soup in any_soup(), bytes_max in 0..600_usize) {
        prop_assert!(take_apart(&soup, bytes_max) <= soup.len());
    }

    #[test]
    fn any_damage_to_a_sound_frame_is_read_or_refused(
        seed in any_seed(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = written(&seed.frame());
        let place = place.index(bytes.len());
        bytes[place] = byte;
        prop_assert!(take_apart(&bytes, bytes.len()) <= bytes.len());
    }

    /// However the bytes arrive, the frames are the same.
    #[test]
    fn one_byte_at_a_time_gives_the_same_frames(seeds in prop::collection::vec(any_seed(), 1..5)) {
        let frames: Vec<Frame<'_>> = seeds.iter().map(seed::Seed::frame).collect();
        let mut stream = Vec::new();
        frames.iter().for_each(|frame| encode(frame, &mut stream));
        let mut expected = frames.into_iter();
        let mut start = 0;
        for end in 1..=stream.len() {
            let split = split(&stream[start..end], usize::MAX);
            if let Some(piece) = split.expect("sound frames") {
                prop_assert_eq!(decode(&piece.header, piece.rest).ok(), expected.next());
                start += piece.used;
            }
        }
        prop_assert_eq!((start, expected.next()), (stream.len(), None));
    }
}

#[test]
fn a_frame_cut_anywhere_waits_for_the_rest() {
    for vector in golden::all() {
        for end in 0..vector.bytes.len() {
            assert_eq!(split(&vector.bytes[..end], usize::MAX), Ok(None), "{} cut at {end}", vector.name);
        }
    }
}

/// What follows a frame is not looked at.
#[test]
fn a_frame_ends_where_its_length_says() {
    for vector in golden::all() {
        let mut bytes = vector.bytes.clone();
        bytes.extend_from_slice(b"anything");
        let piece = split(&bytes, usize::MAX).expect("a sound frame").expect("a whole frame");
        assert_eq!(piece.used, vector.bytes.len(), "{}", vector.name);
    }
}

#[test]
fn a_length_is_judged_before_anything_is_kept_for_it() {
    let bytes_max = 1_000;
    let room = u32::try_from(bytes_max - HEADER_LEN).unwrap();
    let table = [
        (room, Ok(None)),
        (room + 1, Err(Fault::fatal(Code::FrameTooLarge, SEQ))),
        (u32::MAX, Err(Fault::fatal(Code::FrameTooLarge, SEQ))),
    ];
    for (length, expected) in table {
        let bytes = header(Kind::Request, 0, length);
        assert_eq!(split(&bytes, bytes_max), expected, "{length}");
    }
    let whole = frame(Kind::Request, 0, &vec![7; bytes_max - HEADER_LEN]);
    assert_eq!(split(&whole, bytes_max).map(|piece| piece.map(|p| p.used)), Ok(Some(bytes_max)));
    assert_eq!(split(&whole, bytes_max - 1), Err(Fault::fatal(Code::FrameTooLarge, SEQ)));
    // A limit below the header itself leaves room for frames without a rest only.
    assert!(split(&header(Kind::Ping, 0, 0), 0).is_ok_and(|piece| piece.is_some()));
    assert_eq!(split(&header(Kind::Ping, 0, 1), 0), Err(Fault::fatal(Code::FrameTooLarge, SEQ)));
}

#[test]
fn a_wrong_magic_is_told_at_its_first_byte() {
    let wrong = Err(Fault::fatal(Code::BadMagic, 0));
    assert_eq!(split(b"", usize::MAX), Ok(None));
    assert_eq!(split(b"\x47\xC0", usize::MAX), Ok(None));
    assert_eq!(split(b"G", usize::MAX), Ok(None), "G is 47: what begins with it waits for one more byte");
    for start in [&b"\xC0"[..], b"\x47\x47", b"\xC0\x47", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01", b"\0"]
    {
        assert_eq!(split(start, usize::MAX), wrong, "{start:?}");
    }
    for place in [0, 1] {
        let mut bytes = header(Kind::Ping, 0, 0);
        bytes[place] ^= 1;
        assert_eq!(split(&bytes, usize::MAX), wrong);
    }
}

#[test]
fn a_number_outside_the_table_is_an_unknown_type() {
    for number in 0..=u8::MAX {
        let head = Header { kind: number, flags: 0, seq: SEQ, word: 0, length: u32::MAX };
        let known = Kind::from_number(number).is_some();
        let code = if known { Code::FrameTooLarge } else { Code::UnknownType };
        assert_eq!(split(&head.to_bytes(), 1_000), Err(Fault::fatal(code, SEQ)), "{number}");
        if !known {
            assert_eq!(decode(&head, b""), Err(Fault::fatal(Code::UnknownType, SEQ)), "{number}");
        }
    }
}

/// Frames with fixed fields: kind, flags, the bytes these announce, and whether more may follow them.
const FIXED: &[(Kind, u8, usize, bool)] = &[
    (Kind::Request, flags::DEADLINE, 4, true),
    (Kind::Request, flags::RETRIES, 1, true),
    (Kind::Request, flags::PRIORITY, 1, true),
    (Kind::Request, flags::COST, 2, true),
    (Kind::Request, flags::HEADERS, 2, true),
    (Kind::Send, flags::DEADLINE | flags::RETRIES | flags::PRIORITY | flags::COST | flags::HEADERS, 10, true),
    (Kind::Send, flags::DEDUP, 1, true),
    (Kind::Send, flags::COST | flags::DEDUP | flags::HEADERS, 5, true),
    (Kind::Deliver, 0, 24, true),
    (Kind::Deliver, flags::DEADLINE | flags::HEADERS, 30, true),
    (Kind::Deliver, flags::TOKEN | flags::DEADLINE | flags::HEADERS, 38, true),
    (Kind::Ok, flags::TOKEN, 8, false),
    (Kind::Ack, flags::TOKEN, 8, false),
    (Kind::Extend, flags::TOKEN, 12, false),
    (Kind::Reply, flags::TOKEN | flags::HEADERS, 10, true),
    (Kind::Fail, flags::TOKEN, 8, true),
    (Kind::Progress, flags::TOKEN, 8, true),
    (Kind::Reply, flags::HEADERS, 2, true),
    (Kind::Fail, flags::HEADERS, 2, true),
    (Kind::Progress, flags::HEADERS, 2, true),
    (Kind::Undelivered, flags::HEADERS, 2, true),
    (Kind::Extend, 0, 4, false),
    (Kind::Stored, 0, 16, false),
    (Kind::Ping, 0, 0, false),
    (Kind::Pong, 0, 0, false),
    (Kind::Deregister, 0, 0, false),
    (Kind::Consume, 0, 0, false),
    (Kind::Ack, 0, 0, false),
    (Kind::Delivered, 0, 0, false),
    (Kind::Ok, 0, 0, false),
];

#[test]
fn fixed_fields_that_run_past_the_end_close_the_connection() {
    let bad = Some(Fault::fatal(Code::BadFrame, SEQ));
    for &(kind, flags, fixed, more) in FIXED {
        let word = if kind == Kind::Undelivered { Code::TimedOut.number() } else { 0 };
        let fault = |length: usize| read_with(kind, flags, word, &vec![0; length]).err();
        for length in 0..fixed {
            assert_eq!(fault(length), bad, "{kind:?} {flags:#x} {length}");
        }
        // A dedup id of no bytes is whole, and refused.
        let fine = (flags & flags::DEDUP != 0).then_some(Fault::refusal(Code::BadOption, SEQ));
        assert_eq!(fault(fixed), fine, "{kind:?} {flags:#x}");
        assert_eq!(fault(fixed + 1), if more { fine } else { bad }, "{kind:?} {flags:#x}");
    }
    for length in 1..8 {
        for kind in [Kind::Cancel, Kind::CancelQueue] {
            let fault = read(kind, 0, &vec![0; length]).err();
            assert_eq!(fault, if length == 4 { None } else { bad }, "{kind:?} with {length} bytes");
        }
    }
}

/// A dedup id is 1 to 64 bytes, and of a SEND; anything else refuses the frame, and one that runs past the end closes
/// the connection.
#[test]
fn a_bad_dedup_id_refuses_the_frame() {
    let rest = |length: u8| [&[length][..], &vec![b'i'; length.into()], b"body"].concat();
    for length in 0..=u8::MAX {
        let rest = rest(length);
        let refused = Err(Fault::refusal(Code::BadOption, SEQ));
        let expected = if (1..=64).contains(&length) { Ok(&rest[1..rest.len() - 4]) } else { refused };
        let sent = read(Kind::Send, flags::DEDUP, &rest).map(|frame| match frame {
            Frame::Send(RawOutgoing { dedup_id: Some(id), payload: raw, .. }) if raw.bytes == b"body" => id,
            other => panic!("{other:?}"),
        });
        assert_eq!(sent, expected, "{length}");
        // In a REQUEST the bit means another thing, and what follows is the body.
        let asked = read(Kind::Request, flags::CANCEL_ON_DISCONNECT, &rest).map(|frame| match frame {
            Frame::Request(RawOutgoing { dedup_id: None, cancel_on_disconnect: true, payload: raw, .. }) => {
                raw.bytes == rest
            }
            _ => false,
        });
        assert_eq!(asked, Ok(true), "{length}");
        if length > 4 {
            let cut = read(Kind::Send, flags::DEDUP, &rest[..rest.len() - 5]);
            assert_eq!(cut, Err(Fault::fatal(Code::BadFrame, SEQ)), "{length}");
        }
    }
}

#[test]
fn a_header_block_longer_than_the_frame_closes_the_connection() {
    for kind in [Kind::Request, Kind::Send, Kind::Reply, Kind::Fail, Kind::Progress] {
        assert!(read(kind, flags::HEADERS, b"\x03\0abc").is_ok(), "{kind:?}");
        for rest in [&b"\x04\0abc"[..], b"\xFF\xFFabc", b"\x01\0"] {
            assert_eq!(read(kind, flags::HEADERS, rest), Err(Fault::fatal(Code::BadFrame, SEQ)), "{kind:?}");
        }
    }
}

const MAPS: &[Kind] = &[
    Kind::Connect,
    Kind::Config,
    Kind::Closing,
    Kind::Register,
    Kind::Resize,
    Kind::AdminCall,
    Kind::AdminAnswer,
    Kind::BroadcastEnd,
];

/// Bytes that are no control map, whatever the frame.
const NO_MAP: &[(&str, &[u8])] = &[
    ("nothing", b""),
    ("a number", b"\x05"),
    ("nil", b"\xC0"),
    ("text", b"\xA2ok"),
    ("a reserved marker", b"\xC1"),
    ("an array in place of a map", b"\x94\x01\xA0\xA0\x00"),
    ("a map cut after its marker", b"\x84"),
    ("a map cut inside a key", b"\x81\xA7vers"),
    ("a map without its last value", b"\x81\xA7version"),
    ("a map that claims four billion pairs", b"\xDF\xFF\xFF\xFF\xFF\xA1a\x01"),
    ("text that claims four GiB", b"\x81\xA1a\xDB\xFF\xFF\xFF\xFFx"),
    ("a second value after the map", b"\x80\x80"),
];

#[test]
fn a_broken_control_map_refuses_the_frame_and_no_more() {
    for kind in MAPS {
        for (what, rest) in NO_MAP {
            assert_eq!(read(*kind, 0, rest), Err(Fault::refusal(Code::BadBody, SEQ)), "{kind:?}: {what}");
        }
    }
}

/// S2.15: a broadcast is never retried and takes no slots, so it has no such options. What it has is left alone.
#[test]
fn a_broadcast_with_options_of_other_messages_is_refused() {
    let rest = b"\x01\0\0\0\x01\x01\x01\0\x01x";
    for option in [flags::RETRIES, flags::PRIORITY, flags::COST, flags::DEDUP] {
        for others in [0, flags::DEADLINE, flags::NO_REPLY, flags::SKIP_SELF] {
            let refused = Err(Fault::refusal(Code::BadOption, SEQ));
            assert_eq!(read(Kind::Broadcast, option | others, rest), refused, "{option:#04x} {others:#04x}");
        }
        assert_eq!(read(Kind::Broadcast, option, b""), Err(Fault::fatal(Code::BadFrame, SEQ)), "{option:#04x}");
    }
    let read = read(Kind::Broadcast, flags::DEADLINE | flags::SKIP_SELF, b"\x01\0\0\0hello");
    let Ok(Frame::Broadcast(broadcast)) = read else { panic!("{read:?}") };
    assert_eq!((broadcast.deadline_ms, broadcast.skip_self, broadcast.no_reply), (Some(1), true, false));
    assert_eq!(broadcast.payload.bytes, b"hello");
}

/// The name of a consumer is text, and ends within its frame.
#[test]
fn an_answer_names_its_consumer_in_text() {
    let table: &[(&[u8], Fault)] = &[
        (b"", Fault::fatal(Code::BadFrame, SEQ)),
        (b"\x2A\0\0\0\0\0\0\0", Fault::fatal(Code::BadFrame, SEQ)),
        (b"\x2A\0\0\0\0\0\0\0\x02w", Fault::fatal(Code::BadFrame, SEQ)),
        (b"\x2A\0\0\0\0\0\0\0\x01\xFF", Fault::refusal(Code::BadBody, SEQ)),
    ];
    for (rest, fault) in table {
        assert_eq!(read(Kind::Answer, 0, rest), Err(*fault), "{rest:?}");
    }
}

#[test]
fn a_map_with_the_wrong_inside_refuses_the_frame() {
    let table: &[(Kind, &[u8], Code)] = &[
        (Kind::Connect, b"\x80", Code::BadBody),
        (Kind::Connect, b"\x81\xA7version\xA11", Code::BadBody),
        (Kind::Connect, b"\x81\xA7version\xFF", Code::BadBody),
        (Kind::Connect, b"\x82\xA7version\x01\xA7version\x01", Code::BadBody),
        (Kind::Closing, b"\x81\xA6reason\xA5later", Code::BadBody),
        (Kind::Register, b"\x81\xA5slots\xA3ten", Code::BadBody),
        (Kind::Register, b"\x81\xA5slots\xCB\x40\x14\0\0\0\0\0\0", Code::BadBody),
        (Kind::AdminCall, b"\x80", Code::BadCall),
        (Kind::AdminCall, b"\x81\xA2op\xA7explode", Code::BadCall),
        (Kind::AdminCall, b"\x81\xA2op\xAAqueue.show", Code::BadCall),
    ];
    for (kind, rest, code) in table {
        assert_eq!(read(*kind, 0, rest), Err(Fault::refusal(*code, SEQ)), "{kind:?} {rest:?}");
    }
}

/// Arrays that claim what is not there, one inside the other, and more values than a peer's map may hold: both
/// are refused before memory is reserved for them.
#[test]
fn a_map_that_would_swell_is_refused() {
    let mut nested = b"\x82\xA2op\xA6status\xA1x".to_vec();
    (0..1_000).for_each(|_| nested.extend_from_slice(b"\xDD\xFF\xFF\xFF\xFF"));
    assert_eq!(read(Kind::AdminCall, 0, &nested), Err(Fault::refusal(Code::BadBody, SEQ)));

    // The four keys and values of the map itself count too.
    let filled = |values: usize| {
        let mut rest = b"\x82\xA2op\xA6status\xA1x\xDC".to_vec();
        rest.extend_from_slice(&u16::try_from(values).unwrap().to_be_bytes());
        rest.extend(std::iter::repeat_n(0xC0, values));
        read(Kind::AdminCall, 0, &rest).map(|_| ())
    };
    assert_eq!(filled(limits::MAP_VALUES_MAX - 4), Ok(()));
    assert_eq!(filled(limits::MAP_VALUES_MAX - 3), Err(Fault::refusal(Code::BadBody, SEQ)));

    let mut deep = b"\x82\xA2op\xA6status\xA1x".to_vec();
    deep.extend(std::iter::repeat_n(0x91, limits::MAP_VALUES_MAX - 4));
    deep.push(0xC0);
    assert_eq!(read(Kind::AdminCall, 0, &deep).map(|_| ()), Ok(()), "deep, and within the limit");
}

/// Old and new peers agree: a key nobody knows changes nothing, and neither does an unknown flag bit.
#[test]
fn what_a_newer_peer_adds_is_ignored() {
    for vector in golden::all() {
        let (head, rest) = vector.bytes.split_first_chunk::<HEADER_LEN>().unwrap();
        let head = Header::from_bytes(head).unwrap();
        let kind = Kind::from_number(head.kind).unwrap();
        let expected = decode(&head, rest);
        // Every bit of these has its meaning.
        if !matches!(kind, Kind::Request | Kind::Send | Kind::Broadcast) {
            assert_eq!(decode(&Header { flags: head.flags | 0x80, ..head }, rest), expected, "{}", vector.name);
        }
        if MAPS.contains(&kind) {
            let mut more = rest.to_vec();
            assert!((0x80..0x8F).contains(&more[0]), "{}: the map has room for one key more", vector.name);
            more[0] += 1;
            more.extend_from_slice(b"\xA6future\x93\xC0\x81\xA1a\x92\xC3\xCB\0\0\0\0\0\0\0\0\xC4\x01\xFF");
            assert_eq!(decode(&head, &more), expected, "{}", vector.name);
        }
    }
}

/// One value for every way MessagePack has to write one.
#[test]
fn a_value_of_any_kind_may_stand_under_an_unknown_key() {
    let long = |head: &[u8], length: usize| [head, &vec![b'x'; length]].concat();
    let nils = |head: &[u8], count: usize| [head, &vec![0xC0; count]].concat();
    let mut values = vec![
        long(b"\xBF", 31),
        long(b"\xC4\x03", 3),
        long(b"\xC5\x01\0", 256),
        long(b"\xC6\0\x01\0\0", 65_536),
        long(b"\xC7\x03\x05", 3),
        long(b"\xC8\x01\0\x05", 256),
        long(b"\xC9\0\x01\0\0\x05", 65_536),
        long(b"\xD9\x20", 32),
        long(b"\xDA\x01\0", 256),
        long(b"\xDB\0\x01\0\0", 65_536),
        nils(b"\x9F", 15),
        nils(b"\xDC\0\x10", 16),
        nils(b"\xDD\0\0\0\x10", 16),
        nils(b"\x8F", 30),
        nils(b"\xDE\0\x10", 32),
        nils(b"\xDF\0\0\0\x10", 32),
    ];
    values.extend([0x00, 0x7F, 0x80, 0x90, 0xA0, 0xC0, 0xC2, 0xC3, 0xE0, 0xFF].map(|marker| vec![marker]));
    let widths = [(0xCA, 4), (0xCB, 8), (0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8), (0xD0, 1), (0xD1, 2), (0xD2, 4)];
    let extensions = [(0xD3, 8), (0xD4, 2), (0xD5, 3), (0xD6, 5), (0xD7, 9), (0xD8, 17)];
    values.extend(widths.into_iter().chain(extensions).map(|(marker, width)| long(&[marker], width)));
    let expected = read(Kind::Register, 0, b"\x81\xA5slots\x04");
    for value in values {
        let rest = [b"\x82\xA6future", &value[..], b"\xA5slots\x04"].concat();
        assert_eq!(read(Kind::Register, 0, &rest), expected, "{:02X?}", &value[..1]);
        let cut = &rest[..rest.len() - 1];
        assert_eq!(read(Kind::Register, 0, cut), Err(Fault::refusal(Code::BadBody, SEQ)), "{:02X?}", &value[..1]);
    }
}

#[test]
fn keys_left_out_take_their_defaults() {
    let table: &[(Kind, &[u8], &[u8])] = &[
        (Kind::Connect, b"\x81\xA7version\x01", b"\x84\xA7version\x01\xA4name\xA0\xA7program\xA0\xACheartbeat_ms\x00"),
        (Kind::Closing, b"\x81\xA6reason\xA4stop", b"\x82\xA6reason\xA4stop\xA9within_ms\x00"),
        (Kind::Register, b"\x81\xA5slots\xC0", b"\x82\xA5slots\xC0\xA4name\xA0"),
        (Kind::Resize, b"\x81\xA5slots\x04", b"\x82\xA5slots\x04\xA4name\xA0"),
        (Kind::AdminCall, b"\x82\xA5limit\x05\xA2op\xA8queue.ls", b"\x83\xA2op\xA8queue.ls\xA5after\xC0\xA5limit\x05"),
    ];
    for (kind, short, full) in table {
        let short = read(*kind, 0, short);
        assert!(short.is_ok(), "{kind:?}: {short:?}");
        assert_eq!(short, read(*kind, 0, full), "{kind:?}");
    }
}

/// Codes of a newer broker that this version has no word for: the outcome still arrives, as `other`.
#[test]
fn a_code_without_a_meaning_is_still_an_outcome() {
    let unknown = 9_999_u32;
    assert_eq!(Code::from_number(unknown), None);
    let (seq, code, raw) = (SEQ, Code::Other, Raw { headers: false, bytes: b"" });
    assert_eq!(read_with(Kind::Error, 0, unknown, b""), Ok(Frame::Error { seq, code, fatal: false, detail: "" }));
    assert_eq!(read_with(Kind::Undelivered, 0, unknown, b""), Ok(Frame::Undelivered { seq, code, raw }));
    let number = unknown.to_le_bytes();
    let cancel = read(Kind::Cancel, 0, &number);
    assert!(matches!(cancel, Ok(Frame::Cancel { reason: Some(Code::Other), .. })), "{cancel:?}");
    let refused = Err(Fault::refusal(Code::BadBody, SEQ));
    assert_eq!(read_with(Kind::Stored, 0, unknown, &[0; 16]), refused);
    assert_eq!(read_with(Kind::Error, 0, Code::BadMagic.number(), b"\xFF"), refused, "the detail is UTF-8");
}

/// Anything: plain noise, and noise behind headers that are believed.
fn any_soup() -> impl Strategy<Value = Vec<u8>> {
    let noise = || prop::collection::vec(any::<u8>(), 0..300);
    let head = (prop::sample::select(Kind::ALL), any::<u8>(), 0..300_u32);
    let believed = (head, noise()).prop_map(|((kind, flags, length), noise)| {
        let mut bytes = header(kind, flags, length);
        bytes.extend(noise);
        bytes
    });
    prop_oneof![noise(), believed]
}

/// Reads frames until the bytes end or are refused; returns the bytes used.
fn take_apart(bytes: &[u8], bytes_max: usize) -> usize {
    let mut used = 0;
    while let Ok(Some(piece)) = split(&bytes[used..], bytes_max) {
        assert_eq!(piece.used, HEADER_LEN + piece.rest.len());
        assert_eq!(u32::try_from(piece.rest.len()), Ok(piece.header.length));
        assert!(piece.used <= bytes_max.max(HEADER_LEN));
        let _ = decode(&piece.header, piece.rest);
        used += piece.used;
    }
    used
}

fn written(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    bytes
}

fn header(kind: Kind, flags: u8, length: u32) -> Vec<u8> {
    Header { kind: kind.number(), flags, seq: SEQ, word: 0, length }.to_bytes().to_vec()
}

fn frame(kind: Kind, flags: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, flags, u32::try_from(rest.len()).expect("a short rest"));
    bytes.extend_from_slice(rest);
    bytes
}

fn read(kind: Kind, flags: u8, rest: &[u8]) -> Result<Frame<'_>, Fault> {
    read_with(kind, flags, 0, rest)
}

fn read_with(kind: Kind, flags: u8, word: u32, rest: &[u8]) -> Result<Frame<'_>, Fault> {
    let length = u32::try_from(rest.len()).expect("a short rest");
    decode(&Header { kind: kind.number(), flags, seq: SEQ, word, length }, rest)
}
