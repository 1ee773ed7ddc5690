//! `turno topic`: what is published, who listens, and subscribers that fetch.

use std::time::Duration;

use clap::{Args, Subcommand};
use turno_client::{AdminAnswer, AdminCall, Client, Event};
use turno_proto::model::topic::view::{EventView, SubscriberView, TopicView};
use turno_proto::model::{Code, Payload, limits};

use super::Invocation;
use super::compose::parse_count;
use super::connect;
use super::error::Failure;
use super::event::{check_topic, filters, printed};
use super::global::Format;
use super::help;
use super::schema::topic::{
    self as shown, EventDocument, EventListDocument, SubscriberDocument, SubscriberListDocument, TopicListDocument,
};
use super::words::count;

/// How often the broker is asked for events that somebody waits for.
const POLL: Duration = Duration::from_millis(100);

/// Filters that fit into one call, whose values are limited.
const FILTERS_A_CALL: usize = limits::MAP_VALUES_MAX / 2;

/// List topics and subscribers; fetch events later
#[derive(Args, Debug)]
pub(crate) struct TopicArgs {
    #[command(subcommand)]
    command: TopicCommand,
}

#[derive(Subcommand, Debug)]
enum TopicCommand {
    #[command(visible_alias = "list")]
    Ls(TopicLsArgs),
    Subscribers(SubscribersArgs),
    Create(CreateArgs),
    Recv(RecvArgs),
    Destroy(DestroyArgs),
}

/// List the most recently used topics
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno topic ls", "turno topic ls --json"], &[1, 5, 78, 124]))]
struct TopicLsArgs {
    /// List at most N; --after TOPIC continues after the last one
    #[arg(long, value_name = "N", value_parser = parse_count)]
    limit: Option<u64>,

    /// Only topics after this one
    #[arg(long, value_name = "TOPIC")]
    after: Option<String>,
}

/// List the subscribers of one topic or of all topics
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno topic subscribers", "turno topic subscribers news.sport -o wide"],
    &[1, 5, 78, 124],
))]
struct SubscribersArgs {
    /// Only subscribers that would receive an event on this topic
    topic: Option<String>,
}

/// Create a subscriber that fetches its events, or add filters to it
///
/// It needs no connection: its events wait in the broker until `turno topic recv`, up to 10,000 events or 8 MiB; then
/// the oldest are dropped. It exists until `turno topic destroy`, or until the broker ends.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno topic create shop-7 'news.*' weather"], &[1, 5, 78, 124]))]
struct CreateArgs {
    /// Subscriber id
    id: String,

    /// Topic filters
    #[arg(required = true, value_name = "FILTER")]
    filters: Vec<String>,
}

/// Fetch the waiting events of a subscriber, oldest first
///
/// Printed events are removed from the broker. If no event waits, the exit status is 4.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno topic recv shop-7", "turno topic recv shop-7 -n 1 --wait --timeout 1m", "turno topic recv shop-7 --json"],
    &[1, 3, 4, 5, 78, 124],
))]
struct RecvArgs {
    /// Subscriber id
    id: String,

    /// Fetch at most N events [default: all waiting events]
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = parse_count)]
    count: Option<u64>,

    /// If no event is waiting, wait for one until --timeout
    #[arg(long)]
    wait: bool,
}

/// Remove a subscriber and its waiting events
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno topic destroy shop-7"], &[1, 4, 5, 78, 124]))]
struct DestroyArgs {
    /// Subscriber id
    id: String,
}

pub(crate) fn run(args: &TopicArgs, invocation: &Invocation) -> Result<u8, Failure> {
    connect::block_on(async {
        match &args.command {
            TopicCommand::Ls(args) => list(args, invocation).await,
            TopicCommand::Subscribers(args) => subscribers(args, invocation).await,
            TopicCommand::Create(args) => create(args, invocation).await,
            TopicCommand::Recv(args) => recv(args, invocation).await,
            TopicCommand::Destroy(args) => destroy(args, invocation).await,
        }
    })
}

