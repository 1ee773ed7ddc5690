//! Earlier attempts of tasks, for explanations. They are kept in memory, up to a limit; after a restart of the broker
//! only the latest attempt of a task is known.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use turno_proto::model::job::{AttemptView, JobId};
use turno_proto::model::limits::{ATTEMPTED_TASKS_MAX, TASK_ATTEMPTS_KEPT_MAX};
use turno_proto::model::{Moment, Seconds};

use super::job::Job;
use super::record::TaskEnd;

/// Attempts that are over and were followed by another, by job and place.
#[derive(Debug, Default)]
pub(super) struct EarlierAttempts(BTreeMap<(JobId, u32), VecDeque<TaskEnd>>);

impl EarlierAttempts {
    /// Remembers an attempt. Beyond the limits the oldest are forgotten.
    pub(super) fn add(&mut self, job: JobId, place: u32, end: TaskEnd) {
        let ends = self.0.entry((job, place)).or_default();
        ends.push_back(end);
        if ends.len() > TASK_ATTEMPTS_KEPT_MAX {
            ends.pop_front();
        }
        if self.0.len() > ATTEMPTED_TASKS_MAX {
            self.0.pop_first();
        }
    }

    /// Forgets those of a job.
    pub(super) fn forget(&mut self, job: JobId) {
        let tasks: Vec<(JobId, u32)> = self.0.range((job, 0)..=(job, u32::MAX)).map(|(task, _)| *task).collect();
        tasks.iter().for_each(|task| drop(self.0.remove(task)));
    }

    /// Those of a task, in order.
    pub(super) fn of(&self, job: JobId, place: u32) -> Vec<AttemptView> {
        self.0.get(&(job, place)).into_iter().flatten().map(view).collect()
    }

    /// The tasks whose attempts are remembered.
    pub(super) fn tasks(&self) -> impl Iterator<Item = (JobId, u32)> {
        self.0.keys().copied()
    }
}

fn view(end: &TaskEnd) -> AttemptView {
    let [started_at, ended_at] = [end.started_unix_ms, end.ended_unix_ms].map(|at| Some(Moment::from_unix_ms(at)));
    AttemptView {
        attempt: end.attempt,
        state: end.state,
        worker: end.worker.to_string(),
        started_at,
        ended_at,
        seconds: Seconds::between(started_at, ended_at),
        exit_code: end.exit_code,
        signal: end.signal,
        status: Some(end.status.to_string()).filter(|status| !status.is_empty()),
    }
}

/// How a task ended that is about to wait again; `None` if it had not begun.
pub(super) fn end_so_far(job: &Job, place: u32) -> Option<TaskEnd> {
    let end = job.ended.get(place)?;
    Some(TaskEnd {
        state: end.state()?,
        attempt: u32::from(end.attempt),
        worker: job.ended.worker_of(end).map_or_else(Arc::default, Arc::clone),
        started_unix_ms: end.started_unix_ms(job.submitted_unix_ms),
        ended_unix_ms: end.ended_unix_ms(job.submitted_unix_ms),
        exit_code: end.exit_code(),
        signal: end.signal(),
        status: job.ended.status_of(place).map_or_else(Arc::default, Arc::clone),
    })
}
