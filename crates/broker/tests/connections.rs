//! The broker without its sockets: bytes in, bytes out, time as an argument.

use turno_broker::connections::{Connections, ListenerKind, Turn};
use turno_engine::Settings;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, ConnId, Filter, Limits, Mono, Slots, limits};
use turno_proto::native::{
    Config, Connect, Deliver, Frame, Raw, RawEvent, RawOutgoing, Register, VERSION, decode, encode, split,
};

struct EngineHandle {
    board: Connections,
    now: Mono,
}

impl EngineHandle {
    fn new(limits: Limits) -> Self {
        let config = Config { broker: "b".into(), ..Config::of(&limits) };
        let settings = Settings { limits, ..Settings::default() };
        Self { board: Connections::new(Mono::ZERO, settings, config), now: Mono::ZERO }
    }

    fn say(&mut self, conn: ConnId, frames: &[Frame<'_>]) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| encode(frame, &mut bytes));
        let mut turn = self.board.take(self.now, conn, &bytes);
        self.board.engine().sanity_check();
        while turn == Turn::Cut {
            turn = self.board.go_on(self.now, conn);
            self.board.engine().sanity_check();
        }
    }

    /// A peer that greeted and has the queue `q` as handle 0.
    fn peer(&mut self) -> ConnId {
        let conn = self.board.accept(self.now, "here".into(), ListenerKind::Native).expect("room for one more");
        let connect = Connect { version: VERSION, name: "p".into(), program: String::new(), heartbeat_ms: 0 };
        self.say(
            conn,
            &[
                Frame::Connect { seq: 1, connect },
                Frame::Ping { seq: 2 },
                Frame::Open { seq: 3, handle: 0, name: b"q" },
            ],
        );
        self.take_all(conn);
        conn
    }

    fn worker(&mut self, slots: u32) -> ConnId {
        let conn = self.peer();
        let register = Register::new(Slots::Limited(slots), "w");
        self.say(conn, &[Frame::Register { seq: 4, register }, Frame::Consume { seq: 5, handle: 0, exclusive: false }]);
        self.take_all(conn);
        conn
    }

    fn request(&mut self, conn: ConnId, seq: u32, body: &[u8]) {
        let message = RawOutgoing::new(seq, 0, Raw { headers: false, bytes: body });
        self.say(conn, &[Frame::Request(message)]);
    }

    /// Reads everything that waits for a connection, as a quick peer does.
    fn take_all(&mut self, conn: ConnId) -> Vec<u8> {
        let bytes = self.board.unwritten(conn).to_vec();
        self.board.wrote(self.now, conn, bytes.len());
        bytes
    }
}

fn frames(bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Some(piece) = split(rest, usize::MAX).expect("frames of ours") {
        found.push(decode(&piece.header, piece.rest).expect("frames of ours"));
        rest = &rest[piece.used..];
    }
    found
}

/// The numbers that frames answer.
fn heads(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let piece = split(rest, usize::MAX).expect("frames of ours")?;
        rest = &rest[piece.used..];
        Some(piece.header.seq)
    })
}

/// Proves S1.18 and S1.17: reading, parsing and encoding happen at the connection; cut anywhere, the bytes give the
/// same result, and the engine only ever gets whole values.
#[test]
fn bytes_go_in_and_bytes_come_out() {
    let mut engine_handle = EngineHandle::new(Limits::default());
    let (worker, client) = (engine_handle.worker(1), engine_handle.peer());
    let mut request = Vec::new();
    encode(&Frame::Request(RawOutgoing::new(7, 0, Raw { headers: false, bytes: &[0, 255, 10] })), &mut request);
    for byte in &request {
        assert!(engine_handle.take_all(worker).is_empty(), "nothing goes out before the frame is whole");
        assert_eq!(engine_handle.board.take(engine_handle.now, client, &[*byte]), Turn::Done);
    }
    let bytes = engine_handle.take_all(worker);
    let [Frame::Deliver(Deliver { delivery, raw, .. })] = frames(&bytes)[..] else { panic!("{bytes:?}") };
    assert_eq!(raw.bytes, [0, 255, 10]);
    let raw = Raw { headers: false, bytes: b"done" };
    engine_handle.say(worker, &[Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw }]);
    let bytes = engine_handle.take_all(client);
    assert_eq!(frames(&bytes), [Frame::Reply { seq: 7, word: 0, more: false, raw }]);
}

