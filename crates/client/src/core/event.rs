//! Inputs of the core beside bytes and time, and its events.

use turno_proto::model::{
    Again, BroadcastEnd, Code, Cost, DedupId, Delivery, Durability, MessageId, Payload, QueueName, Slots, Topic,
};
use turno_proto::native::admin::AdminAnswer;
use turno_proto::native::{ClosingReason, Config};

use crate::Address;

/// Settings of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Brokers in order, at least one; doubles are passed over.
    pub brokers: Vec<Address>,
    /// A name for people.
    pub name: String,
    /// The program and its version, for people.
    pub program: String,
    /// The heartbeat to ask for; 0 leaves it to the broker.
    pub heartbeat_ms: u32,
    /// Time for one broker: connecting and greeting; and again for REGISTER to be answered.
    pub connect_timeout_ms: u64,
    /// Go round the brokers for ever instead of giving up after the first fruitless round.
    pub keep_trying: bool,
    /// Stay with a broker that closes until it ends the connection: for those who only ask about it.
    pub stay: bool,
    /// Ask again for a queue that the broker dropped the worker from.
    pub come_back: bool,
}

/// Names one call from its start to its one end. The caller chooses it; it is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A request, send or broadcast, with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask<Q = QueueName, P = Payload, D = DedupId> {
    /// The name of the queue.
    pub queue: Q,
    /// Headers and body.
    pub payload: P,
    /// Request: time for the reply. Send: how long the message is worth delivering.
    pub timeout_ms: Option<u32>,
    /// Request: time for the work itself, if that is not the caller's.
    pub deadline_ms: Option<u32>,
    /// Request: cancelled when the caller's time is over, although its own is not.
    pub cancel_on_timeout: bool,
    /// Request: stopped at its worker too when the connection ends.
    pub cancel_on_disconnect: bool,
    /// Redeliveries.
    pub retries: Option<u8>,
    /// 0 to 9.
    pub priority: Option<u8>,
    /// Slots it takes.
    pub cost: Option<u16>,
    /// A send: milliseconds before it is delivered.
    pub delay_ms: u64,
    /// Fail at once if nobody consumes the queue.
    pub fail_fast: bool,
    /// Done when written to a worker.
    pub no_reply: bool,
    /// A broadcast: not to this connection itself.
    pub skip_self: bool,
    /// May be written again to the next broker after a lost connection.
    pub resend: bool,
    /// A send: what the broker knows it by, so that it may be written again and is stored once.
    pub dedup_id: Option<D>,
}

impl<Q, P, D> Ask<Q, P, D> {
    /// A message without options.
    pub const fn new(queue: Q, payload: P) -> Self {
        Self {
            queue,
            payload,
            timeout_ms: None,
            deadline_ms: None,
            cancel_on_timeout: false,
            cancel_on_disconnect: true,
            retries: None,
            priority: None,
            cost: None,
            delay_ms: 0,
            fail_fast: false,
            no_reply: false,
            skip_self: false,
            resend: false,
            dedup_id: None,
        }
    }

    /// The same options for another message.
    pub(crate) fn with<R, S, E>(self, queue: R, payload: S, dedup_id: Option<E>) -> Ask<R, S, E> {
        let Self { timeout_ms, deadline_ms, cancel_on_timeout, cancel_on_disconnect, retries, .. } = self;
        let Self { priority, cost, delay_ms, fail_fast, no_reply, skip_self, resend, .. } = self;
        Ask {
            queue,
            payload,
            timeout_ms,
            deadline_ms,
            cancel_on_timeout,
            cancel_on_disconnect,
            retries,
            priority,
            cost,
            delay_ms,
            fail_fast,
            no_reply,
            skip_self,
            resend,
            dedup_id,
        }
    }
}

/// How a worker consumes its queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// Beside others.
    #[default]
    Shared,
    /// Alone. A queue that is another's is an error, at the start and after a lost connection.
    Exclusive,
    /// Alone. It waits for a queue that is another's, for as long as it takes.
    Standby,
}

/// The registration of a worker, the same on every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// A name for people; empty keeps the one of CONNECT.
    pub name: String,
    /// The `Id` of its HELLO at the foreman, if it runs tasks over a connection there; empty if not.
    pub key: String,
    /// How much it takes at a time.
    pub slots: Slots,
    /// The queues it consumes, each once.
    pub queues: Vec<QueueName>,
    /// How it consumes them.
    pub claim: Claim,
}

/// A delivery of one connection. What settles it is dropped once that connection is gone: the broker has
/// given the message to another worker by then, and the numbers may mean something else on the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    pub(super) epoch: u64,
    pub(super) delivery: Delivery,
}

impl Held {
    /// How the broker names it.
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }
}

/// A message handed to this worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// The delivery that settling frames name.
    pub held: Held,
    /// The queue it comes from.
    pub queue: QueueName,
    /// The id of the message.
    pub id: MessageId,
    /// 1 for the first attempt.
    pub attempt: u16,
    /// Slots it takes.
    pub cost: Cost,
    /// Milliseconds left of its deadline.
    pub deadline_ms: Option<u32>,
    /// Settled by a reply; otherwise by an ack.
    pub wants_reply: bool,
    /// The token with which this worker has the queue to itself.
    pub token: Option<u64>,
    /// Headers and body.
    pub payload: Payload,
}

/// How a delivery is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The reply, or its last piece.
    Reply(Payload),
    /// Done, no reply.
    Ack,
    /// Not done.
    Fail {
        /// No other attempt will do better.
        again: Again,
        /// The failure, for people.
        payload: Payload,
    },
}

