//! Jobs: arrays of tasks, and the job workers that run them (document 004, S4.70 to S4.82).
//!
//! This is a machine: [`Jobs::handle`] takes what happens to jobs, [`Jobs::go_on`] does what follows, its other methods
//! answer what others may ask, and nobody sees its fields. It reaches the rest only by [`JobsContext`].
//!
//! A task is offered after its start is stored, and an update is acknowledged after what it says is: so a restarted broker
//! knows every task that a worker may have, and every end that a worker was told to forget.

mod after;
mod cancel;
mod check;
mod context;
mod durable;
mod earlier_attempts;
mod ended;
mod event;
mod explain;
mod failures;
mod forget;
mod hello;
mod job;
mod job_worker;
mod labels;
mod lost;
mod offer;
mod order;
mod pair;
mod pools;
mod ranges;
mod received;
mod record;
mod recover;
mod retry;
mod submit;
mod timers;
mod update;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::JobId;
use turno_proto::model::{Code, ConnId, Mono};

use crate::effect::{Caller, PeerEffect, Sink};

pub(crate) use self::context::{Consequence, JobsContext};
pub(crate) use self::durable::JobAfterStored;
use self::earlier_attempts::EarlierAttempts;
pub use self::event::{ForemanEvent, ForemanOrder, Hello, OfferedTask, RunningTask, Update};
use self::job::Job;
use self::job_worker::JobWorkers;
use self::pools::Pools;
pub use self::record::{AttemptCounts, CHUNK_TASKS, ChunkRecord, JobRecord, ShortEnd, StoredJobs, TaskEnd, TaskRecord};
use self::timers::JobTimer;

/// An input of jobs.
#[derive(Debug)]
pub(crate) enum JobsInput {
    /// A foreman's connection said something.
    Foreman { conn: ConnId, event: ForemanEvent },
    /// An admin asks for something.
    Call { caller: Caller, call: AdminCall },
    /// A connection is gone, a foreman's or another.
    Lost { conn: ConnId },
    /// The record that this step waited for is on disk.
    Stored(JobAfterStored),
    /// The record that this step waited for will not be on disk.
    NotStored(JobAfterStored, Code),
    /// Refused records are written again, once a second.
    TryDiskAgain,
    /// Time passed.
    Tick,
}

/// All jobs, and all who work on them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    all: BTreeMap<JobId, Job>,
    /// The highest number of a job so far.
    last: u64,
    /// By the key of their submitter.
    keys: BTreeMap<String, JobId>,
    /// Bytes of what all of them do.
    bytes: u64,
    /// Earlier attempts of their tasks.
    past: EarlierAttempts,
    /// Those that something can be started of, and the job workers they may use.
    pools: Pools,
    job_workers: JobWorkers,
    /// Native connections that are workers of a foreman as well, by their key and the other way round.
    natives: BTreeMap<Arc<str>, ConnId>,
    native_keys: BTreeMap<ConnId, Arc<str>>,
    /// Those whose paired connection may have other room.
    pairs: BTreeSet<ConnId>,
    /// A job whose tasks are wide, and the job worker that is kept free for the next of them.
    reserved: Option<(JobId, ConnId)>,
    /// The numbers of the latest offer and the latest cancel.
    offers: u64,
    cancels: u64,
    timers: BTreeSet<(Mono, JobTimer)>,
    /// Running tasks that may be lost, by what their worker is known by.
    lost: BTreeSet<(Arc<str>, JobId, u32)>,
    /// Callers that wait for the end of a job, and the same the other way round.
    waiters: BTreeSet<(JobId, ConnId, u32)>,
    waiting_conns: BTreeSet<(ConnId, JobId, u32)>,
    /// Jobs that wait for the end of a job.
    dependents: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Jobs that can no longer begin, and whose end the disk refused.
    doomed: BTreeSet<JobId>,
    /// Jobs that have just ended, for those who wait for it.
    just_ended: VecDeque<JobId>,
    /// How many jobs have ended.
    ended_count: usize,
    /// Slots of workers that an admin lowered, by the id of the worker.
    resized: BTreeMap<Arc<str>, u32>,
    /// Jobs that have ended, by when; one that goes on again may still be here under its former end.
    ended: BTreeSet<(u64, JobId)>,
    /// When the first of them is forgotten, and not before when.
    forget_at: Option<Mono>,
    forget_after: Option<Mono>,
    /// Chunks that have ended and are not brought together on the disk.
    full: BTreeSet<(JobId, u32)>,
    /// Some of them are on their way there.
    writing: bool,
    /// Ends of attempts that the disk refused.
    unwritten_ends: BTreeSet<(JobId, u32)>,
    /// Jobs whose record on disk may say what was refused later.
    unwritten_jobs: BTreeSet<JobId>,
    /// The disk takes nothing: nothing is started until then.
    disk_until: Option<Mono>,
    /// Something may go on.
    due: bool,
}

