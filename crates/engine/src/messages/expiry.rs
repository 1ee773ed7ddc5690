//! Expiry: deadlines of messages, leases of deliveries, grace times of cancelled work.

use turno_proto::model::{Code, ConnId, Mono, limits};

use crate::effect::{PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::retry::AttemptFailure;
use crate::messages::table::message::{MessageEnd, MessageStage, Wants};

impl Messages {
    /// Deadlines, leases and grace that are over.
    pub(crate) fn tick_messages(&mut self, out: &mut impl Sink) {
        while let Some(index) = self.timers.pop_due(self.now) {
            self.messages[index].timer = None;
            self.due(index, out);
        }
    }

    /// All else that time does to queues.
    pub(crate) fn tick(&mut self, out: &mut impl Sink) {
        self.tick_delayed(out);
        self.tick_trials();
        self.sweep_dedup();
        self.end_offers();
        self.dial_links(out);
        self.tick_claims(out);
        self.go_on_with_deferred(out);
        self.end_drain_if_late(out);
    }

    fn due(&mut self, index: u32, out: &mut impl Sink) {
        let message = &self.messages[index];
        match message.state {
            MessageStage::Waiting => self.expire_waiting(index, out),
            MessageStage::Delayed { .. } => self.expire_delayed(index, out),
            MessageStage::Held { worker, .. } => {
                // A no-reply that is not written yet is on its way over a link.
                if message.wants != Wants::Settling && message.past_deadline(self.now) {
                    self.expire_held(index, worker, out);
                // At a link it is the other broker that gives the lease; the time here was for waiting.
                } else if self.settings.lease_ms.is_some() && !self.links.is_link(worker) {
                    let delivery = self.delivery_of(index);
                    out.peer(PeerEffect::Stop { conn: worker, delivery, reason: Code::LeaseExpired });
                    self.expired_at(worker, index, Code::LeaseExpired, out);
                    self.attempt_over(index, AttemptFailure::LeaseExpired, out);
                }
            }
            MessageStage::Stopping { .. } => self.finish(index, MessageEnd::Otherwise),
            MessageStage::Broadcast => self.expire_broadcast(index, out),
            // The first ends with its broadcast; the second is looked at again when it has its place.
            MessageStage::Asked { .. }
            | MessageStage::Answered { .. }
            | MessageStage::Storing { .. }
            | MessageStage::Dead => {}
        }
    }

    /// The time of a request is over while its worker has it. That counts against the worker, no matter who noticed; but at a link
    /// it is the other broker that counts.
    pub(super) fn expire_held(&mut self, index: u32, worker: ConnId, out: &mut impl Sink) {
        let message = &self.messages[index];
        let (queue, fair) = (message.queue, message.had_fair_time(self.now));
        if message.wants == Wants::Reply {
            self.queues.at_mut(queue).note_overrun(message, self.now);
        }
        self.count(queue, |counters| &mut counters.expired);
        self.stop(index, worker, Code::TimedOut, out);
        if fair && !self.links.is_link(worker) {
            self.expired_at(worker, index, Code::TimedOut, out);
        }
    }

    /// A waiting message passed its deadline (S2.38).
    pub(super) fn expire_waiting(&mut self, index: u32, out: &mut impl Sink) {
        let queue = self.messages[index].queue;
        self.count(queue, |counters| &mut counters.expired);
        self.unplace(index);
        self.end_without_reply(index, Code::TimedOut, out);
    }

    /// A message passed its deadline before its time came.
    fn expire_delayed(&mut self, index: u32, out: &mut impl Sink) {
        let queue = self.messages[index].queue;
        self.count(queue, |counters| &mut counters.expired);
        self.undelay(index);
        self.end_without_reply(index, Code::TimedOut, out);
    }

    /// Sets the message's one timer.
    pub(super) fn arm(&mut self, index: u32, at: Mono) {
        self.disarm(index);
        self.messages[index].timer = Some(self.timers.insert(at, index));
    }

    pub(super) fn disarm(&mut self, index: u32) {
        if let Some(timer) = self.messages[index].timer.take() {
            self.timers.remove(timer);
        }
    }

    /// A message that waits again has its own deadline only.
    pub(super) fn arm_deadline(&mut self, index: u32) {
        match self.messages[index].deadline {
            Some(deadline) => self.arm(index, deadline),
            None => self.disarm(index),
        }
    }

    /// A delivery may be held for `lease_ms` more, but a request never past its own deadline.
    pub(super) fn arm_lease(&mut self, index: u32, lease_ms: u64) {
        let until = self.now.plus_millis(lease_ms.min(u64::from(limits::SEND_DEADLINE_MS_MAX)));
        let message = &self.messages[index];
        let until = match message.deadline {
            Some(deadline) if message.wants == Wants::Reply => until.min(deadline),
            _ => until,
        };
        self.arm(index, until);
    }
}
