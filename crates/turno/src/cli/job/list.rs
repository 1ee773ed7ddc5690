//! Listings of jobs and of the tasks of a job, page by page.

use clap::{Args, ValueEnum};
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::job::{JobId, JobState, TaskState, TaskView};
use turno_proto::model::limits;

use super::select::{JobPart, Ranges};
use super::{JobClient, check_tasks, named};
use crate::cli::Invocation;
use crate::cli::compose::parse_count;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::global::Format;
use crate::cli::help;
use crate::cli::schema::job::{JobListDocument, JobRow};
use crate::cli::schema::task::TaskListDocument;

/// List jobs, newest first
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job ls", "turno job ls --state waiting,running", "turno job ls --tag may --tag night", "turno job ls --limit 20 -o wide", "turno job ls --json"],
    &[1, 5, 78, 124],
))]
pub(super) struct JobLsArgs {
    /// Only jobs in these states, comma-separated
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<JobStateArg>,

    /// Only jobs with this tag; repeatable, a job must have all tags
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,

    /// List at most N; --before ID continues after the last one
    #[arg(long, value_name = "N", value_parser = parse_count)]
    limit: Option<u64>,

    /// Only jobs submitted before this one
    #[arg(long, value_name = "ID")]
    before: Option<u64>,
}

/// States of jobs, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum JobStateArg {
    Waiting,
    Running,
    Held,
    Finished,
    Failed,
    Cancelled,
}

impl JobStateArg {
    const fn state(self) -> JobState {
        match self {
            Self::Waiting => JobState::Waiting,
            Self::Running => JobState::Running,
            Self::Held => JobState::Held,
            Self::Finished => JobState::Finished,
            Self::Failed => JobState::Failed,
            Self::Cancelled => JobState::Cancelled,
        }
    }
}

/// List the tasks of a job by number
///
/// With `-o jsonl` and `-o name` tasks are printed as they arrive, so that even a million take little memory.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job tasks 7", "turno job tasks last --state failed", "turno job tasks 7.1-20 --json", "turno job tasks 7 -o jsonl"],
    &[1, 4, 5, 78, 124],
))]
pub(super) struct TasksArgs {
    /// Job or some of its tasks: 7, last, 7.1-20
    job: JobPart,

    /// Only tasks in this state
    #[arg(long, value_name = "STATE")]
    state: Option<TaskStateArg>,

    /// List at most N; --after NUMBER continues after the last one
    #[arg(long, value_name = "N", value_parser = parse_count)]
    limit: Option<u64>,

    /// Only tasks after this number
    #[arg(long, value_name = "N")]
    after: Option<u32>,
}

/// States of tasks, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TaskStateArg {
    Waiting,
    Running,
    Finished,
    Failed,
    Cancelled,
}

impl TaskStateArg {
    const fn state(self) -> TaskState {
        match self {
            Self::Waiting => TaskState::Waiting,
            Self::Running => TaskState::Running,
            Self::Finished => TaskState::Finished,
            Self::Failed => TaskState::Failed,
            Self::Cancelled => TaskState::Cancelled,
        }
    }
}

/// How many rows to ask for when so many may still come.
fn page(left: u64) -> u32 {
    u32::try_from(left).unwrap_or(u32::MAX).min(limits::PAGE_MAX)
}

pub(super) async fn jobs(args: &JobLsArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    let states: Vec<JobState> = args.state.iter().map(|state| state.state()).collect();
    let most = args.limit.unwrap_or(u64::MAX);
    let mut rows: Vec<JobRow> = Vec::new();
    let mut before = args.before.map(JobId);
    let next = 'pages: loop {
        // The broker does not choose by state or tag, so what is wanted may be anywhere on a page.
        let limit =
            if states.is_empty() && args.tag.is_empty() { page(most - rows.len() as u64) } else { limits::PAGE_MAX };
        let (jobs, next) = match asked.admin(AdminCall::JobLs { before, limit }).await? {
            AdminAnswer::Jobs { jobs, next } => (jobs, next),
            other => return Err(connect::unexpected(&other)),
        };
        let last = jobs.last().map(|job| job.id);
        for job in &jobs {
            let tagged = args.tag.iter().all(|tag| job.tags.contains(tag));
            if tagged && (states.is_empty() || states.contains(&job.state)) {
                rows.push(JobRow::listed(job));
            }
            if rows.len() as u64 >= most {
                break 'pages if Some(job.id) == last { next } else { Some(job.id) };
            }
        }
        if next.is_none() || jobs.is_empty() {
            break next;
        }
        before = next;
    };
    let next = next.map(|id| id.to_string());
    invocation.output.rows(&JobListDocument { jobs: &rows, next, errors: None }, &rows)?;
    if rows.is_empty() {
        let text = match (states.is_empty(), args.tag.is_empty()) {
            (true, true) => "no jobs; submit one: turno submit -- CMD",
            (false, true) => "no job in this state; list all: turno job ls",
            (_, false) => "no job with these tags; list all: turno job ls",
        };
        invocation.output.hint(text);
    }
    Ok(0)
}

