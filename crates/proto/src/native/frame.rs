//! Frames as values. Control frames own their few fields; hot frames borrow the bytes they came in.

use bytes::Bytes;

use super::admin::{AdminAnswer, AdminCall};
use super::greeting::Proof;
use super::link::{LinkChallenge, LinkHello};
use super::ring::{RingChallenge, RingHello};
use super::{Closing, Config, Connect, FencedFrame, Kind, Register};
use crate::model;
use crate::model::link::{Forward, LinkMessage};
use crate::model::ring::{Publication, RingMessage};
use crate::model::{Again, BroadcastEnd, Code, Cost, Delivery, Durability, Filter, MessageId, Payload};

/// Header block, if any, and body, as they stand in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// Whether `bytes` begins with a header block.
    pub headers: bool,
    /// Header block, if any, and body.
    pub bytes: &'a [u8],
}

impl Raw<'_> {
    /// Copies the bytes out of the read buffer, so that a waiting message does not pin it.
    pub fn to_payload(self) -> Payload {
        Payload { headers: self.headers, bytes: Bytes::copy_from_slice(self.bytes) }
    }
}

impl<'a> From<&'a Payload> for Raw<'a> {
    fn from(payload: &'a Payload) -> Self {
        Self { headers: payload.headers, bytes: &payload.bytes }
    }
}

/// REQUEST and SEND, which lend the bytes they came in.
pub type RawOutgoing<'a> = model::Outgoing<Raw<'a>, &'a [u8]>;

/// BROADCAST, which lends the bytes it came in.
pub type RawBroadcast<'a> = model::Broadcast<Raw<'a>>;

/// ANSWER: what one consumer says to a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The sender's number of the broadcast.
    pub seq: u32,
    /// The consumer's id.
    pub worker: u64,
    /// The consumer's name; at most 255 bytes.
    pub name: &'a str,
    /// More pieces of its reply follow.
    pub more: bool,
    /// It failed; the payload says why.
    pub failed: bool,
    /// Headers and body of the answer.
    pub raw: Raw<'a>,
}

/// DELIVER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliver<'a> {
    /// The delivery, which the settling frame must echo.
    pub delivery: Delivery,
    /// The queue, by the handle the worker consumes it with.
    pub handle: u32,
    /// The message's id.
    pub id: MessageId,
    /// 1 for the first attempt.
    pub attempt: u16,
    /// Slots it takes.
    pub cost: Cost,
    /// Milliseconds left of its deadline.
    pub deadline_ms: Option<u32>,
    /// Settled by REPLY; otherwise by ACK (sends, and requests that want no reply).
    pub wants_reply: bool,
    /// The token under which the worker has the queue to itself.
    pub token: Option<u64>,
    /// Headers and body.
    pub raw: Raw<'a>,
}

/// PUBLISH and EVENT, which lend the bytes they came in; the topic may be none.
pub type RawEvent<'a> = model::topic::Event<&'a [u8], Raw<'a>>;

