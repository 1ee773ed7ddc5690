//! `turno sub`: listen, and print what comes.

use clap::Args;
use tokio::sync::mpsc;
use turno_client::{Client, Event, Filter, Heard};
use turno_proto::model::Code;

use super::Invocation;
use super::compose::parse_count;
use super::connect;
use super::error::Failure;
use super::global::Format;
use super::help;
use super::schema::topic::{EventDocument, EventListDocument};
use super::signals::Signals;
use super::words::count;

/// Events that wait to be printed. More: they wait in the client, and at last the oldest of them go.
const PRINTING: usize = 256;

/// Listen to topics and print each event as it comes
///
/// One event a line: the topic, a space, the body. In a filter * stands for one segment of a topic, > as the last one
/// for the rest. An event is printed once, however many of the filters match. What is published while the connection is lost
/// is missed, and so is what comes faster than it can be read; both are told on stderr.
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
    /// Which topics
    #[arg(required = true, value_name = "FILTER")]
    filters: Vec<String>,

    /// The body only, as it is, without an end of line
    #[arg(long)]
    raw: bool,

    /// End after N events
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = parse_count)]
    count: Option<u64>,

    /// Filters are the beginnings of topics, byte by byte
    #[arg(long)]
    prefix: bool,

    /// End with slow_reader instead of missing events that come too fast
    #[arg(long)]
    or_close: bool,
}

fn filters(args: &SubArgs) -> Result<Vec<Filter>, Failure> {
    let parse = |text: &String| {
        let filter = if args.prefix { Filter::prefix(text.as_bytes()) } else { text.parse() };
        filter.map_err(|error| Failure::new(Code::BadTopic, format!("{text:?} is no filter")).why(error.to_string()))
    };
    args.filters.iter().map(parse).collect()
}

pub(crate) fn run(args: &SubArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let filters = filters(args)?;
    connect::block_on(async {
        let mut signals = Signals::catch()?;
        let client = connect::caller(invocation).await?;
        let mut heard = listen(&client, filters, args.or_close).await?;
        invocation.output.note(&format!("listening to {}", args.filters.join(", ")));
        let mut printer = Printer { invocation, raw: args.raw, printed: 0, dropped: 0, kept: Vec::new() };
        loop {
            if args.count.is_some_and(|count| printer.printed >= count) {
                return printer.finish(0);
            }
            tokio::select! {
                exit = signals.next() => return printer.finish(exit),
                next = heard.recv() => match next {
                    Some(next) => printer.take(next?)?,
                    None => return Err(Failure::of(Code::ConnectionLost)),
                },
            }
        }
    })
}

/// All filters in one line: of several subscriptions each event is wanted once, so the first whose filter matches has it.
async fn listen(
    client: &Client,
    filters: Vec<Filter>,
    or_close: bool,
) -> Result<mpsc::Receiver<Result<Heard, Failure>>, Failure> {
    let (tell, told) = mpsc::channel(PRINTING);
    for at in 0..filters.len() {
        let mut subscription = client.listen(filters[at].clone(), or_close).await?;
        let (tell, before) = (tell.clone(), filters[..at].to_vec());
        tokio::spawn(async move {
            while let Some(heard) = subscription.next().await {
                let wanted = match &heard {
                    Ok(Heard::Event(event)) => !before.iter().any(|filter| filter.matches(&event.topic)),
                    // Of the connection as a whole: once is enough.
                    Ok(Heard::Dropped(_) | Heard::Reconnected) => at == 0,
                    Err(_) => true,
                };
                if wanted && tell.send(heard.map_err(Failure::from)).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(told)
}

struct Printer<'a> {
    invocation: &'a Invocation,
    raw: bool,
    printed: u64,
    dropped: u64,
    /// Kept only where all of them go into one document.
    kept: Vec<EventDocument>,
}

impl Printer<'_> {
    fn take(&mut self, heard: Heard) -> Result<(), Failure> {
        let output = &self.invocation.output;
        match heard {
            Heard::Event(event) => {
                self.printed += 1;
                self.print(&event)
            }
            Heard::Dropped(missing) => {
                self.dropped += missing;
                output.warn(&format!("{} missing: they came too fast", count(missing, "event is", "events are")));
                Ok(())
            }
            Heard::Reconnected => {
                output.note("connected again; what was published meanwhile is missing");
                Ok(())
            }
        }
    }

    fn print(&mut self, event: &Event) -> Result<(), Failure> {
        let output = &self.invocation.output;
        let document = || EventDocument::new(event.topic.as_str(), &event.headers, &event.body);
        match output.format() {
            Format::Json => {
                self.kept.push(document());
                Ok(())
            }
            Format::Jsonl => output.document(&document()),
            Format::Name => output.text(&format!("{}\n", event.topic)),
            Format::Text | Format::Wide if self.raw => output.bytes(&event.body),
            Format::Text | Format::Wide => {
                let mut line = format!("{} ", event.topic).into_bytes();
                line.extend_from_slice(&event.body);
                if !line.ends_with(b"\n") {
                    line.push(b'\n');
                }
                output.bytes(&line)
            }
        }
    }

    fn finish(self, exit: u8) -> Result<u8, Failure> {
        if self.invocation.output.format() == Format::Json {
            let document = EventListDocument { events: self.kept, dropped: self.dropped, left: None };
            self.invocation.output.document(&document)?;
        }
        Ok(exit)
    }
}
