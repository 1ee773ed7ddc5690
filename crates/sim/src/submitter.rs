//! The submitter: it submits, changes and cancels jobs, and stops workers. In the calm it asks until all have ended,
//! and then how.

use std::collections::{BTreeMap, BTreeSet};

use turno_client::core::{Core, CoreEvent, Ticket};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::OutputPiece;
use turno_proto::model::job::{After, AfterWhen, Array, JobId, JobSpec, JobState, JobView, TaskView, Work};
use turno_proto::model::{Mono, Slots};
use turno_proto::work;

use crate::output::{self, Name};
use crate::rng::Rng;
use crate::tasks::{Tasks, name_of};

/// Jobs of one world.
const JOBS_MAX: u64 = 10;
/// Rows wanted at a time: more than there are.
const ROWS: u32 = 100;

#[derive(Clone, Debug)]
enum Call {
    Submit { number: u64 },
    Cancel { job: u64, first: u32, last: u32 },
    Retry { job: u64, tasks: Option<(u32, u32)>, asked: Mono },
    Wait { job: u64 },
    List,
    Tasks { job: u64 },
    HandIn { pieces: Vec<OutputPiece> },
    Output { job: u64, confirmed: Vec<(Name, u64)> },
    Follow { expected: Vec<(Name, u64)> },
    Other,
}

#[derive(Debug, Default)]
pub(crate) struct Submitter {
    tickets: u64,
    open: BTreeMap<u64, Call>,
    /// Jobs it knows of, as it was answered.
    jobs: BTreeSet<u64>,
    numbers: u64,
    /// The last listing, once all have ended.
    ended: BTreeMap<u64, JobView>,
    tasks: BTreeMap<u64, Vec<TaskView>>,
    /// Jobs whose output it has seen since.
    looked: BTreeSet<u64>,
    /// The jobs that had not ended at the last look, as text.
    left: Vec<String>,
    done: bool,
    /// Its latest calls, for the trace: number and description.
    said: Vec<(u64, String)>,
}