/// A request of the core to its driver, or an event. Every call ends with exactly one of `Reply` without `more`,
/// `Delivered`, `Stored`, `BroadcastEnd`, `Admin`, `Resized`, `PublishDone` and `Failed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreEvent {
    /// Dial this broker; then call `handle_connected` or `handle_disconnected`.
    Connect {
        /// The broker's address.
        address: Address,
    },
    /// Drop the connection, or stop dialling.
    Disconnect {
        /// Write first what `poll_transmit` gave.
        flush: bool,
    },
    /// The greeting is done.
    Opened {
        /// With whom.
        address: Address,
        /// The broker's configuration for this connection.
        config: Box<Config>,
    },
    /// The worker is registered, and consumes all its queues or stands by for them.
    Registered,
    /// A queue is this worker's alone.
    Active {
        /// The name of the queue.
        queue: QueueName,
        /// Higher than that of everyone who had the queue before.
        token: u64,
    },
    /// A queue is another's; this worker waits for it.
    StandingBy {
        /// The name of the queue.
        queue: QueueName,
    },
    /// The broker did not take the worker; the next one is tried.
    NotRegistered {
        /// The reason.
        code: Code,
        /// The broker's text.
        detail: String,
    },
    /// A queue that this worker must have to itself has become another's while it was away; the core has ended.
    Replaced {
        /// The name of the queue.
        queue: QueueName,
    },
    /// An open connection is gone.
    Lost {
        /// With whom.
        address: Address,
        /// Why, for people.
        reason: String,
    },
    /// A broker could not be connected to.
    Unreachable {
        /// The broker's address.
        address: Address,
        /// Why, for people.
        reason: String,
    },
    /// No broker answered in the first round; the core has ended.
    GaveUp {
        /// The brokers in the order of trying, each with the reason.
        tried: Vec<(Address, String)>,
    },
    /// The broker takes no new work, or asks this worker to end.
    Closing {
        /// Why the broker closes.
        reason: ClosingReason,
        /// When the connection ends at the latest; 0 if there is no limit.
        within_ms: u64,
    },

    /// The broker dropped the worker from a queue; it asks for it again after a pause.
    Dropped {
        /// The name of the queue.
        queue: QueueName,
        /// The reason.
        reason: Code,
        /// The pause before the worker consumes again, if it does.
        again_ms: Option<u64>,
    },
    /// The worker consumes a queue again that it was dropped from.
    Returned {
        /// The name of the queue.
        queue: QueueName,
    },

    /// The reply to a request, or a piece of it.
    Reply {
        /// The ticket of the request.
        ticket: Ticket,
        /// More pieces follow.
        more: bool,
        /// Headers and body.
        payload: Payload,
    },
    /// Progress of a request, from its worker.
    Progress {
        /// The ticket of the request.
        ticket: Ticket,
        /// Headers and body.
        payload: Payload,
    },
    /// A no-reply request was written to a worker.
    Delivered {
        /// The ticket of the request.
        ticket: Ticket,
    },
    /// The broker has a send.
    Stored {
        /// The ticket of the send.
        ticket: Ticket,
        /// The message's id.
        id: MessageId,
        /// How safe it is.
        durability: Durability,
        /// The broker had it already, from this send or another with the same dedup id.
        duplicate: bool,
    },
    /// One consumer's answer to a broadcast.
    Answer {
        /// The ticket of the broadcast.
        ticket: Ticket,
        /// The consumer's id.
        worker: u64,
        /// The consumer's name.
        name: String,
        /// More pieces of its reply follow.
        more: bool,
        /// It failed; the payload says why.
        failed: bool,
        /// Headers and body.
        payload: Payload,
    },
    /// A broadcast is over.
    BroadcastEnd {
        /// The ticket of the broadcast.
        ticket: Ticket,
        /// How many consumers answered, failed or left.
        end: Box<BroadcastEnd>,
    },
    /// The answer to an admin call.
    Admin {
        /// The ticket of the call.
        ticket: Ticket,
        /// The broker's answer.
        answer: Box<AdminAnswer>,
    },
    /// The worker has another number of slots.
    Resized {
        /// The ticket of the call.
        ticket: Ticket,
    },
    /// An event was published, as far as that was asked for.
    PublishDone {
        /// The ticket of the call.
        ticket: Ticket,
    },
    /// The broker knows all filters of a subscription.
    Subscribed {
        /// The ticket of the subscription.
        ticket: Ticket,
    },
    /// An event that is for these subscriptions.
    Published {
        /// Those.
        tickets: Vec<Ticket>,
        /// The topic of the event.
        topic: Topic,
        /// Headers and body.
        payload: Payload,
    },
    /// So many events, for whichever subscriptions, were left out here.
    EventsDropped {
        /// How many events are missing.
        count: u64,
    },
    /// There is a connection again; what was published in between is missing.
    ListeningAgain,
    /// A call ended without what it wanted, or a subscription ended.
    Failed {
        /// The ticket of the call.
        ticket: Ticket,
        /// The reason.
        code: Code,
        /// The text of the worker or the broker; may be empty.
        payload: Payload,
    },

    /// Work.
    Deliver(Box<Handed>),
    /// Stop this delivery, and settle it when it has really stopped.
    CancelDelivery {
        /// The delivery that is cancelled.
        held: Held,
        /// The reason.
        reason: Code,
    },
}
