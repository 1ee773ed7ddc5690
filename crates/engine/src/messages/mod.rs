//! Messages: requests, sends and broadcasts, from their admission to their end. Queues, workers, links and stored
//! records of messages are here too.
//!
//! This is a machine: nobody outside of this folder sees its fields. The engine tells it what connections say, lends parts of it
//! to other machines for one call, and does what follows for those.

mod backoff;
pub(crate) mod broadcast;
mod cancel;
pub(crate) mod check;
mod deferred;
pub(crate) mod disk;
mod dispatch;
mod drain;
mod expiry;
mod explain;
mod intake;
mod keeping;
pub(crate) mod links;
mod queues;
mod retry;
mod settle;
mod stats;
pub(crate) mod table;
mod worker_lost;
pub(crate) mod workers;

use std::collections::{BTreeMap, VecDeque};

use turno_proto::model::link::BrokerId;
use turno_proto::model::ring::Origin;
use turno_proto::model::view::Counters;
use turno_proto::model::{ConnId, Delivery, MessageId, Mono, Payload, QueueName, limits};

pub use self::backoff::RetryDelay;
use self::broadcast::BroadcastTally;
use self::deferred::DeferredWork;
use self::disk::durable::Durable;
use self::dispatch::DispatchStep;
use self::drain::Drain;
use self::links::Links;
use self::queues::cold::Loads;
use self::queues::dedup::Dedup;
use self::queues::delayed::Delays;
use self::queues::exclusive::Exclusives;
use self::queues::queue::QueueTable;
use self::stats::Stats;
use self::table::message::{Flags, Message, MessageStage, MessageTable};
use self::table::timers::Timers;
use self::worker_lost::Losses;
use self::workers::pace::Pace;
use self::workers::peer::Peers;
use self::workers::shared_rota::SharedRotas;
use crate::jobs::{self, Jobs};
use crate::settings::Settings;

/// All messages, with their queues, workers and links.
#[derive(Debug)]
pub(crate) struct Messages {
    settings: Settings,
    /// The latest time it was told.
    now: Mono,
    /// When the broker started.
    started: Mono,
    peers: Peers,
    queues: QueueTable,
    messages: MessageTable,
    timers: Timers,
    durable: Durable,
    dedup: Dedup,
    loads: Loads,
    delays: Delays,
    exclusives: Exclusives,
    stats: Stats,
    /// Bytes that all else holds: other machines and the buffers of connections.
    bytes_elsewhere: u64,
    links: Links,
    shared_rotas: SharedRotas,
    /// The number of the latest delivery.
    stamps: u32,
    /// The text of the last failure of a dead letter, by message.
    failures: BTreeMap<u32, Payload>,
    /// How far each broadcast is, by its message.
    broadcasts: BTreeMap<u32, BroadcastTally>,
    losses: Losses,
    pace: Pace,
    drain: Option<Drain>,
    deferred: DeferredWork,
    /// Consequences of the input that are still to be handled. Done at the end of each input, one by one, so that
    /// no chain of consequences can grow the stack.
    agenda: VecDeque<DispatchStep>,
    /// Job workers whose room changed, because their native connection has more or less.
    job_workers: Vec<ConnId>,
    /// When the checker looks at every backlog again (S0.30).
    check_at: Mono,
}

impl Messages {
    /// Nothing yet.
    pub(crate) fn new(settings: Settings, now: Mono) -> Self {
        let pace = Pace::new(settings.limits.out_bytes_pause as u64);
        let last_serial = settings.store.map_or(0, |store| store.last_serial);
        Self {
            links: Links::new(BrokerId::new(settings.run), &settings.links, now),
            exclusives: Exclusives::new(settings.term),
            settings,
            now,
            started: now,
            peers: Peers::default(),
            queues: QueueTable::default(),
            messages: MessageTable::after(last_serial),
            timers: Timers::new(now),
            durable: Durable::default(),
            dedup: Dedup::default(),
            loads: Loads::default(),
            delays: Delays::default(),
            stats: Stats::default(),
            bytes_elsewhere: 0,
            shared_rotas: SharedRotas::default(),
            stamps: 0,
            failures: BTreeMap::new(),
            broadcasts: BTreeMap::new(),
            losses: Losses::default(),
            pace,
            drain: None,
            deferred: DeferredWork::default(),
            agenda: VecDeque::new(),
            job_workers: Vec::new(),
            check_at: now.plus_millis(limits::CHECKER_MS),
        }
    }

