//! Any bytes from one peer, before and after the greeting, into a whole connections.
//!
//! Layout: how to go about it (1), bytes of the reads, taken in turn (3), milliseconds between them (1), the stream.

use turno_broker::connections::{Connections, LinkSettings, ListenerKind, Nonces, RingWireSettings, Turn};
use turno_engine::ring::RingSettings;
use turno_engine::{Input, Settings};
use turno_proto::model::link::BrokerId;
use turno_proto::model::ring::{Member, Origin, Sid};
use turno_proto::model::{Code, ConnId, Limits, Mono, limits};
use turno_proto::native::{
    Config, Connect, Direction, Frame, GreetingCredentials, Identity, Kind, LinkSession, LinkStep, NONCE_BYTES,
    RingIdentity, RingSession, RingStep, VERSION, decode, encode, split,
};

use turno_oracle::Bytes;

/// The greeting is done before the stream begins.
const GREETED: u8 = 0x01;
/// The peer reads nothing of what it is told.
const DEAF: u8 = 0x02;
/// The broker drains after the stream.
const DRAINS: u8 = 0x04;
/// The peer is another broker: the link is up before the stream begins.
const LINKED: u8 = 0x08;
/// The peer is a member of the broker's ring, at the listener for members: it has greeted before the stream begins.
const RINGED: u8 = 0x40;
/// Frames in a turn, less one: as many as these bits say.
const TURN: u8 = 0x30;
/// Longer than any silence a peer may ask for.
const SILENCE_MS: u64 = 200_000;
const FAREWELL_MS: u64 = 1_000;

/// Feeds the stream in pieces, and has them dealt with in short turns. All invariants hold after each; all that the broker
/// says are whole frames of its own; how the stream was cut, by turns too, makes no difference; and when the peer is gone,
/// nothing is held for it.
pub fn session(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let (manner, sizes, pause_ms) = (bytes.byte(), bytes.array::<3>(), bytes.byte());
    let stream = bytes.rest();
    let turn_work = u32::from((manner & TURN) >> TURN.trailing_zeros()) + 1;
    let said = Line::new(manner, turn_work).run(stream, &sizes, pause_ms);
    if pause_ms == 0 && manner & DEAF == 0 {
        let whole = Line::new(manner, u32::MAX).run(stream, &[0], 0);
        assert_eq!(without_pings(&said), without_pings(&whole), "how a stream is cut makes no difference");
    }
}

/// The output, without a broker's PINGs over a link, which come when they are due, and without the view of
/// its memory, which depends on how much it had written by then.
fn without_pings(mut said: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    while let Ok(Some(piece)) = split(said, usize::MAX) {
        let (frame, rest) = said.split_at(piece.used);
        let tells_memory =
            piece.header.kind == Kind::AdminAnswer.number() && frame.windows(6).any(|part| part == b"memory");
        if piece.header.kind != Kind::Ping.number() && !tells_memory {
            kept.extend_from_slice(frame);
        }
        said = rest;
    }
    kept
}

struct Line {
    board: Connections,
    now: Mono,
    conn: ConnId,
    manner: u8,
    /// The broker takes the peer for a broker.
    broker: bool,
    said: Vec<u8>,
}

impl Line {
    fn new(manner: u8, turn_work: u32) -> Self {
        let ring = (manner & RINGED != 0).then(|| RingSettings::new(member(1), None));
        let settings = Settings { limits: tight(), lease_ms: Some(2_000), ring, ..Settings::default() };
        let config = Config { broker: "b1".to_owned(), program: "turno".to_owned(), ..Config::of(&settings.limits) };
        let mut board = Connections::new(Mono::ZERO, settings, config);
        board.set_turn_work(turn_work);
        board.set_links(LinkSettings { credentials: credentials(1), nonces: Nonces::Seeded(1) });
        // An address on the same machine: a link needs no secret.
        let (me, nonces) = (member(1), Nonces::Seeded(2));
        board.set_ring(RingWireSettings { me, secret: None, nonces, beat_ms: limits::RING_BEAT_MS, dial_ms: 1_500 });
        let door = if manner & RINGED == 0 { ListenerKind::Native } else { ListenerKind::Ring };
        let conn = board.accept(Mono::ZERO, "unix:1".to_owned(), door).expect("the first connection is let in");
        let mut line = Self { board, now: Mono::ZERO, conn, manner, broker: false, said: Vec::new() };
        if manner & RINGED != 0 {
            line.join();
        } else if manner & LINKED != 0 {
            line.link();
        } else if manner & GREETED != 0 {
            let connect = Connect { version: VERSION, name: "w".into(), program: String::new(), heartbeat_ms: 0 };
            let mut greeting = Vec::new();
            encode(&Frame::Connect { seq: 1, connect }, &mut greeting);
            encode(&Frame::Ping { seq: 2 }, &mut greeting);
            line.take(&greeting);
        }
        line
    }

