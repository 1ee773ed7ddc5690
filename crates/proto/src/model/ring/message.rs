//! Messages of a ring, as values. `native` has their bytes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ConnectPurpose, LastReceived, LostMember, Member, Origin, Sid};
use crate::model::Code;
use crate::model::topic::{Event, EventRef};

/// A broker wants to be a member. Without content: its own request, to the member it wants to send to. With content: the
/// notice of that on its way round the ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewConn {
    /// The broker that wants to join.
    pub joiner: Member,
    /// The member that it asked.
    pub content: Option<Sid>,
    /// That member has no predecessor: a member that has nobody to send to may claim the joiner.
    pub gap: bool,
    /// The decision, once there is one.
    #[serde(with = "verdict")]
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

/// With content: the member that sent to the lost one shall send to me. Without: I send to you from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetConn {
    /// The first message on a new connection of a member.
    Open {
        /// The purpose of the connection.
        #[serde(rename = "errand")]
        purpose: ConnectPurpose,
    },
    /// On its way round the ring.
    Call {
        /// The member without a predecessor.
        caller: Member,
        /// Its lost predecessor.
        content: LostMember,
        /// Members that it came through.
        hops: u8,
    },
}

/// A publication on its way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication<E = Arc<Event>> {
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
    /// The published event.
    pub event: E,
}

/// The same where it lies: most only pass, and are never owned.
pub type PublicationRef<'a> = Publication<EventRef<'a>>;

impl<E> Publication<E> {
    /// The same with its event in another form.
    #[inline]
    pub fn with<F>(self, event: F) -> Publication<F> {
        let Self { origin, seq, after, round, hops, event: _ } = self;
        Publication { origin, seq, after, round, hops, event }
    }
}

impl PublicationRef<'_> {
    /// One of its own.
    pub fn to_publication(&self) -> Publication {
        self.with(Arc::new(self.event.to_event()))
    }
}

impl<'a> From<&'a Publication> for PublicationRef<'a> {
    #[inline]
    fn from(publication: &'a Publication) -> Self {
        let Publication { origin, seq, after, round, hops, ref event } = *publication;
        Self { origin, seq, after, round, hops, event: EventRef::from(&**event) }
    }
}

/// A message on a connection of the ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RingMessage {
    /// NEWCONN.
    NewConn(NewConn),
    /// RETCONN.
    RetConn(RetConn),
    /// PUBLISH.
    #[serde(skip)]
    Publish(Publication),
    /// SERVOFF: a member leaves. Content: its successor, to which its predecessor shall send.
    ServOff {
        /// The member that leaves.
        leaver: Member,
        /// Its successor, once that has heard of it. Boxed, so that other messages are not as large as two members.
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
    /// The roll call of one member.
    RollCall {
        /// The member that sends it round.
        origin: Origin,
        /// The number of this roll call at its origin.
        number: u64,
        /// Of the same origin's publications all up to this one have come round.
        round: u64,
        /// Members that it came through, the origin first.
        members: Vec<Member>,
    },
    /// Back to the sender: its opening is accepted, and this is what the receiver has. Nothing is sent before it came.
    Have {
        /// By origin.
        had: Vec<LastReceived>,
    },
    /// The sender has replayed what was missing; the members that it knows.
    CaughtUp {
        /// In the order of the circle as it knows it.
        members: Vec<Member>,
    },
    /// Back to the sender: no, or not any more. The connection ends.
    Refused {
        /// The reason of the refusal.
        #[serde(with = "code")]
        code: Code,
        /// The member to ask instead.
        instead: Option<Member>,
    },
    /// Opens a connection for one question: who is with you? It tells the same of the one that asks.
    Probe(Circle),
    /// Answers a probe.
    Circle(Circle),
    /// All members of this ring shall join another one.
    Merge {
        /// The member that found the other ring.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circle {
    /// Its last roll call came round, and nothing has changed since.
    pub whole: bool,
    /// The members in order.
    pub members: Vec<Member>,
}

/// A code as its number; one that this version does not know is `other`.
mod code {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::model::Code;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(code: &Code, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(code.number())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Code, D::Error> {
        u32::deserialize(from).map(|number| Code::from_number(number).unwrap_or(Code::Other))
    }
}

/// How an attempt to join ended: nil, 0 if the place was claimed, or the number of a code.
mod verdict {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::JoinVerdict;
    use crate::model::Code;

    pub(super) fn serialize<S: Serializer>(verdict: &Option<JoinVerdict>, to: S) -> Result<S::Ok, S::Error> {
        let number = |verdict: &JoinVerdict| match verdict {
            JoinVerdict::Claimed => 0,
            JoinVerdict::Refused(code) => code.number(),
        };
        verdict.as_ref().map(number).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<JoinVerdict>, D::Error> {
        let verdict = |number| match number {
            0 => JoinVerdict::Claimed,
            number => JoinVerdict::Refused(Code::from_number(number).unwrap_or(Code::Other)),
        };
        Ok(Option::<u32>::deserialize(from)?.map(verdict))
    }
}
