//! What becomes of a task's output, and where it runs: the plain ways, which need no broker.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use turno_proto::foreman::Task;
use turno_proto::model::archive::OutputStream;

use super::scratch::{Scratch, ScratchDir};
use super::verdict::words;

/// Where output goes: nowhere.
#[derive(Clone, Debug)]
pub(crate) struct Outbox;

/// What was lost on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) tasks: u64,
    pub(crate) bytes: u64,
}

impl Outbox {
    pub(crate) fn start(_worker: &str, _options: turno_client::Options, _slots: u16) -> Self {
        Self
    }

    #[expect(clippy::unused_async, reason = "the way to the broker waits")]
    pub(crate) async fn begin(&self, _task: &Task) -> Result<Recorder, String> {
        Ok(Recorder { bytes: 0 })
    }

    #[expect(clippy::unused_async, reason = "the way to the broker waits")]
    pub(crate) async fn close(self) -> Lost {
        Lost::default()
    }
}

/// One attempt's output: counted.
#[derive(Debug)]
pub(crate) struct Recorder {
    bytes: u64,
}

impl Recorder {
    #[expect(clippy::unused_async, reason = "the way to the broker waits")]
    pub(crate) async fn wrote(&mut self, _stream: OutputStream, bytes: &[u8]) -> Result<(), String> {
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    #[expect(clippy::unused_async, reason = "the way to the broker waits")]
    pub(crate) async fn end(self) -> Result<(), String> {
        tracing::debug!(self.bytes, "output is read and forgotten");
        Ok(())
    }
}

/// What tasks are given and bring back: a place to run.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    scratch: Arc<Scratch>,
}

/// What a program starts with.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) dir: PathBuf,
    pub(crate) stdin: Option<std::fs::File>,
    pub(crate) scratch: Option<ScratchDir>,
}

impl Files {
    pub(crate) fn new(scratch: Arc<Scratch>, _outbox: Outbox) -> Self {
        Self { scratch }
    }

    #[expect(clippy::unused_async, reason = "files come from the broker")]
    pub(crate) async fn prepare(&self, task: &Task) -> Result<Prepared, String> {
        let dir = Path::new(&task.working_dir);
        if task.working_dir.is_empty() {
            let here =
                std::env::current_dir().map_err(|error| format!("no directory to run in ({})", words(&error)))?;
            return Ok(Prepared { dir: here, stdin: None, scratch: None });
        }
        if dir.is_dir() {
            return Ok(Prepared { dir: dir.to_owned(), stdin: None, scratch: None });
        }
        if !task.dir_optional {
            return Err(format!("no such directory: {}", dir.display()));
        }
        let own = self.scratch.make(task).map_err(|error| format!("cannot make a directory ({})", words(&error)))?;
        Ok(Prepared { dir: own.path().to_owned(), stdin: None, scratch: Some(own) })
    }

    #[expect(clippy::unused_async, reason = "results go to the broker")]
    pub(crate) async fn finish(&self, _task: &Task, prepared: Prepared, _success: bool) -> Result<(), String> {
        drop(prepared.scratch);
        Ok(())
    }
}
