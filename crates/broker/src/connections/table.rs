//! The table of connections: the session, the incomplete frame and the out-buffer of each.

mod check;
mod numbers;

use std::collections::VecDeque;

use turno_proto::foreman;
use turno_proto::model::{Code, ConnId, Limits, Mono, limits};
use turno_proto::native::{Frame, Session, encode};

use super::events::{EventLimits, WaitingEvents};
use super::foreman::{ForemanConnection, LastWork};
use super::links::{Dial, LinkConnection};
use super::numbers::NumberAllocation;
use super::reading::{FrameProgress, is_short};
use super::ring::{RingConnection, RingConnections};
use super::zmq::{ZmqConnection, ZmqConnections};
use crate::memory::{Account, MemoryMeter};
use crate::turn::UnfinishedWork;

/// Bytes an empty out-buffer may keep for the next time while its connection is busy. Giving large ones back after
/// every write has the allocator return their pages to the system and fault them in again: at bodies of 4 KiB that
/// was half of all CPU time.
pub(super) const OUTBOX_KEPT_BYTES: usize = 1024 * 1024;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// The engine does not know it yet.
    Greeting,
    /// The engine knows it.
    Open,
    /// Given up: what waits is written, then it is closed. What it still sends is thrown away until then.
    Doomed { until: Mono },
}

/// The listener that accepted a connection, which determines its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// The native protocol.
    Native,
    /// The foreman's, for job workers.
    Foreman,
    /// The ring's, for other members.
    Ring,
    /// ZeroMQ's, at the endpoint with that place in the table.
    Zmq(u16),
}

/// The protocol of a connection, with its session state.
#[derive(Debug)]
pub(super) enum PeerProtocol {
    Native(Session),
    Foreman(Box<ForemanConnection>),
    Link(Box<LinkConnection>),
    Ring(Box<RingConnection>),
    Zmtp(Box<ZmqConnection>),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnId,
    pub(super) address: String,
    pub(super) protocol: PeerProtocol,
    pub(super) phase: ConnectionPhase,
    pub(super) leftover: UnfinishedWork,
    /// How the frame goes on that has begun, if it is a long one.
    pub(super) reading: Option<Box<FrameProgress>>,
    /// The counted bytes of the in-buffer and the out-buffer.
    pub(super) counted_in: usize,
    pub(super) counted_out: usize,
    /// Bytes to write; the first `written` of them are written.
    pub(super) out: Vec<u8>,
    written: usize,
    /// Something was written since the last sweep.
    busy: bool,
    /// Bytes of deliveries among what waits, at most. Slots limit them (nothing that frees slots is read while much
    /// waits), not the out-buffer: a worker that reads as fast as it can shall not be given up for the size of the
    /// backlog it found.
    pub(super) slot_limited: usize,
    /// Bytes of the longest frame since nothing waited: however long it is, others may wait beside it.
    pub(super) longest: usize,
    dirty: bool,
    /// Events that wait until there is room among what waits to be written.
    pub(super) events: Option<Box<WaitingEvents>>,
    /// Nothing is read from the peer.
    paused: bool,
    /// The engine wants to know when little is left of what waits.
    paced: bool,
    /// Something was published on it, at a broker that is in a ring.
    pub(super) publishes: bool,
    /// Since when the peer has taken nothing while something waited.
    pub(super) stalled: Option<Mono>,
}

impl Connection {
    /// Something came from the peer, or could not come.
    pub(super) fn heard(&mut self, now: Mono) {
        match &mut self.protocol {
            PeerProtocol::Native(session) => session.heard(now),
            PeerProtocol::Link(protocol) => protocol.session.heard(now),
            PeerProtocol::Ring(protocol) => protocol.session.heard(now),
            PeerProtocol::Zmtp(protocol) => protocol.session.heard(now),
            PeerProtocol::Foreman(_) => {}
        }
    }

    /// The peer has taken nothing for too long. A member of the ring must not, for as long as it may be silent.
    pub(super) fn is_stalled(&self, now: Mono, stall_ms_max: u64) -> bool {
        let most = match &self.protocol {
            PeerProtocol::Ring(protocol) => protocol.session.silence_ms(),
            PeerProtocol::Native(_) | PeerProtocol::Foreman(_) | PeerProtocol::Link(_) | PeerProtocol::Zmtp(_) => {
                stall_ms_max
            }
        };
        self.stalled.is_some_and(|since| now.millis_since(since) >= most)
    }

