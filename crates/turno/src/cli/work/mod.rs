//! `turno work`: any program is a worker.

mod broadcasts;
mod echo;
mod observer;
mod program;
mod runner;
mod stderr;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use turno_client::{Slots, StopMode, Worker, WorkerEnd, WorkerHandle};
use turno_proto::model::{Code, limits, units};

use super::Invocation;
use super::compose::{body_bytes_max, check_queue};
use super::connect;
use super::error::Failure;
use super::help;
use super::signals::Signals;
use super::worker::parse_slots;

pub(super) use self::observer::Observer;
pub(super) use self::program::Program;
pub(super) use self::runner::{DeliveryRunner, handle};
pub(super) use self::stderr::StderrPipe;

/// Be a worker: run a program for each message of a queue
///
/// The body is the program's standard input, and its standard output is the reply. Exit status 0 settles the message;
/// any other status fails it, with the end of stderr as the reason, and it is delivered again after the wait of its queue. With a
/// last line `turno-retry-after: 30s` on stderr the program chooses that wait. Status 75 gives a one-way message back without
/// counting the attempt. The environment has TURNO_QUEUE, TURNO_MESSAGE_ID
/// and TURNO_ATTEMPT, and with --exclusive TURNO_FENCE, a number that is higher for each new holder of the queue.
///
/// If a message is cancelled or expires, its program and all processes that it started get SIGTERM, and SIGKILL 5 s
/// later. A broadcast takes no slot: as many broadcasts run at a time as there are slots, 1,000 more wait, and further
/// ones fail with `busy`. SIGTERM or Ctrl-C lets running programs finish; a second one ends them at once.
///
/// If a message has several parts, such as the frames of a ZeroMQ message, stdin has them without separators, and
/// TURNO_PARTS lists their lengths in bytes: "3 0 2". With --reply-parts the first line of stdout is such a list, and the
/// rest are the parts; an empty line means that the rest is one part.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno work hello --echo",
        "turno work shout -- tr a-z A-Z",
        "turno work ledger --exclusive --standby -- ./post",
        "turno work legacy --reply-parts -- sh -c 'echo \"$TURNO_PARTS\"; cat'",
        "turno work resize thumbs --slots 4 --name pixel-1 -- convert - -resize 50% jpg:-",
    ],
    &[1, 5, 78, 130, 143],
))]
pub(crate) struct WorkArgs {
    /// Queues to consume
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<String>,

    /// Program and arguments
    #[arg(last = true, required_unless_present = "echo", conflicts_with = "echo", value_name = "CMD")]
    command: Vec<OsString>,

    /// Messages processed at a time, or unlimited
    #[arg(short, long, value_name = "N", default_value_t = Slots::Limited(limits::SLOTS), value_parser = parse_slots)]
    slots: Slots,

    /// Worker name [default: host name and process id]
    #[arg(long)]
    name: Option<String>,

    /// Reply with the body; run no program
    #[arg(long)]
    echo: bool,

    /// The first line of stdout lists the lengths of the reply's parts
    #[arg(long, conflicts_with = "echo")]
    reply_parts: bool,

    /// Consume the queues exclusively; fail with queue_full if another worker consumes one
    #[arg(long)]
    exclusive: bool,

    /// With --exclusive: wait until the queue is free, then take over
    #[arg(long, requires = "exclusive")]
    standby: bool,

    /// How long to wait for running work at shutdown
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = units::parse_duration)]
    drain_timeout: Duration,
}

pub(crate) fn run(args: &WorkArgs, invocation: &Invocation) -> Result<u8, Failure> {
    for queue in &args.queues {
        check_queue(queue)?;
    }
    let program = Program::find(&args.command, args.reply_parts)?;
    let stderr = StderrPipe::start();
    let end = connect::block_on(work(args, program.map(Arc::new), &stderr, invocation));
    // The runtime is gone, and with it every program that still ran.
    stderr.finish();
    end
}

async fn work(
    args: &WorkArgs,
    program: Option<Arc<Program>>,
    stderr: &StderrPipe,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let name = args.name.clone().unwrap_or_else(default_name);
    let mut observer = Observer::new(&name, args.slots, &args.queues);
    let mut worker =
        Worker::new(connect::options(invocation)?).slots(args.slots).name(&name).on_event(observer.listener());
    for queue in &args.queues {
        worker = worker.queue(queue);
    }
    if args.standby {
        worker = worker.standby();
    } else if args.exclusive {
        worker = worker.exclusive();
    }
    let (runner, reply_max) = DeliveryRunner::new(program, args.slots, stderr.sender(), &name);
    let running = worker.start(move |delivery| handle(delivery, runner.clone())).await;
    let running = running.map_err(|error| cannot_work(error, &args.queues))?;
    loop {
        reply_max.send_replace(Some(body_bytes_max(&running.config())));
        tokio::select! {
            event = observer.next() => observer.tell(&event, invocation)?,
            end = running.wait() => return ended(end, args, &mut observer, invocation),
            _ = signals.next() => return finish(args, &running, &mut signals, &mut observer, invocation).await,
        }
    }
}