impl Submitter {
    pub(crate) fn take_said(&mut self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.said)
    }

    /// A new process knows nothing of what the last one asked.
    pub(crate) fn start_over(&mut self) {
        self.open.clear();
    }

    pub(crate) const fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) const fn verdict(&self) -> (&BTreeMap<u64, JobView>, &BTreeMap<u64, Vec<TaskView>>) {
        (&self.ended, &self.tasks)
    }

    fn call(&mut self, now: Mono, core: &mut Core, what: Call, call: AdminCall) {
        self.tickets += 1;
        self.said.push((self.tickets, format!("{call:?}")));
        self.open.insert(self.tickets, what);
        core.admin(now, Ticket(self.tickets), call);
    }

    fn some_job(&self, rng: &mut Rng) -> Option<u64> {
        (!self.jobs.is_empty()).then(|| self.jobs.iter().copied().nth(rng.index(self.jobs.len()))).flatten()
    }

    /// Does something at random; `job_workers` are the workers' names and sizes.
    pub(crate) fn act(
        &mut self,
        now: Mono,
        core: &mut Core,
        job_workers: &[(usize, String, u16)],
        tasks: &mut Tasks,
        rng: &mut Rng,
    ) {
        if self.open.len() > 8 {
            return;
        }
        match rng.range(0, 22) {
            0..=7 if self.numbers < JOBS_MAX => self.submit(now, core, tasks, rng),
            8 => {
                // The same again: it is the same job.
                let number = 1 + rng.range(0, self.numbers.max(1));
                if let Some(spec) = tasks.keyed(number) {
                    self.call(now, core, Call::Submit { number }, AdminCall::JobSubmit { spec: Box::new(spec) });
                }
            }
            9..=11 => {
                let Some(job) = self.some_job(rng) else { return };
                let (first, more) = (small(rng, 0, 10), small(rng, 0, 6));
                let (first, last) = if rng.once_in(4) { (0, u32::MAX) } else { (first, first + more) };
                tasks.cancels(now, job, first, last);
                let some = (last < u32::MAX).then(|| vec![(first, last)]);
                let call = AdminCall::JobCancel { job: JobId(job), tasks: some };
                self.call(now, core, Call::Cancel { job, first, last }, call);
            }
            12..=13 => {
                let Some(job) = self.some_job(rng).map(JobId) else { return };
                let call = if rng.once_in(2) { AdminCall::JobHold { job } } else { AdminCall::JobRelease { job } };
                self.call(now, core, Call::Other, call);
            }
            14 => {
                let Some(job) = self.some_job(rng) else { return };
                self.call(now, core, Call::Wait { job }, AdminCall::JobWait { job: JobId(job) });
            }
            15 if rng.once_in(2) => {
                let Some(job) = self.some_job(rng).filter(|job| tasks.may_be_removed(*job)) else { return };
                tasks.removes(job);
                self.call(now, core, Call::Other, AdminCall::JobRm { job: JobId(job) });
            }
            16..=17 => self.stop(now, core, &job_workers[rng.index(job_workers.len())], tasks, rng),
            18 => {
                let Some((name, job_worker)) = tasks.some_running(rng) else { return };
                let Some((_, worker, _)) = job_workers.iter().find(|(index, ..)| *index == job_worker) else { return };
                let pieces = tasks.outputs.hand_in(name, rng);
                let call = AdminCall::TaskOutput { worker: worker.clone(), pieces: pieces.clone() };
                self.call(now, core, Call::HandIn { pieces }, call);
            }
            19 => {
                let Some(job) = self.some_job(rng) else { return };
                self.look(now, core, job, tasks);
                if let Some((call, expected)) = tasks.outputs.follow() {
                    self.call(now, core, Call::Follow { expected }, call);
                }
            }
            20..=21 => {
                let Some(job) = self.some_job(rng) else { return };
                let (first, more) = (small(rng, 0, 10), small(rng, 0, 6));
                let some = rng.once_in(2).then_some((first, first + more));
                tasks.retries(now, job, some);
                let ranges = some.map(|range| vec![range]);
                let call = AdminCall::JobRetry { job: JobId(job), tasks: ranges, after: None };
                self.call(now, core, Call::Retry { job, tasks: some, asked: now }, call);
            }
            _ => {}
        }
    }

    /// Asks for the output of a job.
    fn look(&mut self, now: Mono, core: &mut Core, job: u64, tasks: &Tasks) {
        let confirmed = tasks.outputs.of_job(job);
        self.call(now, core, Call::Output { job, confirmed }, output::look(job));
    }

    fn submit(&mut self, now: Mono, core: &mut Core, tasks: &mut Tasks, rng: &mut Rng) {
        self.numbers += 1;
        let number = self.numbers;
        // Mostly what can come true; several only if all of them may.
        let most = if rng.once_in(2) { rng.range(0, 4) } else { 0 };
        let before: BTreeSet<u64> = (0..most).filter_map(|_| self.some_job(rng)).collect();
        let whens = [AfterWhen::Ok, AfterWhen::Any, AfterWhen::Any, AfterWhen::Failed];
        let after = before.into_iter().map(|job| After { job: JobId(job), when: whens[rng.index(4)] }).collect();
        let spec = JobSpec {
            slots: u16::try_from(if rng.once_in(3) { rng.range(1, 5) } else { 1 }).expect("small"),
            priority: u8::try_from(rng.range(3, 6)).expect("small"),
            max_parallel: rng.once_in(3).then(|| small(rng, 1, 4)),
            time_limit_ms: rng.once_in(4).then(|| rng.range(30, 1_500)),
            max_failures: rng.once_in(5).then(|| small(rng, 0, 4)),
            retries: u8::try_from(rng.range(0, 3)).expect("small"),
            backoff_ms: small(rng, 0, 700),
            after,
            hold: rng.once_in(8),
            key: rng.once_in(3).then(|| format!("key-{number}")),
            ..JobSpec::new(
                name_of(number),
                Array { first: small(rng, 0, 4), count: small(rng, 1, 13), step: small(rng, 1, 3) },
                work::encode(&Work { argv: vec!["true".to_owned()], ..Work::default() }).expect("short"),
            )
        };
        tasks.submits(number, &spec);
        self.call(now, core, Call::Submit { number }, AdminCall::JobSubmit { spec: Box::new(spec) });
    }

    fn stop(
        &mut self,
        now: Mono,
        core: &mut Core,
        (job_worker, name, procs): &(usize, String, u16),
        tasks: &mut Tasks,
        rng: &mut Rng,
    ) {
        let worker = name.clone();
        let call = match rng.range(0, 4) {
            0 if *procs > 1 => {
                AdminCall::WorkerResize { worker, slots: Slots::Limited(small(rng, 1, u64::from(*procs))) }
            }
            1 => {
                tasks.stops(*job_worker, true);
                AdminCall::WorkerStop { worker, now: true }
            }
            _ => {
                tasks.stops(*job_worker, false);
                AdminCall::WorkerStop { worker, now: false }
            }
        };
        self.call(now, core, Call::Other, call);
    }

    /// In the calm: asks how things are, until all have ended. What it asked for before is answered first.
    pub(crate) fn inquire(&mut self, now: Mono, core: &mut Core, tasks: &Tasks) {
        if self.done || !self.open.values().all(|call| matches!(call, Call::Wait { .. })) {
            return;
        }
        let unknown = self.ended.keys().find(|job| !self.tasks.contains_key(job)).copied();
        if let Some(job) = self.ended.keys().find(|job| !self.looked.contains(job)).copied()
            && unknown.is_none()
        {
            return self.look(now, core, job, tasks);
        }
        match unknown {
            Some(job) => {
                let call = AdminCall::JobTasks { job: JobId(job), state: None, after: None, limit: ROWS };
                self.call(now, core, Call::Tasks { job }, call);
            }
            None => self.call(now, core, Call::List, AdminCall::JobLs { before: None, limit: ROWS }),
        }
    }

    pub(crate) fn hear(&mut self, now: Mono, core: &mut Core, event: &CoreEvent, stormy: bool, tasks: &mut Tasks) {
        match event {
            CoreEvent::Admin { ticket, answer } => {
                if let Some(call) = self.open.remove(&ticket.0) {
                    self.answered(now, core, &call, answer, stormy, tasks);
                }
            }
            CoreEvent::Failed { ticket, .. } => {
                if let Some(Call::Follow { .. }) = self.open.remove(&ticket.0) {
                    tasks.outputs.unfollow();
                }
            }
            _ => {}
        }
    }

    fn answered(
        &mut self,
        now: Mono,
        core: &mut Core,
        call: &Call,
        answer: &AdminAnswer,
        stormy: bool,
        tasks: &mut Tasks,
    ) {
        match (call, answer) {
            (Call::Submit { number }, AdminAnswer::Job { job }) => {
                tasks.submitted(*number, job);
                self.jobs.insert(job.id.0);
            }
            (Call::Cancel { job, first, last }, AdminAnswer::Job { .. }) => tasks.cancelled(now, *job, *first, *last),
            (Call::Retry { job, tasks: some, asked }, AdminAnswer::Retried { .. }) => {
                tasks.retried(now, *job, *some, *asked);
            }
            (Call::Wait { job }, AdminAnswer::Job { job: view }) => {
                assert!(view.id.0 == *job && view.state.is_end(), "I19: a wait for {job} ended with {view:?}");
            }
            (Call::List, AdminAnswer::Jobs { jobs, .. }) if !stormy => {
                for held in jobs.iter().filter(|job| job.state == JobState::Held) {
                    self.call(now, core, Call::Other, AdminCall::JobRelease { job: held.id });
                }
                let left = jobs.iter().filter(|job| !job.state.is_end());
                self.left =
                    left.map(|job| format!("{} {:?} {:?} {:?}", job.id, job.state, job.counts, job.because)).collect();
                self.looked.clear();
                if jobs.iter().all(|job| job.state.is_end()) {
                    self.ended = jobs.iter().map(|job| (job.id.0, job.clone())).collect();
                    self.done = self.ended.is_empty();
                }
            }
            (Call::Tasks { job }, AdminAnswer::Tasks { tasks, .. }) => {
                self.tasks.insert(*job, tasks.clone());
            }
            (Call::HandIn { pieces }, answer) => tasks.outputs.confirmed(pieces, answer),
            (Call::Follow { expected }, answer) => tasks.outputs.judge_follow(expected, answer),
            (Call::Output { job, confirmed }, answer) => {
                tasks.outputs.judge(*job, confirmed, answer);
                self.looked.insert(*job);
                self.done = !stormy && !self.ended.is_empty() && self.has_all();
            }
            _ => {}
        }
    }

    /// Whether it knows all of all jobs.
    fn has_all(&self) -> bool {
        self.ended.keys().all(|job| self.tasks.contains_key(job) && self.looked.contains(job))
    }

    /// The reason why it waits, as text.
    pub(crate) fn unrest(&self) -> String {
        format!("the submitter waits for {:?} and the end of {:?}", self.open, self.left)
    }
}

fn small(rng: &mut Rng, low: u64, high: u64) -> u32 {
    u32::try_from(rng.range(low, high)).expect("small")
}
