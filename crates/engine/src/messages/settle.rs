//! Settlement of deliveries by the workers that hold them. The right to settle belongs to the worker that holds it,
//! once.

use turno_proto::model::view::Counters;
use turno_proto::model::{Again, ConnId, Delivery, Payload};

use crate::effect::{CallerMessage, LinkEffect, PeerEffect, Sink};
use crate::input::WorkerMessage;
use crate::messages::Messages;
use crate::messages::broadcast::is_kept;
use crate::messages::retry::AttemptFailure;
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::Lane;
use crate::messages::table::message::{Flags, Message, MessageEnd, MessageStage, Wants};
use crate::messages::worker_lost::WorkerTrust;

/// A delivery that is its holder's to settle.
enum HeldDelivery {
    /// Somebody waits for the outcome, or the message lives on with it.
    Live(u32),
    /// Its message is over; only the slots are left to give back.
    Stopping(u32),
}

impl Messages {
    /// A worker's message about a delivery. Under a token that is not the queue's it counts for nothing.
    #[inline]
    pub(crate) fn worker_says(
        &mut self,
        conn: ConnId,
        delivery: Delivery,
        token: Option<u64>,
        message: WorkerMessage,
        out: &mut impl Sink,
    ) {
        if token.is_some_and(|token| !self.passes_fence(token, conn, delivery)) {
            return;
        }
        match message {
            WorkerMessage::Reply { more, payload } => self.reply(conn, delivery, more, payload, out),
            WorkerMessage::Ack => self.ack(conn, delivery, out),
            WorkerMessage::Fail { again, payload } => self.fail(conn, delivery, again, payload, out),
            WorkerMessage::Progress { payload } => self.progress(conn, delivery, payload, out),
            WorkerMessage::Extend { lease_ms } => self.extend(conn, delivery, lease_ms),
        }
    }

    /// REPLY: a piece, or the end, of the answer.
    pub(crate) fn reply(
        &mut self,
        conn: ConnId,
        delivery: Delivery,
        more: bool,
        payload: Payload,
        out: &mut impl Sink,
    ) {
        if let Some(index) = self.claim(conn, delivery, !more) {
            self.answers(conn, index, more, payload, out);
        }
    }

    /// The holder of a message answers it.
    fn answers(&mut self, conn: ConnId, index: u32, more: bool, payload: Payload, out: &mut impl Sink) {
        let message = &self.messages[index];
        if let MessageStage::Asked { .. } = message.state {
            return self.part_says(conn, index, more, false, payload, out);
        }
        if message.wants == Wants::Reply {
            match message.origin {
                Some(origin) => out.peer(origin.hears(CallerMessage::Reply { more, payload })),
                None if more => {}
                None => self.stats.counters.unclaimed += 1,
            }
        }
        if more {
            if let MessageStage::Held { streamed, .. } = &mut self.messages[index].state {
                *streamed = true;
            }
        } else {
            self.done(conn, index, |counters| &mut counters.replied, out);
        }
    }

    /// ACK: done. A request that is only acknowledged has an empty reply.
    pub(crate) fn ack(&mut self, conn: ConnId, delivery: Delivery, out: &mut impl Sink) {
        let Some(index) = self.claim(conn, delivery, true) else { return };
        let message = &self.messages[index];
        if message.wants == Wants::Reply {
            return self.answers(conn, index, false, Payload::default(), out);
        }
        self.done(conn, index, |counters| &mut counters.acked, out);
    }

    /// It is settled. The owner of a send that came over a link has to hear of that, whatever the worker said.
    fn done(&mut self, conn: ConnId, index: u32, counter: impl Fn(&mut Counters) -> &mut u64, out: &mut impl Sink) {
        let message = &self.messages[index];
        let origin = message.origin.filter(|_| message.wants == Wants::Settling);
        self.settled(conn, index, counter);
        self.settlement_over(conn, index);
        if let Some(origin) = origin {
            out.peer(PeerEffect::Link { conn: origin.conn(), effect: LinkEffect::Ack { seq: origin.seq } });
        }
    }

    pub(crate) fn fail(
        &mut self,
        conn: ConnId,
        delivery: Delivery,
        again: Again,
        payload: Payload,
        out: &mut impl Sink,
    ) {
        let Some(index) = self.claim(conn, delivery, true) else { return };
        if let MessageStage::Asked { .. } = self.messages[index].state {
            return self.part_says(conn, index, false, true, payload, out);
        }
        let record = self.peers.worker_mut(conn);
        record.failed += 1;
        if record.trust != WorkerTrust::Full {
            self.end_trial(conn);
        }
        if !self.peers.worker_mut(conn).standings.is_empty() {
            self.clear_standing(conn, index);
        }
        self.count_settled(index, |counters| &mut counters.failed);
        self.attempt_over(index, AttemptFailure::Failed { payload, again }, out);
    }

    /// PROGRESS goes to the caller as it is.
    pub(crate) fn progress(&mut self, conn: ConnId, delivery: Delivery, payload: Payload, out: &mut impl Sink) {
        let Some(index) = self.claim(conn, delivery, false) else { return };
        if let Some(origin) = self.messages[index].origin {
            out.peer(origin.hears(CallerMessage::Progress { payload }));
        }
    }

