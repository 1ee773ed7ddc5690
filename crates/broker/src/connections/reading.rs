//! Partly received frames, and the memory reserved for them.
//!
//! A few bytes are held without asking. For a longer frame the memory of all of it is set aside first, so that it can be
//! completed. Where there is none, the connection is not read from until there is. A message is refused instead if the engine would
//! refuse it anyway, and so is any call after a while: the rest of it is thrown away, and the peer is told. What must not be lost,
//! as a reply, ends the connection after that while, and so does what another broker sends.

use std::sync::Arc;

use tracing::warn;
use turno_proto::model::limits::{
    FOREMAN_HELLO_BYTES_MAX, FRAME_BYTES_PER_SECOND_MIN, FRAME_HELD_BYTES, FRAME_STALL_MS, FRAME_WAIT_MS,
    GREETINGS_BYTES_MAX, OUT_TIGHT_BYTES, OUT_TIGHT_STALL_MS, READ_BYTES,
};
use turno_proto::model::{Code, ConnId, Mono};
use turno_proto::native::{Frame, HEADER_LEN, Header, Kind, Raw, encode};

use super::table::{Connection, ConnectionPhase, ConnectionTable, PeerProtocol};
use super::{Connections, EngineHandle};
use crate::log_limit;
use crate::memory::{Account, MemoryMeter};
use crate::turn::{Turn, UnfinishedWork};

/// Connections that are asked in one go whether there is memory for them now.
const GRANTS_MAX: usize = 64;

/// A long frame that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongFrame {
    bytes: usize,
    seq: u32,
    claim: FrameAdmission,
}

/// The fate of a frame without memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameAdmission {
    /// It is answered with UNDELIVERED.
    Message,
    /// It is answered with ERROR.
    Call,
    /// It must not be lost, and makes room.
    Settling,
    /// It comes from a job worker, or over a link, where what was begun must come to its end.
    Whole,
    /// It comes from a member of the ring, which must always be read from.
    Ring,
}

/// How it goes on.
#[derive(Debug)]
pub(super) enum FrameProgress {
    /// Memory is set aside; since when, and when something came last.
    Aside { begun: LongFrame, since: Mono, last: Mono },
    /// Nothing is read until there is memory.
    Waits { begun: LongFrame, since: Mono },
    /// It is refused: so much is still to be thrown away.
    Skips { begun: LongFrame, left: usize },
}

impl FrameAdmission {
    const fn can_be_refused(self) -> bool {
        matches!(self, Self::Message | Self::Call)
    }
}

/// The frame that begins with these bytes, once it is known how long it is. The session of a ZeroMQ peer holds the beginning
/// of a message itself; it cannot be refused, since the peer would not hear of it.
fn begun(protocol: &PeerProtocol, bytes: &[u8]) -> Option<LongFrame> {
    if let PeerProtocol::Zmtp(protocol) = protocol {
        let claim = if protocol.settles() { FrameAdmission::Settling } else { FrameAdmission::Whole };
        return protocol.claimed_bytes().map(|bytes| LongFrame { bytes, seq: 0, claim });
    }
    let header = Header::from_bytes(bytes.first_chunk::<HEADER_LEN>()?)?;
    let claim = match (protocol, Kind::from_number(header.kind)) {
        (PeerProtocol::Ring(_), _) => FrameAdmission::Ring,
        (PeerProtocol::Link(_) | PeerProtocol::Foreman(_), _) => FrameAdmission::Whole,
        (PeerProtocol::Native(_), Some(Kind::Request | Kind::Send | Kind::Broadcast)) => FrameAdmission::Message,
        (PeerProtocol::Native(_), Some(Kind::Reply | Kind::Ack | Kind::Fail | Kind::Progress)) => {
            FrameAdmission::Settling
        }
        (PeerProtocol::Native(_) | PeerProtocol::Zmtp(_), _) => FrameAdmission::Call,
    };
    let bytes = HEADER_LEN.saturating_add(usize::try_from(header.length).unwrap_or(usize::MAX));
    Some(LongFrame { bytes, seq: header.seq, claim })
}

