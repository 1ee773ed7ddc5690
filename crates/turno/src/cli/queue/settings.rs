//! `turno queue set` and `turno queue purge`: a queue as a whole.

use clap::{Args, value_parser};
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::view::{QueueSettings, QueueView};
use turno_proto::model::{Code, limits};

use super::{ask, told_drops, view};
use crate::cli::Invocation;
use crate::cli::compose::check_queue;
use crate::cli::confirm;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::dead::PurgedDocument;
use crate::cli::schema::queue::QueueDocument;
use crate::cli::shown::Page;

/// Give a queue settings of its own
///
/// Sends to a durable queue are on the broker's disk before they are answered; sends to a volatile one are kept in
/// memory alone and end with the broker. What is stored already stays stored. A worker at which deliveries expire in
/// a row is dropped from the queue and comes back with one at a time. A worker of several queues gets messages from
/// each in turn, from one of weight N up to N in a row. What is not named stays as it is. A queue with a setting of its
/// own is not forgotten when nobody uses it, and the setting outlives the broker.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue set ticks --volatile", "turno queue set orders --durable --drop-after 5", "turno queue set orders --weight 3",
      "turno queue set ticks --default"],
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
    #[arg(long, conflicts_with_all = ["durable", "volatile", "drop_after", "weight"])]
    default: bool,
}

impl Wanted {
    /// What to change; `None`: nothing is to be the queue's own.
    fn settings(&self) -> Option<QueueSettings> {
        let durable = (self.durable || self.volatile).then_some(self.durable);
        (!self.default).then_some(QueueSettings { durable, drop_after: self.drop_after, weight: self.weight })
    }
}

/// Remove the messages that wait in a queue
///
/// What workers have stays, and so do dead letters unless --dead is given. Callers of requests that waited are told.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue purge emails", "turno queue purge emails --dead --yes"],
    &[1, 4, 5, 78, 124],
))]
pub(super) struct PurgeArgs {
    /// The queue
    queue: String,

    /// Also remove dead letters
    #[arg(long)]
    dead: bool,
}

pub(super) async fn set(args: &SetArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let queue = &args.queue;
    check_queue(queue)?;
    let client = connect::client(invocation).await?;
    let settings = args.wanted.settings();
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
        page
    })?;
    Ok(0)
}

pub(super) async fn purge(args: &PurgeArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let queue = &args.queue;
    check_queue(queue)?;
    let client = connect::client(invocation).await?;
    let QueueView { ready, in_flight, dead, .. } = view(&client, queue, invocation).await?;
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

/// What was removed, and what is there now. Without `purged` nobody asked for what waits.
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
