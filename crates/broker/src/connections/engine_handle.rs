//! The engine handle: it passes inputs to the local engine or to a batch for the engine's thread.

use rustix::fs::statvfs;
use tracing::{error, warn};
use turno_engine::ring::{PublicationRef, RingHostEffect, RingInput, RingMessage};
use turno_engine::{
    ArchiveEffect, BorrowedPayload, CallerMessage, Deliver, DiskEffect, Drained, Engine, EventRef, HostEffect, Input,
    Listener, NativeEffect, NewRecord, PeerEffect, PeerSink, Report, Sink,
};
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::view::DiskView;
use turno_proto::model::{ConnId, Mono};

use super::ring::{RingReport, log_news};
use crate::archive::ArchiveHandle;
use crate::memory::MemoryMeter;
use crate::operator_log::OperatorLog;
use crate::storage::{DiskStorage, Storage};

/// Takes inputs.
pub trait EngineHandle {
    /// One input. What the engine says to peers at once goes to them.
    fn put(&mut self, now: Mono, input: Input, peers: &mut impl PeerSink);

    /// The engine, if it is here, hears how much connections hold, and tells what it holds itself.
    fn share_memory(&mut self, _meter: &MemoryMeter) {}

    /// How many filters were looked at for events since the last call, if the engine is here.
    fn take_matches(&mut self) -> u32 {
        0
    }

    /// A publication of the ring, where it lies. A handle that cannot deal with it at once copies it.
    fn pass(&mut self, now: Mono, conn: ConnId, publication: PublicationRef<'_>, peers: &mut impl PeerSink) {
        let message = RingMessage::Publish(publication.to_publication());
        self.put(now, Input::Ring { input: RingInput::Message { conn, message } }, peers);
    }
}

/// The engine, its durable storage, and the archive.
#[derive(Debug)]
pub struct LocalEngine<K = Option<DiskStorage>> {
    pub(crate) engine: Engine,
    pub(crate) storage: K,
    pub(crate) archive: ArchiveHandle,
    /// Entries for the log.
    operator_log: OperatorLog,
    told: HostNews,
}

/// News that the engine has for the host of the broker.
#[derive(Debug, Default)]
struct HostNews {
    drained: Option<Drained>,
    ring: Vec<RingReport>,
}

impl HostNews {
    fn note(&mut self, effect: HostEffect) {
        match effect {
            HostEffect::Report(report) => log(&report),
            HostEffect::Drained(drained) => self.drained = Some(drained),
            HostEffect::Ring(effect) => {
                if let RingHostEffect::Tell(news) = &effect {
                    log_news(news);
                }
                self.ring.extend(RingReport::of(&effect));
            }
        }
    }
}

impl<K> LocalEngine<K> {
    /// An engine with what is beside it.
    pub fn new(engine: Engine, storage: K, archive: ArchiveHandle) -> Self {
        Self { engine, storage, archive, operator_log: OperatorLog::default(), told: HostNews::default() }
    }

    /// Logs what has changed since the last look.
    pub(crate) fn keep_diary(&mut self) {
        self.operator_log.look(&self.engine);
    }

    /// How the drain ended, once it is over.
    pub(crate) const fn drained(&self) -> Option<Drained> {
        self.told.drained
    }

    /// Whether the node of the ring has something to say to the host of the broker.
    pub(crate) const fn has_ring_reports(&self) -> bool {
        !self.told.ring.is_empty()
    }

    /// Its news since the last call.
    pub(crate) fn take_ring_reports(&mut self) -> Vec<RingReport> {
        std::mem::take(&mut self.told.ring)
    }
}

impl<K: Storage> EngineHandle for LocalEngine<K> {
    fn put(&mut self, now: Mono, input: Input, peers: &mut impl PeerSink) {
        let Self { engine, storage, archive, operator_log, told } = self;
        operator_log.disk(&input);
        let worker = OperatorLog::worker_before(engine, &input);
        engine.handle(now, input, &mut Addressees { peers, storage, archive, operator_log, told, now });
        while let Some(answered) = archive.answered() {
            engine.handle(now, answered, &mut Addressees { peers, storage, archive, operator_log, told, now });
        }
        if let Some((conn, before)) = worker {
            operator_log.worker_after(engine, conn, before);
        }
    }

    fn share_memory(&mut self, meter: &MemoryMeter) {
        meter.set_engine(self.engine.memory());
        self.engine.set_buffers(meter.buffers());
    }

