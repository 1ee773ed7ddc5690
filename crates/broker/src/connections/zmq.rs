//! Connections of ZeroMQ programs: bytes become messages for a dialect, and effects become bytes.

mod connection;
mod seats;

use std::collections::VecDeque;
use std::sync::Arc;

use tracing::{debug, info};
use turno_engine::{BorrowedPayload, Deliver, EventRef, Input, NativeEffect, PeerEffect};
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::{Code, ConnId, Cost, Delivery, Limits, Mono, limits};
use turno_proto::native::encode_admin_answer;
use turno_proto::zmtp::curve::{ENTROPY_LEN, Entropy};
use turno_proto::zmtp::{self, Peer, SocketType, ZmtpFault, ZmtpSession, ZmtpStep};

pub(super) use self::connection::ZmqConnection;
pub use self::connection::ZmqLimits;
use self::connection::name_of;
use self::seats::Seats;
use super::brokers::PeerRead;
use super::table::{Connection, ConnectionPhase, ConnectionTable, PeerProtocol};
use super::{Connections, EngineHandle, Nonces};
use crate::log_limit::{self, LogKind};
use crate::turn::work_of;
use crate::zmq::{Count, Dialect, DialectOutput, Endpoints, PeerMessage, event_frames};

/// State that the ZeroMQ connections of a router share.
#[derive(Debug)]
pub(super) struct ZmqConnections {
    endpoints: Endpoints,
    nonces: Nonces,
    /// How many such connections there are: without any, effects need not be looked at.
    pub(super) count: usize,
    /// Inputs of dialects to the engine.
    inputs: VecDeque<Input>,
    /// Messages of dialects to a peer; empty in between.
    says: Vec<PeerMessage<'static>>,
    /// Connections that are to end, and why.
    failed: Vec<(ConnId, Code)>,
    seats: Seats,
    limits: ZmqLimits,
}

impl ZmqConnections {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            endpoints: Endpoints::default(),
            nonces: Nonces::System,
            count: 0,
            inputs: VecDeque::new(),
            says: Vec::new(),
            failed: Vec::new(),
            seats: Seats::default(),
            limits: ZmqLimits::new(limits),
        }
    }
}

impl ConnectionTable {
    fn zmq_mut(&mut self, id: ConnId) -> Option<&mut ZmqConnection> {
        let connection = self.get_mut(id).filter(|connection| !connection.is_doomed())?;
        match &mut connection.protocol {
            PeerProtocol::Zmtp(protocol) => Some(protocol),
            PeerProtocol::Native(_) | PeerProtocol::Foreman(_) | PeerProtocol::Link(_) | PeerProtocol::Ring(_) => None,
        }
    }

    fn is_zmq(&self, id: ConnId) -> bool {
        self.zmq.count > 0
            && self
                .get(self.zmq.seats.home(id))
                .is_some_and(|connection| matches!(connection.protocol, PeerProtocol::Zmtp(_)))
    }

