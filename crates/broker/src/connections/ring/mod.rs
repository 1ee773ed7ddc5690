//! Ring connections: their greeting, their messages and their end. The end that dialled sends.
//!
//! The node in the engine handles the messages. Here is known that a connection of the ring is always read from,
//! that what waits to be written to one is not limited (the windows of all origins bound it), and that one which takes nothing
//! for as long as it may be silent is given up.

mod outward;
mod report;

use std::collections::BTreeMap;

use tracing::debug;
use turno_engine::ring::RingInput;
use turno_engine::{EventRef, Input};
use turno_proto::model::ring::Member;
use turno_proto::model::{Code, ConnId, Mono};
use turno_proto::native::{Fault, Frame, GreetingCredentials, RingIdentity, RingSession, RingStep, Secret};

pub use self::report::RingReport;
pub(super) use self::report::log_news;
use super::brokers::{GreetingData, PeerRead};
use super::links::Nonces;
use super::table::{Connection, ConnectionPhase, ConnectionTable, PeerProtocol};
use super::{Connections, EngineHandle};

/// Settings for the ring.
#[derive(Clone, Debug)]
pub struct RingWireSettings {
    /// The broker as a member, with its address.
    pub me: Member,
    /// The shared secret of all members; without it they must be on one machine.
    pub secret: Option<Secret>,
    /// Where nonces come from.
    pub nonces: Nonces,
    /// Between two signs of life; silence for three times as long ends a connection.
    pub beat_ms: u32,
    /// How long a connection may take to be made and greeted.
    pub dial_ms: u64,
}

impl RingWireSettings {
    fn credentials(&self) -> GreetingCredentials<RingIdentity> {
        let (member, program) = (Some(self.me.clone()), concat!("turno ", env!("CARGO_PKG_VERSION")).to_owned());
        GreetingCredentials { identity: RingIdentity { member, program }, secret: self.secret.clone() }
    }
}

/// A connection that the node wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingDial {
    /// The node's number for it.
    pub target: u32,
    /// Where to, HOST:PORT.
    pub address: String,
    /// When it must be made and greeted.
    pub until: Mono,
}

/// The data of this end for the greeting of a ring's connection.
struct RingGreetingData {
    opening: GreetingData<RingIdentity>,
    beat_ms: u32,
}

/// One end of a ring's connection.
#[derive(Debug)]
pub(super) struct RingConnection {
    pub(super) session: RingSession,
    /// This end dialled, for that target, and the greeting goes on.
    pub(super) target: Option<u32>,
}

/// The ring as the connections know it.
#[derive(Debug, Default)]
pub(super) struct RingConnections {
    pub(super) dial_ms: u64,
    pub(super) dials: Vec<RingDial>,
    /// Targets that the node waits for, with their connections once these are made.
    pub(super) wanted: BTreeMap<u32, Option<ConnId>>,
    /// Publishers are slowed down.
    pub(super) slowed: bool,
    /// They were until a moment ago.
    pub(super) eased: bool,
}

fn told(input: RingInput) -> Input {
    Input::Ring { input }
}

impl Connection {
    /// The input for the end of a connection in that phase.
    pub(super) fn ending(&self, phase: ConnectionPhase, code: Code) -> Option<Input> {
        let conn = self.id;
        match (phase, &self.protocol) {
            (ConnectionPhase::Open, PeerProtocol::Ring(_)) => Some(told(RingInput::Closed { conn })),
            (ConnectionPhase::Open, _) => Some(Input::Disconnected { conn }),
            (ConnectionPhase::Greeting, PeerProtocol::Link(protocol)) => {
                protocol.target().map(|target| Input::DialFailed { target, code })
            }
            (ConnectionPhase::Greeting, PeerProtocol::Ring(protocol)) => {
                protocol.target.map(|target| told(RingInput::DialFailed { target, code }))
            }
            _ => None,
        }
    }
}

impl ConnectionTable {
    /// The ring's end of a connection that goes on.
    fn ring_mut(&mut self, id: ConnId) -> Option<&mut RingConnection> {
        match &mut self.get_mut(id).filter(|connection| !connection.is_doomed())?.protocol {
            PeerProtocol::Ring(protocol) => Some(protocol),
            PeerProtocol::Native(_) | PeerProtocol::Foreman(_) | PeerProtocol::Link(_) | PeerProtocol::Zmtp(_) => None,
        }
    }
}

impl<D: EngineHandle> Connections<D> {
    /// The broker's place in a ring. Without this there is none.
    pub fn set_ring(&mut self, settings: RingWireSettings) {
        self.table.ring.dial_ms = settings.dial_ms;
        self.ring = Some(Box::new(settings));
    }

    /// Connections that the node wants: [`Self::dial_ring`] follows, or [`Self::ring_dial_failed`].
    pub fn take_ring_dials(&mut self) -> Vec<RingDial> {
        std::mem::take(&mut self.table.ring.dials)
    }

    /// Whether there are such.
    pub fn has_ring_dials(&self) -> bool {
        !self.table.ring.dials.is_empty()
    }

    /// True once after publishers were slowed down and are not any more: connections may be read from again.
    pub fn take_eased(&mut self) -> bool {
        std::mem::take(&mut self.table.ring.eased)
    }

