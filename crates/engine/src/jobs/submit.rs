//! Submission, hold, release, wait and removal of jobs. Callers are answered once the change is stored.

use std::sync::Arc;

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::{JobId, JobSpec};
use turno_proto::model::limits::{JOB_WAITERS_MAX, JOBS_MAX};
use turno_proto::model::{Code, ConnId};
use turno_proto::submission;

use super::JobAfterStored;
use super::Jobs;
use super::context::{Consequence, JobsContext};
use super::explain::ExplainDepth;
use super::job::Job;
use super::record::{CHUNK_TASKS, ShortEnd};
use crate::effect::{Caller, Sink};
use crate::messages::disk::persist::Persist;

impl Jobs {
    /// A call about jobs. What it changes is answered once it is stored.
    pub(super) fn job_call(&mut self, cx: &mut JobsContext<'_>, caller: Caller, call: AdminCall, out: &mut impl Sink) {
        let answer = match call {
            AdminCall::JobSubmit { spec } => self.submit(cx, caller, *spec, out).map(|()| None),
            AdminCall::JobCancel { job, tasks } => {
                self.cancel_job(cx, caller, job, tasks.as_deref(), out).map(|()| None)
            }
            AdminCall::JobRetry { job, tasks, after } => {
                self.retry_job(cx, caller, job, tasks.as_deref(), after, out).map(|()| None)
            }
            AdminCall::JobHold { job } => self.hold(cx, caller, job, true, out).map(|()| None),
            AdminCall::JobRelease { job } => self.hold(cx, caller, job, false, out).map(|()| None),
            AdminCall::JobWait { job } => self.wait_for(cx, caller, job, out).map(|()| None),
            AdminCall::JobRm { job } => self.remove_job(cx, Some(caller), job, out).map(|()| None),
            AdminCall::JobLs { before, limit } => Ok(Some(self.job_page(cx, before, limit))),
            AdminCall::JobShow { job } => self.job_answer(cx, job).map(Some),
            AdminCall::JobTasks { job, state, after, limit } => self.task_page(cx, job, state, after, limit).map(Some),
            AdminCall::JobExplain { job, task } => self.explain_task(cx, job, task).map(Some),
            _ => Err(Code::BadCall),
        };
        match answer {
            Ok(None) => {}
            Ok(Some(answer)) => out.peer(caller.admin(Box::new(answer))),
            Err(code) => out.peer(caller.refused(code)),
        }
    }

    /// A job that somebody was told of.
    pub(super) fn find_job(&self, id: JobId) -> Result<&Job, Code> {
        self.get(id).filter(|job| job.storing.is_none() && !job.removing).ok_or(Code::NotFound)
    }

    /// The caller hears how the job is now.
    pub(super) fn tell_of(&self, cx: &JobsContext<'_>, id: JobId, caller: Option<Caller>, out: &mut impl Sink) {
        let Some((caller, job)) = caller.zip(self.get(id)) else { return };
        let answer = Box::new(AdminAnswer::Job { job: Box::new(self.job_view(cx, job, ExplainDepth::Brief, true)) });
        out.peer(caller.admin(answer));
    }

    fn submit(
        &mut self,
        cx: &mut JobsContext<'_>,
        caller: Caller,
        spec: JobSpec,
        out: &mut impl Sink,
    ) -> Result<(), Code> {
        let known = spec.key.as_ref().and_then(|key| self.keys.get(key)).copied();
        if let Some(known) = known.filter(|known| !self.all[known].removing) {
            if !is_same(&self.at(known).spec, &spec) {
                return Err(Code::KeyTaken);
            }
            match self.at(known).storing.as_mut() {
                Some(waiters) => waiters.push(caller),
                None => self.tell_of(cx, known, Some(caller), out),
            }
            return Ok(());
        }
        submission::check_numbers(&spec).map_err(|_| Code::BadJob)?;
        if spec.after.iter().any(|after| self.find_job(after.job).is_err()) {
            return Err(Code::BadJob);
        }
        if cx.draining {
            return Err(Code::Closing);
        }
        if self.all.len() >= JOBS_MAX {
            return Err(Code::TooManyJobs);
        }
        if bytes_of(&spec) > cx.memory_free {
            return Err(Code::OverMemory);
        }
        self.last += 1;
        let id = JobId(self.last);
        let mut job = Job::new(id, Arc::new(spec), cx.unix_ms());
        job.storing = Some(vec![caller]);
        self.add_job(cx, job);
        self.link_after(id);
        self.store_job(cx, id);
        self.store_items(cx, id);
        self.once_stored(cx, JobAfterStored::Submitted { job: id }, out);
        Ok(())
    }

