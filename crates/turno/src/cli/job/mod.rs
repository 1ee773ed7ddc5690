//! `turno job`: arrays of tasks that workers run, from their submission to their end.

mod change;
mod explain;
mod failures;
mod list;
mod logs;
mod progress;
mod report;
mod result;
mod retry;
mod select;
pub(crate) mod submit;
mod task;
mod text;
mod wait;
mod watch;

use clap::{Args, Subcommand};
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::job::{JobId, JobView};

use self::change::{HoldArgs, JobCancelArgs, JobRmArgs, ReleaseArgs};
use self::explain::JobExplainArgs;
use self::list::{JobLsArgs, TasksArgs};
use self::logs::LogsArgs;
use self::progress::ProgressArgs;
use self::report::ReportArgs;
use self::result::ResultArgs;
use self::retry::JobRetryArgs;
use self::select::{JobPart, JobSelector};
use self::submit::SubmitArgs;
use self::wait::WaitArgs;
use super::Invocation;
use super::connect;
use super::error::Failure;
use super::help;
use super::schema::job::{JobDocument, JobErrorBody, JobListDocument, JobRow};
use super::shown::Page;

/// Submit, list, show and control jobs
#[derive(Args, Debug)]
pub(crate) struct JobArgs {
    #[command(subcommand)]
    command: JobCommand,
}

#[derive(Subcommand, Debug)]
enum JobCommand {
    Submit(Box<SubmitArgs>),
    #[command(visible_alias = "list")]
    Ls(JobLsArgs),
    #[command(visible_aliases = ["info", "get"])]
    Show(JobShowArgs),
    Tasks(TasksArgs),
    Logs(LogsArgs),
    Result(ResultArgs),
    Explain(JobExplainArgs),
    Cancel(JobCancelArgs),
    Retry(JobRetryArgs),
    Hold(HoldArgs),
    Release(ReleaseArgs),
    Wait(WaitArgs),
    Progress(ProgressArgs),
    Report(ReportArgs),
    #[command(visible_aliases = ["delete", "remove"])]
    Rm(JobRmArgs),
}

/// Show one job or one task
///
/// For a job: its state, its tasks by state, why it waits, and its submission. For a task: its item, its command, its
/// state and its attempts. Attempts before the latest are known until the broker restarts.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job show 7", "turno job show 7.3", "turno job show last --json"],
    &[1, 4, 5, 78, 124],
))]
struct JobShowArgs {
    /// Job or task: 7, last, 7.3
    job: JobPart,
}

pub(crate) fn run(args: &JobArgs, invocation: &Invocation) -> Result<u8, Failure> {
    match &args.command {
        JobCommand::Submit(args) => submit::run(args, invocation),
        JobCommand::Ls(args) => connect::block_on(list::jobs(args, invocation)),
        JobCommand::Show(args) => connect::block_on(show(args, invocation)),
        JobCommand::Tasks(args) => connect::block_on(list::tasks(args, invocation)),
        JobCommand::Logs(args) => connect::block_on(logs::run(args, invocation)),
        JobCommand::Result(args) => connect::block_on(result::run(args, invocation)),
        JobCommand::Explain(args) => connect::block_on(explain::run(args, invocation)),
        JobCommand::Cancel(args) => connect::block_on(change::cancel(args, invocation)),
        JobCommand::Retry(args) => connect::block_on(retry::run(args, invocation)),
        JobCommand::Hold(args) => connect::block_on(change::hold(args, invocation)),
        JobCommand::Release(args) => connect::block_on(change::release(args, invocation)),
        JobCommand::Wait(args) => connect::block_on(wait::run(args, invocation)),
        JobCommand::Progress(args) => connect::block_on(progress::run(args, invocation)),
        JobCommand::Report(args) => connect::block_on(report::run(args, invocation)),
        JobCommand::Rm(args) => connect::block_on(change::rm(args, invocation)),
    }
}

