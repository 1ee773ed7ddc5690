//! `turno queue`: what waits, and for whom; dead letters; settings of a queue.

mod dead;
mod pairs;
mod settings;

use clap::{Args, Subcommand};
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::view::{MessageView, QueueView};
use turno_proto::model::{Code, Seconds, limits, units};

use super::Invocation;
use super::compose::{check_queue, parse_count};
use super::connect;
use super::error::Failure;
use super::help;
use super::schema::queue::{ConsumerListDocument, QueueDocument, QueueListDocument};
use super::shown::Page;
use super::size;
use super::table::{self, Cell as _};
use super::words::counted;

/// List, show, set and purge queues
#[derive(Args, Debug)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Subcommand, Debug)]
enum QueueCommand {
    #[command(visible_alias = "list")]
    Ls(QueueLsArgs),
    #[command(visible_aliases = ["info", "get"])]
    Show(QueueShowArgs),
    Consumers(ConsumersArgs),
    Set(settings::SetArgs),
    Purge(settings::QueuePurgeArgs),
    Dead(dead::DeadArgs),
}

/// List queues in order of name
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue ls", "turno queue ls --json", "turno queue ls --columns name,ready,oldest_seconds", "turno queue ls -o name"],
    &[1, 5, 78, 124],
))]
struct QueueLsArgs {
    /// List at most N; --after NAME continues after the last one
    #[arg(long, value_name = "N", value_parser = parse_count)]
    limit: Option<u64>,

    /// Only queues after this name
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
}

/// Show one queue and its first waiting messages
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue show emails", "turno queue show emails --json"],
    &[1, 4, 5, 78, 124],
))]
struct QueueShowArgs {
    /// The queue
    queue: String,
}

/// List the workers of a queue in the order of their turns
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue consumers emails", "turno queue consumers emails --columns turn,name,free"],
    &[1, 4, 5, 78, 124],
))]
struct ConsumersArgs {
    /// The queue
    queue: String,
}

pub(crate) fn run(args: &QueueArgs, invocation: &Invocation) -> Result<u8, Failure> {
    match &args.command {
        QueueCommand::Ls(args) => connect::block_on(list(args, invocation)),
        QueueCommand::Show(args) => connect::block_on(show(&args.queue, invocation)),
        QueueCommand::Consumers(args) => connect::block_on(consumers(&args.queue, invocation)),
        QueueCommand::Set(args) => connect::block_on(settings::set(args, invocation)),
        QueueCommand::Purge(args) => connect::block_on(settings::purge(args, invocation)),
        QueueCommand::Dead(args) => connect::block_on(dead::run(args, invocation)),
    }
}

async fn list(args: &QueueLsArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let mut rows: Vec<QueueView> = Vec::new();
    let mut after = args.after.clone();
    let next = loop {
        let left = args.limit.map_or(u64::MAX, |limit| limit - rows.len() as u64);
        let limit = u32::try_from(left).unwrap_or(u32::MAX).min(limits::PAGE_MAX);
        let call = AdminCall::QueueLs { after: after.clone(), limit };
        let (queues, next) = match connect::admin(&client, call, invocation.global.timeout()).await? {
            AdminAnswer::Queues { queues, next } => (queues, next),
            other => return Err(connect::unexpected(&other)),
        };
        let is_last = next.is_none() || queues.is_empty();
        rows.extend(queues);
        if is_last || args.limit.is_some_and(|limit| rows.len() as u64 >= limit) {
            break next;
        }
        after = next;
    };
    invocation.output.rows(&QueueListDocument { queues: &rows, next }, &rows)?;
    if rows.is_empty() {
        invocation.output.hint("no queues; the first message creates one: turno send hello hi");
    }
    Ok(0)
}

async fn show(queue: &str, invocation: &Invocation) -> Result<u8, Failure> {
    check_queue(queue)?;
    let client = connect::client(invocation).await?;
    let view = view(&client, queue, invocation).await?;
    invocation.output.one(&QueueDocument { queue: &view }, queue, || text(&view, invocation))?;
    if view.ready > 0 && view.consumers == 0 {
        invocation.output.hint(&format!("no consumers; start a worker: turno work {queue} -- PROGRAM"));
    }
    Ok(0)
}

async fn consumers(queue: &str, invocation: &Invocation) -> Result<u8, Failure> {
    check_queue(queue)?;
    let client = connect::client(invocation).await?;
    let call = AdminCall::QueueConsumers { queue: queue.to_owned() };
    let (consumers, more) = match ask(&client, call, queue, invocation).await? {
        AdminAnswer::Consumers { consumers, more } => (consumers, more),
        other => return Err(connect::unexpected(&other)),
    };
    let document = ConsumerListDocument { queue: queue.to_owned(), consumers: &consumers, more };
    invocation.output.rows(&document, &consumers)?;
    if more > 0 {
        invocation.output.hint(&format!("{more} more consumers are not shown"));
    }
    Ok(0)
}

