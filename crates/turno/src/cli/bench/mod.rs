//! `turno bench`: how fast a broker answers a load made here.

mod load;
mod progress;
mod report;
mod tally;
mod workers;

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, Subcommand};
use tokio::task::LocalSet;
use turno_broker::Broker;
use turno_client::{Client, Options, Slots};
use turno_proto::model::{Code, limits, units};

use super::Invocation;
use super::compose::{self, check_queue, parse_count};
use super::connect;
use super::error::Failure;
use super::help;
use super::signals::Signals;
use super::worker::parse_slots;

use self::load::{Kind, Load, LoadEnd, LoadPlan};
use self::progress::Progress;
use self::workers::Workers;

/// Messages that wait for their answer at a time, of all clients together.
const IN_FLIGHT_MAX: u64 = 100_000;

/// Messages of one client at a time, as fast as they are answered and by the clock.
const PARALLEL: u64 = 10;
const PARALLEL_BY_THE_CLOCK: u64 = 1_000;

/// How long a load lasts if nobody says otherwise.
const DURATION: Duration = Duration::from_secs(5);

/// Longer is a mistake.
const DURATION_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Messages that a load of sends leaves behind on a queue of its own expire after this.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// How often it is looked whether the workers have done everything.
const POLL: Duration = Duration::from_millis(10);

/// Measure the speed of a broker
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    Request(BenchRequestArgs),
    Send(BenchSendArgs),
}

/// Measure requests and their replies
///
/// Clients and workers run in this process and share the machine with a local broker. Without --rate each client keeps
/// --parallel requests in flight and sends the next one when one is answered. With --rate each request has a scheduled
/// time, and latency counts from that time, so that requests delayed by a slow one count as slow. Ctrl-C ends early and
/// prints the measurements so far.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno bench request",
        "turno bench request --clients 10 --parallel 10 --workers 10 --for 30s",
        "turno bench request --rate 5_000 --body 4KiB",
        "turno bench request hello --no-workers --count 10_000",
        "turno bench request --embedded --json",
    ],
    &[1, 3, 5, 78, 124, 130, 143],
))]
struct BenchRequestArgs {
    #[command(flatten)]
    load: LoadArgs,
}

/// Measure sends until the broker has stored them
///
/// The latency of a send is the time until the broker confirms that it has the message; workers take the messages
/// meanwhile. Everything else is as in `turno bench request`.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno bench send",
        "turno bench send --clients 4 --parallel 256 --workers 4 --slots 256",
        "turno bench send emails --no-workers --count 10_000",
        "turno bench send --embedded --json",
    ],
    &[1, 3, 5, 78, 124, 130, 143],
))]
struct BenchSendArgs {
    #[command(flatten)]
    load: LoadArgs,
}

#[derive(Args, Debug)]
struct LoadArgs {
    /// Queue to use [default: a temporary queue]
    queue: Option<String>,

    /// Client connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    clients: u64,

    /// Messages in flight per client [default: 10, or 1000 with --rate]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    parallel: Option<u64>,

    /// Echo workers
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    workers: u64,

    /// Slots per worker, or unlimited
    #[arg(long, value_name = "N", default_value_t = Slots::Limited(limits::SLOTS), value_parser = parse_slots)]
    slots: Slots,

    /// Start no workers; use those already running
    #[arg(long, requires = "queue", conflicts_with_all = ["workers", "slots"])]
    no_workers: bool,

    /// Size of each body
    #[arg(long, visible_alias = "size", value_name = "SIZE", default_value = "256B", value_parser = units::parse_size)]
    body: u64,

    /// Duration of the run [default: 5s]
    #[arg(long = "for", visible_alias = "duration", value_name = "DURATION", value_parser = parse_time)]
    duration: Option<Duration>,

