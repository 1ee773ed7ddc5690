//! The state of one ZeroMQ connection: its session, its dialect, and whether it is read from.

use std::sync::Arc;

use tracing::{info, warn};
use turno_proto::model::{Limits, limits};
use turno_proto::zmtp::{Peer, ZmtpSession};

use super::super::table::{Connection, ConnectionPhase, PeerProtocol};
use crate::log_limit::{self, LogKind};
use crate::zmq::{Count, Dialect, Endpoint};

/// Messages without an outcome that a peer may have before the broker stops reading from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZmqLimits {
    /// Requests of a client.
    pub calls: usize,
    /// Messages of a PUSH socket that are not stored.
    pub unstored: usize,
}

impl ZmqLimits {
    pub(super) fn new(limits: &Limits) -> Self {
        // Messages of one read beyond it must not be refused.
        Self { calls: (limits.in_flight_max / 2).max(1) as usize, unstored: limits::ZMQ_UNSTORED_MAX }
    }
}

/// One end of a ZMTP connection, and what it means.
pub(in super::super) struct ZmqConnection {
    pub(in super::super) session: ZmtpSession,
    /// Once the handshake is done.
    pub(super) dialect: Option<Dialect>,
    pub(super) endpoint: Arc<Endpoint>,
    /// Where the endpoint is in the table.
    pub(super) place: u16,
    /// Too much of it has no outcome: nothing is read from it until half of that has.
    pub(super) held_back: bool,
}

impl std::fmt::Debug for ZmqConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZmqTalk").field("place", &self.place).field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

impl ZmqConnection {
    /// Bytes of a message that has begun, as far as is known.
    pub(in super::super) fn claimed_bytes(&self) -> Option<usize> {
        self.session.claimed_bytes()
    }

    /// Whether what comes makes room.
    pub(in super::super) fn settles(&self) -> bool {
        self.dialect.as_ref().is_some_and(Dialect::settles)
    }

    /// Whether a delivery is done when it is written.
    pub(in super::super) const fn is_pull(&self) -> bool {
        matches!(self.dialect, Some(Dialect::Pulls(_)))
    }

    pub(in super::super) fn dialect_bytes(&self) -> usize {
        self.dialect.as_ref().map_or(0, Dialect::held_bytes)
    }

    /// The connection is over. If the broker made it and the program closed it within the handshake, the operator hears of it:
    /// libzmq does so with a client whose server key is wrong. At an endpoint that listens, anybody may look and go.
    pub(super) fn tell_if_unanswered(&self, connection: &Connection) {
        if connection.phase != ConnectionPhase::Greeting || self.endpoint.settings().place.listen().is_some() {
            return;
        }
        self.endpoint.count(Count::BadHandshake);
        if log_limit::admits(LogKind::Protocol) {
            info!(address = connection.address, "a ZeroMQ program closed the connection before the handshake was done");
        }
    }

    /// The connection is over, and with it the messages that waited for room: their sender cannot be told, so they are counted.
    pub(super) fn count_lost(&self, connection: &Connection) {
        let lost = self.dialect.as_ref().map_or(0, Dialect::held);
        (0..lost).for_each(|_| self.endpoint.count(Count::Refused));
        if lost > 0 && log_limit::admits(LogKind::Protocol) {
            warn!(
                address = connection.address,
                messages = lost,
                "a PUSH socket closed while the broker had no room for its messages"
            );
        }
    }

    /// Whether to read from it. `refuses`: the engine has no memory for messages.
    pub(in super::super) fn wants_reading(&mut self, limits: ZmqLimits, refuses: bool) -> bool {
        let Some(dialect) = &self.dialect else { return true };
        let most = if dialect.loses() { limits.unstored } else { limits.calls };
        let unended = dialect.unended();
        let is_much = unended >= most || (self.held_back && unended > most / 2);
        self.held_back = is_much || (dialect.loses() && refuses) || dialect.held() > 0;
        !self.held_back
    }
}

impl PeerProtocol {
    /// Appends an event, encoded for this kind of connection.
    pub(in super::super) fn add_event(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Zmtp(protocol) => {
                protocol.session.send_encoded(bytes, out);
            }
            Self::Native(_) | Self::Foreman(_) | Self::Link(_) | Self::Ring(_) => out.extend_from_slice(bytes),
        }
    }
}

/// A name for people: the identity if it is text, else what the peer is.
pub(super) fn name_of(peer: &Peer, address: &str) -> String {
    let identity = std::str::from_utf8(&peer.identity).unwrap_or_default();
    if identity.is_empty() || identity.chars().any(char::is_control) {
        return format!("{} {address}", peer.socket_type);
    }
    let end = (0..=limits::PEER_NAME_BYTES_MAX.min(identity.len())).rev().find(|at| identity.is_char_boundary(*at));
    identity[..end.unwrap_or_default()].to_owned()
}
