//! `turno worker`: who does the work, and how much of it at a time.

mod deploy;
mod start;

use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::time::{Instant, sleep, sleep_until};
use turno_client::{AdminAnswer, AdminCall, Client, Slots};
use turno_proto::model::view::{Standing, StandingView, WorkerTaskView, WorkerView};
use turno_proto::model::{Code, Moment, WorkerId, limits};

use super::Invocation;
use super::compose::parse_count;
use super::confirm;
use super::connect;
use super::error::Failure;
use super::help;
use super::queue::messages;
use super::schema::worker::{WorkerDocument, WorkerListDocument, label_words};
use super::shown::Page;
use super::size;
use super::table;
use super::words::{count, one_line};

use self::deploy::DeployArgs;
use self::start::StartArgs;

/// How often the broker is asked whether a change has taken effect.
const POLL: Duration = Duration::from_millis(50);

/// Start job workers; list and control all workers
#[derive(Args, Debug)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    command: WorkerCommand,
}

#[derive(Subcommand, Debug)]
enum WorkerCommand {
    Start(StartArgs),
    Deploy(DeployArgs),
    #[command(flatten)]
    Ask(AskCommand),
}

/// The commands that ask a broker.
#[derive(Subcommand, Debug)]
enum AskCommand {
    #[command(visible_alias = "list")]
    Ls(WorkerLsArgs),
    #[command(visible_aliases = ["info", "get"])]
    Show(WorkerShowArgs),
    Resize(ResizeArgs),
    Drain(WorkerDrainArgs),
    Resume(WorkerResumeArgs),
    Stop(StopArgs),
}

/// List workers in order of id
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno worker ls",
        "turno worker ls --label gpu=yes",
        "turno worker ls -o wide --time local",
        "turno worker ls --json",
    ],
    &[1, 5, 78, 124],
))]
struct WorkerLsArgs {
    /// List at most N; --after ID continues after the last one
    #[arg(long, value_name = "N", value_parser = parse_count)]
    limit: Option<u64>,

    /// Only workers after this id
    #[arg(long, value_name = "ID")]
    after: Option<u64>,

    /// Only workers with this label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
}

/// Show one worker with its deliveries and tasks
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno worker show pixel-1", "turno worker show 7 --json"],
    &[1, 4, 5, 78, 124],
))]
struct WorkerShowArgs {
    /// Worker id or name
    worker: String,
}

/// Change the number of slots of a worker
///
/// With fewer slots than it uses now, the worker gets nothing new until enough work has finished. A job worker can have
/// at most the slots that it started with, and keeps the new number when it reconnects.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno worker resize pixel-1 4", "turno worker resize 7 unlimited"],
    &[1, 4, 5, 78, 124],
))]
struct ResizeArgs {
    /// Worker id or name
    worker: String,

    /// New number of slots, or unlimited
    #[arg(value_parser = parse_slots)]
    slots: Slots,
}

/// Give a worker no new work, and wait until it is idle
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno worker drain pixel-1 --timeout 5m"],
    &[1, 4, 5, 78, 124],
))]
struct WorkerDrainArgs {
    /// Worker id or name
    worker: String,
}

/// Give a drained worker work again
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno worker resume pixel-1"], &[1, 4, 5, 78, 124]))]
struct WorkerResumeArgs {
    /// Worker id or name
    worker: String,
}

/// Ask a worker to end, and wait until it has ended
///
/// It accepts nothing new and finishes its messages and tasks.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno worker stop pixel-1 --timeout 5m", "turno worker stop 7 --now --yes"],
    &[1, 4, 5, 78, 124],
))]
struct StopArgs {
    /// Worker id or name
    worker: String,

    /// Stop immediately; its work goes to other workers without counting as an attempt
    #[arg(long)]
    now: bool,
}

