//! The real disk, through the standard library. The only file of this crate that touches files, and the one where fault
//! injection from outside (a preloaded library) sees every call.
#![expect(clippy::disallowed_methods, reason = "this is the one place where files are touched")]

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Disk, DiskFile};

/// The file whose lock says that the directory is taken; the broker's data directory uses the same.
const LOCK: &str = "turno.lock";

/// A directory of the real file system.
#[derive(Debug)]
pub struct FsDisk {
    directory: PathBuf,
    is_read_only: bool,
    _lock: Option<File>,
}

/// Why a directory could not be taken.
#[derive(Debug, Error)]
pub enum TakeError {
    /// Another process has it.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// An operation of the system failed.
    #[error("cannot {doing} {}", .path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl FsDisk {
    /// A directory that the caller has made and taken already, as the broker does with its data directory: one lock is
    /// enough.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self { directory, is_read_only: false, _lock: None }
    }

    /// A directory to read, even if a broker uses it: nothing of it can be changed by this.
    #[must_use]
    pub const fn to_read(directory: PathBuf) -> Self {
        Self { directory, is_read_only: true, _lock: None }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.is_read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    /// Makes the directory if need be (mode 0700) and takes it: until this is dropped no other process can.
    pub fn take(directory: &Path) -> Result<Self, TakeError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| TakeError::Io { doing, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed("create", directory))?;
        let path = directory.join(LOCK);
        let lock = File::create(&path).map_err(failed("open", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: Some(lock), ..Self::new(directory.to_owned()) }),
            Err(TryLockError::WouldBlock) => Err(TakeError::InUse(directory.to_owned())),
            Err(TryLockError::Error(source)) => Err(failed("lock", &path)(source)),
        }
    }
}

impl Disk for FsDisk {
    type File = FsFile;

    fn names(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            // A name that is not text is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&mut self, name: &str) -> io::Result<FsFile> {
        Ok(FsFile(OpenOptions::new().read(true).write(!self.is_read_only).open(self.directory.join(name))?))
    }

    fn create(&mut self, name: &str) -> io::Result<FsFile> {
        self.check_writable()?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(self.directory.join(name))?;
        Ok(FsFile(file))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.check_writable()?;
        fs::remove_file(self.directory.join(name))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.check_writable()?;
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        self.check_writable()?;
        File::open(&self.directory)?.sync_all()
    }
}

/// A file of the real file system.
#[derive(Debug)]
pub struct FsFile(File);

impl DiskFile for FsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(into, at)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
