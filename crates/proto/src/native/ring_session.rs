//! The session of a ring connection: allowed frames by state and direction.
//!
//! The end that dialled sends, the other receives: only a few messages go back. What is wrong on a connection of the ring ends
//! it; the members make another one, and what is missing is sent again.

use super::broker_session::{BrokerSession, Protocol, ReceivedFrame};
use super::decode::Fault;
use super::greeting::{GreetingCredentials, Nonce};
use super::ring::RingIdentity;
use super::{Frame, Kind};
use crate::model::ring::{Member, NewConn, RetConn, RingMessage};
use crate::model::{Code, Mono, limits};

/// The result of one step over the buffer.
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
    /// A message of the ring.
    Frame(Frame<'a>),
    /// The other end ends the connection, and says why.
    Ended(Code),
}

/// The protocol of a connection of the ring, from the view of this end.
#[derive(Clone, Copy, Debug)]
pub enum RingProtocol {
    /// This end dialled, and sends.
    Sends,
    /// The other end dialled, and has not said what for.
    ExpectOpening {
        /// It has a number.
        numbered: bool,
    },
    /// The other end sends.
    Receives {
        /// It has a number.
        numbered: bool,
    },
}

/// One end of a ring's connection.
pub type RingSession = BrokerSession<RingProtocol>;

impl Protocol for RingProtocol {
    type Identity = RingIdentity;

    /// Only a member that says what it is there for may send something long.
    fn frame_bytes_max(&self) -> usize {
        match self {
            Self::Receives { numbered: true } => limits::RING_FRAME_BYTES_MAX,
            Self::Sends | Self::ExpectOpening { numbered: true } => limits::RING_BACK_BYTES_MAX,
            Self::Receives { numbered: false } | Self::ExpectOpening { numbered: false } => {
                limits::GREETING_FRAME_BYTES_MAX
            }
        }
    }

    fn may_come(&self, kind: Kind) -> bool {
        let is_right = match self {
            Self::Sends => goes_back(kind),
            Self::ExpectOpening { numbered: true } | Self::Receives { numbered: true } => goes_forward(kind),
            Self::ExpectOpening { numbered: false } | Self::Receives { numbered: false } => kind == Kind::RingSid,
        };
        is_right || is_alive(kind)
    }
}

impl RingProtocol {
    const fn asks_wrong_way(self, message: &RingMessage) -> bool {
        match message {
            RingMessage::AskSid => matches!(self, Self::Sends),
            RingMessage::FreeSid { .. } => !matches!(self, Self::Sends),
            _ => false,
        }
    }

    /// A frame that may come.
    fn take<'a>(&mut self, frame: Frame<'a>) -> Result<RingStep<'a>, Code> {
        match (frame, *self) {
            (Frame::Error { code, .. }, _) => Ok(RingStep::Ended(code)),
            // One question, one answer, each in its own direction.
            (Frame::Ring(message), way) if way.asks_wrong_way(&message) => Err(Code::WrongDirection),
            (frame, Self::ExpectOpening { numbered }) => {
                if !opens(&frame) {
                    return Err(Code::ExpectedConnect);
                }
                *self = Self::Receives { numbered };
                Ok(RingStep::Frame(frame))
            }
            (frame, _) => Ok(RingStep::Frame(frame)),
        }
    }
}

impl RingSession {
    /// This end dials: RING_HELLO is appended to `out`. The greeting must be over at `greeted_by`. `local`: the other end is on
    /// this machine.
    pub fn dial(
        now: Mono,
        greeted_by: Mono,
        me: GreetingCredentials<RingIdentity>,
        nonce: Nonce,
        local: bool,
        beat_ms: u32,
        out: &mut Vec<u8>,
    ) -> Self {
        Self::begin(now, greeted_by, (me, nonce, local), RingProtocol::Sends, beat_ms, out)
    }

    /// The other end dialled; RING_HELLO is the first frame to come.
    pub fn accept(now: Mono, me: GreetingCredentials<RingIdentity>, nonce: Nonce, local: bool, beat_ms: u32) -> Self {
        Self::await_hello(now, (me, nonce, local), RingProtocol::ExpectOpening { numbered: false }, beat_ms)
    }

    /// Appends PING if one is due. It may come earlier by a quarter: a caller that looks from time to time would be late otherwise.
    pub fn beat(&mut self, now: Mono, out: &mut Vec<u8>) {
        self.ping(now, self.silence_ms() / u64::from(limits::LIVENESS) * 3 / 4, out);
    }

    /// Takes the first frame off `buffer`. Returns the step and the bytes it used.
    ///
    /// On a fault ERROR is already in `out`: write it and close.
    pub fn step<'a>(&mut self, now: Mono, buffer: &'a [u8], out: &mut Vec<u8>) -> Result<(RingStep<'a>, usize), Fault> {
        self.hear(now, buffer, out, |session, heard, out| match heard {
            ReceivedFrame::NeedMore => Ok(RingStep::NeedMore),
            ReceivedFrame::Done | ReceivedFrame::Pong(_) => Ok(RingStep::Done),
            ReceivedFrame::Reached(peer) => {
                let member = peer.member.ok_or(Code::BadBody)?;
                session.prove(now, out);
                Ok(RingStep::Reached(Box::new(member)))
            }
            ReceivedFrame::Accepted(peer) => {
                session.protocol = RingProtocol::ExpectOpening { numbered: peer.member.is_some() };
                Ok(RingStep::Accepted(peer.member.map(Box::new)))
            }
            ReceivedFrame::Frame(frame) => session.protocol.take(frame),
        })
    }
}

/// Whether a sender may begin with this frame.
fn opens(frame: &Frame<'_>) -> bool {
    let Frame::Ring(message) = frame else { return false };
    matches!(
        **message,
        RingMessage::NewConn(NewConn { content: None, verdict: None, .. })
            | RingMessage::RetConn(RetConn::Open { .. })
            | RingMessage::Probe(_)
            | RingMessage::AskSid
    )
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
