//! The store of a broker: a disk of its own, or a store elsewhere, with the faults of either.
//!
//! Committer, store and recovery are the real ones. A disk is what they wrote to it; a power cut leaves of that what was
//! synced, and of the rest what chance wants.

use turno_broker::StoreError;
use turno_broker::storage::{self, DiskStorage};
use turno_engine::{Engine, Settings as EngineSettings};
use turno_proto::model::Mono;
use turno_proto::native::Raw;
use turno_store::disk::{Crash, Fault, Rng as DiskRng, SimDisk};
use turno_store::{Committer, Embedded, Item, Mem, MemFault, MemMedium, Settings, Space, Stepper, Store, Turn};

use crate::archive::ArchiveDisk;
use crate::body;
use crate::letters::StoreContents;
use crate::rng::Rng;

/// Where the store's own notes, marks and messages are, as `docs/reference/storage.md` says. Read here without the broker's help.
const NOTES: Space = Space(1);
const MARKS: Space = Space(2);
const MESSAGES: Space = Space(3);
/// The note of what the ids of its messages share.
const RUN: &[u8] = b"run";
/// The flags of a record whose payload begins with headers, and of one that has a deadline.
const HEADERS: u8 = 1;
const DEADLINE: u8 = 2;
/// The same of one that its sender delayed.
const DUE: u8 = 4;
/// A mark is two bytes of attempts; that of a dead letter goes on with this one.
const DEAD: u8 = 1;

#[derive(Debug)]
enum Medium {
    Disk(SimDisk),
    Elsewhere(MemMedium),
}

/// Does the committer's work, turn by turn.
#[derive(Debug)]
enum DiskWorker {
    Disk(Box<Stepper<Embedded<SimDisk>>>),
    Elsewhere(Stepper<Mem>),
}

/// One broker's store.
#[derive(Debug)]
pub(crate) struct BrokerDisks {
    medium: Medium,
    settings: Settings,
    worker: Option<DiskWorker>,
    /// A turn of the worker is under way: nobody has heard what came of it.
    pub(crate) busy: bool,
    /// Changes of the disk when that turn began.
    before: usize,
    /// Something was told to go wrong.
    pub(crate) is_faulty: bool,
    /// The other disk, of the archive.
    pub(crate) archive: ArchiveDisk,
}

impl BrokerDisks {
    /// Most brokers have a disk, some a store elsewhere, some nothing.
    pub(crate) fn some(rng: &mut Rng) -> Option<Self> {
        let medium = match rng.range(0, 8) {
            0..=1 => return None,
            2..=3 => Medium::Elsewhere(MemMedium::new()),
            _ => Medium::Disk(SimDisk::new()),
        };
        // Small ones, so that segments end and are cleaned; into the smallest not every message fits.
        let segment_bytes = [4 * 1024, 16 * 1024, 16 * 1024, 64 * 1024][rng.index(4)];
        let settings = Settings { segment_bytes, prewrite_bytes: segment_bytes / 4, salt: rng.next() };
        let archive = ArchiveDisk::new(settings.salt);
        Some(Self { medium, settings, worker: None, busy: false, before: 0, is_faulty: false, archive })
    }

    /// A batch may have as much as many tasks that start at once take.
    pub(crate) const fn is_roomy(&self) -> bool {
        self.settings.segment_bytes >= 16 * 1024
    }

    /// Opens the store and gives the broker what it had.
    pub(crate) fn open(
        &mut self,
        now: Mono,
        settings: EngineSettings,
    ) -> Result<(Engine, DiskStorage, StoreContents), StoreError> {
        self.before = self.changes();
        let (engine, committer, truth);
        match &self.medium {
            Medium::Disk(disk) => {
                let (store, _) = Embedded::open(disk.clone(), self.settings)?;
                let stepper;
                (engine, committer, stepper, truth) = begin(store, now, settings)?;
                self.worker = Some(DiskWorker::Disk(Box::new(stepper)));
            }
            Medium::Elsewhere(medium) => {
                let stepper;
                (engine, committer, stepper, truth) = begin(Mem::open(medium), now, settings)?;
                self.worker = Some(DiskWorker::Elsewhere(stepper));
            }
        }
        Ok((engine, DiskStorage::by_hand(committer), truth))
    }

    fn changes(&self) -> usize {
        match &self.medium {
            Medium::Disk(disk) => disk.changes(),
            Medium::Elsewhere(_) => 0,
        }
    }

    /// The committer commits what gathered, or tidies up.
    pub(crate) fn turn(&mut self) -> Turn {
        self.before = self.changes();
        let turn = match &mut self.worker {
            Some(DiskWorker::Disk(stepper)) => stepper.turn(),
            Some(DiskWorker::Elsewhere(stepper)) => stepper.turn(),
            None => Turn::Idle,
        };
        self.busy = turn != Turn::Idle;
        turn
    }