/// However much a connection sends at once, others are heard before more than a turn of it is done; and all of it is, in
/// order, however often its turn is cut.
#[test]
fn a_turn_is_short_whatever_a_connection_sends() {
    const SENT: u32 = 5_000;
    let cases: [fn(u32) -> Frame<'static>; 4] = [
        |seq| Frame::Ping { seq },
        |seq| Frame::QueueAvailableNotify { seq, handle: 9 },
        |seq| Frame::AdminCall { seq, call: AdminCall::MessageCancel { id: "none".into() } },
        |seq| Frame::AdminCall { seq, call: AdminCall::QueuePurge { queue: "none".into(), limit: 1 } },
    ];
    let per_turn = [limits::TURN_WORK, limits::TURN_WORK, limits::TURN_WORK / limits::TURN_WORK_HEAVY, 1];
    for (frame, per_turn) in cases.into_iter().zip(per_turn) {
        let what = frame(0);
        let mut engine_handle = EngineHandle::new(Limits::default());
        let (many, other) = (engine_handle.peer(), engine_handle.peer());
        let mut bytes = Vec::new();
        (1..=SENT).for_each(|seq| encode(&frame(seq), &mut bytes));
        assert_eq!(engine_handle.board.take(engine_handle.now, many, &bytes), Turn::Cut, "{what:?}");
        let mut answers = engine_handle.take_all(many);
        assert_eq!(heads(&answers).count(), per_turn as usize, "{what:?}");
        engine_handle.say(other, &[Frame::Ping { seq: 1 }]);
        assert_eq!(frames(&engine_handle.take_all(other)), [Frame::Pong { seq: 1 }], "{what:?}: the other is heard");
        let mut turns = 1;
        loop {
            let turn = engine_handle.board.go_on(engine_handle.now, many);
            let more = engine_handle.take_all(many);
            assert!(heads(&more).count() <= per_turn as usize, "{what:?}");
            answers.extend(more);
            turns += 1;
            if turn == Turn::Done {
                break;
            }
        }
        assert_eq!(turns, SENT.div_ceil(per_turn), "{what:?}");
        assert!(heads(&answers).eq(1..=SENT), "{what:?}: all of them, in order");
        engine_handle.board.engine().sanity_check();
    }
}

/// What a turn left over, and the frame that is not all there behind it, are dealt with before what comes next.
#[test]
fn what_a_cut_turn_left_goes_first() {
    let mut engine_handle = EngineHandle::new(Limits::default());
    let client = engine_handle.peer();
    engine_handle.board.set_turn_work(2);
    let mut bytes = Vec::new();
    (1..=6).for_each(|seq| encode(&Frame::Ping { seq }, &mut bytes));
    let (first, second) = bytes.split_at(bytes.len() - 5);
    assert_eq!(engine_handle.board.take(engine_handle.now, client, first), Turn::Cut);
    assert_eq!(engine_handle.board.go_on(engine_handle.now, client), Turn::Cut);
    assert_eq!(engine_handle.board.take(engine_handle.now, client, second), Turn::Done);
    assert_eq!(engine_handle.board.go_on(engine_handle.now, client), Turn::Done, "nothing is left");
    let answers = engine_handle.take_all(client);
    assert_eq!(heads(&answers).collect::<Vec<u32>>(), [1, 2, 3, 4, 5, 6]);
}

/// An event for many is more work than one for few: a publisher has shorter turns.
#[test]
fn events_for_many_make_a_turn_shorter() {
    let mut engine_handle = EngineHandle::new(Limits::default());
    let filter: Filter = ">".parse().unwrap();
    let subscribers: Vec<ConnId> = (0..3 * limits::TURN_WORK_COPIES)
        .map(|_| {
            let conn = engine_handle.peer();
            engine_handle.say(conn, &[Frame::Subscribe { seq: 4, filter: filter.clone(), or_close: false }]);
            engine_handle.take_all(conn);
            conn
        })
        .collect();
    let publisher = engine_handle.peer();
    engine_handle.board.set_turn_work(8);
    let mut bytes = Vec::new();
    for seq in 1..=6 {
        let event = RawEvent { topic: b"t", payload: Raw { headers: false, bytes: b"x" } };
        encode(&Frame::Publish { seq, confirm: false, event }, &mut bytes);
    }
    let mut turn = engine_handle.board.take(engine_handle.now, publisher, &bytes);
    for _ in 0..2 {
        assert_eq!(turn, Turn::Cut, "two of weight 4 are a turn");
        turn = engine_handle.board.go_on(engine_handle.now, publisher);
    }
    assert_eq!(turn, Turn::Done);
    for conn in subscribers {
        let heard = engine_handle.take_all(conn);
        assert_eq!(frames(&heard).len(), 6);
    }
}

/// A connection that is given up in the middle of what it sent has no further turns.
#[test]
fn nothing_goes_on_after_a_fault() {
    let mut engine_handle = EngineHandle::new(Limits::default());
    let client = engine_handle.peer();
    engine_handle.board.set_turn_work(1);
    let mut bytes = Vec::new();
    encode(&Frame::Ping { seq: 1 }, &mut bytes);
    encode(&Frame::Pong { seq: 2 }, &mut bytes);
    encode(&Frame::Ping { seq: 3 }, &mut bytes);
    assert_eq!(engine_handle.board.take(engine_handle.now, client, &bytes), Turn::Cut);
    assert_eq!(engine_handle.board.go_on(engine_handle.now, client), Turn::Done);
    assert_eq!(engine_handle.board.go_on(engine_handle.now, client), Turn::Done);
    let said = engine_handle.take_all(client);
    let said = frames(&said);
    assert!(
        matches!(said[..], [Frame::Pong { seq: 1 }, Frame::Error { code: Code::WrongDirection, fatal: true, .. }]),
        "{said:?}"
    );
    engine_handle.board.hang_up(engine_handle.now, client);
    assert_eq!(engine_handle.board.go_on(engine_handle.now, client), Turn::Done);
}