/// The queue as it is now.
async fn view(client: &Client, queue: &str, invocation: &Invocation) -> Result<QueueView, Failure> {
    match ask(client, AdminCall::QueueShow { queue: queue.to_owned() }, queue, invocation).await? {
        AdminAnswer::Queue { queue } => Ok(*queue),
        other => Err(connect::unexpected(&other)),
    }
}

async fn ask(client: &Client, call: AdminCall, queue: &str, invocation: &Invocation) -> Result<AdminAnswer, Failure> {
    let answer = connect::admin(client, call, invocation.global.timeout()).await;
    answer.map_err(|failure| match failure.code() {
        Code::NotFound => Failure::new(Code::NotFound, format!("queue {queue} does not exist"))
            .why("a queue exists when it has a message, a consumer or settings")
            .fix("`turno queue ls` lists the queues"),
        _ => failure,
    })
}

fn text(row: &QueueView, invocation: &Invocation) -> Page {
    let clock = invocation.output.clock();
    let oldest = row.oldest_seconds.map_or_else(|| "-".to_owned(), |age| age.cell(clock));
    let mut facts = vec![
        ("queue", row.name.clone()),
        ("ready", row.ready.to_string()),
        ("delayed", told_delayed(row, invocation)),
        ("in flight", row.in_flight.to_string()),
        ("dead", row.dead.to_string()),
        ("oldest", oldest),
        ("consumers", format!("{}, {} slots free", row.consumers, row.slots_free)),
        ("memory", size::short(row.bytes)),
        ("durable", told_durable(row)),
        ("drops", told_drops(row.drop_after)),
        ("weight", row.weight.to_string()),
        ("retries", told_retries(row)),
        ("so far", counted(&row.counters)),
    ];
    if let Some(exclusive) = &row.exclusive {
        let whose =
            exclusive.worker.as_ref().map_or_else(|| "a disconnected worker".to_owned(), |id| format!("worker {id}"));
        facts.push(("exclusive", format!("{whose}, token {}", exclusive.token)));
    }
    if row.waiters > 0 {
        facts.push(("standby", row.waiters.to_string()));
    }
    let mut page = table::facts(&facts);
    page.append(&messages("next:", row.head.as_deref().unwrap_or_default(), invocation));
    page
}

/// Whether sends to it outlive the broker, and who says so.
fn told_durable(row: &QueueView) -> String {
    let durable = if row.durable { "yes" } else { "no" };
    match row.settings.as_ref().and_then(|settings| settings.durable) {
        Some(_) => format!("{durable}, set for this queue"),
        None => durable.to_owned(),
    }
}

/// When a worker is dropped.
fn told_drops(drop_after: u16) -> String {
    match drop_after {
        0 => "never".to_owned(),
        1 => "a worker after 1 expired delivery".to_owned(),
        count => format!("a worker after {count} expired deliveries in a row"),
    }
}

/// How many messages wait for a time, and until when the first of them does.
fn told_delayed(row: &QueueView, invocation: &Invocation) -> String {
    match row.delayed_until {
        Some(until) => format!("{}, the next until {}", row.delayed, invocation.output.clock().phrase(until)),
        None => row.delayed.to_string(),
    }
}

/// Attempts of sends that name no number, and the waits between them.
fn told_retries(row: &QueueView) -> String {
    let attempts = u16::from(limits::SEND_RETRIES) + 1;
    let (first, most) = (row.retry_delay_seconds, row.retry_delay_max_seconds);
    if first == Seconds::default() {
        return format!("{attempts} attempts of a send, at once");
    }
    let [first, most] = [first, most].map(|wait| units::format_duration(wait.duration()));
    format!("{attempts} attempts of a send, the second after {first}, then twice as long each, at most {most}")
}

/// A few messages below a heading; nothing if there are none.
pub(crate) fn messages(heading: &str, list: &[MessageView], invocation: &Invocation) -> Page {
    let mut page = Page::new();
    if !list.is_empty() {
        page.line(heading);
    }
    for message in list {
        let moment = invocation.output.clock().phrase(message.received_at);
        page.line(&format!(
            "  {} {} of {}, priority {}, cost {}, {} bytes, attempt {} of {}, received {moment}",
            message.id,
            message.kind,
            message.queue,
            message.priority,
            message.cost,
            message.bytes,
            message.attempts,
            message.attempts_max,
        ));
    }
    page
}
