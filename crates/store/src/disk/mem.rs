//! A disk in memory, for a broker without a data directory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile};

/// A directory in memory.
#[derive(Debug, Default)]
pub struct MemDisk(BTreeMap<String, MemFile>);

/// A file in memory. Clones are the same file.
#[derive(Clone, Debug, Default)]
pub struct MemFile(Arc<Mutex<Vec<u8>>>);

impl Disk for MemDisk {
    type File = MemFile;

    fn names(&mut self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn open(&mut self, name: &str) -> io::Result<MemFile> {
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&mut self, name: &str) -> io::Result<MemFile> {
        if self.0.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(self.0.entry(name.to_owned()).or_default().clone())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.0.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let file = self.0.remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.0.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MemFile {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for MemFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes();
        let there = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let len = there.len().min(into.len());
        if let (Some(into), Some(from)) = (into.get_mut(..len), there.get(..len)) {
            into.copy_from_slice(from);
        }
        Ok(len)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.bytes();
        let at = usize::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let end = at.checked_add(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        if file.len() < end {
            file.resize(end, 0);
        }
        if let Some(place) = file.get_mut(at..end) {
            place.copy_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
