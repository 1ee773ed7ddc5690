//! The harness of the tests of jobs: an engine, a disk, and methods for the messages of workers and admins.

mod workers;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use turno_engine::{
    ArchiveCall, ArchiveEffect, DiskEffect, Effect, Engine, ForemanOrder, Input, NativeEffect, PeerEffect, Persist,
    Settings, StoreSettings,
};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::{Array, JobId, JobReason, JobSpec, JobView, TaskCounts, TaskState, TaskView};
use turno_proto::model::limits::TASK_GRACE_MS;
use turno_proto::model::{Code, ConnId, Limits, Mono};

use super::store::Store;

/// When the first run's clock begins, in Unix milliseconds.
pub(super) const ZERO_UNIX_MS: u64 = 1_700_000_000_000;
/// Where every run's clock begins.
const START: Mono = Mono::from_millis(5_000);

/// An effect of the engine, without the numbers of offers and cancels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Job, task, attempt.
    Offer(ConnId, Vec<(u64, u32, u32)>),
    Ack(ConnId, u32),
    SendHello(ConnId, u32),
    Cancel(ConnId, u64, u32),
    Stop(ConnId),
    StopNow(ConnId),
    Close(ConnId, Code),
    /// An admin hears of a job: the number of the call, and how the job is.
    Job(u32, Box<JobView>),
    Error(u32, Code),
    Other(Effect),
}

pub(super) struct Farm {
    pub(super) engine: Engine,
    pub(super) now: Mono,
    zero: u64,
    pub(super) stores: bool,
    /// The disk stores everything at once.
    pub(super) quick: bool,
    pub(super) store: Store,
    /// What is on its way to the disk.
    pub(super) groups: VecDeque<(u64, Vec<Persist>)>,
    conns: u32,
    pub(super) admin: ConnId,
    pub(super) seqs: u32,
    requests: u32,
    offers: BTreeMap<ConnId, u64>,
    cancels: BTreeMap<(ConnId, u64, u32), u64>,
    /// What the archive was asked, with the number of the call.
    pub(super) archive: Vec<(u64, ArchiveCall)>,
    /// Names of workers for jobs.
    pub(super) job_workers: BTreeMap<ConnId, String>,
    /// STOPs that they have not answered.
    pub(super) stops: BTreeMap<ConnId, u32>,
    keep_ms: Option<u64>,
    grace_ms: u64,
    /// When the disk last refused something.
    pub(super) refused_at: Option<Mono>,
    /// Explanations are looked at after every so many steps.
    pub(super) explained_every: u32,
    steps: u32,
    /// What workers have, by their ids.
    pub(super) labels: BTreeMap<String, Vec<(String, String)>>,
}

/// Labels from their short form.
pub(super) fn labels(labels: &[(&str, &str)]) -> Vec<(String, String)> {
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn settings(zero: u64, stores: bool) -> Settings {
    let store = stores.then_some(StoreSettings { run: 1, unix_ms: zero, last_serial: 0 });
    Settings { store, ..Settings::default() }
}

/// A job of that many tasks, 1 and up.
pub(super) fn job(count: u32) -> JobSpec {
    JobSpec::new("test", Array { first: 1, count, step: 1 }, Bytes::from_static(b"\x80"))
}

/// The answer to a retry: the number of the call, how many tasks wait again, and where the next portion begins.
pub(super) fn retried(said: &Said) -> Option<(u32, u32, Option<u32>)> {
    let Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { seq, answer }, .. })) = said else {
        return None;
    };
    match **answer {
        AdminAnswer::Retried { tasks, next, .. } => Some((*seq, tasks, next)),
        _ => None,
    }
}

pub(super) fn counts(waiting: u32, running: u32, finished: u32, failed: u32, cancelled: u32) -> TaskCounts {
    TaskCounts { waiting, running, finished, failed, cancelled }
}

impl Farm {
    /// Without a disk.
    pub(super) fn in_memory() -> Self {
        Self::new(false)
    }

    /// With a disk that stores everything at once.
    pub(super) fn on_disk() -> Self {
        Self::new(true)
    }

    /// Jobs that have ended are known for so long. For the start.
    pub(super) fn keep_finished(&mut self, keep_ms: Option<u64>) {
        self.keep_ms = keep_ms;
        self.engine = self.new_engine();
        self.connect_admin();
    }

    /// Tasks stay with a lost worker for so long. For the start.
    pub(super) fn task_grace(&mut self, grace_ms: u64) {
        self.grace_ms = grace_ms;
        self.engine = self.new_engine();
        self.connect_admin();
    }

    fn new_engine(&self) -> Engine {
        let settings = settings(self.zero, self.stores);
        let settings = Settings { keep_finished_ms: self.keep_ms, task_grace_ms: self.grace_ms, ..settings };
        Engine::new(settings, START)
    }

