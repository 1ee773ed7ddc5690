//! Inputs, effects and settings of a node of the ring.

use std::sync::Arc;

use turno_proto::model::ring::{Member, RingMessage, RingState, Sid};
use turno_proto::model::topic::Event;
use turno_proto::model::{Code, ConnId, limits};

/// How a node is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSettings {
    /// This broker as a member.
    pub me: Member,
    /// HOST:PORT of the member to join at; `None`: it is the first of its ring.
    pub next: Option<String>,
    /// The sid of that member, if it was given: another one there is refused.
    pub next_sid: Option<Sid>,
    /// If nobody can be joined at the start it goes on trying; otherwise [`RingHostEffect::Failed`].
    pub wait: bool,
    /// Members stand in order of their sids.
    pub sorted: bool,
    /// The broker links with its next one too, so that requests cross (`--ring-links`).
    pub links: bool,
    /// Every connection has proven that its other end knows the ring's secret. Without a secret, whatever runs on this machine
    /// can pose as a member, so that nothing said on a connection ends a broker or outlives the next roll call.
    pub has_secret: bool,
    /// How long things take.
    pub timers: RingTimers,
    /// Bytes of its own publications that may be under way.
    pub window_bytes: usize,
    /// How many of them.
    pub window: usize,
}

impl RingSettings {
    /// The default settings.
    pub fn new(me: Member, next: Option<String>) -> Self {
        let (window_bytes, window) = (limits::RING_WINDOW_BYTES, limits::RING_WINDOW);
        let (next_sid, wait, sorted, links, has_secret) = (None, false, false, false, false);
        let timers = RingTimers::default();
        Self { me, next, next_sid, wait, sorted, links, has_secret, timers, window_bytes, window }
    }
}

/// How long things take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingTimers {
    /// Between two attempts to reach a member (S3.18).
    pub retry_ms: u64,
    /// How long a lost predecessor may take to come back (S3.18).
    pub wait_ms: u64,
    /// Time limit for the predecessor of a lost member after a call; then every member without a next one is called.
    pub gap_ms: u64,
    /// Without a predecessor for so long: it joins again (S3.20).
    pub rejoin_ms: u64,
    /// How long an attempt to join may take.
    pub join_ms: u64,
    /// How long a connection may take to be made and greeted.
    pub dial_ms: u64,
    /// How long leaving may take (S3.30).
    pub leave_ms: u64,
    /// How long the last messages before a shutdown may take to be written (S3.42).
    pub flush_ms: u64,
    /// Between two roll calls.
    pub roll_ms: u64,
    /// A publication that has not come round for so long is warned of (S3.49).
    pub warn_ms: u64,
}

impl Default for RingTimers {
    fn default() -> Self {
        Self {
            retry_ms: 1_000,
            wait_ms: 5_000,
            gap_ms: 1_000,
            rejoin_ms: 10_000,
            join_ms: 2_000,
            dial_ms: 1_500,
            leave_ms: 2_000,
            flush_ms: 1_000,
            roll_ms: 1_000,
            warn_ms: 5_000,
        }
    }
}

impl RingTimers {
    /// For neighbours on a network that is quick and does not fail for moments (`--ring-fast`).
    pub const fn fast() -> Self {
        Self {
            retry_ms: 100,
            wait_ms: 400,
            gap_ms: 100,
            rejoin_ms: 1_000,
            join_ms: 500,
            dial_ms: 300,
            leave_ms: 2_000,
            flush_ms: 1_000,
            roll_ms: 100,
            warn_ms: 5_000,
        }
    }
}

/// An input of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingInput {
    /// A connection that it wanted is made, and the other end showed who it is.
    Dialled {
        /// The number that it was wanted under.
        target: u32,
        /// The new connection.
        conn: ConnId,
        /// The broker at the other end.
        peer: Member,
    },
    /// It could not be made.
    DialFailed {
        /// The number that it was wanted under.
        target: u32,
        /// The reason of the failure.
        code: Code,
    },
    /// Somebody dialled, and showed who it is. `None`: a broker without a number, which asks for one.
    Accepted {
        /// The new connection.
        conn: ConnId,
        /// The broker at the other end.
        peer: Option<Member>,
    },
    /// A message came.
    Message {
        /// From there.
        conn: ConnId,
        /// The message.
        message: RingMessage,
    },
    /// A connection is gone, for whatever reason.
    Closed {
        /// The connection that ends.
        conn: ConnId,
    },
    /// Something is published here.
    Publish {
        /// The event or message.
        event: Arc<Event>,
    },
    /// An admin here wants it to join, at that address.
    Join {
        /// HOST:PORT of a member.
        next: String,
        /// The sid of that member, if it was given: another one there is not joined.
        sid: Option<Sid>,
    },
    /// An admin here wants it to leave, or the broker ends.
    Leave,
    /// An admin here wants all members to end.
    Shutdown,
    /// Time passed.
    Tick,
}

