//! Jobs come, are held and released, waited for and removed. Whoever asks is answered once it is stored.

use std::sync::Arc;

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::{JobId, JobSpec};
use turno_proto::model::limits::{JOB_WAITERS_MAX, JOBS_MAX};
use turno_proto::model::{Code, ConnId};
use turno_proto::submission;

use super::JobThen;
use super::explain::Look;
use super::job::Job;
use super::record::{CHUNK_TASKS, ShortEnd};
use crate::effect::{Effect, Sink};
use crate::engine::Engine;
use crate::persist::Persist;

impl Engine {
    /// A call about jobs. What it changes is answered once it is stored.
    pub(crate) fn job_call(&mut self, conn: ConnId, seq: u32, call: AdminCall, out: &mut impl Sink) {
        let answer = match call {
            AdminCall::JobSubmit { spec } => self.submit((conn, seq), *spec, out).map(|()| None),
            AdminCall::JobCancel { job, tasks } => {
                self.cancel_job((conn, seq), job, tasks.as_deref(), out).map(|()| None)
            }
            AdminCall::JobRetry { job, tasks, after } => {
                self.retry_job((conn, seq), job, tasks.as_deref(), after, out).map(|()| None)
            }
            AdminCall::JobHold { job } => self.hold((conn, seq), job, true, out).map(|()| None),
            AdminCall::JobRelease { job } => self.hold((conn, seq), job, false, out).map(|()| None),
            AdminCall::JobWait { job } => self.wait_for((conn, seq), job, out).map(|()| None),
            AdminCall::JobRm { job } => self.remove_job(Some((conn, seq)), job, out).map(|()| None),
            AdminCall::JobLs { before, limit } => Ok(Some(self.job_page(before, limit))),
            AdminCall::JobShow { job } => self.job_answer(job).map(Some),
            AdminCall::JobTasks { job, state, after, limit } => self.task_page(job, state, after, limit).map(Some),
            AdminCall::JobExplain { job, task } => self.explain_task(job, task).map(Some),
            _ => Err(Code::BadCall),
        };
        match answer {
            Ok(None) => {}
            Ok(Some(answer)) => out.effect(Effect::Answer { conn, seq, answer: Box::new(answer) }),
            Err(code) => out.effect(Effect::Error { conn, seq, code }),
        }
    }

    /// A job that somebody was told of.
    pub(crate) fn find_job(&self, id: JobId) -> Result<&Job, Code> {
        self.jobs.get(id).filter(|job| job.storing.is_none() && !job.removing).ok_or(Code::NotFound)
    }

    /// The caller hears how the job is now.
    pub(crate) fn tell_of(&self, id: JobId, caller: Option<(ConnId, u32)>, out: &mut impl Sink) {
        let Some(((conn, seq), job)) = caller.zip(self.jobs.get(id)) else { return };
        let answer = Box::new(AdminAnswer::Job { job: Box::new(self.job_view(job, Look::Brief, true)) });
        out.effect(Effect::Answer { conn, seq, answer });
    }

    fn submit(&mut self, caller: (ConnId, u32), spec: JobSpec, out: &mut impl Sink) -> Result<(), Code> {
        let known = spec.key.as_ref().and_then(|key| self.jobs.keys.get(key)).copied();
        if let Some(known) = known.filter(|known| !self.jobs.all[known].removing) {
            if !is_same(&self.jobs.at(known).spec, &spec) {
                return Err(Code::KeyTaken);
            }
            match self.jobs.at(known).storing.as_mut() {
                Some(waiters) => waiters.push(caller),
                None => self.tell_of(known, Some(caller), out),
            }
            return Ok(());
        }
        submission::check_numbers(&spec).map_err(|_| Code::BadJob)?;
        if spec.after.iter().any(|after| self.find_job(after.job).is_err()) {
            return Err(Code::BadJob);
        }
        if self.drain.is_some() {
            return Err(Code::Closing);
        }
        if self.jobs.all.len() >= JOBS_MAX {
            return Err(Code::TooManyJobs);
        }
        if !self.has_memory(bytes_of(&spec)) {
            return Err(Code::OverMemory);
        }
        self.jobs.last += 1;
        let id = JobId(self.jobs.last);
        let mut job = Job::new(id, Arc::new(spec), self.settings.unix_ms(self.now));
        job.storing = Some(vec![caller]);
        self.add_job(job);
        self.link_after(id);
        self.store_job(id);
        self.store_items(id);
        self.once_stored(JobThen::Submitted { job: id }, out);
        Ok(())
    }

