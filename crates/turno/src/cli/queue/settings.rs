//! `turno queue set` and `turno queue purge`: a queue as a whole.

use clap::{Args, value_parser};
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::view::{QueueSettings, QueueView};
use turno_proto::model::{Code, limits};

use super::pairs::{self, Pair};
use super::{ask, told_drops, told_retries, view};
use crate::cli::Invocation;
use crate::cli::compose::check_queue;
use crate::cli::confirm;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::dead::PurgedDocument;
use crate::cli::schema::queue::QueueDocument;
use crate::cli::shown::Page;

/// Change the settings of a queue
///
/// Settings that are not named do not change. A queue with settings is kept even if it is unused, and over restarts of
/// the broker.
///
/// Sends to a durable queue are on the broker's disk before they are answered; sends to a volatile queue are in memory
/// only and end with the broker. Messages that are already stored stay stored. A worker with N expired deliveries in a
/// row (--drop-after) is dropped from the queue and returns with one delivery at a time. A worker of several queues
/// gets one message from each in turn, or up to N in a row from a queue of weight N.
#[derive(Args, Debug)]
#[command(override_usage = "turno queue set [OPTIONS] <QUEUE> [KEY=VALUE]...")]
#[command(after_long_help = help::notes(
    &["turno queue set ticks --volatile", "turno queue set orders --durable --drop-after 5", "turno queue set orders --weight 3",
      "turno queue set orders retry-delay=5s retry-delay-max=1h", "turno queue set ticks --default"],
    &[1, 4, 5, 78, 124],
))]
pub(super) struct SetArgs {
    /// Queue; created if it does not exist
    queue: String,

    #[command(flatten)]
    wanted: Wanted,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
struct Wanted {
    /// Settings to change
    ///
    /// durable=yes|no and drop-after=N and weight=N are as the options of these names. A send that its worker fails waits for
    /// retry-delay=DURATION before its second attempt, then twice as long each time, at most retry-delay-max=DURATION; 0s is no
    /// wait, 30d the longest that is allowed. What the queue does not set is the broker's: 1s and 5m.
    #[arg(value_name = "KEY=VALUE", value_parser = pairs::parse)]
    pairs: Vec<Pair>,

    /// Store sends on disk before acknowledging them
    #[arg(long, conflicts_with = "volatile")]
    durable: bool,

    /// Keep sends in memory only
    #[arg(long)]
    volatile: bool,

    /// Drop a worker after N expired deliveries in a row, 0 to 1000; 0: never
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(0..=i64::from(limits::DROP_AFTER_MAX)))]
    drop_after: Option<u16>,

    /// Messages per round for a worker of several queues, 1 to 100
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=i64::from(limits::WEIGHT_MAX)))]
    weight: Option<u8>,

    /// Reset to defaults: durable if the broker has a store, the broker's drop-after, weight 1
    #[arg(long, conflicts_with_all = ["pairs", "durable", "volatile", "drop_after", "weight"])]
    default: bool,
}

impl Wanted {
    /// The changes; `None`: the queue gets the broker's defaults back.
    fn settings(&self) -> Result<Option<QueueSettings>, Failure> {
        let durable = (self.durable || self.volatile).then_some(self.durable);
        let mut settings =
            QueueSettings { durable, drop_after: self.drop_after, weight: self.weight, ..QueueSettings::default() };
        pairs::apply(&self.pairs, &mut settings)?;
        Ok((!self.default).then_some(settings))
    }
}

/// Remove the waiting messages of a queue
///
/// Messages that wait for a time are removed too. Messages at workers stay, and so do dead letters, unless --dead is given. Callers of removed requests are told.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue purge emails", "turno queue purge emails --dead --yes"],
    &[1, 4, 5, 78, 124],
))]
pub(super) struct QueuePurgeArgs {
    /// The queue
    queue: String,

    /// Also remove dead letters
    #[arg(long)]
    dead: bool,
}

