//! Retries of ended tasks in the same job. A retry counts once it is stored.
//!
//! Attempts go on rising, since they tell a late report of an earlier attempt from that of a later one; what failed
//! and who was lost before counts no longer. A task of a chunk that is together on the disk gets a record of its own, which
//! is newer than what the chunk says of it.

use turno_proto::model::Code;
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::job::{JobId, TaskState};
use turno_proto::model::limits::{CANCELLED_RANGES_MAX, RETRIED_MAX, TASK_ATTEMPTS_MAX, TASKS_SEEN_MAX};

use super::JobAfterStored;
use super::Jobs;
use super::cancel::places_of;
use super::context::JobsContext;
use super::earlier_attempts::end_so_far;
use super::ended::split;
use super::job::{Job, PendingChange};
use super::ranges::Ranges;
use super::record::{AttemptCounts, TaskEnd, TaskRecord};
use crate::effect::{Caller, Sink};

/// A retry on its way to the disk.
#[derive(Debug)]
pub(crate) struct Retry {
    job: JobId,
    caller: Caller,
    places: Ranges,
    next: Option<u32>,
    /// The job had ended when this was asked for.
    had_ended: bool,
}

/// The tasks that one call retries.
#[derive(Debug, Default)]
struct Portion {
    places: Ranges,
    /// Places for which it no longer matters whether they were cancelled: what has ended otherwise may be among them, so
    /// that what is left are few ranges.
    lifted: Ranges,
    /// Failed tasks among the places.
    failed: u32,
    /// The place at which the next portion begins.
    next: Option<u32>,
}

impl Job {
    /// The next portion of those named, from that place on.
    fn portion(&self, named: &Ranges, from: u32, only_failed: bool) -> Portion {
        let mut portion = Portion::default();
        if only_failed && self.ended.failed == 0 {
            return portion;
        }
        let places = named.within(from, u32::MAX).flat_map(|(first, last)| first..=last);
        for (seen, place) in (0..).zip(places) {
            if seen == TASKS_SEEN_MAX || portion.places.len() == RETRIED_MAX {
                portion.next = Some(place);
                break;
            }
            let end = self.ended.get(place);
            if end.is_none() && !self.cancelled.contains(place) {
                continue;
            }
            let failed = end.is_some_and(|end| end.state() == Some(TaskState::Failed));
            let can = self.latest_attempt(place) < u32::from(TASK_ATTEMPTS_MAX) && !self.retrying.contains(place);
            let again = can && (failed || !only_failed);
            if again {
                portion.places.insert(place);
                portion.failed += u32::from(failed);
            }
            if (end.is_some() || again) && self.was_asked_to_cancel(place) {
                portion.lifted.insert(place);
            }
        }
        portion
    }

    fn was_asked_to_cancel(&self, place: u32) -> bool {
        let asks = |ask: &PendingChange| matches!(ask, PendingChange::Cancel(asked) if asked.contains(place));
        self.asked.contains(place) || self.asking.iter().any(asks)
    }

    /// Failed tasks that stay so, whatever retries are on their way to the disk.
    fn lasting_failures(&self, portion: &Portion) -> u32 {
        let failed = |place: &u32| self.ended.get(*place).is_some_and(|end| end.state() == Some(TaskState::Failed));
        let before = self.retrying.iter().filter(failed).count();
        let before = u32::try_from(before).expect("tasks are limited");
        self.ended.failed.saturating_sub(before + portion.failed)
    }
}

impl Jobs {
    /// An admin retries tasks of a job, by their numbers, or those that failed.
    pub(super) fn retry_job(
        &mut self,
        cx: &mut JobsContext<'_>,
        caller: Caller,
        id: JobId,
        tasks: Option<&[(u32, u32)]>,
        after: Option<u32>,
        out: &mut impl Sink,
    ) -> Result<(), Code> {
        let job = self.find_job(id)?;
        let numbers = job.spec.numbers();
        let named = match tasks {
            None => Ranges::up_to(numbers.array.count),
            Some(tasks) => places_of(numbers, tasks)?,
        };
        let portion = job.portion(&named, numbers.place_after(after), tasks.is_none());
        let next = portion.next.map(|place| numbers.number_of(place - 1));
        if portion.places.is_empty() {
            let answer = Box::new(AdminAnswer::Retried { job: id, tasks: 0, next });
            out.peer(caller.admin(answer));
            return Ok(());
        }
        let ranges = job.asked.ranges_len() + job.asking.iter().map(PendingChange::ranges_len).sum::<usize>();
        if ranges + portion.lifted.ranges_len() > CANCELLED_RANGES_MAX && !portion.lifted.is_empty() {
            return Err(Code::BadCall);
        }
        let (had_ended, forgiven) = (job.has_ended(), job.lasting_failures(&portion));
        let Portion { places, lifted, .. } = portion;
        let job = self.at(id);
        job.asking.push_back(PendingChange::Retry { lifted, forgiven });
        places.ranges().iter().for_each(|(first, last)| job.retrying.insert_range(*first, *last));
        self.store_retried(cx, id, &places);
        self.store_job(cx, id);
        if had_ended {
            self.store_those_after(cx, id);
        }
        let retry = Retry { job: id, caller, places, next, had_ended };
        self.once_stored(cx, JobAfterStored::Retry(Box::new(retry)), out);
        Ok(())
    }

