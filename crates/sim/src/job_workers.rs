//! A simulated job worker, with the real worker's end of the protocol. Its tasks take their time, end well or badly,
//! and die with it; a lost connection they do not notice.

use std::collections::{BTreeMap, VecDeque};

use turno_proto::foreman::{Counts, ForemanSettings, StatusUpdate, Task, WireTaskId, Worker};
use turno_proto::model::Mono;

use crate::rng::Rng;

/// How long a task takes that does not end by itself.
const HANGS_US: u64 = 3_600_000_000;

/// A task that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskRun {
    pub(crate) attempt: u32,
    procs: u16,
    success: bool,
}

/// The end of a task that nobody has confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportedEnd {
    pub(crate) id: WireTaskId,
    pub(crate) attempt: u32,
    pub(crate) success: bool,
}

#[derive(Debug)]
pub(crate) struct JobWorker {
    name: String,
    procs: u16,
    settings: ForemanSettings,
    worker: Worker,
    /// The beginning of a frame that has not arrived as a whole.
    inbox: Vec<u8>,
    running: BTreeMap<WireTaskId, TaskRun>,
    unreported: VecDeque<ReportedEnd>,
    /// Processors it may have busy, as far as it was told.
    max: u16,
    /// When its connection began.
    pub(crate) since: Mono,
    /// It dials nobody before that.
    pub(crate) not_before: Mono,
    /// It has ended.
    pub(crate) leaves: bool,
    /// Its process is gone, for now or for good.
    pub(crate) over: bool,
    /// It does not come back.
    pub(crate) lost: bool,
}

impl JobWorker {
    pub(crate) fn new(name: String, procs: u16, settings: ForemanSettings) -> Self {
        Self {
            worker: begin(&name, procs, settings),
            name,
            procs,
            settings,
            inbox: Vec::new(),
            running: BTreeMap::new(),
            unreported: VecDeque::new(),
            max: procs,
            since: Mono::ZERO,
            not_before: Mono::ZERO,
            leaves: false,
            over: false,
            lost: false,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn procs(&self) -> u16 {
        self.procs
    }

    /// A new process under the old name: nothing runs.
    pub(crate) fn start_over(&mut self) {
        self.worker = begin(&self.name, self.procs, self.settings);
        self.max = self.procs;
        (self.leaves, self.over) = (false, false);
    }

    /// The process is gone, and with it all that it knew.
    pub(crate) fn dies(&mut self) {
        self.over = true;
        self.running.clear();
        self.unreported.clear();
        self.worker.disconnect();
    }

    pub(crate) fn connected(&mut self, now: Mono) {
        self.inbox.clear();
        self.since = now;
        self.worker.connect(now);
    }

    pub(crate) fn disconnected(&mut self) {
        self.worker.disconnect();
    }

    pub(crate) fn hear(&mut self, now: Mono, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
        let used = self.worker.handle_bytes(now, &self.inbox);
        self.inbox.drain(..used);
    }

    pub(crate) fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.worker.next_deadline().filter(|_| !self.over)
    }

    /// A task begins; returns when it will be done.
    pub(crate) fn start(&mut self, now: Mono, task: &Task, stormy: bool, rng: &mut Rng) -> Mono {
        let micros = match rng.range(0, 10) {
            0..=4 => rng.range(0, 60_000),
            5..=8 => rng.range(60_000, 900_000),
            _ => rng.range(900_000, 5_000_000),
        };
        // Most end what has reached its time limit. Some leave that to the foreman, and then nobody else ends it.
        let limit = Some(task.time_limit * 1_000).filter(|limit| *limit > 0);
        let hangs = stormy && limit.is_some() && rng.once_in(3);
        let micros = if hangs { HANGS_US } else { micros };
        let limit = limit.filter(|limit| *limit < micros && !hangs);
        let success = limit.is_none() && !rng.once_in(if stormy { 4 } else { 12 });
        let doing = TaskRun { attempt: task.attempt, procs: task.procs, success };
        assert!(self.running.insert(task.id(), doing).is_none(), "I19: {:?} runs at {} twice", task.id(), self.name);
        let used = self.used();
        assert!(used <= self.procs, "I19: {used} of {} processors in use at {}", self.procs, self.name);
        Mono::from_micros(now.as_micros() + limit.unwrap_or(micros))
    }

    /// That attempt is over, by itself or because somebody ended it.
    pub(crate) fn end(&mut self, now: Mono, id: WireTaskId, attempt: u32, killed: bool) -> Option<ReportedEnd> {
        let doing = self.running.get(&id).copied().filter(|doing| doing.attempt == attempt)?;
        self.running.remove(&id);
        let said = ReportedEnd { id, attempt, success: doing.success && !killed };
        self.unreported.push_back(said);
        let exit_code = Some(i32::from(!said.success)).filter(|_| !killed);
        let signal = killed.then_some(15);
        let status = if said.success { String::new() } else { "it did not work".to_owned() };
        let update = StatusUpdate {
            job: id.job,
            task: id.task,
            success: said.success,
            status,
            exit_code,
            signal,
            ..StatusUpdate::default()
        };
        assert!(self.worker.task_ended(now, update), "I19: {} does not know of {id:?}, which ran there", self.name);
        Some(said)
    }

    pub(crate) fn running(&self, id: WireTaskId) -> Option<TaskRun> {
        self.running.get(&id).copied()
    }

    /// The foreman has it.
    pub(crate) fn reported(&mut self, id: WireTaskId) -> ReportedEnd {
        let at = self.unreported.iter().position(|said| said.id == id);
        let said = at.and_then(|at| self.unreported.remove(at));
        said.unwrap_or_else(|| panic!("I19: the end of {id:?} is confirmed to {}, which never said it", self.name))
    }

    pub(crate) fn stopping(&mut self, max: u16) {
        assert!(max <= self.max, "S4.74: {} is told to have {max} processors, and has {}", self.name, self.max);
        self.max = max;
    }

    fn used(&self) -> u16 {
        self.running.values().map(|doing| doing.procs).sum()
    }

    /// I19: what is free is what may be busy without what is.
    pub(crate) fn check(&self) {
        let (nrun, max) = (self.used(), self.max);
        let expected = Counts { nrun, nproc: max.saturating_sub(nrun) };
        assert_eq!(self.worker.counts(), expected, "I19: {} counts its processors wrongly", self.name);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.unreported.is_empty()
    }

    /// It was told to stop, has nothing to do, and is still there.
    pub(crate) const fn lingers(&self) -> bool {
        self.max == 0 && !self.over
    }

    /// Its remaining tasks, as text.
    pub(crate) fn unrest(&self) -> String {
        let (running, unreported) = (self.running.len(), self.unreported.len());
        format!("{}: {running} run, {unreported} unreported, {:?}", self.name, self.worker.state())
    }
}

fn begin(name: &str, procs: u16, settings: ForemanSettings) -> Worker {
    Worker::new(name, name, procs, settings).expect("few processors")
}
