//! `turno sub`: listen, and print what comes.

use std::time::Duration;

use clap::Args;
use tokio::sync::{mpsc, oneshot};
use turno_client::{Event, Received, Subscription};
use turno_proto::model::Code;

use super::Invocation;
use super::compose::parse_count;
use super::connect;
use super::error::Failure;
use super::event::{filters, printed};
use super::global::Format;
use super::help;
use super::output;
use super::schema::topic::{EventDocument, EventListDocument};
use super::signals::Signals;
use super::words::count;

/// Events that wait to be printed. More: they wait in the client, and at last the oldest of them go.
const PRINTING: usize = 8;

/// How long to wait for the printer after a signal: the reader of its output may be stuck.
const LAST_PRINTING: Duration = Duration::from_secs(1);

/// Subscribe to topics and print each event
///
/// Prints one event per line: the topic, a space, the body. In a filter, * stands for one segment of a topic, and a
/// final > for one or more. An event is printed once, even if several filters match. Events are missed while the
/// connection is lost, and when they arrive faster than they can be printed; both are reported on stderr.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno sub 'news.*'",
        "turno sub '>' -o jsonl",
        "turno sub logs.app --raw -n 100",
        "turno sub orders.new --or-close",
    ],
    &[1, 5, 78, 124, 130, 143],
))]
pub(crate) struct SubArgs {
    /// Topic filters
    #[arg(required = true, value_name = "FILTER")]
    filters: Vec<String>,

    /// Print the body only, without a newline
    #[arg(long)]
    raw: bool,

    /// Exit after N events
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = parse_count)]
    count: Option<u64>,

    /// Treat filters as byte prefixes of topics
    #[arg(long)]
    prefix: bool,

    /// Exit instead of missing events: slow_reader if they arrive too fast, connection_lost on a lost connection
    #[arg(long)]
    or_close: bool,
}

pub(crate) fn run(args: &SubArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let filters = filters(&args.filters, args.prefix)?;
    connect::block_on(async {
        let mut signals = Signals::catch()?;
        let client = connect::caller(invocation).await?;
        let mut listening = client.subscribe_all(filters);
        if args.or_close {
            listening = listening.end_on_loss();
        }
        let mut subscription = match tokio::time::timeout(invocation.global.timeout(), listening).await {
            Ok(subscription) => subscription?,
            Err(_) => {
                return Err(Failure::new(Code::TimedOut, "the broker did not confirm the filters in time")
                    .why("the broker is busy, or the network is slow")
                    .fix("try again with a longer --timeout"));
            }
        };
        let more = if args.prefix { "…" } else { "" };
        let filters: Vec<String> = args.filters.iter().map(|filter| format!("{filter}{more}")).collect();
        invocation.output.note(&format!("subscribed to {}", filters.join(", ")));
        let mut listener =
            Listener { args, invocation, printer: EventPrinter::start(), heard: 0, dropped: 0, kept: Vec::new() };
        let end = listener.listen(&mut subscription, &mut signals).await;
        listener.finish(end, &mut signals).await
    })
}

struct Listener<'a> {
    args: &'a SubArgs,
    invocation: &'a Invocation,
    printer: EventPrinter,
    heard: u64,
    dropped: u64,
    /// Kept only where all of them go into one document.
    kept: Vec<EventDocument>,
}

impl Listener<'_> {
    /// Until there are enough, a signal comes (its exit status), or it is over.
    async fn listen(&mut self, subscription: &mut Subscription, signals: &mut Signals) -> Result<u8, Failure> {
        while self.args.count.is_none_or(|count| self.heard < count) {
            // Nothing is taken before there is room to print it.
            let next = async {
                let room = self.printer.lines.reserve().await.ok()?;
                Some((room, subscription.next().await))
            };
            let (room, heard) = tokio::select! {
                exit = signals.next() => return Ok(exit),
                next = next => match next {
                    Some((room, Some(heard))) => (room, heard.map_err(over)?),
                    Some((_, None)) => return Err(lost()),
                    // Why the printer ended is told by the printer.
                    None => return Ok(0),
                },
            };
            match heard {
                Received::Event(event) => {
                    room.send(printed(&event, self.invocation.output.format(), self.args.raw));
                    self.take(&event);
                }
                Received::Dropped(missing) => {
                    self.dropped += missing;
                    let are = count(missing, "event is", "events are");
                    self.invocation.output.warn(&format!("{are} missing: this subscriber was too slow"));
                }
                Received::Reconnected => {
                    self.invocation.output.warn("reconnected; events published in the meantime are missing");
                }
                _ => {}
            }
        }
        Ok(0)
    }

    fn take(&mut self, event: &Event) {
        self.heard += 1;
        if self.invocation.output.format() == Format::Json {
            self.kept.push(EventDocument::from(event));
        }
    }

    /// All that was heard is printed, also if the end is a bad one.
    async fn finish(self, end: Result<u8, Failure>, signals: &mut Signals) -> Result<u8, Failure> {
        let Self { invocation, printer: EventPrinter { lines, ended }, dropped, kept, .. } = self;
        drop(lines);
        let signalled = matches!(end, Ok(130 | 143));
        tokio::select! {
            // A printer that did not say how it ended has printed all.
            told = ended => told.unwrap_or(Ok(()))?,
            exit = signals.next() => return Ok(exit),
            () = tokio::time::sleep(LAST_PRINTING), if signalled => {}
        }
        if invocation.output.format() == Format::Json {
            invocation.output.document(&EventListDocument { events: kept, dropped, left: None })?;
        }
        end
    }
}

/// Why nothing more comes.
fn over(error: turno_client::Error) -> Failure {
    match Failure::from(error) {
        failure if failure.code() == Code::ConnectionLost => lost(),
        failure => failure,
    }
}

fn lost() -> Failure {
    Failure::new(Code::ConnectionLost, "lost the connection to the broker; events may be missing")
        .why("the broker stopped or the network failed, and --or-close was given")
        .fix("subscribe again; without --or-close, `turno sub` reconnects automatically")
}

/// Prints on a thread of its own: the connection lives while nobody takes what is printed.
struct EventPrinter {
    lines: mpsc::Sender<Vec<u8>>,
    ended: oneshot::Receiver<Result<(), Failure>>,
}

impl EventPrinter {
    fn start() -> Self {
        let (lines, mut told) = mpsc::channel::<Vec<u8>>(PRINTING);
        let (tell, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let mut end = Ok(());
            while end.is_ok()
                && let Some(line) = told.blocking_recv()
            {
                end = output::write(&line);
            }
            // Nobody listens only if the command has ended.
            let _ = tell.send(end);
        });
        Self { lines, ended }
    }
}
