//! `docs/reference/protocol`, claim by claim where a stranger would otherwise have to guess: bytes in, bytes out.

use turno_broker::connections::{Connections, ListenerKind, Turn};
use turno_engine::Settings;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{Code, ConnId, Durability, Limits, Mono, Slots};
use turno_proto::native::{
    Config, Connect, Frame, Kind, Raw, RawEvent, RawOutgoing, Register, VERSION, decode, encode, split,
};

/// A broker in memory.
fn board() -> Connections {
    let limits = Limits::default();
    let config = Config { broker: "b".into(), ..Config::of(&limits) };
    Connections::new(Mono::ZERO, Settings { limits, ..Settings::default() }, config)
}

/// A new connection that writes all of this in one go.
fn dial(board: &mut Connections, frames: &[Frame<'_>]) -> ConnId {
    let conn = board.accept(Mono::ZERO, "here".into(), ListenerKind::Native).expect("room for one more");
    write(board, conn, frames);
    conn
}

fn write(board: &mut Connections, conn: ConnId, frames: &[Frame<'_>]) {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| encode(frame, &mut bytes));
    let mut turn = board.take(Mono::ZERO, conn, &bytes);
    while turn == Turn::Cut {
        turn = board.go_on(Mono::ZERO, conn);
    }
    board.engine().sanity_check();
}

/// Reads everything that waits: types and numbers of the frames, in order.
fn read(board: &mut Connections, conn: ConnId) -> Vec<(Kind, u32)> {
    read_frames(board, conn, |frame, seq| (frame.kind(), seq))
}

fn read_frames<T>(board: &mut Connections, conn: ConnId, each: impl Fn(Frame<'_>, u32) -> T) -> Vec<T> {
    let bytes = board.unwritten(conn).to_vec();
    board.wrote(Mono::ZERO, conn, bytes.len());
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    while let Some(piece) = split(rest, usize::MAX).expect("frames of ours") {
        let frame = decode(&piece.header, piece.rest).expect("frames of ours");
        found.push(each(frame, piece.header.seq));
        rest = &rest[piece.used..];
    }
    found
}

fn connect() -> Frame<'static> {
    let connect = Connect { version: VERSION, name: "p".into(), program: String::new(), heartbeat_ms: 0 };
    Frame::Connect { seq: 1, connect }
}

fn body(bytes: &[u8]) -> Raw<'_> {
    Raw { headers: false, bytes }
}

fn publish(seq: u32, confirm: bool, topic: &'static [u8]) -> Frame<'static> {
    Frame::Publish { seq, confirm, event: RawEvent { topic, payload: body(b"x") } }
}

/// REGISTER, OPEN `q` as handle 0, CONSUME, with numbers 3, 4 and 5.
fn work() -> [Frame<'static>; 3] {
    [
        Frame::Register { seq: 3, register: Register::new(Slots::Limited(9), "w") },
        Frame::Open { seq: 4, handle: 0, name: b"q" },
        Frame::Consume { seq: 5, handle: 0, exclusive: false },
    ]
}

fn one_go(before: &[Frame<'static>]) -> Vec<Frame<'static>> {
    [before, &work()].concat()
}

/// A worker may write its whole beginning without reading; CONFIG comes first, and OK of CONSUME before the first DELIVER
/// of what waits in the queue already.
#[test]
fn a_worker_begins_in_one_go() {
    let mut board = board();
    let sends = (10..13).map(|seq| Frame::Send(RawOutgoing::new(seq, 0, body(b"x"))));
    let before: Vec<Frame<'_>> =
        [connect(), Frame::Open { seq: 2, handle: 0, name: b"q" }].into_iter().chain(sends).collect();
    let sender = dial(&mut board, &before);
    assert_eq!(read(&mut board, sender).len(), 5);
    let worker = dial(&mut board, &one_go(&[connect(), Frame::Ping { seq: 2 }]));
    let kinds: Vec<Kind> = read(&mut board, worker).into_iter().map(|(kind, _)| kind).collect();
    use Kind::{Config, Deliver, Ok, Pong};
    assert_eq!(kinds, [Config, Pong, Ok, Ok, Ok, Deliver, Deliver, Deliver]);
}

/// A CONNECT that is refused takes everything behind it along.
#[test]
fn nothing_behind_a_refused_connect_is_handled() {
    let mut board = board();
    let connect = Connect { version: VERSION + 1, name: String::new(), program: String::new(), heartbeat_ms: 0 };
    let conn = dial(&mut board, &one_go(&[Frame::Connect { seq: 1, connect }]));
    assert_eq!(read(&mut board, conn), [(Kind::Error, 1)]);
}

/// Without a PING every frame is handled, and DELIVER alone is held back.
#[test]
fn frames_between_config_and_ping() {
    let mut board = board();
    let conn = dial(&mut board, &one_go(&[connect()]));
    let expected = [(Kind::Config, 1), (Kind::Ok, 3), (Kind::Ok, 4), (Kind::Ok, 5)];
    assert_eq!(read(&mut board, conn), expected);
    let frames = [
        Frame::Send(RawOutgoing::new(6, 0, body(b"x"))),
        Frame::Subscribe { seq: 7, filter: "a".parse().expect("a filter"), or_close: false },
        publish(8, true, b"a"),
        Frame::AdminCall { seq: 9, call: AdminCall::Status },
        Frame::Open { seq: 10, handle: 1, name: b"alone" },
        Frame::Consume { seq: 11, handle: 1, exclusive: true },
    ];
    write(&mut board, conn, &frames);
    let mut told = read(&mut board, conn);
    told.sort_by_key(|(_, seq)| *seq);
    let expected = [
        (Kind::Event, 0),
        (Kind::Stored, 6),
        (Kind::Ok, 7),
        (Kind::Ok, 8),
        (Kind::AdminAnswer, 9),
        (Kind::Ok, 10),
        (Kind::Ok, 11),
    ];
    assert_eq!(told, expected);
    write(&mut board, conn, &[Frame::Ping { seq: 12 }]);
    let kinds: Vec<Kind> = read(&mut board, conn).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [Kind::Pong, Kind::Deliver]);
}

/// Both are handled and answered, and CANCEL means the older one.
#[test]
fn a_number_used_twice() {
    let mut board = board();
    let conn = dial(&mut board, &[connect(), Frame::Open { seq: 2, handle: 0, name: b"q" }]);
    let request = |text| Frame::Request(RawOutgoing::new(7, 0, body(text)));
    write(&mut board, conn, &[request(b"older"), request(b"newer"), Frame::Ping { seq: 7 }]);
    read(&mut board, conn);
    write(&mut board, conn, &[Frame::Cancel { seq: 7, word: 0, reason: None }]);
    assert_eq!(read(&mut board, conn), [(Kind::Undelivered, 7)]);
    let worker = dial(&mut board, &one_go(&[connect(), Frame::Ping { seq: 2 }]));
    let bodies = read_frames(&mut board, worker, |frame, _| match frame {
        Frame::Deliver(deliver) => deliver.raw.bytes.to_vec(),
        _ => Vec::new(),
    });
    assert_eq!(bodies.concat(), b"newer");
}

/// No answer, whatever the number, unless it is refused.
#[test]
fn numbers_of_publish_without_confirm() {
    let mut board = board();
    let conn = dial(&mut board, &[connect()]);
    read(&mut board, conn);
    write(&mut board, conn, &[publish(0, false, b"a"), publish(7, false, b"a"), publish(7, false, b"a")]);
    assert_eq!(read(&mut board, conn), []);
    write(&mut board, conn, &[publish(7, false, b"a..b"), publish(8, true, b"a")]);
    assert_eq!(read(&mut board, conn), [(Kind::Error, 7), (Kind::Ok, 8)]);
}

/// Without a disk every send is word 0, and no queue can be made durable: SEND has nothing to ask for it with.
#[test]
fn a_broker_without_a_disk_stores_in_memory() {
    let mut board = board();
    let conn = dial(&mut board, &[connect(), Frame::Open { seq: 2, handle: 0, name: b"q" }]);
    read(&mut board, conn);
    let settings = Some(QueueSettings { durable: Some(true), ..QueueSettings::default() });
    let call = AdminCall::QueueSet { queue: "q".into(), settings };
    write(&mut board, conn, &[Frame::AdminCall { seq: 3, call }, Frame::Send(RawOutgoing::new(4, 0, body(b"x")))]);
    let told = read_frames(&mut board, conn, |frame, _| match frame {
        Frame::Error { code, .. } => Some(Err(code)),
        Frame::Stored { durability, .. } => Some(Ok(durability)),
        Frame::AdminAnswer { answer: AdminAnswer::Queue { .. }, .. } => None,
        other => panic!("{other:?}"),
    });
    assert_eq!(told, [Some(Err(Code::NoStore)), Some(Ok(Durability::Memory))]);
}

/// Integers of a map in every format that holds them.
#[test]
fn integers_of_any_width() {
    let wide: [&[u8]; 9] = [
        &[0x01],
        &[0xcc, 1],
        &[0xcd, 0, 1],
        &[0xce, 0, 0, 0, 1],
        &[0xcf, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0xd0, 1],
        &[0xd1, 0, 1],
        &[0xd2, 0, 0, 0, 1],
        &[0xd3, 0, 0, 0, 0, 0, 0, 0, 1],
    ];
    let wrong: [&[u8]; 5] = [
        &[0xff],
        &[0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xce, 0, 1, 0, 0],
        &[0xca, 0x3f, 0x80, 0, 0],
        &[0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
    ];
    for (version, answer) in
        wide.map(|bytes| (bytes, Kind::Config)).into_iter().chain(wrong.map(|bytes| (bytes, Kind::Error)))
    {
        let map = [&[0x81, 0xa7][..], b"version", version].concat();
        let length = u32::try_from(map.len()).expect("a short map");
        let header = [&[0x47, 0xc0, 16, 0][..], &1_u32.to_le_bytes(), &[0; 4], &length.to_le_bytes()].concat();
        let mut board = board();
        let conn = board.accept(Mono::ZERO, "here".into(), ListenerKind::Native).expect("room for one more");
        assert_eq!(board.take(Mono::ZERO, conn, &[header, map].concat()), Turn::Done);
        assert_eq!(read(&mut board, conn), [(answer, 1)], "{version:02x?}");
    }
}
