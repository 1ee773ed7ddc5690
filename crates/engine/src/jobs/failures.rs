//! The limit on failed tasks of a job. When it is exceeded, the job is over: its other tasks are cancelled, and none is
//! started until that is stored.

use turno_proto::model::job::JobId;

use super::Jobs;
use super::context::JobsContext;
use super::job::{Job, PendingChange};
use super::ranges::Ranges;
use crate::effect::Sink;

impl Job {
    /// More have failed than may, since the last retry.
    pub(super) fn has_too_many_failures(&self) -> bool {
        self.spec.max_failures.is_some_and(|max| self.ended.failed.saturating_sub(self.forgiven) > max)
    }

    /// All of its tasks were cancelled, or are about to be.
    fn is_cancelled_as_a_whole(&self) -> bool {
        let all = |ranges: &Ranges| ranges.len() == self.spec.array.count;
        all(&self.asked) || self.asking.iter().any(|ask| matches!(ask, PendingChange::Cancel(asked) if all(asked)))
    }
}

impl Jobs {
    /// A task has ended: if it was one failure too many, the rest ends as well.
    pub(super) fn end_after_failures(&mut self, cx: &mut JobsContext<'_>, id: JobId, out: &mut impl Sink) {
        let job = &self.all[&id];
        if job.has_too_many_failures() && !job.has_ended() && !job.is_cancelled_as_a_whole() {
            let all = Ranges::up_to(job.spec.array.count);
            self.cancel_places(cx, id, all, None, out);
        }
    }

    /// The last run may have ended between the failure and the cancel.
    pub(super) fn recover_failures(&mut self, cx: &mut JobsContext<'_>, id: JobId) {
        let now_unix_ms = cx.unix_ms();
        let job = self.at(id);
        if job.has_too_many_failures() && !job.has_ended() && !job.is_cancelled_as_a_whole() {
            job.asked = Ranges::up_to(job.spec.array.count);
            job.asked_unix_ms = Some(now_unix_ms);
            self.store_job(cx, id);
        }
    }
}
