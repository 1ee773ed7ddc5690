//! The session of a link: allowed frames, and time limits.
//!
//! Both ends are the same but for who dialled. What is wrong on a link ends it: a broker that misunderstands another would
//! keep messages waiting for an answer that never comes.

use std::collections::VecDeque;

use super::broker_session::{BrokerSession, Protocol, ReceivedFrame};
use super::decode::Fault;
use super::greeting::{GreetingCredentials, Identity, Nonce};
use super::{Frame, Kind};
use crate::model::{Code, Mono, limits};

/// PINGs whose PONG is waited for. More: their round trip is not measured.
const PINGS_MAX: usize = 4;

/// The result of one step over the buffer.
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

/// The protocol of a link.
#[derive(Clone, Debug)]
pub struct LinkProtocol {
    /// PINGs whose PONG is waited for.
    pings: VecDeque<(u32, Mono)>,
    frame_bytes_max: usize,
    /// The longest frame that clients of the other end may send.
    peer_bytes_max: u64,
}

/// One end of a link.
pub type LinkSession = BrokerSession<LinkProtocol>;

impl Protocol for LinkProtocol {
    type Identity = Identity;

    fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    fn may_come(&self, kind: Kind) -> bool {
        crosses(kind)
    }
}

impl LinkProtocol {
    fn new(me: &GreetingCredentials) -> Self {
        Self { pings: VecDeque::new(), frame_bytes_max: frame_bytes_max(me), peer_bytes_max: 0 }
    }

    fn pong(&mut self, now: Mono, seq: u32) -> LinkStep<'static> {
        let Some(at) = self.pings.iter().position(|(sent, _)| *sent == seq) else { return LinkStep::Done };
        let sent = self.pings.drain(..=at).next_back().map_or(now, |(_, sent)| sent);
        LinkStep::RoundTrip(now.as_micros().saturating_sub(sent.as_micros()))
    }
}

impl LinkSession {
    /// This end dials: LINK_HELLO is appended to `out`. `local`: the other end is on this machine.
    pub fn dial(now: Mono, me: GreetingCredentials, nonce: Nonce, local: bool, out: &mut Vec<u8>) -> Self {
        let (link, greeted_by) = (LinkProtocol::new(&me), now.plus_millis(limits::GREETING_MS_MAX));
        Self::begin(now, greeted_by, (me, nonce, local), link, limits::LINK_HEARTBEAT_MS, out)
    }

    /// The other end dialled; LINK_HELLO is the first frame to come.
    pub fn accept(now: Mono, me: GreetingCredentials, nonce: Nonce, local: bool) -> Self {
        let link = LinkProtocol::new(&me);
        Self::await_hello(now, (me, nonce, local), link, limits::LINK_HEARTBEAT_MS)
    }

    /// Bytes of the longest frame that clients of the other end may send, header included: what is in a longer one must not
    /// cross to it.
    pub const fn peer_bytes_max(&self) -> u64 {
        self.protocol.peer_bytes_max
    }

    /// Appends PING if one is due: the first as soon as the link is up, so that it has a round trip.
    pub fn beat(&mut self, now: Mono, out: &mut Vec<u8>) {
        let sent = self.ping(now, u64::from(limits::LINK_HEARTBEAT_MS), out);
        if let Some(seq) = sent.filter(|_| self.protocol.pings.len() < PINGS_MAX) {
            self.protocol.pings.push_back((seq, now));
        }
    }

    /// Takes the first frame off `buffer`. Returns the step and the bytes it used.
    ///
    /// On a fault ERROR is already in `out`: write it and close.
    pub fn step<'a>(&mut self, now: Mono, buffer: &'a [u8], out: &mut Vec<u8>) -> Result<(LinkStep<'a>, usize), Fault> {
        self.hear(now, buffer, out, |session, heard, _| {
            let link = &mut session.protocol;
            Ok(match heard {
                ReceivedFrame::NeedMore => LinkStep::NeedMore,
                ReceivedFrame::Done => LinkStep::Done,
                ReceivedFrame::Reached(peer) => {
                    link.peer_bytes_max = peer.frame_bytes_max;
                    LinkStep::Greeted(Box::new(peer))
                }
                ReceivedFrame::Accepted(peer) => {
                    link.peer_bytes_max = peer.frame_bytes_max;
                    LinkStep::Linked(Box::new(peer))
                }
                ReceivedFrame::Pong(seq) => link.pong(now, seq),
                ReceivedFrame::Frame(Frame::Error { code, fatal: true, .. }) => LinkStep::Ended(code),
                // Tokens are between a worker and its broker; brokers tell each other of them in offers.
                ReceivedFrame::Frame(Frame::Fenced { .. }) => return Err(Code::WrongDirection),
                ReceivedFrame::Frame(frame) => LinkStep::Frame(frame),
            })
        })
    }
}

/// Offers and presence fit, however short a broker's clients must be; and a message has more fields than when it came.
fn frame_bytes_max(me: &GreetingCredentials) -> usize {
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
