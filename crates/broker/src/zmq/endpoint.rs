//! An endpoint of a running broker: its settings, peers and counters. All routers share it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use turno_proto::model::zmq::{EndpointView, ZmqPeerView};
use turno_proto::model::{ConnId, limits};
use turno_proto::zmtp::{Peer, User, ZmtpCredentials, ZmtpSettings as WireSettings};

use super::addresses::Addresses;
use super::settings::{ZmqEndpoint, ZmqRole};

/// All endpoints of a broker. A connection knows its endpoint by the place in this table.
#[derive(Clone, Debug, Default)]
pub struct Endpoints(Arc<[Arc<Endpoint>]>);

impl Endpoints {
    /// The endpoints of a broker that takes messages of so many bytes.
    pub fn new(settings: &[ZmqEndpoint], message_bytes_max: usize, ping_ms: u32) -> Self {
        let endpoint = |one: &ZmqEndpoint| Arc::new(Endpoint::new(one.clone(), message_bytes_max, ping_ms));
        Self(settings.iter().map(endpoint).collect())
    }

    /// Those that connect to programs, with their places.
    pub(crate) fn that_connect(&self) -> Vec<(u16, Arc<Endpoint>)> {
        let connects = |(_, endpoint): &(u16, &Arc<Endpoint>)| endpoint.settings.place.listen().is_none();
        (0..).zip(self.0.iter()).filter(connects).map(|(place, endpoint)| (place, Arc::clone(endpoint))).collect()
    }

    /// Views of all endpoints.
    pub(crate) fn views(&self) -> Vec<EndpointView> {
        self.0.iter().map(|endpoint| endpoint.view()).collect()
    }

    pub(crate) fn get(&self, place: u16) -> Option<&Arc<Endpoint>> {
        self.0.get(usize::from(place))
    }
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    settings: ZmqEndpoint,
    wire: Arc<WireSettings>,
    counts: [AtomicU64; Count::ALL.len()],
    /// Connections, also those that are not greeted.
    open: AtomicU64,
    /// With their addresses.
    peers: Mutex<BTreeMap<ConnId, (String, Peer)>>,
    /// Those of LMQ peers.
    addresses: Addresses,
}

/// A counter of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Messages from peers.
    Received,
    /// Messages to peers.
    Sent,
    /// Answers that a plain socket has no place for: its request failed.
    Withheld,
    /// Messages without a valid envelope.
    BadEnvelope,
    /// Publications and subscriptions whose topic is not one.
    BadTopic,
    /// Messages and subscriptions that the broker refused.
    Refused,
    /// Handshakes that failed.
    BadHandshake,
}

impl Count {
    const ALL: [Self; 7] = [
        Self::Received,
        Self::Sent,
        Self::Withheld,
        Self::BadEnvelope,
        Self::BadTopic,
        Self::Refused,
        Self::BadHandshake,
    ];
}

impl Endpoint {
    fn new(settings: ZmqEndpoint, message_bytes_max: usize, ping_ms: u32) -> Self {
        let security = settings.access.security();
        // Programs of LMQ send to the broker's address.
        let identity: Box<[u8]> = match settings.role {
            ZmqRole::Lmq => settings.place.to_string().into_bytes().into(),
            ZmqRole::Client | ZmqRole::Worker => Box::default(),
        };
        let wire = WireSettings::new(settings.place.ours(), message_bytes_max);
        let wire = WireSettings { security, ping_ms, identity, ..wire };
        Self {
            settings,
            wire: Arc::new(wire),
            counts: Default::default(),
            open: AtomicU64::new(0),
            peers: Mutex::default(),
            addresses: Addresses::default(),
        }
    }

    pub(crate) const fn settings(&self) -> &ZmqEndpoint {
        &self.settings
    }

    pub(crate) const fn wire(&self) -> &Arc<WireSettings> {
        &self.wire
    }

    pub(crate) fn accepts(&self, shown: &ZmtpCredentials) -> bool {
        self.settings.access.accepts(shown)
    }

    /// Counts one more.
    pub(crate) fn count(&self, what: Count) {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were so far.
    pub(crate) fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }

    /// A connection begins. False if it must end: an endpoint that connects has one, and a router that was slow to take it in may
    /// have had the broker dial again. A program that publishes would be heard twice.
    pub(crate) fn opened(&self) -> bool {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        before == 0 || self.settings.place.listen().is_some()
    }

    /// Whether there is a connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// The handshake with a peer is done.
    pub(crate) fn joined(&self, conn: ConnId, address: String, peer: Peer) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).insert(conn, (address, peer));
    }

    /// The connection is over.
    pub(crate) fn left(&self, conn: ConnId) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.addresses.left(conn);
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&conn);
    }

    /// Addresses of LMQ peers.
    pub(super) const fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The identity that a peer gave itself; empty if it gave none.
    pub(super) fn identity(&self, conn: ConnId) -> Bytes {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.get(&conn).map(|(_, peer)| Bytes::copy_from_slice(&peer.identity)).unwrap_or_default()
    }

    /// The address of a peer.
    pub(super) fn address(&self, conn: ConnId) -> String {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.get(&conn).map(|(address, _)| address.clone()).unwrap_or_default()
    }

    /// View of the endpoint.
    fn view(&self) -> EndpointView {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let ZmqEndpoint { name, place, role, queue, topic, .. } = &self.settings;
        EndpointView {
            name: name.clone(),
            address: place.to_string(),
            queue: queue.as_str().to_owned(),
            role: role.name().to_owned(),
            topic: topic.clone(),
            mechanism: self.wire.security.mechanism().name().to_owned(),
            peers_all: peers.len() as u64,
            received: self.counted(Count::Received),
            sent: self.counted(Count::Sent),
            withheld: self.counted(Count::Withheld),
            bad_envelope: self.counted(Count::BadEnvelope),
            bad_topic: self.counted(Count::BadTopic),
            refused: self.counted(Count::Refused),
            bad_handshake: self.counted(Count::BadHandshake),
            peers: peers.values().take(limits::ZMQ_PEERS_SHOWN).map(peer_view).collect(),
        }
    }
}

fn peer_view((address, peer): &(String, Peer)) -> ZmqPeerView {
    ZmqPeerView {
        address: address.clone(),
        socket: peer.socket_type.name().to_owned(),
        identity: peer.identity.escape_ascii().to_string(),
        user: match &peer.user {
            User::Unknown => None,
            User::Name(name) => Some(name.escape_ascii().to_string()),
            User::Key(key) => Some(key.to_string()),
        },
    }
}
