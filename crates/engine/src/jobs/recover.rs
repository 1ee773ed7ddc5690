//! Recovery of jobs after a restart. Tasks that ran may still do so: their workers have the usual time to
//! come back and say so (S4.76).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::job::{Array, JobId};
use turno_proto::model::limits::TIME_LIMIT_SLACK_MS;

use super::Jobs;
use super::context::JobsContext;
use super::ended::split;
use super::job::{Job, Phase, Running};
use super::received::ReceivedBytes;
use super::record::{AttemptCounts, CHUNK_TASKS, ChunkRecord, JobRecord, StoredJobs, TaskRecord};
use super::timers::JobTimer;
use super::update::backoff;
use crate::messages::disk::persist::Persist;

impl Jobs {
    /// Takes back all jobs that outlived the last run. For the start, before the first input. What belongs to no job is
    /// removed with the first thing that is stored.
    pub(crate) fn recover(&mut self, cx: &mut JobsContext<'_>, stored: StoredJobs) {
        let StoredJobs { last, jobs, items, tasks, chunks } = stored;
        self.last = last;
        let mut items: BTreeMap<JobId, Bytes> = items.into_iter().collect();
        for (id, mut record) in jobs {
            self.last = self.last.max(id.0);
            if let Some(items) = items.remove(&id) {
                Arc::make_mut(&mut record.spec).items = items;
            }
            self.recover_job(cx, id, record);
        }
        for job in items.into_keys() {
            cx.note(Persist::UnsetItems { job });
        }
        for (id, chunk, record) in chunks {
            if !self.recover_chunk(id, chunk, record) {
                cx.note(Persist::UnsetChunk { job: id, chunk });
            }
        }
        for (id, place, record) in tasks {
            if !self.recover_task(cx, id, place, record) {
                cx.note(Persist::UnsetTask { job: id, place });
            }
        }
        let ids: Vec<JobId> = self.all.keys().copied().collect();
        for id in &ids {
            self.recover_failures(cx, *id);
            self.recover_cancelled(cx, *id);
        }
        for id in ids {
            if self.at(id).has_ended() {
                self.keep_for_a_while(cx, id);
            } else {
                self.link_after(id);
                self.refresh(id);
            }
        }
    }

    fn recover_job(&mut self, cx: &mut JobsContext<'_>, id: JobId, record: JobRecord) {
        let JobRecord {
            spec,
            submitted_unix_ms,
            held,
            cancelled,
            cancelled_unix_ms,
            started_unix_ms,
            forgiven,
            passed,
            missed,
        } = record;
        let count = spec.array.count;
        let mut job = Job::new(id, spec, submitted_unix_ms);
        job.held = held;
        for (first, last) in cancelled {
            if first <= last && last < count {
                job.asked.insert_range(first, last);
            }
        }
        job.asked_unix_ms = cancelled_unix_ms;
        job.started_unix_ms = started_unix_ms;
        job.forgiven = forgiven;
        job.missed = missed;
        let mut at = 0..;
        job.after.retain(|_| at.next().is_none_or(|at| u32::from(passed).checked_shr(at).unwrap_or(0) & 1 == 0));
        self.add_job(cx, job);
    }

    /// All tasks of the chunk have ended.
    fn recover_chunk(&mut self, id: JobId, chunk: u32, record: ChunkRecord) -> bool {
        let Some(job) = self.all.get_mut(&id).filter(|job| is_chunk_of(&job.spec.array, chunk)) else {
            return false;
        };
        let (first, last) = job.chunk_places(chunk);
        let attempts: Vec<u16> = record.tasks.iter().map(|end| end.attempt).collect();
        if !job.ended.add_chunk(chunk, last - first + 1, record, job.submitted_unix_ms) {
            return false;
        }
        job.waiting.remove_range(first, last);
        for (place, attempt) in (first..=last).zip(attempts) {
            if job.ended.get(place).is_none() {
                job.cancelled.insert(place);
                if attempt > 0 {
                    job.tried.insert(place, AttemptCounts { attempt: u32::from(attempt), ..AttemptCounts::default() });
                }
            }
        }
        true
    }

