//! A worker that wants a queue to itself: taking it, standing by for it, taking over.

use turno_proto::model::{Code, Mono, QueueName};
use turno_proto::native::Frame;

use super::Core;
use super::event::{Claim, CoreEvent};
use super::link::Pending;

/// The error text about a queue that this worker cannot have to itself.
pub(crate) fn taken(queue: &QueueName) -> String {
    format!("queue {queue} is exclusive to another worker")
}

impl Core {
    /// `first`: the registration waits for the answer.
    pub(super) fn write_consume(&mut self, queue: &QueueName, first: bool) {
        let exclusive = self.claim() != Claim::Shared;
        let handle = self.link.open(queue);
        let seq = self.link.expect(Pending::Consume { queue: queue.clone(), first });
        self.link.write(&Frame::Consume { seq, handle, exclusive });
    }

    /// CONSUME was accepted.
    pub(super) fn handle_consuming(&mut self, now: Mono, seq: u32, token: Option<u64>) {
        let Some(Pending::Consume { queue, first }) = self.link.pending.remove(&seq) else { return };
        if first {
            self.register_done(now);
        }
        if let Some(token) = token {
            self.events.push_back(CoreEvent::Active { queue, token });
        }
    }

    /// The queue is another's.
    pub(super) fn handle_queue_full(&mut self, now: Mono, seq: u32) {
        let (queue, first) = match self.link.pending.get(&seq).cloned() {
            Some(Pending::Consume { queue, first }) => (queue, first),
            Some(Pending::Again(handle)) => {
                let Some(queue) = self.link.handles.consumed(handle).cloned() else { return };
                if self.claim() != Claim::Standby {
                    // Dropped, and another has it by now, or what this worker still holds keeps it taken.
                    self.link.pending.remove(&seq);
                    return self.not_back(now, handle, Code::QueueFull);
                }
                (queue, false)
            }
            _ => return,
        };
        self.link.pending.remove(&seq);
        if self.claim() == Claim::Exclusive && self.ready_once && !self.duty.may_be_ghost(now) {
            return self.replaced(now, queue);
        }
        if self.claim() != Claim::Standby {
            return self.not_registered(now, Code::QueueFull, taken(&queue));
        }
        let handle = self.link.open(&queue);
        let wish = self.link.expect(Pending::Available(queue.clone()));
        self.link.write(&Frame::QueueAvailableNotify { seq: wish, handle });
        if first {
            self.register_done(now);
        }
        self.events.push_back(CoreEvent::StandingBy { queue });
    }

    /// This worker had the queue, and another has it now: it ends, as it would have if it had started now. A worker
    /// that tried again would take the queue back at some later time that nobody expects.
    pub(super) fn replaced(&mut self, now: Mono, queue: QueueName) {
        self.events.push_back(CoreEvent::Replaced { queue });
        self.close(now);
    }

    /// The queue is free, and kept for this worker for a moment. A broker in maintenance gives it as well; who does not come
    /// has lost its place, and nobody would ask for another when the broker goes on.
    pub(super) fn handle_queue_available(&mut self, seq: u32) {
        let Some(Pending::Available(queue)) = self.link.pending.get(&seq).cloned() else { return };
        self.link.pending.remove(&seq);
        if self.open() && self.consumes(&queue) {
            self.write_consume(&queue, false);
        }
    }
}
