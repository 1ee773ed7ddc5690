//! The role of a ZeroMQ peer in the engine, by its socket type and the role that its endpoint gives it.

use std::collections::VecDeque;

use bytes::Bytes;
use turno_engine::{BorrowedPayload, CallerMessage, Deliver, Input, NativeEffect};
use turno_proto::lmq::is_lmq;
use turno_proto::model::{Code, ConnId, Cost, Delivery, Mono, Payload, QueueName, Slots, limits};
use turno_proto::zmtp::{Message, SocketType};

use super::ask::RequestSocket;
use super::endpoint::{Count, Endpoint};
use super::frames::{Frames, PeerMessage, part};
use super::lmq::{self, Lmq};
use super::mdp::{self, MdpClient, MdpWorker, Speaker};
use super::push::PushSocket;
use super::settings::ZmqRole;
use super::topics::{SubSocket, publication};
use super::work::{PullSocket, RepWorker};
use crate::memory::MessageMemory;

/// The number of everything that is said to the engine before the first message. An error about it ends the connection.
pub(super) const SETUP: u32 = u32::MAX;
/// The number of what a worker with a seat of its own says to the engine. An error about it changes nothing.
pub(super) const AGAIN: u32 = SETUP - 1;
/// The handle of the one queue that a plain socket has.
pub(super) const HANDLE: u32 = 0;

/// Where a dialect puts what follows.
#[derive(Debug)]
pub(crate) struct DialectOutput<'a> {
    pub(crate) conn: ConnId,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) now: Mono,
    /// Memory that the engine has left for messages.
    pub(crate) memory: MessageMemory,
    pub(crate) inputs: &'a mut VecDeque<Input>,
    /// A number of a connection that has no socket, for a worker that is behind this one.
    pub(crate) seat: &'a mut Option<ConnId>,
    /// Messages for the peer that no effect of the engine is the reason for.
    pub(crate) says: &'a mut Vec<PeerMessage<'static>>,
}

impl DialectOutput<'_> {
    pub(super) fn put(&mut self, input: Input) {
        self.inputs.push_back(input);
    }

    pub(super) fn count(&self, what: Count) {
        self.endpoint.count(what);
    }

    /// A message of the peer is dropped and counted; the connection goes on.
    #[expect(clippy::unnecessary_wraps, reason = "the outcome of a message that was heard")]
    pub(super) fn drop_message(&self, what: Count) -> Result<(), Code> {
        self.count(what);
        Ok(())
    }

    /// The queue is known by the handle from now on.
    pub(super) fn open(&mut self, seq: u32, handle: u32, queue: QueueName) {
        self.put(Input::Open { conn: self.conn, seq, handle, queue });
    }

    /// The answer to a request that failed; without a frame for that it is counted.
    pub(super) fn failure(&self, code: Code, payload: &Payload) -> Option<Frames> {
        let Some(first) = &self.endpoint.settings().error_frame else {
            self.count(Count::Withheld);
            return None;
        };
        let mut frames = vec![Bytes::copy_from_slice(first.as_bytes()), Bytes::from_static(code.name().as_bytes())];
        if !payload.is_empty() {
            frames.extend(part(payload).frames);
        }
        Some(frames)
    }

    /// The peer works on a queue.
    pub(super) fn work(&mut self, queue: QueueName, slots: u32) {
        let (conn, seq) = (self.conn, SETUP);
        self.open(seq, HANDLE, queue);
        self.put(Input::Register { conn, seq, slots: Slots::Limited(slots), name: String::new() });
        self.put(Input::Consume { conn, seq, handle: HANDLE, exclusive: false });
    }
}

/// The translator of one connection.
#[derive(Debug)]
pub(crate) enum Dialect {
    Asks(RequestSocket),
    Works(RepWorker),
    Pushes(PushSocket),
    Pulls(PullSocket),
    Publishes,
    Subscribes(SubSocket),
    MdpClient(MdpClient),
    MdpWorker(MdpWorker),
    Lmq(Box<Lmq>),
}