pub(super) async fn set(args: &SetArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let queue = &args.queue;
    check_queue(queue)?;
    let settings = args.wanted.settings()?;
    let client = connect::client(invocation).await?;
    let call = AdminCall::QueueSet { queue: queue.clone(), settings };
    let view = match ask(&client, call, queue, invocation).await? {
        AdminAnswer::Queue { queue } => queue,
        other => return Err(connect::unexpected(&other)),
    };
    invocation.output.one(&QueueDocument { queue: &view }, queue, || {
        let whose = if settings.is_some() { "" } else { " by default" };
        let changed =
            settings.unwrap_or_else(|| QueueSettings { durable: Some(view.durable), ..QueueSettings::default() });
        let mut page: Page = match changed.durable.map(|_| view.durable) {
            Some(true) => {
                format!("queue {queue} is durable{whose}: sends are stored on disk before they are acknowledged").into()
            }
            Some(false) => format!("queue {queue} is volatile{whose}: sends are kept in memory only").into(),
            None => Page::new(),
        };
        if changed.drop_after.is_some() {
            page.line(&format!("queue {queue} drops: {}", told_drops(view.drop_after)));
        }
        if changed.weight.is_some() {
            page.line(&format!("queue {queue} has weight {}", view.weight));
        }
        if changed.retry_delay_seconds.is_some() || changed.retry_delay_max_seconds.is_some() {
            page.line(&format!("queue {queue} retries: {}", told_retries(&view)));
        }
        page
    })?;
    Ok(0)
}

pub(super) async fn purge(args: &QueuePurgeArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let queue = &args.queue;
    check_queue(queue)?;
    let client = connect::client(invocation).await?;
    let QueueView { ready, delayed, in_flight, dead, .. } = view(&client, queue, invocation).await?;
    // Those that wait for a time are removed too.
    let ready = ready + delayed;
    let question = match args.dead {
        true => format!(
            "remove {ready} waiting messages and {dead} dead letters of queue {queue}, leaving {in_flight} in flight?"
        ),
        false => format!(
            "remove {ready} waiting messages of queue {queue}, leaving {in_flight} in flight and {dead} dead letters?"
        ),
    };
    confirm::ask(invocation, &question)?;
    let purge = |limit| AdminCall::QueuePurge { queue: queue.clone(), limit };
    let purged = in_portions(&client, queue, ready, invocation, purge).await?;
    let bury = |oldest| AdminCall::DeadPurge { queue: queue.clone(), ids: Vec::new(), oldest };
    let purged_dead = match args.dead {
        true => in_portions(&client, queue, dead, invocation, bury).await?,
        false => 0,
    };
    told_purged(&client, queue, Some(purged), purged_dead, invocation).await
}

/// Prints how many messages were removed and how many are left. Without `purged` waiting messages were not to be removed.
pub(super) async fn told_purged(
    client: &Client,
    queue: &str,
    purged: Option<u64>,
    purged_dead: u64,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let (ready, in_flight, dead) = match view(client, queue, invocation).await {
        Ok(view) => (view.ready, view.in_flight, view.dead),
        // Nobody uses it, and nothing is in it any more.
        Err(failure) if failure.code() == Code::NotFound => (0, 0, 0),
        Err(failure) => return Err(failure),
    };
    let document =
        PurgedDocument { queue: queue.to_owned(), purged: purged.unwrap_or(0), purged_dead, ready, in_flight, dead };
    invocation.output.one(&document, queue, || {
        let removed = match purged {
            None => format!("{purged_dead} dead"),
            Some(purged) => format!("{purged} waiting and {purged_dead} dead"),
        };
        format!("queue {queue}: removed {removed}; now {ready} ready, {in_flight} in flight, {dead} dead\n")
    })?;
    Ok(0)
}

/// Repeats a call that does a portion at a time until `all` are done or none is left. No more than there were at the
/// start: what comes meanwhile was not meant.
pub(super) async fn in_portions(
    client: &Client,
    queue: &str,
    all: u64,
    invocation: &Invocation,
    call: impl Fn(u32) -> AdminCall,
) -> Result<u64, Failure> {
    let mut total = 0;
    while total < all {
        let limit = u32::try_from(all - total).unwrap_or(u32::MAX).min(limits::PORTION_MAX);
        match ask(client, call(limit), queue, invocation).await {
            Ok(AdminAnswer::Portion { done, left }) => {
                total += done;
                if done == 0 || left == 0 {
                    break;
                }
            }
            Ok(other) => return Err(connect::unexpected(&other)),
            // With its last message a queue that nobody uses is forgotten.
            Err(failure) if failure.code() == Code::NotFound => break,
            Err(failure) => {
                invocation.output.note(&format!("{total} of {all} were processed before the error"));
                return Err(failure);
            }
        }
    }
    Ok(total)
}