/// Too much waits for a peer now that memory is short, if it does not read it, or if there is no memory at all.
pub(super) fn is_short(connection: &Connection, reads: bool, meter: &MemoryMeter) -> bool {
    connection.waiting() > OUT_TIGHT_BYTES.saturating_add(connection.slot_limited + connection.longest)
        && meter.is_tight()
        && !(reads && meter.has_room(0))
}

impl Connection {
    /// Bytes that the out-buffer takes; events that wait are counted where they are shared.
    fn out_bytes(&self) -> usize {
        self.out.capacity() + self.events.as_ref().map_or(0, |waiting| waiting.table_bytes())
    }

    fn in_bytes(&self) -> usize {
        let aside = match self.reading.as_deref() {
            Some(FrameProgress::Aside { begun, .. }) => begun.bytes,
            _ => 0,
        };
        aside.max(self.leftover.capacity() + self.begun_bytes()) + self.held_bytes()
    }

    /// Bytes of requests that a job worker made before the last was answered, or of envelopes of a ZeroMQ peer.
    fn held_bytes(&self) -> usize {
        match &self.protocol {
            PeerProtocol::Foreman(protocol) => protocol.held_bytes(),
            PeerProtocol::Zmtp(protocol) => protocol.dialect_bytes(),
            PeerProtocol::Native(_) | PeerProtocol::Link(_) | PeerProtocol::Ring(_) => 0,
        }
    }

    /// Bytes of the beginning of a message that a session holds itself.
    fn begun_bytes(&self) -> usize {
        match &self.protocol {
            PeerProtocol::Zmtp(protocol) => protocol.session.held_bytes(),
            PeerProtocol::Native(_) | PeerProtocol::Foreman(_) | PeerProtocol::Link(_) | PeerProtocol::Ring(_) => 0,
        }
    }

    /// Why a frame that has begun ends its connection now, or what is refused. `contested`: somebody waits for memory.
    fn overdue(&self, now: Mono, contested: bool) -> bool {
        match self.reading.as_deref() {
            Some(FrameProgress::Waits { since, .. }) => now.millis_since(*since) >= FRAME_WAIT_MS,
            Some(FrameProgress::Aside { since, last, .. }) if contested => {
                let late_ms = now.millis_since(*since).saturating_sub(FRAME_STALL_MS);
                let least = late_ms.saturating_mul(FRAME_BYTES_PER_SECOND_MIN) / 1_000;
                now.millis_since(*last) >= FRAME_STALL_MS
                    || ((self.leftover.bytes().len() + self.begun_bytes()) as u64) < least
            }
            _ => false,
        }
    }
}

impl ConnectionTable {
    /// Counts what a connection's out-buffer takes.
    #[inline]
    pub(super) fn count_out(&mut self, id: ConnId) {
        if let Some((connection, account, _)) = self.with_shared(id) {
            let bytes = connection.out_bytes();
            account.outgoing(&mut connection.counted_out, bytes);
        }
    }

    /// Counts what a connection's in-buffer takes.
    pub(super) fn count_in(&mut self, id: ConnId) {
        if let Some((connection, account, _)) = self.with_shared(id) {
            let bytes = connection.in_bytes();
            account.incoming(&mut connection.counted_in, bytes);
        }
    }

    /// The frame in the in-buffer is complete, and counts with its own size from now on.
    fn hand_on(&mut self, id: ConnId) {
        if let Some((connection, account, _)) = self.with_shared(id) {
            connection.reading = None;
            account.incoming(&mut connection.counted_in, 0);
        }
    }