    fn extend(&mut self, conn: ConnId, delivery: Delivery, lease_ms: u32) {
        if let Some(index) = self.claim(conn, delivery, false)
            && self.settings.lease_ms.is_some()
            && matches!(self.messages[index].state, MessageStage::Held { .. })
        {
            self.arm_lease(index, u64::from(lease_ms));
        }
    }

    /// The message of a delivery, if `conn` holds it; otherwise the frame is counted and dropped (S1.30). A
    /// settling frame for a message that is over gives the slots back and nothing else.
    fn claim(&mut self, conn: ConnId, delivery: Delivery, settles: bool) -> Option<u32> {
        match self.held_by(conn, delivery) {
            Some(HeldDelivery::Live(index)) => Some(index),
            Some(HeldDelivery::Stopping(index)) => {
                if settles {
                    self.stats.counters.late += 1;
                    self.settlement_over(conn, index);
                }
                None
            }
            // Of a broadcast that wanted no reply nothing was kept, and nothing need be said.
            None if !is_kept(delivery) => None,
            None => {
                let stray = self.messages.stray(conn, delivery);
                self.count_stray(stray);
                None
            }
        }
    }

    fn held_by(&self, conn: ConnId, delivery: Delivery) -> Option<HeldDelivery> {
        let message = self.messages.get(delivery.index).filter(|message| message.stamp == delivery.stamp)?;
        let (holder, claim) = match message.state {
            MessageStage::Held { worker, .. } | MessageStage::Asked { worker, .. } => {
                (worker, HeldDelivery::Live(delivery.index))
            }
            MessageStage::Stopping { worker, .. } => (worker, HeldDelivery::Stopping(delivery.index)),
            MessageStage::Waiting
            | MessageStage::Broadcast
            | MessageStage::Answered { .. }
            | MessageStage::Storing { .. }
            | MessageStage::Delayed { .. }
            | MessageStage::Dead => return None,
        };
        (holder == conn).then_some(claim)
    }

    /// The worker has done what it was asked.
    pub(super) fn settled(&mut self, conn: ConnId, index: u32, counter: impl Fn(&mut Counters) -> &mut u64) {
        let record = self.peers.worker_mut(conn);
        record.settled += 1;
        let (on_trial, has_standings) = (record.trust != WorkerTrust::Full, !record.standings.is_empty());
        if on_trial {
            self.end_trial(conn);
        }
        if has_standings {
            self.clear_standing(conn, index);
        }
        self.count_settled(index, counter);
    }

    /// Counts a settlement, and how long the worker took for a request.
    fn count_settled(&mut self, index: u32, counter: impl Fn(&mut Counters) -> &mut u64) {
        let message = &self.messages[index];
        *counter(&mut self.stats.counters) += 1;
        let queue = self.queues.at_mut(message.queue);
        *counter(&mut queue.counters) += 1;
        queue.lost_in_a_row = 0;
        if message.wants == Wants::Reply {
            queue.note_settled(message, self.now);
        }
    }

    /// Slots back to the worker that holds the message, once.
    pub(super) fn release(&mut self, index: u32) {
        let message = &self.messages[index];
        let worker = message.holder().expect("only a held delivery is released");
        let (queue, stamp) = (message.queue, message.stamp);
        let (cost, bytes) = (message.slots_in_use(), bytes_of(message.bytes.len()));
        if matches!(message.state, MessageStage::Answered { .. }) {
            self.forget_answered(worker, index);
        }
        let place = self.queues.at_mut(queue);
        place.in_flight -= 1;
        if place.is_unused() {
            self.note_unused(queue);
        }
        self.note_short(queue);
        self.stats.in_flight -= 1;
        let record = self.peers.worker_mut(worker);
        record.held.remove(&mut self.messages, Lane::Place, index);
        record.give_back(cost);
        record.read_of(stamp, bytes);
        record.alone_with.take_if(|alone| *alone == index);
        if record.is_link {
            return self.crossed_back(worker, index);
        }
        if !record.standings.is_empty() {
            record.standings.released(queue, index);
        }
        let (pair, leaving) = (record.pair, record.leaving);
        self.offer(worker);
        if let Some(pair) = pair {
            self.pair_gave(pair, cost);
        }
        if leaving {
            self.forget_worker_if_gone(worker);
        }
    }

    /// The message is over and leaves the broker.
    pub(super) fn finish(&mut self, index: u32, end: MessageEnd) {
        let holder = self.messages[index].holder();
        if holder.is_some() {
            self.release(index);
        }
        self.disarm(index);
        self.disown(index);
        self.losses.forget(index);
        let message = self.messages.remove(index, holder, end);
        if message.flags.has(Flags::FORWARDED) {
            self.foreign_gone(index);
        }
        self.durable.end(&message);
        let Message { queue, bytes, .. } = message;
        self.drop_bytes(queue, bytes_of(bytes.len()));
        self.queues.forget_if_idle(queue);
    }
}
