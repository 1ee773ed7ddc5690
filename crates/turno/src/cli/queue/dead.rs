//! `turno queue dead`: what used up its attempts, and what is to become of it.

use bytes::BytesMut;
use clap::{Args, Subcommand};
use turno_client::{AdminAnswer, AdminCall, Client, view::DeadView};
use turno_proto::headers;
use turno_proto::model::{Code, Payload, limits};

use super::settings::{in_portions, told_purged};
use super::view;
use crate::cli::Invocation;
use crate::cli::compose::{check_queue, parse_count};
use crate::cli::confirm;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::message;
use crate::cli::schema::dead::{DeadBody, DeadDocument, DeadListDocument, RetriedDocument};
use crate::cli::schema::reply::MessageContent;
use crate::cli::shown::Page;
use crate::cli::table;

/// Ids in one call, well below what a control map may hold.
const IDS: usize = 100;

/// List, show, retry and purge dead letters
#[derive(Args, Debug)]
pub(super) struct DeadArgs {
    #[command(subcommand)]
    command: DeadCommand,
}

#[derive(Subcommand, Debug)]
enum DeadCommand {
    #[command(visible_alias = "list")]
    Ls(DeadLsArgs),
    #[command(visible_aliases = ["info", "get"])]
    Show(DeadShowArgs),
    Retry(DeadRetryArgs),
    Purge(DeadPurgeArgs),
}

/// List dead letters, oldest first
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue dead ls emails", "turno queue dead ls emails --limit 100 --json", "turno queue dead ls emails -o name"],
    &[1, 4, 5, 78, 124],
))]
struct DeadLsArgs {
    /// The queue
    queue: String,

    /// List at most N; --after ID continues after the last one
    #[arg(long, value_name = "N", value_parser = parse_count)]
    limit: Option<u64>,

    /// Only dead letters after this one
    #[arg(long, value_name = "ID")]
    after: Option<String>,
}

/// Show a dead letter: body, attempts and last failure
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue dead show emails 5f3a9c0d21e4000000000001c0000007", "turno queue dead show emails 5f3a9c0d21e4000000000001c0000007 --json"],
    &[1, 4, 5, 78, 124],
))]
struct DeadShowArgs {
    /// The queue
    queue: String,

    /// Dead letter id
    id: String,
}

/// Put dead letters back into their queue
///
/// They go to the end of the queue with all their attempts. A deadline that has passed no longer applies.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue dead retry emails 5f3a9c0d21e4000000000001c0000007", "turno queue dead retry emails --all"],
    &[1, 4, 5, 78, 124],
))]
struct DeadRetryArgs {
    #[command(flatten)]
    which: Which,
}

/// Remove dead letters
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno queue dead purge emails 5f3a9c0d21e4000000000001c0000007", "turno queue dead purge emails --all --yes"],
    &[1, 4, 5, 78, 124],
))]
struct DeadPurgeArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
struct Which {
    /// The queue
    queue: String,

    /// Ids of dead letters
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,

