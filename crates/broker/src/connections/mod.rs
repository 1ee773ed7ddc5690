//! The broker without its sockets and its clock. Connections come, bytes come, time passes; bytes to write and
//! connections to close come out.
//!
//! The tokio shell drives one [`Connections`] on each router's thread; tests and simulations drive it with bytes and times of
//! their own. It knows when to stop
//! reading from a peer and when to give one up; what a message means is the engine's business. The engine is right
//! here (and effects become bytes while it speaks), or on another thread: the [`EngineHandle`] knows.

mod brokers;
mod engine_handle;
mod events;
mod foreman;
mod frames;
mod inward;
mod last_topic;
mod links;
mod numbers;
mod outward;
mod reading;
mod ring;
mod table;
mod zmq;

use std::collections::VecDeque;

use tracing::debug;
pub use turno_engine::Drained;
use turno_engine::{Engine, Input, PeerEffect, PeerSink as _, Settings};
use turno_proto::foreman::ForemanSettings;
use turno_proto::model::{Code, ConnId, Limits, Mono, limits};
use turno_proto::native::Config;

use super::archive::ArchiveHandle;
use super::storage::Storage;
use super::turn::UnfinishedWork;

pub(super) use self::brokers::is_local;
pub use self::engine_handle::{EngineHandle, LocalEngine};
pub use self::events::EventLimits;
use self::last_topic::LastTopic;
pub use self::links::{Dial, LinkSettings, Nonces};
pub(super) use self::numbers::NumberAllocation;
pub use self::ring::{RingDial, RingReport, RingWireSettings};
pub use self::table::ListenerKind;
use self::table::{Connection, ConnectionPhase, ConnectionTable, PeerProtocol};
pub use self::zmq::ZmqLimits;
pub use super::memory::MemoryMeter;
pub use super::turn::Turn;

/// How long a connection that was given up may take to read its last frames.
const FAREWELL_MS: u64 = 1_000;

/// Connections, and the way from them to the engine.
#[derive(Debug)]
pub struct Connections<D = LocalEngine> {
    engine_handle: D,
    table: ConnectionTable,
    limits: Limits,
    config: Config,
    /// Connections in the greeting, oldest first; some may be past it.
    greetings: VecDeque<ConnId>,
    /// This router's share of those that there may be: one of so many shares.
    greetings_max: usize,
    greetings_shares: usize,
    /// Connections that are over: their sockets are to be closed.
    gone: Vec<ConnId>,
    /// In one turn of a connection.
    turn_work: u32,
    /// How links are greeted; `None`: there are none.
    links: Option<Box<LinkSettings>>,
    /// The broker's place in a ring; `None`: there is none.
    ring: Option<Box<RingWireSettings>>,
    last_topic: LastTopic,
}

impl Connections {
    /// A broker that lives in memory, and that nobody is connected to.
    pub fn new(now: Mono, settings: Settings, config: Config) -> Self {
        let limits = settings.limits.clone();
        let engine = Engine::new(settings, now);
        Self::with_engine(LocalEngine::new(engine, None, ArchiveHandle::in_memory()), limits, config)
    }
}

impl<K: Storage> Connections<LocalEngine<K>> {
    /// A broker that nobody is connected to.
    pub fn with_engine(engine_handle: LocalEngine<K>, limits: Limits, config: Config) -> Self {
        Self::with_engine_handle(engine_handle, limits, config, NumberAllocation::default())
    }

    /// The engine, to look at.
    pub const fn engine(&self) -> &Engine {
        &self.engine_handle.engine
    }

    /// The storage of durable records.
    pub const fn storage_mut(&mut self) -> &mut K {
        &mut self.engine_handle.storage
    }

    /// The way to the archive.
    pub(super) const fn archive_mut(&mut self) -> &mut ArchiveHandle {
        &mut self.engine_handle.archive
    }

    /// Writes down what has changed since the last look.
    pub(super) fn keep_diary(&mut self) {
        self.engine_handle.keep_diary();
    }

    /// How the drain ended, once it is over.
    pub const fn drained(&self) -> Option<Drained> {
        self.engine_handle.drained()
    }