async fn show(args: &JobShowArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    let view = asked.find(args.job.job).await?;
    if let Some(ranges) = &args.job.tasks {
        return task::show(&asked, &view, ranges).await;
    }
    let mut document = JobDocument::from(&view);
    document.job.failures = asked.failures_if_told(&view).await;
    let clock = invocation.output.clock();
    invocation.output.one(&document, &view.id.to_string(), || text::whole(&document.job, clock))?;
    if view.counts.failed > 0 {
        failures::hints(view.id, &invocation.output);
    }
    Ok(0)
}

/// A connection and the command it is for.
struct JobClient<'a> {
    client: Client,
    invocation: &'a Invocation,
}

impl<'a> JobClient<'a> {
    async fn connect(invocation: &'a Invocation) -> Result<Self, Failure> {
        Ok(Self { client: connect::client(invocation).await?, invocation })
    }

    async fn admin(&self, call: AdminCall) -> Result<AdminAnswer, Failure> {
        connect::admin(&self.client, call, self.invocation.global.timeout()).await
    }

    /// That job as it is now.
    async fn find(&self, which: JobSelector) -> Result<JobView, Failure> {
        match which {
            JobSelector::Id(job) => self.job(AdminCall::JobShow { job: Some(job) }, job).await,
            JobSelector::Last => match self.admin(AdminCall::JobShow { job: None }).await {
                Ok(answer) => view(answer),
                Err(failure) if failure.code() == Code::NotFound => Err(Failure::new(Code::NotFound, "no jobs exist")
                    .why("`last` is the latest job, and this broker has none")
                    .fix("submit one: `turno submit -- CMD`")),
                Err(failure) => Err(failure),
            },
        }
    }

    /// Asks something about a job that is answered with the job.
    async fn job(&self, call: AdminCall, job: JobId) -> Result<JobView, Failure> {
        self.admin(call).await.and_then(view).map_err(|failure| named(failure, job))
    }
}

/// Whether the job has a task of those that were named. Of a range those that it has are meant, so that one is enough.
fn check_tasks(view: &JobView, ranges: &[(u32, u32)]) -> Result<(), Failure> {
    let numbers = view.numbers();
    let has_some = |(first, last): &(u32, u32)| numbers.place_from(*first) < numbers.place_after(Some(*last));
    if ranges.iter().any(has_some) { Ok(()) } else { Err(no_task(view, ranges)) }
}

/// There is no task with such a number.
fn no_task(view: &JobView, ranges: &[(u32, u32)]) -> Failure {
    let job = view.id;
    Failure::new(Code::NotFound, format!("job {job} has no task {}", select::told(ranges)))
        .why(format!("its tasks are {}", view.numbers()))
        .fix(format!("`turno job tasks {job}` lists them"))
}

fn view(answer: AdminAnswer) -> Result<JobView, Failure> {
    match answer {
        AdminAnswer::Job { job } => Ok(*job),
        other => Err(connect::unexpected(&other)),
    }
}

/// The failure with the job's own number in it.
fn named(failure: Failure, job: JobId) -> Failure {
    match failure.code() {
        Code::NotFound => Failure::new(Code::NotFound, format!("job {job} does not exist"))
            .why("it was never submitted to this broker, or has been removed")
            .fix("`turno job ls` lists the jobs"),
        Code::JobEnded => Failure::new(Code::JobEnded, format!("job {job} has ended"))
            .fix(format!("`turno job show {job}` shows how it ended")),
        Code::JobNotEnded => Failure::new(Code::JobNotEnded, format!("job {job} has not ended"))
            .fix(format!("wait with `turno job wait {job}`, or cancel it with `turno job cancel {job}`")),
        _ => failure,
    }
}

/// Prints a change of one job.
fn one_done(view: &JobView, invocation: &Invocation, line: impl Fn(&JobView) -> String) -> Result<(), Failure> {
    let document = JobDocument::from(view);
    invocation.output.one(&document, &view.id.to_string(), || line(view) + "\n")
}

