//! Messages of a link, as values. `native` has their bytes.

use std::sync::Arc;

use super::{BrokerId, ForwardWants, Offer, Path, Presence, Relay};
use crate::model::topic::Event;
use crate::model::{MessageId, Payload};

/// A message that crosses a link: FORWARD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The number of this crossing.
    pub seq: u32,
    /// The queue, by the handle that OPEN gave it on this link.
    pub handle: u32,
    /// The id of the message, the same at every broker.
    pub id: MessageId,
    /// Whether it needs a reply or an acknowledgement.
    pub wants: ForwardWants,
    /// 1 for the first.
    pub attempt: u16,
    /// Slots it takes.
    pub cost: u16,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// Milliseconds left.
    pub deadline_ms: Option<u32>,
    /// Only to a worker that holds nothing else, and gets nothing else before it settles this.
    pub alone: bool,
    /// Brokers that it came through, the one that says this included; not none.
    pub path: Path,
    /// Headers and body.
    pub payload: Payload,
}

/// A broadcast that crosses a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardBroadcast {
    /// The number of this crossing.
    pub seq: u32,
    /// The queue, by the handle that OPEN gave it on this link.
    pub handle: u32,
    /// Milliseconds left.
    pub deadline_ms: u32,
    /// Over when written to all.
    pub no_reply: bool,
    /// The brokers whose consumers are meant, each of them once; not none.
    pub targets: Vec<BrokerId>,
    /// Brokers that it came through, the one that says this included; not none.
    pub path: Path,
    /// Headers and body.
    pub payload: Payload,
}

/// An event that crosses a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardEvent {
    /// Rises with each event of the broker it was published at, the first of the path.
    pub number: u64,
    /// The brokers whose subscribers are meant, each of them once; not none.
    pub targets: Vec<BrokerId>,
    /// Brokers that it came through, the one that says this included; not none.
    pub path: Path,
    /// The event itself.
    pub event: Arc<Event>,
}

/// A message that is not about one crossing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkMessage {
    /// OFFER: what changed; one for each queue, at most [`limits::OFFERS_MAX`](crate::model::limits::OFFERS_MAX).
    Offers(Vec<Offer>),
    /// PRESENCE: everyone who can be reached, in place of what was told before; at most
    /// [`limits::BROKERS_MAX`](crate::model::limits::BROKERS_MAX).
    Presence(Vec<Presence>),
    /// FORWARD_BROADCAST.
    Broadcast(ForwardBroadcast),
    /// FORWARD_EVENT.
    Event(ForwardEvent),
    /// RELAY.
    Relay(Relay),
}
