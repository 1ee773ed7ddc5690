//! Lost job workers: their tasks count as lost after the grace time (S4.76).

use std::sync::Arc;

use turno_proto::model::ConnId;
use turno_proto::model::job::{JobId, TaskState};
use turno_proto::model::limits::TASK_LOSSES_MAX;

use super::Jobs;
use super::context::JobsContext;
use super::job::{Phase, StopReason};
use super::job_worker::HeldTask;
use super::record::TaskEnd;
use super::timers::JobTimer;
use super::update::{GIVEN_BACK, WORKER_LOST, end_of};
use crate::effect::Sink;

impl Jobs {
    /// The job worker is gone. What it had may still run there: it stays as it is for a while (S4.76).
    pub(super) fn lose_job_worker(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, out: &mut impl Sink) {
        if self.reserved.is_some_and(|(_, kept)| kept == conn) {
            self.reserved = None;
        }
        if !self.is_job_worker(conn) {
            return;
        }
        self.part(cx, conn);
        self.hide(conn);
        let Some(job_worker) = self.job_workers.by_conn.remove(&conn) else { return };
        self.due = true;
        if job_worker.has_id {
            self.job_workers.by_key.remove(&job_worker.key);
        }
        if let Some(until) = job_worker.paused {
            self.timers.remove(&(until, JobTimer::Pause(conn)));
        }
        for ((id, place), HeldTask { attempt, .. }) in job_worker.held {
            let Some(running) = self.running_at(conn, id, place, attempt) else {
                self.may_start_again((id, place));
                continue;
            };
            running.conn = None;
            let (phase, stop, is_ending) = (running.phase, running.stop, running.ending.is_some());
            match (phase, stop) {
                (Phase::Storing, _) => {
                    self.take_back(cx, id, place, out);
                    self.store_waiting(cx, id, place);
                }
                _ if is_ending => {}
                (_, Some(StopReason::Cancel)) => self.end_cancelled(cx, id, place, false, out),
                (_, Some(StopReason::TimeLimit)) => self.attempt_failed(cx, id, place, None, out),
                _ if job_worker.ends_now => self.gave_up(cx, id, place),
                _ => self.set_gone(id, place, Some(cx.now.plus_millis(cx.settings.task_grace_ms))),
            }
        }
    }

    /// The broker itself ended the worker of that task: another attempt, and nobody failed.
    fn gave_up(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32) {
        let job = self.at(id);
        let attempt = job.running[&place].attempt;
        job.tried.entry(place).or_default().attempt = attempt;
        self.remember_attempt(cx, id, place, TaskState::Cancelled, GIVEN_BACK);
        self.task_waits_again(id, place, None);
        self.store_waiting(cx, id, place);
    }

    /// A task's worker did not come back, or does not know of the task.
    pub(super) fn lose(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, out: &mut impl Sink) {
        self.free_slots(cx, id, place);
        let job = self.at(id);
        let running = &job.running[&place];
        let (attempt, stop) = (running.attempt, running.stop);
        match stop {
            Some(StopReason::Cancel) => return self.end_cancelled(cx, id, place, false, out),
            Some(StopReason::TimeLimit) => return self.attempt_failed(cx, id, place, None, out),
            None => {}
        }
        let tried = job.tried.entry(place).or_default();
        tried.attempt = attempt;
        tried.losses = tried.losses.saturating_add(1);
        if tried.losses > TASK_LOSSES_MAX {
            return self.end_lost(cx, id, place, out);
        }
        self.remember_attempt(cx, id, place, TaskState::Failed, WORKER_LOST);
        self.task_waits_again(id, place, None);
        self.store_waiting(cx, id, place);
    }

    /// Remembers the attempt of a task that runs and is over now, for a reason that no worker told.
    fn remember_attempt(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, state: TaskState, status: &str) {
        let now_unix_ms = cx.unix_ms();
        let end = TaskEnd { status: Arc::from(status), ..end_of(self.at(id), place, state, now_unix_ms) };
        self.past.add(id, place, end);
    }
}
