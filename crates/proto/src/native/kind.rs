//! The table of frame types: number, name and sender.

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From clients and workers.
    ToBroker,
    /// From the broker.
    ToPeer,
    /// From either side.
    Both,
    /// Between brokers, over a link.
    Link,
    /// Between members of a ring.
    Ring,
}

/// A group of frame types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Greeting, heartbeat, farewell, errors.
    Session,
    /// Queues and messages.
    Message,
    /// Events for subscribers.
    Topic,
    /// Messages of a ring.
    Ring,
    /// Messages of a link.
    Link,
    /// Calls of command line and dashboard.
    Admin,
}

macro_rules! kinds {
    ($( $variant:ident = $number:literal, $name:literal, $direction:ident, $doc:literal; )+) => {
        /// A frame type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $( #[doc = $doc] $variant = $number, )+
        }

        impl Kind {
            /// Every type, by number.
            pub const ALL: &[Self] = &[ $( Self::$variant, )+ ];

            /// The number in the header.
            #[inline]
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The type with that number.
            #[inline]
            #[expect(clippy::indexing_slicing, reason = "the table has a place for every number")]
            pub const fn from_number(number: u8) -> Option<Self> {
                BY_NUMBER[number as usize]
            }

            /// Its name in the documents.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// The direction of the frame.
            #[inline]
            pub const fn direction(self) -> Direction {
                match self { $( Self::$variant => Direction::$direction, )+ }
            }
        }

        /// A table: the numbers have gaps, through which a match would have to jump.
        static BY_NUMBER: [Option<Kind>; 256] = {
            let mut kinds = [None; 256];
            $( kinds[$number] = Some(Kind::$variant); )+
            kinds
        };
    };
}

