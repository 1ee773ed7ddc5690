//! Retries, as the oracle of jobs knows them. What a retry is asked for may come true at any moment until it is answered, and
//! if it never is, at any moment at all: an end from before that may be void.

use std::collections::BTreeSet;

use turno_proto::model::Mono;
use turno_proto::model::job::{JobSpec, TaskState, TaskView};

use crate::tasks::{Attempt, Known, Stage, Tasks};

/// A retry that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// These tasks; `None`: those that failed.
    pub(crate) tasks: Option<(u32, u32)>,
    pub(crate) asked: Mono,
    pub(crate) answered: Option<Mono>,
}

impl Retry {
    /// Whether it can make an end of that kind void: one that failed, or any other.
    fn names(&self, task: u32, failed: bool) -> bool {
        self.tasks.map_or(failed, |(first, last)| (first..=last).contains(&task))
    }

    /// Whether it may have come true after that moment.
    fn may_be_after(&self, moment: Mono) -> bool {
        self.answered.is_none_or(|answered| answered >= moment)
    }
}

impl Known {
    /// Whether the end of a task at that moment may be void.
    pub(crate) fn may_be_void(&self, task: u32, failed: bool, moment: Mono) -> bool {
        self.retries.iter().any(|retry| retry.names(task, failed) && retry.may_be_after(moment))
    }

    /// Whether somebody may have cancelled the task, and somebody retried it after that.
    pub(crate) fn may_be_cancelled_and_retried(&self, task: u32) -> bool {
        self.retries.iter().any(|retry| retry.names(task, false))
    }
}

impl Attempt {
    /// The foreman counts it as a failure, and no retry has made that void.
    pub(crate) fn is_lasting_failure(&self, known: &Known, task: u32) -> bool {
        let failed = matches!(self.stage, Stage::Told { success: false, firmly: true });
        failed && !known.may_be_void(task, true, self.over)
    }

    /// The same of one that finished.
    pub(crate) fn is_lasting_success(&self, known: &Known, task: u32) -> bool {
        let finished = matches!(self.stage, Stage::Told { success: true, firmly: true });
        finished && !known.may_be_void(task, false, self.over)
    }
}

impl Tasks {
    pub(crate) fn retries(&mut self, now: Mono, job: u64, tasks: Option<(u32, u32)>) {
        if let Some(known) = self.jobs.get_mut(&job) {
            known.retries.push(Retry { tasks, asked: now, answered: None });
        }
    }

    pub(crate) fn retried(&mut self, now: Mono, job: u64, tasks: Option<(u32, u32)>, asked: Mono) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let same = |retry: &&mut Retry| (retry.tasks, retry.asked) == (tasks, asked);
        if let Some(retry) = known.retries.iter_mut().find(same) {
            retry.answered.get_or_insert(now);
        }
    }

    /// So many tasks of the job may have failed that the foreman ended it. A liar may say so of any task, and an attempt that
    /// never arrived at its worker shows only in the end: `rows` are then the tasks.
    pub(crate) fn may_have_too_many_failures(&self, job: u64, rows: Option<&[TaskView]>) -> bool {
        let Some(max) = self.jobs.get(&job).and_then(|known| self.asked[&known.number].max_failures) else {
            return false;
        };
        if self.lax {
            return true;
        }
        let of_job = self.attempts.range((job, 0, 0)..=(job, u32::MAX, u32::MAX));
        let failed = of_job.filter(|(_, attempt)| {
            !matches!(attempt.stage, Stage::Said { success: true } | Stage::Told { success: true, firmly: true })
        });
        let mut failed: BTreeSet<u32> = failed.map(|((_, task, _), _)| *task).collect();
        let is_unseen = |task: u32, attempt: u32| !self.attempts.contains_key(&(job, task, attempt));
        match rows {
            Some(rows) => {
                let unseen = rows.iter().filter(|row| (1..=row.attempt).any(|attempt| is_unseen(row.task, attempt)));
                failed.extend(unseen.map(|row| row.task));
            }
            None => {
                let array = self.asked[&self.jobs[&job].number].array;
                let all = (0..array.count).map(|place| array.number_of(place));
                failed.extend(all.filter(|task| self.of_task(job, *task).next().is_none()));
            }
        }
        failed.len() > max as usize
    }

    /// A task that was confirmed to have ended and was then retried, with an answer: it ran again, and its earlier end is
    /// gone. Unless somebody cancelled it.
    pub(crate) fn judge_retried(&self, id: u64, known: &Known, spec: &JobSpec, row: &TaskView) {
        for (number, attempt) in self.of_task(id, row.task) {
            let Stage::Told { success, firmly: true } = attempt.stage else { continue };
            // With attempts left it has not ended.
            if !success && spec.retries > 0 {
                continue;
            }
            let after = |retry: &&Retry| {
                retry.names(row.task, !success) && retry.asked > attempt.told && retry.answered.is_some()
            };
            let is_back = row.attempt <= number && row.state != TaskState::Cancelled;
            let retried = known.retries.iter().find(after);
            assert!(
                retried.is_none() || !is_back,
                "I20: {id}/{} was retried after attempt {number} had ended, and is {row:?}",
                row.task
            );
        }
    }
}
