//! The store without a disk, for simulations and tests, with the same guarantees and with faults on request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::batch::{Batch, Op};
use crate::error::{CommitError, ReadError, Retry};
use crate::record::padded;
use crate::store::{Capacity, CommitNo, Epoch, Item, RecordNo, Space, Store, Stored, Usage};

const BATCH_BYTES_MAX: usize = 24 * 1024 * 1024;
/// Bytes counted for a record beside its value.
const OVERHEAD_BYTES: usize = 24;

/// The data that outlives a [`Mem`], as a disk outlives a process. Clones are the same medium.
#[derive(Clone, Debug, Default)]
pub struct MemMedium(Arc<Mutex<Content>>);

/// The fault of one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemFault {
    /// It is done, and nobody hears of it.
    UnknownApplied,
    /// It is not done, and nobody hears of it.
    UnknownLost,
    /// It finds no room. A batch without puts passes, and the fault waits for the next.
    Full,
    /// The store is away.
    Unavailable,
    /// Another owner came.
    Fenced,
}

#[derive(Clone, Debug)]
struct Content {
    numbered: BTreeMap<RecordNo, (Space, Vec<u8>)>,
    keyed: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
    live_bytes: usize,
    commit: CommitNo,
    epoch: Epoch,
    last_record: RecordNo,
    faults: VecDeque<MemFault>,
    bytes_max: usize,
    batch_bytes_max: usize,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            numbered: BTreeMap::new(),
            keyed: BTreeMap::new(),
            live_bytes: 0,
            commit: CommitNo(0),
            epoch: Epoch(0),
            last_record: RecordNo(0),
            faults: VecDeque::new(),
            bytes_max: usize::MAX,
            batch_bytes_max: BATCH_BYTES_MAX,
        }
    }
}

impl MemMedium {
    /// An empty medium.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another medium with the same content. Opening that one fences nobody off.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.content().clone())))
    }

    /// Lets a commit fail; several faults wait for one commit each.
    pub fn fail_next(&self, fault: MemFault) {
        self.content().faults.push_back(fault);
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        self.content().faults.clear();
    }

    /// Sets how many bytes of live records it holds at most.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.content().bytes_max = bytes_max;
    }

    /// Sets how long a batch may be.
    pub fn set_batch_bytes_max(&self, batch_bytes_max: usize) {
        self.content().batch_bytes_max = batch_bytes_max;
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().expect("nobody panics while holding a medium")
    }
}

/// A store in memory.
#[derive(Debug)]
pub struct Mem {
    medium: MemMedium,
    epoch: Epoch,
}

impl Mem {
    /// Opens a medium: its earlier store is fenced off.
    #[must_use]
    pub fn open(medium: &MemMedium) -> Self {
        let mut content = medium.content();
        content.epoch.0 += 1;
        Self { medium: medium.clone(), epoch: content.epoch }
    }
}

impl Content {
    fn apply(&mut self, batch: &Batch) {
        for op in batch.ops() {
            match op {
                Op::Put { space, record, value } => {
                    let old = self.numbered.insert(record, (space, value.to_vec()));
                    self.count(old.map(|(_, old)| old.len()), Some(value.len()));
                }
                Op::Delete { record } => {
                    let old = self.numbered.remove(&record);
                    self.count(old.map(|(_, old)| old.len()), None);
                }
                Op::Set { space, key, value } => {
                    let old = self.keyed.insert((space, key.to_vec()), value.to_vec());
                    self.count(old.map(|old| old.len() + key.len()), Some(value.len() + key.len()));
                }
                Op::Unset { space, key } => {
                    let old = self.keyed.remove(&(space, key.to_vec()));
                    self.count(old.map(|old| old.len() + key.len()), None);
                }
            }
        }
        self.last_record = self.last_record.max(batch.last_record());
    }

    fn count(&mut self, gone: Option<usize>, new: Option<usize>) {
        self.live_bytes -= gone.map_or(0, |len| padded(len + OVERHEAD_BYTES));
        self.live_bytes += new.map_or(0, |len| padded(len + OVERHEAD_BYTES));
    }

    /// The fault of this batch.
    fn fault(&mut self, batch: &Batch) -> Option<MemFault> {
        match self.faults.front() {
            Some(MemFault::Full) if !batch.has_puts() => None,
            _ => self.faults.pop_front(),
        }
    }
}

impl Store for Mem {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn last_commit(&mut self) -> Result<CommitNo, CommitError> {
        Ok(self.medium.content().commit)
    }

    fn last_record(&self) -> RecordNo {
        self.medium.content().last_record
    }

    fn capacity(&self) -> Capacity {
        Capacity { batch_bytes_max: self.medium.content().batch_bytes_max }
    }

    fn commit(&mut self, epoch: Epoch, no: CommitNo, batch: &mut Batch) -> Result<(), CommitError> {
        let mut content = self.medium.content();
        let fault = content.fault(batch);
        if fault == Some(MemFault::Fenced) {
            content.epoch.0 += 1;
        }
        if epoch != content.epoch {
            return Err(CommitError::Fenced { by: content.epoch });
        }
        if no != content.commit.next() {
            return Err(CommitError::OutOfTurn { last: content.commit });
        }
        if batch.is_beyond(content.batch_bytes_max) {
            return Err(CommitError::TooLarge);
        }
        let is_full = batch.has_puts() && content.live_bytes + batch.len() > content.bytes_max;
        match fault {
            Some(MemFault::UnknownLost) => return Err(CommitError::Unknown(no)),
            Some(MemFault::Unavailable) => {
                let why = "simulated absence".to_owned();
                return Err(CommitError::Unavailable { retry: Retry::Later, why });
            }
            Some(MemFault::Full) => return Err(CommitError::Full),
            _ if is_full => return Err(CommitError::Full),
            _ => content.apply(batch),
        }
        content.commit = no;
        if fault == Some(MemFault::UnknownApplied) { Err(CommitError::Unknown(no)) } else { Ok(()) }
    }

    fn scan(&mut self, visit: &mut dyn FnMut(Item<'_>)) -> Result<(), ReadError> {
        let content = self.medium.content();
        for ((space, key), value) in &content.keyed {
            visit(Item::Keyed { space: *space, key, value });
        }
        for (record, (space, value)) in &content.numbered {
            visit(Item::Numbered { space: *space, record: *record, value });
        }
        Ok(())
    }

    fn read(
        &mut self,
        records: &[RecordNo],
        visit: &mut dyn FnMut(RecordNo, Option<Stored<'_>>),
    ) -> Result<(), ReadError> {
        let content = self.medium.content();
        for record in records {
            let found = content.numbered.get(record);
            visit(*record, found.map(|(space, value)| (*space, value.as_slice())));
        }
        Ok(())
    }

    fn read_key(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.medium.content().keyed.get(&(space, key.to_vec())).cloned())
    }

    fn compact(&mut self) -> Result<bool, CommitError> {
        Ok(false)
    }

    fn usage(&self) -> Usage {
        let content = self.medium.content();
        Usage {
            numbered: content.numbered.len() as u64,
            keyed: content.keyed.len() as u64,
            live_bytes: content.live_bytes as u64,
            disk_bytes: 0,
            is_tight: content.live_bytes >= content.bytes_max,
        }
    }
}
