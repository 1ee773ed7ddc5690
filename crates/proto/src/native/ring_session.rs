//! One end of a ring's connection without its socket: the greeting, the heartbeat, and which frames may come when.
//!
//! The end that dialled sends, the other receives: only a few words go back. What is wrong on a connection of the ring ends
//! it; the members make another one, and what is missing is sent again.

use super::decode::{Fault, Piece, decode, split};
use super::encode::encode;
use super::greeting::{Acceptor, Credentials, Dialler, ExpectProof, Greeted, Nonce};
use super::ring::{NewConn, RetConn, RingIdentity};
use super::session::{fail, say};
use super::{Frame, Kind};
use crate::model::ring::Member;
use crate::model::{Code, Mono, limits};

/// What one look at the buffer gave.
#[derive(Debug, PartialEq, Eq)]
pub enum RingStep<'a> {
    /// Nothing until more bytes come.
    NeedMore,
    /// A frame was dealt with in here.
    Done,
    /// This end dialled, and the other showed who it is; RING_PROOF is already in the buffer, and the connection is up.
    Reached(Box<Member>),
    /// The other end dialled, and showed who it is: the connection is up. `None`: it has no number, and may only ask for one.
    Accepted(Option<Box<Member>>),
    /// A word of the ring.
    Frame(Frame<'a>),
    /// The other end ends the connection, and says why.
    Ended(Code),
}

#[derive(Clone, Debug)]
enum State {
    ExpectChallenge(Dialler<RingIdentity>),
    ExpectHello(Acceptor<RingIdentity>),
    ExpectProof(ExpectProof<RingIdentity>),
    /// This end dialled.
    Sends,
    /// The other end dialled, and has not said what for. `numbered`: it has a number.
    ExpectOpening {
        numbered: bool,
    },
    /// The other end sends.
    Receives {
        numbered: bool,
    },
    /// Nothing may come any more.
    Over,
}

/// One end of a ring's connection.
#[derive(Clone, Debug)]
pub struct RingSession {
    state: State,
    /// When the greeting must be over.
    greeted_by: Mono,
    heard: Mono,
    /// When the last PING was sent.
    pinged: Option<Mono>,
    seq: u32,
    beat_ms: u32,
}

impl RingSession {
    /// This end dials: RING_HELLO is appended to `out`. The greeting must be over at `greeted_by`. `local`: the other end is on
    /// this machine.
    pub fn dial(
        now: Mono,
        greeted_by: Mono,
        me: Credentials<RingIdentity>,
        nonce: Nonce,
        local: bool,
        beat_ms: u32,
        out: &mut Vec<u8>,
    ) -> Self {
        let dialler = Dialler::new(me, nonce, local);
        encode(&Frame::RingHello { hello: Box::new(dialler.hello()) }, out);
        Self::new(now, greeted_by, State::ExpectChallenge(dialler), beat_ms)
    }

    /// The other end dialled; RING_HELLO is the first frame to come.
    pub const fn accept(now: Mono, me: Credentials<RingIdentity>, nonce: Nonce, local: bool, beat_ms: u32) -> Self {
        let greeted_by = now.plus_millis(limits::GREETING_MS_MAX);
        Self::new(now, greeted_by, State::ExpectHello(Acceptor::new(me, nonce, local)), beat_ms)
    }

    const fn new(now: Mono, greeted_by: Mono, state: State, beat_ms: u32) -> Self {
        Self { state, greeted_by, heard: now, pinged: None, seq: 0, beat_ms }
    }

