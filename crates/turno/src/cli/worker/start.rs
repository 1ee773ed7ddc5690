//! `turno worker start`: runs the tasks of jobs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::sync::{oneshot, watch};
use turno_client::{Slots, Worker, WorkerHandle};
use turno_proto::model::limits::{FOREMAN_PROCS_MAX, LABEL_BYTES_MAX, WORKER_LABELS_MAX};
use turno_proto::model::{Code, units};

use crate::cli::Invocation;
use crate::cli::compose::{body_bytes_max, check_queue};
use crate::cli::connect;
use crate::cli::error::{Failure, remedy};
use crate::cli::help;
use crate::cli::schema::worker::RegisteredDocument;
use crate::cli::signals::Signals;
use crate::cli::work::{DeliveryRunner, Observer, Program, StderrPipe, cannot_work, default_name, handle};
use crate::job_worker::link::{ConnectFailure, Finder};
use crate::job_worker::{CannotBegin, EndRequest, JobWorker, JobWorkerEnd, Settings, WorkerReport};

/// Run tasks of jobs on this machine
///
/// Each task is a process group of its own, started without a shell in the directory of its job. Its environment has
/// TURNO_JOB_ID, TURNO_JOB_NAME, TURNO_TASK_ID, TURNO_TASK_COUNT, TURNO_ATTEMPT, TURNO_SLOTS and TURNO_WORKER_ID. A
/// task that is cancelled or exceeds its time limit gets SIGTERM, and SIGKILL 5 s later, with all processes that it
/// started. Processes that a task leaves running are killed 5 s after its end. Tasks continue while the broker is
/// unreachable and are reported afterwards. If the worker itself is killed, its tasks end too.
///
/// SIGTERM or Ctrl-C lets running tasks finish and accepts no new ones. Tasks that still run after --drain-timeout, or
/// at a second signal, are ended and go to other workers. With --queue the worker also consumes that queue, like `turno
/// work`; messages and tasks share its slots.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno worker start",
        "turno worker start --slots 8 --label gpu=a100 --pool render",
        "turno worker start --url turno://10.0.0.7:7460 --name node-3 --idle-timeout 10m",
        "turno worker start --slots 4 --queue thumbs -- convert - -resize 50% jpg:-",
    ],
    &[1, 5, 78, 130, 143],
))]
pub(crate) struct StartArgs {
    /// Slots for tasks; auto: one per CPU core
    #[arg(short, long, value_name = "N|auto", default_value = "auto", value_parser = parse_slots)]
    slots: u16,

    /// Worker name [default: host name and process id]
    #[arg(long)]
    name: Option<String>,

    /// Label that jobs can require; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,

    /// Same as --label pool=POOL
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,

    /// Parent of the tasks' directories [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,

    /// Stop after being idle for this long
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    idle_timeout: Option<Duration>,

    /// How long to wait for running work at shutdown
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = units::parse_duration)]
    drain_timeout: Duration,

    /// Address of the broker's job worker listener [default: as announced by the broker]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_place)]
    foreman: Option<String>,

    /// Also shut down when standard input closes
    #[arg(long)]
    until_eof: bool,

    /// Also consume this queue with the program after --; repeatable
    #[arg(long = "queue", value_name = "QUEUE", requires = "command")]
    queues: Vec<String>,

    /// The first line of the program's stdout lists the lengths of the reply's parts
    #[arg(long, requires = "command")]
    reply_parts: bool,

    /// Program and arguments for messages of these queues
    #[arg(last = true, requires = "queues", value_name = "CMD")]
    command: Vec<OsString>,
}

/// Reads a number of slots, or `auto`.
fn parse_slots(text: &str) -> Result<u16, String> {
    if text == "auto" {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        return Ok(u16::try_from(cores).unwrap_or(FOREMAN_PROCS_MAX).min(FOREMAN_PROCS_MAX));
    }
    match units::parse_count(text).map(u16::try_from) {
        Ok(Ok(count)) if (1..=FOREMAN_PROCS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("invalid number of slots: must be 1 to {FOREMAN_PROCS_MAX}, or auto")),
    }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("invalid label: expected KEY=VALUE")?;
    label(key, value)
}

fn label(key: &str, value: &str) -> Result<(String, String), String> {
    let is_fine = |text: &str| text.len() <= LABEL_BYTES_MAX && !text.chars().any(char::is_control);
    if key.is_empty() || !is_fine(key) || !is_fine(value) {
        return Err(format!("invalid label: expected KEY=VALUE, each at most {LABEL_BYTES_MAX} bytes"));
    }
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_place(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("invalid address: expected HOST:PORT".to_owned()),
    }
}

