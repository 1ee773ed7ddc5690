//! Removal of ended jobs after their retention time.

use turno_proto::model::Mono;
use turno_proto::model::job::JobId;
use turno_proto::model::limits::{FORGET_AGAIN_MS, FORGET_MAX, PORTION_PAUSE_MS};

use super::Jobs;
use super::context::JobsContext;
use super::job::Job;
use super::timers::JobTimer;
use crate::effect::Sink;

impl Jobs {
    /// A job has ended, now or in an earlier run.
    pub(super) fn keep_for_a_while(&mut self, cx: &mut JobsContext<'_>, id: JobId) {
        let ended = self.get(id).and_then(|job| job.ended_unix_ms);
        if let Some(ended) = ended.filter(|_| cx.settings.keep_finished_ms.is_some()) {
            self.ended.insert((ended, id));
            self.set_forget_timer(cx);
        }
    }

    /// It is not among those that have ended any more.
    pub(super) fn forget_end(&mut self, cx: &mut JobsContext<'_>, job: &Job) {
        if let Some(ended) = job.ended_unix_ms
            && self.ended.remove(&(ended, job.id))
        {
            self.set_forget_timer(cx);
        }
    }

    /// Removes those whose time is over, a portion at a time.
    pub(super) fn forget_jobs(&mut self, cx: &mut JobsContext<'_>, out: &mut impl Sink) {
        self.forget_at = None;
        let is_due = |ended: u64| self.forget_due(cx, ended).is_some_and(|at| at <= cx.now);
        let due = self.ended.iter().take_while(|(ended, _)| is_due(*ended)).filter(|(_, id)| !self.is_going(*id));
        let due: Vec<(u64, JobId)> = due.take(FORGET_MAX).copied().collect();
        let mut later = None;
        for (ended, id) in &due {
            // One that goes on again, and ended anew since, has another moment.
            let is_over = |job: &Job| job.has_ended() && job.ended_unix_ms == Some(*ended);
            if !self.get(*id).is_some_and(is_over) {
                self.ended.remove(&(*ended, *id));
            } else if self.remove_job(cx, None, *id, out).is_err() {
                // Another job has yet to learn of its end.
                later = Some(FORGET_AGAIN_MS);
            }
        }
        if due.len() == FORGET_MAX {
            later = later.or(Some(PORTION_PAUSE_MS));
        }
        self.forget_after = later.map(|pause| cx.now.plus_millis(pause));
        self.set_forget_timer(cx);
    }

    /// The disk refused to forget something.
    pub(super) fn forget_later(&mut self, cx: &mut JobsContext<'_>) {
        self.forget_after = Some(cx.now.plus_millis(FORGET_AGAIN_MS));
        self.set_forget_timer(cx);
    }

    /// It is being removed already.
    fn is_going(&self, id: JobId) -> bool {
        self.get(id).is_some_and(|job| job.removing)
    }

    fn forget_due(&self, cx: &JobsContext<'_>, ended_unix_ms: u64) -> Option<Mono> {
        let keep = cx.settings.keep_finished_ms?;
        Some(cx.settings.mono(ended_unix_ms.saturating_add(keep)))
    }

    /// The next moment when something may be forgotten.
    fn set_forget_timer(&mut self, cx: &mut JobsContext<'_>) {
        let first = self.ended.iter().find(|(_, id)| !self.is_going(*id));
        let due = first.and_then(|(ended, _)| self.forget_due(cx, *ended));
        let at = due.map(|due| self.forget_after.map_or(due, |after| due.max(after)));
        if at != self.forget_at {
            if let Some(before) = std::mem::replace(&mut self.forget_at, at) {
                self.timers.remove(&(before, JobTimer::Forget));
            }
            self.timers.extend(at.map(|at| (at, JobTimer::Forget)));
        }
    }
}
