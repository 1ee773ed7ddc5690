//! The interface of a disk: one directory of files, with the operations that the log needs. [`FsDisk`] is the real one;
//! [`SimDisk`] is its equivalent in memory, with power cuts and faults; [`MemDisk`] is plain memory.

mod crash;
mod fs;
mod mem;
mod rng;
mod sim;

use std::io;

pub use crash::{Crash, Journal};
pub use fs::{FsDisk, FsFile, TakeError};
pub use mem::{MemDisk, MemFile};
pub use rng::Rng;
pub use sim::{Fault, SimDisk, SimFile};

/// One directory.
pub trait Disk: Send {
    /// A file of it.
    type File: DiskFile;

    /// The names of its files, in any order.
    fn names(&mut self) -> io::Result<Vec<String>>;

    /// Opens a file that exists.
    fn open(&mut self, name: &str) -> io::Result<Self::File>;

    /// Creates a file that does not exist. Its name outlives a power cut only after
    /// [`sync_directory`](Self::sync_directory).
    fn create(&mut self, name: &str) -> io::Result<Self::File>;

    /// Removes a file. It may be there again after a power cut.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Gives a file another name; whatever had that is gone.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Makes the names durable.
    fn sync_directory(&mut self) -> io::Result<()>;
}

/// One file.
pub trait DiskFile: Send {
    /// Bytes it has.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has none.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads what is there at `at`, at most `into`; 0 at the end of the file.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes at `at`, perhaps not all of it.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Makes everything written so far durable (`fdatasync`). If it fails, nobody knows what is durable, and asking
    /// again proves nothing.
    fn sync(&self) -> io::Result<()>;
}

/// Writes all of it, however short the single writes are.
pub(crate) fn write_all_at(file: &impl DiskFile, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(at, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => {
                bytes = bytes.get(len..).unwrap_or_default();
                at += len as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills `into` as far as the file reaches; gives how far that is.
pub(crate) fn read_up_to(file: &impl DiskFile, at: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = into.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read_at(at + len as u64, rest) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// Whether this is a lack of room, which may pass, and not a broken disk, which will not.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
