//! `turno broadcast`: say something to every consumer and print what they answer.

use std::time::Instant;

use clap::Args;
use turno_client::{Answer, AnswerPart, BroadcastConsumer, BroadcastEnd};
use turno_proto::model::Code;

use super::Invocation;
use super::compose::{BodyArgs, check_queue, parse_header};
use super::connect;
use super::error::Failure;
use super::global::Format;
use super::help;
use super::schema::broadcast::{BroadcastAnswer, BroadcastDocument, BroadcastEndDocument};
use super::shown::escaped;
use super::words::count;

/// Send a message to every worker of a queue and print the replies
///
/// Busy workers receive it too: a broadcast takes no slots. Each reply is printed when it arrives, as NAME: BODY. The
/// last line, on stderr, counts the workers that answered and names the others. --timeout is the deadline: workers that
/// have not answered by then are told to stop, and the exit status is 124. If a worker failed or left, it is 3. A queue
/// without workers is not an error: 0 of 0 answered.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno broadcast workers reload",
        "turno broadcast workers reload --timeout 5s",
        "turno broadcast cache - --no-reply < keys.txt",
        "turno broadcast workers version -o jsonl",
    ],
    &[1, 3, 5, 78, 124],
))]
pub(crate) struct BroadcastArgs {
    /// The queue
    queue: String,

    #[command(flatten)]
    body: BodyArgs,

    /// Expect no replies: done once written to every consumer
    #[arg(long)]
    no_reply: bool,

    /// Skip this connection if it consumes the queue
    #[arg(long)]
    skip_self: bool,

    /// Add a header; repeatable
    #[arg(short = 'H', long, value_name = "KEY=VALUE", value_parser = parse_header)]
    header: Vec<(String, String)>,
}

pub(crate) fn run(args: &BroadcastArgs, invocation: &Invocation) -> Result<u8, Failure> {
    check_queue(&args.queue)?;
    args.body.check(&args.header)?;
    connect::block_on(async {
        let client = connect::caller(invocation).await?;
        let message = args.body.message(&client.config()).await?;
        let mut call = client.broadcast(&args.queue, message).timeout(invocation.global.timeout());
        if args.no_reply {
            call = call.no_reply();
        }
        if args.skip_self {
            call = call.skip_self();
        }
        let call = args.header.iter().fold(call, |call, (key, value)| call.header(key, value));
        let since = Instant::now();
        let mut broadcast = call.await?;
        let mut kept = Vec::new();
        let (mut next, drained) = connect::patiently(&client, invocation, broadcast.next()).await;
        while let Some(answer) = next {
            let answer = answer.map_err(|error| if drained { connect::drained(error.into()) } else { error.into() })?;
            tell(answer, since, &mut kept, invocation)?;
            next = broadcast.next().await;
        }
        let end = broadcast.end().ok_or_else(|| Failure::of(Code::ConnectionLost))?;
        finish(args, end, kept, since, invocation)
    })
}

fn tell(
    answer: Answer,
    since: Instant,
    kept: &mut Vec<BroadcastAnswer>,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let seconds = since.elapsed().as_secs_f64();
    match (invocation.output.format(), &answer.part) {
        (Format::Json, _) => kept.push(BroadcastAnswer::new(answer, seconds)),
        (Format::Jsonl, _) => invocation.output.document(&BroadcastAnswer::new(answer, seconds))?,
        (_, AnswerPart::Piece(reply) | AnswerPart::Last(reply)) => {
            let mut line = format!("{}: ", escaped(&answer.name)).into_bytes();
            line.extend_from_slice(&reply.body);
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            invocation.output.raw(&line)?;
        }
        (_, AnswerPart::Failed(why)) => {
            let why = why.lines().next().unwrap_or_default();
            invocation.output.note(&format!("{} failed: {why}", answer.name));
        }
    }
    Ok(())
}

fn finish(
    args: &BroadcastArgs,
    end: &BroadcastEnd,
    answers: Vec<BroadcastAnswer>,
    since: Instant,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let seconds = since.elapsed().as_secs_f64();
    let document = BroadcastEndDocument { end: end.clone(), seconds };
    match invocation.output.format() {
        Format::Json => invocation.output.document(&BroadcastDocument { answers, end: document })?,
        Format::Jsonl => invocation.output.document(&document)?,
        _ => {}
    }
    invocation.output.note(&summary(end, args.no_reply));
    Ok(match end {
        BroadcastEnd { expired: 1.., .. } => Code::TimedOut.exit(),
        BroadcastEnd { failed: 1.., .. } | BroadcastEnd { left: 1.., .. } => 3,
        _ => 0,
    })
}

/// The last line: how many answered, and who did not.
fn summary(end: &BroadcastEnd, no_reply: bool) -> String {
    if no_reply {
        return format!("written to {}", count(end.consumers.into(), "consumer", "consumers"));
    }
    let mut line = format!("{} of {} answered", end.answered, end.consumers);
    if end.failed > 0 {
        line += &format!(", {} failed", end.failed);
    }
    for (word, count, named) in [("expired", end.expired, &end.who_expired), ("left", end.left, &end.who_left)] {
        if count > 0 {
            line += &format!(", these {word}: {}", names(count, named));
        }
    }
    line
}

/// Workers by their names, and how many more there are.
fn names(count: u32, named: &[BroadcastConsumer]) -> String {
    let of =
        |party: &BroadcastConsumer| if party.name.is_empty() { party.worker.to_string() } else { party.name.clone() };
    let mut list = named.iter().map(of).collect::<Vec<String>>().join(", ");
    let more = (count as usize).saturating_sub(named.len());
    if more > 0 {
        list += &format!(" and {more} more");
    }
    list
}

#[cfg(test)]
mod tests {
    use turno_proto::model::WorkerId;

    use super::*;

    /// S2.13: the last line says how each consumer ended.
    #[test]
    fn the_last_line_says_who_did_not_answer() {
        let party = |worker, name: &str| BroadcastConsumer { worker: WorkerId(worker), name: name.to_owned() };
        let all = BroadcastEnd { consumers: 2, answered: 2, ..BroadcastEnd::default() };
        let some = BroadcastEnd {
            consumers: 7,
            answered: 1,
            failed: 2,
            expired: 3,
            left: 1,
            who_expired: vec![party(1, "a"), party(2, "")],
            who_left: vec![party(3, "c")],
        };
        let table = [
            (BroadcastEnd::default(), false, "0 of 0 answered"),
            (all.clone(), false, "2 of 2 answered"),
            (all, true, "written to 2 consumers"),
            (some, false, "1 of 7 answered, 2 failed, these expired: a, 2 and 1 more, these left: c"),
        ];
        for (end, no_reply, line) in table {
            assert_eq!(summary(&end, no_reply), line);
        }
    }
}