    pub(super) fn add_job(&mut self, cx: &mut JobsContext<'_>, job: Job) {
        if let Some(key) = &job.spec.key {
            self.keys.insert(key.clone(), job.id);
        }
        self.bytes += bytes_of(&job.spec);
        if !job.spec.uploads.is_empty() {
            cx.cause(Consequence::JobCame(Arc::clone(&job.spec)));
        }
        self.all.insert(job.id, job);
    }

    fn drop_job(&mut self, cx: &mut JobsContext<'_>, id: JobId) -> Option<Job> {
        let job = self.all.remove(&id)?;
        self.bytes -= bytes_of(&job.spec);
        self.ended_count -= usize::from(job.ended_unix_ms.is_some());
        if let Some(key) = &job.spec.key
            && self.keys.get(key) == Some(&id)
        {
            self.keys.remove(key);
        }
        self.doomed.remove(&id);
        self.unwritten_jobs.remove(&id);
        self.unlink_after(&job);
        self.past.forget(id);
        cx.cause(Consequence::JobGone(id, Arc::clone(&job.spec)));
        self.forget_end(cx, &job);
        Some(job)
    }

    /// A new job is stored: it may begin, and those who asked hear of it.
    pub(super) fn submit_stored(&mut self, cx: &mut JobsContext<'_>, id: JobId, out: &mut impl Sink) {
        let callers = self.at(id).storing.take().unwrap_or_default();
        self.refresh(id);
        self.doom_if_due(cx, id, out);
        for caller in callers {
            self.tell_of(cx, id, Some(caller), out);
        }
    }

    pub(super) fn submit_not_stored(&mut self, cx: &mut JobsContext<'_>, id: JobId, code: Code, out: &mut impl Sink) {
        let job = self.drop_job(cx, id);
        for caller in job.and_then(|job| job.storing).unwrap_or_default() {
            out.peer(caller.refused(code));
        }
    }

    fn hold(
        &mut self,
        cx: &mut JobsContext<'_>,
        caller: Caller,
        id: JobId,
        held: bool,
        out: &mut impl Sink,
    ) -> Result<(), Code> {
        let job = self.find_job(id)?;
        if job.has_ended() {
            return Err(Code::JobEnded);
        }
        if job.held == held && job.holds.is_empty() {
            self.tell_of(cx, id, Some(caller), out);
            return Ok(());
        }
        self.at(id).holds.push_back(held);
        self.refresh(id);
        self.store_job(cx, id);
        self.once_stored(cx, JobAfterStored::Hold { job: id, caller }, out);
        Ok(())
    }

    pub(super) fn hold_stored(&mut self, cx: &mut JobsContext<'_>, id: JobId, caller: Caller, out: &mut impl Sink) {
        let job = self.at(id);
        job.held = job.holds.pop_front().expect("they are stored in order");
        self.refresh(id);
        self.tell_of(cx, id, Some(caller), out);
    }

    pub(super) fn hold_not_stored(&mut self, id: JobId, caller: Caller, code: Code, out: &mut impl Sink) {
        self.at(id).holds.pop_front();
        self.unwritten_jobs.insert(id);
        self.refresh(id);
        out.peer(caller.refused(code));
    }

    fn wait_for(
        &mut self,
        cx: &mut JobsContext<'_>,
        caller: Caller,
        id: JobId,
        out: &mut impl Sink,
    ) -> Result<(), Code> {
        if self.find_job(id)?.has_ended() {
            self.tell_of(cx, id, Some(caller), out);
            return Ok(());
        }
        if self.waiters.len() >= JOB_WAITERS_MAX {
            return Err(Code::TooManyInFlight);
        }
        let Caller { conn, seq } = caller;
        self.waiters.insert((id, conn, seq));
        self.waiting_conns.insert((conn, id, seq));
        Ok(())
    }

