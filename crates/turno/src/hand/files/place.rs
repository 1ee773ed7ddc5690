//! Uploads become files of a task.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use turno_proto::foreman::TaskFile;
use turno_proto::model::archive::{UploadId, is_file_name};

use super::cache::Cache;
use crate::hand::words;

/// Puts a copy of an upload into a task's directory. Never a link: the task may write into it, as the same user and
/// whatever its mode says, and all others would have that too. File systems that can share blocks do so.
pub(super) async fn place(cache: &Cache, dir: &Path, file: &TaskFile) -> Result<(), String> {
    if !is_file_name(&file.name) {
        return Err(format!("no name for a file of a task: {}", file.name));
    }
    let path = dir.join(&file.name);
    let mode = if file.executable { 0o755 } else { 0o644 };
    for may_make_room in [true, false] {
        let upload = cache.get(file.upload).await.map_err(|error| format!("{}: {error}", file.name))?;
        let to = path.clone();
        let copied = words::blocking(move || Ok(copy(upload.path(), &to, mode))).await?;
        match copied {
            Ok(()) => return Ok(()),
            Err(error) if may_make_room && is_full(&error) && cache.make_room() => {}
            Err(error) => return Err(words::cannot("write", Path::new(&file.name), &error)),
        }
    }
    Err(format!("cannot write {}", file.name))
}

/// Opens an upload for reading. It may be removed from the cache meanwhile.
pub(super) async fn open(cache: &Cache, upload: UploadId) -> Result<File, String> {
    let entry = cache.get(upload).await.map_err(|error| format!("stdin: {error}"))?;
    words::blocking(move || File::open(entry.path()).map_err(|error| words::cannot("read", entry.path(), &error))).await
}

fn copy(from: &Path, to: &PathBuf, mode: u32) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
