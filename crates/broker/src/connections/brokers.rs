//! Connections between brokers: the common part of links and the ring.

use tracing::{debug, warn};
use turno_engine::Input;
use turno_proto::model::{Code, ConnId, Mono};
use turno_proto::native::{Fault, GreetingCredentials, Nonce};

use super::table::{Connection, ConnectionPhase, PeerProtocol};
use super::{Connections, EngineHandle, Nonces};
use crate::log_limit::{self, LogKind};
use crate::turn::work_of;

/// How far a look at the bytes of another broker came.
pub(super) enum PeerRead {
    NeedMore,
    /// So many bytes, which weighed that much.
    Took(usize, u32),
    Over,
}

impl Connection {
    /// Sends a sign of life, if this end of the connection has one to send.
    fn beat(&mut self, now: Mono, out: &mut Vec<u8>) {
        match &mut self.protocol {
            PeerProtocol::Link(protocol) => protocol.session.beat(now, out),
            PeerProtocol::Ring(protocol) => protocol.session.beat(now, out),
            PeerProtocol::Native(_) | PeerProtocol::Foreman(_) | PeerProtocol::Zmtp(_) => {}
        }
    }

    /// The engine hears of the connection's end from now on. Returns where the other end is.
    pub(super) fn is_up(&mut self) -> String {
        self.phase = ConnectionPhase::Open;
        self.address.clone()
    }
}

impl<D: EngineHandle> Connections<D> {
    /// Whether another broker may be greeted: there is room for its connection.
    pub(super) const fn room_for_broker(&self) -> Result<(), Code> {
        if self.table.len() >= self.limits.connections_max { Err(Code::TooManyConnections) } else { Ok(()) }
    }

    /// A connection that was dialled: the greeting begins with that.
    pub(super) fn greet(&mut self, address: String, protocol: PeerProtocol, hello: &[u8]) -> ConnId {
        let id = self.table.insert_talk(address, protocol);
        self.table.write(id, |out| out.extend_from_slice(hello));
        id
    }

    /// Writes the bytes that a session produced by itself.
    pub(super) fn answer(&mut self, id: ConnId, said: &[u8]) {
        if !said.is_empty() {
            self.table.write(id, |out| out.extend_from_slice(said));
        }
    }

    /// Does what a frame of so many bytes means.
    pub(super) fn heed(
        &mut self,
        now: Mono,
        id: ConnId,
        used: usize,
        meaning: Result<Option<Input>, Fault>,
    ) -> PeerRead {
        match meaning {
            Ok(Some(input)) => {
                let work = work_of(&input);
                self.table.copies = 0;
                self.engine_handle.put(now, input, &mut self.table);
                PeerRead::Took(used, work + self.work_of_events())
            }
            Ok(None) => PeerRead::Took(used, 1),
            Err(fault) => {
                self.refuse(now, id, Fault { fatal: true, ..fault });
                PeerRead::Over
            }
        }
    }

    /// The other end ends the connection.
    pub(super) fn ended_there(&mut self, now: Mono, id: ConnId, code: Code) -> PeerRead {
        debug!(conn = id.index, %code, "another broker closed the connection");
        self.part(now, id, code);
        PeerRead::Over
    }

    /// It ends for what came over it. The host of the broker is told of one that was refused.
    pub(super) fn ended_here(&mut self, now: Mono, id: ConnId, code: Code) -> PeerRead {
        let address = self.table.get(id).map(|connection| connection.address.as_str()).unwrap_or_default();
        match code {
            Code::LinkRefused if log_limit::admits(LogKind::LinkRefused) => {
                warn!(address, "link refused: both brokers need the same link.secret");
            }
            Code::RingRefused if log_limit::admits(LogKind::RingRefused) => {
                warn!(address, "ring member refused: all members need the same ring.secret");
            }
            Code::LinkRefused | Code::RingRefused => {}
            _ => debug!(conn = id.index, address, %code, "closing a broker connection after a protocol error"),
        }
        self.part(now, id, code);
        PeerRead::Over
    }

    /// Sends the signs of life that are due.
    pub(super) fn beat(&mut self, now: Mono, conns: &[ConnId]) {
        for id in conns {
            let mut said = Vec::new();
            if let Some(connection) = self.table.get_mut(*id).filter(|connection| !connection.is_doomed()) {
                connection.beat(now, &mut said);
            }
            self.answer(*id, &said);
        }
    }
}

/// The data of this end for a greeting.
pub(super) struct GreetingData<I> {
    pub(super) credentials: GreetingCredentials<I>,
    pub(super) nonce: Nonce,
    /// The other end is on this machine.
    pub(super) local: bool,
}

impl<I> GreetingData<I> {
    /// For a connection with that address.
    pub(super) fn new(credentials: GreetingCredentials<I>, nonces: &mut Nonces, address: &str) -> Result<Self, Code> {
        Ok(Self { credentials, nonce: nonces.next().ok_or(Code::Io)?, local: is_local(address) })
    }
}

/// Whether the other end is on this machine, by its address. Unix sockets have none.
pub(crate) fn is_local(address: &str) -> bool {
    match address.parse::<std::net::SocketAddr>() {
        Ok(address) => address.ip().to_canonical().is_loopback(),
        Err(_) => address == "unix" || address.starts_with("unix:"),
    }
}