    /// Has the dialect of a connection do something. Its consequences are handled when the turn ends.
    fn with_dialect<R>(
        &mut self,
        conn: ConnId,
        with: impl FnOnce(&mut Dialect, &mut DialectOutput<'_>) -> R,
    ) -> Option<R> {
        let now = self.now;
        let home = self.zmq.seats.home(conn);
        let (connection, account, zmq) = self.with_shared(home).filter(|(connection, ..)| !connection.is_doomed())?;
        let PeerProtocol::Zmtp(protocol) = &mut connection.protocol else { return None };
        let (ZmqConnection { dialect, endpoint, .. }, memory) = (&mut **protocol, account.meter().room());
        let (inputs, says, spare) = (&mut zmq.inputs, &mut zmq.says, zmq.seats.spare);
        let mut seat = spare;
        let mut out = DialectOutput { conn, endpoint, now, memory, inputs, says, seat: &mut seat };
        let result = with(dialect.as_mut()?, &mut out);
        if let (Some(given), None) = (spare, seat) {
            self.zmq.seats.give(given, home);
            self.zmq.seats.spare = Some(self.reserve());
        }
        if !self.zmq.says.is_empty() {
            for said in std::mem::take(&mut self.zmq.says) {
                self.say(home, &said, false);
            }
        }
        Some(result)
    }

    /// Writes a message. True if it is among what waits to be written.
    fn say(&mut self, conn: ConnId, said: &PeerMessage<'_>, slots_limit_it: bool) -> bool {
        let Some(connection) = self.room_of(conn) else { return false };
        let before = connection.out.len();
        let PeerProtocol::Zmtp(protocol) = &mut connection.protocol else { return false };
        protocol.session.send_encoded(said.envelope.encoded(), &mut connection.out);
        protocol.session.send(said.behind(), &mut connection.out);
        protocol.endpoint.count(Count::Sent);
        if slots_limit_it {
            connection.add_slot_limited(before)
        } else {
            connection.stretch(before)
        }
        self.count_out(conn);
        true
    }

    /// A delivery, if it is for a ZeroMQ peer.
    pub(super) fn zmq_deliver(&mut self, deliver: &Deliver<BorrowedPayload<'_>>) -> bool {
        let conn = deliver.conn;
        let home = self.zmq.seats.home(conn);
        let Some(connection) = self.get(home) else { return false };
        let PeerProtocol::Zmtp(protocol) = &connection.protocol else { return false };
        let (dialect, is_pull) = (protocol.dialect.as_ref().filter(|_| !connection.is_doomed()), protocol.is_pull());
        let Some(said) = dialect.and_then(|dialect| dialect.delivery(deliver)) else {
            self.with_dialect(conn, |dialect, out| dialect.not_delivered(deliver, out));
            return true;
        };
        if self.say(home, &said, deliver.cost != Cost::Broadcast) && is_pull {
            self.queued(conn, deliver.delivery);
        }
        true
    }

    fn queued(&mut self, conn: ConnId, delivery: Delivery) {
        let waiting = self.get(conn).map_or(0, Connection::waiting);
        self.with_dialect(conn, |dialect, _| dialect.queued(delivery, waiting));
    }

    /// The ZeroMQ peer that an effect is for, if it is for one.
    pub(super) fn zmq_addressee(&self, effect: &PeerEffect) -> Option<ConnId> {
        let conn = match effect {
            _ if self.zmq.count == 0 => return None,
            PeerEffect::Caller { conn, .. }
            | PeerEffect::Answer { conn, .. }
            | PeerEffect::Stop { conn, .. }
            | PeerEffect::Closing { conn, .. }
            | PeerEffect::Native { conn, .. } => *conn,
            PeerEffect::Deliver(_)
            | PeerEffect::Link { .. }
            | PeerEffect::Foreman { .. }
            | PeerEffect::Event { .. }
            | PeerEffect::Dial { .. }
            | PeerEffect::Ring(_) => return None,
        };
        self.is_zmq(conn).then_some(conn)
    }

    /// An effect for a ZeroMQ peer.
    pub(super) fn tell_zmq(&mut self, conn: ConnId, effect: PeerEffect) {
        let home = self.zmq.seats.home(conn);
        let ended = match effect {
            PeerEffect::Caller { seq, message, .. } => {
                let said = self.with_dialect(conn, |dialect, out| dialect.caller_message(seq, message, out)).flatten();
                if let Some(said) = said {
                    self.say(home, &said, false);
                }
                None
            }
            PeerEffect::Answer { seq, result, .. } => {
                self.with_dialect(conn, |dialect, out| dialect.answer(seq, result, out))
            }
            PeerEffect::Native { effect: NativeEffect::Pace, .. } => {
                self.pace(home);
                None
            }
            PeerEffect::Native { effect, .. } => self.with_dialect(conn, |dialect, out| dialect.native(&effect, out)),
            // No socket has a place for STOP and CLOSING, and the others are for other peers.
            PeerEffect::Stop { .. }
            | PeerEffect::Closing { .. }
            | PeerEffect::Deliver(_)
            | PeerEffect::Link { .. }
            | PeerEffect::Foreman { .. }
            | PeerEffect::Event { .. }
            | PeerEffect::Dial { .. }
            | PeerEffect::Ring(_) => None,
        };
        self.ends(home, ended);
        self.ease(home);
    }

    /// A dialect says that its connection ends, if it does.
    fn ends(&mut self, conn: ConnId, result: Option<Result<(), Code>>) {
        if let Some(Err(code)) = result {
            self.zmq.failed.push((conn, code));
        }
    }

    /// A connection that was held back may be read from, if enough of its messages have an outcome.
    fn ease(&mut self, conn: ConnId) {
        if self.zmq_mut(conn).is_some_and(|protocol| protocol.held_back) && self.zmq_wants_reading(conn) {
            self.granted.push(conn);
        }
    }

    /// So many bytes were written to a connection.
    pub(super) fn zmq_wrote(&mut self, conn: ConnId, bytes: usize) -> bool {
        self.with_dialect(conn, |dialect, out| dialect.wrote(bytes, out));
        !self.zmq.inputs.is_empty()
    }

    /// Whether a dialect wants the connection read from.
    pub(super) fn zmq_wants_reading(&mut self, conn: ConnId) -> bool {
        let refuses = self.account.meter().refuses(limits::READ_BYTES as u64);
        let limits = self.zmq.limits;
        self.zmq_mut(conn).is_none_or(|protocol| protocol.wants_reading(limits, refuses))
    }

    /// An event as the peers of that connection's endpoint get it, without encryption; `None` if it is another kind of
    /// connection.
    pub(super) fn zmq_event(&self, conn: ConnId, event: EventRef<'_>) -> Option<Vec<u8>> {
        let PeerProtocol::Zmtp(protocol) = &self.get(conn)?.protocol else { return None };
        let frames = event_frames(event, &protocol.endpoint.settings().topic);
        let mut bytes = Vec::new();
        zmtp::encode(frames.iter().map(|frame| &**frame), &mut bytes);
        Some(bytes)
    }

    /// An event goes to that connection.
    pub(super) fn zmq_sent(&self, conn: ConnId) {
        if let Some(PeerProtocol::Zmtp(protocol)) = self.get(conn).map(|connection| &connection.protocol) {
            protocol.endpoint.count(Count::Sent);
        }
    }

    /// The endpoint of a connection, if it is a ZeroMQ peer's.
    pub(super) fn zmq_place(&self, conn: ConnId) -> Option<u16> {
        match &self.get(conn)?.protocol {
            PeerProtocol::Zmtp(protocol) => Some(protocol.place),
            PeerProtocol::Native(_) | PeerProtocol::Foreman(_) | PeerProtocol::Link(_) | PeerProtocol::Ring(_) => None,
        }
    }

    /// A connection is over.
    pub(super) fn zmq_left(&mut self, connection: &Connection) {
        if let PeerProtocol::Zmtp(protocol) = &connection.protocol {
            self.zmq.count -= 1;
            protocol.endpoint.left(connection.id);
            protocol.tell_if_unanswered(connection);
            protocol.count_lost(connection);
        }
    }
}

impl<D: EngineHandle> Connections<D> {
    /// Sets how many messages of a peer may have no outcome. With low limits a simulation sees peers held back often.
    pub const fn set_zmq_limits(&mut self, limits: ZmqLimits) {
        self.table.zmq.limits = limits;
    }

