//! The data directory, which one process owns: it contains the Unix socket and the store.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;
use tracing::warn;

use super::error::ServeError;

/// Bytes a socket's path may have on every Unix we run on.
const SOCKET_PATH_BYTES_MAX: usize = 100;

/// A directory that is ours for as long as this lives.
#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
    socket: Option<PathBuf>,
    _lock: File,
}

impl DataDirectory {
    /// Makes the directory if need be (mode 0700) and takes it.
    pub(super) fn take(path: &Path) -> Result<Self, ServeError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| ServeError::Data { doing, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("create directory", path))?;
        let lock_path = path.join("turno.lock");
        let lock = File::create(&lock_path).map_err(failed("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), socket: None, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(ServeError::DataInUse { directory: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed("lock", &lock_path)(source)),
        }
    }

    /// Listens on `turno.sock` (mode 0600). A socket left behind by a broker that was killed goes first: the
    /// lock says that nobody uses it.
    pub(super) fn listen(&mut self) -> Result<Option<UnixListener>, ServeError> {
        let path = self.path.join("turno.sock");
        if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            warn!(path = %path.display(), "no Unix socket: the path is too long");
            return Ok(None);
        }
        let failed = |doing| {
            let path = path.clone();
            move |source| ServeError::Data { doing, path, source }
        };
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("remove the old socket")(error)),
        }
        let listener = UnixListener::bind(&path).map_err(failed("listen on"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed("protect"))?;
        self.socket = Some(path);
        Ok(Some(listener))
    }

    /// Where the store is; makes it a directory if need be.
    pub(super) fn store(&self) -> Result<PathBuf, ServeError> {
        self.directory("store")
    }

    /// Where the archive is; makes it a directory if need be.
    pub(super) fn archive(&self) -> Result<PathBuf, ServeError> {
        self.directory("archive")
    }

    fn directory(&self, name: &str) -> Result<PathBuf, ServeError> {
        let directory = self.path.join(name);
        let failed = |doing| {
            let path = directory.clone();
            move |source| ServeError::Data { doing, path, source }
        };
        match DirBuilder::new().mode(0o700).create(&directory) {
            // A new directory that is not in its parent after a power cut would take every message with it.
            Ok(()) => {
                File::open(&self.path).and_then(|parent| parent.sync_all()).map_err(failed("sync the parent of"))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("create directory")(error)),
        }
        Ok(directory)
    }

    pub(super) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket
            && let Err(error) = fs::remove_file(socket)
        {
            warn!(path = %socket.display(), %error, "cannot remove the socket");
        }
    }
}