    /// A connection was made, and the other end is at that address: the greeting begins. `None`: it cannot, or nobody wants
    /// it any more; the node knows.
    pub fn dial_ring(&mut self, now: Mono, dial: &RingDial, address: String) -> Option<ConnId> {
        let RingDial { target, until, .. } = *dial;
        self.table.now = now;
        if !self.table.ring.wanted.contains_key(&target) {
            return None;
        }
        match self.begin_ring(&address) {
            Ok(RingGreetingData { opening: GreetingData { credentials, nonce, local }, beat_ms }) => {
                let mut hello = Vec::new();
                let session = RingSession::dial(now, until, credentials, nonce, local, beat_ms, &mut hello);
                let protocol = RingConnection { session, target: Some(target) };
                let id = self.greet(address, PeerProtocol::Ring(Box::new(protocol)), &hello);
                self.table.ring.wanted.insert(target, Some(id));
                Some(id)
            }
            Err(code) => {
                self.ring_dial_failed(now, target, code);
                None
            }
        }
    }

    /// A target could not be reached.
    pub fn ring_dial_failed(&mut self, now: Mono, target: u32, code: Code) {
        self.table.now = now;
        self.tell_end(now, told(RingInput::DialFailed { target, code }));
        self.settle(now);
    }

    /// Somebody dialled. `None`: there is no ring here, or nothing to greet with.
    pub(super) fn accept_ring(&mut self, now: Mono, address: String) -> Option<ConnId> {
        let RingGreetingData { opening, beat_ms } = self.begin_ring(&address).ok()?;
        let GreetingData { credentials, nonce, local } = opening;
        let session = RingSession::accept(now, credentials, nonce, local, beat_ms);
        Some(self.table.insert_talk(address, PeerProtocol::Ring(Box::new(RingConnection { session, target: None }))))
    }

    fn begin_ring(&mut self, address: &str) -> Result<RingGreetingData, Code> {
        self.room_for_broker()?;
        let settings = self.ring.as_deref_mut().ok_or(Code::NotInRing)?;
        let opening = GreetingData::new(settings.credentials(), &mut settings.nonces, address)?;
        Ok(RingGreetingData { opening, beat_ms: settings.beat_ms })
    }

    /// Tells the engine of the end of a connection; not of one that the node has given up before.
    pub(super) fn tell_end(&mut self, now: Mono, input: Input) {
        if let Input::Ring { input } = &input
            && let RingInput::DialFailed { target, code } = *input
        {
            debug!(target, %code, "cannot reach a ring member");
            if self.table.ring.wanted.remove(&target).is_none() {
                return;
            }
        }
        match input {
            Input::Disconnected { conn } => self.tell_of_seats(now, conn, |conn| Input::Disconnected { conn }),
            Input::Unread { conn } => self.tell_of_seats(now, conn, |conn| Input::Unread { conn }),
            _ => {}
        }
        self.engine_handle.put(now, input, &mut self.table);
    }

    /// Takes the first frame of a ring's connection off `buffer`.
    pub(super) fn take_from_ring(&mut self, now: Mono, id: ConnId, buffer: &[u8]) -> PeerRead {
        let Some(protocol) = self.table.ring_mut(id) else { return PeerRead::Over };
        let mut said = Vec::new();
        let step = protocol.session.step(now, buffer, &mut said);
        self.answer(id, &said);
        match step {
            Ok((RingStep::NeedMore, _)) => PeerRead::NeedMore,
            Ok((RingStep::Ended(code), _)) => self.ended_there(now, id, code),
            Ok((RingStep::Frame(Frame::RingPublish(publish)), used)) => {
                let Ok(topic) = self.last_topic.of(publish.event.topic) else {
                    self.refuse(now, id, Fault::fatal(Code::BadTopic, 0));
                    return PeerRead::Over;
                };
                let raw = publish.event.payload;
                let publication = publish.with(EventRef::passing(topic, raw.headers, raw.bytes));
                self.table.copies = 0;
                self.engine_handle.pass(now, id, publication, &mut self.table);
                PeerRead::Took(used, 1 + self.work_of_events())
            }
            Ok((step, used)) => {
                let meaning = self.ring_meaning(id, step);
                let meaning = meaning.map(|input| input.map(told)).map_err(|code| Fault::fatal(code, 0));
                self.heed(now, id, used, meaning)
            }
            Err(fault) => self.ended_here(now, id, fault.code),
        }
    }

    fn ring_meaning(&mut self, conn: ConnId, step: RingStep<'_>) -> Result<Option<RingInput>, Code> {
        match step {
            RingStep::NeedMore | RingStep::Done | RingStep::Ended(_) => Ok(None),
            RingStep::Reached(peer) => {
                let Some(target) = self.ring_is_up(conn) else { return Ok(None) };
                self.table.ring.wanted.remove(&target);
                Ok(Some(RingInput::Dialled { target, conn, peer: *peer }))
            }
            RingStep::Accepted(peer) => {
                self.ring_is_up(conn);
                Ok(Some(RingInput::Accepted { conn, peer: peer.map(|peer| *peer) }))
            }
            RingStep::Frame(Frame::Ring(message)) => Ok(Some(RingInput::Message { conn, message: *message })),
            RingStep::Frame(other) => {
                debug_assert!(false, "{:?} is not a message of the ring", other.kind());
                Err(Code::WrongDirection)
            }
        }
    }

    /// From now on the node hears of the connection's end. Returns the target that it was dialled for.
    fn ring_is_up(&mut self, conn: ConnId) -> Option<u32> {
        let connection = self.table.get_mut(conn)?;
        connection.is_up();
        let PeerProtocol::Ring(protocol) = &mut connection.protocol else { return None };
        protocol.target.take()
    }
}

#[cfg(test)]
mod tests;
