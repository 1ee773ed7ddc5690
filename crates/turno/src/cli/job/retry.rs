//! `turno job retry`: tasks that have ended wait again.

use std::collections::BTreeMap;

use clap::Args;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::Code;
use turno_proto::model::job::{JobId, JobView, TaskState};
use turno_proto::model::limits::{PAGE_MAX, TASK_RANGES_MAX};

use super::select::{Ranges, Target, TaskRanges};
use super::text::{number_of_tasks, title};
use super::{JobClient, check_tasks, named};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::job::JobErrorBody;
use crate::cli::schema::job_retry::{JobRetryDocument, RetriedJob};
use crate::cli::shown::Page;

/// Run failed or selected tasks again
///
/// The tasks wait again in the same job, which continues if it had ended. Their attempt numbers continue; earlier
/// failures do not count. Tasks that are selected by number run again even if they finished or were cancelled; waiting
/// and running ones are skipped. A range and `all` skip jobs without failed tasks, unless tasks are selected.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno job retry 7",
        "turno job retry 7.1-20 8 --dry-run",
        "turno job retry last --tasks 3,5-9",
        "turno job retry all --failed",
    ],
    &[1, 3, 4, 5, 78, 124],
))]
pub(super) struct JobRetryArgs {
    /// Jobs: 7, last, 1,3,5-8 or all; or tasks of one: 7.1-20
    #[arg(required = true, value_name = "JOB|JOB.TASKS")]
    targets: Vec<Target>,
    /// Failed tasks; this is the default
    #[arg(long, conflicts_with = "tasks")]
    failed: bool,
    /// These tasks of every job, regardless of their result: 3, 1-20 or 1,3,5-8
    #[arg(long, value_name = "RANGES")]
    tasks: Option<TaskRanges>,
    /// Only show the number of tasks
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(args: &JobRetryArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let both = args.failed || args.tasks.is_some();
    if both && args.targets.iter().any(|target| matches!(target, Target::Tasks(..))) {
        return Err(Failure::new(Code::BadUsage, "tasks are given twice: with the job and with an option")
            .fix("use job ids without tasks together with --failed or --tasks"));
    }
    let asked = JobClient::connect(invocation).await?;
    let meant = asked.meant(args).await?;
    let (mut jobs, mut errors) = (Vec::new(), Vec::new());
    for (view, tasks) in &meant {
        let some = tasks.as_deref();
        let done = if args.dry_run { asked.count(view, some).await } else { asked.retry(view.id, some).await };
        match done.map_err(|failure| named(failure, view.id)) {
            Ok(count) => jobs.push((view, tasks.is_some(), count)),
            Err(failure) => errors.push((view.id, failure)),
        }
    }
    if let ([], Some((_, failure))) = (&jobs[..], errors.first()) {
        return Err(failure.clone());
    }
    let body = |(view, _, tasks): &(&JobView, bool, u64)| RetriedJob {
        id: view.id.to_string(),
        name: view.name.clone(),
        tasks: *tasks,
    };
    let error = |(id, failure): &(JobId, Failure)| JobErrorBody { id: id.to_string(), error: failure.body() };
    let document = JobRetryDocument {
        jobs: jobs.iter().map(body).collect(),
        dry_run: args.dry_run,
        errors: (!errors.is_empty()).then(|| errors.iter().map(error).collect()),
    };
    let again: Vec<String> =
        jobs.iter().filter(|(.., tasks)| *tasks > 0).map(|(view, ..)| view.id.to_string()).collect();
    let lines = || jobs.iter().map(|(view, named, tasks)| line(view, *named, *tasks, args.dry_run)).collect::<Page>();
    invocation.output.several(&document, again.iter().collect(), lines)?;
    for (id, failure) in &errors {
        invocation.output.warn(&format!("job {id}: {} ({})", failure.what(), failure.code().name()));
    }
    match &again[..] {
        [] => {}
        _ if args.dry_run => invocation.output.hint("nothing was changed; omit --dry-run to retry them"),
        _ => invocation.output.hint(&format!("wait for them with: turno job wait {}", again.join(","))),
    }
    Ok(if errors.is_empty() { 0 } else { 3 })
}

/// The result for one job, as a line.
fn line(view: &JobView, named: bool, tasks: u64, dry_run: bool) -> String {
    let job = title(view);
    let what = match (tasks, dry_run) {
        (0, _) if named => return format!("{job}: none of these tasks has ended\n"),
        (0, _) => return format!("{job}: no task failed\n"),
        (1, false) => "waits again",
        (_, false) => "wait again",
        (_, true) => "would wait again",
    };
    format!("{job}: {} {what}\n", number_of_tasks(tasks))
}

impl JobClient<'_> {
    /// The jobs that are meant, and which tasks of each: none named are those that failed.
    async fn meant(&self, args: &JobRetryArgs) -> Result<Vec<(JobView, Option<Ranges>)>, Failure> {
        let fits: fn(&JobView) -> bool = if args.tasks.is_some() { |_| true } else { |view| view.counts.failed > 0 };
        // A job may be named for what failed and for some tasks: that is done one after the other.
        let mut meant: BTreeMap<(JobId, bool), (JobView, Option<Ranges>)> = BTreeMap::new();
        for target in &args.targets {
            match target {
                Target::Jobs(jobs) => {
                    for view in self.named(std::slice::from_ref(jobs), fits).await? {
                        let tasks = args.tasks.as_ref().map(|tasks| tasks.0.clone());
                        meant.entry((view.id, tasks.is_some())).or_insert((view, tasks));
                    }
                }
                Target::Tasks(one, ranges) => {
                    let view = self.find(*one).await?;
                    check_tasks(&view, ranges)?;
                    let (_, tasks) = meant.entry((view.id, true)).or_insert_with(|| (view, None));
                    tasks.get_or_insert_default().extend(ranges);
                }
            }
        }
        Ok(meant.into_values().collect())
    }

