//! A peer that speaks raw frames, rightly or wrongly.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use turno_proto::model::{Code, Delivery, Slots, limits};
use turno_proto::native::{Connect, Deliver, Frame, Raw, RawOutgoing, Register, VERSION, decode, encode, split};

use crate::socket::Socket;
use crate::wait;

/// The heartbeat of a peer that names none. The broker's own would close a peer that says nothing for 15 s, and tests
/// may need longer between two words.
const HEARTBEAT_MS: u32 = limits::HEARTBEAT_MS_MAX;

/// A raw connection. Reads fail the test after [`wait::PATIENCE`] of silence.
#[derive(Debug)]
pub struct Peer {
    pub(crate) stream: Socket,
    pub(crate) buffer: Vec<u8>,
    pub(crate) seq: u32,
}

impl Peer {
    /// Connected, and not a word said.
    pub fn silent(address: SocketAddr) -> Self {
        Self::over(Socket::tcp(address))
    }

    /// The same over a Unix socket.
    pub fn silent_unix(path: &Path) -> Self {
        Self::over(Socket::unix(path))
    }

    /// The broker connects, to a listener of the test.
    #[track_caller]
    pub fn dialled(listener: &TcpListener) -> Self {
        listener.set_nonblocking(true).expect("our own socket");
        let stream = wait::find(wait::PATIENCE, || listener.accept().ok()).expect("the broker dials").0;
        stream.set_nonblocking(false).expect("our own socket");
        Self::over(Socket::from(stream))
    }

    fn over(stream: Socket) -> Self {
        stream.patience(wait::PATIENCE);
        Self { stream, buffer: Vec::new(), seq: 100 }
    }

    /// Greeted and ready, with a heartbeat of its choice (0: the longest).
    pub fn greeted(address: SocketAddr, heartbeat_ms: u32) -> Self {
        let mut peer = Self::silent(address);
        peer.greet(heartbeat_ms);
        peer
    }

    /// Goes through the greeting.
    #[track_caller]
    pub fn greet(&mut self, heartbeat_ms: u32) {
        let heartbeat_ms = if heartbeat_ms == 0 { HEARTBEAT_MS } else { heartbeat_ms };
        let connect = Connect { version: VERSION, name: "peer".into(), program: "e2e".into(), heartbeat_ms };
        self.say(&Frame::Connect { seq: 1, connect });
        self.hear(|frame| assert!(matches!(frame, Frame::Config { seq: 1, .. }), "{frame:?}"));
        self.say(&Frame::Ping { seq: 2 });
        self.hear(|frame| assert_eq!(frame, Frame::Pong { seq: 2 }));
    }

    /// A client with the queue open as handle 0.
    pub fn client(address: SocketAddr, queue: &str) -> Self {
        let mut peer = Self::greeted(address, 0);
        peer.open(queue);
        peer
    }

    /// Opens a queue as handle 0.
    #[track_caller]
    pub fn open(&mut self, queue: &str) {
        self.say(&Frame::Open { seq: 3, handle: 0, name: queue.as_bytes() });
        self.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 3 }));
    }

    /// A worker of one queue, as handle 0.
    pub fn worker(address: SocketAddr, queue: &str, slots: Slots, name: &str) -> Self {
        let mut peer = Self::client(address, queue);
        peer.work(slots, name);
        peer
    }

    /// Registers, and consumes the queue of handle 0.
    #[track_caller]
    pub fn work(&mut self, slots: Slots, name: &str) {
        self.say(&Frame::Register { seq: 4, register: Register::new(slots, name) });
        self.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 4 }));
        self.say(&Frame::Consume { seq: 5, handle: 0, exclusive: false });
        self.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 5 }));
    }

    /// Sends a frame.
    pub fn say(&mut self, frame: &Frame<'_>) {
        let mut bytes = Vec::new();
        encode(frame, &mut bytes);
        self.say_bytes(&bytes);
    }

    /// Sends bytes as they are. The broker may have closed already; what it said can still be heard.
    pub fn say_bytes(&mut self, bytes: &[u8]) {
        if let Err(error) = self.stream.write_all(bytes) {
            assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
        }
    }

    /// Sends a request on handle 0; returns its number.
    pub fn request(&mut self, body: &[u8]) -> u32 {
        self.request_with(body, |_| {})
    }

    /// Sends a request with options on handle 0; returns its number.
    pub fn request_with(&mut self, body: &[u8], options: impl FnOnce(&mut RawOutgoing<'_>)) -> u32 {
        self.seq += 1;
        let mut message = RawOutgoing::new(self.seq, 0, Raw { headers: false, bytes: body });
        options(&mut message);
        self.say(&Frame::Request(message));
        self.seq
    }

    /// Waits for the next frame.
    #[track_caller]
    pub fn hear<T>(&mut self, look: impl FnOnce(Frame<'_>) -> T) -> T {
        self.try_hear(look).expect("the broker says something before it closes")
    }

    /// Waits for the next frame that is no sign of life.
    #[track_caller]
    pub fn next<T>(&mut self, look: impl Fn(Frame<'_>) -> T) -> T {
        loop {
            let heard = self.hear(|frame| match frame {
                Frame::Ping { .. } | Frame::Pong { .. } => None,
                other => Some(look(other)),
            });
            if let Some(heard) = heard {
                return heard;
            }
        }
    }

    /// Waits for the next frame; `None` if the broker closes instead.
    #[track_caller]
    pub fn try_hear<T>(&mut self, look: impl FnOnce(Frame<'_>) -> T) -> Option<T> {
        loop {
            if let Some(piece) = split(&self.buffer, usize::MAX).expect("the broker speaks our protocol") {
                let used = piece.used;
                let found = look(decode(&piece.header, piece.rest).expect("the broker speaks our protocol"));
                self.buffer.drain(..used);
                return Some(found);
            }
            let mut more = [0; 65_536];
            match self.stream.read(&mut more) {
                Ok(0) => return None,
                Ok(count) => self.buffer.extend_from_slice(&more[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("silence: {error}"),
            }
        }
    }

    /// Waits for a delivery; returns what settles it, its body and its attempt.
    #[track_caller]
    pub fn delivery(&mut self) -> (Delivery, Vec<u8>, u16) {
        self.hear(|frame| match frame {
            Frame::Deliver(Deliver { delivery, raw, attempt, .. }) => (delivery, raw.bytes.to_vec(), attempt),
            other => panic!("expected DELIVER: {other:?}"),
        })
    }

    /// Replies to a delivery.
    pub fn reply(&mut self, delivery: Delivery, body: &[u8]) {
        let raw = Raw { headers: false, bytes: body };
        self.say(&Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw });
    }

    /// Waits for the last piece of a reply; returns its request's number and its body.
    #[track_caller]
    pub fn answer(&mut self) -> (u32, Vec<u8>) {
        self.hear(|frame| match frame {
            Frame::Reply { seq, more: false, raw, .. } => (seq, raw.bytes.to_vec()),
            other => panic!("expected REPLY: {other:?}"),
        })
    }

    /// Waits for a refusal that ends the connection, then for the end.
    #[track_caller]
    pub fn closed_with(&mut self) -> Code {
        let code = self.hear(|frame| match frame {
            Frame::Error { code, fatal: true, .. } => code,
            other => panic!("expected a fatal ERROR: {other:?}"),
        });
        assert_eq!(self.try_hear(|frame| format!("{frame:?}")), None, "nothing comes after a fatal ERROR");
        code
    }
}
