//! Settings of an endpoint.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use turno_proto::model::QueueName;
use turno_proto::zmtp::curve::{KeyPair, PublicKey};
use turno_proto::zmtp::{OwnSocketType, Security, SocketType, ZmtpCredentials};

use crate::settings::IfTaken;

/// One endpoint for ZeroMQ programs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZmqEndpoint {
    /// Its name, for people.
    pub name: String,
    /// Where peers connect, or where the broker does.
    pub place: ZmqPlace,
    /// The start if the address is taken.
    pub if_taken: IfTaken,
    /// The role of DEALER sockets, which can ask and can work.
    pub role: ZmqRole,
    /// The queue of plain sockets.
    pub queue: QueueName,
    /// The prefix of each topic of PUB and SUB sockets; may be empty.
    pub topic: String,
    /// Slots of workers other than REP; `None`: the usual number of each kind.
    pub slots: Option<u32>,
    /// Redeliveries that a request may have when its worker is lost or fails.
    pub retries: u8,
    /// The first frame of an answer that says why a request failed; `None`: such answers are withheld, and counted.
    pub error_frame: Option<String>,
    /// Peers that may connect, or the credentials of the broker where it connects.
    pub access: ZmqAccess,
}

impl ZmqEndpoint {
    /// An endpoint at an address, with a queue, open to all.
    pub fn new(listen: ZmqAddress, queue: QueueName) -> Self {
        Self {
            name: "default".to_owned(),
            place: ZmqPlace::Listen(listen),
            if_taken: IfTaken::Fail,
            role: ZmqRole::Client,
            queue,
            topic: String::new(),
            slots: None,
            retries: 0,
            error_frame: None,
            access: ZmqAccess::Null,
        }
    }
}

/// Which end of an endpoint's connections the broker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZmqPlace {
    /// Peers connect here; port 0: the system chooses one.
    Listen(ZmqAddress),
    /// The broker connects to a program that listens there.
    Connect {
        /// `tcp://HOST:PORT` or `ipc://PATH`.
        address: String,
        /// The socket type of the broker.
        socket: SocketType,
    },
}

impl ZmqPlace {
    /// Where peers connect, if they do.
    pub const fn listen(&self) -> Option<&ZmqAddress> {
        match self {
            Self::Listen(address) => Some(address),
            Self::Connect { .. } => None,
        }
    }

    /// The socket type of the broker's end.
    pub(super) const fn ours(&self) -> OwnSocketType {
        match self {
            Self::Listen(_) => OwnSocketType::Counterpart,
            Self::Connect { socket, .. } => OwnSocketType::Is(*socket),
        }
    }
}

impl fmt::Display for ZmqPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address) => address.fmt(f),
            Self::Connect { address, .. } => f.write_str(address),
        }
    }
}

/// An address as ZeroMQ writes it: `tcp://127.0.0.1:7461` or `ipc:///run/turno.zmq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZmqAddress {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Ipc(PathBuf),
}

impl ZmqAddress {
    /// Its form, for the end of "expected …".
    pub const EXPECTED: &'static str = "an address like \"tcp://127.0.0.1:7461\" or \"ipc:///run/turno/zmq\"";
}

impl fmt::Display for ZmqAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}

impl FromStr for ZmqAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("ipc://") {
            // A name that begins with @ is an abstract one.
            let is_path = !path.is_empty() && !path.starts_with('@') && path != "*";
            return is_path.then(|| Self::Ipc(PathBuf::from(path))).ok_or(Self::EXPECTED);
        }
        let place = text.strip_prefix("tcp://").unwrap_or(text);
        // Other names would make the meaning depend on a name server.
        let local = place.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        let local = local.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        local.or_else(|| place.parse().ok()).map(Self::Tcp).ok_or(Self::EXPECTED)
    }
}

/// The role of sockets that can ask and work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZmqRole {
    /// They ask.
    #[default]
    Client,
    /// They work.
    Worker,
    /// They and ROUTER sockets speak LMQ.
    Lmq,
}

impl ZmqRole {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Worker => "worker",
            Self::Lmq => "lmq",
        }
    }
}

/// The mechanism of an endpoint: peers that may connect, or the credentials of the broker where it connects.
#[derive(Clone)]
pub enum ZmqAccess {
    /// NULL: everybody.
    Null,
    /// PLAIN at an endpoint that listens: these users, each with a password.
    Plain(BTreeMap<String, String>),
    /// PLAIN at an endpoint that connects.
    PlainClient {
        /// The name that the broker shows.
        user: String,
        /// The password that it shows.
        password: String,
    },
    /// CURVE at an endpoint that listens: clients that know the public key of this pair, and have one of these keys; `None`:
    /// any key.
    Curve {
        /// The keys of the broker.
        keys: KeyPair,
        /// The public keys of clients.
        clients: Option<Vec<PublicKey>>,
    },
    /// CURVE at an endpoint that connects.
    CurveClient {
        /// The keys of the broker.
        keys: KeyPair,
        /// The public key of the program: nobody else can answer.
        server: PublicKey,
    },
}

