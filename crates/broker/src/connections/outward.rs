//! Frames from effects, written straight into the out-buffer of their connection.

use turno_engine::ring::PublicationRef;
use turno_engine::{
    BorrowedPayload, BroadcastAnswer, CallerMessage, Deliver, EventRef, ForemanOrder, Listener, NativeEffect,
    PeerEffect, PeerSink,
};
use turno_proto::model::{Code, ConnId, Cost, Delivery};
use turno_proto::native::{
    Answer, Deliver as DeliverFrame, Frame, Raw, encode, encode_admin_answer, encode_broadcast_end, encode_deliver,
    encode_publication,
};

use super::links::{Dial, ends_crossing, write_over_link};
use super::table::{ConnectionTable, PeerProtocol};

impl PeerSink for ConnectionTable {
    fn deliver(&mut self, deliver: Deliver<BorrowedPayload<'_>>) {
        if self.zmq.count > 0 && self.zmq_deliver(&deliver) {
            return;
        }
        let Deliver { conn, delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, payload } = deliver;
        let raw = Raw { headers: payload.headers, bytes: payload.bytes };
        let frame = DeliverFrame { delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, raw };
        match cost {
            Cost::Slots(_) => self.write_delivery(conn, |out| encode_deliver(&frame, out)),
            // No slots limit how many of these a worker may have, so the out-buffer does.
            Cost::Broadcast => self.write(conn, |out| encode_deliver(&frame, out)),
        }
    }

    fn event(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        self.spread(event, listeners);
    }

    fn publication(&mut self, conn: ConnId, publication: PublicationRef<'_>) {
        self.write(conn, |out| encode_publication(publication, out));
    }

    fn peer(&mut self, effect: PeerEffect) {
        if let Some(conn) = self.zmq_addressee(&effect) {
            self.tell_zmq(conn, effect);
            return;
        }
        match effect {
            // Only from another thread: an engine right here lends its deliveries.
            PeerEffect::Deliver(deliver) => self.deliver(deliver.lend()),
            PeerEffect::Caller { conn, seq, message } => self.tell_caller(conn, seq, &message),
            PeerEffect::Answer { conn, seq, result } => self.write(conn, |out| write_answer(seq, result, out)),
            PeerEffect::Stop { conn, delivery, reason } => self.stop(conn, delivery, reason),
            PeerEffect::Closing { conn, closing } => self.write(conn, |out| encode(&Frame::Closing { closing }, out)),
            PeerEffect::Native { conn, effect } => self.native(conn, &effect),
            PeerEffect::Link { conn, effect } => self.link(conn, effect),
            PeerEffect::Foreman { conn, order } => self.order(conn, *order),
            PeerEffect::Event { event, listeners } => self.spread(EventRef::from(&*event), &listeners),
            PeerEffect::Dial { target, address } => self.dials.push(Dial { target, address }),
            PeerEffect::Ring(effect) => self.for_the_ring(effect),
        }
    }
}

impl ConnectionTable {
    /// Tells a client, or a neighbour, what becomes of its message.
    fn tell_caller(&mut self, conn: ConnId, seq: u32, message: &CallerMessage) {
        let Some(connection) = self.with_room(conn) else { return };
        let before = connection.out.len();
        match &connection.protocol {
            PeerProtocol::Link(protocol) => {
                write_over_link(seq, message, protocol.session.peer_bytes_max(), &mut connection.out);
                if ends_crossing(message) { connection.add_slot_limited(before) } else { connection.stretch(before) }
            }
            PeerProtocol::Native(_) | PeerProtocol::Foreman(_) | PeerProtocol::Ring(_) | PeerProtocol::Zmtp(_) => {
                write_message(seq, message, &mut connection.out);
                connection.stretch(before);
            }
        }
        self.count_out(conn);
    }

    /// CANCEL of a delivery; one that crossed a link has a number there, and no place.
    fn stop(&mut self, conn: ConnId, delivery: Delivery, reason: Code) {
        let crossed = self.link_mut(conn).is_some();
        let word = if crossed { 0 } else { delivery.index };
        self.write(conn, |out| encode(&Frame::Cancel { seq: delivery.stamp, word, reason: Some(reason) }, out));
    }

    fn native(&mut self, conn: ConnId, effect: &NativeEffect) {
        match *effect {
            NativeEffect::Stored { seq, id, durability, duplicate } => {
                self.write(conn, |out| encode(&Frame::Stored { seq, durability, id, duplicate }, out));
            }
            NativeEffect::Consuming { seq, token } => {
                self.write(conn, |out| encode(&Frame::fenced(token, Frame::Ok { seq }), out));
            }
            NativeEffect::QueueFull { seq, handle } => {
                self.write(conn, |out| encode(&Frame::QueueFull { seq, handle }, out));
            }
            NativeEffect::QueueAvailable { seq, handle } => {
                self.write(conn, |out| encode(&Frame::QueueAvailable { seq, handle }, out));
            }
            NativeEffect::CancelQueue { handle, reason } => {
                self.write(conn, |out| encode(&Frame::CancelQueue { seq: 0, handle, reason: Some(reason) }, out));
            }
            NativeEffect::Admin { seq, ref answer } => self.write(conn, |out| encode_admin_answer(seq, answer, out)),
            NativeEffect::Pace => self.pace(conn),
        }
    }

    /// Tells a job worker something.
    fn order(&mut self, conn: ConnId, order: ForemanOrder) {
        let now = self.now;
        let mut last_work = std::mem::take(&mut self.last_work);
        let stays = self.foreman_mut(conn).map(|protocol| protocol.obey(now, order, &mut last_work));
        self.last_work = last_work;
        match stays {
            Some(true) => {}
            Some(false) => self.dismiss(conn),
            None => return,
        }
        self.stirred(conn);
    }
}

fn write_answer(seq: u32, result: Result<(), Code>, out: &mut Vec<u8>) {
    match result {
        Ok(()) => encode(&Frame::Ok { seq }, out),
        Err(code) => encode(&Frame::Error { seq, code, fatal: false, detail: code.text().what }, out),
    }
}

/// A message to a caller, as a frame.
pub(super) fn write_message(seq: u32, message: &CallerMessage, out: &mut Vec<u8>) {
    match message {
        CallerMessage::Reply { more, payload } => {
            encode(&Frame::Reply { seq, word: 0, more: *more, raw: Raw::from(payload) }, out);
        }
        CallerMessage::Progress { payload } => encode(&Frame::Progress { seq, word: 0, raw: Raw::from(payload) }, out),
        CallerMessage::Delivered => encode(&Frame::Delivered { seq }, out),
        CallerMessage::Undelivered { code, payload } => {
            encode(&Frame::Undelivered { seq, code: *code, raw: Raw::from(payload) }, out);
        }
        CallerMessage::BroadcastAnswer(answer) => {
            let BroadcastAnswer { worker, name, more, failed, payload } = answer;
            let (worker, more, failed, raw) = (*worker, *more, *failed, Raw::from(payload));
            encode(&Frame::Answer(Answer { seq, worker, name, more, failed, raw }), out);
        }
        CallerMessage::BroadcastEnd(end) => encode_broadcast_end(seq, end, out),
    }
}
