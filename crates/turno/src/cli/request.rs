//! `turno request`: ask and print the reply.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use turno_client::{AdminAnswer, AdminCall, Client, Message, RequestBuilder};
use turno_proto::model::{Code, units};

use super::Invocation;
use super::compose::{BodyArgs, MessageFlags, check_queue, parse_count};
use super::connect;
use super::error::Failure;
use super::global::Format;
use super::help;
use super::schema::reply::{
    Answer, MessageContent, PieceDocument, ReplyBody, ReplyDocument, ReplyListDocument, StreamDocument,
};
use super::shell::quoted;
use super::window::Window;
use super::words::count;

/// How long the broker may take to tell who consumes a queue, for an error.
const LOOK: Duration = Duration::from_secs(2);

/// Send a request and print the reply
///
/// The request waits for a worker until its deadline (--timeout), unless --fail-fast is given. If this program ends
/// earlier, the worker is told to stop; --deadline lets the work continue without a caller.
///
/// --part makes a message of several parts, such as the frames of a ZeroMQ message. The body of a reply with several parts
/// is printed as one text; --parts prints each part on its own line, and --json has a list of them.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno request hello hi",
        "turno request resize - --timeout 30s < photo.jpg > small.jpg",
        "turno request hello hi --fail-fast",
        "turno request report now --timeout 2s --deadline 10m",
        "turno request hello hi --count 1000 --parallel 50",
        "turno request hello hi -H content-type=text/plain --json",
        "turno request legacy --part SET --part '' --part 42 --parts",
    ],
    &[1, 3, 5, 6, 78, 124],
))]
pub(crate) struct RequestArgs {
    /// The queue
    queue: String,

    #[command(flatten)]
    body: BodyArgs,

    #[command(flatten)]
    flags: MessageFlags,

    /// Fail immediately if the queue has no consumer
    #[arg(long, visible_alias = "no-wait", overrides_with = "wait")]
    fail_fast: bool,

    /// Wait for a worker until the timeout; this is the default
    #[arg(long, overrides_with = "fail_fast")]
    wait: bool,

    /// Deadline of the work itself, even after --timeout or the end of this process [default: --timeout]
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    deadline: Option<Duration>,

    /// With --deadline: cancel the request at --timeout or when this process ends
    #[arg(long)]
    cancel_on_timeout: bool,

    /// Print each part of the reply on a line of its own
    #[arg(long, conflicts_with = "count")]
    parts: bool,

    /// Print pieces of the reply as they arrive
    #[arg(long, conflicts_with = "count")]
    stream: bool,

    /// Send the request N times; print one reply per line
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    count: u64,

    /// With --count: requests in flight
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_count)]
    parallel: u64,
}

impl RequestArgs {
    fn request(&self, request: RequestBuilder) -> RequestBuilder {
        let mut request = self.flags.request(request);
        if self.fail_fast {
            request = request.fail_fast();
        }
        if let Some(deadline) = self.deadline {
            request = request.deadline(deadline);
        }
        if self.cancel_on_timeout {
            request = request.cancel_on_timeout();
        } else if self.deadline.is_some() {
            request = request.continue_on_disconnect();
        }
        // A caller that lets a worker try again does not mind a broker trying again.
        if self.flags.retries.is_some_and(|retries| retries > 0) { request.idempotent() } else { request }
    }
}

pub(crate) fn run(args: &RequestArgs, invocation: &Invocation) -> Result<u8, Failure> {
    check_queue(&args.queue)?;
    args.body.check(&args.flags.header)?;
    connect::block_on(async {
        let client = connect::caller(invocation).await?;
        let message = args.body.message(&client.config()).await?;
        let request = args.request(client.request(&args.queue, message).timeout(invocation.global.timeout()));
        match (args.stream, args.count) {
            (true, _) => stream(&client, args, request, invocation).await,
            (false, 1) => one(&client, args, request, invocation).await,
            (false, _) => many(&client, args, &request, invocation).await,
        }
    })
}