    /// A member of the ring takes what was said to it before its connection was given up, however long that is.
    pub(super) fn says_on(&self, now: Mono) -> bool {
        matches!(self.protocol, PeerProtocol::Ring(_)) && self.waiting() > 0 && !self.is_stalled(now, 0)
    }

    /// Given up.
    pub(super) const fn is_doomed(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Doomed { .. })
    }

    /// Why the peer is to be given up, if it was silent for too long. The foreman's protocol has no signs of life, and ZeroMQ's are
    /// sent and looked at together.
    pub(super) fn handle_timeout(&self, now: Mono) -> Option<Code> {
        match &self.protocol {
            PeerProtocol::Native(session) => session.handle_timeout(now),
            PeerProtocol::Link(protocol) => protocol.session.handle_timeout(now),
            PeerProtocol::Ring(protocol) => protocol.session.handle_timeout(now),
            PeerProtocol::Foreman(_) | PeerProtocol::Zmtp(_) => None,
        }
    }

    pub(super) const fn waiting(&self) -> usize {
        self.out.len() - self.written
    }

    pub(super) fn unwritten(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// Whether to read from the peer: not once more than `most` bytes wait for it, until it has taken half of
    /// them. Two marks instead of one, or a busy peer would be stopped and started with every write. Another broker does
    /// the same, so that of a link both ends must read whatever waits; the same in the ring. `slowed`: not from one that
    /// publishes either, so that its bytes wait where it sends them.
    pub(super) fn wants_reading(&mut self, most: usize, slowed: bool) -> bool {
        if matches!(self.protocol, PeerProtocol::Link(_) | PeerProtocol::Ring(_)) {
            self.paused = false;
        } else if self.waiting() > most {
            self.paused = true;
        } else if self.waiting() <= most / 2 {
            self.paused = false;
        }
        !(self.paused
            || slowed && self.publishes
            || matches!(self.reading.as_deref(), Some(FrameProgress::Waits { .. })))
    }

    /// Some of what waited is written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        self.busy = true;
        self.slot_limited = self.slot_limited.min(self.waiting());
        self.longest = self.longest.min(self.waiting());
        if self.written == self.out.len() {
            self.written = 0;
            self.out.clear();
            if self.out.capacity() > OUTBOX_KEPT_BYTES {
                self.out = Vec::new();
            }
        } else if self.written > self.out.len() / 2 {
            self.out.drain(..self.written);
            self.written = 0;
        }
    }

    /// The connection is given up. Deliveries that are not written go to other workers. A PULL socket would be done with them as
    /// soon as they were written, so it must not get them too.
    pub(super) fn keep_from_pull_socket(&mut self) {
        if matches!(&self.protocol, PeerProtocol::Zmtp(protocol) if protocol.is_pull()) {
            self.out.truncate(self.written);
            self.wrote(0);
        }
    }

    /// Whether the engine is to be told now that the peer has read.
    pub(super) const fn take_pace(&mut self) -> bool {
        let has_read = self.paced && self.waiting() <= limits::OUT_TIGHT_BYTES / 2 && !self.is_doomed();
        self.paced &= !has_read;
        has_read
    }

    /// A frame was added behind so many bytes.
    pub(super) fn stretch(&mut self, before: usize) {
        self.longest = self.longest.max(self.out.len() - before);
    }

    /// The same of one that slots limit.
    pub(super) const fn add_slot_limited(&mut self, before: usize) {
        self.slot_limited += self.out.len() - before;
    }

    /// Gives the out-buffer back if it was not used since the last call, or if memory is short: a quiet connection owns nothing.
    pub(super) fn rest(&mut self, tight: bool) {
        if (tight || !self.busy) && self.out.is_empty() {
            self.out = Vec::new();
        }
        self.busy = false;
    }
}

