//! The cache of uploads: each is fetched and checked once for all tasks.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::SetOnce;
use turno_proto::model::archive::UploadId;
use turno_proto::model::limits;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use crate::job_worker::disk;
use crate::job_worker::outbox::{Outbox, Patience};

/// Uploads that are here or on their way.
pub(super) struct Cache {
    folder: PathBuf,
    outbox: Outbox,
    entries: Mutex<HashMap<UploadId, Arc<Entry>>>,
}

/// An upload. While somebody holds it, it stays.
pub(super) struct Entry {
    path: PathBuf,
    fetched: SetOnce<Result<(), Failed>>,
}

/// Why an upload is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// The status of a task that needs it.
    pub(super) status: String,
    /// The disk has no room.
    pub(super) is_full: bool,
}

impl Failed {
    fn disk(what: &str, path: &Path, error: &io::Error) -> Self {
        Self { status: disk::cannot(what, path, error), is_full: is_full(error) }
    }
}

impl From<String> for Failed {
    fn from(status: String) -> Self {
        Self { status, is_full: false }
    }
}

/// Whether the disk has no room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Entry {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Cache {
    pub(super) fn new(folder: PathBuf, outbox: Outbox) -> Self {
        Self { folder, outbox, entries: Mutex::default() }
    }

    /// The upload, once it is here. Dropping the future leaves it on its way: another task may want it.
    pub(super) async fn get(&self, upload: UploadId) -> Result<Arc<Entry>, Failed> {
        let entry = self.entry(upload);
        let fetched = entry.fetched.wait().await.clone();
        if fetched.is_err() {
            // The next task tries anew; what failed for one failed for all that waited with it.
            self.entries().retain(|_, other| !Arc::ptr_eq(other, &entry));
        }
        fetched.map(|()| entry)
    }

    /// Removes what nobody holds: there is no room on the disk. Tells whether there was anything.
    pub(super) fn make_room(&self) -> bool {
        let mut entries = self.entries();
        let before = entries.len();
        entries.retain(|_, entry| {
            let is_idle = Arc::strong_count(entry) == 1 && entry.fetched.initialized();
            // One that cannot be removed makes no room, and is written over should it be wanted again.
            let is_gone = is_idle && fs::remove_file(&entry.path).is_ok();
            !is_gone
        });
        entries.len() < before
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<UploadId, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, upload: UploadId) -> Arc<Entry> {
        let mut entries = self.entries();
        let entry = entries.entry(upload).or_insert_with(|| {
            let path = self.folder.join(upload.to_string());
            let entry = Arc::new(Entry { path, fetched: SetOnce::new() });
            let (outbox, fetching) = (self.outbox.clone(), Arc::clone(&entry));
            tokio::spawn(async move {
                let fetched = fetch(&outbox, upload, &fetching.path).await;
                // Nobody else sets it.
                let _ = fetching.fetched.set(fetched);
            });
            entry
        });
        Arc::clone(entry)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Fetches an upload into a file that has its name only when it is whole and right.
async fn fetch(outbox: &Outbox, upload: UploadId, path: &Path) -> Result<(), Failed> {
    for _ in 0..limits::UPLOAD_FETCHES_MAX {
        let part = path.with_extension("part");
        let hash = download(outbox, upload, part.clone()).await?;
        let (path, is_right) = (path.to_owned(), hash == upload);
        let placed = disk::blocking(move || {
            let done = if is_right { fs::rename(&part, &path) } else { fs::remove_file(&part) };
            Ok(done.map_err(|error| Failed::disk("write", &path, &error)))
        });
        placed.await??;
        if is_right {
            return Ok(());
        }
        tracing::warn!(%upload, "an upload was damaged in transit");
    }
    Err(format!("an upload is damaged ({})", short(upload)).into())
}

/// Fetches the bytes, whatever they are; tells their hash.
async fn download(outbox: &Outbox, upload: UploadId, part: PathBuf) -> Result<UploadId, Failed> {
    let mut sink = disk::blocking(move || Ok(Sink::create(part))).await??;
    loop {
        let (bytes, size) = piece(outbox, upload, sink.len).await?;
        if bytes.is_empty() && sink.len < size {
            return Err(format!("the broker has only part of an upload ({})", short(upload)).into());
        }
        sink = disk::blocking(move || Ok(sink.write(&bytes))).await??;
        if sink.len >= size {
            return Ok(sink.hash());
        }
    }
}

/// The piece from there on, and the size of the whole. A broker that is away is waited for.
async fn piece(outbox: &Outbox, upload: UploadId, at: u64) -> Result<(Bytes, u64), String> {
    let mut patience = Patience::new(Duration::from_millis(limits::FILE_PATIENCE_MS));
    loop {
        match outbox.ask(AdminCall::UploadGet { upload, at }).await {
            Ok(AdminAnswer::Piece { bytes, size }) => return Ok((bytes, size)),
            Ok(_) => return Err("unexpected answer to an upload request".to_owned()),
            Err(error) => {
                if !patience.bears(&error).await {
                    return Err(format!("cannot fetch an upload ({}): {error}", short(upload)));
                }
            }
        }
    }
}

/// Enough of it to find it.
fn short(upload: UploadId) -> String {
    upload.to_string().chars().take(12).collect()
}

/// A file that is being written, and the hash of what is in it.
struct Sink {
    path: PathBuf,
    file: File,
    hash: Sha256,
    len: u64,
}

impl Sink {
    fn create(path: PathBuf) -> Result<Self, Failed> {
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(|error| Failed::disk("make the directory", folder, &error))?;
        let file = File::create(&path).map_err(|error| Failed::disk("write", &path, &error))?;
        Ok(Self { path, file, hash: Sha256::new(), len: 0 })
    }

    fn write(mut self, bytes: &[u8]) -> Result<Self, Failed> {
        self.file.write_all(bytes).map_err(|error| Failed::disk("write", &self.path, &error))?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(self)
    }

    fn hash(self) -> UploadId {
        UploadId(self.hash.finalize().into())
    }
}