/// Why there is no worker, or none any more. Of a queue that another has, the broker's word says which it is.
pub(super) fn cannot_work(error: turno_client::Error, queues: &[String]) -> Failure {
    match (error.code(), error.detail()) {
        (Code::QueueFull, detail) if !detail.is_empty() => {
            let failure = Failure::new(Code::QueueFull, detail);
            match queues {
                [queue] => failure.fix(format!(
                    "wait for it (`turno work {queue} --exclusive --standby`), or stop the worker that `turno \
                         queue consumers {queue}` lists"
                )),
                _ => failure,
            }
        }
        _ => error.into(),
    }
}

/// A signal came: what runs may finish, unless a second one says otherwise.
async fn finish(
    args: &WorkArgs,
    running: &WorkerHandle,
    signals: &mut Signals,
    observer: &mut Observer,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let left = running.in_flight();
    if left > 0 {
        let timeout = units::format_duration(args.drain_timeout);
        invocation
            .output
            .note(&format!("{left} still running, waiting {timeout}; press Ctrl-C again to stop immediately"));
    }
    tokio::select! {
        end = running.stop(args.drain_timeout) => ended(end, args, observer, invocation),
        exit = signals.next() => {
            let cut = running.in_flight();
            invocation.output.note(&format!("stopped immediately; {cut} unfinished"));
            Ok(exit)
        }
    }
}

fn ended(end: WorkerEnd, args: &WorkArgs, observer: &mut Observer, invocation: &Invocation) -> Result<u8, Failure> {
    observer.tell_waiting(invocation)?;
    match end {
        WorkerEnd::StoppedByBroker(mode) => {
            let how = if mode == StopMode::Now { "at once" } else { "after its running work" };
            invocation.output.note(&format!("stopped by `turno worker stop`, {how}"));
            Ok(0)
        }
        WorkerEnd::GaveUp(error) => Err(cannot_work(error, &args.queues)),
        _ => Ok(0),
    }
}

pub(super) fn default_name() -> String {
    format!("{}-{}", turno_broker::config::Environment::here().host, std::process::id())
}

#[cfg(test)]
mod tests {
    use turno_client::{Address, Options, Outcome};

    use super::*;
    use crate::cli::tree::{self, Command};

    fn parsed(line: &str) -> Result<WorkArgs, clap::Error> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        tree::parse(&words).map(|cli| match cli.command {
            Command::Work(args) => args,
            _ => panic!("{line} is another command"),
        })
    }

    /// Proves S0.10.
    #[test]
    fn a_worker_has_ten_slots_unless_it_says_otherwise() {
        assert_eq!(parsed("turno work q --echo").unwrap().slots, Slots::Limited(10));
        assert_eq!(parsed("turno work q --echo -s 3").unwrap().slots, Slots::Limited(3));
        assert_eq!(parsed("turno work q --echo --slots 3").unwrap().slots, Slots::Limited(3));
        assert_eq!(parsed("turno work q --echo --slots unlimited").unwrap().slots, Slots::Unlimited);
    }

    /// Proves S1.5: nobody is there, or somebody is and does not answer; each is tried once and named.
    #[tokio::test]
    async fn without_a_broker_a_worker_does_not_start() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = format!("turno://{}", silent.local_addr().unwrap());
        let addresses = ["unix:/no/such/socket", silent.as_str()].map(|url| url.parse::<Address>().unwrap());
        let options = Options::new(addresses).connect_timeout(Duration::from_millis(200));
        let error = Worker::new(options).queue("q").start(|_| async { Outcome::Done }).await.unwrap_err();
        let failure = Failure::from(error);
        assert_eq!((failure.code(), failure.exit()), (Code::CannotConnect, 5));
        assert_eq!(failure.what(), format!("cannot connect to a broker at unix:/no/such/socket, {silent}"));
    }

    /// To stand by means to want the queue alone.
    #[test]
    fn only_an_exclusive_worker_stands_by() {
        let args = parsed("turno work q --exclusive --standby --echo").unwrap();
        assert!(args.exclusive && args.standby);
        assert!(!parsed("turno work q --exclusive --echo").unwrap().standby);
        assert!(parsed("turno work q --standby --echo").is_err());
    }

    #[test]
    fn what_follows_the_dashes_is_the_programs() {
        let args = parsed("turno work a b --slots 2 -- program --slots 9 -h").unwrap();
        assert_eq!(args.queues, ["a", "b"]);
        assert_eq!(args.command, ["program", "--slots", "9", "-h"]);
        assert_eq!(args.slots, Slots::Limited(2));
        for line in ["turno work q", "turno work -- program", "turno work q --echo -- program"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn only_a_program_lists_the_parts_of_its_reply() {
        assert!(parsed("turno work q --reply-parts -- program").unwrap().reply_parts);
        assert!(!parsed("turno work q -- program --reply-parts").unwrap().reply_parts);
        assert!(parsed("turno work q --reply-parts --echo").is_err());
    }
}