/// The connections of one router.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    numbers: NumberAllocation,
    by_place: Vec<Option<Connection>>,
    vacant: Vec<u32>,
    len: usize,
    /// Connections with something to write since the last flush.
    dirty: Vec<ConnId>,
    /// Connections that let too much pile up.
    pub(super) overrun: Vec<ConnId>,
    /// Connections of job workers that may have something to tell.
    pub(super) stirred: Vec<ConnId>,
    /// A buffer for the output of a foreman's end; empty in between.
    pub(super) said: Vec<u8>,
    pub(super) event_limits: EventLimits,
    /// An event passes through here as a frame; empty in between.
    pub(super) event: Vec<u8>,
    /// Connections that missed events since the last sweep.
    pub(super) missed: Vec<ConnId>,
    /// Copies of events since somebody last looked.
    pub(super) copies: u32,
    /// The command of the job that was offered last.
    pub(super) last_work: LastWork,
    /// Connections of job workers that the engine wants to be rid of.
    pub(super) dismissed: Vec<ConnId>,
    /// Links that the engine wants dialled.
    pub(super) dials: Vec<Dial>,
    /// Links to which the engine has proven itself.
    pub(super) proven: Vec<ConnId>,
    /// Links that the engine wants to be rid of, and why.
    pub(super) unlinked: Vec<(ConnId, Code)>,
    /// Messages that were too long to cross a link, by the number of the crossing.
    pub(super) bounced: Vec<(ConnId, u32)>,
    pub(super) ring: RingConnections,
    pub(super) zmq: ZmqConnections,
    /// The bytes that all of them hold.
    pub(super) account: Account,
    /// Connections that wait for memory, first come first.
    pub(super) waits: VecDeque<ConnId>,
    /// Those that may be read from again.
    pub(super) granted: Vec<ConnId>,
    /// Those that hold too much now that memory is short.
    pub(super) short: Vec<ConnId>,
    out_bytes_max: usize,
    frame_bytes_max: usize,
    /// For the connections of job workers.
    pub(super) foreman: foreman::ForemanSettings,
    /// The time it is.
    pub(super) now: Mono,
}

impl ConnectionTable {
    pub(super) fn new(limits: &Limits, numbers: NumberAllocation) -> Self {
        Self {
            numbers,
            by_place: Vec::new(),
            vacant: Vec::new(),
            len: 0,
            dirty: Vec::new(),
            overrun: Vec::new(),
            stirred: Vec::new(),
            said: Vec::new(),
            event_limits: EventLimits::default(),
            event: Vec::new(),
            missed: Vec::new(),
            copies: 0,
            last_work: LastWork::default(),
            dismissed: Vec::new(),
            dials: Vec::new(),
            proven: Vec::new(),
            unlinked: Vec::new(),
            bounced: Vec::new(),
            ring: RingConnections::default(),
            zmq: ZmqConnections::new(limits),
            account: Account::new(MemoryMeter::new(limits)),
            waits: VecDeque::new(),
            granted: Vec::new(),
            short: Vec::new(),
            out_bytes_max: limits.out_bytes_max,
            frame_bytes_max: limits.frame_bytes_max,
            foreman: foreman::ForemanSettings::default(),
            now: Mono::ZERO,
        }
    }

    pub(super) fn insert(&mut self, now: Mono, address: String, kind: ListenerKind) -> ConnId {
        let protocol = if kind == ListenerKind::Foreman {
            PeerProtocol::Foreman(Box::new(ForemanConnection::connect(now, self.foreman)))
        } else {
            PeerProtocol::Native(Session::new(now, self.frame_bytes_max))
        };
        self.insert_talk(address, protocol)
    }

    pub(super) fn insert_talk(&mut self, address: String, protocol: PeerProtocol) -> ConnId {
        let id = self.reserve();
        let place = self.place(id);
        self.by_place[place] = Some(Connection {
            id,
            address,
            protocol,
            phase: ConnectionPhase::Greeting,
            leftover: UnfinishedWork::default(),
            reading: None,
            counted_in: 0,
            counted_out: 0,
            out: Vec::new(),
            written: 0,
            busy: false,
            slot_limited: 0,
            longest: 0,
            dirty: false,
            events: None,
            paused: false,
            paced: false,
            publishes: false,
            stalled: None,
        });
        self.len += 1;
        id
    }

    pub(super) fn remove(&mut self, id: ConnId) -> Option<Connection> {
        let place = self.place(id);
        let mut connection = self.by_place.get_mut(place)?.take_if(|connection| connection.id == id)?;
        self.account.incoming(&mut connection.counted_in, 0);
        self.account.outgoing(&mut connection.counted_out, 0);
        self.zmq_left(&connection);
        self.vacate(id);
        self.len -= 1;
        Some(connection)
    }

    pub(super) fn get(&self, id: ConnId) -> Option<&Connection> {
        self.by_place.get(self.place(id))?.as_ref().filter(|connection| connection.id == id)
    }

