//! `turno job logs`: what tasks wrote, as it is kept or as it comes.

mod follow;
mod print;

use std::collections::BTreeMap;

use clap::Args;
use turno_client::core::Seen;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputPlace, OutputStream};
use turno_proto::model::job::{JobId, JobView, TaskState, TaskView};
use turno_proto::model::limits::{PAGE_MAX, PIECE_BYTES_MAX, TASK_NUMBER_MAX, TASK_RANGES_MAX};
use turno_proto::model::{Code, limits};

use self::print::LogsPrinter;
use super::select::{Ranges, Target};
use super::{JobClient, check_tasks, named};
use crate::cli::Invocation;
use crate::cli::compose::parse_count;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;

/// Print the output of tasks
///
/// The output of one task is printed unchanged, its standard error to standard error. Lines of several tasks are
/// prefixed with the task. With --stdout or --stderr only that stream is printed, to standard output. The broker keeps
/// the beginning and the end of long output; a line on standard error says how much is omitted. Of a task with several
/// attempts the latest is printed and named; --attempt all prints all of them, with the attempt before each line. If
/// stored output is damaged, a line on standard error says how much is lost, and the command fails.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno job logs 7.3",
        "turno job logs last --failed --tail 20",
        "turno job logs 7.1-20 --stderr",
        "turno job logs last --follow",
        "turno job logs 7 -o jsonl",
    ],
    &[1, 4, 5, 78, 124, 130, 143],
))]
pub(in crate::cli) struct LogsArgs {
    /// Jobs: 7, last, 1,3,5-8 or all; or tasks of one: 7.1-20
    #[arg(required = true, value_name = "JOB|JOB.TASKS")]
    targets: Vec<Target>,

    /// Only tasks that failed
    #[arg(long, conflicts_with = "follow")]
    failed: bool,

    /// Follow the output until the job ends; Ctrl-C stops following, not the job
    #[arg(short, long)]
    follow: bool,

    /// Only the last N lines of each task
    #[arg(long, value_name = "N", value_parser = parse_count)]
    tail: Option<u64>,

    /// Only the tasks' standard output
    #[arg(long)]
    stdout: bool,

    /// Only the tasks' standard error, printed to standard output
    #[arg(long, conflicts_with = "stdout")]
    stderr: bool,

    /// Attempt number, or all [default: the latest]
    #[arg(long, value_name = "N|all", value_parser = parse_attempt, conflicts_with = "follow")]
    attempt: Option<AttemptFilter>,

    /// Do not prefix lines with task and attempt
    #[arg(long)]
    no_prefix: bool,
}

/// Which attempts are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptFilter {
    All,
    Number(u32),
}

fn parse_attempt(text: &str) -> Result<AttemptFilter, String> {
    match text {
        "all" => Ok(AttemptFilter::All),
        _ => text
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .map(AttemptFilter::Number)
            .ok_or_else(|| "invalid attempt: must be 1 or more, or all".to_owned()),
    }
}

impl LogsArgs {
    fn wants(&self, stream: OutputStream) -> bool {
        match stream {
            OutputStream::Stdout => !self.stderr,
            OutputStream::Stderr => !self.stdout,
        }
    }
}

/// The tasks of one job whose output is shown.
struct LogsTarget {
    job: JobView,
    tasks: Option<Ranges>,
}

impl LogsTarget {
    fn ranges(&self) -> Ranges {
        self.tasks.clone().unwrap_or_else(|| vec![(0, TASK_NUMBER_MAX)])
    }

    /// The only task that is looked at.
    fn single(&self) -> Option<u32> {
        match self.tasks.as_deref() {
            None if self.job.tasks == 1 => Some(self.job.numbers().array.first),
            Some([(first, last)]) if first == last => Some(*first),
            _ => None,
        }
    }
}

pub(super) async fn run(args: &LogsArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    let looks = looks(args, &asked).await?;
    let single = matches!(&looks[..], [look] if look.single().is_some());
    let mut printer = LogsPrinter::new(invocation, args, single);
    if args.follow {
        let [look] = &looks[..] else {
            return Err(Failure::new(Code::BadUsage, "only one job can be followed at a time")
                .fix("choose one job, for example `turno job logs last --follow`"));
        };
        return follow::run(args, asked, look, printer).await;
    }
    for look in &looks {
        let mut reader = LogsReader { asked: &asked, args, job: look.job.id, seen: Seen::default(), arrived: None };
        reader.read(look, &mut printer).await?;
    }
    printer.end()?;
    printer.verdict()?;
    Ok(0)
}

/// Resolves the arguments, by job.
async fn looks(args: &LogsArgs, asked: &JobClient<'_>) -> Result<Vec<LogsTarget>, Failure> {
    let mut looks: BTreeMap<JobId, LogsTarget> = BTreeMap::new();
    for target in &args.targets {
        match target {
            Target::Jobs(jobs) => {
                for job in asked.named(std::slice::from_ref(jobs), |_| true).await? {
                    looks.insert(job.id, LogsTarget { job, tasks: None });
                }
            }
            Target::Tasks(one, ranges) => {
                let job = asked.find(*one).await?;
                check_tasks(&job, ranges)?;
                let look = looks.entry(job.id).or_insert_with(|| LogsTarget { job, tasks: Some(Vec::new()) });
                // The whole job is more than some of its tasks.
                if let Some(tasks) = &mut look.tasks {
                    tasks.extend(ranges);
                    tasks.sort_unstable();
                }
            }
        }
    }
    Ok(looks.into_values().collect())
}

