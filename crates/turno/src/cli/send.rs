//! `turno send`: one way, settled by the worker.

use std::io::{self, BufRead as _, Read as _};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use tokio::sync::mpsc;
use turno_client::{Client, Message, Stored};
use turno_proto::model::{Code, units};

use super::Invocation;
use super::compose::{self, MessageFlags, check_queue};
use super::connect;
use super::error::Failure;
use super::global::Format;
use super::help;
use super::schema::reply::{Line, StoredDocument, StoredListDocument};
use super::window::Window;

/// Lines that may wait for the broker's answer.
const IN_FLIGHT: usize = 256;

/// Send a message one way; print its id and how safe it is
///
/// It waits in the broker until a worker has done it. The answer tells the durability reached.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno send emails hello",
        "turno send emails - < mail.txt",
        "turno send emails hello --priority 9 --ttl 1h",
        "turno send emails --lines -o jsonl < addresses.txt",
    ],
    &[1, 3, 5, 78, 124],
))]
pub(crate) struct SendArgs {
    /// The queue
    queue: String,

    /// The body; - or nothing reads what is piped in
    #[arg(conflicts_with = "lines")]
    body: Option<String>,

    #[command(flatten)]
    flags: MessageFlags,

    /// How long it is worth delivering; without it, for ever
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    ttl: Option<Duration>,

    /// Each line of standard input is a message of its own, sent as it comes
    #[arg(long)]
    lines: bool,
}

pub(crate) fn run(args: &SendArgs, invocation: &Invocation) -> Result<u8, Failure> {
    check_queue(&args.queue)?;
    connect::block_on(async {
        let client = connect::client(invocation).await?;
        if args.lines { many(&client, args, invocation).await } else { one(&client, args, invocation).await }
    })
}

fn message(args: &SendArgs, body: Bytes) -> Message {
    let message = args.flags.message(body);
    match args.ttl {
        Some(ttl) => message.timeout(ttl),
        None => message,
    }
}

/// The broker's answer, or why there is none in time.
async fn stored(client: Client, queue: String, message: Message, timeout: Duration) -> Result<Stored, Failure> {
    match tokio::time::timeout(timeout, client.send(&queue, message)).await {
        Ok(stored) => Ok(stored?),
        Err(_) => Err(Failure::new(Code::TimedOut, "the broker did not say in time that it has the message")
            .why("it is busy or unreachable; whether it has the message is unknown")
            .fix("look with `turno queue show QUEUE`, or try again with a longer --timeout")),
    }
}

async fn one(client: &Client, args: &SendArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let body = compose::body(args.body.as_deref(), &client.config()).await?;
    let message = message(args, body);
    let stored = stored(client.clone(), args.queue.clone(), message, invocation.global.timeout()).await?;
    let document = document(stored);
    let text = format!("{} {}\n", document.id, document.durability);
    invocation.output.one(&document, &document.id, || text)?;
    Ok(0)
}

fn document(stored: Stored) -> StoredDocument {
    StoredDocument { id: stored.id.to_string(), durability: stored.durability.name().to_owned() }
}

/// Lines go out as they come, answers are printed in their order. The first failure ends the reading; what is
/// on its way is still waited for.
async fn many(client: &Client, args: &SendArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let mut lines = read_lines(compose::body_bytes_max(&client.config()));
    let mut window = Window::new(IN_FLIGHT);
    let mut tally = Tally::default();
    let mut reading = true;
    while reading && tally.failure.is_none() {
        tokio::select! {
            line = lines.recv(), if window.has_room() => match line {
                Some(Ok(body)) => {
                    let timeout = invocation.global.timeout();
                    window.begin(stored(client.clone(), args.queue.clone(), message(args, body), timeout));
                }
                Some(Err(failure)) => window.begin(std::future::ready(Err(failure))),
                None => reading = false,
            },
            end = window.next(), if !window.is_empty() => {
                if let Some(end) = end {
                    tally.take(end, invocation)?;
                }
            }
        }
    }
    while let Some(end) = window.finish().await {
        tally.take(end, invocation)?;
    }
    tally.finish(invocation)
}

/// Reads lines on a thread of its own, without their ends; a line too long for a frame ends the reading.
fn read_lines(bytes_max: u64) -> mpsc::Receiver<Result<Bytes, Failure>> {
    let (tell, told) = mpsc::channel(IN_FLIGHT);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            // One byte for the end of the line, one to see that it is too long.
            let read = input.by_ref().take(bytes_max.saturating_add(2)).read_until(b'\n', &mut line);
            let end = match read {
                Ok(0) => return,
                Ok(_) => {
                    if line.ends_with(b"\n") {
                        line.pop();
                    }
                    if line.len() as u64 > bytes_max { Err(compose::too_long(bytes_max)) } else { Ok(line.into()) }
                }
                Err(error) => Err(Failure::new(Code::Io, "cannot read standard input").why(error.to_string())),
            };
            let last = end.is_err();
            if tell.blocking_send(end).is_err() || last {
                return;
            }
        }
    });
    told
}

/// How many lines ended, and how.
#[derive(Default)]
struct Tally {
    stored: u64,
    failed: u64,
    /// The first of them, with its line.
    failure: Option<(u64, Failure)>,
    /// Kept only where all of them go into one document.
    kept: Vec<Line>,
}

impl Tally {
    fn take(&mut self, end: Result<Stored, Failure>, invocation: &Invocation) -> Result<(), Failure> {
        let line = self.stored + self.failed + 1;
        let (row, name) = match end {
            Ok(stored) => {
                self.stored += 1;
                let StoredDocument { id, durability } = document(stored);
                let name = id.clone();
                (Line { line, id: Some(id), durability: Some(durability), error: None }, Some(name))
            }
            Err(failure) => {
                self.failed += 1;
                let error = Some(failure.body());
                self.failure.get_or_insert((line, failure));
                (Line { line, id: None, durability: None, error }, None)
            }
        };
        match (invocation.output.format(), name) {
            (Format::Json, _) => {
                self.kept.push(row);
                Ok(())
            }
            (Format::Jsonl, _) => invocation.output.document(&row),
            (Format::Name, Some(name)) => invocation.output.text(&format!("{name}\n")),
            (_, Some(name)) => invocation.output.text(&format!("{name} {}\n", row.durability.unwrap_or_default())),
            (_, None) => Ok(()),
        }
    }

    fn finish(self, invocation: &Invocation) -> Result<u8, Failure> {
        let (stored, failed) = (self.stored, self.failed);
        let failure = self.failure.map(|(line, failure)| {
            invocation.output.note(&format!("line {line}: {}", failure.what()));
            invocation.output.note(&format!("{stored} stored, {failed} failed, the lines after that were not sent"));
            if stored > 0 { failure.exit_with(3) } else { failure }
        });
        match (invocation.output.format(), failure) {
            (Format::Json, failure) => {
                invocation.output.document(&StoredListDocument { messages: self.kept, stored, failed })?;
                Ok(failure.map_or(0, |failure| failure.exit()))
            }
            (Format::Jsonl, failure) => Ok(failure.map_or(0, |failure| failure.exit())),
            (_, None) => {
                invocation.output.note(&format!("{stored} stored"));
                Ok(0)
            }
            (_, Some(failure)) => Err(failure),
        }
    }
}
