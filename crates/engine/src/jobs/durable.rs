//! What is stored of jobs before anyone is told, what goes on then, and what is tried again when the disk refuses.
//!
//! Starts and ends are small records of their own; once all tasks of a chunk have ended, one record takes their place.

use turno_proto::model::job::JobId;
use turno_proto::model::{Code, ConnId};

use super::cancel::Cancel;
use super::ended::split;
use super::ranges::Ranges;
use super::record::{TaskRecord, Tried};
use super::retry::Retry;
use crate::effect::Sink;
use crate::engine::Engine;
use crate::persist::Persist;

/// Chunks that are brought together in one group.
const CHUNKS_AT_ONCE: usize = 16;

/// A chunk that is brought together on the disk.
#[derive(Debug)]
pub(crate) struct Written {
    job: JobId,
    chunk: u32,
    /// The places that have no record of their own from then on.
    tasks: Vec<(u32, u32)>,
    /// It was there before: a task of it was retried.
    before: bool,
}

/// What goes on once something about jobs is stored.
#[derive(Debug)]
pub(crate) enum JobThen {
    Submitted { job: JobId },
    Hold { job: JobId, caller: (ConnId, u32) },
    Cancel(Box<Cancel>),
    Retry(Box<Retry>),
    Removed { job: JobId, caller: Option<(ConnId, u32)> },
    Offer { conn: ConnId, offer: u64 },
    Ended { job: JobId, place: u32 },
    Chunks(Vec<Written>),
    Rewritten { job: JobId },
}

impl Engine {
    /// Goes on once all that this input changes is stored; at once if nothing is stored at all.
    pub(crate) fn once_stored(&mut self, then: JobThen, out: &mut impl Sink) {
        if self.settings.store.is_some() {
            self.durable.wait_with_job(then);
        } else {
            self.job_stored(then, out);
        }
    }

    pub(crate) fn job_stored(&mut self, then: JobThen, out: &mut impl Sink) {
        match then {
            JobThen::Submitted { job } => self.submit_stored(job, out),
            JobThen::Hold { job, caller } => self.hold_stored(job, caller, out),
            JobThen::Cancel(cancel) => self.cancel_stored(*cancel, out),
            JobThen::Retry(retry) => self.retry_stored(*retry, out),
            JobThen::Removed { job, caller } => self.removal_stored(job, caller, out),
            JobThen::Offer { conn, offer } => self.send_offer(conn, offer, out),
            JobThen::Ended { job, place } => self.attempt_ended(job, place, out),
            JobThen::Chunks(_) => {
                self.jobs.writing = false;
                self.jobs.due = true;
            }
            JobThen::Rewritten { .. } => {}
        }
    }

    pub(crate) fn job_not_stored(&mut self, then: JobThen, code: Code, out: &mut impl Sink) {
        match then {
            JobThen::Submitted { job } => self.submit_not_stored(job, code, out),
            JobThen::Hold { job, caller } => self.hold_not_stored(job, caller, code, out),
            JobThen::Cancel(cancel) => self.cancel_not_stored(*cancel, code, out),
            JobThen::Retry(retry) => self.retry_not_stored(*retry, code, out),
            JobThen::Removed { job, caller } => self.removal_not_stored(job, caller, code, out),
            JobThen::Offer { conn, offer } => self.offer_not_stored(conn, offer, out),
            JobThen::Ended { job, place } => {
                self.jobs.owed_ends.insert((job, place));
            }
            JobThen::Chunks(chunks) => self.chunks_not_stored(chunks),
            JobThen::Rewritten { job } => {
                if self.jobs.all.contains_key(&job) {
                    self.jobs.owed_jobs.insert(job);
                }
            }
        }
    }

    /// Tries again what the disk refused, once a second.
    pub(crate) fn pay_jobs(&mut self, out: &mut impl Sink) {
        for (job, place) in std::mem::take(&mut self.jobs.owed_ends) {
            self.store_ending(job, place, out);
        }
        let is_left = |job: &JobId, jobs: &super::Jobs| !jobs.all[job].removing;
        let owed: Vec<JobId> = self.jobs.owed_jobs.iter().copied().filter(|job| is_left(job, &self.jobs)).collect();
        for job in owed {
            self.jobs.owed_jobs.remove(&job);
            self.store_job(job);
            self.once_stored(JobThen::Rewritten { job }, out);
        }
        for job in self.jobs.doomed.clone() {
            self.doom_if_due(job, out);
        }
    }