    /// The broker dies, alone or with its machine. In the second case the end came anywhere in what was under way.
    pub(crate) fn crash(&mut self, rng: &mut Rng) {
        self.worker = None;
        let was_busy = std::mem::take(&mut self.busy);
        if let Medium::Disk(disk) = &mut self.medium
            && rng.once_in(2)
        {
            let journal = disk.journal();
            let undecided = if was_busy { journal.len() - self.before } else { 0 };
            let changes = journal.len() - rng.index(undecided + 1);
            let crash = [Crash::Dropped, Crash::Kept, Crash::Subset, Crash::Torn][rng.index(4)];
            *disk = journal.after_crash(changes, crash, &mut DiskRng::new(rng.next()));
            self.is_faulty = false;
        }
    }

    /// As [`Self::crash`], in the middle of a start.
    pub(crate) fn crash_while_opening(&mut self, rng: &mut Rng) {
        self.busy = true;
        self.crash(rng);
    }

    /// The broker ended in order: its committer has done everything.
    pub(crate) fn close(&mut self) {
        self.worker = None;
        self.busy = false;
    }

    /// Nothing is wrong with it any more.
    pub(crate) fn heal(&mut self) {
        match &self.medium {
            Medium::Disk(disk) => disk.heal(),
            Medium::Elsewhere(medium) => medium.heal(),
        }
        self.archive.heal();
        self.is_faulty = false;
    }

    /// One of the next calls goes wrong; returns a number for the trace.
    pub(crate) fn fail_soon(&mut self, rng: &mut Rng) -> u64 {
        self.is_faulty = true;
        let kind = rng.range(0, 8);
        match &self.medium {
            Medium::Disk(disk) => {
                let call = disk.calls() + rng.range(0, 12);
                match kind {
                    0..=3 => disk.fail_at(call, Fault::Eio),
                    4 => disk.fail_at(call, Fault::Short),
                    _ => disk.set_bytes_max(Some(disk.used() + rng.range(0, 3_000))),
                }
            }
            Medium::Elsewhere(medium) => medium.fail_next(match kind {
                0..=1 => MemFault::UnknownApplied,
                2..=3 => MemFault::UnknownLost,
                4..=5 => MemFault::Full,
                6 => MemFault::Unavailable,
                _ => MemFault::Fenced,
            }),
        }
        kind
    }

    /// The contents after a power cut now, with nothing under way.
    pub(crate) fn truth(&self) -> Result<StoreContents, StoreError> {
        match &self.medium {
            Medium::Disk(disk) => {
                let left = disk.after_crash(Crash::Dropped, &mut DiskRng::new(0));
                truth_of(&mut Embedded::open(left, self.settings)?.0)
            }
            Medium::Elsewhere(medium) => truth_of(&mut Mem::open(&medium.copy())),
        }
    }
}

/// From a store to an engine that goes on where the last one ended.
fn begin<S: Store>(
    mut store: S,
    now: Mono,
    mut settings: EngineSettings,
) -> Result<(Engine, Committer, Stepper<S>, StoreContents), StoreError> {
    storage::begin(&mut store, &mut settings)?;
    let mut engine = Engine::new(settings, now);
    storage::recover(&mut store, &mut engine)?;
    let truth = truth_of(&mut store)?;
    let (committer, stepper) = Committer::by_hand(store);
    Ok((engine, committer, stepper, truth))
}

/// The number of the body at the end of a message's record.
fn number_in(record: &[u8]) -> Option<u64> {
    let (&[flags, _, _, _, _, name_bytes], _) = record.split_first_chunk()?;
    let times = 8 * (1 + usize::from(flags & DEADLINE != 0) + usize::from(flags & DUE != 0));
    let bytes = record.get(6 + times + usize::from(name_bytes)..)?;
    body::number(Raw { headers: flags & HEADERS != 0, bytes })
}

fn truth_of(store: &mut impl Store) -> Result<StoreContents, StoreError> {
    let mut truth = StoreContents::default();
    store.scan(&mut |item| match item {
        Item::Keyed { space: NOTES, key: RUN, value } => {
            truth.run = u64::from_le_bytes(value.try_into().expect("a note is a number"));
        }
        Item::Keyed { space: MARKS, key, value } => {
            let serial = u64::from_be_bytes(key.try_into().expect("a mark's key is a serial"));
            truth.marked.insert(serial);
            if value.get(2) == Some(&DEAD) {
                truth.dead.insert(serial);
            }
        }
        Item::Numbered { space: MESSAGES, record, value, .. } => {
            truth.messages.insert(record.0);
            truth.numbers.extend(number_in(value).map(|number| (record.0, number)));
        }
        _ => {}
    })?;
    Ok(truth)
}
