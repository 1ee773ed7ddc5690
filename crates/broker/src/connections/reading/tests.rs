//! However much peers send, claim and leave unread, what is counted stays within the limit, and honest peers go on.

use std::collections::BTreeSet;

use turno_engine::Settings;
use turno_proto::foreman;
use turno_proto::model::{Filter, Limits, Slots};
use turno_proto::native::{Config, Connect, RawEvent, RawOutgoing, Register, VERSION, decode, split};

use super::super::ListenerKind;
use super::*;

const MIB: usize = 1024 * 1024;
const LIMIT: u64 = 64 * MIB as u64;

struct EngineHandle {
    connections: Connections,
    now: Mono,
    /// Connections that wait for memory, as readers know it, and those of them that may be read from again.
    waits: BTreeSet<ConnId>,
    granted: BTreeSet<ConnId>,
}

impl EngineHandle {
    fn new() -> Self {
        let limits = Limits { memory_bytes_max: LIMIT, ..Limits::default() };
        let config = Config { broker: "b".into(), ..Config::of(&limits) };
        let settings = Settings { limits, ..Settings::default() };
        let connections = Connections::new(Mono::ZERO, settings, config);
        Self { connections, now: Mono::ZERO, waits: BTreeSet::new(), granted: BTreeSet::new() }
    }

    /// Gives bytes as a reader does: pieces, for as long as they are wanted. One that had to wait for memory is not looked at
    /// again before it is granted. How many were taken.
    fn feed(&mut self, conn: ConnId, bytes: &[u8]) -> usize {
        let mut taken = 0;
        self.granted.extend(self.connections.take_granted());
        if self.waits.contains(&conn) && !self.granted.remove(&conn) {
            return taken;
        }
        self.waits.remove(&conn);
        while taken < bytes.len() && self.connections.wants_reading(conn) && self.connections.is_heard(conn) {
            let piece = &bytes[taken..bytes.len().min(taken + self.connections.read_bytes())];
            let mut turn = self.connections.take(self.now, conn, piece);
            while turn == Turn::Cut {
                turn = self.connections.go_on(self.now, conn);
            }
            taken += piece.len();
            self.check();
        }
        let reading = self.connections.table.get(conn).and_then(|connection| connection.reading.as_deref());
        if matches!(reading, Some(FrameProgress::Waits { .. })) {
            self.waits.insert(conn);
        }
        taken
    }

    /// Asserts that the counted bytes are right and within the limit.
    fn check(&self) {
        let meter = self.connections.meter();
        assert!(meter.total() <= LIMIT, "{} bytes", meter.total());
        let held: usize = self.connections.table.iter().map(|connection| connection.counted_in).sum();
        assert_eq!(meter.incoming(), held as u64);
        let capacity: usize = self.connections.table.iter().map(|connection| connection.leftover.capacity()).sum();
        assert!(capacity <= held, "{capacity} bytes of in-buffers, {held} counted");
    }

    fn say(&mut self, conn: ConnId, frames: &[Frame<'_>]) {
        let bytes = bytes_of(frames);
        assert_eq!(self.feed(conn, &bytes), bytes.len());
    }

    fn peer(&mut self) -> ConnId {
        let conn = self.connections.accept(self.now, "here".into(), ListenerKind::Native).expect("room for one more");
        let connect = Connect { version: VERSION, name: "p".into(), program: String::new(), heartbeat_ms: 60_000 };
        let open = Frame::Open { seq: 3, handle: 0, name: b"q" };
        self.say(conn, &[Frame::Connect { seq: 1, connect }, Frame::Ping { seq: 2 }, open]);
        self.read(conn);
        conn
    }

    fn worker(&mut self, slots: u32) -> ConnId {
        let conn = self.peer();
        let register = Register::new(Slots::Limited(slots), "w");
        self.say(conn, &[Frame::Register { seq: 4, register }, Frame::Consume { seq: 5, handle: 0, exclusive: false }]);
        self.read(conn);
        conn
    }

    /// Reads everything that waits for a connection: kinds and numbers of the frames.
    fn read(&mut self, conn: ConnId) -> Vec<(Kind, u32, u32)> {
        let mut heard = Vec::new();
        loop {
            let bytes = self.connections.unwritten(conn).to_vec();
            self.connections.wrote(self.now, conn, bytes.len());
            if bytes.is_empty() {
                return heard;
            }
            let mut rest = &bytes[..];
            while let Some(piece) = split(rest, usize::MAX).expect("frames of ours") {
                heard.push((decode(&piece.header, piece.rest).unwrap().kind(), piece.header.seq, piece.header.word));
                rest = &rest[piece.used..];
            }
        }
    }

    fn pass(&mut self, millis: u64) {
        for _ in 0..millis / 100 {
            self.now = self.now.plus_millis(100);
            self.connections.sweep(self.now);
        }
    }

    fn pings(&mut self, conn: ConnId) {
        self.say(conn, &[Frame::Ping { seq: 77 }]);
        assert_eq!(self.read(conn), [(Kind::Pong, 77, 0)]);
    }
}

fn bytes_of(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| encode(frame, &mut bytes));
    bytes
}

