//! The broker's session of a connection: greeting, heartbeat, and allowed frames by state.
//!
//! The shell feeds it bytes and asks it for steps; what it wants to say is appended to the caller's buffer.
//! It never decides anything about queues or messages: those frames are handed on.

use super::decode::{Fault, decode};
use super::encode::encode;
use super::framing::{Piece, split};
use super::{Config, Connect, Direction, Frame, Kind, VERSION};
use crate::model::{Code, Mono, limits};

/// The result of one step over the buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionStep<'a> {
    /// Nothing until more bytes come.
    NeedMore,
    /// A frame was dealt with in here.
    Done,
    /// The greeting is done: the peer is this.
    Opened(Connect),
    /// The first PING came: a worker may get work from now on (S1.7). PONG is already in the buffer.
    Ready,
    /// A frame for the engine.
    Frame(Frame<'a>),
    /// One frame was refused; ERROR is already in the buffer.
    Refused(Code),
    /// The peer is a broker that wants a link: nothing is used, and a [`LinkSession`](super::LinkSession) goes on with the
    /// same bytes.
    Link,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionState {
    ExpectConnect,
    ExpectPing,
    Open,
}

/// The broker's side of one connection.
#[derive(Clone, Debug)]
pub struct Session {
    state: SessionState,
    began: Mono,
    heard: Mono,
    heartbeat_ms: u32,
    frame_bytes_max: usize,
}

impl Session {
    /// A connection that was accepted at `now`.
    pub const fn new(now: Mono, frame_bytes_max: usize) -> Self {
        Self {
            state: SessionState::ExpectConnect,
            began: now,
            heard: now,
            heartbeat_ms: limits::HEARTBEAT_MS,
            frame_bytes_max,
        }
    }

    /// True until CONNECT was answered.
    #[inline]
    pub fn greeting(&self) -> bool {
        self.state == SessionState::ExpectConnect
    }

    /// When the peer must have been heard again.
    pub fn next_deadline(&self) -> Mono {
        match self.state {
            SessionState::ExpectConnect => self.began.plus_millis(limits::GREETING_MS_MAX),
            _ => self.heard.plus_millis(u64::from(self.heartbeat_ms) * u64::from(limits::LIVENESS)),
        }
    }

    /// The reason to give the peer up, if its time is over.
    pub fn handle_timeout(&self, now: Mono) -> Option<Code> {
        if now < self.next_deadline() {
            return None;
        }
        Some(if self.greeting() { Code::GreetingTimeout } else { Code::PeerSilent })
    }

    /// Bytes came: the peer lives.
    pub const fn heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// Takes the first frame off `buffer`. Returns the step and the bytes it used.
    ///
    /// On a fatal fault ERROR is already in `out`: write it and close.
    #[inline]
    pub fn step<'a>(
        &mut self,
        buffer: &'a [u8],
        config: &Config,
        out: &mut Vec<u8>,
    ) -> Result<(SessionStep<'a>, usize), Fault> {
        let bytes_max = if self.greeting() { limits::GREETING_FRAME_BYTES_MAX } else { self.frame_bytes_max };
        let split = split(buffer, bytes_max).inspect_err(|fault| say(fault, out))?;
        let Some(Piece { header, rest, used }) = split else { return Ok((SessionStep::NeedMore, 0)) };
        let kind = Kind::from_number(header.kind);
        if self.greeting() && kind == Some(Kind::LinkHello) {
            return Ok((SessionStep::Link, 0));
        }
        if self.greeting() && kind != Some(Kind::Connect) {
            return Err(fail(Fault::fatal(Code::ExpectedConnect, header.seq), out));
        }
        if kind.is_some_and(|kind| matches!(kind.direction(), Direction::ToPeer | Direction::Link | Direction::Ring)) {
            return Err(fail(Fault::fatal(Code::WrongDirection, header.seq), out));
        }
        match decode(&header, rest) {
            Ok(frame) => self.take(frame, config, out).map(|step| (step, used)),
            Err(fault) if fault.fatal || self.greeting() => Err(fail(Fault { fatal: true, ..fault }, out)),
            Err(fault) => {
                say(&fault, out);
                Ok((SessionStep::Refused(fault.code), used))
            }
        }
    }

    #[inline]
    fn take<'a>(&mut self, mut frame: Frame<'a>, config: &Config, out: &mut Vec<u8>) -> Result<SessionStep<'a>, Fault> {
        if let Frame::Register { register, .. } | Frame::Resize { register, .. } = &mut frame {
            cut(&mut register.name, limits::PEER_NAME_BYTES_MAX);
            cut(&mut register.key, limits::PEER_NAME_BYTES_MAX);
        }
        match frame {
            Frame::Connect { seq, connect } if self.greeting() => self.open(seq, connect, config, out),
            Frame::Connect { seq, .. } => Err(fail(Fault::fatal(Code::ExpectedConnect, seq), out)),
            Frame::Ping { seq } => {
                encode(&Frame::Pong { seq }, out);
                let first = self.state == SessionState::ExpectPing;
                self.state = SessionState::Open;
                Ok(if first { SessionStep::Ready } else { SessionStep::Done })
            }
            other => Ok(SessionStep::Frame(other)),
        }
    }

    fn open<'a>(
        &mut self,
        seq: u32,
        mut connect: Connect,
        config: &Config,
        out: &mut Vec<u8>,
    ) -> Result<SessionStep<'a>, Fault> {
        if connect.version != VERSION {
            return Err(fail(Fault::fatal(Code::VersionMismatch, seq), out));
        }
        self.heartbeat_ms = match connect.heartbeat_ms {
            0 => config.heartbeat_ms,
            wanted => wanted.clamp(limits::HEARTBEAT_MS_MIN, limits::HEARTBEAT_MS_MAX),
        };
        cut(&mut connect.name, limits::PEER_NAME_BYTES_MAX);
        cut(&mut connect.program, limits::PEER_NAME_BYTES_MAX);
        let config = Config { heartbeat_ms: self.heartbeat_ms, ..config.clone() };
        encode(&Frame::Config { seq, config: Box::new(config) }, out);
        self.state = SessionState::ExpectPing;
        Ok(SessionStep::Opened(connect))
    }
}

pub(super) fn fail(fault: Fault, out: &mut Vec<u8>) -> Fault {
    say(&fault, out);
    fault
}

pub(super) fn say(fault: &Fault, out: &mut Vec<u8>) {
    let Fault { code, seq, fatal } = *fault;
    encode(&Frame::Error { seq, code, fatal, detail: code.text().what }, out);
}

/// Cuts a text to at most `bytes_max` bytes at a character's border.
pub(crate) fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
}