    /// A job has ended, and that is stored: all who wait for it go on.
    pub(super) fn job_ended(&mut self, cx: &mut JobsContext<'_>, id: JobId, out: &mut impl Sink) {
        let first = (id, ConnId { index: 0, generation: 0 }, 0);
        let waiters: Vec<_> = self.waiters.range(first..).take_while(|(job, ..)| *job == id).copied().collect();
        for waiter in waiters {
            let (_, conn, seq) = waiter;
            self.waiters.remove(&waiter);
            self.waiting_conns.remove(&(conn, id, seq));
            self.tell_of(cx, id, Some(Caller { conn, seq }), out);
        }
        self.before_ended(cx, id, out);
    }

    /// Forgets the calls of a connection that is gone.
    pub(super) fn forget_waiter(&mut self, conn: ConnId) {
        let mine = self.waiting_conns.range((conn, JobId(0), 0)..).take_while(|(of, ..)| *of == conn);
        for (conn, job, seq) in mine.copied().collect::<Vec<_>>() {
            self.waiting_conns.remove(&(conn, job, seq));
            self.waiters.remove(&(job, conn, seq));
        }
    }

    /// Forgets a job; nobody is told if nobody asked.
    pub(super) fn remove_job(
        &mut self,
        cx: &mut JobsContext<'_>,
        caller: Option<Caller>,
        id: JobId,
        out: &mut impl Sink,
    ) -> Result<(), Code> {
        let job = self.find_job(id)?;
        if !job.has_ended() || !job.retrying.is_empty() || self.dependents.contains_key(&id) {
            return Err(Code::JobNotEnded);
        }
        if cx.stores() {
            let tasks: Vec<u32> = job.stored.iter().collect();
            let has_items = !job.spec.items.is_empty();
            let chunks: Vec<u32> =
                job.ended.chunks().filter(|(.., written)| *written).map(|(chunk, ..)| chunk).collect();
            if id.0 == self.last {
                cx.note(Persist::LastJob { job: id });
            }
            cx.note(Persist::UnsetJob { job: id });
            if has_items {
                cx.note(Persist::UnsetItems { job: id });
            }
            tasks.into_iter().for_each(|place| cx.note(Persist::UnsetTask { job: id, place }));
            chunks.into_iter().for_each(|chunk| cx.note(Persist::UnsetChunk { job: id, chunk }));
        }
        let job = self.all.get_mut(&id).expect("it was just found");
        job.removing = true;
        let chunks = job.spec.array.count.div_ceil(CHUNK_TASKS);
        for chunk in 0..chunks {
            self.full.remove(&(id, chunk));
        }
        self.once_stored(cx, JobAfterStored::Removed { job: id, caller }, out);
        Ok(())
    }

    pub(super) fn removal_stored(
        &mut self,
        cx: &mut JobsContext<'_>,
        id: JobId,
        caller: Option<Caller>,
        out: &mut impl Sink,
    ) {
        self.tell_of(cx, id, caller, out);
        self.drop_job(cx, id);
    }

    pub(super) fn removal_not_stored(
        &mut self,
        cx: &mut JobsContext<'_>,
        id: JobId,
        caller: Option<Caller>,
        code: Code,
        out: &mut impl Sink,
    ) {
        if let Some(job) = self.all.get_mut(&id) {
            job.removing = false;
            let chunks = job.spec.array.count.div_ceil(CHUNK_TASKS);
            (0..chunks).for_each(|chunk| self.note_full(cx, id, chunk));
        }
        self.forget_later(cx);
        if let Some(caller) = caller {
            out.peer(caller.refused(code));
        }
    }
}

/// Bytes of memory that a job counts as, from its submission on: the records of its tasks' ends are part of them.
pub(super) fn bytes_of(spec: &JobSpec) -> u64 {
    let JobSpec { name, parts, work, items, labels, tags, uploads, .. } = spec;
    let labels: usize = labels.iter().map(|(key, value)| key.len() + value.len() + 2 * size_of::<String>()).sum();
    let tags: usize = tags.iter().map(|tag| tag.len() + size_of::<String>()).sum();
    let lists = size_of_val(&uploads[..]) + size_of_val(&parts[..]);
    let records = spec.array.count as usize * size_of::<ShortEnd>();
    (records + work.len() + items.len() + name.len() + labels + tags + lists + size_of::<Job>()) as u64
}

/// Whether a submission with the key of a job is that job's own, made again. Which jobs it starts after may differ: `last` is
/// another job the second time.
fn is_same(known: &JobSpec, spec: &JobSpec) -> bool {
    JobSpec { after: known.after.clone(), ..spec.clone() } == *known
}
