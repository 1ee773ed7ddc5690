//! One end of a link without its socket: the greeting, the heartbeat, and which frames may come when.
//!
//! Both ends are the same but for who dialled. What is wrong on a link ends it: a broker that misunderstands another would
//! keep messages waiting for an answer that never comes.

use std::collections::VecDeque;

use super::decode::{Fault, Piece, decode, split};
use super::encode::encode;
use super::greeting::{Acceptor, Credentials, Dialler, ExpectProof, Greeted, Identity, Nonce, Proof};
use super::session::{fail, say};
use super::{Frame, Kind};
use crate::model::{Code, Mono, limits};

/// PINGs whose PONG is waited for. More: their round trip is not measured.
const PINGS_MAX: usize = 4;

/// What one look at the buffer gave.
#[derive(Debug, PartialEq, Eq)]
pub enum LinkStep<'a> {
    /// Nothing until more bytes come.
    NeedMore,
    /// A frame was dealt with in here.
    Done,
    /// This end dialled, and the other showed who it is. [`LinkSession::prove`] makes the link.
    Greeted(Box<Identity>),
    /// The other end dialled, and showed who it is: the link is up.
    Linked(Box<Identity>),
    /// So many microseconds to the other end and back.
    RoundTrip(u64),
    /// A frame for the engine.
    Frame(Frame<'a>),
    /// The other end ends the link, and says why.
    Ended(Code),
}

#[derive(Clone, Debug)]
enum State {
    ExpectChallenge(Dialler),
    /// The engine is asked whether it wants the link.
    ExpectVerdict(Proof),
    ExpectHello(Acceptor),
    ExpectProof(ExpectProof),
    Open,
    /// The greeting went wrong: nothing may come any more.
    Over,
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct LinkSession {
    state: State,
    began: Mono,
    heard: Mono,
    /// When the last PING was sent.
    pinged: Option<Mono>,
    pings: VecDeque<(u32, Mono)>,
    seq: u32,
    frame_bytes_max: usize,
    /// The longest frame that clients of the other end may send.
    peer_bytes_max: u64,
}

impl LinkSession {
    /// This end dials: LINK_HELLO is appended to `out`. `local`: the other end is on this machine.
    pub fn dial(now: Mono, me: Credentials, nonce: Nonce, local: bool, out: &mut Vec<u8>) -> Self {
        let frame_bytes_max = frame_bytes_max(&me);
        let dialler = Dialler::new(me, nonce, local);
        encode(&Frame::LinkHello { hello: Box::new(dialler.hello()) }, out);
        Self::new(now, State::ExpectChallenge(dialler), frame_bytes_max)
    }

    /// The other end dialled; LINK_HELLO is the first frame to come.
    pub fn accept(now: Mono, me: Credentials, nonce: Nonce, local: bool) -> Self {
        let frame_bytes_max = frame_bytes_max(&me);
        Self::new(now, State::ExpectHello(Acceptor::new(me, nonce, local)), frame_bytes_max)
    }

    fn new(now: Mono, state: State, frame_bytes_max: usize) -> Self {
        let (pings, seq, peer_bytes_max) = (VecDeque::new(), 0, 0);
        Self { state, began: now, heard: now, pinged: None, pings, seq, frame_bytes_max, peer_bytes_max }
    }

    /// True until both ends know each other.
    pub const fn greeting(&self) -> bool {
        !matches!(self.state, State::Open)
    }

    /// Bytes of the longest frame that clients of the other end may send, header included: what is in a longer one must not
    /// cross to it.
    pub const fn peer_bytes_max(&self) -> u64 {
        self.peer_bytes_max
    }

    /// Appends LINK_PROOF: the link is up. True if the other end had shown who it is.
    pub fn prove(&mut self, now: Mono, out: &mut Vec<u8>) -> bool {
        let State::ExpectVerdict(proof) = &self.state else { return false };
        encode(&Frame::LinkProof { proof: proof.clone() }, out);
        self.open(now);
        true
    }

    /// When the other end must have been heard again.
    pub fn next_deadline(&self) -> Mono {
        if self.greeting() {
            return self.began.plus_millis(limits::GREETING_MS_MAX);
        }
        self.heard.plus_millis(u64::from(limits::LINK_HEARTBEAT_MS) * u64::from(limits::LIVENESS))
    }

    /// The reason to give the other end up, if its time is over.
    pub fn handle_timeout(&self, now: Mono) -> Option<Code> {
        if now < self.next_deadline() {
            return None;
        }
        Some(if self.greeting() { Code::GreetingTimeout } else { Code::PeerSilent })
    }

    /// Appends PING if one is due: the first as soon as the link is up, so that it has a round trip.
    pub fn beat(&mut self, now: Mono, out: &mut Vec<u8>) {
        let rests = |sent: Mono| now < sent.plus_millis(u64::from(limits::LINK_HEARTBEAT_MS));
        if self.greeting() || self.pinged.is_some_and(rests) {
            return;
        }
        self.pinged = Some(now);
        self.seq = self.seq.wrapping_add(1);
        encode(&Frame::Ping { seq: self.seq }, out);
        if self.pings.len() < PINGS_MAX {
            self.pings.push_back((self.seq, now));
        }
    }