impl Dialect {
    /// For a peer of that type. What a worker is to the engine is said at once, so that it gets work.
    pub(crate) fn begin(theirs: SocketType, out: &mut DialectOutput<'_>) -> Self {
        let settings = out.endpoint.settings();
        let (slots, queue) = (settings.slots.unwrap_or(limits::ZMQ_SLOTS), settings.queue.clone());
        match (theirs, settings.role) {
            (SocketType::Req | SocketType::Rep | SocketType::Dealer | SocketType::Router, ZmqRole::Lmq) => {
                Self::Lmq(Box::default())
            }
            (SocketType::Req, _) => Self::Asks(RequestSocket::new(true)),
            (SocketType::Dealer, ZmqRole::Client) => Self::Asks(RequestSocket::new(false)),
            (SocketType::Rep | SocketType::Router, _) | (SocketType::Dealer, ZmqRole::Worker) => {
                out.work(queue, if theirs == SocketType::Rep { 1 } else { slots });
                Self::Works(RepWorker)
            }
            (SocketType::Push, _) => {
                out.open(SETUP, HANDLE, queue);
                Self::Pushes(PushSocket::default())
            }
            (SocketType::Pull, _) => {
                out.work(queue, slots);
                Self::Pulls(PullSocket::default())
            }
            (SocketType::Pub | SocketType::Xpub, _) => Self::Publishes,
            // A PAIR socket has no counterpart, so that its handshake fails.
            (SocketType::Sub | SocketType::Xsub | SocketType::Pair, _) => Self::Subscribes(SubSocket::default()),
        }
    }

    /// A message came. An error is why the connection ends.
    pub(crate) fn hear(&mut self, message: &Message<'_>, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        out.count(Count::Received);
        if matches!(self, Self::Asks(asks) if asks.is_new()) {
            if is_lmq(message) {
                *self = Self::Lmq(Box::default());
            }
            match mdp::speaker(message, out.now) {
                Some(Speaker::Client(client)) => *self = Self::MdpClient(client),
                Some(Speaker::Worker(worker)) => *self = Self::MdpWorker(worker),
                None => {}
            }
        }
        match self {
            Self::MdpClient(client) => client.hear(message, out),
            Self::MdpWorker(worker) => worker.hear(message, out),
            Self::Lmq(lmq) => lmq.hear(message, out),
            Self::Asks(asks) => asks.hear(message, out),
            Self::Works(works) => works.hear(message, out),
            Self::Pushes(pushes) => pushes.hear(message, out),
            Self::Publishes => match publication(message, &out.endpoint.settings().topic)? {
                Some(event) => {
                    out.put(Input::Publish { conn: out.conn, seq: 0, confirm: false, event });
                    Ok(())
                }
                None => out.drop_message(Count::BadTopic),
            },
            // Messages of an XSUB socket beside subscriptions are for nobody.
            Self::Pulls(_) | Self::Subscribes(_) => out.drop_message(Count::Refused),
        }
    }

    /// Time passed. An error is why the connection ends. `read`: the peer is read from.
    pub(crate) fn tick(&mut self, read: bool, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        match self {
            Self::MdpWorker(worker) => worker.tick(read, out),
            Self::Pushes(pushes) => {
                pushes.give_held(out);
                Ok(())
            }
            Self::Asks(_)
            | Self::Works(_)
            | Self::Pulls(_)
            | Self::Publishes
            | Self::Subscribes(_)
            | Self::MdpClient(_)
            | Self::Lmq(_) => Ok(()),
        }
    }

    /// The peer wants publications that begin with these bytes, or wants them no more.
    pub(crate) fn hear_subscription(&mut self, prefix: &[u8], wants: bool, out: &mut DialectOutput<'_>) {
        if let Self::Subscribes(subscribes) = self {
            subscribes.hear(prefix, wants, out);
        }
    }