    pub(crate) fn add_job(&mut self, job: Job) {
        if let Some(key) = &job.spec.key {
            self.jobs.keys.insert(key.clone(), job.id);
        }
        self.jobs.bytes += bytes_of(&job.spec);
        self.name_uploads(&job.spec);
        self.jobs.all.insert(job.id, job);
    }

    fn drop_job(&mut self, id: JobId) -> Option<Job> {
        let job = self.jobs.all.remove(&id)?;
        self.jobs.bytes -= bytes_of(&job.spec);
        self.jobs.ended_count -= usize::from(job.ended_unix_ms.is_some());
        if let Some(key) = &job.spec.key
            && self.jobs.keys.get(key) == Some(&id)
        {
            self.jobs.keys.remove(key);
        }
        self.jobs.doomed.remove(&id);
        self.jobs.owed_jobs.remove(&id);
        self.unlink_after(&job);
        self.jobs.past.forget(id);
        self.forget_archived(id, &job.spec);
        self.forget_end(&job);
        Some(job)
    }

    /// A new job is stored: it may begin, and those who asked hear of it.
    pub(crate) fn submit_stored(&mut self, id: JobId, out: &mut impl Sink) {
        let callers = self.jobs.at(id).storing.take().unwrap_or_default();
        self.jobs.refresh(id);
        self.doom_if_due(id, out);
        for caller in callers {
            self.tell_of(id, Some(caller), out);
        }
    }

    pub(crate) fn submit_not_stored(&mut self, id: JobId, code: Code, out: &mut impl Sink) {
        let job = self.drop_job(id);
        for (conn, seq) in job.and_then(|job| job.storing).unwrap_or_default() {
            out.effect(Effect::Error { conn, seq, code });
        }
    }

    fn hold(&mut self, caller: (ConnId, u32), id: JobId, held: bool, out: &mut impl Sink) -> Result<(), Code> {
        let job = self.find_job(id)?;
        if job.has_ended() {
            return Err(Code::JobEnded);
        }
        if job.held == held && job.holds.is_empty() {
            self.tell_of(id, Some(caller), out);
            return Ok(());
        }
        self.jobs.at(id).holds.push_back(held);
        self.jobs.refresh(id);
        self.store_job(id);
        self.once_stored(JobThen::Hold { job: id, caller }, out);
        Ok(())
    }

    pub(crate) fn hold_stored(&mut self, id: JobId, caller: (ConnId, u32), out: &mut impl Sink) {
        let job = self.jobs.at(id);
        job.held = job.holds.pop_front().expect("they are stored in order");
        self.jobs.refresh(id);
        self.tell_of(id, Some(caller), out);
    }

    pub(crate) fn hold_not_stored(&mut self, id: JobId, (conn, seq): (ConnId, u32), code: Code, out: &mut impl Sink) {
        self.jobs.at(id).holds.pop_front();
        self.jobs.owed_jobs.insert(id);
        self.jobs.refresh(id);
        out.effect(Effect::Error { conn, seq, code });
    }

    fn wait_for(&mut self, (conn, seq): (ConnId, u32), id: JobId, out: &mut impl Sink) -> Result<(), Code> {
        if self.find_job(id)?.has_ended() {
            self.tell_of(id, Some((conn, seq)), out);
            return Ok(());
        }
        if self.jobs.waiters.len() >= JOB_WAITERS_MAX {
            return Err(Code::TooManyInFlight);
        }
        self.jobs.waiters.insert((id, conn, seq));
        self.jobs.waiting_conns.insert((conn, id, seq));
        Ok(())
    }

