//! What time does to jobs: retries become due, lost workers are given up, tasks have had their time.

use std::sync::Arc;

use turno_proto::model::job::JobId;
use turno_proto::model::limits::REFUSAL_PAUSE_MS;
use turno_proto::model::{ConnId, Mono};

use super::job::Stop;
use crate::effect::Sink;
use crate::engine::Engine;

/// What is due. One of each kind for each task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// The next attempt of a task.
    Retry(JobId, u32),
    /// A running task counts as lost.
    Gone(JobId, u32),
    /// A running task has had its time.
    Limit(JobId, u32),
    /// A hand that refused may be asked again.
    Pause(ConnId),
    /// The disk may take something again.
    Disk,
    /// Jobs that ended long ago are forgotten.
    Forget,
}

impl Engine {
    pub(crate) fn tick_jobs(&mut self, out: &mut impl Sink) {
        while self.jobs.next_deadline().is_some_and(|at| at <= self.now)
            && let Some((_, due)) = self.jobs.timers.pop_first()
        {
            match due {
                Due::Retry(job, place) => {
                    let job = self.jobs.at(job);
                    job.delayed.remove(&place);
                    job.waiting.insert(place);
                    let id = job.id;
                    self.jobs.refresh(id);
                }
                Due::Gone(job, place) => {
                    self.set_gone(job, place, None);
                    self.lose(job, place, out);
                }
                Due::Limit(job, place) => {
                    self.set_limit(job, place, None);
                    self.stop_task(job, place, Stop::TimeLimit, out);
                }
                Due::Pause(conn) => self.pause_over(conn),
                Due::Forget => self.forget_jobs(out),
                Due::Disk => {
                    self.jobs.disk_until = None;
                    self.jobs.due = true;
                }
            }
        }
    }

    /// The disk refused something: nothing is started for a while.
    pub(crate) fn pause_for_disk(&mut self) {
        let until = self.now.plus_millis(REFUSAL_PAUSE_MS);
        if let Some(before) = self.jobs.disk_until.replace(until) {
            self.jobs.timers.remove(&(before, Due::Disk));
        }
        self.jobs.timers.insert((until, Due::Disk));
    }

    /// When a running task has had its time.
    pub(crate) fn set_limit(&mut self, job: JobId, place: u32, at: Option<Mono>) {
        let running = self.jobs.at(job).running.get_mut(&place).expect("it runs");
        let before = std::mem::replace(&mut running.limit, at);
        self.set_timer(before, at, Due::Limit(job, place));
    }

    /// When a running task counts as lost.
    pub(crate) fn set_gone(&mut self, job: JobId, place: u32, at: Option<Mono>) {
        let running = self.jobs.at(job).running.get_mut(&place).expect("it runs");
        let before = std::mem::replace(&mut running.gone, at);
        if (before, at) == (None, None) {
            return;
        }
        let lost = (Arc::clone(&running.key), job, place);
        if at.is_some() {
            self.jobs.lost.insert(lost);
        } else if before.is_some() {
            self.jobs.lost.remove(&lost);
        }
        self.set_timer(before, at, Due::Gone(job, place));
    }

    fn set_timer(&mut self, before: Option<Mono>, at: Option<Mono>, due: Due) {
        if let Some(before) = before {
            self.jobs.timers.remove(&(before, due));
        }
        if let Some(at) = at {
            self.jobs.timers.insert((at, due));
        }
    }
}