/// An effect of a node, by addressee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingEffect {
    /// At its connections with other members.
    Peer(RingPeerEffect),
    /// Another member's publication, for the subscribers of this broker.
    Deliver {
        /// The event or message.
        event: Arc<Event>,
    },
    /// By the host of the node.
    Host(RingHostEffect),
}

/// An effect of a node for connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingPeerEffect {
    /// A connection is wanted; [`RingInput::Dialled`] or [`RingInput::DialFailed`] says what came of it.
    Dial {
        /// Its number for it.
        target: u32,
        /// HOST:PORT.
        address: String,
    },
    /// It is not wanted any more: if it is made, it is closed.
    Forget {
        /// Its number for it.
        target: u32,
    },
    /// Send a message.
    Say {
        /// To whom.
        conn: ConnId,
        /// The event or message.
        message: RingMessage,
    },
    /// The connection ends once all that was said is written. [`RingInput::Closed`] does not follow.
    Close {
        /// The connection that ends.
        conn: ConnId,
        /// Why; `None`: it has done what it was for.
        code: Option<Code>,
    },
    /// Whether publishers are to be slowed down.
    Slow(bool),
}

impl RingPeerEffect {
    /// Bytes of the payload it carries.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::Say { message: RingMessage::Publish(publication), .. } => publication.event.payload.len(),
            Self::Dial { .. } | Self::Forget { .. } | Self::Say { .. } | Self::Close { .. } | Self::Slow(_) => 0,
        }
    }
}

/// News of the node's place in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingHostEffect {
    /// For the operator.
    Tell(RingNews),
    /// It could not join at the start, or must not be in the ring.
    Failed(Code),
    /// It is out of the ring, as it was asked to.
    Left,
    /// The whole ring ends: so shall the broker.
    Stop,
}

/// Something that happened to the ring, as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingNews {
    /// The node is in another state.
    State {
        /// Before.
        from: RingState,
        /// Now.
        to: RingState,
        /// The event, for the log.
        why: &'static str,
    },
    /// The circle is whole, and these are its members; some came or went since the last time.
    Whole {
        /// The members in order.
        members: Vec<Sid>,
        /// Those that were not there the last time.
        came: Vec<Sid>,
        /// Those that are not there any more.
        went: Vec<Sid>,
    },
    /// The circle closed around a lost member.
    Healed {
        /// The neighbour in its place.
        next: Sid,
    },
    /// Somebody was refused.
    Refused {
        /// The peer's sid, if it showed that.
        peer: Option<Sid>,
        /// The reason.
        code: Code,
    },
    /// Somebody said what would end this broker, and a ring without a secret cannot prove it. Nothing was done.
    Unproven {
        /// The sid of its claimed origin.
        peer: Option<Sid>,
        /// The kind of the message, as the protocol names it.
        claim: &'static str,
    },
    /// Nobody could be joined at the start; the node goes on trying. Told once.
    Waits {
        /// The reason.
        code: Code,
    },
    /// Two rings become one.
    Merge {
        /// A member of the ring that stays.
        contact: Sid,
    },
    /// Another broker of the ring has the same sid and started earlier: this one left the ring.
    Namesake {
        /// The address of the other broker.
        address: String,
    },
    /// Publications went round while this one was not in the ring.
    Missed {
        /// The sid of the member that published.
        origin: Sid,
        /// How many publications were lost.
        count: u64,
    },
    /// A publication has not come round for long.
    Overdue {
        /// The number of the publication.
        seq: u64,
        /// For so many milliseconds.
        millis: u64,
    },
}
