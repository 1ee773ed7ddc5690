//! Durable records of jobs: stored before anyone is told, and written again when the disk refuses.
//!
//! Starts and ends are small records of their own; once all tasks of a chunk have ended, one record takes their place.

use turno_proto::model::job::JobId;
use turno_proto::model::{Code, ConnId};

use super::Jobs;
use super::cancel::Cancel;
use super::context::JobsContext;
use super::ended::split;
use super::ranges::Ranges;
use super::record::{AttemptCounts, TaskRecord};
use super::retry::Retry;
use crate::effect::{Caller, Sink};
use crate::messages::disk::persist::Persist;

/// Chunks that are brought together in one group.
const CHUNKS_AT_ONCE: usize = 16;

/// A chunk that is brought together on the disk.
#[derive(Debug)]
pub(crate) struct StoredChunk {
    job: JobId,
    chunk: u32,
    /// The places that have no record of their own from then on.
    tasks: Vec<(u32, u32)>,
    /// It was there before: a task of it was retried.
    before: bool,
}

/// The step that waits for a record of a job.
#[derive(Debug)]
pub(crate) enum JobAfterStored {
    Submitted { job: JobId },
    Hold { job: JobId, caller: Caller },
    Cancel(Box<Cancel>),
    Retry(Box<Retry>),
    Removed { job: JobId, caller: Option<Caller> },
    Offer { conn: ConnId, offer: u64 },
    Ended { job: JobId, place: u32 },
    Chunks(Vec<StoredChunk>),
    Rewritten { job: JobId },
}

impl Jobs {
    /// Goes on once all that this input changes is stored; at once if nothing is stored at all.
    pub(super) fn once_stored(&mut self, cx: &mut JobsContext<'_>, then: JobAfterStored, out: &mut impl Sink) {
        if cx.stores() {
            cx.wait(then);
        } else {
            self.job_stored(cx, then, out);
        }
    }

    pub(super) fn job_stored(&mut self, cx: &mut JobsContext<'_>, then: JobAfterStored, out: &mut impl Sink) {
        match then {
            JobAfterStored::Submitted { job } => self.submit_stored(cx, job, out),
            JobAfterStored::Hold { job, caller } => self.hold_stored(cx, job, caller, out),
            JobAfterStored::Cancel(cancel) => self.cancel_stored(cx, *cancel, out),
            JobAfterStored::Retry(retry) => self.retry_stored(cx, *retry, out),
            JobAfterStored::Removed { job, caller } => self.removal_stored(cx, job, caller, out),
            JobAfterStored::Offer { conn, offer } => self.send_offer(cx, conn, offer, out),
            JobAfterStored::Ended { job, place } => self.attempt_ended(cx, job, place, out),
            JobAfterStored::Chunks(_) => {
                self.writing = false;
                self.due = true;
            }
            JobAfterStored::Rewritten { .. } => {}
        }
    }

    pub(super) fn job_not_stored(
        &mut self,
        cx: &mut JobsContext<'_>,
        then: JobAfterStored,
        code: Code,
        out: &mut impl Sink,
    ) {
        match then {
            JobAfterStored::Submitted { job } => self.submit_not_stored(cx, job, code, out),
            JobAfterStored::Hold { job, caller } => self.hold_not_stored(job, caller, code, out),
            JobAfterStored::Cancel(cancel) => self.cancel_not_stored(*cancel, code, out),
            JobAfterStored::Retry(retry) => self.retry_not_stored(cx, *retry, code, out),
            JobAfterStored::Removed { job, caller } => self.removal_not_stored(cx, job, caller, code, out),
            JobAfterStored::Offer { conn, offer } => self.offer_not_stored(cx, conn, offer, out),
            JobAfterStored::Ended { job, place } => {
                self.unwritten_ends.insert((job, place));
            }
            JobAfterStored::Chunks(chunks) => self.chunks_not_stored(cx, chunks),
            JobAfterStored::Rewritten { job } => {
                if self.all.contains_key(&job) {
                    self.unwritten_jobs.insert(job);
                }
            }
        }
    }

    /// Tries again what the disk refused, once a second.
    pub(super) fn pay_jobs(&mut self, cx: &mut JobsContext<'_>, out: &mut impl Sink) {
        for (job, place) in std::mem::take(&mut self.unwritten_ends) {
            self.store_ending(cx, job, place, out);
        }
        let is_left = |job: &JobId| !self.all[job].removing;
        let pending_writes: Vec<JobId> = self.unwritten_jobs.iter().copied().filter(is_left).collect();
        for job in pending_writes {
            self.unwritten_jobs.remove(&job);
            self.store_job(cx, job);
            self.once_stored(cx, JobAfterStored::Rewritten { job }, out);
        }
        for job in self.doomed.clone() {
            self.doom_if_due(cx, job, out);
        }
    }