    /// Without a disk, and with so many bytes of memory.
    pub(super) fn with_memory(bytes: u64) -> Self {
        let mut farm = Self::new(false);
        let limits = Limits { memory_bytes_max: bytes, ..Limits::default() };
        farm.engine = Engine::new(Settings { limits, ..settings(ZERO_UNIX_MS, false) }, START);
        farm.connect_admin();
        farm
    }

    fn new(stores: bool) -> Self {
        let admin = ConnId { index: 0, generation: 1 };
        let mut farm = Self {
            engine: Engine::new(settings(ZERO_UNIX_MS, stores), START),
            now: START,
            zero: ZERO_UNIX_MS,
            stores,
            quick: true,
            store: Store::default(),
            groups: VecDeque::new(),
            conns: 1,
            admin,
            seqs: 0,
            requests: 0,
            offers: BTreeMap::new(),
            cancels: BTreeMap::new(),
            archive: Vec::new(),
            job_workers: BTreeMap::new(),
            stops: BTreeMap::new(),
            keep_ms: None,
            grace_ms: TASK_GRACE_MS,
            refused_at: None,
            explained_every: 1,
            steps: 0,
            labels: BTreeMap::new(),
        };
        farm.connect_admin();
        farm
    }

    fn connect_admin(&mut self) {
        let conn = self.admin;
        self.step(Input::Connected { conn, name: "admin".to_owned(), address: "10.0.0.1:1".to_owned() });
        self.step(Input::Ready { conn });
    }

    pub(super) fn unix_ms(&self) -> u64 {
        self.zero + self.now.as_millis()
    }

    /// One input, and all that the disk makes of it if it is quick.
    pub(super) fn step(&mut self, input: Input) -> Vec<Said> {
        let mut said = self.one(input);
        while self.quick && !self.groups.is_empty() {
            said.extend(self.stored(1));
        }
        said
    }

    fn one(&mut self, input: Input) -> Vec<Said> {
        let mut out = Vec::new();
        self.engine.handle(self.now, input, &mut out);
        self.engine.sanity_check();
        let said = out.into_iter().filter_map(|effect| self.see(effect)).collect();
        self.steps += 1;
        if self.steps.is_multiple_of(self.explained_every) {
            self.check_explanations();
        }
        said
    }

    /// Lets time pass as a shell does: sleeping until the engine's next deadline.
    pub(super) fn pass(&mut self, millis: u64) -> Vec<Said> {
        let until = self.now.plus_millis(millis);
        let mut said = Vec::new();
        while let Some(next) = self.engine.next_deadline().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            said.extend(self.step(Input::Tick));
            assert!(self.engine.next_deadline().is_none_or(|next| next > self.now), "a tick does all that is due");
        }
        self.now = until;
        said
    }

    fn see(&mut self, effect: Effect) -> Option<Said> {
        Some(match effect {
            Effect::Disk(DiskEffect::Persist { group, op }) => {
                match self.groups.back_mut() {
                    Some((last, ops)) if *last == group => ops.push(op),
                    _ => self.groups.push_back((group, vec![op])),
                }
                return None;
            }
            Effect::Archive(ArchiveEffect { ticket, call }) => {
                self.archive.push((ticket, *call));
                return None;
            }
            Effect::Peer(PeerEffect::Foreman { conn, order }) => match *order {
                ForemanOrder::Offer { offer, tasks } => {
                    self.offers.insert(conn, offer);
                    Said::Offer(conn, tasks.iter().map(|task| (task.job.0, task.task, task.attempt)).collect())
                }
                ForemanOrder::Acknowledge { request } => Said::Ack(conn, request),
                ForemanOrder::SendHello { request } => Said::SendHello(conn, request),
                ForemanOrder::Cancel { cancel, job, task } => {
                    self.cancels.insert((conn, job.0, task), cancel);
                    Said::Cancel(conn, job.0, task)
                }
                ForemanOrder::Stop => {
                    *self.stops.entry(conn).or_default() += 1;
                    Said::Stop(conn)
                }
                ForemanOrder::StopNow => {
                    // One that ends at once has nothing to offer after its answer, too.
                    *self.stops.entry(conn).or_default() += 1_000;
                    Said::StopNow(conn)
                }
                ForemanOrder::Close { code } => Said::Close(conn, code),
            },
            Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { seq, answer }, .. }) => match *answer {
                AdminAnswer::Job { job } => Said::Job(seq, job),
                answer => Said::Other(Effect::Peer(PeerEffect::Native {
                    conn: self.admin,
                    effect: NativeEffect::Admin { seq, answer: Box::new(answer) },
                })),
            },
            Effect::Peer(PeerEffect::Answer { seq, result: Err(code), .. }) => Said::Error(seq, code),
            other => Said::Other(other),
        })
    }
}

/// The disk.
impl Farm {
    /// That many groups are stored.
    pub(super) fn stored(&mut self, count: usize) -> Vec<Said> {
        let mut said = Vec::new();
        for _ in 0..count {
            let Some((group, ops)) = self.groups.pop_front() else { break };
            ops.into_iter().for_each(|op| self.store.apply(op));
            said.extend(self.one(Input::Persisted { group }));
        }
        said
    }