pub(crate) fn run(args: &StartArgs, invocation: &Invocation) -> Result<u8, Failure> {
    for queue in &args.queues {
        check_queue(queue)?;
    }
    let program = Program::find(&args.command, args.reply_parts)?.map(Arc::new);
    let stderr = StderrPipe::start();
    let end = connect::block_on(start(args, program, &stderr, invocation));
    // The runtime is gone, and with it every program that still ran.
    stderr.finish();
    end
}

async fn start(
    args: &StartArgs,
    program: Option<Arc<Program>>,
    stderr: &StderrPipe,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let settings = settings(args, invocation)?;
    let mut reporter = StartReporter::new(args, &settings, invocation);
    let begin = async {
        let job_worker = JobWorker::open(settings.clone()).await.map_err(cannot_begin)?;
        let queues = match program {
            Some(program) => Some(QueueSide::start(args, &settings, program, stderr, invocation).await?),
            None => None,
        };
        Ok::<_, Failure>((job_worker, queues))
    };
    let (job_worker, mut queues) = tokio::select! {
        begun = begin => begun?,
        exit = signals.next() => return Ok(exit),
    };
    let running = queues.as_ref().map(|queues| Arc::clone(&queues.running));
    let mut input_ended = args.until_eof.then(input_end);
    let ask = async || loop {
        tokio::select! {
            exit = signals.next() => return EndRequest::Signal(exit),
            () = ended(&mut input_ended) => {
                input_ended = None;
                return EndRequest::InputEnded;
            }
            () = watched(queues.as_mut(), invocation) => {}
        }
    };
    let end = job_worker.run(running, ask, |said| reporter.tell(said)).await?;
    match end {
        JobWorkerEnd::Asked | JobWorkerEnd::Idle => Ok(0),
        JobWorkerEnd::Stopped { now } => {
            let how = if now { "at once" } else { "after its running work" };
            invocation.output.note(&format!("stopped by `turno worker stop`, {how}"));
            Ok(0)
        }
        JobWorkerEnd::Cut(exit) => Ok(exit),
        JobWorkerEnd::Queues(error) => Err(cannot_work(error, &args.queues)),
        JobWorkerEnd::NotGreeted(why) => {
            Err(Failure::new(Code::CannotConnect, format!("no job worker listener answers at {why}"))
                .fix("`turno status` shows the broker's job worker listener"))
        }
    }
}

fn settings(args: &StartArgs, invocation: &Invocation) -> Result<Settings, Failure> {
    let broker = connect::options(invocation)?;
    let mut labels: BTreeMap<String, String> = args.labels.iter().cloned().collect();
    if let Some(pool) = &args.pool {
        let (key, value) = label("pool", pool).map_err(|why| Failure::new(Code::BadUsage, "bad --pool").why(why))?;
        labels.insert(key, value);
    }
    if labels.len() > WORKER_LABELS_MAX {
        let what = format!("a worker has at most {WORKER_LABELS_MAX} labels");
        return Err(Failure::new(Code::BadUsage, what));
    }
    Ok(Settings {
        name: args.name.clone().unwrap_or_else(default_name),
        id: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
        slots: args.slots,
        labels,
        work_dir: args.work_dir.clone(),
        idle_timeout: args.idle_timeout,
        drain_timeout: args.drain_timeout,
        finder: args.foreman.clone().map_or_else(|| Finder::Ask(broker.clone()), Finder::At),
        broker,
    })
}

fn cannot_begin(error: CannotBegin) -> Failure {
    let text = error.to_string();
    match error {
        CannotBegin::Scratch(source) => {
            Failure::new(Code::Io, text).why(source.to_string()).fix("choose another directory with --work-dir")
        }
        CannotBegin::Slots(_) => Failure::new(Code::BadSlots, text),
        CannotBegin::Guard(source) => {
            Failure::new(Code::CannotStart, text).why(source.to_string()).fix(remedy(&source))
        }
        CannotBegin::NoWay(why) => no_way(why),
    }
}

/// There is no way to the foreman.
pub(super) fn no_way(why: ConnectFailure) -> Failure {
    let text = why.to_string();
    match why {
        ConnectFailure::Broker(error) => error.into(),
        ConnectFailure::NoListener(_) => {
            Failure::new(Code::CannotConnect, text).fix("restart the broker with --foreman-listen ADDRESS")
        }
        ConnectFailure::Unreachable { .. } => Failure::new(Code::CannotConnect, text)
            .why("it listens on another address, or a firewall is in between")
            .fix("set its address with --foreman HOST:PORT"),
    }
}

/// Resolves when standard input has ended. A thread reads it: nothing else can wait for any kind of input.
fn input_end() -> oneshot::Receiver<()> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let (mut input, mut piece) = (io::stdin().lock(), [0; 4_096]);
        while !matches!(input.read(&mut piece), Ok(0)) {}
        let _ = tell.send(());
    });
    told
}

async fn ended(input: &mut Option<oneshot::Receiver<()>>) {
    match input {
        // A thread that is gone has seen the end.
        Some(end) => drop(end.await),
        None => std::future::pending().await,
    }
}

