//! The session of a connection between two brokers: greeting, heartbeat, and the end by an error.
//!
//! It serves links and the ring. Which frames may come after the greeting is the [`Protocol`]'s to say.

use super::decode::{Fault, decode};
use super::encode::encode;
use super::framing::{Piece, split};
use super::greeting::{
    Acceptor, Dialler, ExpectProof, GreetingCredentials, GreetingFrame, GreetingIdentity, Nonce, Proof, VerifiedDialler,
};
use super::session::{fail, say};
use super::{Frame, Kind};
use crate::model::{Code, Mono, limits};

/// The protocol between two brokers: that of links, or that of the ring.
pub trait Protocol {
    /// How an end identifies itself.
    type Identity: GreetingIdentity;

    /// The longest frame that may come once both know each other.
    fn frame_bytes_max(&self) -> usize;
    /// Whether such a frame may come then.
    fn may_come(&self, kind: Kind) -> bool;
}

/// One end of such a connection.
#[derive(Clone, Debug)]
pub struct BrokerSession<P: Protocol> {
    state: BrokerSessionState<P::Identity>,
    pub(super) protocol: P,
    /// When the greeting must be over.
    greeted_by: Mono,
    heard: Mono,
    /// When the last PING was sent.
    pinged: Option<Mono>,
    seq: u32,
    beat_ms: u32,
}

#[derive(Clone, Debug)]
enum BrokerSessionState<I> {
    ExpectChallenge(Dialler<I>),
    /// It is asked whether the connection is wanted.
    ExpectVerdict(Proof),
    ExpectHello(Acceptor<I>),
    ExpectProof(ExpectProof<I>),
    Open,
    /// Something was wrong: nothing may come any more.
    Over,
}

/// A frame that came.
pub(super) enum ReceivedFrame<'a, I> {
    NeedMore,
    /// A frame was dealt with in here.
    Done,
    /// This end dialled, and the other showed who it is. [`BrokerSession::prove`] makes the connection.
    Reached(I),
    /// The other end dialled, and showed who it is: the connection is up.
    Accepted(I),
    Pong(u32),
    Frame(Frame<'a>),
}

impl<P: Protocol> BrokerSession<P> {
    /// This end dials: the greeting begins, in `out`, and must be over at `greeted_by`. `local`: the other end is on this machine.
    pub(super) fn begin(
        now: Mono,
        greeted_by: Mono,
        (me, nonce, local): (GreetingCredentials<P::Identity>, Nonce, bool),
        protocol: P,
        beat_ms: u32,
        out: &mut Vec<u8>,
    ) -> Self {
        let dialler = Dialler::new(me, nonce, local);
        encode(&P::Identity::frame(GreetingFrame::Hello(Box::new(dialler.hello()))), out);
        Self::new(now, greeted_by, BrokerSessionState::ExpectChallenge(dialler), protocol, beat_ms)
    }

    /// The other end dialled, and begins.
    pub(super) fn await_hello(
        now: Mono,
        (me, nonce, local): (GreetingCredentials<P::Identity>, Nonce, bool),
        protocol: P,
        beat_ms: u32,
    ) -> Self {
        let state = BrokerSessionState::ExpectHello(Acceptor::new(me, nonce, local));
        Self::new(now, now.plus_millis(limits::GREETING_MS_MAX), state, protocol, beat_ms)
    }

    const fn new(
        now: Mono,
        greeted_by: Mono,
        state: BrokerSessionState<P::Identity>,
        protocol: P,
        beat_ms: u32,
    ) -> Self {
        Self { state, protocol, greeted_by, heard: now, pinged: None, seq: 0, beat_ms }
    }

    /// True until both ends know each other.
    pub const fn greeting(&self) -> bool {
        !matches!(self.state, BrokerSessionState::Open)
    }

    /// How long the other end may be silent, or take nothing.
    pub fn silence_ms(&self) -> u64 {
        u64::from(self.beat_ms) * u64::from(limits::LIVENESS)
    }

    /// When the other end must have been heard again.
    pub fn next_deadline(&self) -> Mono {
        if self.greeting() { self.greeted_by } else { self.heard.plus_millis(self.silence_ms()) }
    }

    /// The reason to give the other end up, if its time is over.
    pub fn handle_timeout(&self, now: Mono) -> Option<Code> {
        if now < self.next_deadline() {
            return None;
        }
        Some(if self.greeting() { Code::GreetingTimeout } else { Code::PeerSilent })
    }

    /// Bytes came: the other end lives.
    pub const fn heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// Appends PING unless the last one was said so shortly ago. Returns its number.
    pub(super) fn ping(&mut self, now: Mono, rest_ms: u64, out: &mut Vec<u8>) -> Option<u32> {
        if self.greeting() || self.pinged.is_some_and(|sent| now < sent.plus_millis(rest_ms)) {
            return None;
        }
        self.pinged = Some(now);
        self.seq = self.seq.wrapping_add(1);
        encode(&Frame::Ping { seq: self.seq }, out);
        Some(self.seq)
    }

