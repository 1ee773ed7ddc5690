//! Effects to frames, written straight into the out-buffer of the connection they are for.

use turno_engine::ring::PublicationRef;
use turno_engine::{Deliver, Effect, EventRef, ForemanOrder, Listener, Sink};
use turno_proto::model::ConnId;
use turno_proto::native::{
    Answer, Deliver as DeliverFrame, Frame, Raw, encode, encode_admin_answer, encode_broadcast_end, encode_deliver,
    encode_publication,
};

use super::lines::{Drained, Lines, Talk};
use super::links::{Dial, is_settling, write_over_link};

impl Sink for Lines {
    fn deliver(&mut self, deliver: Deliver<'_>) {
        let Deliver { conn, delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, headers, bytes } =
            deliver;
        let raw = Raw { headers, bytes };
        let frame = DeliverFrame { delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, raw };
        if beside_slots(cost) {
            self.write(conn, |out| encode_deliver(&frame, out));
        } else {
            self.write_delivery(conn, |out| encode_deliver(&frame, out));
        }
    }

    fn event(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        self.spread(event, listeners);
    }

    fn publication(&mut self, conn: ConnId, publication: PublicationRef<'_>) {
        self.write(conn, |out| encode_publication(publication, out));
    }

    fn effect(&mut self, effect: Effect) {
        let Some(conn) = effect.conn() else { return self.for_no_one_peer(effect) };
        match effect {
            Effect::Foreman { order, .. } => self.order(conn, *order),
            // Only from another thread: an engine right here lends its deliveries.
            Effect::Deliver { cost, .. } if !beside_slots(cost) => self.write_delivery(conn, |out| write(&effect, out)),
            Effect::Forward { forward, .. } => self.forward(conn, &forward),
            Effect::Link { word, .. } => self.tell(conn, *word),
            Effect::Prove { .. } => self.prove(conn),
            Effect::Pace { .. } => self.pace(conn),
            Effect::Unlink { code, .. } => self.unlinked.push((conn, code)),
            Effect::LinkOpen { handle, queue, .. } => self.open_over_link(conn, handle, &queue),
            _ => self.write_effect(conn, &effect),
        }
    }
}

impl Lines {
    fn for_no_one_peer(&mut self, effect: Effect) {
        match effect {
            Effect::Drained { returned, cut, lost } => self.drained = Some(Drained { returned, cut, lost }),
            Effect::Event { event, listeners } => self.spread(EventRef::from(&*event), &listeners),
            Effect::Dial { target, address } => self.dials.push(Dial { target, address }),
            Effect::Ring { effect } => self.for_the_ring(effect),
            _ => {}
        }
    }

    fn write_effect(&mut self, conn: ConnId, effect: &Effect) {
        let Some(line) = self.with_room(conn) else { return };
        let before = line.out.len();
        if let Talk::Link(talk) = &line.talk {
            if !write_over_link(effect, talk.session.peer_bytes_max(), &mut line.out) {
                write(effect, &mut line.out);
            }
            if is_settling(effect) {
                line.owe(before);
                return self.count_out(conn);
            }
        } else {
            write(effect, &mut line.out);
        }
        line.stretch(before);
        self.count_out(conn);
    }

    /// Tells a job worker something.
    fn order(&mut self, conn: ConnId, order: ForemanOrder) {
        let now = self.now;
        let mut last_work = std::mem::take(&mut self.last_work);
        let stays = self.foreman_mut(conn).map(|talk| talk.obey(now, order, &mut last_work));
        self.last_work = last_work;
        match stays {
            Some(true) => {}
            Some(false) => self.dismiss(conn),
            None => return,
        }
        self.stirred(conn);
    }
}

/// A delivery of a broadcast. No slots limit how many of them a worker may have, so the out-buffer does.
const fn beside_slots(cost: u16) -> bool {
    cost == 0
}

fn write(effect: &Effect, out: &mut Vec<u8>) {
    match effect {
        Effect::Reply { seq, more, payload, .. } => {
            encode(&Frame::Reply { seq: *seq, word: 0, more: *more, raw: Raw::from(payload) }, out);
        }
        Effect::Progress { seq, payload, .. } => {
            encode(&Frame::Progress { seq: *seq, word: 0, raw: Raw::from(payload) }, out);
        }
        Effect::Delivered { seq, .. } => encode(&Frame::Delivered { seq: *seq }, out),
        Effect::Undelivered { seq, code, payload, .. } => {
            encode(&Frame::Undelivered { seq: *seq, code: *code, raw: Raw::from(payload) }, out);
        }
        Effect::BroadcastAnswer { seq, worker, name, more, failed, payload, .. } => {
            let (seq, worker, more, failed, raw) = (*seq, *worker, *more, *failed, Raw::from(payload));
            encode(&Frame::Answer(Answer { seq, worker, name, more, failed, raw }), out);
        }
        Effect::BroadcastEnd { seq, end, .. } => encode_broadcast_end(*seq, end, out),
        Effect::Stored { seq, id, durability, duplicate, .. } => {
            let (seq, durability, id, duplicate) = (*seq, *durability, *id, *duplicate);
            encode(&Frame::Stored { seq, durability, id, duplicate }, out);
        }
        Effect::Ok { seq, .. } => encode(&Frame::Ok { seq: *seq }, out),
        Effect::Consuming { seq, token, .. } => {
            encode(&Frame::fenced(*token, Frame::Ok { seq: *seq }), out);
        }
        Effect::QueueFull { seq, handle, .. } => encode(&Frame::QueueFull { seq: *seq, handle: *handle }, out),
        Effect::QueueAvailable { seq, handle, .. } => {
            encode(&Frame::QueueAvailable { seq: *seq, handle: *handle }, out);
        }
        Effect::Error { seq, code, .. } => {
            encode(&Frame::Error { seq: *seq, code: *code, fatal: false, detail: code.text().what }, out);
        }
        Effect::CancelDelivery { delivery, reason, .. } => {
            encode(&Frame::Cancel { seq: delivery.stamp, word: delivery.index, reason: Some(*reason) }, out);
        }
        Effect::CancelQueue { handle, reason, .. } => {
            encode(&Frame::CancelQueue { seq: 0, handle: *handle, reason: Some(*reason) }, out);
        }
        Effect::Closing { closing, .. } => encode(&Frame::Closing { closing: *closing }, out),
        Effect::Answer { seq, answer, .. } => encode_admin_answer(*seq, answer, out),
        Effect::Deliver { delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, payload, .. } => {
            let (delivery, handle, id, attempt) = (*delivery, *handle, *id, *attempt);
            let (cost, deadline_ms, wants_reply, raw) = (*cost, *deadline_ms, *wants_reply, Raw::from(payload));
            let token = *token;
            let frame = DeliverFrame { delivery, handle, id, attempt, cost, deadline_ms, wants_reply, token, raw };
            encode_deliver(&frame, out);
        }
        // For several, for a job worker, for a link, or for the broker itself.
        Effect::Dial { .. }
        | Effect::Pace { .. }
        | Effect::Prove { .. }
        | Effect::Ring { .. }
        | Effect::Unlink { .. }
        | Effect::LinkOpen { .. }
        | Effect::Forward { .. }
        | Effect::Link { .. }
        | Effect::FarAck { .. }
        | Effect::FarFail { .. }
        | Effect::Event { .. }
        | Effect::Foreman { .. }
        | Effect::Persist { .. }
        | Effect::Load { .. }
        | Effect::Archive { .. }
        | Effect::Missing { .. }
        | Effect::Report(_)
        | Effect::Drained { .. } => {}
    }
}
