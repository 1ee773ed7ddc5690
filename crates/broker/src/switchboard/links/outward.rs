//! Effects to frames of a link.

use turno_engine::{Effect, Listener};
use turno_proto::model::link::{Forward, LinkWord};
use turno_proto::model::{Code, ConnId, Delivery, Payload, QueueName, limits};
use turno_proto::native::{Answer, Frame, HEADER_LEN, Raw, encode, encode_forward, encode_link_word};

use super::super::events::EventBytes;
use super::super::lines::{Lines, Talk};
use super::LinkTalk;

/// Nothing, where something was too long.
const NOTHING: Raw<'static> = Raw { headers: false, bytes: &[] };

impl Lines {
    /// The link of a connection that goes on.
    pub(in super::super) fn link_mut(&mut self, id: ConnId) -> Option<&mut LinkTalk> {
        match &mut self.get_mut(id).filter(|line| !line.is_doomed())?.talk {
            Talk::Link(talk) => Some(talk),
            Talk::Native(_) | Talk::Foreman(_) | Talk::Ring(_) => None,
        }
    }

    /// LINK_PROOF; the engine hears that the link is up once it has said all it has to say now.
    pub(in super::super) fn prove(&mut self, id: ConnId) {
        let now = self.now;
        let mut said = Vec::new();
        if self.link_mut(id).is_some_and(|talk| talk.session.prove(now, &mut said)) {
            self.write(id, |out| out.extend_from_slice(&said));
            self.proven.push(id);
        }
    }

    /// The number that OPEN is answered by is the handle: nothing else is answered so.
    pub(in super::super) fn open_over_link(&mut self, id: ConnId, handle: u32, queue: &QueueName) {
        let name = queue.as_str().as_bytes();
        self.write(id, |out| encode(&Frame::Open { seq: handle, handle, name }, out));
    }

    /// A message crosses. Slots of the other end limit how many do, as those of a worker limit its deliveries.
    pub(in super::super) fn forward(&mut self, id: ConnId, forward: &Forward) {
        if !self.bounces(id, forward.seq, &forward.payload) {
            self.write_delivery(id, |out| encode_forward(forward, out));
        }
    }

    /// Anything else that the other end is told.
    pub(in super::super) fn tell(&mut self, id: ConnId, mut word: LinkWord) {
        match &mut word {
            LinkWord::Offers(offers) => {
                while offers.len() > limits::OFFERS_MAX {
                    let rest = offers.split_off(limits::OFFERS_MAX);
                    let some = LinkWord::Offers(std::mem::replace(offers, rest));
                    self.write(id, |out| encode_link_word(&some, out));
                }
            }
            LinkWord::Presence(brokers) => brokers.truncate(limits::BROKERS_MAX),
            LinkWord::Broadcast(broadcast) if self.bounces(id, broadcast.seq, &broadcast.payload) => return,
            LinkWord::Event(forward) => {
                // Events wait apart from all else, and the oldest go if the link takes them too slowly.
                if self.link_mut(id).is_some_and(|talk| talk.fits(&forward.event.payload)) {
                    let mut frame = Vec::new();
                    encode_link_word(&word, &mut frame);
                    self.add_event(Listener { conn: id, or_close: false }, &mut EventBytes::new(&frame));
                }
                return;
            }
            LinkWord::Broadcast(_) | LinkWord::Relay(_) => {}
        }
        self.write(id, |out| encode_link_word(&word, out));
    }

    /// Whether a payload is too long for the other end: the engine hears that it did not cross.
    fn bounces(&mut self, id: ConnId, seq: u32, payload: &Payload) -> bool {
        let bounces = self.link_mut(id).is_some_and(|talk| !talk.fits(payload));
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
pub(in super::super) const fn is_settling(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Reply { more: false, .. }
            | Effect::FarAck { .. }
            | Effect::FarFail { .. }
            | Effect::Delivered { .. }
            | Effect::Undelivered { .. }
    )
}

/// Writes what is another frame over a link, or has none over other connections. False: it is the same.
pub(in super::super) fn write_over_link(effect: &Effect, bytes_max: u64, out: &mut Vec<u8>) -> bool {
    match effect {
        Effect::Reply { payload, seq, .. } | Effect::FarFail { payload, seq, .. } if !fits(payload, bytes_max) => {
            encode(&Frame::Undelivered { seq: *seq, code: Code::FrameTooLarge, raw: NOTHING }, out);
        }
        Effect::Undelivered { payload, seq, code, .. } if !fits(payload, bytes_max) => {
            encode(&Frame::Undelivered { seq: *seq, code: *code, raw: NOTHING }, out);
        }
        Effect::BroadcastAnswer { payload, seq, worker, name, .. } if !fits(payload, bytes_max) => {
            let (seq, worker, more, failed, raw) = (*seq, *worker, false, true, NOTHING);
            encode(&Frame::Answer(Answer { seq, worker, name, more, failed, raw }), out);
        }
        // Word that it goes on: the other end does without.
        Effect::Progress { payload, .. } if !fits(payload, bytes_max) => {}
        Effect::CancelDelivery { delivery, reason, .. } => {
            encode(&Frame::Cancel { seq: delivery.stamp, word: 0, reason: Some(*reason) }, out);
        }
        Effect::FarAck { seq, .. } => encode(&Frame::Ack { delivery: crossing(*seq) }, out),
        Effect::FarFail { seq, permanent, payload, .. } => {
            let (delivery, permanent, raw) = (crossing(*seq), *permanent, Raw::from(payload));
            encode(&Frame::Fail { delivery, permanent, raw }, out);
        }
        _ => return false,
    }
    true
}

const fn crossing(seq: u32) -> Delivery {
    Delivery { index: 0, stamp: seq }
}
