//! Effects of the engine, by addressee. Plain values, so that a test can compare the exact list.
//!
//! Each addressee has an enum of its own and a method of [`Sink`] that takes nothing else: an effect that goes to the wrong
//! one does not compile.

use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::link::{Forward, LinkMessage};
use turno_proto::model::topic::{Event, EventRef};
use turno_proto::model::{
    Again, BroadcastEnd, Closing, Code, ConnId, Cost, Delivery, Durability, MessageId, Payload, QueueName,
};

use crate::archive::ArchiveCall;
use crate::jobs::ForemanOrder;
use crate::messages::disk::persist::{NewRecord, Persist};
use crate::ring::{PublicationRef, RingHostEffect, RingMessage, RingPeerEffect};
use crate::topics::Listener;

/// A delivery. Lent by the engine, so that the body is not copied until it reaches the out-buffer; or with a payload of its
/// own, on its way to another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliver<P = Payload> {
    /// The worker's connection.
    pub conn: ConnId,
    /// The delivery that a settlement names.
    pub delivery: Delivery,
    /// The worker's handle of the queue.
    pub handle: u32,
    /// The id of the message.
    pub id: MessageId,
    /// 1 for the first.
    pub attempt: u16,
    /// Slots it takes.
    pub cost: Cost,
    /// Milliseconds left.
    pub deadline_ms: Option<u32>,
    /// Settled by REPLY; otherwise by ACK.
    pub wants_reply: bool,
    /// The token with which the worker has the queue to itself.
    pub token: Option<u64>,
    /// Headers and body.
    pub payload: P,
}

/// A payload that stays the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BorrowedPayload<'a> {
    /// Whether the bytes begin with a header block.
    pub headers: bool,
    /// Header block, if any, and body.
    pub bytes: &'a Bytes,
}

impl Deliver {
    /// The same delivery, lent.
    pub fn lend(&self) -> Deliver<BorrowedPayload<'_>> {
        let Self { conn, delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, ref payload } = *self;
        let payload = BorrowedPayload { headers: payload.headers, bytes: &payload.bytes };
        Deliver { conn, delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, payload }
    }
}

impl Deliver<BorrowedPayload<'_>> {
    /// The same delivery with a payload of its own.
    pub fn into_owned(self) -> Deliver {
        let Self { conn, delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, payload } = self;
        let payload = Payload { headers: payload.headers, bytes: payload.bytes.clone() };
        Deliver { conn, delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, payload }
    }
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At connections.
    Peer(PeerEffect),
    /// On disk.
    Disk(DiskEffect),
    /// For the archive.
    Archive(ArchiveEffect),
    /// By the host of the engine, the process that runs it.
    Host(HostEffect),
}

/// Something to be done at connections, by the kind of peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum PeerEffect {
    /// To a worker.
    Deliver(Deliver),
    /// To the caller of a message, a client or a neighbour: its outcome, or a step towards it.
    Caller { conn: ConnId, seq: u32, message: CallerMessage },
    /// To a client, a worker or a neighbour: OK or ERROR.
    Answer { conn: ConnId, seq: u32, result: Result<(), Code> },
    /// To the holder of a delivery, a worker or a neighbour: it shall stop.
    Stop { conn: ConnId, delivery: Delivery, reason: Code },
    /// To a client, a worker or a neighbour.
    Closing { conn: ConnId, closing: Closing },
    /// For a client or a worker.
    Native { conn: ConnId, effect: NativeEffect },
    /// For a neighbour.
    Link { conn: ConnId, effect: LinkEffect },
    /// To a foreman's worker.
    Foreman { conn: ConnId, order: Box<ForemanOrder> },
    /// An event for everyone named, the same bytes for each.
    Event { event: Arc<Event>, listeners: Vec<Listener> },
    /// A link is wanted to that address; [`crate::Input::Greeted`] or [`crate::Input::DialFailed`] says what came of it.
    Dial { target: u32, address: String },
    /// For members of the ring.
    Ring(RingPeerEffect),
}

/// The outcome of a message, or a step towards it, for its caller: a client here, or a neighbour that it crossed from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum CallerMessage {
    Reply { more: bool, payload: Payload },
    Progress { payload: Payload },
    Delivered,
    Undelivered { code: Code, payload: Payload },
    BroadcastAnswer(BroadcastAnswer),
    BroadcastEnd(Box<BroadcastEnd>),
}

/// One consumer's answer to a broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastAnswer {
    /// The consumer's number.
    pub worker: u64,
    /// The consumer's name.
    pub name: Box<str>,
    /// Another piece follows.
    pub more: bool,
    /// It could not do it.
    pub failed: bool,
    /// Headers and body of the answer.
    pub payload: Payload,
}