    fn take_matches(&mut self) -> u32 {
        self.engine.take_matches()
    }

    fn pass(&mut self, now: Mono, conn: ConnId, publication: PublicationRef<'_>, peers: &mut impl PeerSink) {
        let Self { engine, storage, archive, operator_log, told } = self;
        engine.pass(now, conn, publication, &mut Addressees { peers, storage, archive, operator_log, told, now });
    }
}

/// Each effect goes to its addressee.
struct Addressees<'a, P, K> {
    peers: &'a mut P,
    storage: &'a mut K,
    archive: &'a mut ArchiveHandle,
    operator_log: &'a mut OperatorLog,
    told: &'a mut HostNews,
    now: Mono,
}

impl<P: PeerSink, K> PeerSink for Addressees<'_, P, K> {
    fn deliver(&mut self, deliver: Deliver<BorrowedPayload<'_>>) {
        self.peers.deliver(deliver);
    }

    fn event(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        self.peers.event(event, listeners);
    }

    fn publication(&mut self, conn: ConnId, publication: PublicationRef<'_>) {
        self.peers.publication(conn, publication);
    }

    fn peer(&mut self, mut effect: PeerEffect) {
        if let PeerEffect::Caller { message: CallerMessage::Undelivered { code, .. }, .. }
        | PeerEffect::Answer { result: Err(code), .. } = &effect
        {
            self.operator_log.refused(*code);
        }
        if let PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. } = &mut effect {
            add_disk(answer);
        }
        self.peers.peer(effect);
    }
}

impl<P: PeerSink, K: Storage> Sink for Addressees<'_, P, K> {
    fn put(&mut self, put: NewRecord<'_>) {
        self.storage.put(&put);
    }

    fn disk(&mut self, effect: DiskEffect) {
        match effect {
            DiskEffect::Persist { group, op } => self.storage.keep(group, &op),
            DiskEffect::Load { serial } => self.storage.load(serial),
        }
    }

    fn archive(&mut self, ArchiveEffect { ticket, call }: ArchiveEffect) {
        self.archive.ask(self.now, ticket, *call);
    }

    fn host(&mut self, effect: HostEffect) {
        self.told.note(effect);
    }
}

/// Logs a report for operators.
fn log(report: &Report) {
    match report {
        Report::WorkersLost { queue, in_a_row, wait_ms } => warn!(
            %queue,
            in_a_row,
            wait_ms,
            "several workers of this queue were lost in a row without settling anything; delaying the next worker's first delivery"
        ),
        Report::ManyDead { queue, dead } => warn!(
            %queue,
            dead,
            "this queue has more dead letters than limits.dead; they are kept and use memory: turno queue dead ls"
        ),
        Report::Missing { serial } => error!(serial, "the store lost a confirmed message"),
    }
}

/// The engine knows no disk: how much room there is stands in the answer that tells of the broker.
fn add_disk(answer: &mut AdminAnswer) {
    if let AdminAnswer::Status { broker } = answer
        && let Some(disk) = broker.data.as_deref().and_then(|data| statvfs(data).ok())
    {
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        broker.disk = Some(DiskView { free: bytes(disk.f_bavail), total: bytes(disk.f_blocks) });
    }
}

#[cfg(test)]
mod tests {
    use turno_engine::Settings;
    use turno_engine::ring::RingNews;
    use turno_proto::model::Code;
    use turno_proto::model::ring::RingState;

    use super::*;

    /// Reports for the host of the broker are kept for it, in order.
    #[test]
    fn reports_are_kept_until_they_are_taken() {
        let engine = Engine::new(Settings::default(), Mono::ZERO);
        let mut engine_handle: LocalEngine = LocalEngine::new(engine, None, ArchiveHandle::in_memory());
        let state = RingNews::State { from: RingState::Joining, to: RingState::Member, why: "caught up" };
        let effects = [
            RingHostEffect::Tell(state),
            RingHostEffect::Left,
            RingHostEffect::Failed(Code::Fenced),
            RingHostEffect::Stop,
        ];
        assert!(!engine_handle.has_ring_reports());
        for effect in effects {
            engine_handle.told.note(HostEffect::Ring(effect));
        }
        assert!(engine_handle.has_ring_reports());
        let expected = [RingReport::Joined, RingReport::Left, RingReport::Failed(Code::Fenced), RingReport::Stop];
        assert_eq!(engine_handle.take_ring_reports(), expected);
        assert!(!engine_handle.has_ring_reports());
    }
}