/// Reads a label.
pub(crate) fn parse_label(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("invalid label: expected KEY=VALUE, each at most {} bytes", limits::LABEL_BYTES_MAX);
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let is_short = |text: &str| text.len() <= limits::LABEL_BYTES_MAX && !text.chars().any(char::is_control);
    if key.is_empty() || !is_short(key) || !is_short(value) {
        return Err(wrong());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// Reads a number of slots, or `unlimited`.
pub(crate) fn parse_slots(text: &str) -> Result<Slots, String> {
    if text == "unlimited" {
        return Ok(Slots::Unlimited);
    }
    match turno_proto::model::units::parse_count(text).map(u32::try_from) {
        Ok(Ok(count)) if count <= limits::SLOTS_MAX => Ok(Slots::Limited(count)),
        _ => Err(format!("invalid number of slots: must be 0 to {}, or unlimited", limits::SLOTS_MAX)),
    }
}

impl WorkerArgs {
    /// It is a program that goes on by itself, and not a question to a broker.
    pub(crate) const fn goes_on(&self) -> bool {
        matches!(self.command, WorkerCommand::Start(_))
    }
}

pub(crate) fn run(args: &WorkerArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let command = match &args.command {
        WorkerCommand::Start(args) => return start::run(args, invocation),
        WorkerCommand::Deploy(args) => return deploy::run(args, invocation),
        WorkerCommand::Ask(command) => command,
    };
    connect::block_on(async {
        let client = connect::client(invocation).await?;
        let asked = WorkerClient { client, invocation };
        match command {
            AskCommand::Ls(args) => asked.list(args).await,
            AskCommand::Show(args) => {
                let call = AdminCall::WorkerShow { worker: args.worker.clone() };
                let view = asked.worker(call, &args.worker).await?;
                asked.told(&view, None)
            }
            AskCommand::Resize(args) => asked.resize(args).await,
            AskCommand::Drain(args) => asked.drain(args).await,
            AskCommand::Resume(args) => {
                let call = AdminCall::WorkerResume { worker: args.worker.clone() };
                let view = asked.worker(call, &args.worker).await?;
                asked.told(&view, Some(format!("worker {} ({}) accepts work again", view.id, view.name)))
            }
            AskCommand::Stop(args) => asked.stop(args).await,
        }
    })
}

/// A connection and the command it is for.
struct WorkerClient<'a> {
    client: Client,
    invocation: &'a Invocation,
}

impl WorkerClient<'_> {
    async fn list(&self, args: &WorkerLsArgs) -> Result<u8, Failure> {
        let mut rows: Vec<WorkerView> = Vec::new();
        let mut after = args.after;
        let next = loop {
            let left = args.limit.map_or(u64::MAX, |limit| limit - rows.len() as u64);
            // With labels wanted, many rows may come to few.
            let asked = if args.labels.is_empty() { left } else { u64::MAX };
            let limit = u32::try_from(asked).unwrap_or(u32::MAX).min(limits::PAGE_MAX);
            let call = AdminCall::WorkerLs { after, limit };
            let answer = connect::admin(&self.client, call, self.invocation.global.timeout()).await?;
            let (workers, next) = match answer {
                AdminAnswer::Workers { workers, next } => (workers, next),
                other => return Err(connect::unexpected(&other)),
            };
            let is_last = next.is_none() || workers.is_empty();
            let has = |view: &WorkerView| args.labels.iter().all(|(key, value)| view.labels.get(key) == Some(value));
            let mut wanted = workers.into_iter().filter(has);
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            rows.extend(wanted.by_ref().take(left));
            if wanted.next().is_some() {
                break rows.last().map(|row| row.id);
            }
            if is_last || args.limit.is_some_and(|limit| rows.len() as u64 >= limit) {
                break next;
            }
            after = next.map(|WorkerId(id)| id);
        };
        self.invocation.output.rows(&WorkerListDocument { workers: &rows, next }, &rows)?;
        if rows.is_empty() && args.labels.is_empty() {
            self.invocation.output.hint("no workers; start one: turno work hello --echo");
        } else if rows.is_empty() {
            self.invocation.output.hint("no worker has these labels; `turno worker ls -o wide` shows all labels");
        }
        Ok(0)
    }

    async fn resize(&self, args: &ResizeArgs) -> Result<u8, Failure> {
        let call = AdminCall::WorkerResize { worker: args.worker.clone(), slots: args.slots };
        let view = match self.worker(call, &args.worker).await {
            Err(failure) if failure.code() == Code::BadSlots => return Err(self.too_many(failure, args).await),
            view => view?,
        };
        let over = match view.slots {
            Slots::Limited(slots) => view.used.saturating_sub(slots),
            Slots::Unlimited => 0,
        };
        self.told(&view, Some(format!("worker {} ({}): slots {}", view.id, view.name, view.slots)))?;
        if over > 0 {
            self.invocation.output.note(&format!(
                "slots above the new limit still in use: {over}; the worker gets nothing new until they are free"
            ));
        }
        Ok(0)
    }

    /// Why a worker does not get that many slots.
    async fn too_many(&self, failure: Failure, args: &ResizeArgs) -> Failure {
        let call = AdminCall::WorkerShow { worker: args.worker.clone() };
        let Ok(WorkerView { id, name, slots_max: Some(max), .. }) = self.worker(call, &args.worker).await else {
            return failure;
        };
        let why = match max {
            0 => "it is shutting down".to_owned(),
            max => format!("a job worker cannot have more slots than it started with ({max})"),
        };
        Failure::new(Code::BadSlots, format!("worker {id} ({name}) cannot have {} slots", args.slots))
            .why(why)
            .fix(format!("use at most {max}, or restart it with `turno worker start --slots {}`", args.slots))
    }

    async fn drain(&self, args: &WorkerDrainArgs) -> Result<u8, Failure> {
        let deadline = Instant::now() + self.invocation.global.timeout();
        let view = self.worker(AdminCall::WorkerDrain { worker: args.worker.clone() }, &args.worker).await?;
        let last = self.wait(view, deadline, |view| view.used == 0).await?;
        match last {
            Ok(view) => self.told(&view, Some(format!("worker {} ({}) is drained", view.id, view.name))),
            Err(gone) => self.told(&gone, Some(format!("worker {} ({}) stopped", gone.id, gone.name))),
        }
    }

    async fn stop(&self, args: &StopArgs) -> Result<u8, Failure> {
        if args.now {
            let view = self.worker(AdminCall::WorkerShow { worker: args.worker.clone() }, &args.worker).await?;
            confirm::ask(
                self.invocation,
                &format!("stop worker {} ({}) immediately, with {} slots in use?", view.id, view.name, view.used),
            )?;
        }
        let deadline = Instant::now() + self.invocation.global.timeout();
        let call = AdminCall::WorkerStop { worker: args.worker.clone(), now: args.now };
        let view = self.worker(call, &args.worker).await?;
        match self.wait(view, deadline, |_| false).await? {
            Ok(view) | Err(view) => self.told(&view, Some(format!("worker {} ({}) stopped", view.id, view.name))),
        }
    }

    /// Waits until the worker is as wanted (`Ok`) or gone (`Err`); at the deadline says what still runs. Asks by
    /// id: another worker of the same name is not meant.
    async fn wait(
        &self,
        mut view: WorkerView,
        deadline: Instant,
        wanted: impl Fn(&WorkerView) -> bool,
    ) -> Result<Result<WorkerView, WorkerView>, Failure> {
        let id = view.id.to_string();
        let mut late = std::pin::pin!(sleep_until(deadline));
        while !wanted(&view) {
            tokio::select! {
                () = &mut late => return Err(still_running(&view)),
                () = sleep(POLL) => {}
            }
            match self.worker(AdminCall::WorkerShow { worker: id.clone() }, &id).await {
                Ok(now) => view = now,
                Err(failure) if failure.code() == Code::NotFound => return Ok(Err(view)),
                Err(failure) => return Err(failure),
            }
        }
        Ok(Ok(view))
    }

    async fn worker(&self, call: AdminCall, name: &str) -> Result<WorkerView, Failure> {
        match connect::admin(&self.client, call, self.invocation.global.timeout()).await {
            Ok(AdminAnswer::Worker { worker }) => Ok(*worker),
            Ok(other) => Err(connect::unexpected(&other)),
            Err(failure) if failure.code() == Code::NotFound => {
                Err(Failure::new(Code::NotFound, format!("worker {name} does not exist"))
                    .why("no connected worker has this id or name")
                    .fix("`turno worker ls` lists the workers"))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Prints the change in one line, or else the whole worker.
    fn told(&self, view: &WorkerView, done: Option<String>) -> Result<u8, Failure> {
        self.invocation.output.one(&WorkerDocument { worker: view }, &view.id.to_string(), || match done {
            Some(line) => line.into(),
            None => self.text(view),
        })?;
        Ok(0)
    }

    fn text(&self, row: &WorkerView) -> Page {
        let moment = |moment| self.invocation.output.clock().phrase(moment);
        let mut facts = vec![
            ("worker", row.id.to_string()),
            ("kind", row.kind.to_string()),
            ("name", row.name.clone()),
            ("address", row.address.clone()),
            ("state", row.state.to_string()),
            ("slots", row.slots.to_string() + &started_with(row)),
            ("used", row.used.to_string()),
            ("queues", row.queues.join(", ")),
            ("registered", moment(row.registered_at)),
            ("last used", row.last_used_at.map_or_else(|| "never".to_owned(), moment)),
            ("so far", format!("{} deliveries, {} settled, {} failed", row.deliveries, row.settled, row.failed)),
        ];
        if !row.labels.is_empty() {
            facts.push(("labels", label_words(&row.labels, ", ")));
        }
        if !row.exclusive.is_empty() {
            let alone: Vec<String> =
                row.exclusive.iter().map(|held| format!("{} (token {})", held.queue, held.token)).collect();
            facts.push(("exclusive", alone.join(", ")));
        }
        if !row.waits_for.is_empty() {
            facts.push(("standby", row.waits_for.join(", ")));
        }
        if row.unread_bytes > 0 {
            let unread = size::short(row.unread_bytes);
            facts.push(("does not read", format!("{unread} of deliveries are unread; it gets no more until it reads")));
        }
        let mut page = table::facts(&facts);
        for StandingView { queue, standing } in row.standings.iter().flatten() {
            let Standing { state, expired, dropped_at, reason } = standing;
            let dropped = dropped_at.map(|at| format!(", dropped {}", moment(at))).unwrap_or_default();
            let reason = reason.as_deref().unwrap_or_default();
            page.line(&format!("{state} in queue {queue}: {expired} expired in a row, {reason}{dropped}"));
        }
        page.append(&messages("holds:", row.holds.as_deref().unwrap_or_default(), self.invocation));
        page.append(&tasks(row, &moment));
        page
    }
}

/// How many slots a worker for jobs started with, if an admin left it fewer.
fn started_with(row: &WorkerView) -> String {
    let max = row.slots_max.filter(|max| matches!(row.slots, Slots::Limited(slots) if slots < *max));
    max.map(|max| format!(" of {max}")).unwrap_or_default()
}

/// The tasks a worker has.
fn tasks(worker: &WorkerView, moment: &impl Fn(Moment) -> String) -> Page {
    let mut page = Page::default();
    let tasks = worker.tasks.as_deref().unwrap_or_default();
    if !tasks.is_empty() {
        page.line("runs:");
    }
    for WorkerTaskView { id, name, attempt, slots, started_at } in tasks {
        let since = started_at.map_or_else(|| "told to stop".to_owned(), |at| format!("since {}", moment(at)));
        let slots = count(u64::from(*slots), "slot", "slots");
        page.line(&format!("  task {id} ({}), attempt {attempt}, {slots}, {since}", one_line(name)));
    }
    let more = worker.tasks_running.saturating_sub(tasks.len() as u64);
    if more > 0 {
        page.line(&format!("  and {more} more"));
    }
    page
}

fn still_running(view: &WorkerView) -> Failure {
    let tasks = view.tasks.iter().flatten().map(|task| format!("task {}", task.id));
    let ids: Vec<String> = view.holds.iter().flatten().map(|message| message.id.clone()).chain(tasks).collect();
    let what = format!("worker {} ({}) still has {} slots in use", view.id, view.name, view.used);
    let why = match ids.as_slice() {
        [] => "it accepts no new work but has not stopped yet".to_owned(),
        ids => format!("it accepts no new work; still running: {}", ids.join(", ")),
    };
    Failure::new(Code::TimedOut, what).why(why).fix(format!(
        "wait longer with --timeout, check `turno worker show {}`, or cancel: `turno message cancel ID`, `turno \
             job cancel JOB.TASK`",
        view.id
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_as_typed() {
        let pair = |key: &str, value: &str| Some((key.to_owned(), value.to_owned()));
        for (text, expected) in [
            ("gpu=yes", pair("gpu", "yes")),
            ("k=a=b", pair("k", "a=b")),
            ("k=", pair("k", "")),
            ("=x", None),
            ("gpu", None),
            ("k=a\nb", None),
        ] {
            assert_eq!(parse_label(text).ok(), expected, "{text:?}");
        }
        assert!(parse_label(&format!("{}=x", "k".repeat(65))).is_err());
    }

    #[test]
    fn slots_as_typed() {
        let table = [
            ("10", Some(Slots::Limited(10))),
            ("0", Some(Slots::Limited(0))),
            ("1_000", Some(Slots::Limited(1_000))),
            ("unlimited", Some(Slots::Unlimited)),
            ("1_000_001", None),
            ("-1", None),
            ("many", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_slots(text).ok(), expected, "{text}");
        }
    }
}
