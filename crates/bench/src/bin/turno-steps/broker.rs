//! Steps of the broker without its sockets: a request of 256 bytes and its reply, from bytes read to bytes to write, five
//! with each read and write. The same over the native protocol and over ZeroMQ's.

use std::hint::black_box;

use turno_broker::connections::{Connections, ListenerKind, Nonces, Turn};
use turno_broker::{ZmqEndpoint, ZmqEndpoints, ZmqRole};
use turno_engine::{Input, Settings};
use turno_proto::model::{ConnId, Mono, QueueName, Slots};
use turno_proto::native::{Config, Connect, Frame, Raw, RawOutgoing, Register, VERSION, decode, encode, split};
use turno_proto::zmtp;

use crate::Run;

/// Requests of one read.
const TOGETHER: u32 = 5;
const BODY: [u8; 256] = [7; 256];
const FRAME_BYTES_MAX: usize = 1 << 20;
/// Between the ticks of a busy broker.
const TICK_MICROS: u64 = 50;

pub(crate) const STEPS: &[(&str, Run)] =
    &[("broker-request", |count| run(Native, count)), ("broker-zeromq-request", |count| run(Dealers, count))];

/// The protocol of both peers.
trait Peers {
    /// Where clients, or workers, connect.
    fn listener(&self, works: bool) -> ListenerKind;
    /// Everything up to the first message.
    fn open(&self, works: bool, out: &mut Vec<u8>);
    fn request(&self, seq: u32, out: &mut Vec<u8>);
    /// Answers deliveries.
    fn reply(&self, deliveries: &[u8], out: &mut Vec<u8>);
    /// The bytes of one reply as it comes to the client.
    fn reply_len(&self) -> usize;
}

struct Native;

impl Peers for Native {
    fn listener(&self, _works: bool) -> ListenerKind {
        ListenerKind::Native
    }

    fn open(&self, works: bool, out: &mut Vec<u8>) {
        let connect = Connect { version: VERSION, name: String::new(), program: "steps".into(), heartbeat_ms: 60_000 };
        encode(&Frame::Connect { seq: 1, connect }, out);
        encode(&Frame::Ping { seq: 5 }, out);
        encode(&Frame::Open { seq: 2, handle: 0, name: b"steps" }, out);
        if works {
            encode(&Frame::Register { seq: 3, register: Register::new(Slots::Limited(10), "steps") }, out);
            encode(&Frame::Consume { seq: 4, handle: 0, exclusive: false }, out);
        }
    }

    fn request(&self, seq: u32, out: &mut Vec<u8>) {
        encode(&Frame::Request(RawOutgoing::new(seq, 0, Raw { headers: false, bytes: &BODY })), out);
    }

    fn reply(&self, deliveries: &[u8], out: &mut Vec<u8>) {
        let mut rest = deliveries;
        while let Ok(Some(piece)) = split(rest, FRAME_BYTES_MAX) {
            if let Ok(Frame::Deliver(deliver)) = decode(&piece.header, piece.rest) {
                let (seq, word) = (deliver.delivery.stamp, deliver.delivery.index);
                encode(&Frame::Reply { seq, word, more: false, raw: deliver.raw }, out);
            }
            rest = &rest[piece.used..];
        }
    }

    fn reply_len(&self) -> usize {
        let mut out = Vec::new();
        encode(&Frame::Reply { seq: 7, word: 0, more: false, raw: Raw { headers: false, bytes: &BODY } }, &mut out);
        out.len()
    }
}

/// A DEALER client and a DEALER worker, each at an endpoint of its own.
struct Dealers;

impl Peers for Dealers {
    fn listener(&self, works: bool) -> ListenerKind {
        ListenerKind::Zmq(u16::from(works))
    }

    fn open(&self, _works: bool, out: &mut Vec<u8>) {
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xFF, 0x7F, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        out.extend_from_slice(&greeting);
        out.extend_from_slice(b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06DEALER");
    }

    fn request(&self, _seq: u32, out: &mut Vec<u8>) {
        zmtp::encode([&b""[..], &BODY], out);
    }

    /// The envelope is given back with the same body.
    fn reply(&self, deliveries: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(deliveries);
    }

    fn reply_len(&self) -> usize {
        let mut out = Vec::new();
        self.request(0, &mut out);
        out.len()
    }
}

struct Stage<P> {
    peers: P,
    board: Connections,
    now: Mono,
    client: ConnId,
    worker: ConnId,
}

impl<P: Peers> Stage<P> {
    fn new(peers: P) -> Self {
        let settings = Settings::default();
        let (limits, config) = (settings.limits.clone(), Config::of(&settings.limits));
        let mut board = Connections::new(Mono::ZERO, settings, config);
        let queue: QueueName = "steps".parse().expect("a name");
        let client = ZmqEndpoint::new("127.0.0.1:1".parse().expect("an address"), queue);
        let mut worker = client.clone();
        worker.role = ZmqRole::Worker;
        board.set_zmq(ZmqEndpoints::new(&[client, worker], limits.frame_bytes_max, 60_000), Nonces::Seeded(1));
        let none = ConnId { index: 0, generation: 0 };
        let mut stage = Self { peers, board, now: Mono::ZERO, client: none, worker: none };
        stage.worker = stage.connect(true);
        stage.client = stage.connect(false);
        stage
    }

    fn connect(&mut self, works: bool) -> ConnId {
        let id = self.board.accept(self.now, "here".to_owned(), self.peers.listener(works)).expect("there is room");
        let mut out = Vec::new();
        self.peers.open(works, &mut out);
        self.read(id, &out);
        assert!(self.board.serves(id), "the handshake is done");
        self.written(id, &mut Vec::new());
        id
    }

    /// A turn of a reader.
    fn read(&mut self, id: ConnId, bytes: &[u8]) {
        assert!(self.board.wants_reading(id) && bytes.len() <= self.board.read_bytes(), "it may be read from");
        let mut turn = self.board.take(self.now, id, bytes);
        while turn == Turn::Cut {
            turn = self.board.go_on(self.now, id);
        }
    }

    /// The flush of a tick, with only that connection to write to.
    fn written(&mut self, id: ConnId, bytes: &mut Vec<u8>) {
        for dirty in self.board.take_dirty() {
            assert_eq!(dirty, id, "nobody else is told something");
        }
        bytes.clear();
        bytes.extend_from_slice(self.board.unwritten(id));
        self.board.wrote(self.now, id, bytes.len());
    }
}

#[inline(never)]
fn run(peers: impl Peers, count: u32) {
    let mut stage = Stage::new(peers);
    let reply_len = stage.peers.reply_len();
    let (mut asked, mut given) = (Vec::new(), Vec::new());
    for turn in 0..count.div_ceil(TOGETHER) {
        stage.now = Mono::from_micros(u64::from(turn) * TICK_MICROS);
        asked.clear();
        (0..TOGETHER).for_each(|number| stage.peers.request(turn * TOGETHER + number + 10, &mut asked));
        stage.read(stage.client, black_box(&asked));
        stage.written(stage.worker, &mut given);
        asked.clear();
        stage.peers.reply(&given, &mut asked);
        stage.read(stage.worker, black_box(&asked));
        stage.written(stage.client, &mut given);
        assert_eq!(given.len(), reply_len * TOGETHER as usize, "every request is answered");
        if stage.board.next_deadline().is_some_and(|deadline| deadline <= stage.now) {
            stage.board.handle(stage.now, Input::Tick);
        }
    }
}