    /// These endpoints are there, and nonces come from there.
    pub fn set_zmq(&mut self, endpoints: Endpoints, nonces: Nonces) {
        self.table.zmq.endpoints = endpoints;
        self.table.zmq.nonces = nonces;
    }

    /// Sends views of the endpoints.
    pub(super) fn tell_endpoints(&mut self, id: ConnId, seq: u32) {
        let answer = AdminAnswer::ZmqEndpoints { endpoints: self.table.zmq.endpoints.views() };
        self.table.write(id, |out| encode_admin_answer(seq, &answer, out));
    }

    /// A ZeroMQ peer connected; `None` if there is no such endpoint, or the system has no randomness.
    pub(super) fn accept_zmq(&mut self, now: Mono, address: String, place: u16) -> Option<ConnId> {
        let endpoint = Arc::clone(self.table.zmq.endpoints.get(place)?);
        let settings = Arc::clone(endpoint.wire());
        let mut entropy = Entropy::new([0; ENTROPY_LEN]);
        self.table.zmq.nonces.fill(&mut *entropy)?;
        let mut greeting = Vec::new();
        let session = ZmtpSession::begin(now, settings, entropy, &mut greeting);
        let protocol = ZmqConnection { session, dialect: None, endpoint, place, held_back: false };
        let id = self.table.insert_talk(address, PeerProtocol::Zmtp(Box::new(protocol)));
        self.table.zmq.count += 1;
        if self.table.zmq.seats.spare.is_none() {
            self.table.zmq.seats.spare = Some(self.table.reserve());
        }
        if self.table.zmq.endpoints.get(place).is_some_and(|endpoint| endpoint.opened()) {
            self.table.zmq_write(id, &greeting);
        } else {
            self.part(now, id, Code::TooManyConnections);
        }
        Some(id)
    }

