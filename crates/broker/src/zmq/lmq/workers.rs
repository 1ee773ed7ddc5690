//! Workers behind one connection, by their addresses.

use std::collections::BTreeMap;

use bytes::Bytes;
use turno_engine::{BorrowedPayload, Deliver, Input};
use turno_proto::lmq::{LmqCommand, LmqMessage};
use turno_proto::model::{Code, ConnId, Delivery, Slots, limits};

use super::payload;
use crate::zmq::addresses::Holder;
use crate::zmq::dialect::{AGAIN, DialectOutput, HANDLE};
use crate::zmq::frames::Frames;

/// One worker.
#[derive(Debug)]
struct LmqWorker {
    seat: ConnId,
    /// The addresses on top of its messages: none if it is the peer itself.
    top: Frames,
    /// Its address in the table of the endpoint.
    address: Frames,
    /// It takes messages.
    registered: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct LmqWorkers {
    /// The latest number of a worker; each has its own.
    last: u32,
    workers: BTreeMap<u32, LmqWorker>,
    /// Their numbers by the addresses on top of their messages, and by their seats.
    numbers: BTreeMap<Frames, u32>,
    by_seat: BTreeMap<ConnId, u32>,
}

impl LmqWorkers {
    /// REGISTER. A worker that is known has that many slots from now on.
    pub(super) fn register(
        &mut self,
        senders: &[Bytes],
        identity: &[Bytes],
        slots: u32,
        out: &mut DialectOutput<'_>,
    ) -> Result<(), Code> {
        let top = top_of(senders, identity);
        let number = match self.numbers.get(&top) {
            Some(number) => *number,
            None => self.add(top, identity, out).ok_or(Code::TooManyHandles)?,
        };
        let Some(worker) = self.workers.get_mut(&number) else { return Err(Code::Internal) };
        worker.registered = true;
        let (conn, slots) = (worker.seat, Slots::Limited(slots));
        let holder = Holder { conn: out.conn, seat: Some(conn), passes_on: !worker.top.is_empty() };
        if !worker.address.is_empty()
            && let Some(Holder { seat: Some(before), .. }) = out.endpoint.addresses().claim(&worker.address, holder)
            && before != conn
        {
            // The worker has come again over another connection. What it held there can still be answered there.
            out.put(Input::Deregister { conn: before, seq: AGAIN });
        }
        out.put(Input::RegisterKeeping { conn, seq: AGAIN, slots, name: String::new() });
        out.put(Input::Consume { conn, seq: AGAIN, handle: HANDLE, exclusive: false });
        Ok(())
    }

    /// A new worker gets a seat. If too many have one, the first that deregistered gives its seat up.
    fn add(&mut self, top: Frames, identity: &[Bytes], out: &mut DialectOutput<'_>) -> Option<u32> {
        if self.workers.len() >= limits::LMQ_WORKERS_MAX {
            let (number, _) = self.workers.iter().find(|(_, worker)| !worker.registered)?;
            let gone = self.workers.remove(&number.clone())?;
            self.numbers.remove(&gone.top);
            self.by_seat.remove(&gone.seat);
            out.put(Input::Disconnected { conn: gone.seat });
        }
        let seat = out.seat.take()?;
        let top: Frames = top.iter().map(|frame| Bytes::copy_from_slice(frame)).collect();
        let address = if top.is_empty() { identity.to_vec() } else { top.clone() };
        let (name, place) = (name_of(&address), out.endpoint.address(out.conn));
        let name = if name.is_empty() { format!("LMQ {place}") } else { name };
        out.put(Input::Connected { conn: seat, name, address: place });
        out.put(Input::Ready { conn: seat });
        super::work(seat, out.endpoint.settings().queue.clone(), out);
        self.last += 1;
        self.numbers.insert(top.clone(), self.last);
        self.by_seat.insert(seat, self.last);
        self.workers.insert(self.last, LmqWorker { seat, top, address, registered: false });
        Some(self.last)
    }

    /// DEREGISTER. False: nobody has that address.
    pub(super) fn deregister(&mut self, senders: &[Bytes], identity: &[Bytes], out: &mut DialectOutput<'_>) -> bool {
        let number = self.numbers.get(&top_of(senders, identity)).copied();
        let worker = number.and_then(|number| self.workers.get_mut(&number)).filter(|worker| worker.registered);
        let Some(worker) = worker else { return false };
        worker.registered = false;
        out.endpoint.addresses().release(&worker.address, worker.seat);
        out.put(Input::Deregister { conn: worker.seat, seq: AGAIN });
        true
    }

    /// INCREMENT. False: nobody has that address.
    pub(super) fn gives_back(&self, senders: &[Bytes], identity: &[Bytes], out: &mut DialectOutput<'_>) -> bool {
        let number = self.numbers.get(&top_of(senders, identity));
        let Some(worker) = number.and_then(|number| self.workers.get(number)) else { return false };
        out.put(Input::GiveBack { conn: worker.seat });
        true
    }

    pub(super) fn seat(&self, number: u32) -> Option<ConnId> {
        self.workers.get(&number).map(|worker| worker.seat)
    }

    pub(super) fn delivery(&self, deliver: &Deliver<BorrowedPayload<'_>>) -> Option<LmqMessage> {
        let number = self.by_seat.get(&deliver.conn)?;
        let worker = self.workers.get(number)?;
        let (id, arguments) = payload::delivered(deliver.payload);
        // A native message without a reply is settled by its answer; one of LMQ wants none.
        let command = if id.is_none() || deliver.wants_reply { LmqCommand::TrackExec } else { LmqCommand::Exec };
        let address = address_of(*number, deliver.delivery);
        let id = id.unwrap_or_else(|| address.slice(1..9));
        let message = LmqMessage::new(command, id, arguments);
        Some(LmqMessage { top: worker.top.clone(), senders: vec![address], ..message })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.workers.len() * (limits::MESSAGE_OVERHEAD_BYTES + limits::ZMQ_ENVELOPE_BYTES_MAX)
    }
}

/// The addresses on top of messages for a worker whose message had those senders: the way back. A worker that names its own
/// identity is the peer itself.
fn top_of(senders: &[Bytes], identity: &[Bytes]) -> Frames {
    if senders == identity { Frames::new() } else { senders.iter().rev().cloned().collect() }
}

/// An address for people.
fn name_of(address: &[Bytes]) -> String {
    let texts: Vec<String> = address.iter().map(|frame| frame.escape_ascii().to_string()).collect();
    let mut name = texts.join("/");
    name.truncate(limits::PEER_NAME_BYTES_MAX);
    name
}

/// The address under which a worker answers a delivery. No identity of ZeroMQ begins with a zero and is that long.
fn address_of(number: u32, delivery: Delivery) -> Bytes {
    let numbers = [delivery.index, delivery.stamp, number].map(u32::to_be_bytes);
    let mut address = vec![0];
    address.extend_from_slice(numbers.as_flattened());
    address.into()
}

/// The number of a worker and the delivery that such an address names.
pub(super) fn delivery_of(address: &[u8]) -> Option<(u32, Delivery)> {
    let [0, numbers @ ..] = address else { return None };
    let ([index, stamp, number], []) = numbers.as_chunks::<4>() else { return None };
    let [index, stamp, number] = [index, stamp, number].map(|bytes| u32::from_be_bytes(*bytes));
    Some((number, Delivery { index, stamp }))
}