    /// All current dead letters
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

impl Which {
    fn check(&self) -> Result<(), Failure> {
        check_queue(&self.queue)?;
        self.ids.iter().try_for_each(|id| message::check(id))
    }
}

pub(super) async fn run(args: &DeadArgs, invocation: &Invocation) -> Result<u8, Failure> {
    match &args.command {
        DeadCommand::Ls(args) => list(args, invocation).await,
        DeadCommand::Show(args) => show(&args.queue, &args.id, invocation).await,
        DeadCommand::Retry(args) => retry(&args.which, invocation).await,
        DeadCommand::Purge(args) => purge(&args.which, invocation).await,
    }
}

async fn list(args: &DeadLsArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let queue = &args.queue;
    check_queue(queue)?;
    args.after.iter().try_for_each(|id| message::check(id))?;
    let client = connect::client(invocation).await?;
    // Whether it is the queue that is not there, or the letter after which the page begins.
    view(&client, queue, invocation).await?;
    let mut rows: Vec<DeadView> = Vec::new();
    let mut after = args.after.clone();
    let next = loop {
        let left = args.limit.map_or(u64::MAX, |limit| limit - rows.len() as u64);
        let limit = u32::try_from(left).unwrap_or(u32::MAX).min(limits::PAGE_MAX);
        let call = AdminCall::DeadLs { queue: queue.clone(), after: after.clone(), limit };
        let (dead, next) = match connect::admin(&client, call, invocation.global.timeout()).await {
            Ok(AdminAnswer::DeadLetters { dead, next }) => (dead, next),
            Ok(other) => return Err(connect::unexpected(&other)),
            Err(failure) => return Err(not_a_letter(failure, queue, after.as_deref().unwrap_or_default())),
        };
        let is_last = next.is_none() || dead.is_empty();
        rows.extend(dead);
        if is_last || args.limit.is_some_and(|limit| rows.len() as u64 >= limit) {
            break next;
        }
        after = next;
    };
    invocation.output.rows(&DeadListDocument { queue: queue.clone(), dead: &rows, next }, &rows)?;
    if rows.is_empty() {
        invocation.output.hint("no dead letters: no message in this queue has used up its attempts");
    }
    Ok(0)
}

async fn show(queue: &str, id: &str, invocation: &Invocation) -> Result<u8, Failure> {
    check_queue(queue)?;
    message::check(id)?;
    let client = connect::client(invocation).await?;
    view(&client, queue, invocation).await?;
    let (letter, payload) = match fetch(&client, queue, id, invocation).await {
        Ok(fetched) => fetched,
        Err(failure) => return Err(blame(&client, failure, queue, id, invocation).await),
    };
    // A payload that no client of ours wrote is shown as it is.
    let (headers, body) = headers::decode(&payload).unwrap_or_else(|_| (headers::Headers::new(), payload.bytes));
    let content = MessageContent::new(&headers, &body);
    let document = DeadDocument { dead: DeadBody { letter, content, headers } };
    invocation.output.one(&document, id, || text(&document.dead, &body, invocation))?;
    Ok(0)
}

/// The letter and all of what it carries.
async fn fetch(
    client: &Client,
    queue: &str,
    id: &str,
    invocation: &Invocation,
) -> Result<(DeadView, Payload), Failure> {
    let mut bytes = BytesMut::new();
    loop {
        let call = AdminCall::DeadShow { queue: queue.to_owned(), id: id.to_owned(), from: bytes.len() as u64 };
        match connect::admin(client, call, invocation.global.timeout()).await? {
            AdminAnswer::DeadLetter { dead, headers, piece } => {
                bytes.extend_from_slice(&piece);
                if piece.is_empty() || bytes.len() as u64 >= dead.message.bytes {
                    return Ok((*dead, Payload { headers, bytes: bytes.freeze() }));
                }
            }
            other => return Err(connect::unexpected(&other)),
        }
    }
}

/// Of the body, only its text: escaped line by line, as this is for reading. `--json` has the bytes.
fn text(letter: &DeadBody, body: &[u8], invocation: &Invocation) -> Page {
    let mut facts = message::facts(&letter.letter.message, invocation);
    facts.push(("failure", letter.letter.failure.clone()));
    let headers: Vec<String> = letter.headers.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if !headers.is_empty() {
        facts.push(("headers", headers.join(", ")));
    }
    let mut page = table::facts(&facts);
    match std::str::from_utf8(body) {
        Ok("") => page.line("no body"),
        Ok(body) => {
            page.line("body:");
            page.block("", body);
        }
        Err(_) => page.line(&format!("body: {} bytes of binary data; --json prints them as base64", body.len())),
    }
    page
}

async fn retry(which: &Which, invocation: &Invocation) -> Result<u8, Failure> {
    which.check()?;
    let queue = &which.queue;
    let client = connect::client(invocation).await?;
    let before = view(&client, queue, invocation).await?.dead;
    let call = |ids, oldest| AdminCall::DeadRetry { queue: queue.clone(), ids, oldest };
    let retried = each(which, before, &client, invocation, call).await?;
    let dead = match view(&client, queue, invocation).await {
        Ok(view) => view.dead,
        Err(failure) if failure.code() == Code::NotFound => 0,
        Err(failure) => return Err(failure),
    };
    let document = RetriedDocument { queue: queue.clone(), retried, dead };
    invocation.output.one(&document, queue, || {
        format!("queue {queue}: requeued {retried} of {before} dead letters; {dead} left\n")
    })?;
    Ok(0)
}

async fn purge(which: &Which, invocation: &Invocation) -> Result<u8, Failure> {
    which.check()?;
    let queue = &which.queue;
    let client = connect::client(invocation).await?;
    let dead = view(&client, queue, invocation).await?.dead;
    let wanted = if which.all { dead } else { which.ids.len() as u64 };
    confirm::ask(invocation, &format!("remove {wanted} of {dead} dead letters of queue {queue}?"))?;
    let call = |ids, oldest| AdminCall::DeadPurge { queue: queue.clone(), ids, oldest };
    let purged = each(which, dead, &client, invocation, call).await?;
    told_purged(&client, queue, None, purged, invocation).await
}

/// Does it to those named, or to as many as there were.
async fn each(
    which: &Which,
    before: u64,
    client: &Client,
    invocation: &Invocation,
    call: impl Fn(Vec<String>, u32) -> AdminCall,
) -> Result<u64, Failure> {
    if which.all {
        return in_portions(client, &which.queue, before, invocation, |oldest| call(Vec::new(), oldest)).await;
    }
    let mut total = 0;
    for ids in which.ids.chunks(IDS) {
        match connect::admin(client, call(ids.to_vec(), 0), invocation.global.timeout()).await {
            Ok(AdminAnswer::Portion { done, .. }) => total += done,
            Ok(other) => return Err(connect::unexpected(&other)),
            Err(failure) => {
                if total > 0 {
                    invocation.output.note(&format!("{total} of {} were processed before the error", which.ids.len()));
                }
                return Err(blame_one(client, failure, &which.queue, ids, invocation).await);
            }
        }
    }
    Ok(total)
}

/// Finds the one among several that is no dead letter of the queue.
async fn blame_one(client: &Client, failure: Failure, queue: &str, ids: &[String], invocation: &Invocation) -> Failure {
    if failure.code() != Code::NotFound {
        return failure;
    }
    for id in ids {
        let call = AdminCall::DeadShow { queue: queue.to_owned(), id: id.clone(), from: u64::MAX };
        if let Err(failure) = connect::admin(client, call, invocation.global.timeout()).await {
            return blame(client, failure, queue, id, invocation).await;
        }
    }
    failure
}

/// Says what the message is, if it is no dead letter of the queue.
async fn blame(client: &Client, failure: Failure, queue: &str, id: &str, invocation: &Invocation) -> Failure {
    if failure.code() != Code::NotFound {
        return failure;
    }
    let call = AdminCall::MessageExplain { id: id.to_owned() };
    let answer = connect::admin(client, call, invocation.global.timeout()).await;
    let failure = not_a_letter(failure, queue, id);
    match answer {
        Ok(AdminAnswer::Message { explanation }) => {
            let message = explanation.message;
            failure.why(format!("the message is {} in queue {}", message.state, message.queue))
        }
        _ => failure,
    }
}

fn not_a_letter(failure: Failure, queue: &str, id: &str) -> Failure {
    match failure.code() {
        Code::NotFound => Failure::new(Code::NotFound, format!("{id} is not a dead letter of queue {queue}"))
            .why("it has been removed or requeued")
            .fix(format!("`turno queue dead ls {queue}` lists the dead letters")),
        _ => failure,
    }
}