/// The worker of queues beside the tasks.
struct QueueSide {
    running: Arc<WorkerHandle>,
    observer: Observer,
    reply_max: watch::Sender<Option<u64>>,
}

impl QueueSide {
    async fn start(
        args: &StartArgs,
        settings: &Settings,
        program: Arc<Program>,
        stderr: &StderrPipe,
        invocation: &Invocation,
    ) -> Result<Self, Failure> {
        let slots = Slots::Limited(u32::from(settings.slots));
        let observer = Observer::new(&settings.name, slots, &args.queues);
        let worker = Worker::new(settings.broker.clone()).slots(slots).name(&settings.name).known_as(&settings.id);
        let worker = args.queues.iter().fold(worker.on_event(observer.listener()), Worker::queue);
        let (runner, reply_max) = DeliveryRunner::new(Some(program), slots, stderr.sender(), &settings.name);
        let running = worker.start(move |delivery| handle(delivery, runner.clone())).await;
        let running = running.map(Arc::new).map_err(|error| cannot_work(error, &args.queues))?;
        reply_max.send_replace(Some(body_bytes_max(&running.config())));
        let mut side = Self { running, observer, reply_max };
        side.observer.note_waiting(invocation);
        Ok(side)
    }
}

/// Tells what becomes of the connection of queues.
async fn watched(side: Option<&mut QueueSide>, invocation: &Invocation) {
    let Some(QueueSide { running, observer, reply_max }) = side else { return std::future::pending().await };
    let event = observer.next().await;
    observer.note(&event, invocation);
    reply_max.send_replace(Some(body_bytes_max(&running.config())));
}

/// Tells people what happens, and programs that all is ready.
struct StartReporter<'a> {
    registered: RegisteredDocument,
    invocation: &'a Invocation,
    /// That the foreman is out of reach was told since the last success.
    told: bool,
}

impl<'a> StartReporter<'a> {
    fn new(args: &StartArgs, settings: &Settings, invocation: &'a Invocation) -> Self {
        let registered = RegisteredDocument {
            name: settings.name.clone(),
            queues: args.queues.clone(),
            slots: Slots::Limited(settings.slots.into()),
            broker: String::new(),
            id: Some(settings.id.clone()),
            labels: settings.labels.clone(),
            foreman: None,
        };
        Self { registered, invocation, told: false }
    }

    fn tell(&mut self, said: &WorkerReport) -> Result<(), Failure> {
        if let Some(line) = self.line(said) {
            self.invocation.output.note(&line);
        }
        if let WorkerReport::Registered { place, again: false } = said {
            self.registered.foreman = Some(place.foreman.clone());
            self.registered.broker = place.broker.as_ref().map(ToString::to_string).unwrap_or_default();
            if self.invocation.output.format().is_json() {
                self.invocation.output.document(&self.registered)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, said: &WorkerReport) -> Option<String> {
        let name = &self.registered.name;
        Some(match said {
            WorkerReport::Registered { place, again } => {
                self.told = false;
                let again = if *again { " again" } else { "" };
                let slots = self.registered.slots;
                let labels: Vec<String> =
                    self.registered.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let labels = if labels.is_empty() { String::new() } else { format!(", labels {}", labels.join(", ")) };
                format!("{name} registered{again}: jobs, slots {slots}{labels}, foreman at {}", place.foreman)
            }
            WorkerReport::Lost { reason, tasks } => {
                format!("connection to the broker lost: {reason}; reconnecting, {tasks} tasks keep running")
            }
            WorkerReport::NoWay(why) => {
                if std::mem::replace(&mut self.told, true) {
                    return None;
                }
                format!("{why}; retrying")
            }
            WorkerReport::Drains { end, tasks, messages, within } => {
                let why = match end {
                    JobWorkerEnd::Idle => "nothing to do",
                    JobWorkerEnd::Stopped { .. } => "`turno worker stop`",
                    JobWorkerEnd::Queues(_) => "lost its queues",
                    _ => "shutdown requested",
                };
                let left = tasks + messages;
                if left == 0 {
                    return Some(format!("{why}: ending"));
                }
                let wait = within.map(|within| format!(" {}", units::format_duration(within))).unwrap_or_default();
                format!("{why}: {left} still running, waiting{wait}; press Ctrl-C again to stop immediately")
            }
            WorkerReport::Cuts { tasks } => format!("{tasks} unfinished; other workers will run them"),
            WorkerReport::Shrunk { slots } => {
                self.registered.slots = Slots::Limited(u32::from(*slots));
                format!("slots changed to {slots} by the broker")
            }
            WorkerReport::Untold { tasks } => {
                format!("could not report the results of {tasks} tasks: the broker is unreachable")
            }
            WorkerReport::OutputLost { tasks, bytes } => format!("lost {bytes} bytes of output of {tasks} tasks"),
        })
    }
}
