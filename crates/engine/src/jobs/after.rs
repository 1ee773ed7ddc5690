//! Dependencies between jobs: a job starts when the jobs before it have ended as required. If one of them ended
//! otherwise, the job is cancelled.

use turno_proto::model::job::{AfterWhen, JobId, JobState};

use super::Jobs;
use super::context::JobsContext;
use super::job::Job;
use super::ranges::Ranges;
use crate::effect::Sink;

/// Whether a job that ended like that is what another waits for.
const fn is_wanted(when: AfterWhen, state: JobState) -> bool {
    match when {
        AfterWhen::Any => true,
        AfterWhen::Ok => matches!(state, JobState::Finished),
        AfterWhen::Failed => matches!(state, JobState::Failed | JobState::Cancelled),
    }
}

impl Jobs {
    /// Looks at what a job comes after. What is not there any more had ended as it was wanted, or the job would have been
    /// cancelled before that was removed.
    pub(super) fn link_after(&mut self, id: JobId) {
        let after = std::mem::take(&mut self.at(id).after);
        let mut left = Vec::new();
        for one in after {
            let state = self.get(one.job).map(Job::state);
            if state.is_some_and(|state| !state.is_end() || !is_wanted(one.when, state)) {
                left.push(one);
                self.dependents.entry(one.job).or_default().insert(id);
            }
            if state.is_some_and(|state| state.is_end() && !is_wanted(one.when, state)) {
                self.at(id).miss(one);
                self.doomed.insert(id);
            }
        }
        self.at(id).after = left;
    }

    /// Nobody waits for other jobs in its name any more.
    pub(super) fn unlink_after(&mut self, job: &Job) {
        for one in &job.after {
            if let Some(dependents) = self.dependents.get_mut(&one.job) {
                dependents.remove(&job.id);
                if dependents.is_empty() {
                    self.dependents.remove(&one.job);
                }
            }
        }
    }

    /// A job has ended: those after it begin, or never will.
    pub(super) fn before_ended(&mut self, cx: &mut JobsContext<'_>, id: JobId, out: &mut impl Sink) {
        if let Some(mut job) = self.all.remove(&id) {
            // It needs nothing any more from those before it.
            self.unlink_after(&job);
            job.after.clear();
            self.all.insert(id, job);
        }
        let Some(state) = self.get(id).map(Job::state) else { return };
        for dependent in self.dependents.get(&id).cloned().unwrap_or_default() {
            let job = self.at(dependent);
            job.after.retain(|one| one.job != id || !is_wanted(one.when, state));
            if let Some(one) = job.after.iter().find(|one| one.job == id).copied() {
                job.miss(one);
                self.doomed.insert(dependent);
                self.doom_if_due(cx, dependent, out);
                continue;
            }
            if let Some(dependents) = self.dependents.get_mut(&id) {
                dependents.remove(&dependent);
                if dependents.is_empty() {
                    self.dependents.remove(&id);
                }
            }
            self.refresh(dependent);
        }
    }

    /// Cancels a job that can never begin, once it is stored itself.
    pub(super) fn doom_if_due(&mut self, cx: &mut JobsContext<'_>, id: JobId, out: &mut impl Sink) {
        let Some(job) = self.get(id).filter(|job| job.storing.is_none()) else { return };
        let all = Ranges::up_to(job.spec.array.count);
        if self.doomed.remove(&id) {
            self.cancel_places(cx, id, all, None, out);
        }
    }
}
