//! Changes to jobs: cancel, hold, release, remove.

use std::collections::BTreeMap;

use clap::Args;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::Code;
use turno_proto::model::job::{JobId, JobState, JobView};
use turno_proto::model::limits::{PAGE_MAX, TASK_RANGES_MAX};

use super::select::{Item, Jobs, Ranges, Target, is_one, told};
use super::text::{counts, number_of_tasks, state_line, title};
use super::{JobClient, check_tasks, done, named};
use crate::cli::Invocation;
use crate::cli::confirm;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;

/// Cancel jobs or some of their tasks
///
/// Waiting tasks are cancelled at once. Running tasks are stopped at their workers, and count as cancelled when the
/// workers confirm it. Ended tasks do not change. A range and `all` skip jobs that have ended.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job cancel 7", "turno job cancel 7.1-20 7.33 --yes", "turno job cancel 1,3,5-8", "turno job cancel all --yes"],
    &[1, 3, 4, 5, 78, 124],
))]
pub(super) struct JobCancelArgs {
    /// Jobs: 7, last, 1,3,5-8 or all; or tasks of one: 7.1-20
    #[arg(required = true, value_name = "JOB|JOB.TASKS")]
    targets: Vec<Target>,
}

/// Hold jobs: start none of their waiting tasks
///
/// Running tasks continue. `turno job release` lets the others start again.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job hold 7", "turno job hold all"],
    &[1, 3, 4, 5, 78, 124],
))]
pub(super) struct HoldArgs {
    /// Jobs: 7, last, 1,3,5-8 or all
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<Jobs>,
}

/// Continue held jobs
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job release 7", "turno job release all"],
    &[1, 3, 4, 5, 78, 124],
))]
pub(super) struct ReleaseArgs {
    /// Jobs: 7, last, 1,3,5-8 or all
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<Jobs>,
}

/// Remove ended jobs and everything stored for them
///
/// A range and `all` skip jobs that have not ended.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job rm 7", "turno job rm 1-100 --yes", "turno job rm all --yes"],
    &[1, 3, 4, 5, 78, 124],
))]
pub(super) struct JobRmArgs {
    /// Jobs: 7, last, 1,3,5-8 or all
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<Jobs>,
}

pub(super) async fn cancel(args: &JobCancelArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    let mut meant: BTreeMap<JobId, (JobView, Option<Ranges>)> = BTreeMap::new();
    for target in &args.targets {
        match target {
            Target::Jobs(jobs) => {
                for view in asked.named(std::slice::from_ref(jobs), |view| !view.state.is_end()).await? {
                    meant.insert(view.id, (view, None));
                }
            }
            Target::Tasks(one, ranges) => {
                let view = asked.find(*one).await?;
                check_tasks(&view, ranges)?;
                let (_, tasks) = meant.entry(view.id).or_insert_with(|| (view, Some(Vec::new())));
                // The whole job is more than some of its tasks.
                if let Some(tasks) = tasks {
                    tasks.extend(ranges);
                }
            }
        }
    }
    let meant: Vec<(JobView, Option<Ranges>)> = meant.into_values().collect();
    if let [(view, _)] = &meant[..]
        && view.state.is_end()
    {
        return Err(named(Failure::of(Code::JobEnded), view.id));
    }
    confirm::ask(invocation, &cancel_question(&meant))?;
    let mut ends = Vec::new();
    for (view, tasks) in meant {
        ends.push((view.id, asked.cancel_one(view.id, tasks).await));
    }
    let exit = done(&ends, Target::is_one(&args.targets), invocation, |view| match view.state.is_end() {
        true => state_line(view),
        false => format!("{}: tasks cancelled; now {}", title(view), counts(&view.counts)),
    })?;
    let stopping =
        ends.iter().find_map(|(id, end)| end.as_ref().ok().filter(|view| view.counts.running > 0).map(|_| id));
    if let Some(id) = stopping {
        invocation.output.hint(&format!("running tasks are being stopped; check with: turno job show {id}"));
    }
    Ok(exit)
}

/// The question before tasks are cancelled.
fn cancel_question(meant: &[(JobView, Option<Ranges>)]) -> String {
    let left = |view: &JobView| format!("{} waiting and {} running", view.counts.waiting, view.counts.running);
    match meant {
        [(view, None)] => format!("cancel {}, with {}?", title(view), left(view)),
        [(view, Some(ranges))] => format!("cancel tasks {} of {}?", told(ranges), title(view)),
        _ => {
            let sum = |count: fn(&JobView) -> u32| meant.iter().map(|(view, _)| u64::from(count(view))).sum::<u64>();
            let (waiting, running) = (sum(|view| view.counts.waiting), sum(|view| view.counts.running));
            let some = meant.iter().filter(|(_, tasks)| tasks.is_some()).count();
            let partly = if some > 0 { format!(", {some} of them in part") } else { String::new() };
            format!("cancel {} jobs, with {waiting} waiting and {running} running{partly}?", meant.len())
        }
    }
}

pub(super) async fn hold(args: &HoldArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    let views = asked.named(&args.jobs, |view| !view.state.is_end() && view.state != JobState::Held).await?;
    let ends = asked.each(&views, |job| AdminCall::JobHold { job }).await;
    let exit = done(&ends, is_one(&args.jobs), invocation, state_line)?;
    if let [(id, Ok(_))] = &ends[..] {
        invocation.output.hint(&format!("release it with: turno job release {id}"));
    }
    Ok(exit)
}

