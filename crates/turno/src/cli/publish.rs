//! `turno pub`: publish an event.

use clap::Args;
use turno_client::{Client, Message};
use turno_proto::model::Code;

use super::Invocation;
use super::compose::{self, BodyArgs, parse_header};
use super::connect;
use super::error::Failure;
use super::event::check_topic;
use super::help;
use super::lines::read_lines;
use super::schema::topic::PublishedDocument;
use super::words::count;

/// Publish an event to the current subscribers of a topic
///
/// The broker does not store events and does not report whether anybody received one: use `turno send` for messages
/// that must not be lost. A topic has dot-separated segments, such as news.sport.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno pub news.sport 2:1",
        "turno pub weather - < report.txt",
        "tail -f app.log | turno pub logs.app --lines",
        "turno pub news.sport 2:1 -H lang=en --confirm",
    ],
    &[1, 3, 5, 78, 124],
))]
pub(crate) struct PubArgs {
    /// Topic
    topic: String,

    #[command(flatten)]
    body: BodyArgs,

    /// Publish each line of standard input as an event
    #[arg(long, conflicts_with_all = ["body", "part"])]
    lines: bool,

    /// Wait until the broker has forwarded it
    #[arg(long)]
    confirm: bool,

    /// Add a header; repeatable
    #[arg(short = 'H', long, value_name = "KEY=VALUE", value_parser = parse_header)]
    header: Vec<(String, String)>,
}

pub(crate) fn run(args: &PubArgs, invocation: &Invocation) -> Result<u8, Failure> {
    check_topic(&args.topic)?;
    args.body.check(&args.header)?;
    connect::block_on(async {
        let client = connect::caller(invocation).await?;
        let events = if args.lines {
            many(&client, args, invocation).await?
        } else {
            let message = args.body.message(&client.config()).await?;
            publish(&client, args, message, invocation).await?;
            1
        };
        // Without a confirmation the last of them may still be on their way to the broker.
        client.close().await;
        let PubArgs { topic, confirm, .. } = args;
        let document = PublishedDocument { topic: topic.clone(), events, confirmed: *confirm };
        if invocation.output.format().is_json() {
            invocation.output.document(&document)?;
        }
        if args.lines {
            invocation.output.note(&format!("{} published", count(events, "event", "events")));
        }
        Ok(0)
    })
}

async fn publish(client: &Client, args: &PubArgs, message: Message, invocation: &Invocation) -> Result<(), Failure> {
    let event = client.publish(&args.topic, message);
    let event = args.header.iter().fold(event, |event, (key, value)| event.header(key, value));
    let published = if args.confirm { event.confirmed() } else { event };
    match tokio::time::timeout(invocation.global.timeout(), published).await {
        Ok(end) => Ok(end?),
        Err(_) => Err(Failure::new(Code::TimedOut, "the broker did not confirm the event in time")
            .why("it is busy or unreachable, and may or may not have forwarded the event")
            .fix("try again with a longer --timeout")),
    }
}

/// One by one: the next line is read when the one before is on its way.
async fn many(client: &Client, args: &PubArgs, invocation: &Invocation) -> Result<u64, Failure> {
    let mut lines = read_lines(compose::body_bytes_max(&client.config()));
    let mut events = 0;
    while let Some(line) = lines.recv().await {
        let end = match line {
            Ok(body) => publish(client, args, body.into(), invocation).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = end {
            invocation.output.note(&format!(
                "{} published; line {} failed",
                count(events, "event", "events"),
                events + 1
            ));
            return Err(if events > 0 { failure.exit_with(3) } else { failure });
        }
        events += 1;
    }
    Ok(events)
}