    /// A job has ended, and that is stored: all who wait for it go on.
    pub(crate) fn job_ended(&mut self, id: JobId, out: &mut impl Sink) {
        let first = (id, ConnId { index: 0, generation: 0 }, 0);
        let waiters: Vec<_> = self.jobs.waiters.range(first..).take_while(|(job, ..)| *job == id).copied().collect();
        for waiter in waiters {
            let (_, conn, seq) = waiter;
            self.jobs.waiters.remove(&waiter);
            self.jobs.waiting_conns.remove(&(conn, id, seq));
            self.tell_of(id, Some((conn, seq)), out);
        }
        self.before_ended(id, out);
    }

    /// Who left waits for nothing.
    pub(crate) fn forget_waiter(&mut self, conn: ConnId) {
        let mine = self.jobs.waiting_conns.range((conn, JobId(0), 0)..).take_while(|(of, ..)| *of == conn);
        for (conn, job, seq) in mine.copied().collect::<Vec<_>>() {
            self.jobs.waiting_conns.remove(&(conn, job, seq));
            self.jobs.waiters.remove(&(job, conn, seq));
        }
    }

    /// Forgets a job; nobody is told if nobody asked.
    pub(crate) fn remove_job(
        &mut self,
        caller: Option<(ConnId, u32)>,
        id: JobId,
        out: &mut impl Sink,
    ) -> Result<(), Code> {
        let job = self.find_job(id)?;
        if !job.has_ended() || !job.retrying.is_empty() || self.jobs.dependents.contains_key(&id) {
            return Err(Code::JobNotEnded);
        }
        if self.settings.store.is_some() {
            let tasks: Vec<u32> = job.stored.iter().collect();
            let has_items = !job.spec.items.is_empty();
            let chunks: Vec<u32> =
                job.ended.chunks().filter(|(.., written)| *written).map(|(chunk, ..)| chunk).collect();
            if id.0 == self.jobs.last {
                self.durable.note(Persist::LastJob { job: id });
            }
            self.durable.note(Persist::UnsetJob { job: id });
            if has_items {
                self.durable.note(Persist::UnsetItems { job: id });
            }
            tasks.into_iter().for_each(|place| self.durable.note(Persist::UnsetTask { job: id, place }));
            chunks.into_iter().for_each(|chunk| self.durable.note(Persist::UnsetChunk { job: id, chunk }));
        }
        let job = self.jobs.all.get_mut(&id).expect("it was just found");
        job.removing = true;
        let chunks = job.spec.array.count.div_ceil(CHUNK_TASKS);
        for chunk in 0..chunks {
            self.jobs.full.remove(&(id, chunk));
        }
        self.once_stored(JobThen::Removed { job: id, caller }, out);
        Ok(())
    }

    pub(crate) fn removal_stored(&mut self, id: JobId, caller: Option<(ConnId, u32)>, out: &mut impl Sink) {
        self.tell_of(id, caller, out);
        self.drop_job(id);
    }

    pub(crate) fn removal_not_stored(
        &mut self,
        id: JobId,
        caller: Option<(ConnId, u32)>,
        code: Code,
        out: &mut impl Sink,
    ) {
        if let Some(job) = self.jobs.all.get_mut(&id) {
            job.removing = false;
            let chunks = job.spec.array.count.div_ceil(CHUNK_TASKS);
            (0..chunks).for_each(|chunk| self.note_full(id, chunk));
        }
        self.forget_later();
        if let Some((conn, seq)) = caller {
            out.effect(Effect::Error { conn, seq, code });
        }
    }
}

/// What a job counts for in memory, from its submission on: the records of how its tasks ended are part of it.
pub(crate) fn bytes_of(spec: &JobSpec) -> u64 {
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