    /// When time alone changes something. Asked after every input, so it is spelled out.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let mut next = self.timers.next_deadline();
        let mut or_at = |at: Mono| next = Some(next.map_or(at, |next| next.min(at)));
        if self.stats.ready > 0 || !self.durable.pending_writes.is_empty() {
            or_at(self.check_at);
        }
        if let Some(until) = self.drain.as_ref().and_then(Drain::until) {
            or_at(until);
        }
        if let Some(at) = self.losses.next_deadline() {
            or_at(at);
        }
        if let Some(at) = self.delays.next_deadline() {
            or_at(at);
        }
        if let Some(sweep) = self.dedup.next_sweep() {
            or_at(sweep);
        }
        if let Some(at) = self.deferred.next_deadline() {
            or_at(at);
        }
        if let Some(until) = self.exclusives.next_deadline() {
            or_at(until);
        }
        if let Some(at) = self.links.next_deadline() {
            or_at(at);
        }
        next
    }

    /// Before each input: what time it is. A time before the last one counts as that.
    #[inline]
    pub(crate) fn begin(&mut self, now: Mono) {
        self.now = self.now.max(now);
    }

    /// Before whatever takes memory: how many bytes all else holds.
    #[inline]
    pub(crate) const fn share_memory(&mut self, bytes_elsewhere: u64) {
        self.bytes_elsewhere = bytes_elsewhere;
    }

    pub(crate) fn is_connected(&self, conn: ConnId) -> bool {
        self.peers.get(conn).is_some()
    }

    /// Everyone who is connected.
    pub(crate) fn connections(&self) -> impl Iterator<Item = ConnId> {
        self.peers.iter().map(|peer| peer.id)
    }

    pub(crate) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// The run that the ids of sends name, unless they are in memory beside a store.
    pub(crate) fn run(&self) -> u64 {
        self.settings.store_run()
    }

    /// Bytes of messages in memory.
    pub(crate) const fn bytes(&self) -> u64 {
        self.stats.bytes
    }

    /// Bytes of dead letters in memory.
    pub(crate) const fn dead_bytes(&self) -> u64 {
        self.stats.dead_bytes
    }

    pub(crate) const fn counters(&self) -> &Counters {
        &self.stats.counters
    }

    pub(crate) const fn peers(&self) -> &Peers {
        &self.peers
    }

    /// How many messages of each queue have become dead letters so far; queues without any are left out.
    pub(crate) fn dead_by_queue(&self) -> impl Iterator<Item = (&QueueName, u64)> {
        let dead = self.queues.after(None).map(|(_, queue)| (&queue.name, queue.counters.dead));
        dead.filter(|(_, dead)| *dead > 0)
    }

    /// Deliveries that workers hold now.
    pub(crate) const fn in_flight(&self) -> u64 {
        self.stats.in_flight
    }

    /// Whether something is on its way to the disk, or will be as soon as there is room.
    pub(crate) fn waits_for_disk(&self) -> bool {
        !self.durable.is_idle()
    }

    /// The same of messages alone.
    pub(crate) fn messages_wait_for_disk(&self) -> bool {
        self.durable.indexes().next().is_some()
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) const fn now(&self) -> Mono {
        self.now
    }

    /// Where a connection comes from.
    pub(crate) fn address_of(&self, conn: ConnId) -> Option<&str> {
        self.peers.get(conn).map(|peer| peer.address.as_str())
    }

    /// Sets the broker's identity in its ring, for neighbours to know.
    pub(crate) fn set_ring(&mut self, origin: Option<Origin>) {
        self.links.set_ring(origin);
    }

    /// Lends jobs the parts they may use for one call.
    pub(crate) fn lend_to_jobs(&mut self) -> jobs::JobsContext<'_> {
        let (draining, memory_free) = (self.drain.is_some(), self.memory_free());
        jobs::JobsContext::new(self.now, &self.settings, draining, memory_free, &mut self.peers, &mut self.durable)
    }

    /// Lends the check of jobs the parts it looks at.
    pub(crate) const fn lend_to_check(&self) -> (&Settings, &Peers, bool) {
        (&self.settings, &self.peers, self.drain.is_some())
    }

    /// Lends the gate of the archive the parts it may use for one call.
    pub(crate) const fn lend_to_archive(&self) -> (Mono, &Settings, &Peers) {
        (self.now, &self.settings, &self.peers)
    }

    /// A native connection took slots for a delivery: its paired connection, a job worker, has fewer.
    #[inline(never)]
    pub(in crate::messages) fn pair_took(&mut self, job_worker: ConnId, slots: u16) {
        self.peers.worker_mut(job_worker).pair_took(slots);
        self.job_workers.push(job_worker);
    }

    /// A native connection has slots back: its paired connection, a job worker, may use them.
    #[inline(never)]
    pub(in crate::messages) fn pair_gave(&mut self, job_worker: ConnId, slots: u16) {
        self.peers.worker_mut(job_worker).pair_gave(slots);
        self.job_workers.push(job_worker);
    }

    /// A worker said something that came too late.
    pub(crate) const fn count_late(&mut self) {
        self.stats.counters.late += 1;
    }

    /// Tells jobs which of their workers have other room than before.
    #[inline]
    pub(crate) fn tell_job_workers(&mut self, jobs: &mut Jobs) {
        if !self.job_workers.is_empty() {
            self.job_workers.drain(..).for_each(|conn| jobs.look_at(conn));
        }
    }

    /// When the checker runs next.
    pub(crate) const fn next_check(&self) -> Mono {
        self.check_at
    }

    /// Messages that end with the broker, because nothing but its memory holds them.
    pub(crate) fn held_in_memory(&self) -> u64 {
        let here = |message: &&Message| {
            matches!(message.state, MessageStage::Waiting | MessageStage::Delayed { .. } | MessageStage::Dead)
        };
        let volatile = |message: &&Message| !message.flags.has(Flags::DURABLE);
        self.messages.iter().map(|(_, message)| message).filter(here).filter(volatile).count() as u64
    }

    #[inline]
    pub(in crate::messages) fn id_of(&self, index: u32) -> MessageId {
        let message = &self.messages[index];
        if message.flags.has(Flags::FORWARDED) {
            return self.links.foreign_id(index).expect("what came over a link is known as such");
        }
        self.messages.id_of(index, &self.settings)
    }

    #[inline]
    pub(in crate::messages) fn delivery_of(&self, index: u32) -> Delivery {
        Delivery { index, stamp: self.messages[index].stamp }
    }
}
