//! The table of frame types: number, name, and who sends it.

/// Who may send a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Clients and workers.
    ToBroker,
    /// The broker.
    ToPeer,
    /// Either side.
    Both,
    /// Brokers, to each other, over a link.
    Link,
    /// Members of a ring, to each other.
    Ring,
}

/// What a group of types is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Greeting, heartbeat, farewell, errors.
    Session,
    /// Queues and messages.
    Message,
    /// Events for anyone who listens.
    Topic,
    /// What members of a ring say to each other.
    Ring,
    /// What brokers say to each other over a link.
    Link,
    /// What command line and dashboard need.
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

            /// Who may send it.
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
    Connect = 16, "CONNECT", ToBroker, "Begins a connection.";
    Config = 17, "CONFIG", ToPeer, "Answers CONNECT: limits, heartbeat, the list of brokers.";
    Ping = 18, "PING", ToBroker, "A sign of life; the first one makes a worker ready.";
    Pong = 19, "PONG", ToPeer, "Answers PING.";
    Closing = 20, "CLOSING", Both, "No new work from here on.";
    Error = 21, "ERROR", ToPeer, "A frame was refused, or the connection ends.";

    Register = 32, "REGISTER", ToBroker, "The connection is a worker with so many slots.";
    Deregister = 33, "DEREGISTER", ToBroker, "The connection is no worker any more.";
    Resize = 34, "RESIZE", ToBroker, "The worker has another number of slots.";
    Consume = 35, "CONSUME", ToBroker, "The worker takes work from a queue.";
    CancelQueue = 36, "CANCEL_QUEUE", Both, "To the broker: no more work from that queue. To a worker: it was dropped from it.";
    QueueFull = 37, "QUEUE_FULL", ToPeer, "The queue is another's: CONSUME was refused.";
    QueueAvailableNotify = 38, "QUEUE_AVAILABLE_NOTIFY", ToBroker, "Asks for word when a refused queue is free.";
    QueueAvailable = 39, "QUEUE_AVAILABLE", ToPeer, "The queue is free, and kept for this worker for a moment.";
    Request = 40, "REQUEST", ToBroker, "A message that wants a reply.";
    Send = 41, "SEND", ToBroker, "A one-way message.";
    Broadcast = 42, "BROADCAST", ToBroker, "A message to every consumer of a queue.";
    Deliver = 43, "DELIVER", ToPeer, "A message for a worker.";
    Reply = 44, "REPLY", Both, "The answer to a request, or one piece of it.";
    Ack = 45, "ACK", ToBroker, "The delivery is done.";
    Fail = 46, "FAIL", ToBroker, "The delivery failed.";
    Progress = 47, "PROGRESS", Both, "Word about a delivery that goes on.";
    Extend = 48, "EXTEND", ToBroker, "The delivery needs more time.";
    Cancel = 49, "CANCEL", Both, "To the broker: drop my request. To a worker: stop that delivery.";
    Delivered = 50, "DELIVERED", ToPeer, "A no-reply request was written to a worker.";
    Undelivered = 51, "UNDELIVERED", ToPeer, "A message ended without a reply.";
    Ok = 52, "OK", ToPeer, "What the peer asked for is done.";
    Stored = 53, "STORED", ToPeer, "A send was taken in.";
    Open = 54, "OPEN", ToBroker, "Gives a handle of the peer's choice to a queue.";
    Answer = 56, "ANSWER", ToPeer, "One consumer's reply to a broadcast, a piece of it, or its failure.";
    BroadcastEnd = 57, "BROADCAST_END", ToPeer, "A broadcast is over.";

    Subscribe = 64, "SUBSCRIBE", ToBroker, "Events whose topics match a filter are wanted.";
    Unsubscribe = 65, "UNSUBSCRIBE", ToBroker, "They are not any more.";
    Publish = 66, "PUBLISH", ToBroker, "An event for anyone who listens.";
    Event = 67, "EVENT", ToPeer, "An event whose topic matches a filter of the connection.";
    EventsDropped = 68, "EVENTS_DROPPED", ToPeer, "So many events were left out here: the connection was read too slowly.";

    RingHello = 80, "RING_HELLO", Ring, "Begins a connection of a ring: the broker that dials, and will send, says who it is.";
    RingChallenge = 81, "RING_CHALLENGE", Ring, "Answers RING_HELLO: who the other broker is, and its proof that it knows the secret.";
    RingProof = 82, "RING_PROOF", Ring, "Answers RING_CHALLENGE: the proof of the broker that dialled. The connection is up.";
    NewConn = 83, "NEWCONN", Ring, "A broker wants to be a member; or word of that on its way round.";
    RetConn = 84, "RETCONN", Ring, "A member sends to this one from now on; or, on its way round, looks for anyone who shall send to it.";
    RingPublish = 85, "RING_PUBLISH", Ring, "A publication on its way round.";
    ServOff = 86, "SERVOFF", Ring, "A member leaves.";
    ShutDwn = 87, "SHUTDWN", Ring, "All members end.";
    RollCall = 88, "ROLL_CALL", Ring, "Who is in the circle, on its way round.";
    RingHave = 89, "RING_HAVE", Ring, "Back to the sender: it is accepted, and this is what the receiver has.";
    CaughtUp = 90, "CAUGHT_UP", Ring, "The sender has replayed what was missing.";
    RingRefused = 91, "RING_REFUSED", Ring, "Back to the sender: no, or not any more.";
    RingProbe = 92, "RING_PROBE", Ring, "Asks who is in the circle of the other.";
    RingCircle = 93, "RING_CIRCLE", Ring, "Back to the sender: answers RING_PROBE.";
    RingMerge = 94, "RING_MERGE", Ring, "All members of this ring shall join another.";
    RingSid = 95, "RING_SID", Ring, "Asks which number is free; or, back to the sender, tells it.";

    LinkHello = 96, "LINK_HELLO", Link, "Begins a link: the broker that dials says who it is.";
    LinkChallenge = 97, "LINK_CHALLENGE", Link, "Answers LINK_HELLO: who the other broker is, and its proof that it knows the secret.";
    LinkProof = 98, "LINK_PROOF", Link, "Answers LINK_CHALLENGE: the proof of the broker that dialled. The link is up.";
    Offer = 99, "OFFER", Link, "What the broker has for messages of some queues.";
    Presence = 100, "PRESENCE", Link, "Everyone who can be reached.";
    Forward = 101, "FORWARD", Link, "A message crosses.";
    ForwardBroadcast = 102, "FORWARD_BROADCAST", Link, "A broadcast crosses.";
    ForwardEvent = 103, "FORWARD_EVENT", Link, "An event crosses.";
    Relay = 104, "RELAY", Link, "A word for a broker that may be further on: who may have a queue to itself.";

    AdminCall = 112, "ADMIN_CALL", ToBroker, "Asks about, or changes, something of the broker.";
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
