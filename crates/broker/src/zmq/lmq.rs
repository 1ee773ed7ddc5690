//! LMQ: clients ask, workers are known by their addresses, and what has an address on top passes through.
//!
//! A connection is a client, and the way to any number of workers: itself, and others for which its peer passes messages on. Each
//! worker has a *seat*, a number of a connection that has no socket, so that for the engine it is a worker like others.

mod payload;
mod workers;

use bytes::Bytes;
use tracing::info;
use turno_engine::{BorrowedPayload, CallerMessage, Deliver, Input, WorkerMessage};
use turno_proto::lmq::{LmqCommand, LmqFault, LmqMessage, Order};
use turno_proto::model::{Again, Code, ConnId, Delivery, Outgoing, Payload, QueueName};
use turno_proto::zmtp::Message;

use self::workers::LmqWorkers;
use super::addresses::Holder;
use super::calls::{Call, Calls};
use super::dialect::{DialectOutput, HANDLE, SETUP};
use super::endpoint::Count;
use super::frames::{Envelope, Frames, PeerMessage};
use crate::log_limit::{self, LogKind};

/// The number of what passes through: no request has it.
const PASSING: u32 = 0;

/// The state of a connection that speaks LMQ.
#[derive(Debug, Default)]
pub(crate) struct Lmq {
    /// A message came: the identity of the peer is its address.
    known: bool,
    /// The identity of the peer, as an address of one frame; empty if it has none.
    identity: Frames,
    /// The engine knows the queue.
    opened: bool,
    calls: Calls,
    workers: LmqWorkers,
}

impl Lmq {
    /// A message came.
    pub(super) fn hear(&mut self, message: &Message<'_>, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        self.introduce(out);
        let lmq = match LmqMessage::decode(message) {
            Ok(lmq) => lmq,
            Err(fault) => return drop_bad(fault, out),
        };
        if !lmq.top.is_empty() {
            return self.pass(lmq, out);
        }
        match lmq.command {
            LmqCommand::Ping => {
                out.says.push(written(lmq.answer(LmqCommand::Pong, Frames::new())));
                Ok(())
            }
            LmqCommand::Exec | LmqCommand::TrackExec => match lmq.order() {
                Some(order) => self.obey(order, &lmq, out),
                None => self.ask(&lmq, out),
            },
            // It is there, which ZMTP's own heartbeats show as well; and it knows where it is.
            LmqCommand::Pong | LmqCommand::TrackAddress => Ok(()),
            LmqCommand::Response => out.drop_message(Count::BadEnvelope),
        }
    }

    /// The first message: the identity of the peer is an address from now on.
    fn introduce(&mut self, out: &DialectOutput<'_>) {
        if std::mem::replace(&mut self.known, true) {
            return;
        }
        let identity = out.endpoint.identity(out.conn);
        if !identity.is_empty() {
            self.identity = vec![identity];
            let holder = Holder { conn: out.conn, seat: None, passes_on: false };
            // A worker keeps its address until another registers.
            if out.endpoint.addresses().holder(&self.identity[0]).is_none_or(|holder| holder.seat.is_none()) {
                out.endpoint.addresses().claim(&self.identity, holder);
            }
        }
    }

    /// A request. Its id and the way back stay here; a worker sees the same id.
    fn ask(&mut self, lmq: &LmqMessage, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let Some(payload) = payload::request(lmq)? else { return out.drop_message(Count::BadEnvelope) };
        if !self.opened {
            self.opened = true;
            out.open(SETUP, HANDLE, out.endpoint.settings().queue.clone());
        }
        let back = Envelope::of_frames(lmq.senders.iter().rev().map(|frame| &**frame));
        let seq = self.calls.insert(Call::new(back, Some(Bytes::copy_from_slice(&lmq.id))));
        let retries = Some(out.endpoint.settings().retries);
        let no_reply = lmq.command == LmqCommand::Exec;
        let message = Outgoing { retries, no_reply, ..Outgoing::new(seq, HANDLE, payload) };
        out.put(Input::Request { conn: out.conn, message });
        Ok(())
    }

    /// An order of a worker.
    fn obey(&mut self, order: Order, lmq: &LmqMessage, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let done = match order {
            Order::Register(Ok(slots)) => self.workers.register(&lmq.senders, &self.identity, slots, out),
            Order::Register(Err(_)) => Err(Code::BadSlots),
            // An address that nobody has is ignored without an answer.
            Order::Deregister if !self.workers.deregister(&lmq.senders, &self.identity, out) => {
                return out.drop_message(Count::BadEnvelope);
            }
            Order::Increment if !self.workers.gives_back(&lmq.senders, &self.identity, out) => {
                return out.drop_message(Count::BadEnvelope);
            }
            Order::Deregister | Order::Increment => Ok(()),
        };
        let arguments = match done {
            Ok(()) => Frames::new(),
            Err(code) => {
                out.count(Count::Refused);
                [code.name(), code.text().what].map(|text| Bytes::from_static(text.as_bytes())).to_vec()
            }
        };
        if lmq.command == LmqCommand::TrackExec {
            out.says.push(written(lmq.answer(LmqCommand::Response, arguments)));
        }
        Ok(())
    }