    /// Writes a task down.
    pub(super) fn store_task(&mut self, cx: &mut JobsContext<'_>, job: JobId, place: u32, record: TaskRecord) {
        if cx.stores() {
            self.at(job).stored.insert(place);
            cx.note(Persist::SetTask { job, place, record: Box::new(record) });
        }
    }

    /// Writes down that a task which was offered or lost waits again. Nobody waits for that: until it is stored, a
    /// restarted broker would give its worker the time to tell that it has it.
    pub(super) fn store_waiting(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32) {
        if !cx.stores() || !self.at(id).waiting.contains(place) {
            return;
        }
        let job = self.at(id);
        let tried = job.tried(place);
        if tried == AttemptCounts::default() && !job.ended.is_written(split(place).0) {
            job.stored.remove(place);
            cx.note(Persist::UnsetTask { job: id, place });
        } else {
            self.store_task(cx, id, place, TaskRecord::Waiting { tried, due_unix_ms: 0 });
        }
    }

    /// Writes a job down.
    pub(super) fn store_job(&mut self, cx: &mut JobsContext<'_>, id: JobId) {
        if cx.stores() {
            let record = Box::new(self.at(id).record());
            cx.note(Persist::SetJob { job: id, record });
        }
    }

    /// Writes the items of a job down, once: they do not change.
    pub(super) fn store_items(&mut self, cx: &mut JobsContext<'_>, id: JobId) {
        let items = self.at(id).spec.items.clone();
        if cx.stores() && !items.is_empty() {
            cx.note(Persist::SetItems { job: id, items });
        }
    }

    /// All tasks of a chunk may have ended.
    pub(super) fn note_full(&mut self, cx: &mut JobsContext<'_>, id: JobId, chunk: u32) {
        let job = &self.all[&id];
        if cx.stores() && job.is_worth_writing(chunk) {
            self.full.insert((id, chunk));
            self.due = true;
        }
    }

    /// All tasks of a job may have ended.
    pub(super) fn note_end(&mut self, cx: &mut JobsContext<'_>, id: JobId) {
        let now_unix_ms = cx.unix_ms();
        let job = self.at(id);
        if job.has_ended() && job.ended_unix_ms.is_none() {
            job.ended_unix_ms = Some(now_unix_ms);
            self.ended_count += 1;
            self.just_ended.push_back(id);
            self.due = true;
            self.keep_for_a_while(cx, id);
        }
    }

    /// Brings chunks that have ended together on the disk: one record for all tasks of each.
    pub(super) fn write_chunks(&mut self, cx: &mut JobsContext<'_>) {
        if self.writing || self.disk_until.is_some() || self.full.is_empty() {
            return;
        }
        let mut written = Vec::new();
        while written.len() < CHUNKS_AT_ONCE
            && let Some((id, chunk)) = self.full.pop_first()
        {
            let job = self.at(id);
            let (first, last) = job.chunk_places(chunk);
            let tasks = job.stored.remove_range(first, last);
            let record = job.chunk_record(chunk);
            let before = job.ended.is_written(chunk);
            job.ended.set_written(chunk, true);
            if let Some(record) = record {
                cx.note(Persist::SetChunk { job: id, chunk, record: Box::new(record) });
            }
            self.unset_tasks(cx, id, &tasks);
            written.push(StoredChunk { job: id, chunk, tasks, before });
        }
        self.writing = true;
        cx.wait(JobAfterStored::Chunks(written));
    }

    fn unset_tasks(&mut self, cx: &mut JobsContext<'_>, job: JobId, tasks: &[(u32, u32)]) {
        for place in tasks.iter().flat_map(|(first, last)| *first..=*last) {
            cx.note(Persist::UnsetTask { job, place });
        }
    }

    fn chunks_not_stored(&mut self, cx: &mut JobsContext<'_>, chunks: Vec<StoredChunk>) {
        self.writing = false;
        self.pause_for_disk(cx);
        for StoredChunk { job: id, chunk, tasks, before } in chunks {
            let Some(job) = self.all.get_mut(&id).filter(|job| !job.removing) else {
                // It was removed meanwhile, and does not know of these any more.
                self.unset_tasks(cx, id, &tasks);
                continue;
            };
            job.ended.set_written(chunk, before);
            for (first, last) in Ranges::of(&tasks).ranges() {
                job.stored.insert_range(first, last);
            }
            self.note_full(cx, id, chunk);
        }
    }
}
