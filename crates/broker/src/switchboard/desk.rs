//! Where the inputs of a switchboard go: to the engine beside it, or into a batch on its way to the engine's thread.

use rustix::fs::statvfs;
use tracing::{error, warn};
use turno_engine::ring::{PublicationRef, RingInput, RingWord};
use turno_engine::{Deliver, Effect, Engine, EventRef, Input, Listener, Put, Report, Sink};
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::view::DiskView;
use turno_proto::model::{ConnId, Mono};

use crate::archive::Archivist;
use crate::diary::Diary;
use crate::keeper::{Keep, Keeper};
use crate::memory::Meter;

/// Takes inputs.
pub trait Desk {
    /// One input. What the engine makes of it at once goes to the sink.
    fn put(&mut self, now: Mono, input: Input, sink: &mut impl Sink);

    /// The engine, if it is here, hears how much connections hold, and tells what it holds itself.
    fn share_memory(&mut self, _meter: &Meter) {}

    /// How many filters were looked at for events since the last call, if the engine is here.
    fn take_matches(&mut self) -> u32 {
        0
    }

    /// A publication of the ring, where it lies. Whoever cannot deal with it at once owns it.
    fn pass(&mut self, now: Mono, conn: ConnId, publication: PublicationRef<'_>, sink: &mut impl Sink) {
        let word = RingWord::Publish(publication.to_publication());
        self.put(now, Input::Ring { input: RingInput::Word { conn, word } }, sink);
    }
}

/// The engine, the keeper of what must outlive it, and the archive.
#[derive(Debug)]
pub struct EngineDesk<K = Option<Keeper>> {
    pub(crate) engine: Engine,
    pub(crate) keeper: K,
    pub(crate) archivist: Archivist,
    /// What the log is to tell.
    diary: Diary,
}

impl<K> EngineDesk<K> {
    /// An engine with what is beside it.
    pub fn new(engine: Engine, keeper: K, archivist: Archivist) -> Self {
        Self { engine, keeper, archivist, diary: Diary::default() }
    }

    /// Logs what has changed since the last look.
    pub(crate) fn keep_diary(&mut self) {
        self.diary.look(&self.engine);
    }
}

impl<K: Keep> Desk for EngineDesk<K> {
    fn put(&mut self, now: Mono, input: Input, sink: &mut impl Sink) {
        let Self { engine, keeper, archivist, diary } = self;
        diary.disk(&input);
        let worker = Diary::worker_before(engine, &input);
        engine.handle(now, input, &mut Parted { sink, keeper, archivist, diary, now });
        while let Some(answered) = archivist.answered() {
            engine.handle(now, answered, &mut Parted { sink, keeper, archivist, diary, now });
        }
        if let Some((conn, before)) = worker {
            diary.worker_after(engine, conn, before);
        }
    }

    fn share_memory(&mut self, meter: &Meter) {
        meter.set_engine(self.engine.memory());
        self.engine.set_buffers(meter.buffers());
    }

    fn take_matches(&mut self) -> u32 {
        self.engine.take_matches()
    }

    fn pass(&mut self, now: Mono, conn: ConnId, publication: PublicationRef<'_>, sink: &mut impl Sink) {
        let Self { engine, keeper, archivist, diary } = self;
        engine.pass(now, conn, publication, &mut Parted { sink, keeper, archivist, diary, now });
    }
}

/// What is for the disk goes to the keeper or the archive, everything else to peers.
struct Parted<'a, S, K> {
    sink: &'a mut S,
    keeper: &'a mut K,
    archivist: &'a mut Archivist,
    diary: &'a mut Diary,
    now: Mono,
}

impl<S: Sink, K: Keep> Sink for Parted<'_, S, K> {
    fn deliver(&mut self, deliver: Deliver<'_>) {
        self.sink.deliver(deliver);
    }

    fn put(&mut self, put: Put<'_>) {
        self.keeper.put(&put);
    }

    fn event(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        self.sink.event(event, listeners);
    }

    fn publication(&mut self, conn: ConnId, publication: PublicationRef<'_>) {
        self.sink.publication(conn, publication);
    }

    fn effect(&mut self, effect: Effect) {
        if let Effect::Undelivered { code, .. } | Effect::Error { code, .. } = &effect {
            self.diary.refused(*code);
        }
        match effect {
            Effect::Persist { group, op } => self.keeper.keep(group, &op),
            Effect::Load { serial } => self.keeper.load(serial),
            Effect::Archive { ticket, call } => self.archivist.ask(self.now, ticket, *call),
            Effect::Answer { conn, seq, mut answer } => {
                add_disk(&mut answer);
                self.sink.effect(Effect::Answer { conn, seq, answer });
            }
            Effect::Missing { serial } => error!(serial, "the store has lost a message that it had confirmed"),
            Effect::Report(report) => log(&report),
            effect => self.sink.effect(effect),
        }
    }
}

/// What an operator should know.
fn log(report: &Report) {
    match report {
        Report::WorkersLost { queue, in_a_row, wait_ms } => warn!(
            %queue,
            in_a_row,
            wait_ms,
            "workers of this queue were lost in a row before they settled anything; the next one waits for its first delivery"
        ),
        Report::ManyDead { queue, dead } => warn!(
            %queue,
            dead,
            "this queue has more dead letters than limits.dead; none is deleted, and they take memory: turno queue dead ls"
        ),
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