    /// Writes a task down.
    pub(crate) fn store_task(&mut self, job: JobId, place: u32, record: TaskRecord) {
        if self.settings.store.is_some() {
            self.jobs.at(job).stored.insert(place);
            self.durable.note(Persist::SetTask { job, place, record: Box::new(record) });
        }
    }

    /// Writes down that a task which was offered or lost waits again. Nobody waits for that: until it is stored, a
    /// restarted broker would give its worker the time to tell that it has it.
    pub(crate) fn store_waiting(&mut self, id: JobId, place: u32) {
        if self.settings.store.is_none() || !self.jobs.at(id).waiting.contains(place) {
            return;
        }
        let job = self.jobs.at(id);
        let tried = job.tried(place);
        if tried == Tried::default() && !job.ended.is_written(split(place).0) {
            job.stored.remove(place);
            self.durable.note(Persist::UnsetTask { job: id, place });
        } else {
            self.store_task(id, place, TaskRecord::Waiting { tried, due_unix_ms: 0 });
        }
    }

    /// Writes a job down.
    pub(crate) fn store_job(&mut self, id: JobId) {
        if self.settings.store.is_some() {
            let record = Box::new(self.jobs.at(id).record());
            self.durable.note(Persist::SetJob { job: id, record });
        }
    }

    /// Writes the items of a job down, once: they do not change.
    pub(crate) fn store_items(&mut self, id: JobId) {
        let items = self.jobs.at(id).spec.items.clone();
        if self.settings.store.is_some() && !items.is_empty() {
            self.durable.note(Persist::SetItems { job: id, items });
        }
    }

    /// All tasks of a chunk may have ended.
    pub(crate) fn note_full(&mut self, id: JobId, chunk: u32) {
        let job = &self.jobs.all[&id];
        if self.settings.store.is_some() && job.is_worth_writing(chunk) {
            self.jobs.full.insert((id, chunk));
            self.jobs.due = true;
        }
    }

    /// All tasks of a job may have ended.
    pub(crate) fn note_end(&mut self, id: JobId) {
        let now_unix_ms = self.settings.unix_ms(self.now);
        let job = self.jobs.at(id);
        if job.has_ended() && job.ended_unix_ms.is_none() {
            job.ended_unix_ms = Some(now_unix_ms);
            self.jobs.ended_count += 1;
            self.jobs.just_ended.push_back(id);
            self.jobs.due = true;
            self.keep_for_a_while(id);
        }
    }

    /// Brings chunks that have ended together on the disk: one record for all tasks of each.
    pub(crate) fn write_chunks(&mut self) {
        if self.jobs.writing || self.jobs.disk_until.is_some() || self.jobs.full.is_empty() {
            return;
        }
        let mut written = Vec::new();
        while written.len() < CHUNKS_AT_ONCE
            && let Some((id, chunk)) = self.jobs.full.pop_first()
        {
            let job = self.jobs.at(id);
            let (first, last) = job.chunk_places(chunk);
            let tasks = job.stored.remove_range(first, last);
            let record = job.chunk_record(chunk);
            let before = job.ended.is_written(chunk);
            job.ended.set_written(chunk, true);
            if let Some(record) = record {
                self.durable.note(Persist::SetChunk { job: id, chunk, record: Box::new(record) });
            }
            self.unset_tasks(id, &tasks);
            written.push(Written { job: id, chunk, tasks, before });
        }
        self.jobs.writing = true;
        self.durable.wait_with_job(JobThen::Chunks(written));
    }

    fn unset_tasks(&mut self, job: JobId, tasks: &[(u32, u32)]) {
        for place in tasks.iter().flat_map(|(first, last)| *first..=*last) {
            self.durable.note(Persist::UnsetTask { job, place });
        }
    }

    fn chunks_not_stored(&mut self, chunks: Vec<Written>) {
        self.jobs.writing = false;
        self.pause_for_disk();
        for Written { job: id, chunk, tasks, before } in chunks {
            let Some(job) = self.jobs.all.get_mut(&id).filter(|job| !job.removing) else {
                // It was removed meanwhile, and does not know of these any more.
                self.unset_tasks(id, &tasks);
                continue;
            };
            job.ended.set_written(chunk, before);
            for (first, last) in Ranges::of(&tasks).ranges() {
                job.stored.insert_range(first, last);
            }
            self.note_full(id, chunk);
        }
    }
}
