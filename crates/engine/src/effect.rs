//! What the engine wants done. Plain values, so that a test can compare the exact list.

use crate::archive::ArchiveCall;
use crate::jobs::ForemanOrder;
use crate::messages::disk::persist::{Persist, Put};
use crate::ring::{PublicationRef, RingEffect, RingWord};
use crate::topics::Listener;
use bytes::Bytes;
use std::sync::Arc;
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::link::{Forward, LinkWord};
use turno_proto::model::topic::{Event, EventRef};
use turno_proto::model::{BroadcastEnd, Closing, Code, ConnId, Delivery, Durability, MessageId, Payload, QueueName};

/// A delivery, borrowed from the engine: the body is not copied until it reaches the out-buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliver<'a> {
    /// The worker.
    pub conn: ConnId,
    /// What settles it.
    pub delivery: Delivery,
    /// The worker's handle of the queue.
    pub handle: u32,
    /// The message.
    pub id: MessageId,
    /// 1 for the first.
    pub attempt: u16,
    /// Slots it takes.
    pub cost: u16,
    /// Milliseconds left.
    pub deadline_ms: Option<u32>,
    /// Settled by REPLY; otherwise by ACK.
    pub wants_reply: bool,
    /// The token with which the worker has the queue to itself.
    pub token: Option<u64>,
    /// Whether the bytes begin with a header block.
    pub headers: bool,
    /// What it carries.
    pub bytes: &'a Bytes,
}

/// An event that an operator should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Workers of a queue were lost in a row, and none of them had settled anything. The next one waits so long for its
    /// first delivery.
    WorkersLost {
        /// Its name.
        queue: QueueName,
        /// How many.
        in_a_row: u32,
        /// The pause.
        wait_ms: u64,
    },
    /// A queue has more dead letters than `limits.dead`. None is deleted; they count against the memory limit.
    ManyDead {
        /// Its name.
        queue: QueueName,
        /// How many.
        dead: u64,
    },
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum Effect {
    Deliver {
        conn: ConnId,
        delivery: Delivery,
        handle: u32,
        id: MessageId,
        attempt: u16,
        cost: u16,
        deadline_ms: Option<u32>,
        wants_reply: bool,
        token: Option<u64>,
        payload: Payload,
    },
    Reply {
        conn: ConnId,
        seq: u32,
        more: bool,
        payload: Payload,
    },
    Progress {
        conn: ConnId,
        seq: u32,
        payload: Payload,
    },
    Delivered {
        conn: ConnId,
        seq: u32,
    },
    Undelivered {
        conn: ConnId,
        seq: u32,
        code: Code,
        payload: Payload,
    },
    /// What one consumer says to a broadcast.
    BroadcastAnswer {
        conn: ConnId,
        seq: u32,
        worker: u64,
        name: Box<str>,
        more: bool,
        failed: bool,
        payload: Payload,
    },
    BroadcastEnd {
        conn: ConnId,
        seq: u32,
        end: Box<BroadcastEnd>,
    },
    Stored {
        conn: ConnId,
        seq: u32,
        id: MessageId,
        durability: Durability,
        duplicate: bool,
    },
    Ok {
        conn: ConnId,
        seq: u32,
    },
    /// CONSUME was accepted, and nobody else may: OK with a token.
    Consuming {
        conn: ConnId,
        seq: u32,
        token: u64,
    },
    QueueFull {
        conn: ConnId,
        seq: u32,
        handle: u32,
    },
    QueueAvailable {
        conn: ConnId,
        seq: u32,
        handle: u32,
    },
    Error {
        conn: ConnId,
        seq: u32,
        code: Code,
    },
    /// The worker shall stop that delivery.
    CancelDelivery {
        conn: ConnId,
        delivery: Delivery,
        reason: Code,
    },
    /// The worker was dropped from that queue.
    CancelQueue {
        conn: ConnId,
        handle: u32,
        reason: Code,
    },
    Closing {
        conn: ConnId,
        closing: Closing,
    },
    Answer {
        conn: ConnId,
        seq: u32,
        answer: Box<AdminAnswer>,
    },
    /// An event for everyone named, the same bytes for each.
    Event {
        event: Arc<Event>,
        listeners: Vec<Listener>,
    },
    /// A word to a foreman's worker.
    Foreman {
        conn: ConnId,
        order: Box<ForemanOrder>,
    },
    /// A link is wanted to that address; [`crate::Input::Greeted`] or [`crate::Input::DialFailed`] says what came of it.
    Dial {
        target: u32,
        address: String,
    },
    /// The broker that was dialled may be told who this one is: LINK_PROOF.
    Prove {
        conn: ConnId,
    },
    /// The worker has much to read: [`crate::Input::HasRead`] is wanted when little of it is left.
    Pace {
        conn: ConnId,
    },
    /// The link ends, for that reason.
    Unlink {
        conn: ConnId,
        code: Code,
    },
    /// OPEN over a link.
    LinkOpen {
        conn: ConnId,
        handle: u32,
        queue: QueueName,
    },
    /// A message crosses a link: FORWARD.
    Forward {
        conn: ConnId,
        forward: Box<Forward>,
    },
    /// What the other end of a link is told.
    Link {
        conn: ConnId,
        word: Box<LinkWord>,
    },
    /// To the other end of a link: what crossed from there is settled.
    FarAck {
        conn: ConnId,
        seq: u32,
    },
    /// To the other end of a link: what crossed from there failed.
    FarFail {
        conn: ConnId,
        seq: u32,
        permanent: bool,
        payload: Payload,
    },
    /// What the broker's node of the ring wants done; never [`RingEffect::Deliver`].
    Ring {
        effect: RingEffect,
    },
    /// To be stored, together with all else of the same group; [`crate::Input::Persisted`] tells that it is. Groups
    /// have the numbers 1, 2, 3 …
    Persist {
        group: u64,
        op: Persist,
    },
    /// To be read from the store; [`crate::Input::Loaded`] brings it.
    Load {
        serial: u64,
    },
    /// For the archive; [`crate::Input::Archived`] brings its answer, if it is to give one. Calls have the numbers 1, 2,
    /// 3 … and are worked off in that order.
    Archive {
        ticket: u64,
        call: Box<ArchiveCall>,
    },
    /// The store had confirmed a message and does not have it any more. It is lost; someone should look.
    Missing {
        serial: u64,
    },
    /// For the operator; it changes nothing.
    Report(Report),
    /// The drain is over: requests given back while waiting, deliveries cut short at the deadline, and
    /// messages in memory that end with the broker.
    Drained {
        returned: u64,
        cut: u64,
        lost: u64,
    },
}

