//! A disk in memory that can lose power and fail. It forgets what was not synced when the power goes, tears writes at 512
//! bytes, and fails when it is told to. The same calls and the same seed always leave the same bytes.
//!
//! It remembers every change as it came, so that a test can look at the disk as a power cut after any of them would have
//! left it: [`SimDisk::journal`], [`Journal::after_crash`].

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::crash::{Crash, DirectoryChange, Journal, write};
use super::{Disk, DiskFile, Rng};

/// A simulated directory. Clones are the same directory.
#[derive(Clone, Debug, Default)]
pub struct SimDisk(Arc<Mutex<SimDiskState>>);

/// A file of a simulated directory.
#[derive(Debug)]
pub struct SimFile {
    disk: Arc<Mutex<SimDiskState>>,
    inode: usize,
}

/// The fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with an I/O error. A failed sync forgets: what it should have made durable never will be, even if
    /// a later sync succeeds, unless it is written again.
    Eio,
    /// The call fails because the disk is full.
    Enospc,
    /// A write takes only a part of the bytes.
    Short,
}

#[derive(Debug, Default)]
struct SimDiskState {
    names: BTreeMap<String, usize>,
    files: Vec<Vec<u8>>,
    journal: Vec<DirectoryChange>,
    faults: VecDeque<(u64, Fault)>,
    syncs_fail: bool,
    calls: u64,
    bytes_max: Option<u64>,
}

fn lock(state: &Mutex<SimDiskState>) -> MutexGuard<'_, SimDiskState> {
    state.lock().expect("nobody panics while holding a simulated disk")
}

impl SimDisk {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory with these files, all durable.
    #[must_use]
    pub fn with_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut state = SimDiskState::default();
        for (inode, (name, bytes)) in files.into_iter().enumerate() {
            state.journal.push(DirectoryChange::Create { name: name.clone(), inode });
            state.journal.push(DirectoryChange::Write { inode, at: 0, bytes: bytes.clone() });
            state.journal.push(DirectoryChange::Sync { inode });
            state.names.insert(name, inode);
            state.files.push(bytes);
        }
        state.journal.push(DirectoryChange::SyncDirectory);
        Self(Arc::new(Mutex::new(state)))
    }

    /// Every file and its bytes, as a reader sees them now.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = lock(&self.0);
        let bytes = |inode: usize| state.files.get(inode).cloned().unwrap_or_default();
        state.names.iter().map(|(name, inode)| (name.clone(), bytes(*inode))).collect()
    }

    /// The changes so far.
    #[must_use]
    pub fn journal(&self) -> Journal {
        Journal::new(lock(&self.0).journal.clone())
    }

    /// How many changes happened so far.
    #[must_use]
    pub fn changes(&self) -> usize {
        lock(&self.0).journal.len()
    }

    /// How many calls that write or sync were made so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        lock(&self.0).calls
    }

    /// Lets the call number `call` fail (see [`calls`](Self::calls)). Faults are told in rising order.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        lock(&self.0).faults.push_back((call, fault));
    }

    /// Nothing goes wrong any more: no fault is left, and there is room.
    pub fn heal(&self) {
        let mut state = lock(&self.0);
        state.faults.clear();
        state.syncs_fail = false;
        state.bytes_max = None;
    }

    /// Bytes of all files together.
    #[must_use]
    pub fn used(&self) -> u64 {
        lock(&self.0).used()
    }

    /// Lets every sync fail from now on, or no longer.
    pub fn fail_syncs(&self, fail: bool) {
        lock(&self.0).syncs_fail = fail;
    }

    /// Sets how many bytes all files may have together.
    pub fn set_bytes_max(&self, bytes_max: Option<u64>) {
        lock(&self.0).bytes_max = bytes_max;
    }

    /// The same directory after the power went now.
    #[must_use]
    pub fn after_crash(&self, crash: Crash, rng: &mut Rng) -> Self {
        let journal = self.journal();
        journal.after_crash(journal.len(), crash, rng)
    }
}