    /// Greets as a broker does that dials.
    fn link(&mut self) {
        let mut said = Vec::new();
        let mut end = LinkSession::dial(self.now, credentials(2), [7; NONCE_BYTES], true, &mut said);
        self.manner &= !DEAF;
        self.take(&said);
        let challenge = std::mem::take(&mut self.said);
        let (step, _) = end.step(self.now, &challenge, &mut said).expect("the broker shows who it is");
        assert!(matches!(step, LinkStep::Greeted(_)), "{step:?}");
        said.clear();
        assert!(end.prove(self.now, &mut said));
        self.take(&said);
    }

    /// Greets as a member does that dials.
    fn join(&mut self) {
        let (mut said, nonce) = (Vec::new(), [7; NONCE_BYTES]);
        let identity = RingIdentity { member: Some(member(2)), program: String::new() };
        let me = GreetingCredentials { identity, secret: None };
        let (until, beat_ms) = (self.now.plus_millis(1_500), limits::RING_BEAT_MS);
        let mut end = RingSession::dial(self.now, until, me, nonce, true, beat_ms, &mut said);
        self.manner &= !DEAF;
        self.take(&said);
        let challenge = std::mem::take(&mut self.said);
        said.clear();
        let (step, _) = end.step(self.now, &challenge, &mut said).expect("the broker shows who it is");
        assert!(matches!(step, RingStep::Reached(_)), "{step:?}");
        self.take(&said);
    }

    /// Lives through the stream and to the end; gives back all that the broker said.
    fn run(mut self, mut stream: &[u8], sizes: &[u8], pause_ms: u8) -> Vec<u8> {
        for size in sizes.iter().cycle() {
            if stream.is_empty() {
                break;
            }
            let size = if *size == 0 { stream.len() } else { usize::from(*size).min(stream.len()) };
            let (piece, rest) = stream.split_at(size);
            self.take(piece);
            self.pass(u64::from(pause_ms) * 4);
            stream = rest;
        }
        if self.manner & DRAINS != 0 {
            self.handle(Input::Drain { within_ms: 3_000 });
        }
        self.pass(4_000);
        // One look after a long time instead of many, for speed: the broker gives up a silent peer.
        self.now = self.now.plus_millis(SILENCE_MS);
        self.handle(Input::Tick);
        self.pass(0);
        self.pass(FAREWELL_MS);
        assert_eq!(self.board.take_gone(), [self.conn], "a silent peer is given up");
        assert_eq!(self.board.engine().in_flight(), 0, "nothing is held by a peer that is gone");
        self.said
    }

    fn take(&mut self, piece: &[u8]) {
        if self.board.wants_reading(self.conn) {
            let mut turn = self.board.take(self.now, self.conn, piece);
            while turn == Turn::Cut {
                self.read();
                turn = self.board.go_on(self.now, self.conn);
            }
        }
        self.read();
    }

    fn pass(&mut self, millis: u64) {
        let until = self.now.plus_millis(millis);
        while let Some(next) = self.board.next_deadline().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.handle(Input::Tick);
            assert!(self.board.next_deadline().is_none_or(|next| next > self.now), "a tick does all that is due");
        }
        self.now = until;
        self.board.sweep(self.now);
        self.read();
    }

    fn handle(&mut self, input: Input) {
        self.board.handle(self.now, input);
        self.read();
    }

    /// The peer's side of the socket.
    fn read(&mut self) {
        self.board.engine().sanity_check();
        let mut whole = self.board.unwritten(self.conn);
        if self.manner & DEAF != 0 {
            return self.board.wrote(self.now, self.conn, 0);
        }
        let count = whole.len();
        self.said.extend_from_slice(whole);
        while !whole.is_empty() {
            let piece = split(whole, usize::MAX).expect("a broker writes frames").expect("and whole ones");
            let frame = decode(&piece.header, piece.rest).expect("that can be read");
            self.broker |= matches!(frame.kind(), Kind::LinkChallenge | Kind::RingChallenge);
            assert!(self.broker || frame.kind().direction() != Direction::ToBroker, "and are a broker's to send");
            whole = &whole[piece.used..];
        }
        self.board.wrote(self.now, self.conn, count);
        for dial in self.board.take_ring_dials() {
            self.board.ring_dial_failed(self.now, dial.target, Code::RingDown);
        }
    }
}

fn member(sid: u16) -> Member {
    let origin = Origin { sid: Sid::new(sid), incarnation: u64::from(sid) };
    Member { origin, address: format!("h{sid}:8000"), native: String::new() }
}

fn credentials(id: u64) -> GreetingCredentials {
    let (broker, name) = (BrokerId::new(id), format!("b{id}"));
    GreetingCredentials::new(Identity { broker, name, program: String::new(), frame_bytes_max: 8 * 1024 }, None)
}

/// Limits that a short stream can reach.
fn tight() -> Limits {
    Limits {
        frame_bytes_max: 8 * 1024,
        connections_max: 1,
        queues_max: 4,
        in_flight_max: 8,
        memory_bytes_max: 4 * 1024,
        dead_max: 2,
        out_bytes_max: 4 * 1024,
        out_bytes_pause: 1024,
        ..Limits::default()
    }
}
