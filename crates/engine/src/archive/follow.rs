//! Followed tasks: those whose output somebody reads live, which their workers then send in full.

use std::collections::VecDeque;

use turno_proto::model::Mono;
use turno_proto::model::job::JobId;
use turno_proto::model::limits::{FOLLOW_MS, FOLLOWED_TASKS_MAX, FOLLOWS_MAX};

/// Followed tasks, the oldest look first.
#[derive(Debug, Default)]
pub(super) struct Follows(VecDeque<Follow>);

/// A look at tasks of a job.
#[derive(Debug)]
struct Follow {
    job: JobId,
    tasks: Option<Vec<(u32, u32)>>,
    until: Mono,
}

impl Follow {
    fn has(&self, job: JobId, task: u32, now: Mono) -> bool {
        let of_tasks = |tasks: &Vec<(u32, u32)>| tasks.iter().any(|(first, last)| (*first..=*last).contains(&task));
        self.job == job && now < self.until && self.tasks.as_ref().is_none_or(of_tasks)
    }
}

impl Follows {
    pub(super) fn note(&mut self, job: JobId, tasks: Option<Vec<(u32, u32)>>, now: Mono) {
        self.0.retain(|follow| now < follow.until && (follow.job != job || follow.tasks != tasks));
        if self.0.len() >= FOLLOWS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Follow { job, tasks, until: now.plus_millis(FOLLOW_MS) });
    }

    pub(super) fn has(&self, job: JobId, task: u32, now: Mono) -> bool {
        self.0.iter().any(|follow| follow.has(job, task, now))
    }

    /// Those of some tasks that somebody looks at.
    pub(super) fn among(&self, tasks: impl Iterator<Item = (JobId, u32)>, now: Mono) -> Vec<(JobId, u32)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        tasks.filter(|(job, task)| self.has(*job, *task, now)).take(FOLLOWED_TASKS_MAX).collect()
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.0.retain(|follow| follow.job != job);
    }

    pub(super) fn check(&self) {
        assert!(self.0.len() <= FOLLOWS_MAX, "looks are counted");
        assert!(self.0.iter().is_sorted_by_key(|follow| follow.until), "the oldest look is first");
    }
}