impl SimDiskState {
    /// Counts a call and says what goes wrong with it.
    fn fault(&mut self) -> Option<Fault> {
        let call = self.calls;
        self.calls += 1;
        let (at, fault) = *self.faults.front()?;
        (at <= call).then(|| {
            self.faults.pop_front();
            fault
        })
    }

    fn file(&mut self, inode: usize) -> &mut Vec<u8> {
        self.files.get_mut(inode).expect("a file stays as long as somebody has it open")
    }

    fn used(&self) -> u64 {
        self.names.values().filter_map(|inode| self.files.get(*inode)).map(|file| file.len() as u64).sum()
    }
}

fn failed(fault: Fault) -> io::Error {
    match fault {
        Fault::Enospc => io::ErrorKind::StorageFull.into(),
        Fault::Eio | Fault::Short => io::Error::other("simulated I/O error"),
    }
}

impl Disk for SimDisk {
    type File = SimFile;

    fn names(&mut self) -> io::Result<Vec<String>> {
        Ok(lock(&self.0).names.keys().cloned().collect())
    }

    fn open(&mut self, name: &str) -> io::Result<SimFile> {
        let inode = *lock(&self.0).names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimFile { disk: Arc::clone(&self.0), inode })
    }

    fn create(&mut self, name: &str) -> io::Result<SimFile> {
        let mut state = lock(&self.0);
        if let Some(fault) = state.fault() {
            return Err(failed(fault));
        }
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.files.len();
        state.files.push(Vec::new());
        state.names.insert(name.to_owned(), inode);
        state.journal.push(DirectoryChange::Create { name: name.to_owned(), inode });
        Ok(SimFile { disk: Arc::clone(&self.0), inode })
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut state = lock(&self.0);
        if let Some(fault) = state.fault() {
            return Err(failed(fault));
        }
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.journal.push(DirectoryChange::Remove { name: name.to_owned() });
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut state = lock(&self.0);
        if let Some(fault) = state.fault() {
            return Err(failed(fault));
        }
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        // A power cut may leave both names, either, or none.
        state.journal.push(DirectoryChange::Create { name: to.to_owned(), inode });
        state.journal.push(DirectoryChange::Remove { name: from.to_owned() });
        Ok(())
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        let mut state = lock(&self.0);
        match state.fault() {
            Some(fault) => Err(failed(fault)),
            None if state.syncs_fail => Err(failed(Fault::Eio)),
            None => {
                state.journal.push(DirectoryChange::SyncDirectory);
                Ok(())
            }
        }
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.disk).file(self.inode).len() as u64)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut state = lock(&self.disk);
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let there = state.file(self.inode).get(at..).unwrap_or_default();
        let len = there.len().min(into.len());
        if let (Some(into), Some(from)) = (into.get_mut(..len), there.get(..len)) {
            into.copy_from_slice(from);
        }
        Ok(len)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.disk);
        let at = usize::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut len = bytes.len();
        match state.fault() {
            Some(Fault::Short) => len = len.div_ceil(2),
            Some(fault) => return Err(failed(fault)),
            None => {}
        }
        let end = at + len;
        let grown = end.saturating_sub(state.file(self.inode).len()) as u64;
        if let Some(bytes_max) = state.bytes_max
            && grown > 0
            && state.used() + grown > bytes_max
        {
            return Err(failed(Fault::Enospc));
        }
        let bytes = bytes.get(..len).unwrap_or_default().to_vec();
        write(state.file(self.inode), at, &bytes);
        state.journal.push(DirectoryChange::Write { inode: self.inode, at, bytes });
        Ok(len)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = lock(&self.disk);
        let fault = state.fault().or_else(|| state.syncs_fail.then_some(Fault::Eio));
        let inode = self.inode;
        state.journal.push(if fault.is_some() {
            DirectoryChange::LostSync { inode }
        } else {
            DirectoryChange::Sync { inode }
        });
        fault.map_or(Ok(()), |fault| Err(failed(fault)))
    }
}
