//! A connection's turn: the limit on the work for one connection before others get theirs.

use turno_engine::ring::{RingInput, RingMessage};
use turno_engine::{Input, LinkMessage};
use turno_proto::model::limits::{
    READ_BYTES, TURN_WORK, TURN_WORK_CANCEL, TURN_WORK_COPIES, TURN_WORK_HEAVY, TURN_WORK_MATCHES,
};

/// How a connection's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Turn {
    /// With its last whole frame.
    Done,
    /// Before that: it has more to say, once others had their turn.
    Cut,
}

/// The work left in a turn.
#[derive(Debug)]
pub(super) struct Budget(pub(super) u32);

impl Budget {
    pub(super) const fn spend(&mut self, work: u32) {
        self.0 = self.0.saturating_sub(work);
    }

    pub(super) const fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// The work of an input, relative to a plain frame, which counts 1. Guessed from its kind: nobody looks at a clock here.
pub(super) fn work_of(input: &Input) -> u32 {
    match input {
        // One that is not an event is about many queues, brokers or workers.
        Input::Link { message, .. } if !matches!(**message, LinkMessage::Event(_)) => TURN_WORK_HEAVY,
        // One that is not a publication is about the circle.
        Input::Ring { input } if !matches!(input, RingInput::Message { message: RingMessage::Publish(_), .. }) => {
            TURN_WORK_HEAVY
        }
        Input::Admin { call, .. } if call.is_about_many() => TURN_WORK,
        Input::Admin { .. } | Input::Broadcast { .. } => TURN_WORK_HEAVY,
        Input::Cancel { .. } | Input::FarCancel { .. } => TURN_WORK_CANCEL,
        Input::Connected { .. }
        | Input::Ready { .. }
        | Input::HasRead { .. }
        | Input::Unread { .. }
        | Input::Disconnected { .. }
        | Input::Open { .. }
        | Input::Register { .. }
        | Input::RegisterAs { .. }
        | Input::RegisterKeeping { .. }
        | Input::GiveBack { .. }
        | Input::Relay { .. }
        | Input::Resize { .. }
        | Input::Deregister { .. }
        | Input::Consume { .. }
        | Input::QueueAvailableNotify { .. }
        | Input::CancelQueue { .. }
        | Input::Request { .. }
        | Input::Send { .. }
        | Input::Worker { .. }
        | Input::PeerClosing { .. }
        | Input::Subscribe { .. }
        | Input::Unsubscribe { .. }
        | Input::Publish { .. }
        | Input::EventsDropped { .. }
        | Input::Greeted { .. }
        | Input::Linked { .. }
        | Input::DialFailed { .. }
        | Input::RoundTrip { .. }
        | Input::Forwarded { .. }
        | Input::Far { .. }
        | Input::Link { .. }
        | Input::Ring { .. }
        | Input::Foreman { .. }
        | Input::Drain { .. }
        | Input::Persisted { .. }
        | Input::Refused { .. }
        | Input::Loaded { .. }
        | Input::Archived { .. }
        | Input::Tick => 1,
    }
}

/// The work of events that went to so many connections, with so many filters looked at: that shows only
/// when it is done.
pub(super) const fn work_of_events(copies: u32, matches: u32) -> u32 {
    copies / TURN_WORK_COPIES + matches / TURN_WORK_MATCHES
}

/// The first part of it.
pub(super) const fn work_of_copies(copies: u32) -> u32 {
    work_of_events(copies, 0)
}

/// Bytes of a connection that are not dealt with: the beginning of a frame, or all that a turn which was cut left.
/// Owns nothing while there are none.
#[derive(Debug, Default)]
pub(super) struct UnfinishedWork {
    bytes: Vec<u8>,
    /// So many of them are dealt with: what a turn leaves is not moved for every turn that follows.
    used: usize,
}

impl UnfinishedWork {
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// Adds bytes. The buffer grows to twice its size, but not beyond `most` unless there are more: what a frame says of its
    /// length is no reason to take that much.
    pub(super) fn extend(&mut self, bytes: &[u8], most: usize) {
        self.bytes.drain(..std::mem::take(&mut self.used));
        let need = self.bytes.len() + bytes.len();
        if need > self.bytes.capacity() {
            let wanted = need.max(most.min(2 * self.bytes.capacity()));
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that it takes.
    pub(super) const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// So many more are dealt with.
    pub(super) fn consume(&mut self, count: usize) {
        self.used += count;
        let left = self.bytes.len() - self.used;
        if left == 0 {
            *self = Self::default();
        } else if self.bytes.capacity() > READ_BYTES && left < self.bytes.capacity() / 4 {
            // The buffer of a long frame is not kept for the beginning of the next.
            *self = Self { bytes: self.bytes[self.used..].to_vec(), used: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::admin::AdminCall;
    use turno_proto::model::{Code, ConnId};

    use super::*;

    #[test]
    fn what_is_left_is_what_was_not_used() {
        let mut leftover = UnfinishedWork::default();
        leftover.extend(b"abcdef", 0);
        leftover.consume(2);
        assert_eq!(leftover.bytes(), b"cdef");
        leftover.consume(3);
        leftover.extend(b"gh", 0);
        assert_eq!((leftover.bytes(), leftover.is_empty()), (&b"fgh"[..], false));
        leftover.consume(3);
        assert!(leftover.is_empty());
        assert_eq!(leftover.bytes.capacity(), 0, "it owns nothing");
    }

    #[test]
    fn a_call_about_many_is_a_turn_of_its_own() {
        let conn = ConnId { index: 0, generation: 1 };
        let admin = |call| work_of(&Input::Admin { conn, seq: 1, call });
        assert_eq!(admin(AdminCall::QueuePurge { queue: "q".to_owned(), limit: 1 }), TURN_WORK);
        assert_eq!(admin(AdminCall::MessageCancel { id: String::new() }), TURN_WORK_HEAVY);
        assert_eq!(work_of(&Input::Cancel { conn, seq: 1 }), TURN_WORK_CANCEL);
        assert_eq!(work_of(&Input::FarCancel { conn, seq: 1, reason: Code::TimedOut }), TURN_WORK_CANCEL);
        assert_eq!(work_of(&Input::Deregister { conn, seq: 1 }), 1);
        let mut budget = Budget(TURN_WORK);
        budget.spend(TURN_WORK - 1);
        assert!(!budget.is_spent());
        budget.spend(TURN_WORK);
        assert!(budget.is_spent());
    }
}
