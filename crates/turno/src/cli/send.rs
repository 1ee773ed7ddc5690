//! `turno send`: one way, settled by the worker.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use turno_client::{Client, Message, SendBuilder, Stored};
use turno_proto::model::limits::{DEDUP_ID_BYTES_MAX, DELAY_MS_MAX};
use turno_proto::model::{Code, DedupId, DedupIdError, Moment, units};

use super::Invocation;
use super::compose::{self, BodyArgs, MessageFlags, check_queue};
use super::connect;
use super::error::Failure;
use super::global::Format;
use super::help;
use super::lines::read_lines;
use super::schema::reply::{Line, StoredDocument, StoredListDocument};
use super::window::Window;

/// Lines that may wait for the broker's answer.
const IN_FLIGHT: usize = 256;

/// The longest delay.
const DELAY_MAX: Duration = Duration::from_millis(DELAY_MS_MAX);

/// Bytes of a dedup id that are left for the prefix: a dash and the longest number come after it.
const DEDUP_PREFIX_BYTES_MAX: usize = DEDUP_ID_BYTES_MAX - 1 - 20;

/// Send a one-way message and print its id and durability
///
/// The message waits in the broker until a worker has settled it. The answer names the durability that was reached:
/// disk or memory.
///
/// A message that its worker fails is delivered again, up to 10 attempts in all (--retries 9). It waits 1 s before the second
/// attempt, 2 s before the third, then twice as long each, at most 5 min; `turno queue set QUEUE retry-delay=…` changes that,
/// and `turno message retry ID` skips a wait. After the last attempt it is a dead letter.
///
/// If the connection is lost before the answer, it is unknown whether the broker has the message. With a dedup id it is
/// sent again, and the broker stores it once; the answer to a repeated one says `duplicate`.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno send emails hello",
        "turno send emails - < mail.txt",
        "turno send emails --part to:you --part - < mail.txt",
        "turno send emails hello --priority 9 --ttl 1h",
        "turno send emails hello --delay 10m",
        "turno send emails hello --at 2030-01-01T08:00:00Z",
        "turno send emails hello --dedup-id order-4711",
        "turno send emails --lines -o jsonl < addresses.txt",
        "turno send emails --lines --dedup-prefix may < may.txt",
    ],
    &[1, 3, 5, 78, 124],
))]
pub(crate) struct SendArgs {
    /// The queue
    queue: String,

    #[command(flatten)]
    body: BodyArgs,

    #[command(flatten)]
    flags: MessageFlags,

    /// Deliver it no earlier than in this time, at most 366d
    #[arg(long, value_name = "DURATION", value_parser = parse_delay, conflicts_with = "at")]
    delay: Option<Duration>,

    /// Deliver it no earlier than at this time (RFC 3339, by this machine's clock), at most 366d ahead
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Moment>)]
    at: Option<Moment>,

    /// Time to live, from the end of --delay on; without it, the message does not expire
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    ttl: Option<Duration>,

    /// Send each line of standard input as a message
    #[arg(long, conflicts_with_all = ["body", "part"])]
    lines: bool,

    /// Deduplication id: the same id is accepted once within an hour (1 to 64 bytes)
    #[arg(long, value_name = "ID", conflicts_with = "lines", value_parser = parse_dedup_id)]
    dedup_id: Option<String>,

    /// With --lines: use PREFIX-NUMBER as the dedup id of each line, so that a file can safely be sent again
    #[arg(long, value_name = "PREFIX", requires = "lines", value_parser = parse_dedup_prefix)]
    dedup_prefix: Option<String>,
}

fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = units::parse_duration(text).map_err(|error| error.to_string())?;
    if delay > DELAY_MAX { Err("a delay is at most 366d".to_owned()) } else { Ok(delay) }
}

/// How long it is until then; nothing if that is past.
fn delay_until(at: Moment) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis(at.unix_ms()).saturating_sub(now)
}

fn parse_dedup_id(text: &str) -> Result<String, DedupIdError> {
    DedupId::check(text.as_bytes()).map(|()| text.to_owned())
}

fn parse_dedup_prefix(text: &str) -> Result<String, String> {
    if (1..=DEDUP_PREFIX_BYTES_MAX).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(format!("a prefix has 1 to {DEDUP_PREFIX_BYTES_MAX} bytes"))
    }
}

/// The dedup id of a line.
fn line_id(prefix: &str, line: u64) -> String {
    format!("{prefix}-{line}")
}

pub(crate) fn run(args: &SendArgs, invocation: &Invocation) -> Result<u8, Failure> {
    check_queue(&args.queue)?;
    args.body.check(&args.flags.header)?;
    if let Some(at) = args.at.filter(|at| delay_until(*at) > DELAY_MAX) {
        return Err(Failure::new(Code::BadUsage, format!("{at} is more than 366d ahead"))
            .why("the broker keeps a message for no longer before its delivery")
            .fix("send it later"));
    }
    connect::block_on(async {
        let client = connect::caller(invocation).await?;
        if args.lines { many(&client, args, invocation).await } else { one(&client, args, invocation).await }
    })
}

fn send(client: &Client, args: &SendArgs, message: Message, dedup_id: Option<String>) -> SendBuilder {
    let delay = args.delay.or_else(|| args.at.map(delay_until)).unwrap_or_default();
    let send = args.flags.send(client.send(&args.queue, message)).ttl(args.ttl).delay(delay);
    match dedup_id {
        Some(id) => send.dedup_id(id),
        None => send,
    }
}