    /// These bytes came from a ZeroMQ peer.
    pub(super) fn take_from_zmq(&mut self, now: Mono, id: ConnId, bytes: &[u8]) -> PeerRead {
        let mut said = std::mem::take(&mut self.table.said);
        let step = match self.table.zmq_mut(id) {
            Some(protocol) => protocol.session.step(now, bytes, &mut said),
            None => return PeerRead::Over,
        };
        let step = match step {
            Ok((ZmtpStep::Asks(shown), used)) => Ok((self.judge(now, id, &shown, &mut said), used)),
            Ok((step, used)) => Ok((Ok(step), used)),
            Err(fault) => Err(fault),
        };
        self.table.zmq_write(id, &said);
        said.clear();
        self.table.said = said;
        match step {
            Ok((Ok(ZmtpStep::NeedMore), 0)) => PeerRead::NeedMore,
            Ok((Ok(step), used)) => PeerRead::Took(used, self.take_zmq_step(now, id, step)),
            Ok((Err(fault), _)) | Err(fault) => {
                self.zmq_fault(now, id, fault);
                PeerRead::Over
            }
        }
    }

    /// Whether a peer may connect that shows this.
    fn judge(
        &mut self,
        now: Mono,
        id: ConnId,
        shown: &zmtp::ZmtpCredentials,
        said: &mut Vec<u8>,
    ) -> Result<ZmtpStep<'static>, ZmtpFault> {
        let Some(protocol) = self.table.zmq_mut(id) else { return Ok(ZmtpStep::NeedMore) };
        if protocol.endpoint.accepts(shown) {
            Ok(protocol.session.accept(now, said))
        } else {
            Err(protocol.session.refuse(said))
        }
    }

    fn zmq_fault(&mut self, now: Mono, id: ConnId, fault: ZmtpFault) {
        if let Some(connection) = self.table.get(id)
            && let PeerProtocol::Zmtp(protocol) = &connection.protocol
        {
            if protocol.dialect.is_none() {
                protocol.endpoint.count(Count::BadHandshake);
            }
            if log_limit::admits(LogKind::Protocol) {
                info!(address = connection.address, code = %fault.code(), reason = %fault, "closing a ZeroMQ connection");
            }
        }
        self.part(now, id, fault.code());
    }

    /// Returns what it weighs.
    fn take_zmq_step(&mut self, now: Mono, id: ConnId, step: ZmtpStep<'_>) -> u32 {
        match step {
            ZmtpStep::NeedMore | ZmtpStep::Done | ZmtpStep::Asks(_) => return 1,
            ZmtpStep::Handshaked(peer) => self.zmq_opened(now, id, peer),
            ZmtpStep::Message(message) => {
                let heard = self.table.with_dialect(id, |dialect, out| dialect.hear(&message, out));
                self.table.ends(id, heard);
            }
            ZmtpStep::Subscribe(prefix) => self.zmq_subscribes(id, &prefix, true),
            ZmtpStep::Cancel(prefix) => self.zmq_subscribes(id, &prefix, false),
        }
        self.put_zmq_inputs(now)
    }

    fn zmq_subscribes(&mut self, id: ConnId, prefix: &[u8], wants: bool) {
        self.table.with_dialect(id, |dialect, out| dialect.hear_subscription(prefix, wants, out));
    }