fn reply_body(reply: Message, since: Instant) -> ReplyBody {
    ReplyBody {
        content: MessageContent::new(&reply.headers, &reply.body),
        headers: reply.headers,
        seconds: since.elapsed().as_secs_f64(),
    }
}

async fn one(
    client: &Client,
    args: &RequestArgs,
    request: RequestBuilder,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let since = Instant::now();
    let (end, drained) = connect::patiently(client, invocation, request.into_future()).await;
    let reply = match end {
        Ok(reply) => reply,
        Err(error) if drained => return Err(connect::drained(explained(error, &args.queue))),
        Err(error) => return Err(looked_up(explained(error, &args.queue), client, &args.queue).await),
    };
    if invocation.output.format().is_json() {
        invocation.output.document(&ReplyDocument { reply: reply_body(reply, since) })?;
        return Ok(0);
    }
    let bytes = printed(reply, args.parts);
    invocation.output.raw(&bytes)?;
    end_line(&bytes, invocation)?;
    Ok(0)
}

/// The bytes of a reply: its body, or its parts line by line.
fn printed(reply: Message, by_parts: bool) -> Bytes {
    if !by_parts {
        return reply.body;
    }
    let mut lines = Vec::with_capacity(reply.body.len() + 1);
    for part in reply.parts() {
        lines.extend_from_slice(&part);
        lines.push(b'\n');
    }
    lines.into()
}

/// The failure with the queue's own name in its remedy.
fn explained(error: turno_client::Error, queue: &str) -> Failure {
    let failure = Failure::from(error);
    match failure.code() {
        Code::NoResponder => Failure::new(Code::NoResponder, format!("queue {queue} has no consumer"))
            .fix(format!("start a worker: `turno work {queue} -- PROGRAM`, or omit --fail-fast to wait for one")),
        _ => failure,
    }
}

/// A request that ran out of time, with what the broker knows of the queue's workers now. The queue itself is forgotten
/// with its last message if nobody consumes it.
async fn looked_up(failure: Failure, client: &Client, queue: &str) -> Failure {
    if failure.code() != Code::TimedOut {
        return failure;
    }
    let call = AdminCall::QueueConsumers { queue: queue.to_owned() };
    let consumers = match connect::admin(client, call, LOOK).await {
        Ok(AdminAnswer::Consumers { consumers, more }) => consumers.len() as u64 + more,
        Err(failure) if failure.code() == Code::NotFound => 0,
        // It is no better known than before.
        Ok(_) | Err(_) => return failure,
    };
    match consumers {
        0 => failure
            .why(format!("queue {queue} has no consumer on this broker"))
            .fix(format!("start a worker: turno work {} -- PROGRAM", quoted(queue))),
        _ => failure
            .why(format!(
                "{} the queue; none had a free slot or replied in time",
                count(consumers, "worker consumes", "workers consume")
            ))
            .fix(format!("raise --timeout or add workers; turno queue consumers {} shows their load", quoted(queue))),
    }
}

/// On a terminal the prompt begins on a line of its own; elsewhere not a byte is added.
fn end_line(body: &[u8], invocation: &Invocation) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() && !body.is_empty() && !body.ends_with(b"\n") {
        invocation.output.raw(b"\n")?;
    }
    Ok(())
}

async fn stream(
    client: &Client,
    args: &RequestArgs,
    request: RequestBuilder,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let since = Instant::now();
    let mut replies = request.stream().await?;
    let mut pieces = Vec::new();
    let mut number = 0;
    let mut last = Bytes::new();
    while let Some(piece) = replies.next().await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => return Err(looked_up(explained(error, &args.queue), client, &args.queue).await),
        };
        number += 1;
        match invocation.output.format() {
            Format::Json => pieces.push(reply_body(piece, since)),
            Format::Jsonl => {
                invocation.output.document(&PieceDocument { piece: number, reply: reply_body(piece, since) })?;
            }
            _ => {
                last = printed(piece, args.parts);
                invocation.output.raw(&last)?;
            }
        }
    }
    match invocation.output.format() {
        Format::Json => {
            let seconds = since.elapsed().as_secs_f64();
            invocation.output.document(&StreamDocument { pieces, seconds })?;
        }
        Format::Jsonl => {}
        _ => end_line(&last, invocation)?,
    }
    Ok(0)
}