fn send(seq: u32, body: usize) -> Vec<u8> {
    let body = vec![7; body];
    bytes_of(&[Frame::Send(RawOutgoing::new(seq, 0, Raw { headers: false, bytes: &body }))])
}

const OVER: u32 = Code::OverMemory.number();

/// A hundred senders whose frames of 16 MiB are begun and not ended hold no more than the limit; others go on meanwhile. When
/// they do go on, each frame ends: stored or refused, with no connection closed.
#[test]
fn a_hundred_unfinished_frames_stay_within_the_limit() {
    let mut engine_handle = EngineHandle::new();
    let other = engine_handle.peer();
    let frame = send(9, 16 * MIB - 1_024);
    let mut senders: Vec<(ConnId, usize)> = (0..100).map(|_| (engine_handle.peer(), 0)).collect();
    for (conn, sent) in &mut senders {
        *sent = engine_handle.feed(*conn, &frame[..frame.len() - 1]);
    }
    engine_handle.pings(other);
    let begun = senders.iter().filter(|(_, sent)| *sent == frame.len() - 1).count();
    assert!((1..=4).contains(&begun), "{begun} frames are nearly complete");
    assert_eq!(engine_handle.connections.meter().buffers().waiting, 100 - begun as u64);
    let mut ends = Vec::new();
    while !senders.is_empty() {
        let before = (senders.len(), senders.iter().map(|(_, sent)| sent).sum::<usize>());
        senders.retain_mut(|(conn, sent)| {
            *sent += engine_handle.feed(*conn, &frame[*sent..]);
            let heard = engine_handle.read(*conn);
            ends.extend(heard.iter().map(|(kind, seq, _)| (*kind, *seq)));
            heard.is_empty()
        });
        engine_handle.pass(100);
        let after = (senders.len(), senders.iter().map(|(_, sent)| sent).sum::<usize>());
        assert_ne!(before, after, "somebody goes on");
    }
    let stored = ends.iter().filter(|end| **end == (Kind::Stored, 9)).count();
    let refused = ends.iter().filter(|end| **end == (Kind::Undelivered, 9)).count();
    assert_eq!((stored, stored + refused), (2, 100), "48 MiB would not leave room for a frame");
    let memory = engine_handle.connections.meter().buffers();
    assert_eq!((memory.waiting, memory.closed), (0, 0));
    assert!(memory.refused > 90, "{} of them before they were read", memory.refused);
    assert_eq!(memory.incoming, 0);
}

/// A frame that its peer never completes is counted for as long as the peer is there, however that ends.
#[test]
fn an_unfinished_frame_is_counted_no_longer_than_its_peer_is_there() {
    for is_reset in [false, true] {
        let mut engine_handle = EngineHandle::new();
        let conn = engine_handle.peer();
        let frame = send(6, 2 * MIB);
        assert_eq!(engine_handle.feed(conn, &frame[..MIB]), MIB);
        assert!(engine_handle.connections.meter().incoming() >= MIB as u64);
        if is_reset {
            engine_handle.connections.reset(engine_handle.now, conn);
        } else {
            engine_handle.connections.hang_up(engine_handle.now, conn);
        }
        engine_handle.pass(1_000);
        assert_eq!(engine_handle.connections.meter().incoming(), 0);
    }
}

/// A peer that has memory for a frame and sends nothing more of it makes room for waiting ones, and is told so; those that wait too
/// long are refused and keep their connection.
#[test]
fn a_frame_that_does_not_go_on_ends() {
    let mut engine_handle = EngineHandle::new();
    let frame = send(9, 14 * MIB);
    let senders: Vec<ConnId> = (0..6).map(|_| engine_handle.peer()).collect();
    for conn in &senders {
        engine_handle.feed(*conn, &frame[..MIB]);
    }
    engine_handle.pass(FRAME_STALL_MS - 100);
    assert_eq!(engine_handle.connections.meter().buffers().closed, 0);
    engine_handle.pass(200);
    assert_eq!(engine_handle.connections.meter().buffers().closed, 4, "four of 14 MiB were set aside");
    let last = engine_handle.read(senders[0]);
    assert_eq!(last, [(Kind::Error, 0, OVER)]);
    // The other two have memory now, and nobody waits: they may take their time.
    engine_handle.pass(FRAME_WAIT_MS);
    assert!(!engine_handle.connections.is_heard(senders[3]) && engine_handle.connections.is_heard(senders[4]));
    let sent = engine_handle.feed(senders[4], &frame[READ_BYTES..]);
    assert_eq!(sent, frame.len() - READ_BYTES);
    assert_eq!(engine_handle.read(senders[4]), [(Kind::Stored, 9, 0)]);
    // Slowly is not enough either, while others wait.
    let more: Vec<ConnId> = (0..12).map(|_| engine_handle.peer()).collect();
    for conn in &more {
        engine_handle.feed(*conn, &frame[..READ_BYTES]);
    }
    let slow = more[0];
    let mut at = READ_BYTES;
    while engine_handle.connections.is_heard(slow) {
        at += engine_handle.feed(slow, &frame[at..at + 100]);
        engine_handle.pass(1_000);
        assert!(at < MIB, "it ends");
    }
}

