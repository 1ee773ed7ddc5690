//! Settings of a connection, and facts about its peer.

use std::fmt;

use super::curve::{KeyPair, PublicKey};
use super::{Mechanism, SocketType, Version};
use crate::model::limits;

/// How a connection behaves. One value serves all connections of an endpoint.
#[derive(Clone, Debug)]
pub struct ZmtpSettings {
    /// The socket type of this end.
    pub ours: OwnSocketType,
    /// The identity of this end, at most 255 bytes. Empty: the peer chooses one.
    pub identity: Box<[u8]>,
    /// The mechanism, and the role of this end in it.
    pub security: Security,
    /// The highest version that this end speaks.
    pub version: Version,
    /// Bytes of all frames of a message together. More: closed, `frame_too_large`.
    pub message_bytes_max: usize,
    /// Time between two PINGs to a peer that speaks ZMTP 3.1. 0: none.
    pub ping_ms: u32,
}

impl ZmtpSettings {
    /// A connection without security, with the limits and heartbeat that a broker has where nothing else is set.
    pub fn new(ours: OwnSocketType, message_bytes_max: usize) -> Self {
        Self {
            ours,
            identity: Box::default(),
            security: Security::Null,
            version: Version::V3_1,
            message_bytes_max,
            ping_ms: limits::HEARTBEAT_MS,
        }
    }
}

/// The socket type of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnSocketType {
    /// This one, whatever the peer has.
    Is(SocketType),
    /// The one that suits the peer: known once the peer has named its own, so that this end waits for READY before it says
    /// its own. Only the end that was dialled may do so.
    Counterpart,
}

/// A mechanism, the role of this end in it, and its secrets.
#[derive(Clone)]
pub enum Security {
    /// NULL.
    Null,
    /// PLAIN: the owner judges names and passwords.
    PlainServer,
    /// PLAIN: this end shows a name and password, of at most 255 bytes each.
    PlainClient {
        /// The user's name.
        user: Box<[u8]>,
        /// The password.
        password: Box<[u8]>,
    },
    /// CURVE: clients know the public key of this pair; the owner judges their keys.
    CurveServer(KeyPair),
    /// CURVE: this end has a key pair and knows the key of the server.
    CurveClient {
        /// The long-term keys of this end.
        keys: KeyPair,
        /// The server's public key.
        server: PublicKey,
    },
}

impl Security {
    /// The mechanism.
    pub const fn mechanism(&self) -> Mechanism {
        match self {
            Self::Null => Mechanism::Null,
            Self::PlainServer | Self::PlainClient { .. } => Mechanism::Plain,
            Self::CurveServer(_) | Self::CurveClient { .. } => Mechanism::Curve,
        }
    }

    /// Whether this end is the server of the mechanism.
    pub const fn is_server(&self) -> bool {
        matches!(self, Self::PlainServer | Self::CurveServer(_))
    }
}

/// Secrets are not shown.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.mechanism().name(), if self.is_server() { " server" } else { "" })
    }
}

/// The credentials of a client. The owner accepts or refuses them.
#[derive(Clone, PartialEq, Eq)]
pub enum ZmtpCredentials {
    /// PLAIN.
    Plain {
        /// The user's name: any bytes.
        user: Box<[u8]>,
        /// The password: any bytes.
        password: Box<[u8]>,
    },
    /// CURVE: the client has proved that it has the secret key of this one.
    Curve {
        /// The client's long-term public key.
        key: PublicKey,
    },
}

/// Passwords are not shown.
impl fmt::Debug for ZmtpCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { user, .. } => write!(f, "user {}", user.escape_ascii()),
            Self::Curve { key } => write!(f, "key {key}"),
        }
    }
}

/// The authenticated user of the peer, as far as its mechanism shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// NULL, or the server of a mechanism that this end has dialled.
    Unknown,
    /// PLAIN: the name that was accepted.
    Name(Box<[u8]>),
    /// CURVE: the key that was accepted.
    Key(PublicKey),
}

/// The peer, once the handshake is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The peer's socket type.
    pub socket_type: SocketType,
    /// The type of this end.
    pub ours: SocketType,
    /// The identity that the peer gave itself; empty if it gave none.
    pub identity: Box<[u8]>,
    /// The user.
    pub user: User,
    /// The version that both speak.
    pub version: Version,
}