    /// Reports of the ring's node for the host of the broker, since the last call.
    pub fn take_ring_reports(&mut self) -> Vec<RingReport> {
        self.engine_handle.take_ring_reports()
    }

    /// When [`Input::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        self.engine_handle.engine.next_deadline()
    }

    /// Something that no connection said: time passed, or the broker is to end.
    pub fn handle(&mut self, now: Mono, input: Input) {
        self.table.now = now;
        self.share_memory();
        self.engine_handle.put(now, input, &mut self.table);
        self.settle(now);
    }
}

impl<D: EngineHandle> Connections<D> {
    /// No connections yet; inputs go to that engine handle.
    pub(super) fn with_engine_handle(
        engine_handle: D,
        limits: Limits,
        config: Config,
        numbers: NumberAllocation,
    ) -> Self {
        let (greetings_max, greetings_shares) = (limits::GREETINGS_MAX >> numbers.bits, 1 << numbers.bits);
        let table = ConnectionTable::new(&limits, numbers);
        let (greetings, gone, turn_work) = (VecDeque::new(), Vec::new(), limits::TURN_WORK);
        let (links, ring, last_topic) = (None, None, LastTopic::default());
        Self {
            engine_handle,
            table,
            limits,
            config,
            greetings,
            greetings_max,
            greetings_shares,
            gone,
            turn_work,
            links,
            ring,
            last_topic,
        }
    }

    pub(super) const fn engine_handle(&self) -> &D {
        &self.engine_handle
    }

    pub(super) const fn engine_handle_mut(&mut self) -> &mut D {
        &mut self.engine_handle
    }

    /// Carries out an effect that came from another thread.
    pub(super) fn carry_out(&mut self, now: Mono, effect: PeerEffect) {
        self.table.now = now;
        self.table.peer(effect);
        self.settle(now);
    }

    /// The connection's place in a table of this router's connections alone.
    pub(super) const fn place(&self, id: ConnId) -> usize {
        self.table.place(id)
    }

    /// Settings for job workers that connect from now on; a lower sequence limit means more RESETs.
    pub const fn set_foreman(&mut self, settings: ForemanSettings) {
        self.table.foreman = settings;
    }

    /// How much work a connection's turn may be; a lower limit cuts more turns.
    pub const fn set_turn_work(&mut self, work: u32) {
        self.turn_work = work;
    }

    /// How many events may wait for a connection; a lower limit drops more of them.
    pub const fn set_event_limits(&mut self, limits: EventLimits) {
        self.table.event_limits = limits;
    }

    /// A new connection; `None` if there are too many.
    pub fn accept(&mut self, now: Mono, address: String, kind: ListenerKind) -> Option<ConnId> {
        if self.table.len() >= self.limits.connections_max {
            return None;
        }
        let id = match kind {
            ListenerKind::Ring => self.accept_ring(now, address)?,
            ListenerKind::Zmq(place) => self.accept_zmq(now, address, place)?,
            ListenerKind::Native | ListenerKind::Foreman => self.table.insert(now, address, kind),
        };
        self.table.now = now;
        self.table.flush_foreman(id);
        if self.greetings.len() >= self.greetings_max {
            // Those that greeted or went away since do not count.
            let table = &self.table;
            self.greetings
                .retain(|id| table.get(*id).is_some_and(|connection| connection.phase == ConnectionPhase::Greeting));
        }
        self.greetings.push_back(id);
        if self.greetings.len() > self.greetings_max
            && let Some(oldest) = self.greetings.pop_front()
        {
            self.give_up(now, oldest, Code::GreetingTimeout);
        }
        Some(id)
    }

    /// A connection that is heard, now.
    fn talking(&mut self, now: Mono, id: ConnId) -> Option<&mut Connection> {
        self.table.now = now;
        let connection =
            self.table.get_mut(id).filter(|connection| !matches!(connection.phase, ConnectionPhase::Doomed { .. }))?;
        connection.heard(now);
        Some(connection)
    }