    /// Sets memory aside for a frame. False: there is none.
    fn set_aside(&mut self, now: Mono, id: ConnId, begun: LongFrame) -> bool {
        let Some((connection, account, _)) = self.with_shared(id) else { return false };
        let bytes = begun.bytes + connection.held_bytes();
        let aside = account.set_aside(&mut connection.counted_in, bytes, begun.claim == FrameAdmission::Settling);
        if aside {
            connection.reading = Some(Box::new(FrameProgress::Aside { begun, since: now, last: now }));
        }
        aside
    }

    fn set_waiting(&mut self) {
        self.account.set_waiting(self.waits.len() as u64);
    }
}

impl<D: EngineHandle> Connections<D> {
    /// These bytes came from a connection. If the turn is cut, [`Self::go_on`] is to follow before the next bytes.
    pub fn take(&mut self, now: Mono, id: ConnId, bytes: &[u8]) -> Turn {
        let bytes = self.skip(id, bytes);
        let Some(connection) = self.talking(now, id) else { return Turn::Done };
        if matches!(connection.protocol, PeerProtocol::Zmtp(_)) {
            if let Some(FrameProgress::Aside { last, .. }) = connection.reading.as_deref_mut() {
                *last = now;
            }
        } else if !connection.leftover.is_empty() {
            let most = begun(&connection.protocol, connection.leftover.bytes()).map_or(0, |begun| begun.bytes);
            connection.leftover.extend(bytes, most);
            if let Some(FrameProgress::Aside { begun, last, .. }) = connection.reading.as_deref_mut() {
                *last = now;
                if connection.leftover.bytes().len() < begun.bytes {
                    return Turn::Done;
                }
                self.table.hand_on(id);
            }
            return self.go_on(now, id);
        }
        self.share_memory();
        let (used, turn) = self.take_frames(now, id, bytes);
        if used < bytes.len()
            && let Some(connection) = self.table.get_mut(id)
        {
            let rest = &bytes[used..];
            connection.leftover.extend(rest, 0);
        }
        self.keep(now, id, turn);
        self.settle(now);
        turn
    }

    /// Another turn of a connection whose last one was cut.
    pub fn go_on(&mut self, now: Mono, id: ConnId) -> Turn {
        self.share_memory();
        let Some(connection) = self.talking(now, id) else { return Turn::Done };
        let mut leftover = std::mem::take(&mut connection.leftover);
        let (used, turn) = self.take_frames(now, id, leftover.bytes());
        leftover.consume(used);
        if let Some(connection) = self.table.get_mut(id).filter(|connection| !connection.is_doomed()) {
            connection.leftover = leftover;
        }
        self.keep(now, id, turn);
        self.settle(now);
        turn
    }

    /// Bytes that one read may take: few when memory is short, since they may have to be held.
    pub fn read_bytes(&self) -> usize {
        if self.table.account.meter().has_room(READ_BYTES as u64) { READ_BYTES } else { FRAME_HELD_BYTES }
    }

    /// The memory of all connections, and of the engine.
    pub const fn meter(&self) -> &Arc<MemoryMeter> {
        self.table.account.meter()
    }

    /// Counts in that meter, which others share.
    pub(crate) fn set_meter(&mut self, meter: Arc<MemoryMeter>) {
        self.table.account = Account::new(meter);
    }