/// The broker's answer, or why there is none in time.
async fn stored(send: SendBuilder, timeout: Duration) -> Result<Stored, Failure> {
    match tokio::time::timeout(timeout, send).await {
        Ok(stored) => Ok(stored?),
        Err(_) => Err(Failure::new(Code::TimedOut, "the broker did not confirm the message in time")
            .why("it is busy or unreachable, and may or may not have the message")
            .fix("check with `turno queue show QUEUE`, or try again with a longer --timeout")),
    }
}

async fn one(client: &Client, args: &SendArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let message = args.body.message(&client.config()).await?;
    let send = send(client, args, message, args.dedup_id.clone());
    let stored = stored(send, invocation.global.timeout());
    let (stored, drained) = connect::patiently(client, invocation, stored).await;
    let stored = stored.map_err(|failure| if drained { connect::drained(failure) } else { failure })?;
    let document = document(stored);
    let text = row(&document);
    invocation.output.one(&document, &document.id, || text)?;
    Ok(0)
}

fn document(stored: Stored) -> StoredDocument {
    let Stored { id, durability, duplicate, .. } = stored;
    StoredDocument { id: id.to_string(), durability: durability.name().to_owned(), duplicate }
}

fn row(document: &StoredDocument) -> String {
    let StoredDocument { id, durability, duplicate } = document;
    format!("{id} {durability}{}\n", if *duplicate { " duplicate" } else { "" })
}

/// Lines go out as they come, answers are printed in their order. The first failure ends the reading; what is
/// on its way is still waited for.
async fn many(client: &Client, args: &SendArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let mut lines = read_lines(compose::body_bytes_max(&client.config()));
    let mut window = Window::new(IN_FLIGHT);
    let mut tally = SendTally::default();
    let (mut reading, mut read) = (true, 0);
    while reading && tally.failure.is_none() {
        tokio::select! {
            line = lines.recv(), if window.has_room() => match line {
                Some(Ok(body)) => {
                    read += 1;
                    let dedup_id = args.dedup_prefix.as_deref().map(|prefix| line_id(prefix, read));
                    window.begin(stored(send(client, args, body.into(), dedup_id), invocation.global.timeout()));
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

/// How many lines ended, and how.
#[derive(Default)]
struct SendTally {
    stored: u64,
    /// Of these: those that the broker had already.
    duplicates: u64,
    failed: u64,
    /// Of these: those that the broker may have all the same.
    unknown: u64,
    /// The first of them, with its line.
    failure: Option<(u64, Failure)>,
    /// Kept only where all of them go into one document.
    kept: Vec<Line>,
}

impl SendTally {
    fn take(&mut self, end: Result<Stored, Failure>, invocation: &Invocation) -> Result<(), Failure> {
        let line = self.stored + self.failed + 1;
        let (line, document) = match end {
            Ok(stored) => {
                self.stored += 1;
                self.duplicates += u64::from(stored.duplicate);
                let document = document(stored);
                let StoredDocument { id, durability, duplicate } = document.clone();
                let (id, durability, duplicate) = (Some(id), Some(durability), Some(duplicate));
                (Line { line, id, durability, duplicate, error: None }, Some(document))
            }
            Err(failure) => {
                self.failed += 1;
                self.unknown += u64::from(matches!(failure.code(), Code::ConnectionLost | Code::TimedOut));
                let error = Some(failure.body());
                self.failure.get_or_insert((line, failure));
                (Line { line, id: None, durability: None, duplicate: None, error }, None)
            }
        };
        match (invocation.output.format(), document) {
            (Format::Json, _) => {
                self.kept.push(line);
                Ok(())
            }
            (Format::Jsonl, _) => invocation.output.document(&line),
            (Format::Name, Some(document)) => invocation.output.text(document.id),
            (_, Some(document)) => invocation.output.text(row(&document)),
            (_, None) => Ok(()),
        }
    }

    fn finish(self, invocation: &Invocation) -> Result<u8, Failure> {
        let Self { stored, duplicates, failed, unknown, .. } = self;
        let there = if duplicates > 0 { format!(", {duplicates} of them duplicates") } else { String::new() };
        let may = if unknown > 0 { format!(", {unknown} of them possibly stored") } else { String::new() };
        let failure = self.failure.map(|(line, failure)| {
            invocation.output.note(&format!("line {line}: {}", failure.what()));
            let last = stored + failed;
            invocation.output.note(&format!("{stored} stored{there}; {failed} failed{may}"));
            invocation.output.note(&format!("lines after {last} were not sent"));
            if stored > 0 { failure.exit_with(3) } else { failure }
        });
        match (invocation.output.format(), failure) {
            (Format::Json, failure) => {
                invocation.output.document(&StoredListDocument {
                    messages: self.kept,
                    stored,
                    duplicates,
                    failed,
                    unknown,
                })?;
                Ok(failure.map_or(0, |failure| failure.exit()))
            }
            (Format::Jsonl, failure) => Ok(failure.map_or(0, |failure| failure.exit())),
            (_, None) => {
                invocation.output.note(&format!("{stored} stored{there}"));
                Ok(0)
            }
            (_, Some(failure)) => Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_good_prefix_has_a_good_id() {
        let longest = "x".repeat(DEDUP_PREFIX_BYTES_MAX);
        let id = line_id(&longest, u64::MAX);
        assert_eq!((parse_dedup_prefix(&longest).is_ok(), DedupId::check(id.as_bytes())), (true, Ok(())));
        assert_eq!(id.len(), DEDUP_ID_BYTES_MAX);
        assert!(parse_dedup_prefix(&(longest + "x")).is_err() && parse_dedup_prefix("").is_err());
    }
}
