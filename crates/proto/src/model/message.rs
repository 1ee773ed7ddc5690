//! Messages on their way to the broker, with their options. A frame lends its bytes, the broker owns them; the type is
//! the same.

use std::num::NonZeroU16;

use super::{DedupId, Payload};

/// Slots that a delivery takes at its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// So many, until it is settled.
    Slots(NonZeroU16),
    /// None: a broadcast comes beside all else that the worker holds.
    Broadcast,
}

impl Cost {
    /// One slot.
    pub const ONE: Self = Self::Slots(NonZeroU16::MIN);

    /// As it stands in DELIVER.
    pub const fn from_word(word: u16) -> Self {
        match NonZeroU16::new(word) {
            Some(slots) => Self::Slots(slots),
            None => Self::Broadcast,
        }
    }

    /// How many slots. It is also how the cost stands in DELIVER.
    pub const fn slots(self) -> u16 {
        match self {
            Self::Slots(slots) => slots.get(),
            Self::Broadcast => 0,
        }
    }
}

/// When a send that its worker failed is tried again. A request is tried again at once, whatever the worker says, unless that is
/// [`Never`](Self::Never).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Again {
    /// After the wait that its queue sets for this attempt.
    #[default]
    AsSet,
    /// After so many milliseconds.
    After(u32),
    /// The attempt does not count: the worker gave the message back. After so many milliseconds, or the first wait of its queue.
    Uncounted(Option<u32>),
    /// No other attempt will do better.
    Never,
}

/// REQUEST and SEND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<P = Payload, D = DedupId> {
    /// The sender's number for it; free again once answered.
    pub seq: u32,
    /// The queue, by the handle OPEN gave it.
    pub handle: u32,
    /// Time it has, in milliseconds.
    pub deadline_ms: Option<u32>,
    /// Redeliveries it may have after the first delivery.
    pub retries: Option<u8>,
    /// 0 to 9, 9 first.
    pub priority: Option<u8>,
    /// Slots a delivery of it takes.
    pub cost: Option<u16>,
    /// SEND only: what tells it from every other message of its queue, should it come again; 1 to 64 bytes.
    pub dedup_id: Option<D>,
    /// SEND only: milliseconds that it waits before it is delivered; its deadline counts from then on. 0: none.
    pub delay_ms: u64,
    /// REQUEST only: no reply wanted; done when written to a worker.
    pub no_reply: bool,
    /// REQUEST only: fail at once with `no_responder` if nobody consumes the queue.
    pub fail_fast: bool,
    /// REQUEST only: cancelled at its worker too when the caller's connection ends.
    pub cancel_on_disconnect: bool,
    /// Headers and body.
    pub payload: P,
}

impl<P, D> Outgoing<P, D> {
    /// A message with no options.
    pub const fn new(seq: u32, handle: u32, payload: P) -> Self {
        Self {
            seq,
            handle,
            deadline_ms: None,
            retries: None,
            priority: None,
            cost: None,
            dedup_id: None,
            delay_ms: 0,
            no_reply: false,
            fail_fast: false,
            cancel_on_disconnect: false,
            payload,
        }
    }

    /// The same message in another form.
    #[inline]
    pub fn with<Q, E>(self, dedup_id: Option<E>, payload: Q) -> Outgoing<Q, E> {
        let Self {
            seq,
            handle,
            deadline_ms,
            retries,
            priority,
            cost,
            delay_ms,
            no_reply,
            fail_fast,
            cancel_on_disconnect,
            ..
        } = self;
        Outgoing {
            seq,
            handle,
            deadline_ms,
            retries,
            priority,
            cost,
            dedup_id,
            delay_ms,
            no_reply,
            fail_fast,
            cancel_on_disconnect,
            payload,
        }
    }
}

/// BROADCAST: a message on its way to every consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broadcast<P = Payload> {
    /// The sender's number for it; free again once it is over.
    pub seq: u32,
    /// The queue, by the handle OPEN gave it.
    pub handle: u32,
    /// Time its consumers have, in milliseconds.
    pub deadline_ms: Option<u32>,
    /// No reply wanted; over when written to every consumer.
    pub no_reply: bool,
    /// Not to the connection it comes from.
    pub skip_self: bool,
    /// Headers and body.
    pub payload: P,
}

impl<P> Broadcast<P> {
    /// The same broadcast in another form.
    pub fn with<Q>(self, payload: Q) -> Broadcast<Q> {
        let Self { seq, handle, deadline_ms, no_reply, skip_self, payload: _ } = self;
        Broadcast { seq, handle, deadline_ms, no_reply, skip_self, payload }
    }
}