/// A peer that lets too much pile up is not read from until it has taken some, and then it is.
#[test]
fn reading_stops_and_goes_on() {
    let mut engine_handle = EngineHandle::new(Limits { out_bytes_pause: 1_000, ..Limits::default() });
    let client = engine_handle.peer();
    assert!(engine_handle.board.wants_reading(client));
    let pings: Vec<Frame<'_>> = (0..100).map(|seq| Frame::Ping { seq }).collect();
    engine_handle.say(client, &pings);
    assert!(!engine_handle.board.wants_reading(client), "1,600 bytes wait");
    engine_handle.board.wrote(engine_handle.now, client, 1_099);
    assert!(!engine_handle.board.wants_reading(client), "501 bytes wait, more than half of the mark");
    engine_handle.board.wrote(engine_handle.now, client, 1);
    assert!(engine_handle.board.wants_reading(client), "500 bytes wait");
}

/// A peer that is not read from is not silent, however long that lasts, as long as it takes what waits for it.
#[test]
fn a_paused_peer_is_not_silent() {
    let mut engine_handle = EngineHandle::new(Limits { out_bytes_pause: 1_000, ..Limits::default() });
    let client = engine_handle.peer();
    let pings: Vec<Frame<'_>> = (0..100).map(|seq| Frame::Ping { seq }).collect();
    engine_handle.say(client, &pings);
    assert!(!engine_handle.board.wants_reading(client), "1,600 bytes wait");
    engine_handle.board.wrote(engine_handle.now, client, 800);
    for second in 1..=40 {
        engine_handle.now = Mono::from_millis(second * 1_000);
        engine_handle.board.wrote(engine_handle.now, client, 1);
        engine_handle.board.sweep(engine_handle.now);
        assert!(!engine_handle.board.said_all(client) && !engine_handle.board.wants_reading(client), "second {second}");
    }
    engine_handle.take_all(client);
    assert!(engine_handle.board.wants_reading(client), "it has taken everything and is read from again");
}

/// Proves S1.9: who is silent for three heartbeats is given up, hears why, and what it held moves on.
#[test]
fn a_silent_worker_is_swept() {
    let mut engine_handle = EngineHandle::new(Limits::default());
    let (silent, client) = (engine_handle.worker(1), engine_handle.peer());
    engine_handle.request(client, 7, b"x");
    assert!(!engine_handle.take_all(silent).is_empty());
    engine_handle.now = Mono::from_millis(14_999);
    engine_handle.say(client, &[Frame::Ping { seq: 8 }]);
    engine_handle.board.sweep(engine_handle.now);
    engine_handle.take_all(client);
    assert!(engine_handle.take_all(silent).is_empty(), "not yet");
    engine_handle.now = Mono::from_millis(15_000);
    engine_handle.board.sweep(engine_handle.now);
    let bytes = engine_handle.take_all(silent);
    let [Frame::Error { code: Code::PeerSilent, fatal: true, .. }] = frames(&bytes)[..] else { panic!("{bytes:?}") };
    assert!(engine_handle.board.said_all(silent));
    let bytes = engine_handle.take_all(client);
    let [Frame::Undelivered { seq: 7, code: Code::WorkerLost, .. }] = frames(&bytes)[..] else { panic!("{bytes:?}") };
    engine_handle.now = Mono::from_millis(16_000);
    engine_handle.board.sweep(engine_handle.now);
    assert_eq!(engine_handle.board.take_gone(), [silent], "its farewell is over");
}

/// Proves I21: a peer that lets too many replies pile up is given up. The reason comes behind what it can still read.
#[test]
fn a_pile_of_replies_ends_with_the_reason() {
    let mut engine_handle = EngineHandle::new(Limits::default());
    let (worker, slow) = (engine_handle.worker(100), engine_handle.peer());
    (10..110).for_each(|seq| engine_handle.request(slow, seq, b"x"));
    let bytes = engine_handle.take_all(worker);
    let body = vec![b'x'; 1024 * 1024];
    for frame in frames(&bytes) {
        let Frame::Deliver(Deliver { delivery, .. }) = frame else { panic!("{frame:?}") };
        let raw = Raw { headers: false, bytes: &body };
        engine_handle.say(worker, &[Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw }]);
    }
    let mut bytes = Vec::new();
    loop {
        match engine_handle.take_all(slow) {
            more if more.is_empty() => break,
            more => bytes.extend(more),
        }
    }
    let mut heard = frames(&bytes);
    let last = heard.pop();
    let reason = matches!(last, Some(Frame::Error { code: Code::SlowReader, fatal: true, .. }));
    assert!(reason, "{:?} came last", last.map(|frame| frame.kind()));
    assert!((1..100).contains(&heard.len()) && heard.iter().all(|frame| matches!(frame, Frame::Reply { .. })));
}