async fn ask(client: &Client, call: AdminCall, invocation: &Invocation) -> Result<AdminAnswer, Failure> {
    connect::admin(client, call, invocation.global.timeout()).await
}

async fn list(args: &TopicLsArgs, invocation: &Invocation) -> Result<u8, Failure> {
    if let Some(after) = &args.after {
        check_topic(after)?;
    }
    let client = connect::client(invocation).await?;
    let mut rows: Vec<TopicView> = Vec::new();
    let mut after = args.after.clone();
    let next = loop {
        let left = args.limit.map_or(u64::MAX, |limit| limit - rows.len() as u64);
        let limit = u32::try_from(left).unwrap_or(u32::MAX).min(limits::PAGE_MAX);
        let (topics, next) = match ask(&client, AdminCall::TopicLs { after, limit }, invocation).await? {
            AdminAnswer::Topics { topics, next } => (topics, next),
            other => return Err(connect::unexpected(&other)),
        };
        let is_last = next.is_none() || topics.is_empty();
        rows.extend(topics);
        if is_last || args.limit.is_some_and(|limit| rows.len() as u64 >= limit) {
            break next;
        }
        after = next;
    };
    invocation.output.rows(&TopicListDocument { topics: &rows, next }, &rows)?;
    if rows.is_empty() {
        invocation.output.hint("nothing has been published; try: turno pub news hello");
    }
    Ok(0)
}

async fn subscribers(args: &SubscribersArgs, invocation: &Invocation) -> Result<u8, Failure> {
    if let Some(topic) = &args.topic {
        check_topic(topic)?;
    }
    let client = connect::client(invocation).await?;
    let mut rows: Vec<SubscriberView> = Vec::new();
    let mut after = None;
    loop {
        let call = AdminCall::TopicSubscribers { topic: args.topic.clone(), after, limit: limits::PAGE_MAX };
        let (subscribers, next) = match ask(&client, call, invocation).await? {
            AdminAnswer::Subscribers { subscribers, next } => (subscribers, next),
            other => return Err(connect::unexpected(&other)),
        };
        let is_last = next.is_none() || subscribers.is_empty();
        rows.extend(subscribers);
        if is_last {
            break;
        }
        after = next;
    }
    invocation.output.rows(&SubscriberListDocument { subscribers: &rows, next: None }, &rows)?;
    if rows.is_empty() {
        invocation.output.hint("no subscribers on this broker; try: turno sub '>'");
    }
    Ok(0)
}

async fn create(args: &CreateArgs, invocation: &Invocation) -> Result<u8, Failure> {
    filters(&args.filters, false)?;
    let client = connect::client(invocation).await?;
    let mut latest = None;
    for some in args.filters.chunks(FILTERS_A_CALL) {
        let call = AdminCall::TopicCreate { id: args.id.clone(), filters: some.to_vec() };
        latest = Some(one(ask(&client, call, invocation).await.map_err(|failure| bad_id(failure, &args.id))?)?);
    }
    let subscriber = latest.ok_or_else(|| Failure::of(Code::BadUsage))?;
    tell(&subscriber, "subscribed to", invocation)?;
    invocation.output.hint(&format!("turno topic recv {}", args.id));
    Ok(0)
}

async fn destroy(args: &DestroyArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let call = AdminCall::TopicDestroy { id: args.id.clone() };
    let subscriber = one(ask(&client, call, invocation).await.map_err(|failure| nobody(failure, &args.id))?)?;
    tell(&subscriber, "removed; it was subscribed to", invocation)?;
    Ok(0)
}

fn one(answer: AdminAnswer) -> Result<SubscriberView, Failure> {
    match answer {
        AdminAnswer::Subscribers { mut subscribers, .. } if subscribers.len() == 1 => Ok(subscribers.remove(0)),
        other => Err(connect::unexpected(&other)),
    }
}