    /// The peer closed the connection, or it broke.
    pub fn hang_up(&mut self, now: Mono, id: ConnId) {
        self.end(now, id, false);
    }

    /// Whether a connection is open: greeted, and not on its way out.
    pub fn serves(&self, id: ConnId) -> bool {
        self.table.get(id).is_some_and(|connection| connection.phase == ConnectionPhase::Open)
    }

    /// The same, and the peer had not read all that was written to it.
    pub fn reset(&mut self, now: Mono, id: ConnId) {
        self.end(now, id, true);
    }

    fn end(&mut self, now: Mono, id: ConnId, reset: bool) {
        let Some(connection) = self.table.remove(id) else { return };
        self.gone.push(id);
        let code = if matches!(connection.protocol, PeerProtocol::Ring(_)) { Code::RingDown } else { Code::LinkDown };
        connection.tell_of_link(connection.phase, code);
        let Some(input) = connection.ending(connection.phase, code) else { return };
        let unread = reset || !connection.unwritten().is_empty();
        if unread && let Input::Disconnected { conn } = input {
            self.tell_end(now, Input::Unread { conn });
        }
        self.tell_end(now, input);
        self.settle(now);
    }

    /// Looks at every connection: who is silent, who reads nothing, who has had its farewell, who needs no buffer. Due
    /// a few times a second.
    pub fn sweep(&mut self, now: Mono) {
        let Limits { write_stall_ms_max: stall_ms_max, out_bytes_pause, .. } = self.limits;
        let slowed = self.table.ring.slowed;
        let tight = self.meter().is_tight();
        let mut beats = Vec::new();
        for connection in self.table.iter_mut() {
            if matches!(connection.protocol, PeerProtocol::Link(_) | PeerProtocol::Ring(_)) {
                beats.push(connection.id);
            }
            connection.rest(tight);
            if !connection.wants_reading(out_bytes_pause, slowed) {
                // It is not read from, so it cannot be silent; whether it takes what waits is judged below.
                connection.heard(now);
            }
        }
        let judge = |connection: &Connection| match connection.phase {
            ConnectionPhase::Doomed { until } => (now >= until && !connection.says_on(now)).then_some(Verdict::Forget),
            ConnectionPhase::Greeting | ConnectionPhase::Open => {
                let stalled = connection.is_stalled(now, stall_ms_max);
                let code = if stalled { Some(Code::SlowReader) } else { connection.handle_timeout(now) };
                code.map(Verdict::GiveUp)
            }
        };
        let verdicts: Vec<(ConnId, Verdict)> = self
            .table
            .iter()
            .filter_map(|connection| judge(connection).map(|verdict| (connection.id, verdict)))
            .collect();
        for (id, verdict) in verdicts {
            match verdict {
                Verdict::GiveUp(code) => self.give_up(now, id, code),
                Verdict::Forget => self.hang_up(now, id),
            }
        }
        self.sweep_workers(now);
        self.sweep_zmq(now);
        self.sweep_memory(now);
        self.table.now = now;
        self.beat(now, &beats);
        for (conn, count) in self.table.take_dropped() {
            self.engine_handle.put(now, Input::EventsDropped { conn, count }, &mut self.table);
        }
    }

    /// Whether anything waits to be written that was not there at the last flush.
    pub fn has_dirty(&self) -> bool {
        self.table.has_dirty()
    }

    /// The connections to write to now.
    pub fn take_dirty(&mut self) -> Vec<ConnId> {
        self.table.take_dirty()
    }

    /// The connection is looked at again in the next flush.
    pub fn mark_dirty(&mut self, id: ConnId) {
        self.table.mark_dirty(id);
    }

    /// The bytes to write to a connection.
    pub fn unwritten(&self, id: ConnId) -> &[u8] {
        self.table.get(id).map(Connection::unwritten).unwrap_or_default()
    }