/// Prints changes of jobs, one line each. The arguments decide which document that is: `alone` for one job.
fn done(
    ends: &[(JobId, Result<JobView, Failure>)],
    alone: bool,
    invocation: &Invocation,
    line: impl Fn(&JobView) -> String,
) -> Result<u8, Failure> {
    if let ([(_, end)], true) = (ends, alone) {
        one_done(end.as_ref().map_err(Clone::clone)?, invocation, line)?;
        return Ok(0);
    }
    let views: Vec<&JobView> = ends.iter().filter_map(|(_, end)| end.as_ref().ok()).collect();
    let failures: Vec<(JobId, &Failure)> =
        ends.iter().filter_map(|(id, end)| end.as_ref().err().map(|failure| (*id, failure))).collect();
    if let ([], [(_, failure), ..]) = (&views[..], &failures[..]) {
        return Err(Failure::clone(failure));
    }
    let rows: Vec<JobRow> = views.iter().map(|view| JobRow::listed(view)).collect();
    let error = |(id, failure): &(JobId, &Failure)| JobErrorBody { id: id.to_string(), error: failure.body() };
    let errors: Vec<JobErrorBody> = failures.iter().map(error).collect();
    let names: Page = rows.iter().map(|row| row.id.to_string()).collect();
    let document =
        JobListDocument { jobs: &rows, next: None, errors: Some(&errors[..]).filter(|errors| !errors.is_empty()) };
    invocation.output.several(&document, names, || views.iter().map(|view| line(view)).collect::<Page>())?;
    for (id, failure) in &failures {
        invocation.output.warn(&format!("job {id}: {} ({})", failure.what(), failure.code().name()));
    }
    Ok(if failures.is_empty() { 0 } else { 3 })
}

#[cfg(test)]
mod tests {
    use turno_proto::model::Moment;
    use turno_proto::model::job::{Array, JobState, TaskCounts, TaskNumbers};

    use super::*;

    /// A job of 30 tasks that runs.
    pub(super) fn view(id: u64) -> JobView {
        JobView {
            id: JobId(id),
            name: "sim".to_owned(),
            state: JobState::Running,
            array: Array { first: 1, count: 30, step: 1 }.into(),
            tasks: 30,
            counts: TaskCounts { waiting: 20, running: 4, finished: 6, failed: 0, cancelled: 0 },
            slots: 2,
            priority: 4,
            submitted_at: Moment::from_unix_ms(1_794_744_000_000),
            started_at: Some(Moment::from_unix_ms(1_794_744_000_250)),
            ..JobView::default()
        }
    }

    #[test]
    fn a_task_that_is_named_is_there() {
        let listed = JobView {
            array: TaskNumbers {
                array: Array { first: 1, count: 3, step: 1 },
                parts: ["1", "3", "5"].map(|part| part.parse().unwrap()).to_vec(),
            },
            ..view(7)
        };
        for (job, good, bad) in [(view(7), vec![(1, 1), (30, 99)], (31, 31)), (listed, vec![(2, 3)], (4, 4))] {
            assert_eq!(check_tasks(&job, &good), Ok(()));
            assert_eq!(check_tasks(&job, &[good[0], bad]), Ok(()), "those that are there are meant");
            let failure = check_tasks(&job, &[bad]).unwrap_err();
            assert_eq!((failure.code(), failure.exit()), (Code::NotFound, 4));
            assert_eq!(failure.what(), format!("job 7 has no task {}", bad.0));
        }
        assert!(no_task(&view(7), &[(40, 50), (60, 60)]).what().ends_with("no task 40-50,60"));
    }

    #[test]
    fn a_failure_names_the_job_and_keeps_its_exit_status() {
        let table = [
            (Code::NotFound, "job 7 does not exist", 4),
            (Code::JobEnded, "job 7 has ended", 1),
            (Code::JobNotEnded, "job 7 has not ended", 1),
        ];
        for (code, what, exit) in table {
            let failure = named(Failure::of(code), JobId(7));
            assert_eq!((failure.what(), failure.exit(), failure.code()), (what, exit, code));
        }
        assert_eq!(named(Failure::of(Code::BadCall), JobId(7)), Failure::of(Code::BadCall));
    }
}