/// Effects for clients and workers alone, and work at their connections.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum NativeEffect {
    Stored {
        seq: u32,
        id: MessageId,
        durability: Durability,
        duplicate: bool,
    },
    /// CONSUME was accepted, and nobody else may: OK with a token.
    Consuming {
        seq: u32,
        token: u64,
    },
    QueueFull {
        seq: u32,
        handle: u32,
    },
    QueueAvailable {
        seq: u32,
        handle: u32,
    },
    /// The worker was dropped from that queue.
    CancelQueue {
        handle: u32,
        reason: Code,
    },
    Admin {
        seq: u32,
        answer: Box<AdminAnswer>,
    },
    /// The worker has much to read: [`crate::Input::HasRead`] is wanted when little of it is left.
    Pace,
}

/// Effects for neighbours alone, and work at links.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum LinkEffect {
    /// The broker that was dialled may be told who this one is: LINK_PROOF.
    Prove,
    /// The link ends, for that reason.
    Unlink { code: Code },
    /// OPEN.
    Open { handle: u32, queue: QueueName },
    /// A message crosses: FORWARD.
    Forward(Box<Forward>),
    /// A message that is not about one crossing.
    Message(Box<LinkMessage>),
    /// A message that crossed from there is settled.
    Ack { seq: u32 },
    /// A message that crossed from there failed.
    Fail { seq: u32, again: Again, payload: Payload },
}

/// Something for the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskEffect {
    /// To be stored, together with all else of the same group; [`crate::Input::Persisted`] tells that it is. Groups
    /// have the numbers 1, 2, 3 …
    Persist {
        /// The group that the operation belongs to.
        group: u64,
        /// The operation.
        op: Persist,
    },
    /// To be read; [`crate::Input::Loaded`] brings it.
    Load {
        /// Which message.
        serial: u64,
    },
}

/// Something for the archive; [`crate::Input::Archived`] brings its answer, if it is to give one. Calls have the numbers 1, 2,
/// 3 … and are worked off in that order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveEffect {
    /// The number that the answer repeats.
    pub ticket: u64,
    /// The call itself.
    pub call: Box<ArchiveCall>,
}

/// Something for the host of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEffect {
    /// To be told to the operator; it changes nothing.
    Report(Report),
    /// The drain is over.
    Drained(Drained),
    /// News of the broker's place in the ring.
    Ring(RingHostEffect),
}

/// An event that an operator should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Workers of a queue were lost in a row, and none of them had settled anything. The next one waits so long for its
    /// first delivery.
    WorkersLost {
        /// The name of the queue.
        queue: QueueName,
        /// How many workers were lost one after the other.
        in_a_row: u32,
        /// How long the next worker waits for its first delivery, in milliseconds.
        wait_ms: u64,
    },
    /// A queue has more dead letters than `limits.dead`. None is deleted; they count against the memory limit.
    ManyDead {
        /// The name of the queue.
        queue: QueueName,
        /// How many dead letters the queue has.
        dead: u64,
    },
    /// The store has lost a message that it had confirmed. An operator should look at the disk.
    Missing {
        /// Which message.
        serial: u64,
    },
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Waiting requests given back to their callers.
    pub returned: u64,
    /// Deliveries cut short at the deadline.
    pub cut: u64,
    /// Messages in memory that end with the broker.
    pub lost: u64,
}

impl PeerEffect {
    /// UNDELIVERED, with nothing but the reason.
    pub fn undelivered(conn: ConnId, seq: u32, code: Code) -> Self {
        Self::Caller { conn, seq, message: CallerMessage::undelivered(code) }
    }

    /// The answer to an admin's call.
    pub const fn admin(conn: ConnId, seq: u32, answer: Box<AdminAnswer>) -> Self {
        Self::Native { conn, effect: NativeEffect::Admin { seq, answer } }
    }

    /// Bytes of the payload it carries.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Deliver(deliver) => deliver.payload.len(),
            Self::Caller { message, .. } => message.payload_bytes(),
            Self::Native { effect, .. } => effect.payload_bytes(),
            Self::Link { effect, .. } => effect.payload_bytes(),
            Self::Event { event, .. } => event.payload.len(),
            Self::Ring(effect) => effect.payload_bytes(),
            Self::Answer { .. }
            | Self::Stop { .. }
            | Self::Closing { .. }
            | Self::Foreman { .. }
            | Self::Dial { .. } => 0,
        }
    }
}

impl CallerMessage {
    /// UNDELIVERED, with nothing but the reason.
    pub fn undelivered(code: Code) -> Self {
        Self::Undelivered { code, payload: Payload::default() }
    }

