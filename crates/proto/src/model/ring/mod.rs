//! The ring: its members and their messages. See docs/how-to/ring.md.

mod message;
pub mod view;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::message::{Circle, JoinVerdict, NewConn, Publication, PublicationRef, RetConn, RingMessage};
use super::words::words;

/// A broker's number in the ring.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Sid(u16);

impl Sid {
    /// That number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The sid as a number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl FromStr for Sid {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sid({})", self.0)
    }
}

/// One life of a broker in the ring. The later of two lives has the higher incarnation, and fences the earlier off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The broker's number.
    pub sid: Sid,
    /// Which of its lives.
    pub incarnation: u64,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.sid, self.incarnation)
    }
}

/// A broker of the ring, and where others reach it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// Sid and incarnation.
    pub origin: Origin,
    /// HOST:PORT of its ring listener.
    pub address: String,
    /// HOST:PORT where it takes clients and links; empty if it does not say.
    #[serde(default)]
    pub native: String,
}

/// The last publication of an origin that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LastReceived {
    /// The member that published.
    pub origin: Origin,
    /// Up to which.
    pub seq: u64,
}

/// The lost member whose place is empty: the content of RETCONN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<Sid>", into = "Option<Sid>")]
pub enum LostMember {
    /// That one's.
    Sid(Sid),
    /// Unknown, or several in a row: a member that has nobody to send to is meant.
    Gap,
}

impl From<Option<Sid>> for LostMember {
    fn from(sid: Option<Sid>) -> Self {
        sid.map_or(Self::Gap, Self::Sid)
    }
}

impl From<LostMember> for Option<Sid> {
    fn from(fallen: LostMember) -> Self {
        match fallen {
            LostMember::Sid(sid) => Some(sid),
            LostMember::Gap => None,
        }
    }
}

/// Why a member becomes another's predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectPurpose {
    /// It was its predecessor before the connection was lost.
    Return,
    /// The other asked to join, and this is the place.
    Join,
    /// The member between them is lost.
    Heal,
    /// The member between them leaves.
    Left,
}

words! {
    /// Where a node of the ring is.
    #[derive(Default)]
    pub enum RingState {
        /// A ring of one. Others may join it.
        #[default]
        Alone = "alone",
        /// On its way in: it has asked, and waits for its place.
        Joining = "joining",
        /// Between two neighbours.
        Member = "member",
        /// Between two neighbours, and about to send to another than before.
        Rewiring = "rewiring",
        /// A neighbour is lost.
        LinkDown = "link-down",
        /// On its way out.
        Leaving = "leaving",
        /// Out of the ring.
        Off = "off",
    }
}

impl RingState {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::Alone, Self::Joining, Self::Member, Self::Rewiring, Self::LinkDown, Self::Leaving, Self::Off];

    /// Its name in the documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "ALONE",
            Self::Joining => "JOINING",
            Self::Member => "MEMBER",
            Self::Rewiring => "REWIRING",
            Self::LinkDown => "LINK_DOWN",
            Self::Leaving => "LEAVING",
            Self::Off => "OFF",
        }
    }
}