    /// False if there is no such task, or nothing more to say about it.
    fn recover_task(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, record: TaskRecord) -> bool {
        let grace = cx.now.plus_millis(cx.settings.task_grace_ms);
        let (now, settings) = (cx.now, &cx.settings);
        let Some(job) = self.all.get_mut(&id) else { return false };
        if !job.waiting.remove(place) {
            // Its chunk tells of it. If it was retried since, this is newer.
            let told = job.latest_attempt(place);
            let is_newer = match &record {
                TaskRecord::Waiting { tried, .. } => tried.attempt >= told,
                TaskRecord::Running { tried, .. } => tried.attempt > told,
                TaskRecord::Ended(end) => end.attempt > told,
            };
            if !is_newer || place >= job.spec.array.count {
                return false;
            }
            job.reopen(place);
            job.tried.remove(&place);
        }
        job.stored.insert(place);
        match record {
            TaskRecord::Ended(end) => job.end(place, &end),
            TaskRecord::Waiting { tried, due_unix_ms } => {
                let tried_failures = tried.failures;
                job.tried.insert(place, tried);
                let due = settings.mono(due_unix_ms).min(backoff(job.spec.backoff_ms, tried_failures, now));
                if due > now {
                    job.delayed.insert(place, due);
                    self.timers.insert((due, JobTimer::Retry(id, place)));
                } else {
                    job.waiting.insert(place);
                }
            }
            TaskRecord::Running { tried, key, worker, started_unix_ms } => {
                job.tried.insert(place, tried);
                let limit_ms = job.spec.time_limit_ms.map(|limit_ms| limit_ms.saturating_add(TIME_LIMIT_SLACK_MS));
                let limit = limit_ms.map(|limit_ms| {
                    settings.mono_within(started_unix_ms.saturating_add(limit_ms), now, limit_ms).max(now)
                });
                let running = Running {
                    attempt: tried.attempt,
                    conn: None,
                    key,
                    worker,
                    started_unix_ms,
                    phase: Phase::Runs,
                    stop: None,
                    ending: None,
                    limit: None,
                    gone: None,
                    handed_in: ReceivedBytes::default(),
                };
                job.started_unix_ms = Some(job.started_unix_ms.unwrap_or(started_unix_ms).min(started_unix_ms));
                job.running.insert(place, running);
                self.set_gone(id, place, Some(grace));
                self.set_limit(id, place, limit);
            }
        }
        true
    }

    /// Cancelled tasks that have not ended otherwise end so: the worker of a task that ran is gone with the last run,
    /// and is told to stop it should it come back.
    fn recover_cancelled(&mut self, cx: &mut JobsContext<'_>, id: JobId) {
        let asked = self.at(id).asked.ranges();
        for (first, last) in asked {
            let job = self.at(id);
            for (from, to) in job.waiting.remove_range(first, last) {
                job.cancelled.insert_range(from, to);
            }
            let delayed: BTreeMap<u32, _> = job.delayed.range(first..=last).map(|(at, due)| (*at, *due)).collect();
            let running: Vec<u32> = job.running.range(first..=last).map(|(place, _)| *place).collect();
            for (place, due) in delayed {
                self.timers.remove(&(due, JobTimer::Retry(id, place)));
                let job = self.at(id);
                job.delayed.remove(&place);
                job.cancelled.insert(place);
            }
            for place in running {
                self.set_gone(id, place, None);
                self.set_limit(id, place, None);
                let job = self.at(id);
                job.running.remove(&place);
                job.cancelled.insert(place);
            }
        }
        let now_unix_ms = cx.unix_ms();
        let job = self.at(id);
        job.started_unix_ms = [job.started_unix_ms, job.ended.began_unix_ms].into_iter().flatten().min();
        if job.has_ended() {
            let cancelled = job.asked_unix_ms.filter(|_| !job.cancelled.is_empty());
            // The clock may have been set back since: an end in the future would be kept until then.
            let ended = job.ended.ended_unix_ms.max(cancelled).unwrap_or(job.submitted_unix_ms);
            job.ended_unix_ms = Some(ended.min(now_unix_ms));
            job.after.clear();
            self.ended_count += 1;
        }
        let job = self.at(id);
        let chunks: Vec<u32> = job.stored.ranges().iter().flat_map(|(a, b)| split(*a).0..=split(*b).0).collect();
        chunks.into_iter().for_each(|chunk| self.note_full(cx, id, chunk));
    }
}

const fn is_chunk_of(array: &Array, chunk: u32) -> bool {
    chunk < array.count.div_ceil(CHUNK_TASKS)
}