    /// The handshake is done: the engine hears of the peer.
    fn zmq_opened(&mut self, now: Mono, id: ConnId, peer: Peer) {
        let mut inputs = std::mem::take(&mut self.table.zmq.inputs);
        let (mut said, memory) = (Vec::new(), self.meter().room());
        if let Some(connection) = self.table.get_mut(id)
            && let PeerProtocol::Zmtp(protocol) = &mut connection.protocol
        {
            let ZmqConnection { session, dialect, endpoint, .. } = &mut **protocol;
            connection.phase = ConnectionPhase::Open;
            let address = connection.address.clone();
            debug!(address, socket = %peer.socket_type, endpoint = endpoint.settings().name, "a ZeroMQ peer connected");
            inputs.push_back(Input::Connected { conn: id, name: name_of(&peer, &address), address: address.clone() });
            inputs.push_back(Input::Ready { conn: id });
            let (inputs, says, seat) = (&mut inputs, &mut Vec::new(), &mut None);
            let mut out = DialectOutput { conn: id, endpoint, now, memory, inputs, says, seat };
            *dialect = Some(Dialect::begin(peer.socket_type, &mut out));
            if matches!(peer.socket_type, SocketType::Pub | SocketType::Xpub) {
                // A publisher sends what somebody subscribed to: the broker wants everything.
                session.subscribe(b"", &mut said);
            }
            endpoint.joined(id, address, peer);
        }
        self.table.zmq.inputs = inputs;
        self.table.zmq_write(id, &said);
    }

    /// The engine hears what dialects said. Returns what it weighs.
    pub(super) fn put_zmq_inputs(&mut self, now: Mono) -> u32 {
        let mut work = 1;
        while let Some(input) = self.table.zmq.inputs.pop_front() {
            if let Input::Publish { conn, .. } = &input
                && self.ring.is_some()
                && let Some(connection) = self.table.get_mut(*conn)
            {
                connection.publishes = true;
            }
            work += work_of(&input);
            self.table.copies = 0;
            let ends = if let Input::Disconnected { conn } = input { Some(conn) } else { None };
            self.engine_handle.put(now, input, &mut self.table);
            if let Some(seat) = ends {
                self.table.leave_seat(seat);
            }
            work += self.work_of_events();
        }
        work
    }

    /// Ends connections whose peers cannot be what they are. True if there were any.
    pub(super) fn settle_zmq(&mut self, now: Mono) -> bool {
        let mut any = !self.table.zmq.inputs.is_empty();
        self.put_zmq_inputs(now);
        for (id, code) in std::mem::take(&mut self.table.zmq.failed) {
            any = true;
            if log_limit::admits(LogKind::Protocol) {
                let address = self.table.get(id).map(|connection| connection.address.as_str()).unwrap_or_default();
                info!(address, %code, "closing a ZeroMQ connection");
            }
            self.part(now, id, code);
        }
        any
    }

    /// Time passed: heartbeats are due, and who was held back may go on.
    pub(super) fn sweep_zmq(&mut self, now: Mono) {
        if self.table.zmq.count == 0 {
            return;
        }
        self.table.now = now;
        let is_zmq =
            |connection: &&Connection| matches!(connection.protocol, PeerProtocol::Zmtp(_)) && !connection.is_doomed();
        let ids: Vec<ConnId> = self.table.iter().filter(is_zmq).map(|connection| connection.id).collect();
        for id in ids {
            self.table.ease(id);
            self.table.count_in(id);
            let read = self.wants_reading(id);
            let ticked = self.table.with_dialect(id, |dialect, out| dialect.tick(read, out));
            self.table.ends(id, ticked);
            let mut said = Vec::new();
            let Some(protocol) = self.table.zmq_mut(id) else { continue };
            if !read {
                // It cannot be silent. A PING would break the connection of a program that has ended, and what it sent is still to
                // be read.
                protocol.session.heard(now);
                continue;
            }
            let result = protocol.session.handle_timeout(now, &mut said);
            self.table.zmq_write(id, &said);
            if let Err(fault) = result {
                self.zmq_fault(now, id, fault);
            }
        }
        self.settle_zmq(now);
    }
}

impl ConnectionTable {
    /// Writes the bytes that a session produced by itself.
    fn zmq_write(&mut self, id: ConnId, said: &[u8]) {
        if !said.is_empty()
            && let Some(connection) = self.room_of(id)
        {
            let before = connection.out.len();
            connection.out.extend_from_slice(said);
            connection.stretch(before);
            self.count_out(id);
        }
    }
}

#[cfg(test)]
mod tests;
