//! Cancelling of messages, waiting or delivered.

use turno_proto::model::{Code, ConnId, limits};

use crate::effect::{CallerMessage, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::deferred::{DeferredAction, DeferredStep};
use crate::messages::stats::bytes_of;
use crate::messages::table::message::{Flags, MessageEnd, MessageStage};

impl Messages {
    /// The caller gives up its own request. One that is answered already has nothing left to cancel.
    pub(crate) fn cancel_own(&mut self, conn: ConnId, seq: u32, reason: Code, out: &mut impl Sink) {
        let Some(peer) = self.peers.get_mut(conn) else { return };
        if let Some(index) = peer.owned.find(&self.messages, seq) {
            self.cancel_because(index, reason, out);
        }
    }

    /// The caller is gone. Its waiting requests end. Of those at a worker nobody takes the reply (S1.35): the worker is
    /// told to stop if the caller wanted that, else it goes on. Of its broadcasts nothing is left. To end many that wait
    /// takes long, and is deferred.
    pub(super) fn abandon_requests(&mut self, conn: ConnId, out: &mut impl Sink) {
        while let Some(index) = self.peers.get(conn).and_then(|peer| peer.owned.front()) {
            self.disown(index);
            let message = &mut self.messages[index];
            // Of what came over a link that is lost its owner hears no more, and may hand it to somebody else.
            let ends = message.flags.has(Flags::ENDS_WITH_CALLER) || message.flags.has(Flags::FORWARDED);
            let queue = message.queue;
            match message.state {
                MessageStage::Waiting => {
                    message.flags.set(Flags::ABANDONED);
                    self.deferred.push(DeferredStep { index, serial: message.serial, what: DeferredAction::End });
                }
                // One that asked itself is gone as a worker too, and there is nobody to tell.
                MessageStage::Held { worker, .. } if ends && worker != conn => {
                    self.count(queue, |counters| &mut counters.cancelled);
                    self.stop(index, worker, Code::CallerGone, out);
                }
                MessageStage::Broadcast => self.abandon_broadcast(index, conn, out),
                MessageStage::Held { .. }
                | MessageStage::Stopping { .. }
                | MessageStage::Answered { .. }
                | MessageStage::Asked { .. }
                | MessageStage::Storing { .. }
                | MessageStage::Delayed { .. }
                | MessageStage::Dead => {}
            }
        }
        self.do_portion(out);
    }

    /// Ends a message: waiting, running or dead. Running work keeps its slots until it has stopped.
    pub(super) fn cancel(&mut self, index: u32, out: &mut impl Sink) {
        self.cancel_because(index, Code::Cancelled, out);
    }

    fn cancel_because(&mut self, index: u32, reason: Code, out: &mut impl Sink) {
        let queue = self.messages[index].queue;
        match self.messages[index].state {
            MessageStage::Waiting => {
                self.count_cancelled(queue, reason);
                self.unplace(index);
                self.end_without_reply(index, reason, out);
            }
            // It came over a link: for its owner its time is over a little earlier than for us.
            MessageStage::Held { worker, .. } if reason == Code::TimedOut => self.expire_held(index, worker, out),
            MessageStage::Held { worker, .. } => {
                self.count_cancelled(queue, reason);
                self.stop(index, worker, reason, out);
            }
            MessageStage::Delayed { .. } => {
                self.count_cancelled(queue, reason);
                self.undelay(index);
                self.end_without_reply(index, reason, out);
            }
            MessageStage::Storing { dropped: false, until } => {
                self.count_cancelled(queue, reason);
                self.messages[index].state = MessageStage::Storing { dropped: true, until };
            }
            MessageStage::Stopping { .. }
            | MessageStage::Answered { .. }
            | MessageStage::Storing { dropped: true, .. } => {}
            MessageStage::Broadcast => self.cancel_broadcast(index, reason, out),
            MessageStage::Asked { broadcast, .. } => self.cancel_broadcast(broadcast, reason, out),
            MessageStage::Dead => self.unbury(index),
        }
    }

    /// Counts an expired message as expired, no matter which broker noticed.
    pub(super) fn count_cancelled(&mut self, queue: u32, reason: Code) {
        match reason {
            Code::TimedOut => self.count(queue, |counters| &mut counters.expired),
            _ => self.count(queue, |counters| &mut counters.cancelled),
        }
    }

    /// A message that no worker has ends; its caller is told why.
    pub(super) fn end_without_reply(&mut self, index: u32, code: Code, out: &mut impl Sink) {
        let origin = self.messages[index].origin;
        self.finish(index, MessageEnd::Otherwise);
        if let Some(origin) = origin {
            out.peer(origin.hears(CallerMessage::undelivered(code)));
        }
    }

    /// A message that a worker has is over for its caller. The worker is told to stop; its slots come back
    /// when it settles, when its connection ends, or when the grace time is over, whichever is first.
    pub(super) fn stop(&mut self, index: u32, worker: ConnId, code: Code, out: &mut impl Sink) {
        let origin = self.messages[index].origin;
        self.disown(index);
        let delivery = self.delivery_of(index);
        let message = &mut self.messages[index];
        self.durable.end(message);
        message.flags.set(Flags::ENDED);
        message.state = MessageStage::Stopping { worker, freed: message.slots_in_use() == 0 };
        message.deadline = None;
        let queue = message.queue;
        let bytes = std::mem::take(&mut message.bytes);
        self.drop_bytes(queue, bytes_of(bytes.len()) - bytes_of(0));
        if self.keeps_slots_of(worker, index) {
            self.disarm(index);
        } else {
            self.arm(index, self.now.plus_millis(limits::CANCEL_GRACE_MS));
        }
        if let Some(origin) = origin {
            out.peer(origin.hears(CallerMessage::undelivered(code)));
        }
        out.peer(PeerEffect::Stop { conn: worker, delivery, reason: code });
    }
}
