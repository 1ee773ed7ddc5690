//! The archive thread, which keeps output, results and uploads of tasks. It stores and reads them apart from the engine,
//! so that a slow or full disk delays no message. The engine's gate limits how many calls wait for it.

mod free_space;
mod queue;
mod worker;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::Notify;
use tracing::error;
use turno_engine::{ArchiveCall, Engine, Input};
use turno_proto::model::{Mono, limits};
use turno_store::OpenError;
use turno_store::archive::{Archive, Room, UploadId as StoredUpload};
use turno_store::disk::{Disk, FsDisk, MemDisk};

use self::free_space::FreeSpace;
use self::queue::Queue;
use self::worker::{AnswerCalls, ArchiveWorker};
use super::clock::Clock;
use super::settings::ArchiveSettings;

/// A handle of the archive, for calls and answers.
#[derive(Debug)]
pub struct ArchiveHandle(ArchiveBackend);

#[derive(Debug)]
enum ArchiveBackend {
    /// On this thread, answering at once.
    Here { worker: Box<dyn AnswerCalls>, answers: VecDeque<Input> },
    /// On a thread.
    There { queue: Arc<Queue>, thread: Option<JoinHandle<()>> },
}

impl ArchiveHandle {
    /// An archive in memory that answers at once, without a thread.
    pub fn in_memory() -> Self {
        Self::here_on(
            MemDisk::default(),
            &room_of(&ArchiveSettings::default(), true, 1),
            0,
            &BTreeSet::new(),
            BTreeSet::new(),
        )
        .expect("memory can be listed")
    }

    /// The same on a disk, with what the engine knows.
    pub fn on_disk<D>(disk: D, room: &Room, engine: &Engine, now: Mono) -> Result<Self, OpenError>
    where
        D: Disk<File: Send> + 'static,
    {
        let (jobs, uploads) = known_to(engine);
        Self::here_on(disk, room, now.as_millis(), &jobs, uploads)
    }

    fn here_on<D>(
        disk: D,
        room: &Room,
        now_ms: u64,
        jobs: &BTreeSet<u64>,
        uploads: BTreeSet<StoredUpload>,
    ) -> Result<Self, OpenError>
    where
        D: Disk<File: Send> + 'static,
    {
        let archive = Archive::open(disk, room, now_ms, jobs, uploads)?;
        let worker = Box::new(ArchiveWorker::new(archive, FreeSpace::None));
        Ok(Self(ArchiveBackend::Here { worker, answers: VecDeque::new() }))
    }

    /// Opens the archive in that directory, or in memory, with what the engine knows, and starts its thread.
    pub(super) fn start(
        settings: &ArchiveSettings,
        directory: Option<&Path>,
        engine: &Engine,
        salt: u64,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let room = room_of(settings, directory.is_none(), salt);
        match directory {
            Some(directory) => {
                let floor = FreeSpace::of(directory.to_owned());
                Self::start_on(FsDisk::new(directory.to_owned()), floor, &room, engine, clock)
            }
            None => Self::start_on(MemDisk::default(), FreeSpace::None, &room, engine, clock),
        }
    }

    fn start_on<D>(disk: D, floor: FreeSpace, room: &Room, engine: &Engine, clock: Clock) -> Result<Self, OpenError>
    where
        D: Disk<File: Send> + 'static,
    {
        let (jobs, uploads) = known_to(engine);
        let archive = Archive::open(disk, room, clock.now().as_millis(), &jobs, uploads)?;
        let queue = Arc::new(Queue::default());
        let (mut worker, calls) = (ArchiveWorker::new(archive, floor), Arc::clone(&queue));
        let thread = std::thread::Builder::new().name("turno-archive".to_owned()).spawn(move || {
            let _whole = queue::Guard::new(&calls);
            while let Some(taken) = calls.wait() {
                let now_ms = clock.now().as_millis();
                worker.look_after(now_ms);
                for (ticket, call) in taken {
                    calls.answer(ticket, worker.answer(now_ms, call));
                }
            }
        });
        let thread = thread.map_err(|source| {
            let file = "the archive".to_owned();
            OpenError::Io { doing: "start the thread of", file, source }
        })?;
        Ok(Self(ArchiveBackend::There { queue, thread: Some(thread) }))
    }

    /// Asks for something.
    pub(super) fn ask(&mut self, now: Mono, ticket: u64, call: ArchiveCall) {
        match &mut self.0 {
            ArchiveBackend::Here { worker, answers } => {
                let answer = worker.answer(now.as_millis(), call);
                answers.extend(answer.map(|answer| Input::Archived { ticket, answer }));
            }
            ArchiveBackend::There { queue, .. } => queue.ask(ticket, call),
        }
    }

    /// An answer that was given at once.
    pub(super) fn answered(&mut self) -> Option<Input> {
        match &mut self.0 {
            ArchiveBackend::Here { answers, .. } => answers.pop_front(),
            ArchiveBackend::There { .. } => None,
        }
    }

    /// Wakes the reader of the answers.
    pub(super) fn news(&self) -> Option<Arc<Notify>> {
        match &self.0 {
            ArchiveBackend::Here { .. } => None,
            ArchiveBackend::There { queue, .. } => Some(Arc::clone(&queue.news)),
        }
    }

    /// The answers there are.
    pub(super) fn take(&mut self) -> Vec<Input> {
        match &self.0 {
            ArchiveBackend::Here { .. } => Vec::new(),
            ArchiveBackend::There { queue, .. } => queue.take(),
        }
    }
}

/// All calls are done before the end.
impl Drop for ArchiveHandle {
    fn drop(&mut self) {
        if let ArchiveBackend::There { queue, thread } = &mut self.0 {
            queue.close();
            if thread.take().is_some_and(|thread| thread.join().is_err()) {
                error!("the archive failed; see the panic in the log");
            }
        }
    }
}

/// The jobs that an engine knows, and the uploads that they name.
fn known_to(engine: &Engine) -> (BTreeSet<u64>, BTreeSet<StoredUpload>) {
    let jobs = engine.known_jobs().map(|job| job.0).collect();
    (jobs, engine.named_uploads().map(|upload| upload.0).collect())
}

fn room_of(settings: &ArchiveSettings, in_memory: bool, salt: u64) -> Room {
    let most = if in_memory { limits::ARCHIVE_MEMORY_BYTES } else { u64::MAX };
    Room {
        output_bytes: settings.output_total.min(most),
        result_bytes: settings.result_total.min(most),
        upload_bytes: limits::UPLOAD_TOTAL_BYTES.min(most),
        uploads: limits::UPLOADS_MAX,
        upload_kept_ms: limits::UPLOAD_KEPT_MS,
        live_bytes: limits::LIVE_BYTES_MAX,
        piece_bytes: limits::PIECE_BYTES_MAX as u64,
        salt,
    }
}
