//! Timers of jobs: retries, lost workers and time limits of tasks.

use std::sync::Arc;

use turno_proto::model::job::JobId;
use turno_proto::model::limits::REFUSAL_PAUSE_MS;
use turno_proto::model::{ConnId, Mono};

use super::Jobs;
use super::context::JobsContext;
use super::job::StopReason;
use crate::effect::Sink;

/// A timer. One of each kind for each task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JobTimer {
    /// The next attempt of a task.
    Retry(JobId, u32),
    /// A running task counts as lost.
    Gone(JobId, u32),
    /// The time limit of a running task is over.
    Limit(JobId, u32),
    /// A job worker that refused may be asked again.
    Pause(ConnId),
    /// The disk may take something again.
    Disk,
    /// Jobs that ended long ago are forgotten.
    Forget,
}

impl Jobs {
    pub(super) fn tick_jobs(&mut self, cx: &mut JobsContext<'_>, out: &mut impl Sink) {
        while self.next_deadline().is_some_and(|at| at <= cx.now)
            && let Some((_, due)) = self.timers.pop_first()
        {
            match due {
                JobTimer::Retry(job, place) => {
                    let job = self.at(job);
                    job.delayed.remove(&place);
                    job.waiting.insert(place);
                    let id = job.id;
                    self.refresh(id);
                }
                JobTimer::Gone(job, place) => {
                    self.set_gone(job, place, None);
                    self.lose(cx, job, place, out);
                }
                JobTimer::Limit(job, place) => {
                    self.set_limit(job, place, None);
                    self.stop_task(cx, job, place, StopReason::TimeLimit, out);
                }
                JobTimer::Pause(conn) => self.pause_over(cx, conn),
                JobTimer::Forget => self.forget_jobs(cx, out),
                JobTimer::Disk => {
                    self.disk_until = None;
                    self.due = true;
                }
            }
        }
    }

    /// The disk refused something: nothing is started for a while.
    pub(super) fn pause_for_disk(&mut self, cx: &mut JobsContext<'_>) {
        let until = cx.now.plus_millis(REFUSAL_PAUSE_MS);
        if let Some(before) = self.disk_until.replace(until) {
            self.timers.remove(&(before, JobTimer::Disk));
        }
        self.timers.insert((until, JobTimer::Disk));
    }

    /// The end of a running task's time limit.
    pub(super) fn set_limit(&mut self, job: JobId, place: u32, at: Option<Mono>) {
        let running = self.at(job).running.get_mut(&place).expect("it runs");
        let before = std::mem::replace(&mut running.limit, at);
        self.set_timer(before, at, JobTimer::Limit(job, place));
    }

    /// When a running task counts as lost.
    pub(super) fn set_gone(&mut self, job: JobId, place: u32, at: Option<Mono>) {
        let running = self.at(job).running.get_mut(&place).expect("it runs");
        let before = std::mem::replace(&mut running.gone, at);
        if (before, at) == (None, None) {
            return;
        }
        let lost = (Arc::clone(&running.key), job, place);
        if at.is_some() {
            self.lost.insert(lost);
        } else if before.is_some() {
            self.lost.remove(&lost);
        }
        self.set_timer(before, at, JobTimer::Gone(job, place));
    }

    fn set_timer(&mut self, before: Option<Mono>, at: Option<Mono>, due: JobTimer) {
        if let Some(before) = before {
            self.timers.remove(&(before, due));
        }
        if let Some(at) = at {
            self.timers.insert((at, due));
        }
    }
}