/// A frame of the native protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the table in docs/reference/protocol/frames.md")]
pub enum Frame<'a> {
    Connect {
        seq: u32,
        connect: Connect,
    },
    Config {
        seq: u32,
        config: Box<Config>,
    },
    Ping {
        seq: u32,
    },
    Pong {
        seq: u32,
    },
    Closing {
        closing: Closing,
    },
    /// `fatal`: the connection ends after this frame.
    Error {
        seq: u32,
        code: Code,
        fatal: bool,
        detail: &'a str,
    },

    Register {
        seq: u32,
        register: Register,
    },
    Deregister {
        seq: u32,
    },
    Resize {
        seq: u32,
        register: Register,
    },
    Open {
        seq: u32,
        handle: u32,
        name: &'a [u8],
    },
    /// `exclusive`: nobody else may consume the queue meanwhile.
    Consume {
        seq: u32,
        handle: u32,
        exclusive: bool,
    },
    /// To the broker without a reason; to a worker with the reason why it was dropped, and `seq` is 0.
    CancelQueue {
        seq: u32,
        handle: u32,
        reason: Option<Code>,
    },
    QueueFull {
        seq: u32,
        handle: u32,
    },
    QueueAvailableNotify {
        seq: u32,
        handle: u32,
    },
    /// `seq` is that of QUEUE_AVAILABLE_NOTIFY.
    QueueAvailable {
        seq: u32,
        handle: u32,
    },
    Request(RawOutgoing<'a>),
    Send(RawOutgoing<'a>),
    Broadcast(RawBroadcast<'a>),
    Deliver(Deliver<'a>),
    /// From a worker `seq` and `word` name the delivery; to a client `seq` names its request.
    Reply {
        seq: u32,
        word: u32,
        more: bool,
        raw: Raw<'a>,
    },
    Ack {
        delivery: Delivery,
    },
    Fail {
        delivery: Delivery,
        again: Again,
        raw: Raw<'a>,
    },
    /// From a worker `seq` and `word` name the delivery; to a client `seq` names its request.
    Progress {
        seq: u32,
        word: u32,
        raw: Raw<'a>,
    },
    Extend {
        delivery: Delivery,
        lease_ms: u32,
    },
    /// To the broker `seq` names the request; to a worker `seq` and `word` name the delivery.
    Cancel {
        seq: u32,
        word: u32,
        reason: Option<Code>,
    },
    Delivered {
        seq: u32,
    },
    Undelivered {
        seq: u32,
        code: Code,
        raw: Raw<'a>,
    },
    Ok {
        seq: u32,
    },
    /// `duplicate`: a send with the same dedup id came before, and the answer is the one of that.
    Stored {
        seq: u32,
        durability: Durability,
        id: MessageId,
        duplicate: bool,
    },
    Answer(Answer<'a>),
    BroadcastEnd {
        seq: u32,
        end: Box<BroadcastEnd>,
    },

    /// One of the frames that may carry the token of an exclusive queue, with it: OK, and what settles a delivery or
    /// speaks of one.
    Fenced {
        token: u64,
        frame: FencedFrame<'a>,
    },

    /// `or_close`: disconnected when it reads too slowly, instead of missing events.
    Subscribe {
        seq: u32,
        filter: Filter,
        or_close: bool,
    },
    Unsubscribe {
        seq: u32,
        filter: Filter,
    },
    /// `confirm`: answered by OK.
    Publish {
        seq: u32,
        confirm: bool,
        event: RawEvent<'a>,
    },
    /// The same bytes for everyone who gets it.
    Event(RawEvent<'a>),
    EventsDropped {
        count: u32,
    },

    RingHello {
        hello: Box<RingHello>,
    },
    RingChallenge {
        challenge: Box<RingChallenge>,
    },
    RingProof {
        proof: Proof,
    },
    RingPublish(Publication<RawEvent<'a>>),
    /// Any other message of the ring.
    Ring(Box<RingMessage>),

    LinkHello {
        hello: Box<LinkHello>,
    },
    LinkChallenge {
        challenge: Box<LinkChallenge>,
    },
    LinkProof {
        proof: Proof,
    },
    Forward(Box<Forward>),
    /// OFFER, PRESENCE, RELAY, FORWARD_BROADCAST and FORWARD_EVENT.
    Link(Box<LinkMessage>),

    AdminCall {
        seq: u32,
        call: AdminCall,
    },
    AdminAnswer {
        seq: u32,
        answer: AdminAnswer,
    },
}

impl From<LinkMessage> for Frame<'_> {
    fn from(message: LinkMessage) -> Self {
        Self::Link(Box::new(message))
    }
}

impl From<RingMessage> for Frame<'_> {
    fn from(message: RingMessage) -> Self {
        Self::Ring(Box::new(message))
    }
}

impl Frame<'_> {
    /// The frame's type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Fenced { frame, .. } => frame.kind(),
            Self::Connect { .. } => Kind::Connect,
            Self::Config { .. } => Kind::Config,
            Self::Ping { .. } => Kind::Ping,
            Self::Pong { .. } => Kind::Pong,
            Self::Closing { .. } => Kind::Closing,
            Self::Error { .. } => Kind::Error,
            Self::Register { .. } => Kind::Register,
            Self::Deregister { .. } => Kind::Deregister,
            Self::Resize { .. } => Kind::Resize,
            Self::Open { .. } => Kind::Open,
            Self::Consume { .. } => Kind::Consume,
            Self::CancelQueue { .. } => Kind::CancelQueue,
            Self::QueueFull { .. } => Kind::QueueFull,
            Self::QueueAvailableNotify { .. } => Kind::QueueAvailableNotify,
            Self::QueueAvailable { .. } => Kind::QueueAvailable,
            Self::Request(_) => Kind::Request,
            Self::Send(_) => Kind::Send,
            Self::Broadcast(_) => Kind::Broadcast,
            Self::Deliver(_) => Kind::Deliver,
            Self::Reply { .. } => Kind::Reply,
            Self::Ack { .. } => Kind::Ack,
            Self::Fail { .. } => Kind::Fail,
            Self::Progress { .. } => Kind::Progress,
            Self::Extend { .. } => Kind::Extend,
            Self::Cancel { .. } => Kind::Cancel,
            Self::Delivered { .. } => Kind::Delivered,
            Self::Undelivered { .. } => Kind::Undelivered,
            Self::Ok { .. } => Kind::Ok,
            Self::Stored { .. } => Kind::Stored,
            Self::Answer(_) => Kind::Answer,
            Self::BroadcastEnd { .. } => Kind::BroadcastEnd,
            Self::Subscribe { .. } => Kind::Subscribe,
            Self::Unsubscribe { .. } => Kind::Unsubscribe,
            Self::Publish { .. } => Kind::Publish,
            Self::Event(_) => Kind::Event,
            Self::EventsDropped { .. } => Kind::EventsDropped,
            Self::RingHello { .. } => Kind::RingHello,
            Self::RingChallenge { .. } => Kind::RingChallenge,
            Self::RingProof { .. } => Kind::RingProof,
            Self::RingPublish(_) => Kind::RingPublish,
            Self::Ring(message) => message.kind(),
            Self::LinkHello { .. } => Kind::LinkHello,
            Self::LinkChallenge { .. } => Kind::LinkChallenge,
            Self::LinkProof { .. } => Kind::LinkProof,
            Self::Forward(_) => Kind::Forward,
            Self::Link(message) => message.kind(),
            Self::AdminCall { .. } => Kind::AdminCall,
            Self::AdminAnswer { .. } => Kind::AdminAnswer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames are moved by the hundred thousand a second; a careless variant would make all of them large.
    #[test]
    fn a_frame_stays_small() {
        assert!(size_of::<Frame<'_>>() <= 120, "{}", size_of::<Frame<'_>>());
    }
}