    /// That many bytes were written; the peer may be unable to take more.
    pub fn wrote(&mut self, now: Mono, id: ConnId, count: usize) {
        let event_limits = self.table.event_limits;
        let Some(connection) = self.table.get_mut(id) else { return };
        connection.wrote(count);
        if count > 0 {
            connection.stalled = None;
        }
        let more = connection.refill(event_limits);
        if connection.waiting() > 0 {
            connection.stalled.get_or_insert(now);
        }
        let has_read = connection.take_pace();
        self.table.count_out(id);
        if more {
            self.table.mark_dirty(id);
        }
        if self.table.zmq.count > 0 && self.table.zmq_wrote(id, count) {
            self.table.now = now;
            self.share_memory();
            self.settle(now);
        }
        if has_read {
            self.table.now = now;
            self.share_memory();
            self.engine_handle.put(now, Input::HasRead { conn: id }, &mut self.table);
            self.tell_of_seats(now, id, |conn| Input::HasRead { conn });
            self.settle(now);
        }
    }

    /// Whether to read from a connection: not while too much waits to be written to it, nor from one that publishes while
    /// publishers are slowed down.
    pub fn wants_reading(&mut self, id: ConnId) -> bool {
        let slowed = self.table.ring.slowed;
        let much = self.table.get(id).is_some_and(|connection| connection.waiting() > limits::OUT_TIGHT_BYTES);
        let tight = much && self.meter().is_tight();
        let most = if tight { limits::OUT_TIGHT_BYTES } else { self.limits.out_bytes_pause };
        if self.table.zmq.count > 0 && !self.table.zmq_wants_reading(id) {
            return false;
        }
        self.table.get_mut(id).is_none_or(|connection| connection.wants_reading(most, slowed))
    }

    /// Whether what comes from a connection is taken in: not once it is given up.
    pub fn is_heard(&self, id: ConnId) -> bool {
        self.table.get(id).is_some_and(|connection| !matches!(connection.phase, ConnectionPhase::Doomed { .. }))
    }

    /// Everything is said to a connection that was given up: its writing side is to be closed.
    pub fn said_all(&self, id: ConnId) -> bool {
        self.table.get(id).is_some_and(|connection| {
            matches!(connection.phase, ConnectionPhase::Doomed { .. }) && connection.waiting() == 0
        })
    }

    /// Whether anything waits to be written at all.
    pub fn has_unwritten(&self) -> bool {
        self.table.iter().any(|connection| connection.waiting() > 0)
    }

    /// Connections that are over since the last call.
    pub fn take_gone(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.gone)
    }

    /// Tells a connection why it ends, and ends it.
    fn give_up(&mut self, now: Mono, id: ConnId, code: Code) {
        debug!(conn = id.index, %code, "closing a connection");
        self.table.say_last(id, code);
        self.part(now, id, code);
    }

    /// Nothing more is taken from the connection; what waits for it may still be read for a moment. A link's target
    /// is told the code.
    fn part(&mut self, now: Mono, id: ConnId, code: Code) {
        let Some(connection) = self.table.get_mut(id) else { return };
        let before =
            std::mem::replace(&mut connection.phase, ConnectionPhase::Doomed { until: now.plus_millis(FAREWELL_MS) });
        connection.leftover = UnfinishedWork::default();
        connection.reading = None;
        // They would come behind the last frame.
        connection.events = None;
        connection.keep_from_pull_socket();
        connection.tell_of_link(before, code);
        let input = connection.ending(before, code);
        self.table.count_in(id);
        self.table.count_out(id);
        self.table.mark_dirty(id);
        if let Some(input) = input {
            self.tell_end(now, input);
        }
    }

    /// Works off what follows from an input. Connections that let too much pile up are given up; what they held goes to
    /// others.
    fn settle(&mut self, now: Mono) {
        loop {
            self.hear_workers(now);
            if self.settle_links(now) || self.settle_zmq(now) {
                continue;
            }
            if let Some(id) = self.table.short.pop() {
                self.give_up_for_memory(now, id);
                continue;
            }
            let Some(id) = self.table.take_overrun() else { break };
            self.give_up(now, id, Code::SlowReader);
        }
        if !self.table.waits.is_empty() {
            self.share_memory();
            self.grant(now);
        }
    }
}

enum Verdict {
    GiveUp(Code),
    Forget,
}
