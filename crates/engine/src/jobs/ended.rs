//! Ended tasks of a job: 16 bytes each, in chunks that are allocated when their first task ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use turno_proto::model::job::TaskState;
use turno_proto::model::limits::TASK_STATUSES_MAX;

use super::record::{CHUNK_TASKS, ChunkRecord, ShortEnd, TaskEnd};

/// The ends of a job's tasks.
#[derive(Debug, Default)]
pub(super) struct EndedTasks {
    chunks: BTreeMap<u32, Chunk>,
    workers: Vec<Arc<str>>,
    worker_numbers: BTreeMap<Arc<str>, u16>,
    /// Texts of failures, by place.
    statuses: BTreeMap<u32, Arc<str>>,
    pub(super) finished: u32,
    pub(super) failed: u32,
    /// Tasks that were started.
    pub(super) cancelled: u32,
    /// The earliest start and the latest end of all of them.
    pub(super) began_unix_ms: Option<u64>,
    pub(super) ended_unix_ms: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Chunk {
    tasks: Vec<ShortEnd>,
    ended: u32,
    /// It is on disk as a whole.
    written: bool,
}

/// The chunk of a place, and the place within it.
pub(super) const fn split(place: u32) -> (u32, usize) {
    (place / CHUNK_TASKS, (place % CHUNK_TASKS) as usize)
}

impl EndedTasks {
    pub(super) fn len(&self) -> u32 {
        self.finished + self.failed + self.cancelled
    }

    /// The end of the task at that place, if it was one that had begun.
    pub(super) fn get(&self, place: u32) -> Option<&ShortEnd> {
        let (chunk, at) = split(place);
        self.chunks.get(&chunk)?.tasks.get(at).filter(|end| end.state().is_some())
    }

    pub(super) fn worker_of(&self, end: &ShortEnd) -> Option<&Arc<str>> {
        self.workers.get(usize::from(end.worker).checked_sub(1)?)
    }

    pub(super) fn status_of(&self, place: u32) -> Option<&Arc<str>> {
        self.statuses.get(&place)
    }

    /// A task has ended. `tasks` are those of its chunk.
    pub(super) fn add(&mut self, place: u32, tasks: u32, end: &TaskEnd, submitted_unix_ms: u64) {
        let worker = self.worker_number(&end.worker);
        let short = ShortEnd::of(end, worker, submitted_unix_ms);
        self.count(&short, end.started_unix_ms, end.ended_unix_ms);
        if !end.status.is_empty() {
            self.keep_status(place, Arc::clone(&end.status));
        }
        let (chunk, at) = split(place);
        let chunk = self.open(chunk, tasks);
        assert!(chunk.tasks[at].state().is_none(), "a task ends once");
        chunk.tasks[at] = short;
        chunk.ended += 1;
    }

    /// The chunk of that many tasks is there from now on.
    pub(super) fn open(&mut self, chunk: u32, tasks: u32) -> &mut Chunk {
        self.chunks.entry(chunk).or_insert_with(|| Chunk {
            tasks: vec![ShortEnd::default(); tasks as usize],
            ended: 0,
            written: false,
        })
    }

    /// The end of a started task no longer counts.
    pub(super) fn take(&mut self, place: u32) -> Option<ShortEnd> {
        let (chunk, at) = split(place);
        let chunk = self.chunks.get_mut(&chunk)?;
        let end = chunk.tasks.get_mut(at)?;
        match end.state()? {
            TaskState::Finished => self.finished -= 1,
            TaskState::Failed => self.failed -= 1,
            _ => self.cancelled -= 1,
        }
        chunk.ended -= 1;
        self.statuses.remove(&place);
        Some(std::mem::take(end))
    }