impl Jobs {
    /// Bytes of memory that jobs count as.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// A job worker whose paired connection may have become another's is looked at again.
    pub(crate) fn look_at(&mut self, job_worker: ConnId) {
        self.pairs.insert(job_worker);
        self.due = true;
    }

    /// Tasks may be offered again.
    pub(crate) const fn may_go_on(&mut self) {
        self.due = true;
    }

    /// Whether that connection is a foreman's.
    pub(crate) fn is_job_worker(&self, conn: ConnId) -> bool {
        self.job_workers.by_conn.contains_key(&conn)
    }

    /// The labels of a job worker.
    pub(crate) fn labels_of(&self, conn: ConnId) -> BTreeMap<String, String> {
        self.job_workers.get(conn).map(|job_worker| job_worker.labels.clone()).unwrap_or_default()
    }

    /// Slots that a worker for jobs says it has.
    pub(crate) fn procs_of(&self, conn: ConnId) -> Option<u32> {
        self.job_workers.get(conn).map(|job_worker| job_worker.procs)
    }

    /// Whether the disk refused something that must be written again.
    pub(crate) fn has_pending_writes(&self) -> bool {
        !self.unwritten_ends.is_empty() || !self.unwritten_jobs.is_empty() || !self.doomed.is_empty()
    }

    fn get(&self, job: JobId) -> Option<&Job> {
        self.all.get(&job)
    }

    /// A job that rooms know to be there.
    fn at(&mut self, job: JobId) -> &mut Job {
        self.all.get_mut(&job).expect("rooms hold numbers of jobs that are there")
    }

    /// The job may be ready now, or not any more.
    fn refresh(&mut self, id: JobId) {
        let Some(job) = self.all.get_mut(&id) else { return };
        let turn = job.is_ready().then(|| job.turn());
        if turn == job.placed {
            return;
        }
        let width = job.spec.slots;
        if let Some(before) = std::mem::replace(&mut job.placed, turn) {
            self.pools.remove(&job.labels, width, before);
        }
        if let Some(turn) = turn {
            self.pools.insert(&job.labels, width, turn, &mut self.job_workers);
        }
        self.due = true;
    }
}

impl Jobs {
    /// Takes one input. What follows for jobs themselves is done by [`Jobs::go_on`].
    pub(crate) fn handle(&mut self, cx: &mut JobsContext<'_>, input: JobsInput, out: &mut impl Sink) {
        match input {
            JobsInput::Foreman { conn, event } => self.foreman(cx, conn, event, out),
            JobsInput::Call { caller, call } => self.job_call(cx, caller, call, out),
            JobsInput::Lost { conn } => {
                self.forget_waiter(conn);
                self.forget_native(cx, conn);
                self.lose_job_worker(cx, conn, out);
            }
            JobsInput::Stored(then) => self.job_stored(cx, then, out),
            JobsInput::NotStored(then, code) => self.job_not_stored(cx, then, code, out),
            JobsInput::TryDiskAgain => self.pay_jobs(cx, out),
            JobsInput::Tick => self.tick_jobs(cx, out),
        }
    }

    /// An event of a job worker.
    fn foreman(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, event: ForemanEvent, out: &mut impl Sink) {
        match event {
            ForemanEvent::Connected { address } => {
                cx.connected(conn, address);
                self.job_workers.by_conn.insert(conn, job_worker::JobWorker::default());
            }
            _ if !self.is_job_worker(conn) => {}
            ForemanEvent::Hello(hello) => self.hello(cx, conn, hello, out),
            ForemanEvent::Accepted { offer } => self.accepted(cx, conn, offer),
            ForemanEvent::Refused { offer, slots_free } => self.refused_offer(cx, conn, offer, slots_free, out),
            ForemanEvent::Update(update) => self.updated(cx, conn, update, out),
            ForemanEvent::Cancelled { cancel } => self.cancel_confirmed(cx, conn, cancel, out),
            ForemanEvent::NoSuchJob { cancel } => self.nothing_to_cancel(cx, conn, cancel, out),
            ForemanEvent::Stopped => self.stopped(cx, conn),
        }
    }

    /// Whether something may go on; that is [`Jobs::go_on`].
    #[inline]
    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// Consequences of the input for jobs. More may be due then.
    pub(crate) fn go_on(&mut self, cx: &mut JobsContext<'_>, out: &mut impl Sink) {
        self.due = false;
        while let Some(job) = self.just_ended.pop_front() {
            self.job_ended(cx, job, out);
        }
        for pair in std::mem::take(&mut self.pairs) {
            self.show_job_worker(cx, pair);
        }
        self.hand_out(cx, out);
        self.write_chunks(cx);
    }

    fn order(conn: ConnId, order: ForemanOrder, out: &mut impl Sink) {
        out.peer(PeerEffect::Foreman { conn, order: Box::new(order) });
    }
}