    fn payload_bytes(&self) -> usize {
        match self {
            Self::Reply { payload, .. }
            | Self::Progress { payload }
            | Self::Undelivered { payload, .. }
            | Self::BroadcastAnswer(BroadcastAnswer { payload, .. }) => payload.len(),
            Self::Delivered | Self::BroadcastEnd(_) => 0,
        }
    }
}

impl NativeEffect {
    fn payload_bytes(&self) -> usize {
        match self {
            Self::Admin { answer, .. } => answer.payload_bytes(),
            Self::Stored { .. }
            | Self::Consuming { .. }
            | Self::QueueFull { .. }
            | Self::QueueAvailable { .. }
            | Self::CancelQueue { .. }
            | Self::Pace => 0,
        }
    }
}

impl LinkEffect {
    fn payload_bytes(&self) -> usize {
        match self {
            Self::Forward(forward) => forward.payload.len(),
            Self::Message(message) => match &**message {
                LinkMessage::Broadcast(broadcast) => broadcast.payload.len(),
                LinkMessage::Event(forward) => forward.event.payload.len(),
                LinkMessage::Offers(_) | LinkMessage::Presence(_) | LinkMessage::Relay(_) => 0,
            },
            Self::Fail { payload, .. } => payload.len(),
            Self::Prove | Self::Unlink { .. } | Self::Open { .. } | Self::Ack { .. } => 0,
        }
    }
}

/// Takes effects for connections as they come.
pub trait PeerSink {
    /// Sends a delivery.
    fn deliver(&mut self, deliver: Deliver<BorrowedPayload<'_>>);
    /// An event for everyone named, the same bytes for each.
    fn event(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        self.peer(PeerEffect::Event { event: Arc::new(event.to_event()), listeners: listeners.to_vec() });
    }
    /// A publication on its way round, to the next member.
    fn publication(&mut self, conn: ConnId, publication: PublicationRef<'_>) {
        let message = RingMessage::Publish(publication.to_publication());
        self.peer(PeerEffect::Ring(RingPeerEffect::Say { conn, message }));
    }
    /// Everything else.
    fn peer(&mut self, effect: PeerEffect);
}

/// Takes effects as they come. The shell encodes them on the spot; tests and the simulator collect them.
pub trait Sink: PeerSink {
    /// A new message to be stored.
    fn put(&mut self, put: NewRecord<'_>);
    /// Everything else for the store.
    fn disk(&mut self, effect: DiskEffect);
    /// For the archive.
    fn archive(&mut self, effect: ArchiveEffect);
    /// For the host of the engine.
    fn host(&mut self, effect: HostEffect);
}

impl PeerSink for Vec<Effect> {
    fn deliver(&mut self, deliver: Deliver<BorrowedPayload<'_>>) {
        self.push(Effect::Peer(PeerEffect::Deliver(deliver.into_owned())));
    }

    fn peer(&mut self, effect: PeerEffect) {
        self.push(Effect::Peer(effect));
    }
}

impl Sink for Vec<Effect> {
    fn put(&mut self, put: NewRecord<'_>) {
        let op = Persist::Put { serial: put.serial, record: put.to_record() };
        self.push(Effect::Disk(DiskEffect::Persist { group: put.group, op }));
    }

    fn disk(&mut self, effect: DiskEffect) {
        self.push(Effect::Disk(effect));
    }

    fn archive(&mut self, effect: ArchiveEffect) {
        self.push(Effect::Archive(effect));
    }

    fn host(&mut self, effect: HostEffect) {
        self.push(Effect::Host(effect));
    }
}

/// A connection that waits for an answer, and the number of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) conn: ConnId,
    pub(crate) seq: u32,
}

impl Caller {
    /// The answer to an admin's call.
    pub(crate) const fn admin(self, answer: Box<AdminAnswer>) -> PeerEffect {
        PeerEffect::admin(self.conn, self.seq, answer)
    }

    /// ERROR.
    pub(crate) const fn refused(self, code: Code) -> PeerEffect {
        PeerEffect::Answer { conn: self.conn, seq: self.seq, result: Err(code) }
    }
}

/// Says OK or ERROR.
pub(crate) fn answer(conn: ConnId, seq: u32, result: Result<(), Code>, out: &mut impl Sink) {
    out.peer(PeerEffect::Answer { conn, seq, result });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Effects are moved by the hundred thousand a second; a careless variant would make all of them large.
    #[test]
    fn an_effect_stays_small() {
        assert!(size_of::<Effect>() <= 128, "{}", size_of::<Effect>());
    }
}
