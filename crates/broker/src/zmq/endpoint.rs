//! An endpoint of a running broker: its settings, its peers and what was counted there. All routers share it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use turno_proto::model::ConnId;
use turno_proto::zmtp::{Credentials, Ours, Peer, Settings as WireSettings};

use super::settings::ZmqEndpoint;

/// All endpoints of a broker. A connection knows its endpoint by the place in this table.
#[derive(Clone, Debug, Default)]
pub struct Endpoints(Arc<[Arc<Endpoint>]>);

impl Endpoints {
    /// The endpoints of a broker that takes messages of so many bytes.
    pub fn new(settings: &[ZmqEndpoint], message_bytes_max: usize, ping_ms: u32) -> Self {
        let endpoint = |one: &ZmqEndpoint| Arc::new(Endpoint::new(one.clone(), message_bytes_max, ping_ms));
        Self(settings.iter().map(endpoint).collect())
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
    peers: Mutex<BTreeMap<ConnId, Peer>>,
}

/// What an endpoint counts.
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
        let wire = WireSettings { security, ping_ms, ..WireSettings::new(Ours::Counterpart, message_bytes_max) };
        Self { settings, wire: Arc::new(wire), counts: Default::default(), peers: Mutex::default() }
    }

    pub(crate) const fn settings(&self) -> &ZmqEndpoint {
        &self.settings
    }

    pub(crate) const fn wire(&self) -> &Arc<WireSettings> {
        &self.wire
    }

    pub(crate) fn accepts(&self, shown: &Credentials) -> bool {
        self.settings.access.accepts(shown)
    }

    /// Counts one more.
    pub(crate) fn count(&self, what: Count) {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were so far.
    #[cfg(test)]
    pub(crate) fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }

    /// The handshake with a peer is done.
    pub(crate) fn joined(&self, conn: ConnId, peer: Peer) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).insert(conn, peer);
    }

    /// The peer is gone.
    pub(crate) fn left(&self, conn: ConnId) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&conn);
    }
}