fn tell(subscriber: &SubscriberView, what: &str, invocation: &Invocation) -> Result<(), Failure> {
    let text = || format!("{} {what} {}\n", subscriber.name, shown::filters(subscriber));
    invocation.output.one(&SubscriberDocument { subscriber }, &subscriber.name, text)
}

fn bad_id(failure: Failure, id: &str) -> Failure {
    match failure.code() {
        Code::BadName => Failure::new(Code::BadName, format!("invalid subscriber id {id:?}"))
            .why(format!("an id has 1 to {} bytes and no white space", limits::FETCHER_ID_BYTES_MAX))
            .fix("choose one like shop-7"),
        _ => failure,
    }
}

fn nobody(failure: Failure, id: &str) -> Failure {
    match failure.code() {
        Code::NotFound => Failure::new(Code::NotFound, format!("subscriber {id:?} does not exist"))
            .why("it was not created, or the broker has restarted since")
            .fix(format!("turno topic create {id} FILTER")),
        _ => failure,
    }
}

/// The events that were fetched so far.
#[derive(Default)]
struct Fetched {
    printed: u64,
    missed: u64,
    left: u64,
    /// Kept only where all of them go into one document.
    kept: Vec<EventDocument>,
}

async fn recv(args: &RecvArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let mut fetched = Fetched::default();
    let end = fetch(&client, args, invocation, &mut fetched).await;
    let Fetched { printed, missed, left, kept } = fetched;
    let end = match end {
        Err(failure) if printed == 0 => return Err(failure),
        Ok(()) if printed == 0 && args.wait => {
            return Err(Failure::new(Code::TimedOut, format!("no event for {} in time", args.id))
                .why("no published event matched its filters")
                .fix("wait longer with --timeout; `turno topic subscribers` shows the filters"));
        }
        // Fetched events are removed from the broker, so they are shown, even if an error follows.
        end => end.map_err(|failure| failure.exit_with(3)),
    };
    if invocation.output.format() == Format::Json {
        invocation.output.document(&EventListDocument { events: kept, dropped: missed, left: Some(left) })?;
    }
    if printed == 0 {
        invocation.output.note("no events");
        return Ok(Code::NotFound.exit());
    }
    end.map(|()| 0)
}

/// Fetches and prints, until there are enough, or no more.
async fn fetch(
    client: &Client,
    args: &RecvArgs,
    invocation: &Invocation,
    fetched: &mut Fetched,
) -> Result<(), Failure> {
    let wanted = args.count.unwrap_or(u64::MAX);
    let until = tokio::time::Instant::now() + invocation.global.timeout();
    let format = invocation.output.format();
    while fetched.printed < wanted {
        let limit = u32::try_from(wanted - fetched.printed).unwrap_or(u32::MAX).min(limits::PAGE_MAX);
        let call = AdminCall::TopicRecv { id: args.id.clone(), limit };
        let answer = ask(client, call, invocation).await.map_err(|failure| nobody(failure, &args.id))?;
        let AdminAnswer::Events { events, missed, left } = answer else { return Err(connect::unexpected(&answer)) };
        if missed > 0 {
            let are = count(missed, "event is", "events are");
            invocation.output.warn(&format!("{are} missing: too many were waiting"));
        }
        fetched.missed += missed;
        fetched.left = left;
        for view in &events {
            let event = event(view)?;
            invocation.output.raw(&printed(&event, format, false))?;
            fetched.printed += 1;
            if format == Format::Json {
                fetched.kept.push(EventDocument::from(&event));
            }
        }
        if events.is_empty() {
            if fetched.printed > 0 || !args.wait || tokio::time::Instant::now() >= until {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}

fn event(view: &EventView) -> Result<Event, Failure> {
    let EventView { topic, headers, payload } = view;
    let topic = topic.parse().map_err(turno_client::Error::from)?;
    Ok(Event::from_publisher(topic, &Payload { headers: *headers, bytes: payload.clone() }))
}