pub(super) async fn tasks(args: &TasksArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    // Asked first, so that a job that is not there is told as such, and `last` stays the same one on every page.
    let view = asked.find(args.job.job).await?;
    args.job.tasks.as_deref().map_or(Ok(()), |tasks| check_tasks(&view, tasks))?;
    let job = view.id;
    let mut pages = Pages { asked: &asked, job, args, rows: Vec::new(), told: 0 };
    let next = pages.read().await?;
    let Pages { rows, told, .. } = pages;
    if !streams(invocation) {
        invocation.output.rows(&TaskListDocument { job: job.to_string(), tasks: &rows, next }, &rows)?;
    }
    if told == 0 && rows.is_empty() {
        invocation.output.hint(&format!("no task in this state; list all: turno job tasks {job}"));
    }
    Ok(0)
}

/// Whether rows are printed as they come.
fn streams(invocation: &Invocation) -> bool {
    matches!(invocation.output.format(), Format::Jsonl | Format::Name)
}

/// The rest of a range after a number.
fn rest((first, last): (u32, u32), after: Option<u32>) -> Option<(Option<u32>, u32)> {
    let after = after.max(first.checked_sub(1));
    (after.is_none_or(|after| after < last)).then_some((after, last))
}

struct Pages<'a> {
    asked: &'a JobClient<'a>,
    job: JobId,
    args: &'a TasksArgs,
    rows: Vec<TaskView>,
    /// Rows that are printed already.
    told: u64,
}

impl Pages<'_> {
    /// Reads range by range; says where the next page begins, should there be more than is wanted.
    async fn read(&mut self) -> Result<Option<u32>, Failure> {
        let all: Ranges = vec![(0, limits::TASK_NUMBER_MAX)];
        let ranges = self.args.job.tasks.as_ref().unwrap_or(&all);
        let most = self.args.limit.unwrap_or(u64::MAX);
        let mut begin = self.args.after;
        for range in ranges {
            let Some((mut after, last)) = rest(*range, begin) else { continue };
            loop {
                let left = most - self.told - self.rows.len() as u64;
                if left == 0 {
                    return Ok(begin);
                }
                let (job, state) = (self.job, self.args.state.map(TaskStateArg::state));
                let call = AdminCall::JobTasks { job, state, after, limit: page(left) };
                let (tasks, next) = match self.asked.admin(call).await.map_err(|failure| named(failure, job))? {
                    AdminAnswer::Tasks { tasks, next } => (tasks, next),
                    other => return Err(connect::unexpected(&other)),
                };
                let beyond = tasks.last().is_none_or(|task| task.task >= last);
                self.rows.extend(tasks.into_iter().take_while(|task| task.task <= last));
                begin = self.rows.last().map(|row| row.task).or(begin);
                self.tell()?;
                if next.is_none() || beyond {
                    break;
                }
                after = next;
                begin = next;
            }
        }
        Ok(None)
    }

    /// Prints the rows of a page, where that can be done before all are known.
    fn tell(&mut self) -> Result<(), Failure> {
        if streams(self.asked.invocation) {
            let document = TaskListDocument { job: self.job.to_string(), tasks: &self.rows, next: None };
            self.asked.invocation.output.rows(&document, &self.rows)?;
            self.told += self.rows.len() as u64;
            self.rows.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_goes_on_where_the_page_before_ended() {
        let table = [
            ((1, 20), None, Some((Some(0), 20))),
            ((0, 20), None, Some((None, 20))),
            ((0, 20), Some(5), Some((Some(5), 20))),
            ((10, 20), Some(5), Some((Some(9), 20))),
            ((10, 20), Some(20), None),
            ((10, 20), Some(21), None),
            ((0, 0), None, Some((None, 0))),
        ];
        for (range, after, expected) in table {
            assert_eq!(rest(range, after), expected, "{range:?} after {after:?}");
        }
    }

    #[test]
    fn pages_are_as_long_as_wanted_and_no_longer_than_allowed() {
        assert_eq!((page(3), page(u64::MAX)), (3, limits::PAGE_MAX));
    }
}
