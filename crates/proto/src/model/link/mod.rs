//! Links: the messages between linked brokers, and views. See docs/reference/protocol/links.md.

mod message;
pub mod view;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::message::{Forward, ForwardBroadcast, ForwardEvent, LinkMessage};
use super::limits;
use super::ring::Origin;

/// One start of a broker: 48 random bits, the same that its message ids begin with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct BrokerId(u64);

/// Why numbers from a peer are no broker's id, or no way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id has 48 bits, and a way at most 8 of them, none twice")]
pub struct PathError;

impl BrokerId {
    /// The id in these bits; those above the 48th are cut off.
    pub const fn new(run: u64) -> Self {
        Self(run & ((1 << 48) - 1))
    }

    /// The id as bits.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for BrokerId {
    type Error = PathError;

    fn try_from(bits: u64) -> Result<Self, PathError> {
        if bits >> 48 == 0 { Ok(Self(bits)) } else { Err(PathError) }
    }
}

impl From<BrokerId> for u64 {
    fn from(id: BrokerId) -> Self {
        id.0
    }
}

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

impl fmt::Debug for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokerId({self})")
    }
}

/// Brokers in the order of a way: of a message those that it came through, its first one first; of an offer those from
/// the one that tells of it to the one that has the slots.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<BrokerId>", into = "Vec<BrokerId>")]
pub struct Path {
    /// All in one place: each message that crosses a link has a path, and an allocation for it would cost more than the rest of it.
    brokers: [BrokerId; limits::PATH_MAX],
    len: u8,
}

/// No broker at all.
impl Default for Path {
    fn default() -> Self {
        Self { brokers: [BrokerId(0); limits::PATH_MAX], len: 0 }
    }
}

impl TryFrom<Vec<BrokerId>> for Path {
    type Error = PathError;

    fn try_from(brokers: Vec<BrokerId>) -> Result<Self, PathError> {
        Self::new(brokers).ok_or(PathError)
    }
}

impl From<Path> for Vec<BrokerId> {
    fn from(path: Path) -> Self {
        path.brokers().to_vec()
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Path").field(&self.brokers()).finish()
    }
}

impl Path {
    /// A way through these; `None` if they are too many, or one of them comes twice.
    pub fn new(brokers: impl IntoIterator<Item = BrokerId>) -> Option<Self> {
        brokers.into_iter().try_fold(Self::default(), Self::then)
    }

    /// Whether the way leads through that broker.
    pub fn has(&self, broker: BrokerId) -> bool {
        self.brokers().contains(&broker)
    }

    /// Whether both ways lead through some broker.
    pub fn meets(&self, other: &Self) -> bool {
        self.brokers().iter().any(|broker| other.has(*broker))
    }

    /// The way with one more broker before it; `None` if it would be too long, or leads through it already.
    pub fn after(&self, broker: BrokerId) -> Option<Self> {
        Self::new(std::iter::once(broker).chain(self.brokers().iter().copied()))
    }

    /// The way with one more broker at its end; `None` if it would be too long, or leads through it already.
    pub fn then(mut self, broker: BrokerId) -> Option<Self> {
        if self.has(broker) {
            return None;
        }
        let at = self.len();
        *self.brokers.get_mut(at)? = broker;
        self.len += 1;
        Some(self)
    }

    /// The brokers, in order.
    pub fn brokers(&self) -> &[BrokerId] {
        self.brokers.get(..self.len()).unwrap_or_default()
    }

    /// How many brokers it went through.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// None at all.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Slots for a queue's messages somewhere behind a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// From the broker that tells of it to the one whose workers they are; never empty.
    pub path: Path,
    /// How many are free; 0: there are workers, and all of them are busy.
    pub free: u32,
    /// The token of the one worker there that has the queue to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
}

/// A broker's report about free slots for a queue's messages. It replaces its earlier report about that queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The queue's name.
    pub queue: String,
    /// Slots that messages from the other end of the link take here and further on.
    pub held: u32,
    /// Where there are workers; none: nowhere.
    pub rooms: Vec<Room>,
}

/// A broker that can be reached, and what all others should know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// From the broker that tells of it to itself; never empty.
    pub path: Path,
    /// Its name, for people.
    pub name: String,
    /// Those that it has links with.
    pub neighbours: Vec<BrokerId>,
    /// Somebody there listens to topics.
    pub listens: bool,
    /// Its place in a ring, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<Origin>,
}

/// A message from one broker to another, however many are between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// The broker it is for.
    pub to: BrokerId,
    /// Brokers that it came through, the one that says this included; never empty.
    pub path: Path,
    /// The claim, or the answer to one.
    pub claim: Claim,
}

/// Claims to exclusive queues, and answers to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Claim {
    /// To the queue's home: a worker here wants it.
    Ask {
        /// The queue's name.
        queue: String,
        /// The number that the answer repeats.
        number: u64,
    },
    /// From there: it has it.
    Granted {
        /// That of the question.
        number: u64,
        /// The token it has it under.
        token: u64,
    },
    /// From there: it is another's.
    Refused {
        /// That of the question.
        number: u64,
    },
}

/// The kind of answer that a message on its way over a link needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardWants {
    /// A reply: REPLY, or how it failed.
    Reply,
    /// To be written to a worker: DELIVERED.
    Nothing,
    /// To be settled: ACK, or how it failed.
    Settling,
}
