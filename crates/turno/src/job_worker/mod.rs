//! A job worker: the program that runs tasks of jobs. It speaks with the foreman over a [`link`], runs each [`task`] as a
//! process group of its own, and has a [`guard`] who sees to it that none of them outlives it.
//!
//! Here is its loop. It decides nothing about jobs: the foreman does.

mod disk;
#[cfg(test)]
mod double;
mod drain;
mod files;
pub(crate) mod guard;
pub(crate) mod link;
mod outbox;
mod queues;
mod scratch;
mod task;
mod tasks;
mod verdict;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, info};
use turno_broker::files::need_files;
use turno_client::{Options, StopMode, WorkerEnd, WorkerHandle};
use turno_proto::foreman::{ForemanSettings, TooManyProcs, Worker, WorkerEvent};
use turno_proto::model::Mono;
use turno_proto::model::limits::FOREMAN_HELLO_MS;

use self::drain::{Drain, Due};
use self::files::Files;
use self::guard::Guard;
use self::link::{ConnectFailure, Finder, ForemanPlace, Link, LinkEvent};
use self::outbox::Outbox;
use self::queues::Queues;
use self::scratch::Scratch;
use self::task::TaskContext;
use self::tasks::RunningTasks;
use crate::process::at;

pub(crate) use self::drain::JobWorkerEnd;

/// Files that a task keeps open here: its pipes, its process, and some for files of its own.
const FILES_PER_TASK: u64 = 8;

/// Settings of a job worker.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// For people.
    pub(crate) name: String,
    /// The id of the worker, the same over all its connections.
    pub(crate) id: String,
    pub(crate) slots: u16,
    pub(crate) labels: BTreeMap<String, String>,
    /// Below which it has its own directory; the system's for what is temporary if not set.
    pub(crate) work_dir: Option<PathBuf>,
    /// How long it may have nothing to do.
    pub(crate) idle_timeout: Option<Duration>,
    /// How long what runs may take when it is asked to end.
    pub(crate) drain_timeout: Duration,
    pub(crate) finder: Finder,
    /// How to reach the broker beside the foreman.
    pub(crate) broker: Options,
}