    /// True until both ends know each other.
    pub const fn greeting(&self) -> bool {
        !matches!(self.state, State::Sends | State::ExpectOpening { .. } | State::Receives { .. })
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

    /// Appends PING if one is due. It may come earlier by a quarter: whoever looks from time to time would be late otherwise.
    pub fn beat(&mut self, now: Mono, out: &mut Vec<u8>) {
        let rest_ms = u64::from(self.beat_ms) * 3 / 4;
        if self.greeting() || self.pinged.is_some_and(|sent| now < sent.plus_millis(rest_ms)) {
            return;
        }
        self.pinged = Some(now);
        self.seq = self.seq.wrapping_add(1);
        encode(&Frame::Ping { seq: self.seq }, out);
    }

    /// Bytes came: the other end lives.
    pub const fn heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// Takes the first frame off `buffer`. Returns the step and the bytes it used.
    ///
    /// On a fault ERROR is already in `out`: write it and close.
    pub fn step<'a>(&mut self, now: Mono, buffer: &'a [u8], out: &mut Vec<u8>) -> Result<(RingStep<'a>, usize), Fault> {
        let split = split(buffer, self.frame_bytes_max()).inspect_err(|fault| say(fault, out))?;
        let Some(Piece { header, rest, used }) = split else { return Ok((RingStep::NeedMore, 0)) };
        if let Some(code) = Kind::from_number(header.kind).and_then(|kind| self.refuses(kind)) {
            self.state = State::Over;
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

    /// Only a member that says what it is there for may send something long.
    const fn frame_bytes_max(&self) -> usize {
        match &self.state {
            State::Receives { numbered: true } => limits::RING_FRAME_BYTES_MAX,
            State::Sends | State::ExpectOpening { numbered: true } => limits::RING_BACK_BYTES_MAX,
            _ => limits::GREETING_FRAME_BYTES_MAX,
        }
    }

    /// Why such a frame may not come now.
    const fn refuses(&self, kind: Kind) -> Option<Code> {
        let expected = match &self.state {
            State::ExpectHello(_) => matches!(kind, Kind::RingHello),
            State::ExpectChallenge(_) => matches!(kind, Kind::RingChallenge | Kind::Error),
            State::ExpectProof(_) => matches!(kind, Kind::RingProof | Kind::Error),
            State::Over => false,
            State::Sends => return if is_alive(kind) || goes_back(kind) { None } else { Some(Code::WrongDirection) },
            State::ExpectOpening { numbered } | State::Receives { numbered } => {
                let may = is_alive(kind) || if *numbered { goes_forward(kind) } else { matches!(kind, Kind::RingSid) };
                return if may { None } else { Some(Code::WrongDirection) };
            }
        };
        if expected { None } else { Some(Code::ExpectedConnect) }
    }

    fn take<'a>(&mut self, now: Mono, frame: Frame<'a>, out: &mut Vec<u8>) -> Result<RingStep<'a>, Code> {
        match frame {
            Frame::RingHello { .. } | Frame::RingChallenge { .. } | Frame::RingProof { .. } => {
                self.greet(now, frame, out)
            }
            Frame::Error { code, .. } => Ok(RingStep::Ended(code)),
            Frame::Ping { seq } => {
                encode(&Frame::Pong { seq }, out);
                Ok(RingStep::Done)
            }
            Frame::Pong { .. } => Ok(RingStep::Done),
            // One question, one answer, each in its own direction.
            Frame::RingSid { free } if free.is_some() != matches!(self.state, State::Sends) => {
                Err(Code::WrongDirection)
            }
            frame => {
                if let State::ExpectOpening { numbered } = self.state {
                    if !opens(&frame) {
                        return Err(Code::ExpectedConnect);
                    }
                    self.state = State::Receives { numbered };
                }
                Ok(RingStep::Frame(frame))
            }
        }
    }

    fn greet<'a>(&mut self, now: Mono, frame: Frame<'a>, out: &mut Vec<u8>) -> Result<RingStep<'a>, Code> {
        match (std::mem::replace(&mut self.state, State::Over), frame) {
            (State::ExpectHello(acceptor), Frame::RingHello { hello }) => {
                let (challenge, expect) = acceptor.greeted(*hello)?;
                encode(&Frame::RingChallenge { challenge: Box::new(challenge) }, out);
                self.state = State::ExpectProof(expect);
                Ok(RingStep::Done)
            }
            (State::ExpectChallenge(dialler), Frame::RingChallenge { challenge }) => {
                let Greeted { peer, proof } = dialler.challenged(*challenge)?;
                let member = peer.member.ok_or(Code::BadBody)?;
                encode(&Frame::RingProof { proof }, out);
                self.open(now, State::Sends);
                Ok(RingStep::Reached(Box::new(member)))
            }
            (State::ExpectProof(expect), Frame::RingProof { proof }) => {
                let peer = expect.proven(&proof)?;
                self.open(now, State::ExpectOpening { numbered: peer.member.is_some() });
                Ok(RingStep::Accepted(peer.member.map(Box::new)))
            }
            _ => Err(Code::ExpectedConnect),
        }
    }

    fn open(&mut self, now: Mono, state: State) {
        self.state = state;
        self.heard = now;
    }
}

/// What a sender may say first.
fn opens(frame: &Frame<'_>) -> bool {
    match frame {
        Frame::NewConn(newconn) => matches!(**newconn, NewConn { content: None, verdict: None, .. }),
        Frame::RetConn(retconn) => matches!(**retconn, RetConn::Open { .. }),
        Frame::RingProbe(_) | Frame::RingSid { .. } => true,
        _ => false,
    }
}

/// Either end may say it.
const fn is_alive(kind: Kind) -> bool {
    matches!(kind, Kind::Ping | Kind::Pong | Kind::Error)
}

/// The sender may say it.
const fn goes_forward(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::NewConn
            | Kind::RetConn
            | Kind::RingPublish
            | Kind::ServOff
            | Kind::ShutDwn
            | Kind::RollCall
            | Kind::CaughtUp
            | Kind::RingProbe
            | Kind::RingMerge
            | Kind::RingSid
    )
}

/// The receiver may say it.
const fn goes_back(kind: Kind) -> bool {
    matches!(kind, Kind::RingHave | Kind::RingRefused | Kind::RingCircle | Kind::RingSid)
}