    /// Writes down that these tasks wait. One that never had an attempt needs no record, unless its chunk has one.
    fn store_retried(&mut self, cx: &mut JobsContext<'_>, id: JobId, places: &Ranges) {
        for place in places.iter() {
            let (chunk, _) = split(place);
            self.full.remove(&(id, chunk));
            let job = self.at(id);
            let attempt = job.latest_attempt(place);
            if attempt > 0 || job.ended.is_written(chunk) {
                let tried = AttemptCounts { attempt, ..AttemptCounts::default() };
                self.store_task(cx, id, place, TaskRecord::Waiting { tried, due_unix_ms: 0 });
            }
        }
    }

    /// Writes down what jobs after that one know: it had ended as they wanted, and they do not wait for it again.
    fn store_those_after(&mut self, cx: &mut JobsContext<'_>, id: JobId) {
        let waits = |job: &&Job| {
            let comes_after = job.spec.after.iter().any(|one| one.job == id);
            comes_after && job.storing.is_none() && !job.removing && !job.has_ended()
        };
        let passed: Vec<JobId> = self.all.values().filter(waits).map(|job| job.id).collect();
        passed.into_iter().for_each(|job| self.store_job(cx, job));
    }

    /// A retry is stored: its tasks wait, and the job goes on.
    pub(super) fn retry_stored(&mut self, cx: &mut JobsContext<'_>, retry: Retry, out: &mut impl Sink) {
        let Retry { job: id, caller, places, next, had_ended } = retry;
        if let Some(at) = self.just_ended.iter().position(|ended| *ended == id) {
            // It ended before, and who waited for that goes on.
            self.just_ended.remove(at);
            self.job_ended(cx, id, out);
        }
        if self.at(id).has_ended() && !had_ended {
            self.store_those_after(cx, id);
        }
        let held = self.held_places(id);
        let ends: Vec<(u32, TaskEnd)> =
            places.iter().filter_map(|place| Some((place, end_so_far(self.at(id), place)?))).collect();
        ends.into_iter().for_each(|(place, end)| self.past.add(id, place, end));
        let job = self.at(id);
        job.asked_next();
        for place in places.iter() {
            job.retrying.remove(place);
            let attempt = job.latest_attempt(place);
            job.reopen(place);
            if attempt > 0 {
                job.tried.insert(place, AttemptCounts { attempt, ..AttemptCounts::default() });
            }
            if held.contains(&place) {
                job.leaving.insert(place);
            } else {
                job.waiting.insert(place);
            }
        }
        job.missed = 0;
        if job.ended_unix_ms.take().is_some() {
            self.ended_count -= 1;
        }
        let job = self.at(id);
        if job.after.is_empty() {
            // If it was to be ended for its failures: those do not count any more.
            self.doomed.remove(&id);
        }
        self.refresh(id);
        let answer = Box::new(AdminAnswer::Retried { job: id, tasks: places.len(), next });
        out.peer(caller.admin(answer));
    }

    /// A retry was not stored: its tasks stay ended.
    pub(super) fn retry_not_stored(&mut self, cx: &mut JobsContext<'_>, retry: Retry, code: Code, out: &mut impl Sink) {
        let Retry { job: id, caller, places, .. } = retry;
        let job = self.at(id);
        job.asking.pop_front();
        for (first, last) in places.ranges() {
            self.at(id).retrying.remove_range(first, last);
            (split(first).0..=split(last).0).for_each(|chunk| self.note_full(cx, id, chunk));
        }
        self.unwritten_jobs.insert(id);
        out.peer(caller.refused(code));
    }
}
