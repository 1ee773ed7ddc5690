//! What brokers say to each other round the ring, as values.

use std::sync::Arc;

use turno_proto::model::Code;
use turno_proto::model::ring::{Errand, Fallen, Had, Member, Origin, Sid};
use turno_proto::model::topic::{Event, EventRef};

/// Somebody wants to be a member. Without content: it says so itself, to the member it wants to send to. With content:
/// word of it on its way round the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConn {
    /// Who wants to join.
    pub joiner: Member,
    /// The member that it asked.
    pub content: Option<Sid>,
    /// That member has no predecessor: whoever has nobody to send to may claim.
    pub gap: bool,
    /// How it ended.
    pub verdict: Option<JoinVerdict>,
    /// Members that it came through.
    pub hops: u8,
}

/// How an attempt to join ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinVerdict {
    /// The predecessor has connected to the joiner. Nothing else comes on the old path.
    Claimed,
    /// It must not join, or not now.
    Refused(Code),
}

/// With content: whoever sent to the fallen shall send to me. Without: I send to you from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetConn {
    /// The first word on a new connection of a member.
    Open {
        /// Why.
        errand: Errand,
    },
    /// On its way round the ring.
    Call {
        /// Who has no predecessor.
        caller: Member,
        /// Who was that.
        content: Fallen,
        /// Members that it came through.
        hops: u8,
    },
}

/// A publication on its way round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Where it was published.
    pub origin: Origin,
    /// Its number there, from 1.
    pub seq: u64,
    /// The number before it on this way: what is between the two will not come.
    pub after: u64,
    /// Of the same origin's all up to this one have come round.
    pub round: u64,
    /// Members that it came through.
    pub hops: u8,
    /// What was published.
    pub event: Arc<Event>,
}

/// The same where it lies: most only pass, and are never owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of a publication")]
pub struct PublicationRef<'a> {
    pub origin: Origin,
    pub seq: u64,
    pub after: u64,
    pub round: u64,
    pub hops: u8,
    pub event: EventRef<'a>,
}

impl PublicationRef<'_> {
    /// One of its own.
    pub fn to_publication(&self) -> Publication {
        let Self { origin, seq, after, round, hops, event } = *self;
        Publication { origin, seq, after, round, hops, event: Arc::new(event.to_event()) }
    }
}

impl<'a> From<&'a Publication> for PublicationRef<'a> {
    fn from(publication: &'a Publication) -> Self {
        let Publication { origin, seq, after, round, hops, ref event } = *publication;
        Self { origin, seq, after, round, hops, event: EventRef::from(&**event) }
    }
}

/// A word on a connection of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingWord {
    /// NEWCONN.
    NewConn(NewConn),
    /// RETCONN.
    RetConn(RetConn),
    /// PUBLISH.
    Publish(Publication),
    /// SERVOFF: a member leaves. Content: its successor, to which its predecessor shall send.
    ServOff {
        /// Who leaves.
        leaver: Member,
        /// Its successor, once that has heard of it. Elsewhere, so that other words are not moved about in the space of two.
        content: Option<Box<Member>>,
        /// Members that it came through.
        hops: u8,
    },
    /// SHUTDWN: all members end.
    Shutdown {
        /// Where an admin asked for it.
        origin: Origin,
        /// Members that it came through.
        hops: u8,
    },
    /// The roll call.
    RollCall {
        /// Whose.
        origin: Origin,
        /// Its number there.
        number: u64,
        /// Of the same origin's publications all up to this one have come round.
        round: u64,
        /// Members that it came through, the origin first.
        members: Vec<Member>,
    },
    /// Back to the sender: its opening is accepted, and this is what the receiver has. Nothing is sent before it came.
    Have {
        /// By origin.
        had: Vec<Had>,
    },
    /// The sender has replayed what was missing; the members that it knows.
    CaughtUp {
        /// In the order of the circle as it knows it.
        members: Vec<Member>,
    },
    /// Back to the sender: no, or not any more. The connection ends.
    Refused {
        /// Why.
        code: Code,
        /// Who is to be asked instead.
        instead: Option<Member>,
    },
    /// Opens a connection for one question: who is with you? It tells the same of the one that asks.
    Probe(Circle),
    /// Answers a probe.
    Circle(Circle),
    /// All members of this ring shall join another one.
    Merge {
        /// Who found it.
        origin: Origin,
        /// A member of the other ring.
        contact: Member,
        /// Members that it came through.
        hops: u8,
    },
    /// Opens a connection for one question: which number is free? The one that asks has none yet.
    AskSid,
    /// Answers it.
    FreeSid {
        /// The number after the highest.
        sid: Sid,
    },
}

/// The ring as a member knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// Its last roll call came round, and nothing has changed since.
    pub whole: bool,
    /// Who was there.
    pub members: Vec<Member>,
}