pub(super) async fn release(args: &ReleaseArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    let views = asked.named(&args.jobs, |view| view.state == JobState::Held).await?;
    let ends = asked.each(&views, |job| AdminCall::JobRelease { job }).await;
    done(&ends, is_one(&args.jobs), invocation, state_line)
}

pub(super) async fn rm(args: &JobRmArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    let views = asked.named(&args.jobs, |view| view.state.is_end()).await?;
    if let [view] = &views[..]
        && !view.state.is_end()
    {
        return Err(named(Failure::of(Code::JobNotEnded), view.id));
    }
    confirm::ask(invocation, &rm_question(&views))?;
    let ends = asked.each(&views, |job| AdminCall::JobRm { job }).await;
    done(&ends, is_one(&args.jobs), invocation, |view| format!("{} removed", title(view)))
}

/// The question before jobs are removed.
fn rm_question(views: &[JobView]) -> String {
    let tasks = number_of_tasks(views.iter().map(|view| u64::from(view.tasks)).sum());
    match views {
        [view] => format!("remove {} and all data of its {tasks}?", title(view)),
        _ => format!("remove {} jobs and all data of their {tasks}?", views.len()),
    }
}

impl JobClient<'_> {
    /// The jobs that the words name, each once, by number. Of a range and of all: those that are there and fit.
    pub(super) async fn named(&self, words: &[Jobs], fits: fn(&JobView) -> bool) -> Result<Vec<JobView>, Failure> {
        let mut found: BTreeMap<JobId, JobView> = BTreeMap::new();
        let mut listed: Option<Vec<JobView>> = None;
        for item in words.iter().flat_map(|jobs| &jobs.0) {
            let span = match item {
                Item::One(one) => {
                    let view = self.find(*one).await?;
                    found.insert(view.id, view);
                    continue;
                }
                Item::Span(span) => Some(span),
                Item::All => None,
            };
            let listed = match &mut listed {
                Some(listed) => listed,
                none => none.insert(self.all_jobs().await?),
            };
            let meant = |view: &&JobView| span.is_none_or(|span| span.contains(view.id.0)) && fits(view);
            found.extend(listed.iter().filter(meant).map(|view| (view.id, view.clone())));
        }
        if found.is_empty() {
            return Err(Failure::new(Code::NotFound, "no job matches")
                .why("no job has these ids, or none is in a state that allows this")
                .fix("`turno job ls` lists the jobs"));
        }
        Ok(found.into_values().collect())
    }

    async fn all_jobs(&self) -> Result<Vec<JobView>, Failure> {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            match self.admin(AdminCall::JobLs { before, limit: PAGE_MAX }).await? {
                AdminAnswer::Jobs { jobs, next } => {
                    let last = next.is_none() || jobs.is_empty();
                    all.extend(jobs);
                    if last {
                        return Ok(all);
                    }
                    before = next;
                }
                other => return Err(connect::unexpected(&other)),
            }
        }
    }

    /// Asks the same of every job; one that fails does not keep the others from it.
    async fn each(
        &self,
        views: &[JobView],
        call: impl Fn(JobId) -> AdminCall,
    ) -> Vec<(JobId, Result<JobView, Failure>)> {
        let mut ends = Vec::new();
        for view in views {
            ends.push((view.id, self.job(call(view.id), view.id).await));
        }
        ends
    }

    /// Cancels a job or some of its tasks, as many ranges a call as it may have.
    async fn cancel_one(&self, job: JobId, tasks: Option<Ranges>) -> Result<JobView, Failure> {
        let Some(ranges) = tasks else { return self.job(AdminCall::JobCancel { job, tasks: None }, job).await };
        let mut last = None;
        for portion in ranges.chunks(TASK_RANGES_MAX) {
            let call = AdminCall::JobCancel { job, tasks: Some(portion.to_vec()) };
            match (self.job(call, job).await, &last) {
                (Ok(view), _) => last = Some(view),
                // The portions before were all that was left of it.
                (Err(failure), Some(_)) if failure.code() == Code::JobEnded => break,
                (Err(failure), _) => return Err(failure),
            }
        }
        last.ok_or_else(|| Failure::of(Code::NotFound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::job::tests::view;

    #[test]
    fn what_is_asked_before_tasks_are_cancelled() {
        let (one, two) = (view(7), view(8));
        assert_eq!(cancel_question(&[(one.clone(), None)]), "cancel job 7 (sim), with 20 waiting and 4 running?");
        let some = Some(vec![(1, 20), (33, 33)]);
        assert_eq!(cancel_question(&[(one.clone(), some.clone())]), "cancel tasks 1-20,33 of job 7 (sim)?");
        assert_eq!(
            cancel_question(&[(one.clone(), None), (two.clone(), None)]),
            "cancel 2 jobs, with 40 waiting and 8 running?"
        );
        assert_eq!(
            cancel_question(&[(one, None), (two, some)]),
            "cancel 2 jobs, with 40 waiting and 8 running, 1 of them in part?"
        );
    }

    #[test]
    fn what_is_asked_before_jobs_are_removed() {
        let question = "remove job 7 (sim) and all data of its 30 tasks?";
        assert_eq!(rm_question(&[view(7)]), question);
        assert_eq!(rm_question(&[view(7), view(8)]), "remove 2 jobs and all data of their 60 tasks?");
    }
}
