//! Link connections: their greeting, their messages and their end. Either broker may have dialled.
//!
//! The engine handles the messages. A link is always read from: two brokers that each waited for the other to read first
//! would wait for ever. The bytes to write are bounded by the slots that the other end offered.

mod inward;
mod nonces;
mod outward;

use tracing::{debug, info};
use turno_engine::{CallerMessage, Input, Neighbour, RemoteMessage};
use turno_proto::model::link::BrokerId;
use turno_proto::model::{Code, ConnId, Mono, Payload};
use turno_proto::native::{Fault, GreetingCredentials, HEADER_LEN, Identity, LinkSession, LinkStep};

use self::inward::input_of;
pub use self::nonces::Nonces;
pub(super) use self::outward::{ends_crossing, write_over_link};
use super::brokers::{GreetingData, PeerRead};
use super::table::{Connection, ConnectionPhase, PeerProtocol};
use super::{Connections, EngineHandle};
use crate::log_limit::{self, LogKind};

/// Settings for links.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// The broker's identity and secret.
    pub credentials: GreetingCredentials,
    /// Where nonces come from.
    pub nonces: Nonces,
}

/// A link that the engine wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    /// The engine's number for it.
    pub target: u32,
    /// The address to dial.
    pub address: String,
}

/// One end of a link.
#[derive(Debug)]
pub(super) struct LinkConnection {
    pub(super) session: LinkSession,
    /// This end dialled, for that target.
    target: Option<u32>,
    /// The broker that this end reached, until the engine knows the link.
    peer: Option<Box<Identity>>,
    /// The name of the broker at the other end, once the link is up.
    name: String,
}

impl LinkConnection {
    /// The target that this end dialled for, if any.
    pub(super) const fn target(&self) -> Option<u32> {
        self.target
    }

    /// Whether a payload may cross to the other end: its own clients could have sent it.
    fn fits(&self, payload: &Payload) -> bool {
        outward::fits(payload, self.session.peer_bytes_max())
    }
}

impl Connection {
    /// Logs the end of a link for the broker's operator.
    pub(super) fn tell_of_link(&self, phase: ConnectionPhase, code: Code) {
        if let (ConnectionPhase::Open, PeerProtocol::Link(protocol)) = (phase, &self.protocol)
            && log_limit::admits(LogKind::Link)
        {
            info!(name = protocol.name, address = self.address, %code, "link down");
        }
    }
}

impl<D: EngineHandle> Connections<D> {
    /// How links are greeted from now on. Without this there are none.
    pub fn set_links(&mut self, settings: LinkSettings) {
        self.links = Some(Box::new(settings));
    }

    /// Links that the engine wants dialled: [`Self::dial`] follows, or [`Self::dial_failed`].
    pub fn take_dials(&mut self) -> Vec<Dial> {
        std::mem::take(&mut self.table.dials)
    }

    /// Whether there are such.
    pub fn has_dials(&self) -> bool {
        !self.table.dials.is_empty()
    }

    /// A connection to that target was made, and the other end is at that address: the greeting begins. `None`: it cannot,
    /// and the engine knows.
    pub fn dial(&mut self, now: Mono, target: u32, address: String) -> Option<ConnId> {
        self.table.now = now;
        match self.room_for_broker().and_then(|()| self.begin_link(&address)) {
            Ok(GreetingData { credentials, nonce, local }) => {
                let mut hello = Vec::new();
                let session = LinkSession::dial(now, credentials, nonce, local, &mut hello);
                let protocol = LinkConnection { session, target: Some(target), peer: None, name: String::new() };
                Some(self.greet(address, PeerProtocol::Link(Box::new(protocol)), &hello))
            }
            Err(code) => {
                self.dial_failed(now, target, code);
                None
            }
        }
    }

    /// A target could not be reached.
    pub fn dial_failed(&mut self, now: Mono, target: u32, code: Code) {
        self.table.now = now;
        debug!(target, %code, "no link");
        self.engine_handle.put(now, Input::DialFailed { target, code }, &mut self.table);
        self.settle(now);
    }

    /// The data for a greeting.
    fn begin_link(&mut self, address: &str) -> Result<GreetingData<Identity>, Code> {
        let LinkSettings { credentials, nonces } = self.links.as_deref_mut().ok_or(Code::LinkRefused)?;
        GreetingData::new(credentials.clone(), nonces, address)
    }

