//! Output into local files instead of to the broker.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turno_proto::foreman::Task;
use turno_proto::model::archive::OutputStream;

use crate::job_worker::disk;

/// `DIR/JOB/TASK.ATTEMPT.stdout` and the same for stderr.
#[derive(Debug)]
pub(super) struct OutFiles {
    stdout: OutFile,
    stderr: OutFile,
}

#[derive(Clone, Debug)]
struct OutFile {
    path: PathBuf,
    file: Arc<File>,
}

impl OutFiles {
    /// Makes the files, and directories that are missing. A file of that name is emptied: it is of the same attempt.
    pub(super) async fn create(task: &Task) -> Result<Self, String> {
        let folder = folder(task);
        let name = format!("{}.{}", task.task, task.attempt);
        disk::blocking(move || {
            fs::create_dir_all(&folder).map_err(|error| disk::cannot("make the directory", &folder, &error))?;
            let create = |end: &str| -> Result<OutFile, String> {
                let path = folder.join(format!("{name}.{end}"));
                let file = File::create(&path).map_err(|error| disk::cannot("write", &path, &error))?;
                Ok(OutFile { path, file: Arc::new(file) })
            };
            Ok(Self { stdout: create("stdout")?, stderr: create("stderr")? })
        })
        .await
    }

    pub(super) async fn wrote(&self, stream: OutputStream, bytes: &[u8]) -> Result<(), String> {
        let file = match stream {
            OutputStream::Stdout => self.stdout.clone(),
            OutputStream::Stderr => self.stderr.clone(),
        };
        let bytes = bytes.to_vec();
        let write = move || {
            let OutFile { path, file } = file;
            (&*file).write_all(&bytes).map_err(|error| disk::cannot("write", &path, &error))
        };
        disk::blocking(write).await
    }
}

/// The directory for the job's files. One that is not absolute is in the task's working directory, or in that of the
/// worker if the task has none.
fn folder(task: &Task) -> PathBuf {
    let base = Path::new(&task.working_dir);
    let base = if base.is_dir() { base } else { Path::new("") };
    base.join(&task.logging_dir).join(task.job.to_string())
}