    /// A delivery as a message for the peer.
    pub(crate) fn delivery<'a>(&self, deliver: &Deliver<BorrowedPayload<'a>>) -> Option<PeerMessage<'a>> {
        match self {
            Self::Lmq(lmq) if deliver.cost != Cost::Broadcast => lmq.delivery(deliver),
            Self::Works(works) => Some(works.delivery(deliver)),
            Self::Pulls(_) => Some(PullSocket::delivery(deliver)),
            Self::MdpWorker(worker) => Some(worker.delivery(deliver)),
            Self::Asks(_)
            | Self::Pushes(_)
            | Self::Publishes
            | Self::Subscribes(_)
            | Self::MdpClient(_)
            | Self::Lmq(_) => None,
        }
    }

    /// A delivery for which [`Self::delivery`] has no message: LMQ refuses broadcasts.
    pub(crate) fn not_delivered(&self, deliver: &Deliver<BorrowedPayload<'_>>, out: &mut DialectOutput<'_>) {
        if matches!(self, Self::Lmq(_)) && deliver.cost == Cost::Broadcast {
            lmq::refuse_broadcast(deliver, out);
        }
    }

    /// The delivery is among `waiting` bytes that wait to be written.
    pub(crate) fn queued(&mut self, delivery: Delivery, waiting: usize) {
        if let Self::Pulls(pulls) = self {
            pulls.queued(delivery, waiting);
        }
    }

    /// So many bytes were written to the peer.
    pub(crate) fn wrote(&mut self, bytes: usize, out: &mut DialectOutput<'_>) {
        if let Self::Pulls(pulls) = self {
            pulls.wrote(bytes, out);
        }
    }

    /// An effect about a message of the peer, as a message for it.
    pub(crate) fn caller_message(
        &mut self,
        seq: u32,
        message: CallerMessage,
        out: &mut DialectOutput<'_>,
    ) -> Option<PeerMessage<'static>> {
        match self {
            Self::Asks(asks) => asks.caller_message(seq, message, out),
            Self::MdpClient(client) => client.caller_message(seq, message, out),
            Self::Lmq(lmq) => lmq.caller_message(seq, message, out),
            Self::Pushes(pushes) => {
                if let CallerMessage::Undelivered { code, .. } = message {
                    pushes.refused(seq, code, out);
                }
                None
            }
            Self::Works(_) | Self::Pulls(_) | Self::Publishes | Self::Subscribes(_) | Self::MdpWorker(_) => None,
        }
    }

    /// OK or ERROR of the engine. An error is why the connection ends.
    pub(crate) fn answer(
        &mut self,
        seq: u32,
        result: Result<(), Code>,
        out: &mut DialectOutput<'_>,
    ) -> Result<(), Code> {
        match result {
            Err(code) if seq == SETUP => Err(code),
            Err(_) if seq == AGAIN => Ok(()),
            Err(_) => {
                if let Self::MdpClient(client) = self
                    && client.not_shown(seq, out)
                {
                    return Ok(());
                }
                out.count(Count::Refused);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Handles an effect for clients and workers alone. An error is why the connection ends.
    pub(crate) fn native(&mut self, effect: &NativeEffect, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let (conn, seq) = (out.conn, SETUP);
        match *effect {
            NativeEffect::Stored { seq, .. } => {
                if let Self::Pushes(pushes) = self {
                    pushes.stored(seq, out);
                }
            }
            // Somebody has the queue to itself: this peer works on it as soon as it is free.
            NativeEffect::QueueFull { handle, .. } => out.put(Input::QueueAvailableNotify { conn, seq, handle }),
            NativeEffect::QueueAvailable { handle, .. } => {
                out.put(Input::Consume { conn, seq, handle, exclusive: false });
            }
            // It cannot be told; when it has connected again it begins anew.
            NativeEffect::CancelQueue { reason, .. } => return Err(reason),
            NativeEffect::Admin { seq, ref answer } => {
                if let Self::MdpClient(client) = self {
                    client.shown(seq, answer, out);
                }
            }
            NativeEffect::Consuming { .. } | NativeEffect::Pace => {}
        }
        Ok(())
    }

    /// Messages of the peer that are not ended: they limit what is read from it.
    pub(crate) fn unended(&self) -> usize {
        match self {
            Self::Asks(asks) => asks.len(),
            Self::MdpClient(client) => client.len(),
            Self::Lmq(lmq) => lmq.len(),
            Self::Pushes(pushes) => pushes.len(),
            Self::Works(_) | Self::Pulls(_) | Self::Publishes | Self::Subscribes(_) | Self::MdpWorker(_) => 0,
        }
    }

    /// Whether a message that the engine refuses is lost without anybody hearing of it.
    pub(crate) const fn loses(&self) -> bool {
        matches!(self, Self::Pushes(_))
    }

    /// Messages that wait in here for room in the engine. They are lost with the connection.
    pub(crate) fn held(&self) -> usize {
        if let Self::Pushes(pushes) = self { pushes.held() } else { 0 }
    }

    /// Whether what comes are replies, which make room.
    pub(crate) fn settles(&self) -> bool {
        match self {
            Self::Works(_) | Self::MdpWorker(_) => true,
            Self::Lmq(lmq) => lmq.has_workers(),
            _ => false,
        }
    }

    /// Bytes that it keeps.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Asks(asks) => asks.held_bytes(),
            Self::Subscribes(subscribes) => subscribes.held_bytes(),
            Self::MdpClient(client) => client.held_bytes(),
            Self::Lmq(lmq) => lmq.held_bytes(),
            Self::Pushes(pushes) => pushes.held_bytes(),
            Self::Works(_) | Self::Pulls(_) | Self::Publishes | Self::MdpWorker(_) => 0,
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