    /// The first frame of a connection was a broker's. False: it is over.
    pub(super) fn become_link(&mut self, now: Mono, id: ConnId) -> bool {
        let Some(address) = self.table.get(id).map(|connection| connection.address.clone()) else { return false };
        let session = match self.begin_link(&address) {
            Ok(GreetingData { credentials, nonce, local }) => LinkSession::accept(now, credentials, nonce, local),
            Err(code) => {
                let code = if self.links.is_none() { Code::ExpectedConnect } else { code };
                self.refuse(now, id, Fault::fatal(code, 0));
                return false;
            }
        };
        let Some(connection) = self.table.get_mut(id) else { return false };
        connection.protocol =
            PeerProtocol::Link(Box::new(LinkConnection { session, target: None, peer: None, name: String::new() }));
        true
    }

    /// Takes the first frame of a link off `buffer`.
    pub(super) fn take_from_link(&mut self, now: Mono, id: ConnId, buffer: &[u8]) -> PeerRead {
        let Some(protocol) = self.table.link_mut(id) else { return PeerRead::Over };
        let mut said = Vec::new();
        let step = protocol.session.step(now, buffer, &mut said);
        self.answer(id, &said);
        match step {
            Ok((LinkStep::NeedMore, _)) => PeerRead::NeedMore,
            Ok((LinkStep::Ended(code), _)) => self.ended_there(now, id, code),
            Ok((step, used)) => {
                let meaning = self.meaning_of(id, step);
                self.heed(now, id, used, meaning)
            }
            Err(fault) => self.ended_here(now, id, fault.code),
        }
    }

    fn meaning_of(&mut self, conn: ConnId, step: LinkStep<'_>) -> Result<Option<Input>, Fault> {
        match step {
            LinkStep::NeedMore | LinkStep::Done | LinkStep::Ended(_) => Ok(None),
            LinkStep::Greeted(peer) => {
                let broker = peer.broker;
                let Some(protocol) = self.table.link_mut(conn) else { return Ok(None) };
                protocol.peer = Some(peer);
                Ok(protocol.target.map(|target| Input::Greeted { conn, target, broker }))
            }
            LinkStep::Linked(peer) => Ok(self.linked(conn, None, *peer)),
            LinkStep::RoundTrip(micros) => Ok(Some(Input::RoundTrip { conn, micros })),
            LinkStep::Frame(frame) => input_of(conn, frame),
        }
    }

    /// Both ends know each other: from now on the engine hears of the connection's end.
    fn linked(&mut self, conn: ConnId, target: Option<u32>, peer: Identity) -> Option<Input> {
        let connection = self.table.get_mut(conn)?;
        let address = connection.is_up();
        let payload_max = peer.frame_bytes_max.saturating_sub(HEADER_LEN as u64);
        let Identity { broker, name, .. } = peer;
        if let PeerProtocol::Link(protocol) = &mut connection.protocol {
            protocol.name.clone_from(&name);
        }
        if log_limit::admits(LogKind::Link) {
            info!(name, %broker, address, dialled = target.is_some(), "link up");
        }
        Some(Input::Linked { conn, target, neighbour: Neighbour { broker, name, address, payload_max } })
    }

    /// Works off what the engine said about links. True if there was something.
    pub(super) fn settle_links(&mut self, now: Mono) -> bool {
        let proven = std::mem::take(&mut self.table.proven);
        let unlinked = std::mem::take(&mut self.table.unlinked);
        let bounced = std::mem::take(&mut self.table.bounced);
        let some = !(proven.is_empty() && unlinked.is_empty() && bounced.is_empty());
        for conn in proven {
            let Some(protocol) = self.table.link_mut(conn) else { continue };
            let (target, Some(peer)) = (protocol.target, protocol.peer.take()) else { continue };
            if let Some(input) = self.linked(conn, target, *peer) {
                self.engine_handle.put(now, input, &mut self.table);
            }
        }
        for (conn, seq) in bounced {
            let message = RemoteMessage::Caller(CallerMessage::Undelivered {
                code: Code::FrameTooLarge,
                payload: Payload::default(),
            });
            self.engine_handle.put(now, Input::Far { conn, seq, message }, &mut self.table);
        }
        for (conn, code) in unlinked {
            if let Some(connection) = self.table.get_mut(conn)
                && connection.phase == ConnectionPhase::Greeting
                && let PeerProtocol::Link(protocol) = &mut connection.protocol
            {
                // The engine knows what became of its target: it said so itself.
                protocol.target = None;
            }
            self.give_up(now, conn, code);
        }
        some
    }

    /// The broker's id.
    pub fn broker_id(&self) -> Option<BrokerId> {
        self.links.as_ref().map(|links| links.credentials.identity.broker)
    }
}

#[cfg(test)]
mod tests;
