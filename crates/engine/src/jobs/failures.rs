//! A job may say how many of its tasks may fail. With one more it is over: those that have not ended are cancelled, and
//! nothing of it is started until that is stored.

use turno_proto::model::job::JobId;

use super::job::{Ask, Job};
use super::ranges::Ranges;
use crate::effect::Sink;
use crate::engine::Engine;

impl Job {
    /// More have failed than may, since the last retry.
    pub(crate) fn has_too_many_failures(&self) -> bool {
        self.spec.max_failures.is_some_and(|max| self.ended.failed.saturating_sub(self.forgiven) > max)
    }

    /// All of its tasks were cancelled, or are about to be.
    fn is_cancelled_as_a_whole(&self) -> bool {
        let all = |ranges: &Ranges| ranges.len() == self.spec.array.count;
        all(&self.asked) || self.asking.iter().any(|ask| matches!(ask, Ask::Cancel(asked) if all(asked)))
    }
}

impl Engine {
    /// A task has ended: if it was one failure too many, the rest ends as well.
    pub(crate) fn end_after_failures(&mut self, id: JobId, out: &mut impl Sink) {
        let job = &self.jobs.all[&id];
        if job.has_too_many_failures() && !job.has_ended() && !job.is_cancelled_as_a_whole() {
            let all = Ranges::up_to(job.spec.array.count);
            self.cancel_places(id, all, None, out);
        }
    }

    /// The last run may have ended between the failure and the cancel.
    pub(crate) fn recover_failures(&mut self, id: JobId) {
        let now_unix_ms = self.settings.unix_ms(self.now);
        let job = self.jobs.at(id);
        if job.has_too_many_failures() && !job.has_ended() && !job.is_cancelled_as_a_whole() {
            job.asked = Ranges::up_to(job.spec.array.count);
            job.asked_unix_ms = Some(now_unix_ms);
            self.store_job(id);
        }
    }
}