    /// A message with an address on top: an answer to a delivery, or for somebody who is connected.
    fn pass(&self, mut lmq: LmqMessage, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let address = lmq.top.remove(0);
        if let Some((number, delivery)) = workers::delivery_of(&address) {
            let Some(seat) = self.workers.seat(number) else { return out.drop_message(Count::BadEnvelope) };
            return pass_to_caller(seat, delivery, &lmq, out);
        }
        let Some(holder) = out.endpoint.addresses().holder(&address) else {
            if log_limit::admits(LogKind::Protocol) {
                info!(address = %address.escape_ascii(), "dropping an LMQ message for an address that nobody has");
            }
            return out.drop_message(Count::Refused);
        };
        if holder.passes_on {
            lmq.top.insert(0, address);
        }
        lmq.senders.extend(self.identity.iter().cloned());
        if let Some(payload) = payload::whole(lmq)? {
            out.put(Input::Relay { to: holder.conn, payload });
        }
        Ok(())
    }

    /// A delivery as a message for the worker with that seat.
    pub(super) fn delivery(&self, deliver: &Deliver<BorrowedPayload<'_>>) -> Option<PeerMessage<'static>> {
        self.workers.delivery(deliver).map(written)
    }

    /// An effect about a message of the peer, as a message for it.
    pub(super) fn caller_message(
        &mut self,
        seq: u32,
        message: CallerMessage,
        out: &DialectOutput<'_>,
    ) -> Option<PeerMessage<'static>> {
        let (call, arguments) = match message {
            CallerMessage::Progress { payload } if seq == PASSING => {
                return Some(PeerMessage::with(Envelope::None, Frames::new(), payload));
            }
            // The worker has said something else to its caller.
            CallerMessage::Progress { payload } => {
                let envelope = self.calls.get(seq)?.envelope.clone();
                return Some(PeerMessage::frames(envelope, payload::passed(&payload)?.frames()));
            }
            CallerMessage::Reply { more: true, payload } => {
                self.calls.add_piece(seq, payload::arguments(&payload));
                return None;
            }
            CallerMessage::Reply { more: false, payload } => {
                let mut call = self.calls.take(seq)?;
                let mut arguments = std::mem::take(&mut call.pieces);
                arguments.extend(payload::arguments(&payload));
                (call, arguments)
            }
            CallerMessage::Undelivered { code, payload } => (self.calls.take(seq)?, out.failure(code, &payload)?),
            CallerMessage::Delivered => {
                self.calls.take(seq);
                return None;
            }
            CallerMessage::BroadcastAnswer(_) | CallerMessage::BroadcastEnd(_) => return None,
        };
        let id = call.service.unwrap_or_default();
        Some(PeerMessage::frames(call.envelope, LmqMessage::new(LmqCommand::Response, id, arguments).frames()))
    }

    /// Requests that limit what is read. Not of a connection with workers: their answers may be all that these requests wait for.
    pub(super) fn len(&self) -> usize {
        if self.workers.is_empty() { self.calls.len() } else { 0 }
    }

    pub(super) fn has_workers(&self) -> bool {
        !self.workers.is_empty()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.calls.held_bytes() + self.workers.held_bytes()
    }
}

/// An answer, which ends the delivery; or another message for its caller, which only callers of LMQ hear.
fn pass_to_caller(seat: ConnId, delivery: Delivery, lmq: &LmqMessage, out: &mut DialectOutput<'_>) -> Result<(), Code> {
    let message = if lmq.command == LmqCommand::Response {
        payload::answer(lmq)?.map(|payload| WorkerMessage::Reply { more: false, payload })
    } else {
        payload::passing(lmq)?.map(|payload| WorkerMessage::Progress { payload })
    };
    let Some(message) = message else { return out.drop_message(Count::BadEnvelope) };
    out.put(Input::worker(seat, delivery, message));
    Ok(())
}

/// A broadcast takes no slot, but its worker would give one back: it fails at once.
pub(super) fn refuse_broadcast(deliver: &Deliver<BorrowedPayload<'_>>, out: &mut DialectOutput<'_>) {
    let payload = Payload::body("LMQ has no broadcasts");
    out.put(Input::worker(deliver.conn, deliver.delivery, WorkerMessage::Fail { again: Again::Never, payload }));
}

/// A message for a peer, with its addresses among the frames.
fn written(lmq: LmqMessage) -> PeerMessage<'static> {
    PeerMessage::frames(Envelope::None, lmq.frames())
}

fn drop_bad(fault: LmqFault, out: &DialectOutput<'_>) -> Result<(), Code> {
    if log_limit::admits(LogKind::Protocol) {
        info!(reason = %fault, "dropping a message that is not LMQ");
    }
    out.drop_message(Count::BadEnvelope)
}

/// The worker of a seat works on a queue.
fn work(seat: ConnId, queue: QueueName, out: &mut DialectOutput<'_>) {
    out.put(Input::Open { conn: seat, seq: SETUP, handle: HANDLE, queue });
}

#[cfg(test)]
mod tests;