    /// Retries those that failed, or those named, portion by portion. Returns how many wait again.
    async fn retry(&self, job: JobId, tasks: Option<&[(u32, u32)]>) -> Result<u64, Failure> {
        let mut retried = 0;
        let portions: Vec<Option<Ranges>> = match tasks {
            None => vec![None],
            Some(ranges) => ranges.chunks(TASK_RANGES_MAX).map(|portion| Some(portion.to_vec())).collect(),
        };
        for tasks in portions {
            let mut after = None;
            loop {
                match self.admin(AdminCall::JobRetry { job, tasks: tasks.clone(), after }).await? {
                    AdminAnswer::Retried { tasks, next, .. } => {
                        retried += u64::from(tasks);
                        after = next;
                    }
                    other => return Err(connect::unexpected(&other)),
                }
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(retried)
    }

    /// How many that would be.
    async fn count(&self, view: &JobView, tasks: Option<&[(u32, u32)]>) -> Result<u64, Failure> {
        let Some(ranges) = tasks else { return Ok(view.counts.failed.into()) };
        let mut ended = 0;
        for (first, last) in ranges {
            let mut after = first.checked_sub(1);
            loop {
                let call = AdminCall::JobTasks { job: view.id, state: None, after, limit: PAGE_MAX };
                let (rows, next) = match self.admin(call).await? {
                    AdminAnswer::Tasks { tasks, next } => (tasks, next),
                    other => return Err(connect::unexpected(&other)),
                };
                let has_ended = |state| !matches!(state, TaskState::Waiting | TaskState::Running);
                let within = rows.iter().take_while(|row| row.task <= *last);
                ended += within.filter(|row| has_ended(row.state)).count() as u64;
                if next.is_none_or(|next| next >= *last) {
                    break;
                }
                after = next;
            }
        }
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::job::tests::view;

    #[test]
    fn what_became_of_a_job() {
        let table = [
            ((false, 3, false), "job 7 (sim): 3 tasks wait again\n"),
            ((true, 1, false), "job 7 (sim): 1 task waits again\n"),
            ((true, 1, true), "job 7 (sim): 1 task would wait again\n"),
            ((false, 0, true), "job 7 (sim): no task failed\n"),
            ((true, 0, false), "job 7 (sim): none of these tasks has ended\n"),
        ];
        for ((named, tasks, dry_run), expected) in table {
            assert_eq!(line(&view(7), named, tasks, dry_run), expected);
        }
    }
}