kinds! {
    Connect = 16, "CONNECT", ToBroker, "Opens a connection.";
    Config = 17, "CONFIG", ToPeer, "Answers CONNECT: limits, heartbeat, the list of brokers.";
    Ping = 18, "PING", ToBroker, "Heartbeat; the first one makes a worker ready.";
    Pong = 19, "PONG", ToPeer, "Answers PING.";
    Closing = 20, "CLOSING", Both, "The sender accepts no new work.";
    Error = 21, "ERROR", ToPeer, "A frame was refused, or the connection ends.";

    Register = 32, "REGISTER", ToBroker, "Registers the connection as a worker, with its slots.";
    Deregister = 33, "DEREGISTER", ToBroker, "Ends the registration of the worker.";
    Resize = 34, "RESIZE", ToBroker, "Changes the slots of the worker.";
    Consume = 35, "CONSUME", ToBroker, "Adds the worker to a queue.";
    CancelQueue = 36, "CANCEL_QUEUE", Both, "To the broker: removes the worker from a queue. To a worker: it was dropped from a queue.";
    QueueFull = 37, "QUEUE_FULL", ToPeer, "CONSUME was refused: the queue is exclusive to another worker, or has consumers.";
    QueueAvailableNotify = 38, "QUEUE_AVAILABLE_NOTIFY", ToBroker, "Asks for a QUEUE_AVAILABLE when the refused queue is free.";
    QueueAvailable = 39, "QUEUE_AVAILABLE", ToPeer, "The queue is free, and reserved for this worker for a moment.";
    Request = 40, "REQUEST", ToBroker, "A message that needs a reply.";
    Send = 41, "SEND", ToBroker, "A one-way message.";
    Broadcast = 42, "BROADCAST", ToBroker, "A message to every consumer of a queue.";
    Deliver = 43, "DELIVER", ToPeer, "A message for a worker.";
    Reply = 44, "REPLY", Both, "The answer to a request, or one piece of it.";
    Ack = 45, "ACK", ToBroker, "Settles a delivery as done.";
    Fail = 46, "FAIL", ToBroker, "Settles a delivery as failed.";
    Progress = 47, "PROGRESS", Both, "Progress of a running delivery.";
    Extend = 48, "EXTEND", ToBroker, "Extends the lease of a delivery.";
    Cancel = 49, "CANCEL", Both, "To the broker: cancel a request. To a worker: stop a delivery.";
    Delivered = 50, "DELIVERED", ToPeer, "A no-reply request was written to a worker.";
    Undelivered = 51, "UNDELIVERED", ToPeer, "A message ended without a reply.";
    Ok = 52, "OK", ToPeer, "The call of the peer is done.";
    Stored = 53, "STORED", ToPeer, "A send was accepted and stored.";
    Open = 54, "OPEN", ToBroker, "Assigns a handle of the peer's choice to a queue.";
    Answer = 56, "ANSWER", ToPeer, "One consumer's reply to a broadcast, a piece of it, or its failure.";
    BroadcastEnd = 57, "BROADCAST_END", ToPeer, "A broadcast has ended.";

    Subscribe = 64, "SUBSCRIBE", ToBroker, "Subscribes the connection to a filter.";
    Unsubscribe = 65, "UNSUBSCRIBE", ToBroker, "Removes a filter.";
    Publish = 66, "PUBLISH", ToBroker, "Publishes an event.";
    Event = 67, "EVENT", ToPeer, "An event whose topic matches a filter of the connection.";
    EventsDropped = 68, "EVENTS_DROPPED", ToPeer, "Events were dropped here because the peer read too slowly.";

    RingHello = 80, "RING_HELLO", Ring, "Opens a ring connection: identifies the broker that dials and will send.";
    RingChallenge = 81, "RING_CHALLENGE", Ring, "Answers RING_HELLO: identifies the other broker, with its proof of the secret.";
    RingProof = 82, "RING_PROOF", Ring, "Answers RING_CHALLENGE: the proof of the broker that dialled. The connection is up.";
    NewConn = 83, "NEWCONN", Ring, "A broker asks to join; also that request on its way round.";
    RetConn = 84, "RETCONN", Ring, "A member sends to this one from now on; on its way round, it looks for the member that shall send to it.";
    RingPublish = 85, "RING_PUBLISH", Ring, "A publication on its way round.";
    ServOff = 86, "SERVOFF", Ring, "A member leaves.";
    ShutDwn = 87, "SHUTDWN", Ring, "All members end.";
    RollCall = 88, "ROLL_CALL", Ring, "Collects the members of the circle on its way round.";
    RingHave = 89, "RING_HAVE", Ring, "Back to the sender: it is accepted; the last publication that the receiver has of each origin.";
    CaughtUp = 90, "CAUGHT_UP", Ring, "The sender has repeated all missing publications.";
    RingRefused = 91, "RING_REFUSED", Ring, "Back to the sender: the connection is refused, or ends.";
    RingProbe = 92, "RING_PROBE", Ring, "Asks for the circle of the other member.";
    RingCircle = 93, "RING_CIRCLE", Ring, "Back to the sender: answers RING_PROBE.";
    RingMerge = 94, "RING_MERGE", Ring, "Tells all members of this ring to join another.";
    RingSid = 95, "RING_SID", Ring, "Asks for a free sid; back to the sender, names it.";

    LinkHello = 96, "LINK_HELLO", Link, "Opens a link: identifies the broker that dials.";
    LinkChallenge = 97, "LINK_CHALLENGE", Link, "Answers LINK_HELLO: identifies the other broker, with its proof of the secret.";
    LinkProof = 98, "LINK_PROOF", Link, "Answers LINK_CHALLENGE: the proof of the broker that dialled. The link is up.";
    Offer = 99, "OFFER", Link, "Free slots of the broker for some queues.";
    Presence = 100, "PRESENCE", Link, "The brokers that can be reached.";
    Forward = 101, "FORWARD", Link, "A message crosses.";
    ForwardBroadcast = 102, "FORWARD_BROADCAST", Link, "A broadcast crosses.";
    ForwardEvent = 103, "FORWARD_EVENT", Link, "An event crosses.";
    Relay = 104, "RELAY", Link, "A message for a broker that may be further on: about the holder of an exclusive queue.";

    AdminCall = 112, "ADMIN_CALL", ToBroker, "Reads or changes the state of the broker.";
    AdminAnswer = 113, "ADMIN_ANSWER", ToPeer, "Answers ADMIN_CALL.";
}

impl Kind {
    /// Whether a token may stand before its other fields, in a [`Frame::Fenced`](super::Frame::Fenced).
    pub const fn may_be_fenced(self) -> bool {
        matches!(self, Self::Ok | Self::Reply | Self::Ack | Self::Fail | Self::Progress | Self::Extend)
    }

    /// The group the type belongs to.
    pub const fn family(self) -> Family {
        match self.number() {
            16..=31 => Family::Session,
            32..=63 => Family::Message,
            64..=79 => Family::Topic,
            80..=95 => Family::Ring,
            96..=111 => Family::Link,
            _ => Family::Admin,
        }
    }
}