async fn many(
    client: &Client,
    args: &RequestArgs,
    request: &RequestBuilder,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let since = Instant::now();
    let mut window = Window::new(usize::try_from(args.parallel).unwrap_or(usize::MAX));
    let mut tally = RequestTally::default();
    for _ in 0..args.count {
        while !window.has_room() {
            if let Some((end, asked)) = window.next().await {
                tally.take(end, asked, args, invocation)?;
            }
        }
        let request = request.clone();
        window.begin(async move {
            let asked = Instant::now();
            (request.await, asked)
        });
    }
    while let Some((end, asked)) = window.finish().await {
        tally.take(end, asked, args, invocation)?;
    }
    if let Some(failure) = tally.failure.take() {
        tally.failure = Some(looked_up(failure, client, &args.queue).await);
    }
    tally.finish(since, invocation)
}

/// How many requests ended, and how.
#[derive(Default)]
struct RequestTally {
    answered: u64,
    failed: u64,
    /// The first of them; the others are only counted.
    failure: Option<Failure>,
    /// Kept only where all of them go into one document.
    kept: Vec<Answer>,
}

impl RequestTally {
    fn take(
        &mut self,
        end: Result<Message, turno_client::Error>,
        asked: Instant,
        args: &RequestArgs,
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let number = self.answered + self.failed + 1;
        let format = invocation.output.format();
        let answer = match end {
            Ok(reply) => {
                self.answered += 1;
                if !format.is_json() {
                    let mut line = reply.body.to_vec();
                    line.push(b'\n');
                    return invocation.output.raw(&line);
                }
                Answer { number, reply: Some(reply_body(reply, asked)), error: None }
            }
            Err(error) => {
                self.failed += 1;
                let failure = explained(error, &args.queue);
                let body = failure.body();
                self.failure.get_or_insert(failure);
                Answer { number, reply: None, error: Some(body) }
            }
        };
        match format {
            Format::Json => self.kept.push(answer),
            Format::Jsonl => invocation.output.document(&answer)?,
            _ => {}
        }
        Ok(())
    }

    fn finish(self, since: Instant, invocation: &Invocation) -> Result<u8, Failure> {
        let seconds = since.elapsed().as_secs_f64();
        let sent = self.answered + self.failed;
        let (answered, failed) = (self.answered, self.failed);
        invocation.output.note(&format!("{sent} sent, {answered} answered, {failed} failed in {seconds:.3} s"));
        let exit = match (&self.failure, answered) {
            (None, _) => 0,
            (Some(failure), 0) => failure.exit(),
            (Some(_), _) => 3,
        };
        if invocation.output.format() == Format::Json {
            let replies = self.kept;
            invocation.output.document(&ReplyListDocument { replies, sent, answered, failed, seconds })?;
            return Ok(exit);
        }
        match self.failure {
            Some(failure) if !invocation.output.format().is_json() => Err(failure.exit_with(exit)),
            _ => Ok(exit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_its_body_or_a_line_for_each_part() {
        let table = [
            (Message::new("a\nb"), "a\nb", "a\nb\n"),
            (Message::default(), "", "\n"),
            (Message::from_parts(["a", "", "b"]).unwrap(), "ab", "a\n\nb\n"),
            (Message::new("ab").header("parts", "1 2"), "ab", "ab\n"),
        ];
        for (reply, body, lines) in table {
            assert_eq!((printed(reply.clone(), false), printed(reply, true)), (body.into(), lines.into()));
        }
    }
}