    /// A chunk as it was stored. False if it cannot be one of that many tasks.
    pub(super) fn add_chunk(&mut self, number: u32, tasks: u32, record: ChunkRecord, submitted_unix_ms: u64) -> bool {
        let ChunkRecord { tasks: mut ends, workers, statuses } = record;
        if ends.len() != tasks as usize || !ends.iter().all(ShortEnd::is_sound) {
            return false;
        }
        let numbers: Vec<u16> = workers.iter().map(|worker| self.worker_number(worker)).collect();
        for end in &mut ends {
            let local = usize::from(end.worker).checked_sub(1);
            end.worker = local.and_then(|local| numbers.get(local).copied()).unwrap_or(0);
            if end.state().is_some() {
                self.count(end, end.started_unix_ms(submitted_unix_ms), end.ended_unix_ms(submitted_unix_ms));
            } else {
                *end = ShortEnd::default();
            }
        }
        for (at, status) in statuses {
            self.keep_status(number * CHUNK_TASKS + u32::from(at), status);
        }
        let ended = ends.iter().filter(|end| end.state().is_some()).count();
        let ended = u32::try_from(ended).expect("a chunk is short");
        self.chunks.insert(number, Chunk { tasks: ends, ended, written: true });
        true
    }

    fn count(&mut self, end: &ShortEnd, started_unix_ms: u64, ended_unix_ms: u64) {
        match end.state() {
            Some(TaskState::Finished) => self.finished += 1,
            Some(TaskState::Failed) => self.failed += 1,
            _ => self.cancelled += 1,
        }
        self.began_unix_ms = Some(self.began_unix_ms.map_or(started_unix_ms, |began| began.min(started_unix_ms)));
        self.ended_unix_ms = self.ended_unix_ms.max(Some(ended_unix_ms));
    }

    fn keep_status(&mut self, place: u32, status: Arc<str>) {
        if self.statuses.len() < TASK_STATUSES_MAX {
            self.statuses.insert(place, status);
        }
    }

    fn worker_number(&mut self, worker: &Arc<str>) -> u16 {
        if worker.is_empty() {
            return 0;
        }
        if let Some(number) = self.worker_numbers.get(worker) {
            return *number;
        }
        let Ok(number) = u16::try_from(self.workers.len() + 1) else { return 0 };
        self.workers.push(Arc::clone(worker));
        self.worker_numbers.insert(Arc::clone(worker), number);
        number
    }

    /// Tasks of a chunk that ended after they had begun.
    pub(super) fn ended_in(&self, chunk: u32) -> u32 {
        self.chunks.get(&chunk).map_or(0, |chunk| chunk.ended)
    }

    pub(super) fn set_written(&mut self, chunk: u32, written: bool) {
        if let Some(chunk) = self.chunks.get_mut(&chunk) {
            chunk.written = written;
        }
    }

    /// Whether the disk has something to say of all tasks of that chunk, or will have. What has a record of its own beside
    /// that is newer.
    pub(super) fn is_written(&self, chunk: u32) -> bool {
        self.chunks.get(&chunk).is_some_and(|chunk| chunk.written)
    }

    /// The chunks that are there, with the tasks of them that ended after they had begun, and whether they are written.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u32, u32, bool)> {
        self.chunks.iter().map(|(number, chunk)| (*number, chunk.ended, chunk.written))
    }

    /// A chunk as it is stored; `None` if no task of it had begun.
    pub(super) fn chunk_record(&self, number: u32) -> Option<ChunkRecord> {
        let chunk = self.chunks.get(&number)?;
        let mut workers = Vec::new();
        let mut locals: BTreeMap<u16, u16> = BTreeMap::new();
        let mut tasks = chunk.tasks.clone();
        for end in tasks.iter_mut().filter(|end| end.worker > 0) {
            end.worker = *locals.entry(end.worker).or_insert_with(|| {
                workers.push(Arc::clone(&self.workers[usize::from(end.worker) - 1]));
                u16::try_from(workers.len()).expect("a chunk is short")
            });
        }
        let first = number * CHUNK_TASKS;
        let statuses = self.statuses.range(first..first.saturating_add(CHUNK_TASKS));
        let statuses = statuses
            .map(|(place, status)| (u16::try_from(place - first).expect("a chunk is short"), Arc::clone(status)))
            .collect();
        Some(ChunkRecord { tasks, workers, statuses })
    }
}