    /// Connections that may be read from again, since there is memory for what they have begun.
    pub fn take_granted(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.table.granted)
    }

    /// The engine hears how much connections hold, and tells what it holds itself.
    pub(super) fn share_memory(&mut self) {
        self.engine_handle.share_memory(self.table.account.meter());
    }

    /// Throws away what belongs to a frame that was refused. The bytes behind it.
    fn skip<'a>(&mut self, id: ConnId, bytes: &'a [u8]) -> &'a [u8] {
        let Some(connection) = self.table.get_mut(id) else { return bytes };
        let Some(FrameProgress::Skips { begun, left }) = connection.reading.as_deref_mut() else { return bytes };
        let skipped = bytes.len().min(*left);
        *left -= skipped;
        if *left == 0 {
            let LongFrame { seq, claim, .. } = *begun;
            connection.reading = None;
            if log_limit::admits(log_limit::LogKind::Memory) {
                warn!(code = Code::OverMemory.name(), count = 1, "refused client requests");
            }
            self.table.write(id, |out| refuse(seq, claim, out));
        }
        &bytes[skipped..]
    }

    /// Keeps the rest of a turn's bytes, as far as there is memory for it.
    fn keep(&mut self, now: Mono, id: ConnId, turn: Turn) {
        self.share_memory();
        let Some(connection) = self.table.get(id).filter(|connection| !connection.is_doomed()) else { return };
        let greets = connection.phase == ConnectionPhase::Greeting;
        let held = connection.leftover.bytes().len();
        let begun =
            begun(&connection.protocol, connection.leftover.bytes()).filter(|begun| begun.bytes > FRAME_HELD_BYTES);
        let waits = matches!(connection.reading.as_deref(), Some(FrameProgress::Waits { .. }));
        if matches!(connection.protocol, PeerProtocol::Zmtp(_)) && self.goes_on(id, begun) {
            return;
        }
        self.table.count_in(id);
        if waits && begun.is_some() {
            return;
        }
        let Some(begun) = begun.filter(|_| turn == Turn::Done) else {
            if held > HEADER_LEN && turn == Turn::Done && !self.meter().has_room(0) {
                self.give_up_for_memory(now, id);
            }
            return;
        };
        if greets && !self.may_greet(now, id, begun.bytes) {
            return self.give_up_for_memory(now, id);
        }
        let refused = self.is_refused(begun);
        if !refused && self.table.set_aside(now, id, begun) {
            return;
        }
        if refused {
            self.skip_rest(id, begun, held);
        } else if begun.claim == FrameAdmission::Ring || greets {
            self.give_up_for_memory(now, id);
        } else if let Some(connection) = self.table.get_mut(id) {
            connection.reading = Some(Box::new(FrameProgress::Waits { begun, since: now }));
            self.table.waits.push_back(id);
            self.table.set_waiting();
        }
    }

    /// Whether the memory that is set aside for a message of a ZeroMQ peer is enough for what is known of it now. If the message
    /// is complete, nothing is set aside any more.
    fn goes_on(&mut self, id: ConnId, begun: Option<LongFrame>) -> bool {
        let Some(connection) = self.table.get_mut(id) else { return true };
        match (connection.reading.as_deref(), begun) {
            (Some(FrameProgress::Aside { begun: aside, .. }), Some(begun)) if begun.bytes <= aside.bytes => true,
            (Some(FrameProgress::Aside { .. }), _) => {
                connection.reading = None;
                false
            }
            _ => false,
        }
    }

    /// Whether a connection in its greeting may send a frame that long: only a job worker with many tasks does. The oldest of
    /// others that do make room.
    fn may_greet(&mut self, now: Mono, id: ConnId, bytes: usize) -> bool {
        let most = GREETINGS_BYTES_MAX / self.greetings_shares;
        let long = |connections: &Self| -> Vec<(ConnId, usize)> {
            let greets = |connection: &&Connection| {
                connection.phase == ConnectionPhase::Greeting && connection.counted_in > FRAME_HELD_BYTES
            };
            let table = connections.greetings.iter().filter_map(|id| connections.table.get(*id)).filter(greets);
            table
                .filter(|connection| connection.id != id)
                .map(|connection| (connection.id, connection.counted_in))
                .collect()
        };
        let others = long(self);
        let mut all = others.iter().map(|(_, bytes)| bytes).sum::<usize>() + bytes;
        for (other, its) in others {
            if all <= most {
                break;
            }
            all -= its;
            self.give_up(now, other, Code::GreetingTimeout);
        }
        bytes <= FOREMAN_HELLO_BYTES_MAX.min(most)
    }

    /// Whether a frame is refused that could wait: the engine would refuse the message.
    fn is_refused(&self, begun: LongFrame) -> bool {
        begun.claim == FrameAdmission::Message && self.meter().refuses(begun.bytes as u64)
    }

    /// A frame that waited for memory is refused: its connection goes on.
    fn refuse_waiting(&mut self, id: ConnId, begun: LongFrame) {
        let held = self.table.get(id).map_or(0, |connection| connection.leftover.bytes().len());
        self.skip_rest(id, begun, held);
        self.table.granted.push(id);
    }

    /// A frame is refused, of which so much has come: the rest is not kept.
    fn skip_rest(&mut self, id: ConnId, begun: LongFrame, held: usize) {
        let Some(connection) = self.table.get_mut(id) else { return };
        connection.leftover = UnfinishedWork::default();
        connection.reading = Some(Box::new(FrameProgress::Skips { begun, left: begun.bytes - held }));
        self.table.count_in(id);
        self.meter().count_refused();
    }

    pub(super) fn give_up_for_memory(&mut self, now: Mono, id: ConnId) {
        self.meter().count_closed();
        if log_limit::admits(log_limit::LogKind::Memory) {
            let address = self.table.get(id).map(|connection| connection.address.as_str()).unwrap_or_default();
            let (used, max) = (self.meter().total(), self.limits.memory_bytes_max);
            warn!(address, used, max, "closing a connection: memory limit reached (limits.memory)");
        }
        self.give_up(now, id, Code::OverMemory);
    }

    /// Lets those go on for which there is memory now.
    pub(super) fn grant(&mut self, now: Mono) {
        let mut at = 0;
        while at < self.table.waits.len().min(GRANTS_MAX) {
            let id = self.table.waits[at];
            let begun = match self.table.get(id).and_then(|connection| connection.reading.as_deref()) {
                Some(FrameProgress::Waits { begun, .. }) => Some(*begun),
                _ => None,
            };
            match begun {
                Some(begun) if self.is_refused(begun) => {
                    self.table.waits.remove(at);
                    self.table.set_waiting();
                    self.refuse_waiting(id, begun);
                }
                Some(begun) if !self.table.set_aside(now, id, begun) => at += 1,
                granted => {
                    self.table.waits.remove(at);
                    self.table.granted.extend(granted.map(|_| id));
                    self.table.set_waiting();
                }
            }
        }
    }

    /// Looks at frames that have begun, and at what waits for those that do not read: who takes too long ends, or is refused.
    pub(super) fn sweep_memory(&mut self, now: Mono) {
        let contested = self.meter().is_contested();
        let short = contested || self.meter().is_tight();
        let ids: Vec<ConnId> = self.table.iter().map(|connection| connection.id).collect();
        for id in ids {
            self.table.count_out(id);
            let Some(connection) = self.table.get(id).filter(|connection| !connection.is_doomed()) else { continue };
            if connection.overdue(now, contested) {
                match connection.reading.as_deref() {
                    Some(FrameProgress::Waits { begun, .. }) if begun.claim.can_be_refused() => {
                        let begun = *begun;
                        self.refuse_waiting(id, begun);
                    }
                    _ => self.give_up_for_memory(now, id),
                }
            } else if short && connection.waiting() > OUT_TIGHT_BYTES && connection.is_stalled(now, OUT_TIGHT_STALL_MS)
            {
                self.give_up_for_memory(now, id);
            }
        }
        self.grant(now);
    }
}

/// The end of a frame that was not read.
fn refuse(seq: u32, claim: FrameAdmission, out: &mut Vec<u8>) {
    let code = Code::OverMemory;
    match claim {
        FrameAdmission::Message => {
            encode(&Frame::Undelivered { seq, code, raw: Raw { headers: false, bytes: &[] } }, out)
        }
        _ => encode(&Frame::Error { seq, code, fatal: false, detail: code.text().what }, out),
    }
}

#[cfg(test)]
mod tests;
