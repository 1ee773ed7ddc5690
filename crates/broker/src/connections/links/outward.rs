//! Frames of a link from effects.

use turno_engine::{Again, BroadcastAnswer, CallerMessage, LinkEffect, Listener};
use turno_proto::model::link::{Forward, LinkMessage};
use turno_proto::model::{Code, ConnId, Delivery, Payload, QueueName, limits};
use turno_proto::native::{Answer, Frame, HEADER_LEN, Raw, encode, encode_forward, encode_link_message};

use super::super::events::EventBytes;
use super::super::outward::write_message;
use super::super::table::{ConnectionTable, PeerProtocol};
use super::LinkConnection;

/// Nothing, where something was too long.
const NOTHING: Raw<'static> = Raw { headers: false, bytes: &[] };

impl ConnectionTable {
    /// The link of a connection that goes on.
    pub(in super::super) fn link_mut(&mut self, id: ConnId) -> Option<&mut LinkConnection> {
        match &mut self.get_mut(id).filter(|connection| !connection.is_doomed())?.protocol {
            PeerProtocol::Link(protocol) => Some(protocol),
            PeerProtocol::Native(_) | PeerProtocol::Foreman(_) | PeerProtocol::Ring(_) | PeerProtocol::Zmtp(_) => None,
        }
    }

    /// Does what the engine wants done at a link.
    pub(in super::super) fn link(&mut self, id: ConnId, effect: LinkEffect) {
        match effect {
            LinkEffect::Prove => self.prove(id),
            LinkEffect::Unlink { code } => self.unlinked.push((id, code)),
            LinkEffect::Open { handle, queue } => self.open_over_link(id, handle, &queue),
            LinkEffect::Forward(forward) => self.forward(id, &forward),
            LinkEffect::Message(message) => self.tell(id, *message),
            LinkEffect::Ack { seq } => {
                self.write_delivery(id, |out| encode(&Frame::Ack { delivery: crossing(seq) }, out));
            }
            LinkEffect::Fail { seq, again, payload } => self.fail_over_link(id, seq, again, &payload),
        }
    }

    fn fail_over_link(&mut self, id: ConnId, seq: u32, again: Again, payload: &Payload) {
        let fits = self.link_mut(id).is_some_and(|protocol| protocol.fits(payload));
        let (delivery, raw) = (crossing(seq), Raw::from(payload));
        self.write_delivery(id, |out| {
            if fits { encode(&Frame::Fail { delivery, again, raw }, out) } else { too_long(seq, out) }
        });
    }

    /// LINK_PROOF; the engine hears that the link is up once it has said all it has to say now.
    fn prove(&mut self, id: ConnId) {
        let now = self.now;
        let mut said = Vec::new();
        if self.link_mut(id).is_some_and(|protocol| protocol.session.prove(now, &mut said)) {
            self.write(id, |out| out.extend_from_slice(&said));
            self.proven.push(id);
        }
    }

    /// The number that OPEN is answered by is the handle: nothing else is answered so.
    fn open_over_link(&mut self, id: ConnId, handle: u32, queue: &QueueName) {
        let name = queue.as_str().as_bytes();
        self.write(id, |out| encode(&Frame::Open { seq: handle, handle, name }, out));
    }

    /// A message crosses. Slots of the other end limit how many do, as those of a worker limit its deliveries.
    fn forward(&mut self, id: ConnId, forward: &Forward) {
        if !self.bounces(id, forward.seq, &forward.payload) {
            self.write_delivery(id, |out| encode_forward(forward, out));
        }
    }

    /// Anything else that the other end is told.
    fn tell(&mut self, id: ConnId, mut message: LinkMessage) {
        match &mut message {
            LinkMessage::Offers(offers) => {
                while offers.len() > limits::OFFERS_MAX {
                    let rest = offers.split_off(limits::OFFERS_MAX);
                    let some = LinkMessage::Offers(std::mem::replace(offers, rest));
                    self.write(id, |out| encode_link_message(&some, out));
                }
            }
            LinkMessage::Presence(brokers) => brokers.truncate(limits::BROKERS_MAX),
            LinkMessage::Broadcast(broadcast) if self.bounces(id, broadcast.seq, &broadcast.payload) => return,
            LinkMessage::Event(forward) => {
                // Events wait apart from all else, and the oldest go if the link takes them too slowly.
                if self.link_mut(id).is_some_and(|protocol| protocol.fits(&forward.event.payload)) {
                    let mut frame = Vec::new();
                    encode_link_message(&message, &mut frame);
                    self.add_event(Listener { conn: id, or_close: false }, &mut EventBytes::new(&frame));
                }
                return;
            }
            LinkMessage::Broadcast(_) | LinkMessage::Relay(_) => {}
        }
        self.write(id, |out| encode_link_message(&message, out));
    }

    /// Whether a payload is too long for the other end: the engine hears that it did not cross.
    fn bounces(&mut self, id: ConnId, seq: u32, payload: &Payload) -> bool {
        let bounces = self.link_mut(id).is_some_and(|protocol| !protocol.fits(payload));
        if bounces {
            self.bounced.push((id, seq));
        }
        bounces
    }
}

/// Whether a frame with that payload is one that a client may send where so many bytes are the limit.
pub(super) fn fits(payload: &Payload, bytes_max: u64) -> bool {
    (HEADER_LEN + payload.len()) as u64 <= bytes_max
}

/// Whether it ends a crossing: there are no more of these than slots that were offered, so that the out-buffer need not
/// limit them.
pub(in super::super) const fn ends_crossing(message: &CallerMessage) -> bool {
    match message {
        CallerMessage::Reply { more, .. } => !*more,
        CallerMessage::Delivered | CallerMessage::Undelivered { .. } => true,
        CallerMessage::Progress { .. } | CallerMessage::BroadcastAnswer(_) | CallerMessage::BroadcastEnd(_) => false,
    }
}

/// A message to a caller over a link: the same frame as to a client, unless its payload is too long for the other end.
pub(in super::super) fn write_over_link(seq: u32, message: &CallerMessage, bytes_max: u64, out: &mut Vec<u8>) {
    match message {
        CallerMessage::Reply { payload, .. } if !fits(payload, bytes_max) => too_long(seq, out),
        CallerMessage::Undelivered { payload, code } if !fits(payload, bytes_max) => {
            encode(&Frame::Undelivered { seq, code: *code, raw: NOTHING }, out);
        }
        CallerMessage::BroadcastAnswer(BroadcastAnswer { payload, worker, name, .. }) if !fits(payload, bytes_max) => {
            let (worker, more, failed, raw) = (*worker, false, true, NOTHING);
            encode(&Frame::Answer(Answer { seq, worker, name, more, failed, raw }), out);
        }
        // Progress: the other end does without.
        CallerMessage::Progress { payload } if !fits(payload, bytes_max) => {}
        CallerMessage::Reply { .. }
        | CallerMessage::Progress { .. }
        | CallerMessage::Delivered
        | CallerMessage::Undelivered { .. }
        | CallerMessage::BroadcastAnswer(_)
        | CallerMessage::BroadcastEnd(_) => write_message(seq, message, out),
    }
}

/// The outcome of a crossing whose payload is too long for the other end.
fn too_long(seq: u32, out: &mut Vec<u8>) {
    encode(&Frame::Undelivered { seq, code: Code::FrameTooLarge, raw: NOTHING }, out);
}

const fn crossing(seq: u32) -> Delivery {
    Delivery { index: 0, stamp: seq }
}
