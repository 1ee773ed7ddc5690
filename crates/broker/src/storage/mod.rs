//! Durable storage for the engine: it stores changes and reports when they are on disk.
//!
//! The engine speaks of messages, the store knows bytes; `record` and `ledger` are between them. An engine with a
//! store starts with [`begin`] and [`recover`]; any [`Store`](turno_store::Store) will do.

mod jobs;
mod ledger;
mod record;

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Notify;
use turno_engine::{Input, NewRecord, Persist};
use turno_proto::model::Code;
use turno_store::disk::FsDisk;
use turno_store::{Batch, CommitError, Committer, Done, Embedded, Loaded, RecordNo, Settings, Ticket};

use crate::error::StoreError;

pub use self::ledger::{Dead, begin, dead_letters, recover};

/// Durable storage of the engine's changes.
pub trait Storage {
    /// One operation of a group. Operations of a group come one after the other, and groups in order.
    fn keep(&mut self, group: u64, op: &Persist);

    /// A new message, in the same way.
    fn put(&mut self, put: &NewRecord<'_>);

    /// The message with that serial is wanted back; answered once, in the order of asking.
    fn load(&mut self, serial: u64);

    /// Whether something is to be stored or read that is not on its way yet.
    fn has_unsent(&self) -> bool;

    /// Sends it on its way.
    fn post(&mut self);
}

/// Nothing outlives a broker that lives in memory alone; its engine never asks for it.
impl<K: Storage> Storage for Option<K> {
    fn keep(&mut self, group: u64, op: &Persist) {
        if let Some(storage) = self {
            storage.keep(group, op);
        }
    }

    fn put(&mut self, put: &NewRecord<'_>) {
        if let Some(storage) = self {
            storage.put(put);
        }
    }

    fn load(&mut self, serial: u64) {
        if let Some(storage) = self {
            storage.load(serial);
        }
    }

    fn has_unsent(&self) -> bool {
        self.as_ref().is_some_and(Storage::has_unsent)
    }

    fn post(&mut self) {
        if let Some(storage) = self {
            storage.post();
        }
    }
}

/// Storage on disk, through the committer.
#[derive(Debug)]
pub struct DiskStorage {
    committer: Committer,
    /// The group that is being written.
    group: Option<u64>,
    /// Something is to be read.
    loads: bool,
    done: Vec<Done>,
    /// The committer has something to say.
    pub(super) news: Arc<Notify>,
}

/// Opens the store in that directory, which this process owns.
pub(super) fn open(directory: &Path, salt: u64) -> Result<Embedded<FsDisk>, StoreError> {
    let settings = Settings { salt, ..Settings::default() };
    let (store, recovered) = Embedded::open(FsDisk::new(directory.to_owned()), settings)?;
    let (file, offset) = &recovered.end;
    tracing::debug!(new = recovered.is_new, file, offset, "the store is open");
    Ok(store)
}

impl DiskStorage {
    /// Starts the committer, which owns the store from now on.
    pub(super) fn start(store: Embedded<FsDisk>) -> std::io::Result<Self> {
        let news = Arc::new(Notify::new());
        let told = Arc::clone(&news);
        let committer = Committer::start(store, move || told.notify_one())?;
        Ok(Self { news, ..Self::by_hand(committer) })
    }

    /// A storage that nobody wakes: the caller steps the committer and then looks for its answers.
    pub fn by_hand(committer: Committer) -> Self {
        Self { committer, group: None, loads: false, done: Vec::new(), news: Arc::default() }
    }

    fn batch_of(&mut self, group: u64) -> &mut Batch {
        if self.group.replace(group).is_some_and(|open| open != group) {
            self.committer.end_group();
        }
        self.committer.batch()
    }

    /// The inputs for the engine, in order; or why the broker must stop.
    pub fn take(&mut self) -> Result<Vec<Input>, StoreError> {
        self.committer.take_done(&mut self.done);
        self.done.drain(..).filter_map(|done| input_of(done).transpose()).collect()
    }

    /// Writes down what was kept last, and ends. A broker that goes on after an error here would be wrong; one that
    /// ends anyway only has something to tell.
    pub(super) fn close(self) -> Result<(), StoreError> {
        let Self { committer, mut done, .. } = self;
        done.extend(committer.close());
        done.into_iter().try_for_each(|done| input_of(done).map(drop))
    }
}

/// A ticket of the committer is a group of the engine: both count from 1, and each group is ended once.
fn input_of(done: Done) -> Result<Option<Input>, StoreError> {
    Ok(Some(match done {
        Done::Durable(Ticket(group)) => Input::Persisted { group },
        Done::Refused { ticket: Ticket(group), why } => {
            let code = if why == CommitError::TooLarge { Code::FrameTooLarge } else { Code::OverDisk };
            Input::Refused { group, code }
        }
        Done::Loaded(Loaded { record: RecordNo(serial), found }) => {
            let record = found?.map(|(_, value)| ledger::read(serial, &value)).transpose()?;
            Input::Loaded { serial, record }
        }
        Done::Fatal(why) => return Err(why.into()),
        _ => return Ok(None),
    }))
}

impl Storage for DiskStorage {
    fn keep(&mut self, group: u64, op: &Persist) {
        ledger::write(op, self.batch_of(group));
    }

    fn put(&mut self, put: &NewRecord<'_>) {
        ledger::put(put, self.batch_of(put.group));
    }

    fn load(&mut self, serial: u64) {
        self.committer.load(RecordNo(serial));
        self.loads = true;
    }

    fn has_unsent(&self) -> bool {
        self.group.is_some() || self.loads
    }

    fn post(&mut self) {
        if self.group.take().is_some() {
            self.committer.end_group();
        } else if !self.loads {
            return;
        }
        self.loads = false;
        self.committer.submit();
    }
}