/// Why a job worker cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotBegin {
    #[error("cannot create the worker's directory")]
    Scratch(#[source] std::io::Error),
    #[error("cannot start the worker's watcher")]
    Guard(#[source] std::io::Error),
    #[error(transparent)]
    Slots(#[from] TooManyProcs),
    #[error(transparent)]
    NoWay(#[from] ConnectFailure),
}

/// Somebody wants the job worker to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndRequest {
    /// A signal, with the exit status it gives if it is the second one.
    Signal(u8),
    /// Its standard input has ended.
    InputEnded,
}

/// A report about a job worker, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerReport {
    /// The foreman knows it.
    Registered { place: ForemanPlace, again: bool },
    /// The connection is gone, with so many tasks running.
    Lost { reason: String, tasks: usize },
    /// The foreman is out of reach.
    NoWay(String),
    /// It takes nothing new; so much runs.
    Drains { end: JobWorkerEnd, tasks: usize, messages: usize, within: Option<Duration> },
    /// Running tasks are given back.
    Cuts { tasks: usize },
    /// The broker gave it fewer slots.
    Shrunk { slots: u16 },
    /// So many ends could not be told.
    Untold { tasks: usize },
    /// Output that could not be kept.
    OutputLost { tasks: u64, bytes: u64 },
}

/// A job worker that is connected.
pub(crate) struct JobWorker {
    settings: Settings,
    end: Worker,
    link: Link,
    place: ForemanPlace,
    context: TaskContext,
    scratch: Arc<Scratch>,
    tasks: RunningTasks,
    queues: Queues,
    drain: Drain,
    began: Instant,
    /// The foreman knows it, at least once.
    known: bool,
    /// The end of the last task.
    idle_since: Instant,
    /// The foreman has said that nothing more will come.
    exited: bool,
    said: Vec<WorkerReport>,
}

impl JobWorker {
    /// Connects to the foreman for the first time.
    pub(crate) async fn open(settings: Settings) -> Result<Self, CannotBegin> {
        let mut end = Worker::new(&settings.name, &settings.id, settings.slots, ForemanSettings::default())?;
        let (link, place) = Link::open(settings.finder.clone()).await?;
        need_files(FILES_PER_TASK * u64::from(settings.slots));
        let scratch =
            Scratch::new(settings.work_dir.as_deref(), &settings.id).map(Arc::new).map_err(CannotBegin::Scratch)?;
        let guard = Guard::start(&settings.id, scratch.root()).map_err(CannotBegin::Guard)?;
        let outbox = Outbox::start(&settings.id, settings.broker.clone());
        let files = Files::new(Arc::clone(&scratch), outbox.clone());
        let context = TaskContext { worker: Arc::from(settings.id.as_str()), guard, files, outbox };
        end.set_labels(settings.labels.clone());
        let now = Instant::now();
        end.connect(Mono::ZERO);
        Ok(Self {
            settings,
            end,
            link,
            place,
            context,
            scratch,
            tasks: RunningTasks::default(),
            queues: Queues::new(None),
            drain: Drain::new(),
            began: now,
            known: false,
            idle_since: now,
            exited: false,
            said: Vec::new(),
        })
    }

    /// Works until it ends. `ask` waits for a wish that it ends, and may be dropped at any time; `tell` is told what
    /// happens.
    pub(crate) async fn run<E>(
        mut self,
        queues: Option<Arc<WorkerHandle>>,
        mut ask: impl AsyncFnMut() -> EndRequest,
        mut tell: impl FnMut(&WorkerReport) -> Result<(), E>,
    ) -> Result<JobWorkerEnd, E> {
        self.queues = Queues::new(queues);
        while !self.is_over() {
            let due = self.due();
            tokio::select! {
                order = ask() => self.asked(order),
                update = self.tasks.next() => {
                    self.idle_since = Instant::now();
                    debug!(job = update.job, task = update.task, status = update.status, "a task ended");
                    self.end.task_ended(self.now(), update);
                }
                event = self.link.next() => self.linked(event),
                end = self.queues.ended() => self.queues_ended(end),
                () = at(due) => self.take_turn(),
            }
            self.hear();
            for said in self.said.drain(..) {
                tell(&said)?;
            }
        }
        self.leave().await.iter().try_for_each(tell)?;
        Ok(self.drain.end())
    }

    fn now(&self) -> Mono {
        Mono::from_micros(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// All is done, or nothing more can be.
    fn is_over(&self) -> bool {
        let quiet = self.tasks.is_empty() && self.queues.is_over();
        let told = self.exited || (self.end.unconfirmed() == 0 && !self.link.is_open());
        let left = !self.drain.works() && quiet && told;
        left || self.drain.due(Instant::now()) == Due::Leave
    }

    /// When something is to be done although nothing happens.
    fn due(&self) -> Option<Instant> {
        let end = self.end.next_deadline().map(|at| self.began + Duration::from_micros(at.as_micros()));
        let greeting = (!self.known).then(|| self.began + Duration::from_millis(FOREMAN_HELLO_MS));
        [end, greeting, self.drain.at(), self.idle_at()].into_iter().flatten().min()
    }

    fn idle_at(&self) -> Option<Instant> {
        let idles = self.drain.works() && self.tasks.is_empty();
        self.settings.idle_timeout.filter(|_| idles).and_then(|idle| self.idle_since.checked_add(idle))
    }

    fn take_turn(&mut self) {
        let now = Instant::now();
        self.end.handle_timeout(self.now());
        if !self.known && self.began + Duration::from_millis(FOREMAN_HELLO_MS) <= now {
            self.not_greeted("no handshake");
        }
        if self.idle_at().is_some_and(|at| at <= now) {
            if self.queues.in_flight() > 0 {
                self.idle_since = now;
            } else {
                self.drain(JobWorkerEnd::Idle, Some(self.settings.drain_timeout));
            }
        }
        if self.drain.due(now) == Due::Cut {
            self.say(WorkerReport::Cuts { tasks: self.tasks.len() });
            self.tasks.give_back(false);
            self.drain.cut(now);
        }
    }

    fn asked(&mut self, ask: EndRequest) {
        match ask {
            EndRequest::Signal(exit) if !self.drain.works() => {
                self.say(WorkerReport::Cuts { tasks: self.tasks.len() + self.queues.in_flight() });
                self.cut_now(JobWorkerEnd::Cut(exit));
            }
            EndRequest::Signal(_) | EndRequest::InputEnded => {
                self.drain(JobWorkerEnd::Asked, Some(self.settings.drain_timeout))
            }
        }
    }

    /// Takes nothing new, finishes what runs, and ends.
    fn drain(&mut self, end: JobWorkerEnd, within: Option<Duration>) {
        if !self.drain.begin(Instant::now(), end.clone(), within) {
            return;
        }
        let (tasks, messages) = (self.tasks.len(), self.queues.in_flight());
        self.say(WorkerReport::Drains { end, tasks, messages, within });
        self.end.shrink(self.now(), 0);
        self.queues.stop(within.unwrap_or(Duration::MAX));
    }

    fn cut_now(&mut self, end: JobWorkerEnd) {
        self.drain.cut_now(Instant::now(), end);
        self.end.shrink(self.now(), 0);
        self.tasks.give_back(true);
        self.queues.stop_now();
    }

    fn queues_ended(&mut self, end: WorkerEnd) {
        match end {
            WorkerEnd::StoppedByBroker(StopMode::Now) => self.cut_now(JobWorkerEnd::Stopped { now: true }),
            WorkerEnd::StoppedByBroker(StopMode::Drain) => self.drain(JobWorkerEnd::Stopped { now: false }, None),
            WorkerEnd::GaveUp(error) => self.drain(JobWorkerEnd::Queues(error), Some(self.settings.drain_timeout)),
            _ => {}
        }
    }

    fn linked(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Open { place } => {
                self.place = place;
                self.end.connect(self.now());
            }
            LinkEvent::Bytes => {
                let now = self.now();
                let used = self.end.handle_bytes(now, self.link.bytes());
                self.link.used(used);
            }
            LinkEvent::Lost { reason } => self.lost(reason),
            LinkEvent::NoWay(error) => self.say(WorkerReport::NoWay(error.to_string())),
        }
    }

    fn lost(&mut self, reason: String) {
        self.end.disconnect();
        if self.exited {
            // The foreman was the first to hang up.
            return;
        }
        if self.known {
            self.say(WorkerReport::Lost { reason, tasks: self.tasks.len() });
        } else {
            self.not_greeted(&reason);
        }
    }

    fn not_greeted(&mut self, reason: &str) {
        self.drain.cut_now(Instant::now(), JobWorkerEnd::NotGreeted(format!("{}: {reason}", self.place.foreman)));
        self.exited = true;
    }

    /// Does what the foreman's words ask for, and hands over what there is to say to it.
    fn hear(&mut self) {
        while let Some(event) = self.end.poll_event() {
            match event {
                WorkerEvent::Greeted => {
                    self.link.greeted();
                    let again = std::mem::replace(&mut self.known, true);
                    self.say(WorkerReport::Registered { place: self.place.clone(), again });
                }
                WorkerEvent::Start(tasks) => {
                    for task in tasks {
                        debug!(job = task.job, task = task.task, attempt = task.attempt, "a task begins");
                        self.tasks.start(task, self.context.clone());
                    }
                }
                WorkerEvent::Cancel(tasks) => tasks.into_iter().for_each(|task| self.tasks.cancel(task)),
                WorkerEvent::Stopping { max: 0 } => self.drain(JobWorkerEnd::Stopped { now: false }, None),
                WorkerEvent::Stopping { max } => {
                    self.queues.resize(max);
                    self.say(WorkerReport::Shrunk { slots: max });
                }
                WorkerEvent::Exit => self.exited = true,
                WorkerEvent::ExitNow => {
                    self.exited = true;
                    self.cut_now(JobWorkerEnd::Stopped { now: true });
                }
                WorkerEvent::Reported(task) => debug!(job = task.job, task = task.task, "its end is known"),
                WorkerEvent::NotReported { id, code } => {
                    info!(job = id.job, task = id.task, %code, "the broker rejected a task result");
                }
                WorkerEvent::Note(note) => debug!(%note, "the broker and this worker disagree"),
                WorkerEvent::Close(reason) => {
                    self.end.take_output(self.link.out());
                    self.link.close();
                    self.lost(reason.to_string());
                }
            }
        }
        self.end.take_output(self.link.out());
    }

    fn say(&mut self, said: WorkerReport) {
        self.said.push(said);
    }

    /// The last things. The connection ends after the tasks: the next worker must not run them a second time.
    async fn leave(&mut self) -> Vec<WorkerReport> {
        let mut said = Vec::new();
        let last = async {
            let _ = self.link.flush().await;
            while !self.tasks.is_empty() {
                self.tasks.next().await;
            }
        };
        let all_gone = tokio::time::timeout(Duration::from_secs(2), last).await.is_ok();
        let untold = self.end.unconfirmed();
        if untold > 0 && !matches!(self.drain.reason(), JobWorkerEnd::Stopped { now: true }) {
            said.push(WorkerReport::Untold { tasks: untold });
        }
        let lost = self.context.outbox.clone().close().await;
        if lost.bytes > 0 {
            said.push(WorkerReport::OutputLost { tasks: lost.tasks, bytes: lost.bytes });
        }
        if all_gone {
            self.context.guard.dismiss();
        }
        debug!(directory = %self.scratch.root().display(), "leaving");
        said
    }
}
