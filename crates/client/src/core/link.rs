//! The state of one connection, which ends with it.

use std::collections::{BTreeMap, HashMap};

use turno_proto::model::{Cost, Delivery, Filter, Mono, QueueName};
use turno_proto::native::{Closing, Frame, encode};

use super::absence::Absences;
use super::event::Ticket;
use super::handles::Handles;

/// The question that an answer with some number belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    Call(Ticket),
    Open(QueueName),
    Register,
    /// CONSUME of a queue that the worker was dropped from.
    Again(u32),
    /// `first`: the registration waits for the answer.
    Consume {
        queue: QueueName,
        first: bool,
    },
    /// QUEUE_AVAILABLE_NOTIFY.
    Available(QueueName),
    Subscribe(Filter),
    /// Nobody waits for the answer; it only frees the number.
    Nobody,
}

/// A delivery that is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    /// The token of its queue, if that is this worker's alone.
    pub(super) token: Option<u64>,
    /// Slots that it takes.
    pub(super) cost: Cost,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) epoch: u64,
    /// The bytes of a frame whose end has not come.
    pub(super) inbox: Vec<u8>,
    /// Frames for the next `poll_transmit`.
    pub(super) out: Vec<u8>,
    pub(super) pending: HashMap<u32, Pending>,
    pub(super) handles: Handles,
    /// Deliveries that are not settled.
    pub(super) held: BTreeMap<Delivery, Holding>,
    pub(super) absences: Absences,
    seq: u32,
    /// Something was written.
    pub(super) sent: Mono,
    /// PING was written.
    pub(super) pinged: Mono,
    /// Something came.
    pub(super) heard: Mono,
    /// Since when it does all that is wanted of it.
    pub(super) ready: Option<Mono>,
    /// The broker said CLOSING in the greeting already.
    pub(super) closing: Option<Closing>,
}

impl Link {
    pub(super) fn new(epoch: u64, now: Mono) -> Self {
        Self {
            epoch,
            inbox: Vec::new(),
            out: Vec::new(),
            pending: HashMap::new(),
            handles: Handles::default(),
            held: BTreeMap::new(),
            absences: Absences::default(),
            seq: 0,
            sent: now,
            pinged: now,
            heard: now,
            ready: None,
            closing: None,
        }
    }

    pub(super) fn write(&mut self, frame: &Frame<'_>) {
        encode(frame, &mut self.out);
    }

    /// A number no unanswered frame of this connection has; never 0, which answers to unreadable frames have.
    pub(super) fn next_seq(&mut self) -> u32 {
        loop {
            self.seq = self.seq.wrapping_add(1);
            // Calls are bounded far below the count of numbers, so a free one is always near.
            if self.seq != 0 && !self.pending.contains_key(&self.seq) {
                return self.seq;
            }
        }
    }

    /// A number whose answer means `pending`.
    pub(super) fn expect(&mut self, pending: Pending) -> u32 {
        let seq = self.next_seq();
        self.pending.insert(seq, pending);
        seq
    }

    /// The queue's handle; OPEN is written if this is its first use.
    pub(super) fn open(&mut self, queue: &QueueName) -> u32 {
        let (handle, new) = self.handles.take(queue);
        if new {
            let seq = self.expect(Pending::Open(queue.clone()));
            self.write(&Frame::Open { seq, handle, name: queue.as_str().as_bytes() });
        }
        handle
    }

    pub(super) fn ping(&mut self, now: Mono) {
        self.pinged = now;
        let seq = self.next_seq();
        self.write(&Frame::Ping { seq });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_skip_those_in_use() {
        let mut link = Link::new(0, Mono::ZERO);
        assert_eq!(link.expect(Pending::Call(Ticket(1))), 1);
        assert_eq!(link.expect(Pending::Nobody), 2);
        link.seq = u32::MAX - 1;
        assert_eq!(link.expect(Pending::Nobody), u32::MAX);
        assert_eq!(link.next_seq(), 3, "0 means none, 1 and 2 are not answered");
        link.pending.remove(&1);
        link.seq = u32::MAX;
        assert_eq!(link.next_seq(), 1, "answered, so free again");
    }
}
