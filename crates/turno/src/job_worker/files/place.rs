//! Placement of uploads in the directory of a task.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use turno_proto::foreman::TaskFile;
use turno_proto::model::archive::{UploadId, is_file_name};

use super::cache::{Cache, Failed, is_full};
use crate::job_worker::disk;
use crate::job_worker::verdict::words;

/// Puts a copy of an upload into a task's directory. Never a link: the task may write into it, as the same user and
/// whatever its mode says, and all others would have that too. File systems that can share blocks do so.
pub(super) async fn place(cache: &Cache, dir: &Path, file: &TaskFile) -> Result<(), String> {
    if !is_file_name(&file.name) {
        return Err(format!("invalid file name for a task: {}", file.name));
    }
    let mode = if file.executable { 0o755 } else { 0o644 };
    let mut placed = try_place(cache, &dir.join(&file.name), file.upload, mode).await;
    if placed.as_ref().is_err_and(|failed| failed.is_full) && cache.make_room() {
        placed = try_place(cache, &dir.join(&file.name), file.upload, mode).await;
    }
    placed.map_err(|failed| format!("{}: {}", file.name, failed.status))
}

async fn try_place(cache: &Cache, path: &Path, upload: UploadId, mode: u32) -> Result<(), Failed> {
    let entry = cache.get(upload).await?;
    let to = path.to_owned();
    let copied = disk::blocking(move || Ok(copy(entry.path(), &to, mode))).await?;
    copied
        .map_err(|error| Failed { status: format!("cannot be written ({})", words(&error)), is_full: is_full(&error) })
}

/// Opens an upload for reading. It may be removed from the cache meanwhile.
pub(super) async fn open(cache: &Cache, upload: UploadId) -> Result<File, String> {
    let entry = cache.get(upload).await.map_err(|failed| format!("stdin: {}", failed.status))?;
    disk::blocking(move || File::open(entry.path()).map_err(|error| disk::cannot("read", entry.path(), &error))).await
}

fn copy(from: &Path, to: &Path, mode: u32) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
}
