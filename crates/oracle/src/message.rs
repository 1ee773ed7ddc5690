//! The state of one message, one delivery and one connection.

use std::collections::BTreeMap;

use turno_proto::model::{Code, ConnId, DedupKey, Delivery, MessageId, Mono, Slots};

use crate::standings::Standings;

/// A connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    pub(crate) ready: bool,
    pub(crate) slots: Option<Slots>,
    pub(crate) closed: bool,
    /// It has much to read, and gets nothing before it has read it.
    pub(crate) paced: bool,
    /// The queue of each handle.
    pub(crate) handles: BTreeMap<u32, usize>,
    /// The handle under which each queue is consumed.
    pub(crate) consumes: BTreeMap<usize, u32>,
    /// The handle with which a queue was asked for in vain.
    pub(crate) asked: BTreeMap<usize, u32>,
    pub(crate) standings: Standings,
}

impl Peer {
    /// It may get a message of that queue, if it has room.
    pub(crate) fn takes(&self, queue: usize) -> bool {
        self.ready && !self.closed && self.consumes.contains_key(&queue)
    }
}

/// A message: its options and its progress.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) caller: ConnId,
    pub(crate) seq: u32,
    pub(crate) kind: Kind,
    pub(crate) queue: usize,
    pub(crate) priority: u8,
    pub(crate) cost: u16,
    pub(crate) retries: u8,
    pub(crate) born: Mono,
    pub(crate) deadline: Option<Mono>,
    /// It is not delivered before then.
    pub(crate) not_before: Mono,
    /// Its sender delayed it.
    pub(crate) is_delayed: bool,
    /// The number of its latest attempt.
    pub(crate) attempt: u16,
    /// Why it is refused, whatever else there is.
    pub(crate) wrong: Option<Code>,
    /// Set by STORED, or by the first delivery.
    pub(crate) id: Option<MessageId>,
    pub(crate) stored: bool,
    /// It outlives the broker.
    pub(crate) on_disk: bool,
    /// For its caller.
    pub(crate) ended: bool,
    pub(crate) cancelled: bool,
    pub(crate) settled: bool,
    pub(crate) delivered_before: bool,
    /// It was not added: one with its dedup id came before.
    pub(crate) duplicate: bool,
    pub(crate) dedup: Option<DedupKey>,
    /// A request whose worker is told to stop when the caller is gone.
    pub(crate) ends_with_caller: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    NoReply,
    Send,
}

impl Message {
    pub(crate) const fn new(caller: ConnId, seq: u32, kind: Kind, queue: usize, born: Mono) -> Self {
        Self {
            caller,
            seq,
            kind,
            queue,
            priority: 4,
            cost: 1,
            retries: 0,
            born,
            deadline: None,
            not_before: Mono::ZERO,
            is_delayed: false,
            attempt: 0,
            wrong: None,
            id: None,
            stored: false,
            on_disk: false,
            ended: false,
            cancelled: false,
            settled: false,
            delivered_before: false,
            duplicate: false,
            dedup: None,
            ends_with_caller: false,
        }
    }

    /// The broker has it, or had it.
    pub(crate) const fn is_added(&self) -> bool {
        self.stored && !self.duplicate
    }

    pub(crate) fn is_late(&self, now: Mono) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// A request that has less than half of its time left may end as one that would be late.
    pub(crate) fn may_be_late(&self, now: Mono) -> bool {
        let past_half = |deadline: Mono| now.since(self.born) > deadline.since(now);
        self.kind == Kind::Request && self.deadline.is_some_and(past_half)
    }
}

/// A delivery whose slots are in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) worker: ConnId,
    pub(crate) delivery: Delivery,
    pub(crate) token: Option<u64>,
    pub(crate) since: Mono,
    /// When its slots come back by themselves, once it was told to stop.
    pub(crate) stops: Option<Mono>,
}