    /// Appends the proof: the connection is up. True if the other end had shown who it is.
    pub fn prove(&mut self, now: Mono, out: &mut Vec<u8>) -> bool {
        let BrokerSessionState::ExpectVerdict(proof) = &self.state else { return false };
        encode(&P::Identity::frame(GreetingFrame::Proof(proof.clone())), out);
        self.open(now);
        true
    }

    fn open(&mut self, now: Mono) {
        self.state = BrokerSessionState::Open;
        self.heard = now;
    }

    /// Takes the first frame off `buffer`, and says what it means. Returns that and the bytes it used.
    ///
    /// On a fault ERROR is already in `out`: write it and close.
    #[inline]
    pub(super) fn hear<'a, S>(
        &mut self,
        now: Mono,
        buffer: &'a [u8],
        out: &mut Vec<u8>,
        meaning: impl FnOnce(&mut Self, ReceivedFrame<'a, P::Identity>, &mut Vec<u8>) -> Result<S, Code>,
    ) -> Result<(S, usize), Fault> {
        let bytes_max =
            if self.greeting() { limits::GREETING_FRAME_BYTES_MAX } else { self.protocol.frame_bytes_max() };
        let split = split(buffer, bytes_max).inspect_err(|fault| say(fault, out))?;
        let (seq, used, heard) = match split {
            None => (0, 0, Ok(ReceivedFrame::NeedMore)),
            Some(Piece { header, rest, used }) => {
                let refused = Kind::from_number(header.kind).and_then(|kind| self.refuses(kind));
                let frame = refused.map_or_else(|| decode(&header, rest).map_err(|fault| fault.code), Err);
                (header.seq, used, frame.and_then(|frame| self.take(now, frame, out)))
            }
        };
        heard.and_then(|heard| meaning(self, heard, out)).map(|step| (step, used)).map_err(|code| {
            self.state = BrokerSessionState::Over;
            fail(Fault::fatal(code, seq), out)
        })
    }

    /// Why such a frame may not come now.
    fn refuses(&self, kind: Kind) -> Option<Code> {
        let [hello, challenge, proof] = P::Identity::KINDS;
        let expected = match &self.state {
            BrokerSessionState::ExpectHello(_) => kind == hello,
            BrokerSessionState::ExpectChallenge(_) => kind == challenge || kind == Kind::Error,
            BrokerSessionState::ExpectProof(_) => kind == proof || kind == Kind::Error,
            BrokerSessionState::ExpectVerdict(_) => kind == Kind::Error,
            BrokerSessionState::Over => false,
            BrokerSessionState::Open => return (!self.protocol.may_come(kind)).then_some(Code::WrongDirection),
        };
        (!expected).then_some(Code::ExpectedConnect)
    }

    #[inline]
    fn take<'a>(
        &mut self,
        now: Mono,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<ReceivedFrame<'a, P::Identity>, Code> {
        match frame {
            Frame::Ping { seq } => {
                encode(&Frame::Pong { seq }, out);
                Ok(ReceivedFrame::Done)
            }
            Frame::Pong { seq } => Ok(ReceivedFrame::Pong(seq)),
            Frame::Error { .. } => Ok(ReceivedFrame::Frame(frame)),
            frame if self.greeting() => self.greet(now, frame, out),
            frame => Ok(ReceivedFrame::Frame(frame)),
        }
    }

    fn greet<'a>(
        &mut self,
        now: Mono,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ReceivedFrame<'a, P::Identity>, Code> {
        match (std::mem::replace(&mut self.state, BrokerSessionState::Over), P::Identity::said(frame)) {
            (BrokerSessionState::ExpectHello(acceptor), Some(GreetingFrame::Hello(hello))) => {
                let (challenge, expect) = acceptor.greeted(*hello)?;
                encode(&P::Identity::frame(GreetingFrame::Challenge(Box::new(challenge))), out);
                self.state = BrokerSessionState::ExpectProof(expect);
                Ok(ReceivedFrame::Done)
            }
            (BrokerSessionState::ExpectChallenge(dialler), Some(GreetingFrame::Challenge(challenge))) => {
                let VerifiedDialler { peer, proof } = dialler.challenged(*challenge)?;
                self.state = BrokerSessionState::ExpectVerdict(proof);
                Ok(ReceivedFrame::Reached(peer))
            }
            (BrokerSessionState::ExpectProof(expect), Some(GreetingFrame::Proof(proof))) => {
                let peer = expect.proven(&proof)?;
                self.open(now);
                Ok(ReceivedFrame::Accepted(peer))
            }
            _ => Err(Code::ExpectedConnect),
        }
    }
}