    /// All that is on its way is stored, and all that follows.
    pub(super) fn flush(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        while !self.groups.is_empty() {
            said.extend(self.stored(1));
        }
        said
    }

    /// The next group is refused.
    pub(super) fn refuse(&mut self) -> Vec<Said> {
        let (group, _) = self.groups.pop_front().expect("something is on its way");
        self.refused_at = Some(self.now);
        self.one(Input::Refused { group, code: Code::OverDisk })
    }

    /// The broker ends at once; what was on its way is lost. The next one begins that much later.
    pub(super) fn restart(&mut self, after_ms: u64) {
        self.restart_at(self.unix_ms() + after_ms);
    }

    /// The same, and the clock on the wall was set back by so much.
    pub(super) fn restart_back(&mut self, by_ms: u64) {
        self.restart_at(self.unix_ms() - by_ms);
    }

    fn restart_at(&mut self, unix_ms: u64) {
        self.zero = unix_ms - START.as_millis();
        self.now = START;
        self.groups.clear();
        self.engine = self.new_engine();
        self.engine.recover_jobs(self.store.found());
        (self.job_workers, self.stops, self.refused_at) = (BTreeMap::new(), BTreeMap::new(), None);
        self.connect_admin();
    }
}

/// Admins.
impl Farm {
    pub(super) fn call(&mut self, call: AdminCall) -> Vec<Said> {
        self.seqs += 1;
        self.step(Input::Admin { conn: self.admin, seq: self.seqs, call })
    }

    /// A call that is answered with the job.
    pub(super) fn told(&mut self, call: AdminCall) -> (JobView, Vec<Said>) {
        let mut said = self.call(call);
        let at = said.iter().position(|said| matches!(said, Said::Job(seq, _) if *seq == self.seqs));
        match said.remove(at.unwrap_or_else(|| panic!("answered with a job, not {said:?}"))) {
            Said::Job(_, job) => (*job, said),
            _ => unreachable!("just found"),
        }
    }

    pub(super) fn refused(&mut self, call: AdminCall) -> Code {
        let said = self.call(call);
        match said[..] {
            [Said::Error(seq, code)] if seq == self.seqs => code,
            _ => panic!("{said:?} is no refusal"),
        }
    }

    pub(super) fn submit(&mut self, spec: JobSpec) -> (u64, Vec<Said>) {
        let (view, said) = self.told(AdminCall::JobSubmit { spec: Box::new(spec) });
        (view.id.0, said)
    }

    pub(super) fn show(&mut self, job: u64) -> JobView {
        self.told(AdminCall::JobShow { job: Some(JobId(job)) }).0
    }

    /// Why nothing of a job is started.
    pub(super) fn reason(&mut self, job: u64) -> Option<JobReason> {
        self.show(job).because.map(|because| because.0)
    }

    pub(super) fn cancel(&mut self, job: u64, tasks: Option<Vec<(u32, u32)>>) -> (JobView, Vec<Said>) {
        self.told(AdminCall::JobCancel { job: JobId(job), tasks })
    }

    /// Retries these tasks, or those that failed. How many wait again, and what is said besides.
    pub(super) fn retry(&mut self, job: u64, tasks: Option<Vec<(u32, u32)>>) -> (u32, Vec<Said>) {
        let mut said = self.call(AdminCall::JobRetry { job: JobId(job), tasks, after: None });
        let at = said.iter().position(|said| retried(said).is_some_and(|(seq, ..)| seq == self.seqs));
        let answer = said.remove(at.unwrap_or_else(|| panic!("answered with a number, not {said:?}")));
        (retried(&answer).map_or(0, |(_, tasks, _)| tasks), said)
    }

    pub(super) fn tasks(&mut self, job: u64, state: Option<TaskState>) -> Vec<TaskView> {
        self.task_page(AdminCall::JobTasks { job: JobId(job), state, after: None, limit: 1_000 }).0
    }

    /// The tasks that a call is answered with, and where the next page begins.
    pub(super) fn task_page(&mut self, call: AdminCall) -> (Vec<TaskView>, Option<u32>) {
        match self.call(call).into_iter().next() {
            Some(Said::Other(Effect::Peer(PeerEffect::Native {
                effect: NativeEffect::Admin { answer, .. }, ..
            }))) => match *answer {
                AdminAnswer::Tasks { tasks, next } => (tasks, next),
                answer => panic!("{answer:?} are no tasks"),
            },
            said => panic!("{said:?} are no tasks"),
        }
    }

    pub(super) fn task(&mut self, job: u64, task: u32) -> TaskView {
        self.tasks(job, None).into_iter().find(|view| view.task == task).expect("there is such a task")
    }
}

impl Farm {
    /// Something is stored, and so goes what was noted before.
    pub(super) fn submit_and_flush(&mut self) {
        self.call(AdminCall::JobSubmit { spec: Box::new(JobSpec { hold: true, ..job(1) }) });
        self.flush();
    }
}
