//! Inputs of the engine. Plain values, named by ids, never by channels.

use crate::effect::CallerMessage;
use crate::jobs::ForemanEvent;
use crate::messages::disk::persist::Record;
use crate::ring::RingInput;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::link::{BrokerId, Forward, LinkMessage};
use turno_proto::model::topic::Event;
use turno_proto::model::{Again, Broadcast, Code, ConnId, Delivery, Filter, Outgoing, Payload, QueueName, Slots};

/// A message of the other end about a crossing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum RemoteMessage {
    /// A message that a client would get, too.
    Caller(CallerMessage),
    Ack,
    Fail {
        again: Again,
        payload: Payload,
    },
}

/// The broker at the other end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The id of the other broker.
    pub broker: BrokerId,
    /// For people.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Bytes of the longest payload that it takes.
    pub payload_max: u64,
}

/// A message about a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum WorkerMessage {
    Reply { more: bool, payload: Payload },
    Ack,
    Fail { again: Again, payload: Payload },
    Progress { payload: Payload },
    Extend { lease_ms: u32 },
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum Input {
    /// A connection finished its greeting. The shell never reuses a [`ConnId`].
    Connected {
        conn: ConnId,
        name: String,
        address: String,
    },
    /// Its first PING came: it may get work (S1.7).
    Ready {
        conn: ConnId,
    },
    /// The peer has read what waited for it, after [`crate::NativeEffect::Pace`].
    HasRead {
        conn: ConnId,
    },
    /// The peer closed its connection before it had read all bytes; [`Self::Disconnected`] follows.
    Unread {
        conn: ConnId,
    },
    /// It is gone, for whatever reason.
    Disconnected {
        conn: ConnId,
    },
    Open {
        conn: ConnId,
        seq: u32,
        handle: u32,
        queue: QueueName,
    },
    Register {
        conn: ConnId,
        seq: u32,
        slots: Slots,
        name: String,
    },
    /// REGISTER of a worker that is a foreman's worker as well, known there by that key: both share one account.
    RegisterAs {
        conn: ConnId,
        seq: u32,
        slots: Slots,
        name: String,
        key: String,
    },
    /// REGISTER of a worker whose answers give no slots back: it says [`Self::GiveBack`] when it has room.
    RegisterKeeping {
        conn: ConnId,
        seq: u32,
        slots: Slots,
        name: String,
    },
    /// A peer sends that to another one, past all queues; the other gets it as [`CallerMessage::Progress`] with the number 0.
    Relay {
        to: ConnId,
        payload: Payload,
    },
    /// Such a worker gives back the slots of one delivery, naming none.
    GiveBack {
        conn: ConnId,
    },
    Resize {
        conn: ConnId,
        seq: u32,
        slots: Slots,
    },
    Deregister {
        conn: ConnId,
        seq: u32,
    },
    /// `exclusive`: nobody else may consume the queue meanwhile.
    Consume {
        conn: ConnId,
        seq: u32,
        handle: u32,
        exclusive: bool,
    },
    /// A refused worker wants to be told when the queue is free.
    QueueAvailableNotify {
        conn: ConnId,
        seq: u32,
        handle: u32,
    },
    CancelQueue {
        conn: ConnId,
        seq: u32,
        handle: u32,
    },
    Request {
        conn: ConnId,
        message: Outgoing,
    },
    Send {
        conn: ConnId,
        message: Outgoing,
    },
    Broadcast {
        conn: ConnId,
        broadcast: Broadcast,
    },
    /// A worker's message about a delivery. `token`: that of the exclusive queue which it comes from; a message without
    /// one is checked by its holder alone.
    Worker {
        conn: ConnId,
        delivery: Delivery,
        token: Option<u64>,
        message: WorkerMessage,
    },
    /// The caller gives up its own request.
    Cancel {
        conn: ConnId,
        seq: u32,
    },
    /// The peer said CLOSING: it wants no new work; what it has it will finish.
    PeerClosing {
        conn: ConnId,
    },
    Admin {
        conn: ConnId,
        seq: u32,
        call: AdminCall,
    },
    /// `or_close`: the connection ends if it reads too slowly, instead of missing events.
    Subscribe {
        conn: ConnId,
        seq: u32,
        filter: Filter,
        or_close: bool,
    },
    Unsubscribe {
        conn: ConnId,
        seq: u32,
        filter: Filter,
    },
    /// `confirm`: answered.
    Publish {
        conn: ConnId,
        seq: u32,
        confirm: bool,
        event: Event,
    },
    /// The connection was read from too slowly: so many events were left out.
    EventsDropped {
        conn: ConnId,
        count: u64,
    },
    /// A broker that this one dialled showed who it is, before it is told who this one is.
    Greeted {
        conn: ConnId,
        target: u32,
        broker: BrokerId,
    },
    /// The greeting of a link is done. `target`: this end dialled.
    Linked {
        conn: ConnId,
        target: Option<u32>,
        neighbour: Neighbour,
    },
    /// A target could not be reached, or would not greet.
    DialFailed {
        target: u32,
        code: Code,
    },
    /// A PING came back over a link.
    RoundTrip {
        conn: ConnId,
        micros: u64,
    },
    /// A message came over a link.
    Forwarded {
        conn: ConnId,
        forward: Box<Forward>,
    },
    /// The other end's message about a crossing, by the number of the crossing.
    Far {
        conn: ConnId,
        seq: u32,
        message: RemoteMessage,
    },
    /// CANCEL came over a link: the other end gives up what crossed to here, and says why.
    FarCancel {
        conn: ConnId,
        seq: u32,
        reason: Code,
    },
    /// A message of the other end of a link.
    Link {
        conn: ConnId,
        message: Box<LinkMessage>,
    },
    /// Something happened to the ring, or on one of its connections.
    Ring {
        input: RingInput,
    },
    /// An event of a job worker. Its connection ends by [`Self::Disconnected`].
    Foreman {
        conn: ConnId,
        event: Box<ForemanEvent>,
    },
    /// The broker is to end: no new work, `within_ms` for what runs.
    Drain {
        within_ms: u64,
    },
    /// Every group up to that one is on disk; see [`crate::DiskEffect::Persist`].
    Persisted {
        group: u64,
    },
    /// That group was not stored, and never will be. Told before the groups after it are.
    Refused {
        group: u64,
        code: Code,
    },
    /// The store's record with that serial, once for each [`crate::DiskEffect::Load`], in their order. `None`: it has
    /// nothing, and said so; that it could not be read is not for the engine.
    Loaded {
        serial: u64,
        record: Option<Record>,
    },
    /// The result of a call to the archive; see [`crate::ArchiveEffect`]. It is empty if something was kept,
    /// the answer otherwise.
    Archived {
        ticket: u64,
        answer: Result<Option<Box<AdminAnswer>>, Code>,
    },
    /// Time passed; see [`crate::Engine::next_deadline`].
    Tick,
}

impl Input {
    /// A worker's message about a delivery, without a token.
    pub const fn worker(conn: ConnId, delivery: Delivery, message: WorkerMessage) -> Self {
        Self::Worker { conn, delivery, token: None, message }
    }

    /// The same with that token, if it is a worker's message.
    #[must_use]
    pub const fn fenced(mut self, by: u64) -> Self {
        if let Self::Worker { token, .. } = &mut self {
            *token = Some(by);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As effects, inputs are moved by the hundred thousand a second.
    #[test]
    fn an_input_stays_small() {
        assert!(size_of::<Input>() <= 128, "{}", size_of::<Input>());
    }
}