impl ZmqAccess {
    /// The broker's end in the handshake.
    pub(super) fn security(&self) -> Security {
        match self {
            Self::Null => Security::Null,
            Self::Plain(_) => Security::PlainServer,
            Self::PlainClient { user, password } => {
                Security::PlainClient { user: user.as_bytes().into(), password: password.as_bytes().into() }
            }
            Self::Curve { keys, .. } => Security::CurveServer(keys.clone()),
            Self::CurveClient { keys, server } => Security::CurveClient { keys: keys.clone(), server: *server },
        }
    }

    /// Whether a client that showed this may connect.
    pub(super) fn accepts(&self, shown: &ZmtpCredentials) -> bool {
        match (self, shown) {
            (Self::Null, _) => true,
            (Self::Plain(users), ZmtpCredentials::Plain { user, password }) => {
                let known = std::str::from_utf8(user).ok().and_then(|user| users.get(user));
                known.is_some_and(|known| is_same(known.as_bytes(), password))
            }
            (Self::Curve { clients, .. }, ZmtpCredentials::Curve { key }) => {
                clients.as_ref().is_none_or(|clients| clients.contains(key))
            }
            // Nobody shows anything to an end that connects.
            (Self::Plain(_) | Self::Curve { .. } | Self::PlainClient { .. } | Self::CurveClient { .. }, _) => false,
        }
    }

    /// Whether everybody may connect who reaches the address.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// Compares in a time that does not depend on where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

/// Passwords and secret keys are not shown.
impl fmt::Debug for ZmqAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.security().mechanism().name())
    }
}

impl PartialEq for ZmqAccess {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Plain(one), Self::Plain(other)) => one == other,
            (Self::Curve { keys: one, clients }, Self::Curve { keys: other, clients: others }) => {
                one.public() == other.public() && clients == others
            }
            (
                Self::PlainClient { user, password },
                Self::PlainClient { user: other_user, password: other_password },
            ) => user == other_user && password == other_password,
            (Self::CurveClient { keys: one, server }, Self::CurveClient { keys: other, server: other_server }) => {
                one.public() == other.public() && server == other_server
            }
            _ => false,
        }
    }
}

impl Eq for ZmqAccess {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_zeromq() {
        let table = [
            ("tcp://127.0.0.1:7461", Some("tcp://127.0.0.1:7461")),
            ("127.0.0.1:0", Some("tcp://127.0.0.1:0")),
            ("tcp://localhost:1", Some("tcp://127.0.0.1:1")),
            ("tcp://[::1]:1", Some("tcp://[::1]:1")),
            ("ipc:///run/x", Some("ipc:///run/x")),
            ("ipc://", None),
            ("ipc://@x", None),
            ("ipc://*", None),
            ("tcp://*:7461", None),
            ("tcp://eth0:7461", None),
            ("inproc://x", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(
                text.parse::<ZmqAddress>().ok().map(|address| address.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn who_may_connect() {
        let shows = |user: &str, password: &str| ZmtpCredentials::Plain {
            user: user.as_bytes().into(),
            password: password.as_bytes().into(),
        };
        let keys = KeyPair::from_secret([1; 32]);
        let (friend, stranger) = (KeyPair::from_secret([2; 32]).public(), KeyPair::from_secret([3; 32]).public());
        let plain = ZmqAccess::Plain(BTreeMap::from([("ann".to_owned(), "secret".to_owned())]));
        let curve = ZmqAccess::Curve { keys: keys.clone(), clients: Some(vec![friend]) };
        let table = [
            (&plain, shows("ann", "secret"), true),
            (&plain, shows("ann", "secre"), false),
            (&plain, shows("ann", "secret2"), false),
            (&plain, shows("bob", "secret"), false),
            (&plain, shows("", ""), false),
            (&plain, ZmtpCredentials::Curve { key: friend }, false),
            (&curve, ZmtpCredentials::Curve { key: friend }, true),
            (&curve, ZmtpCredentials::Curve { key: stranger }, false),
            (&curve, shows("ann", "secret"), false),
            (&ZmqAccess::Curve { keys, clients: None }, ZmtpCredentials::Curve { key: stranger }, true),
        ];
        for (access, shown, expected) in table {
            assert_eq!(access.accepts(&shown), expected, "{access:?} {shown:?}");
        }
        let shown = format!("{plain:?} {curve:?}");
        assert_eq!(shown, "PLAIN CURVE", "no secrets");
    }
}
