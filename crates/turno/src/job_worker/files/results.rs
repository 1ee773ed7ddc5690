//! The transfer of result files to the broker.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use turno_proto::foreman::Task;
use turno_proto::model::job::JobId;
use turno_proto::model::{Code, limits};
use turno_proto::native::admin::AdminCall;

use super::collect::{self, Found};
use crate::job_worker::disk;
use crate::job_worker::outbox::{Outbox, Patience};
use crate::job_worker::verdict::words;

/// Sends all files that match the task's patterns.
pub(super) async fn send(outbox: &Outbox, task: &Task, dir: PathBuf) -> Result<(), String> {
    let patterns = task.collect.clone();
    let found = disk::blocking(move || collect::find(&dir, &patterns)).await?;
    let mut left = limits::RESULT_BYTES_MAX;
    for file in found {
        send_file(outbox, task, &file, &mut left).await?;
    }
    Ok(())
}

/// Sends a file, from its beginning as often as the broker lost what it had of it.
async fn send_file(outbox: &Outbox, task: &Task, file: &Found, left: &mut u64) -> Result<(), String> {
    for _ in 0..limits::RESULT_SENDS_MAX {
        let mut room = *left;
        match send_once(outbox, task, file, &mut room).await {
            Ok(()) => {
                *left = room;
                return Ok(());
            }
            Err(ResultFailure::Again) => {}
            Err(ResultFailure::Status(status)) => return Err(format!("{}: {status}", file.name)),
        }
    }
    Err(format!("{}: the broker lost it repeatedly", file.name))
}

/// Why a file is not sent.
enum ResultFailure {
    /// The broker has to be given all of it again.
    Again,
    /// The task fails with this.
    Status(String),
}

impl From<String> for ResultFailure {
    fn from(status: String) -> Self {
        Self::Status(status)
    }
}

async fn send_once(outbox: &Outbox, task: &Task, file: &Found, left: &mut u64) -> Result<(), ResultFailure> {
    let path = file.path.clone();
    let read = |error: &io::Error| format!("cannot be read ({})", words(error));
    let mut reader = disk::blocking(move || File::open(path).map_err(|error| read(&error))).await?;
    let mut bytes;
    (reader, bytes) = disk::blocking(move || piece(reader).map_err(|error| read(&error))).await?;
    let mut at = 0;
    loop {
        // The last piece is known by what comes after it.
        let next;
        (reader, next) = disk::blocking(move || piece(reader).map_err(|error| read(&error))).await?;
        let len = bytes.len() as u64;
        let Some(rest) = left.checked_sub(len) else {
            let most = limits::RESULT_BYTES_MAX >> 20;
            return Err(ResultFailure::Status(format!("a task may return at most {most} MiB")));
        };
        *left = rest;
        let call = AdminCall::TaskFile {
            worker: outbox.worker().to_owned(),
            job: JobId(task.job),
            task: task.task,
            attempt: task.attempt,
            name: file.name.clone(),
            at,
            last: next.is_empty(),
            bytes,
        };
        hand_in(outbox, call).await?;
        if next.is_empty() {
            return Ok(());
        }
        at += len;
        bytes = next;
    }
}

/// Until the broker has it. One that is away is waited for.
async fn hand_in(outbox: &Outbox, call: AdminCall) -> Result<(), ResultFailure> {
    let mut patience = Patience::new(Duration::from_millis(limits::FILE_PATIENCE_MS));
    loop {
        match outbox.ask(call.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Code::WrongPlace => return Err(ResultFailure::Again),
            Err(error) => {
                if !patience.bears(&error).await {
                    return Err(ResultFailure::Status(error.to_string()));
                }
            }
        }
    }
}

/// The next bytes, as many as go into one call; none at the end.
fn piece(file: File) -> io::Result<(File, Bytes)> {
    let mut bytes = Vec::new();
    (&file).take(limits::PIECE_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok((file, bytes.into()))
}