    pub(super) fn get_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        let place = self.place(id);
        self.by_place.get_mut(place)?.as_mut().filter(|connection| connection.id == id)
    }

    /// A connection, the account of its memory, and the state that ZeroMQ connections share.
    pub(super) fn with_shared(&mut self, id: ConnId) -> Option<(&mut Connection, &mut Account, &mut ZmqConnections)> {
        let place = self.place(id);
        let connection = self.by_place.get_mut(place)?.as_mut().filter(|connection| connection.id == id)?;
        Some((connection, &mut self.account, &mut self.zmq))
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.by_place.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.by_place.iter_mut().flatten()
    }

    /// Has a frame written into the out-buffer of a connection, which will be flushed at the end of the tick. Not
    /// if it is gone, given up, or has let too much pile up already: a frame more would change nothing for it.
    pub(super) fn write(&mut self, id: ConnId, frame: impl FnOnce(&mut Vec<u8>)) {
        if let Some(connection) = self.with_room(id) {
            let before = connection.out.len();
            frame(&mut connection.out);
            connection.stretch(before);
            self.count_out(id);
        }
    }

    /// The same for a delivery.
    pub(super) fn write_delivery(&mut self, id: ConnId, frame: impl FnOnce(&mut Vec<u8>)) {
        if let Some(connection) = self.with_room(id) {
            let before = connection.out.len();
            frame(&mut connection.out);
            connection.add_slot_limited(before);
            self.count_out(id);
        }
    }

    /// A connection that takes the engine's effects as frames: to a job worker, only the foreman's end writes.
    pub(super) fn with_room(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.room_of(id).filter(|connection| !matches!(connection.protocol, PeerProtocol::Foreman(_)))
    }

    pub(super) fn room_of(&mut self, id: ConnId) -> Option<&mut Connection> {
        let place = self.place(id);
        let connection = self.by_place.get_mut(place)?.as_mut().filter(|connection| connection.id == id)?;
        if connection.is_doomed() {
            return None;
        }
        // A peer that reads, if slower than others write for a moment, is given more room than one that does not.
        let reads = connection.stalled.is_none_or(|since| self.now.millis_since(since) < limits::OUT_STALL_MS);
        let most = if reads { self.out_bytes_max.saturating_mul(limits::OUT_PATIENCE) } else { self.out_bytes_max };
        let bounded = !matches!(connection.protocol, PeerProtocol::Ring(_));
        if bounded && is_short(connection, reads, self.account.meter()) {
            if self.short.last() != Some(&id) {
                self.short.push(id);
            }
            return None;
        }
        if bounded && connection.waiting() > most.saturating_add(connection.slot_limited + connection.longest) {
            if self.overrun.last() != Some(&id) {
                self.overrun.push(id);
            }
            return None;
        }
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(id);
        }
        Some(connection)
    }

    /// The engine hears when little is left of what waits for the peer.
    pub(super) fn pace(&mut self, id: ConnId) {
        if let Some(connection) = self.get_mut(id) {
            connection.paced = true;
            self.mark_dirty(id);
        }
    }

    /// The connection is looked at in the next flush.
    pub(super) fn mark_dirty(&mut self, id: ConnId) {
        if let Some(connection) = self.get_mut(id)
            && !connection.dirty
        {
            connection.dirty = true;
            self.dirty.push(id);
        }
    }

    pub(super) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The connections to flush now.
    pub(super) fn take_dirty(&mut self) -> Vec<ConnId> {
        let dirty = std::mem::take(&mut self.dirty);
        for id in &dirty {
            if let Some(connection) = self.get_mut(*id) {
                connection.dirty = false;
            }
        }
        dirty
    }

    pub(super) fn take_overrun(&mut self) -> Option<ConnId> {
        self.overrun.pop()
    }

    /// The last frame to a connection that is given up. However much waits already, there is room for it.
    pub(super) fn say_last(&mut self, id: ConnId, code: Code) {
        // A job worker and a ZeroMQ peer would not understand.
        let hears = |connection: &&mut Connection| {
            !connection.is_doomed() && !matches!(connection.protocol, PeerProtocol::Foreman(_) | PeerProtocol::Zmtp(_))
        };
        if let Some(connection) = self.get_mut(id).filter(hears) {
            encode(&Frame::Error { seq: 0, code, fatal: true, detail: code.text().what }, &mut connection.out);
            self.count_out(id);
        }
    }
}

#[cfg(test)]
mod tests;