    /// Number of messages, instead of a duration
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = parse_count)]
    count: Option<u64>,

    /// Messages per second from all clients together, sent on a fixed schedule
    #[arg(long, value_name = "N", value_parser = parse_count)]
    rate: Option<u64>,

    /// Run a broker inside this process
    #[arg(long, conflicts_with = "no_workers")]
    embedded: bool,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    match units::parse_duration(text) {
        Ok(Duration::ZERO) => Err("the duration must be greater than zero".to_owned()),
        Ok(time) if time > DURATION_MAX => Err("the duration must be at most 30d".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn run(args: &BenchArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let (kind, args) = match &args.command {
        BenchCommand::Request(args) => (Kind::Request, &args.load),
        BenchCommand::Send(args) => (Kind::Send, &args.load),
    };
    args.check(invocation)?;
    let broker = args.embedded.then(Broker::start_loopback).transpose()?;
    let options = match &broker {
        Some(broker) => Options::new(broker.url()),
        None => connect::options(invocation)?,
    };
    connect::block_on(LocalSet::new().run_until(bench(kind, args, options, invocation)))
}

impl LoadArgs {
    fn check(&self, invocation: &Invocation) -> Result<(), Failure> {
        if let Some(queue) = &self.queue {
            check_queue(queue)?;
        }
        if self.embedded && !invocation.global.url.is_empty() {
            return Err(Failure::new(Code::BadUsage, "--embedded and --url conflict")
                .why("a benchmark runs against one broker")
                .fix("omit one of the two"));
        }
        if self.clients.saturating_mul(self.parallel()) > IN_FLIGHT_MAX {
            let what = format!("--clients {} times --parallel {} is too large", self.clients, self.parallel());
            return Err(Failure::new(Code::BadUsage, what)
                .why(format!("at most {IN_FLIGHT_MAX} messages may be in flight"))
                .fix("lower --clients or --parallel"));
        }
        Ok(())
    }

    fn parallel(&self) -> u64 {
        match (self.parallel, self.rate) {
            (Some(parallel), _) => parallel,
            (None, Some(_)) => PARALLEL_BY_THE_CLOCK,
            (None, None) => PARALLEL,
        }
    }

    fn plan(&self, kind: Kind, timeout: Duration) -> LoadPlan {
        let body = vec![b'x'; usize::try_from(self.body).unwrap_or(usize::MAX)];
        LoadPlan {
            kind,
            queue: self.queue.clone().unwrap_or_else(own_queue),
            body: Bytes::from(body),
            ttl: self.queue.is_none().then_some(LEFT_BEHIND),
            timeout,
            end: match self.count {
                Some(count) => LoadEnd::Count(count),
                None => LoadEnd::After(self.duration.unwrap_or(DURATION)),
            },
            rate: self.rate,
            parallel: usize::try_from(self.parallel()).unwrap_or(usize::MAX),
        }
    }
}

/// A name that no other load has.
fn own_queue() -> String {
    format!("bench-{}-{:x}", std::process::id(), jiff::Timestamp::now().as_millisecond())
}

async fn bench(kind: Kind, args: &LoadArgs, options: Options, invocation: &Invocation) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let clients = connect_all(args, &options).await?;
    let plan = args.plan(kind, invocation.global.timeout());
    let workers = match args.no_workers {
        true => None,
        false => Some(Workers::start(options, &plan.queue, args.workers, args.slots).await?),
    };
    let load = Load::new(plan, clients);
    let cut = measure(&load, &mut signals, invocation).await;
    if let (Kind::Send, Some(workers), None) = (kind, &workers, cut) {
        finish_work(&load, workers, invocation).await;
    }
    let worked = workers.as_ref().map(|workers| (workers.worked(), load.seconds()));
    let document = report::document(&load, args, worked);
    invocation.output.one(&document, &document.queue, || report::text(&document))?;
    if document.unsent > 0 {
        let unsent = document.unsent;
        invocation.output.warn(&format!("the target rate was not reached: {unsent} messages were due but never sent"));
    }
    let tally = load.tally();
    if let Some(failure) = &tally.failure {
        invocation.output.note(&format!("first failure: {}", failure.what()));
    }
    Ok(match (cut, &tally.failure) {
        (Some(exit), _) => exit,
        (None, None) => 0,
        (None, Some(failure)) if tally.answered == 0 => failure.exit(),
        (None, Some(_)) => 3,
    })
}

async fn connect_all(args: &LoadArgs, options: &Options) -> Result<Vec<Client>, Failure> {
    let mut clients = Vec::new();
    for _ in 0..args.clients {
        let client = Client::connect(options.clone()).await.map_err(|error| {
            let failure = Failure::from(error);
            match failure.code() {
                Code::CannotConnect => {
                    failure.fix("start one with `turno serve`, set its address with --url, or use --embedded")
                }
                _ => failure,
            }
        })?;
        let bytes_max = compose::body_bytes_max(&client.config());
        if args.body > bytes_max {
            return Err(compose::too_long(bytes_max));
        }
        clients.push(client);
    }
    Ok(clients)
}

/// Runs the load to its end, or to a signal; after a second one, with the exit status it gives.
async fn measure(load: &Rc<Load>, signals: &mut Signals, invocation: &Invocation) -> Option<u8> {
    let mut running = std::pin::pin!(Rc::clone(load).run());
    let mut progress = Progress::new(invocation);
    let mut asked = false;
    let cut = loop {
        tokio::select! {
            () = &mut running => break None,
            exit = signals.next() => {
                if asked {
                    break Some(exit);
                }
                asked = true;
                load.stop();
                progress.clear();
                if load.in_flight() > 0 {
                    let left = load.in_flight();
                    invocation.output.note(&format!("waiting for {left} answers; press Ctrl-C again to stop immediately"));
                }
            }
            () = progress.due() => progress.tell(load),
        }
    };
    progress.clear();
    if cut.is_some() {
        invocation.output.note(&format!("stopped immediately; {} unfinished, not counted", load.in_flight()));
    }
    cut
}

/// Waits until the workers have taken everything that was sent, so that nothing is left in the queue.
async fn finish_work(load: &Load, workers: &Workers, invocation: &Invocation) {
    let stored = load.tally().answered;
    let all = async {
        while workers.worked() < stored {
            tokio::time::sleep(POLL).await;
        }
    };
    if tokio::time::timeout(invocation.global.timeout(), all).await.is_err() {
        let left = stored.saturating_sub(workers.worked());
        invocation
            .output
            .warn(&format!("{left} messages are still in the queue: the workers were slower than the clients"));
    }
}
