//! Cancelling of tasks. Waiting tasks end once that is stored; running tasks end when their worker reports it or is
//! lost. Their slots are returned once, with the worker's report of their end.

use turno_proto::model::job::{JobId, Numbers};
use turno_proto::model::limits::{CANCELLED_RANGES_MAX, TASK_RANGES_MAX};
use turno_proto::model::{Code, ConnId, Mono};

use super::JobAfterStored;
use super::Jobs;
use super::context::JobsContext;
use super::ended::split;
use super::event::ForemanOrder;
use super::job::{Outcome, PendingChange, Phase, Running, StopReason};
use super::ranges::Ranges;
use super::timers::JobTimer;
use crate::effect::{Caller, Sink};

/// A cancel on its way to the disk.
#[derive(Debug)]
pub(crate) struct Cancel {
    pub(super) job: JobId,
    /// The caller to answer; `None`: the broker itself wants it.
    caller: Option<Caller>,
    /// Tasks that waited.
    waited: Vec<(u32, u32)>,
    /// Those of them that waited for their next attempt, and when it is due.
    delayed: Vec<(u32, Mono)>,
    /// Tasks that ran, or will wait by then.
    ran: Vec<u32>,
}

impl Jobs {
    /// An admin cancels tasks of a job, by their numbers, or all.
    pub(super) fn cancel_job(
        &mut self,
        cx: &mut JobsContext<'_>,
        caller: Caller,
        id: JobId,
        tasks: Option<&[(u32, u32)]>,
        out: &mut impl Sink,
    ) -> Result<(), Code> {
        let job = self.find_job(id)?;
        if job.has_ended() {
            return Err(Code::JobEnded);
        }
        let asked = match tasks {
            None => Ranges::up_to(job.spec.array.count),
            Some(tasks) => places_of(job.spec.numbers(), tasks)?,
        };
        let before = job.asked.ranges_len() + job.asking.iter().map(PendingChange::ranges_len).sum::<usize>();
        if before + asked.ranges_len() > CANCELLED_RANGES_MAX {
            return Err(Code::BadCall);
        }
        self.cancel_places(cx, id, asked, Some(caller), out);
        Ok(())
    }

    /// Ends the tasks at these places, once that is stored.
    pub(super) fn cancel_places(
        &mut self,
        cx: &mut JobsContext<'_>,
        id: JobId,
        asked: Ranges,
        caller: Option<Caller>,
        out: &mut impl Sink,
    ) {
        let now_unix_ms = cx.unix_ms();
        let job = self.all.get_mut(&id).expect("it was just found");
        let (mut waited, mut ran, mut delayed) = (Vec::new(), Vec::new(), Vec::new());
        // An earlier cancel or end that is on its way to the disk may be lost: it is written again.
        let mut unsure = !job.asking.is_empty();
        for (first, last) in asked.ranges() {
            unsure |= job.running.range(first..=last).next().is_some();
            waited.extend(job.waiting.remove_range(first, last));
            delayed.extend(job.delayed.range(first..=last).map(|(place, due)| (*place, *due)));
            ran.extend(job.running.range(first..=last).filter(|(_, task)| can_be_stopped(task)).map(|(at, _)| *at));
            ran.extend(job.retrying.within(first, last).flat_map(|(from, to)| from..=to));
            waited.extend(job.leaving.range(first..=last).map(|place| (*place, *place)));
        }
        job.leaving.retain(|place| !asked.contains(*place));
        for (place, due) in &delayed {
            job.delayed.remove(place);
            self.timers.remove(&(*due, JobTimer::Retry(id, *place)));
            waited.push((*place, *place));
        }
        if waited.is_empty() && ran.is_empty() && !unsure {
            return self.tell_of(cx, id, caller, out);
        }
        waited.iter().for_each(|(first, last)| job.cancelling.insert_range(*first, *last));
        job.asking.push_back(PendingChange::Cancel(asked));
        job.asked_unix_ms = Some(now_unix_ms);
        self.refresh(id);
        self.store_job(cx, id);
        self.once_stored(cx, JobAfterStored::Cancel(Box::new(Cancel { job: id, caller, waited, delayed, ran })), out);
    }

    /// A cancel is stored.
    pub(super) fn cancel_stored(&mut self, cx: &mut JobsContext<'_>, cancel: Cancel, out: &mut impl Sink) {
        let Cancel { job: id, caller, waited, ran, .. } = cancel;
        let job = self.all.get_mut(&id).expect("a job that changes is not removed");
        job.asked_next();
        for (first, last) in &waited {
            job.cancelling.remove_range(*first, *last);
            job.cancelled.insert_range(*first, *last);
        }
        for (first, last) in &waited {
            (split(*first).0..=split(*last).0).for_each(|chunk| self.note_full(cx, id, chunk));
        }
        for place in ran {
            self.cancel_if_left(cx, id, place, out);
        }
        self.refresh(id);
        self.note_end(cx, id);
        self.tell_of(cx, id, caller, out);
    }