impl Effect {
    /// The connection it is for; `None` if it is for several, or for the broker itself.
    pub const fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Deliver { conn, .. }
            | Self::Reply { conn, .. }
            | Self::Progress { conn, .. }
            | Self::Delivered { conn, .. }
            | Self::Undelivered { conn, .. }
            | Self::BroadcastAnswer { conn, .. }
            | Self::BroadcastEnd { conn, .. }
            | Self::Stored { conn, .. }
            | Self::Ok { conn, .. }
            | Self::Consuming { conn, .. }
            | Self::QueueFull { conn, .. }
            | Self::QueueAvailable { conn, .. }
            | Self::Error { conn, .. }
            | Self::CancelDelivery { conn, .. }
            | Self::CancelQueue { conn, .. }
            | Self::Closing { conn, .. }
            | Self::Foreman { conn, .. }
            | Self::Prove { conn }
            | Self::Pace { conn }
            | Self::Unlink { conn, .. }
            | Self::LinkOpen { conn, .. }
            | Self::Forward { conn, .. }
            | Self::Link { conn, .. }
            | Self::FarAck { conn, .. }
            | Self::FarFail { conn, .. }
            | Self::Answer { conn, .. } => Some(*conn),
            Self::Event { .. }
            | Self::Dial { .. }
            | Self::Ring { .. }
            | Self::Persist { .. }
            | Self::Load { .. }
            | Self::Archive { .. }
            | Self::Missing { .. }
            | Self::Report(_)
            | Self::Drained { .. } => None,
        }
    }
}

impl Effect {
    /// Bytes of the payload it carries.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Deliver { payload, .. }
            | Self::Reply { payload, .. }
            | Self::Progress { payload, .. }
            | Self::BroadcastAnswer { payload, .. }
            | Self::Undelivered { payload, .. }
            | Self::FarFail { payload, .. } => payload.len(),
            Self::Forward { forward, .. } => forward.payload.len(),
            Self::Link { word, .. } => match &**word {
                LinkWord::Broadcast(broadcast) => broadcast.payload.len(),
                LinkWord::Event(forward) => forward.event.payload.len(),
                LinkWord::Offers(_) | LinkWord::Presence(_) | LinkWord::Relay(_) => 0,
            },
            Self::Event { event, .. } => event.payload.len(),
            Self::Answer { answer, .. } => match &**answer {
                AdminAnswer::Output { pieces, .. } => pieces.iter().map(|piece| piece.bytes.len()).sum(),
                AdminAnswer::Piece { bytes, .. } => bytes.len(),
                AdminAnswer::Events { events, .. } => events.iter().map(|event| event.payload.len()).sum(),
                _ => 0,
            },
            _ => 0,
        }
    }
}

impl From<Deliver<'_>> for Effect {
    fn from(deliver: Deliver<'_>) -> Self {
        let Deliver { conn, delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, headers, bytes } =
            deliver;
        let payload = Payload { headers, bytes: bytes.clone() };
        Self::Deliver { conn, delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, payload }
    }
}

impl From<Put<'_>> for Effect {
    fn from(put: Put<'_>) -> Self {
        Self::Persist { group: put.group, op: Persist::Put { serial: put.serial, record: put.to_record() } }
    }
}

/// Takes effects as they come. The shell encodes them on the spot; tests and the simulator collect them.
pub trait Sink {
    /// A delivery.
    fn deliver(&mut self, deliver: Deliver<'_>);
    /// A new message to be stored.
    fn put(&mut self, put: Put<'_>) {
        self.effect(Effect::from(put));
    }
    /// An event for everyone named, the same bytes for each.
    fn event(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        self.effect(Effect::Event { event: Arc::new(event.to_event()), listeners: listeners.to_vec() });
    }
    /// A publication on its way round, to the next member.
    fn publication(&mut self, conn: ConnId, publication: PublicationRef<'_>) {
        let word = RingWord::Publish(publication.to_publication());
        self.effect(Effect::Ring { effect: RingEffect::Say { conn, word } });
    }
    /// Everything else.
    fn effect(&mut self, effect: Effect);
}

impl Sink for Vec<Effect> {
    fn deliver(&mut self, deliver: Deliver<'_>) {
        self.push(Effect::from(deliver));
    }

    fn effect(&mut self, effect: Effect) {
        self.push(effect);
    }
}

/// Says OK or ERROR.
pub(crate) fn answer(conn: ConnId, seq: u32, result: Result<(), Code>, out: &mut impl Sink) {
    out.effect(match result {
        Ok(()) => Effect::Ok { conn, seq },
        Err(code) => Effect::Error { conn, seq, code },
    });
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