/// Reads what is kept of a job, task by task.
struct LogsReader<'a> {
    asked: &'a JobClient<'a>,
    args: &'a LogsArgs,
    job: JobId,
    seen: Seen,
    /// The moment before the first answer: what came later may be missing.
    arrived: Option<u64>,
}

impl LogsReader<'_> {
    async fn read(&mut self, look: &LogsTarget, printer: &mut LogsPrinter<'_>) -> Result<(), Failure> {
        for (first, last) in look.ranges() {
            let mut after = first.checked_sub(1);
            loop {
                let state = self.args.failed.then_some(TaskState::Failed);
                let call = AdminCall::JobTasks { job: self.job, state, after, limit: PAGE_MAX };
                let (mut tasks, next) = match self.ask(call).await? {
                    AdminAnswer::Tasks { tasks, next } => (tasks, next),
                    other => return Err(connect::unexpected(&other)),
                };
                let is_over = tasks.last().is_some_and(|task| task.task >= last) || next.is_none();
                tasks.retain(|task| task.task <= last);
                self.read_tasks(&tasks, printer).await?;
                if is_over {
                    break;
                }
                after = next;
            }
        }
        Ok(())
    }

    /// Prints the output of these tasks.
    async fn read_tasks(&mut self, tasks: &[TaskView], printer: &mut LogsPrinter<'_>) -> Result<(), Failure> {
        let latest: BTreeMap<u32, u32> = tasks.iter().map(|task| (task.task, task.attempt)).collect();
        let ranges = match (tasks, self.args.failed) {
            ([first, .., last], false) => vec![(first.task, last.task)],
            _ => side_by_side(tasks),
        };
        for ranges in ranges.chunks(TASK_RANGES_MAX) {
            let mut from = OutputPlace::default();
            loop {
                let (pieces, next, end, damaged) = self.output(ranges, from).await?;
                printer.damaged |= damaged;
                for piece in pieces {
                    let is_meant = match self.args.attempt {
                        None => latest.get(&piece.task) == Some(&piece.attempt),
                        Some(AttemptFilter::All) => latest.contains_key(&piece.task),
                        Some(AttemptFilter::Number(attempt)) => piece.attempt == attempt,
                    };
                    if is_meant && let Some((piece, left_out)) = self.seen.new_part(piece) {
                        printer.tell(&piece, left_out)?;
                    }
                }
                if end {
                    break;
                }
                from = next;
            }
        }
        Ok(())
    }

    async fn output(
        &mut self,
        ranges: &[(u32, u32)],
        from: OutputPlace,
    ) -> Result<(Vec<OutputPiece>, OutputPlace, bool, bool), Failure> {
        let limit = u32::try_from(PIECE_BYTES_MAX).unwrap_or(u32::MAX);
        let (job, tasks, follow) = (self.job, Some(ranges.to_vec()), self.args.follow);
        match self.ask(AdminCall::JobOutput { job, tasks, from, after: None, follow, limit }).await? {
            AdminAnswer::Output { pieces, next, arrived, end, damaged } => {
                self.arrived.get_or_insert(arrived);
                Ok((pieces, next, end, damaged))
            }
            other => Err(connect::unexpected(&other)),
        }
    }

    async fn ask(&self, call: AdminCall) -> Result<AdminAnswer, Failure> {
        self.asked.patient(call).await.map_err(|failure| named(failure, self.job))
    }
}

impl JobClient<'_> {
    /// A question to the archive, asked again while it has too much to do.
    pub(super) async fn patient(&self, call: AdminCall) -> Result<AdminAnswer, Failure> {
        let until = tokio::time::Instant::now() + self.invocation.global.timeout();
        loop {
            match self.admin(call.clone()).await {
                Err(failure) if failure.code() == Code::ArchiveBusy && tokio::time::Instant::now() < until => {
                    tokio::time::sleep(std::time::Duration::from_millis(limits::FOREMAN_REISSUE_MS)).await;
                }
                other => return other,
            }
        }
    }
}

/// Tasks as ranges of numbers, where those between two that follow each other in the listing may be others.
fn side_by_side(tasks: &[TaskView]) -> Ranges {
    let mut ranges: Ranges = Vec::new();
    for task in tasks.iter().map(|task| task.task) {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(task) => *last = task,
            _ => ranges.push((task, task)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_as_typed() {
        assert_eq!(parse_attempt("all"), Ok(AttemptFilter::All));
        assert_eq!(parse_attempt("2"), Ok(AttemptFilter::Number(2)));
        for text in ["0", "-1", "", "latest"] {
            assert!(parse_attempt(text).is_err(), "{text}");
        }
    }

    #[test]
    fn neighbours_are_one_range() {
        let task = |task| TaskView { task, ..TaskView::default() };
        assert_eq!(side_by_side(&[1, 2, 3, 7, 9, 10].map(task)), [(1, 3), (7, 7), (9, 10)]);
        assert!(side_by_side(&[]).is_empty());
    }
}