    /// A task that ran or was retried when it was cancelled, and may do something else now.
    fn cancel_if_left(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, out: &mut impl Sink) {
        let job = self.at(id);
        if job.running.contains_key(&place) {
            return self.stop_task(cx, id, place, StopReason::Cancel, out);
        }
        let due = job.delayed.remove(&place);
        if due.is_some() || job.waiting.remove(place) || job.leaving.remove(&place) {
            job.cancelled.insert(place);
            if let Some(due) = due {
                self.timers.remove(&(due, JobTimer::Retry(id, place)));
            }
            self.note_full(cx, id, split(place).0);
        }
    }

    /// A cancel was not stored: all is as it was.
    pub(super) fn cancel_not_stored(&mut self, cancel: Cancel, code: Code, out: &mut impl Sink) {
        let Cancel { job: id, caller, waited, delayed, .. } = cancel;
        let held = self.held_places(id);
        let job = self.at(id);
        job.asking.pop_front();
        for (first, last) in waited {
            job.cancelling.remove_range(first, last);
            job.waiting.insert_range(first, last);
        }
        for place in held {
            if job.waiting.remove(place) {
                job.leaving.insert(place);
            }
        }
        for (place, due) in delayed {
            let job = self.at(id);
            if job.waiting.remove(place) {
                job.delayed.insert(place, due);
                self.timers.insert((due, JobTimer::Retry(id, place)));
            }
        }
        self.refresh(id);
        self.unwritten_jobs.insert(id);
        match caller {
            Some(caller) => out.peer(caller.refused(code)),
            None => drop(self.doomed.insert(id)),
        }
    }

    /// A running task shall end. Its worker is told, if it knows of the task.
    pub(super) fn stop_task(
        &mut self,
        cx: &mut JobsContext<'_>,
        id: JobId,
        place: u32,
        stop: StopReason,
        out: &mut impl Sink,
    ) {
        let running = self.at(id).running.get_mut(&place).expect("it runs");
        if running.stop == Some(StopReason::Cancel) {
            return;
        }
        running.stop = Some(stop);
        match (running.conn, running.phase) {
            _ if running.ending.is_some() => {}
            // The worker never hears of it.
            (_, Phase::Storing) => {}
            (Some(conn), _) => {
                self.set_limit(id, place, None);
                self.send_cancel(conn, id, place, out);
            }
            (None, _) if stop == StopReason::Cancel => self.end_cancelled(cx, id, place, false, out),
            // If it comes back, it is told; if not, this is why it failed.
            (None, _) => {}
        }
    }

    pub(super) fn send_cancel(&mut self, conn: ConnId, id: JobId, place: u32, out: &mut impl Sink) {
        self.cancels += 1;
        let cancel = self.cancels;
        let job = self.at(id);
        let (task, attempt) = (job.spec.numbers().number_of(place), job.running[&place].attempt);
        if let Some(job_worker) = self.job_workers.get_mut(conn) {
            job_worker.cancels.insert(cancel, (id, place, attempt));
            Self::order(conn, ForemanOrder::Cancel { cancel, job: id, task }, out);
        }
    }

    /// OK to a CANCEL: the task is over, its process may not be (S4.56).
    pub(super) fn cancel_confirmed(
        &mut self,
        cx: &mut JobsContext<'_>,
        conn: ConnId,
        cancel: u64,
        out: &mut impl Sink,
    ) {
        let Some((id, place, running)) = self.told_to_stop(conn, cancel) else { return };
        if running.ending.is_none() && running.stop == Some(StopReason::Cancel) {
            self.end_cancelled(cx, id, place, true, out);
        }
    }

    /// ERROR to a CANCEL: there is no such task, and so it takes no slots (S4.61).
    pub(super) fn nothing_to_cancel(
        &mut self,
        cx: &mut JobsContext<'_>,
        conn: ConnId,
        cancel: u64,
        out: &mut impl Sink,
    ) {
        let Some((id, place, running)) = self.told_to_stop(conn, cancel) else { return };
        match (&mut running.ending, running.stop) {
            (Some(ending), _) => ending.keeps_slots = false,
            (None, Some(StopReason::Cancel)) => self.end_cancelled(cx, id, place, false, out),
            (None, _) => self.attempt_failed(cx, id, place, None, out),
        }
    }

    fn told_to_stop(&mut self, conn: ConnId, cancel: u64) -> Option<(JobId, u32, &mut Running)> {
        let (id, place, attempt) = self.job_workers.get_mut(conn)?.cancels.remove(&cancel)?;
        self.running_at(conn, id, place, attempt).map(|running| (id, place, running))
    }
}

/// It has neither ended nor been told to.
fn can_be_stopped(task: &Running) -> bool {
    let ends = task.ending.as_ref().is_some_and(|ending| matches!(ending.outcome, Outcome::Ended(_)));
    !ends && task.stop != Some(StopReason::Cancel)
}

/// The places of the tasks with these numbers.
pub(super) fn places_of(numbers: Numbers<'_>, tasks: &[(u32, u32)]) -> Result<Ranges, Code> {
    if tasks.len() > TASK_RANGES_MAX || tasks.iter().any(|(first, last)| first > last) {
        return Err(Code::BadCall);
    }
    let mut places = Ranges::default();
    for (first, last) in tasks {
        let (from, end) = (numbers.place_from(*first), numbers.place_after(Some(*last)));
        if from < end {
            places.insert_range(from, end - 1);
        }
    }
    Ok(places)
}
