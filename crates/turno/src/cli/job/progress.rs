//! `turno job progress`: how far jobs are, until they have ended.

use clap::Args;
use turno_proto::model::job::JobView;

use super::select::{Item, Jobs, is_one};
use super::text::state_line;
use super::wait::tell_ends;
use super::watch::{Until, Wait, WaitCut, explained, selector};
use super::{JobClient, JobListDocument};
use crate::cli::Invocation;
use crate::cli::error::Failure;
use crate::cli::help;
use turno_proto::model::Code;

/// Show the progress of jobs until they have ended
///
/// On a terminal, two bars: one for jobs and one for tasks. Otherwise one line every 10 seconds. Both go to stderr;
/// --progress selects the form. When the jobs have ended, their results are printed to stdout. The exit status is 0
/// even if tasks failed: use `turno job wait` in scripts. Ctrl-C does not affect the jobs.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job progress", "turno job progress 7", "turno job progress 5-8 --progress plain"],
    &[1, 4, 5, 78, 124, 130, 143],
))]
pub(super) struct ProgressArgs {
    /// Jobs: 7, last, 1,3,5-8 or all [default: unfinished jobs]
    #[arg(value_name = "JOB")]
    jobs: Vec<Jobs>,
}

pub(super) async fn run(args: &ProgressArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let mut wait = Wait::new(invocation)?;
    let mut asked = JobClient::connect(invocation).await?;
    let found = match args.jobs.is_empty() {
        true => asked.named(&[Jobs(vec![Item::All])], |job| !job.state.is_end()).await,
        false => asked.named(&args.jobs, |_| true).await,
    };
    let mut jobs = match found {
        Err(failure) if args.jobs.is_empty() && failure.code() == Code::NotFound => {
            invocation.output.one(&JobListDocument { jobs: &[], next: None, errors: None }, "", || "")?;
            invocation.output.hint("all jobs have ended; list them: turno job ls");
            return Ok(0);
        }
        found => found?,
    };
    match wait.until(Until::All, &mut jobs, &mut asked).await {
        Ok(()) => {
            tell_ends(&jobs, is_one(&args.jobs), &asked).await?;
            Ok(0)
        }
        Err(WaitCut::Signal(exit)) if !invocation.output.format().is_json() => {
            leave(&jobs, invocation);
            Ok(exit)
        }
        Err(cut) => Err(explained(cut, &jobs)),
    }
}

/// Jobs that are told of one by one when somebody leaves.
const TOLD_MAX: usize = 10;

/// Prints which jobs go on, and how to watch them again.
fn leave(jobs: &[JobView], invocation: &Invocation) {
    let open: Vec<&JobView> = jobs.iter().filter(|job| !job.state.is_end()).collect();
    for job in open.iter().take(TOLD_MAX) {
        invocation.output.note(&state_line(job));
    }
    if open.len() > TOLD_MAX {
        invocation.output.note(&format!("and {} more continue", open.len() - TOLD_MAX));
    }
    invocation.output.hint(&format!("turno job progress {}", selector(&open)));
}