    /// Bytes came: the other end lives.
    pub const fn heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// Takes the first frame off `buffer`. Returns the step and the bytes it used.
    ///
    /// On a fault ERROR is already in `out`: write it and close.
    pub fn step<'a>(&mut self, now: Mono, buffer: &'a [u8], out: &mut Vec<u8>) -> Result<(LinkStep<'a>, usize), Fault> {
        let bytes_max = if self.greeting() { limits::GREETING_FRAME_BYTES_MAX } else { self.frame_bytes_max };
        let split = split(buffer, bytes_max).inspect_err(|fault| say(fault, out))?;
        let Some(Piece { header, rest, used }) = split else { return Ok((LinkStep::NeedMore, 0)) };
        if let Some(code) = Kind::from_number(header.kind).and_then(|kind| self.refuses(kind)) {
            return Err(fail(Fault::fatal(code, header.seq), out));
        }
        let step = match decode(&header, rest) {
            Ok(frame) => self.take(now, frame, out),
            Err(fault) => Err(fault.code),
        };
        step.map(|step| (step, used)).map_err(|code| {
            self.state = State::Over;
            fail(Fault::fatal(code, header.seq), out)
        })
    }

    /// Why such a frame may not come now.
    const fn refuses(&self, kind: Kind) -> Option<Code> {
        let expected = match &self.state {
            State::ExpectHello(_) => matches!(kind, Kind::LinkHello),
            State::ExpectChallenge(_) => matches!(kind, Kind::LinkChallenge | Kind::Error),
            State::ExpectProof(_) => matches!(kind, Kind::LinkProof | Kind::Error),
            State::ExpectVerdict(_) => matches!(kind, Kind::Error),
            State::Over => false,
            State::Open => return if crosses(kind) { None } else { Some(Code::WrongDirection) },
        };
        if expected { None } else { Some(Code::ExpectedConnect) }
    }

    fn take<'a>(&mut self, now: Mono, frame: Frame<'a>, out: &mut Vec<u8>) -> Result<LinkStep<'a>, Code> {
        match frame {
            Frame::LinkHello { .. } | Frame::LinkChallenge { .. } | Frame::LinkProof { .. } => {
                self.greet(now, frame, out)
            }
            Frame::Error { code, fatal: true, .. } => Ok(LinkStep::Ended(code)),
            Frame::Ping { seq } => {
                encode(&Frame::Pong { seq }, out);
                Ok(LinkStep::Done)
            }
            Frame::Pong { seq } => Ok(self.pong(now, seq)),
            // Tokens are between a worker and its broker; brokers tell each other of them in offers.
            Frame::Fenced { .. } => Err(Code::WrongDirection),
            other => Ok(LinkStep::Frame(other)),
        }
    }

    fn greet<'a>(&mut self, now: Mono, frame: Frame<'a>, out: &mut Vec<u8>) -> Result<LinkStep<'a>, Code> {
        match (std::mem::replace(&mut self.state, State::Over), frame) {
            (State::ExpectHello(acceptor), Frame::LinkHello { hello }) => {
                let (challenge, expect) = acceptor.greeted(*hello)?;
                encode(&Frame::LinkChallenge { challenge: Box::new(challenge) }, out);
                self.state = State::ExpectProof(expect);
                Ok(LinkStep::Done)
            }
            (State::ExpectChallenge(dialler), Frame::LinkChallenge { challenge }) => {
                let Greeted { peer, proof } = dialler.challenged(*challenge)?;
                self.peer_bytes_max = peer.frame_bytes_max;
                self.state = State::ExpectVerdict(proof);
                Ok(LinkStep::Greeted(Box::new(peer)))
            }
            (State::ExpectProof(expect), Frame::LinkProof { proof }) => {
                let peer = expect.proven(&proof)?;
                self.peer_bytes_max = peer.frame_bytes_max;
                self.open(now);
                Ok(LinkStep::Linked(Box::new(peer)))
            }
            _ => Err(Code::ExpectedConnect),
        }
    }

    fn open(&mut self, now: Mono) {
        self.state = State::Open;
        self.heard = now;
    }

    fn pong(&mut self, now: Mono, seq: u32) -> LinkStep<'static> {
        let Some(at) = self.pings.iter().position(|(sent, _)| *sent == seq) else { return LinkStep::Done };
        let sent = self.pings.drain(..=at).next_back().map_or(now, |(_, sent)| sent);
        LinkStep::RoundTrip(now.as_micros().saturating_sub(sent.as_micros()))
    }
}

/// Offers and presence fit, however short a broker's clients must be; and a message has more fields than when it came.
fn frame_bytes_max(me: &Credentials) -> usize {
    let own = usize::try_from(me.identity.frame_bytes_max).unwrap_or(usize::MAX);
    own.max(limits::LINK_FRAME_BYTES).saturating_add(limits::LINK_FIELDS_BYTES)
}

/// Whether such a frame may come over a link that is up.
const fn crosses(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Ping
            | Kind::Pong
            | Kind::Closing
            | Kind::Error
            | Kind::Open
            | Kind::Ok
            | Kind::Offer
            | Kind::Presence
            | Kind::Relay
            | Kind::Forward
            | Kind::ForwardBroadcast
            | Kind::ForwardEvent
            | Kind::Cancel
            | Kind::Reply
            | Kind::Progress
            | Kind::Delivered
            | Kind::Ack
            | Kind::Fail
            | Kind::Undelivered
            | Kind::Answer
            | Kind::BroadcastEnd
    )
}
