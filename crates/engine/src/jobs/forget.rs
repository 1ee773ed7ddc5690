//! Jobs that have ended are kept for a while, and then forgotten as if somebody had removed them.

use turno_proto::model::Mono;
use turno_proto::model::job::JobId;
use turno_proto::model::limits::{FORGET_AGAIN_MS, FORGET_MAX, PORTION_PAUSE_MS};

use super::grace::Due;
use super::job::Job;
use crate::effect::Sink;
use crate::engine::Engine;

impl Engine {
    /// A job has ended, now or in an earlier run.
    pub(crate) fn keep_for_a_while(&mut self, id: JobId) {
        let ended = self.jobs.get(id).and_then(|job| job.ended_unix_ms);
        if let Some(ended) = ended.filter(|_| self.settings.keep_finished_ms.is_some()) {
            self.jobs.ended.insert((ended, id));
            self.set_forget_timer();
        }
    }

    /// It is not among those that have ended any more.
    pub(crate) fn forget_end(&mut self, job: &Job) {
        if let Some(ended) = job.ended_unix_ms
            && self.jobs.ended.remove(&(ended, job.id))
        {
            self.set_forget_timer();
        }
    }

    /// Removes those whose time is over, a portion at a time.
    pub(crate) fn forget_jobs(&mut self, out: &mut impl Sink) {
        self.jobs.forget_at = None;
        let is_due = |ended: u64| self.forget_due(ended).is_some_and(|at| at <= self.now);
        let due = self.jobs.ended.iter().take_while(|(ended, _)| is_due(*ended)).filter(|(_, id)| !self.is_going(*id));
        let due: Vec<(u64, JobId)> = due.take(FORGET_MAX).copied().collect();
        let mut later = None;
        for (ended, id) in &due {
            // One that goes on again, and ended anew since, has another moment.
            let is_over = |job: &Job| job.has_ended() && job.ended_unix_ms == Some(*ended);
            if !self.jobs.get(*id).is_some_and(is_over) {
                self.jobs.ended.remove(&(*ended, *id));
            } else if self.remove_job(None, *id, out).is_err() {
                // Another job has yet to learn of its end.
                later = Some(FORGET_AGAIN_MS);
            }
        }
        if due.len() == FORGET_MAX {
            later = later.or(Some(PORTION_PAUSE_MS));
        }
        self.jobs.forget_after = later.map(|pause| self.now.plus_millis(pause));
        self.set_forget_timer();
    }

    /// The disk refused to forget something.
    pub(crate) fn forget_later(&mut self) {
        self.jobs.forget_after = Some(self.now.plus_millis(FORGET_AGAIN_MS));
        self.set_forget_timer();
    }

    /// It is being removed already.
    fn is_going(&self, id: JobId) -> bool {
        self.jobs.get(id).is_some_and(|job| job.removing)
    }

    fn forget_due(&self, ended_unix_ms: u64) -> Option<Mono> {
        let keep = self.settings.keep_finished_ms?;
        Some(self.settings.mono(ended_unix_ms.saturating_add(keep)))
    }

    /// The next moment when something may be forgotten.
    fn set_forget_timer(&mut self) {
        let first = self.jobs.ended.iter().find(|(_, id)| !self.is_going(*id));
        let due = first.and_then(|(ended, _)| self.forget_due(*ended));
        let at = due.map(|due| self.jobs.forget_after.map_or(due, |after| due.max(after)));
        if at != self.jobs.forget_at {
            if let Some(before) = std::mem::replace(&mut self.jobs.forget_at, at) {
                self.jobs.timers.remove(&(before, Due::Forget));
            }
            self.jobs.timers.extend(at.map(|at| (at, Due::Forget)));
        }
    }
}