/// Messages that fill the memory leave room for a worker's reply, which makes room for others.
#[test]
fn a_long_reply_comes_in_though_messages_fill_the_memory() {
    let mut engine_handle = EngineHandle::new();
    let (worker, client) = (engine_handle.worker(1), engine_handle.peer());
    let asked = Frame::Request(RawOutgoing::new(5, 0, Raw { headers: false, bytes: b"?" }));
    engine_handle.say(client, &[asked]);
    let [(Kind::Deliver, stamp, index)] = engine_handle.read(worker)[..] else { panic!("a delivery") };
    let full = engine_handle.peer();
    let (mut stored, piece) = (0, send(6, MIB));
    let refused = loop {
        assert_eq!(engine_handle.feed(full, &piece), piece.len());
        match engine_handle.read(full)[..] {
            [(Kind::Stored, ..)] => stored += 1,
            [(Kind::Undelivered, 6, code)] => break code,
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!((refused, stored), (OVER, 43), "a quarter is left to frames, a sixteenth to all else");
    let body = vec![1; 15 * MIB];
    let raw = Raw { headers: false, bytes: &body };
    engine_handle.say(worker, &[Frame::Reply { seq: stamp, word: index, more: false, raw }]);
    assert_eq!(engine_handle.read(client), [(Kind::Reply, 5, 0)]);
    // A refused frame is thrown away as it comes; what follows is heard.
    let mut bytes = send(7, 10 * MIB);
    encode(&Frame::Ping { seq: 8 }, &mut bytes);
    assert_eq!(engine_handle.feed(full, &bytes), bytes.len());
    assert_eq!(engine_handle.read(full), [(Kind::Undelivered, 7, OVER), (Kind::Pong, 8, 0)]);
    assert_eq!(engine_handle.connections.meter().buffers().refused, 2, "this one and that of 1 MiB");
}

/// Replies that nobody reads keep the next from being read; then those who do not read are closed, and it goes on.
#[test]
fn unread_replies_stay_within_the_limit() {
    let mut engine_handle = EngineHandle::new();
    let worker = engine_handle.worker(20);
    let clients: Vec<ConnId> = (0..20).map(|_| engine_handle.peer()).collect();
    for conn in &clients {
        engine_handle.say(*conn, &[Frame::Request(RawOutgoing::new(5, 0, Raw { headers: false, bytes: b"?" }))]);
    }
    let deliveries = engine_handle.read(worker);
    let body = vec![1; 12 * MIB];
    let raw = Raw { headers: false, bytes: &body };
    let replies: Vec<Frame<'_>> = deliveries
        .iter()
        .map(|(_, stamp, index)| Frame::Reply { seq: *stamp, word: *index, more: false, raw })
        .collect();
    let bytes = bytes_of(&replies);
    let mut sent = 0;
    // As a flush does that writes nothing.
    let stall = |engine_handle: &mut EngineHandle| {
        clients.iter().for_each(|conn| engine_handle.connections.wrote(engine_handle.now, *conn, 0))
    };
    while sent < bytes.len() {
        let more = engine_handle.feed(worker, &bytes[sent..]);
        sent += more;
        stall(&mut engine_handle);
        if more == 0 {
            engine_handle.pass(100);
        }
        assert!(engine_handle.now.as_millis() < 60_000, "it goes on");
        assert!(engine_handle.connections.is_heard(worker), "the worker did nothing wrong");
    }
    assert!(engine_handle.connections.meter().buffers().closed >= 15);
}

/// Events that nobody reads are what goes first.
#[test]
fn unread_events_stay_within_the_limit() {
    let mut engine_handle = EngineHandle::new();
    let publisher = engine_handle.peer();
    let filter: Filter = ">".parse().unwrap();
    let listeners: Vec<ConnId> = (0..40).map(|_| engine_handle.peer()).collect();
    for conn in &listeners {
        engine_handle.say(*conn, &[Frame::Subscribe { seq: 4, filter: filter.clone(), or_close: false }]);
        engine_handle.read(*conn);
    }
    let body = vec![1; 4 * MIB];
    for seq in 0..30 {
        let event = RawEvent { topic: b"t", payload: Raw { headers: false, bytes: &body } };
        engine_handle.say(publisher, &[Frame::Publish { seq, confirm: true, event }]);
        assert_eq!(engine_handle.read(publisher), [(Kind::Ok, seq, 0)]);
        engine_handle.check();
    }
    for conn in &listeners {
        engine_handle.read(*conn);
    }
    let event = RawEvent { topic: b"t", payload: Raw { headers: false, bytes: b"last" } };
    engine_handle.say(publisher, &[Frame::Publish { seq: 99, confirm: false, event }]);
    let last = engine_handle.read(listeners[39]);
    assert_eq!(last.iter().map(|(kind, ..)| *kind).collect::<Vec<_>>(), [Kind::EventsDropped, Kind::Event]);
}

/// Before their greeting connections hold few bytes; long HELLOs of job workers are few at a time, and the oldest go.
#[test]
fn unfinished_greetings_hold_little() {
    let mut engine_handle = EngineHandle::new();
    let hello = |bytes: usize| {
        let hello = foreman::Hello { num_procs: 1, name: "x".repeat(bytes), ..foreman::Hello::default() };
        let mut out = Vec::new();
        foreman::encode(&foreman::ForemanFrame::Hello { seq: 0, hello: Some(hello) }, &mut out);
        out
    };
    let long = hello(3 * MIB);
    let conns: Vec<ConnId> = (0..100)
        .map(|_| {
            engine_handle.connections.accept(engine_handle.now, "here".into(), ListenerKind::Foreman).expect("room")
        })
        .collect();
    for conn in &conns {
        engine_handle.feed(*conn, &long[..long.len() - 1]);
        assert!(engine_handle.connections.meter().incoming() <= GREETINGS_BYTES_MAX as u64);
    }
    assert!(!engine_handle.connections.is_heard(conns[0]) && engine_handle.connections.is_heard(conns[99]));
    engine_handle.feed(conns[99], &long[long.len() - 1..]);
    assert!(engine_handle.connections.is_heard(conns[99]), "a worker with very much to tell is let in");
    let longer = hello(5 * MIB);
    let conn = engine_handle.connections.accept(engine_handle.now, "here".into(), ListenerKind::Foreman).expect("room");
    engine_handle.feed(conn, &longer);
    assert!(!engine_handle.connections.is_heard(conn));
    let claims =
        engine_handle.connections.accept(engine_handle.now, "here".into(), ListenerKind::Native).expect("room");
    engine_handle.feed(claims, &send(1, 8 * 1024));
    assert!(!engine_handle.connections.is_heard(claims), "no frame is that long before the greeting");
}

/// Workers with very many slots that do not read, and messages that fill the memory: what is counted stays within the limit,
/// one that reads gets everything, and so do the others once they read.
#[test]
fn unread_deliveries_stay_within_the_limit() {
    let mut engine_handle = EngineHandle::new();
    let client = engine_handle.peer();
    let mut stored = 0;
    loop {
        engine_handle.feed(client, &send(stored + 1, 32 * 1024));
        match engine_handle.read(client)[..] {
            [(Kind::Stored, ..)] => stored += 1,
            [(Kind::Undelivered, _, OVER)] => break,
            ref other => panic!("{other:?}"),
        }
    }
    let in_memory = engine_handle.connections.meter().total();
    assert!(stored > 1_000 && in_memory > LIMIT / 2, "{stored} messages, {in_memory} bytes");
    let mut workers: Vec<ConnId> = (0..51)
        .map(|_| {
            let conn = engine_handle.peer();
            let register = Register::new(Slots::Limited(100_000), "w");
            let consume = Frame::Consume { seq: 5, handle: 0, exclusive: false };
            engine_handle.say(conn, &[Frame::Register { seq: 4, register }, consume]);
            assert!(
                engine_handle.connections.meter().outgoing() < 16 * MIB as u64,
                "{}",
                engine_handle.connections.meter().outgoing()
            );
            conn
        })
        .collect();
    let quick = workers.swap_remove(20);
    let is_delivery = |frame: &&(Kind, u32, u32)| frame.0 == Kind::Deliver;
    let mut deliveries = engine_handle.read(quick).iter().filter(is_delivery).count();
    assert!(deliveries > 100, "{deliveries} for one that reads, beside 50 that do not");
    for conn in &workers {
        let count = engine_handle.read(*conn).iter().filter(is_delivery).count();
        assert!((1..=40).contains(&count), "{count} deliveries for one that does not read");
        deliveries += count;
        engine_handle.check();
    }
    assert_eq!(deliveries, stored as usize, "each is somewhere");
    assert_eq!(engine_handle.connections.engine().status().in_flight, u64::from(stored));
}
