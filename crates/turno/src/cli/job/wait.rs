//! `turno job wait`: until jobs have ended, and how they did.

use clap::Args;
use turno_proto::model::job::{JobState, JobView};

use super::failures;
use super::select::{Jobs, is_one};
use super::text::state_line;
use super::watch::explained;
pub(super) use super::watch::{Until, Wait};
use super::{JobClient, JobDocument};
use crate::cli::Invocation;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::job::{JobListDocument, JobRow};
use crate::cli::shown::Page;

/// Wait until jobs have ended
///
/// The exit status is 1 if a task failed or was cancelled. Similar failures are grouped. --timeout limits the waiting;
/// by default there is no limit. The command waits through a restart of the broker. Ctrl-C ends only the waiting.
/// Progress is shown on stderr (--progress).
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno job wait 7",
        "turno job wait last --timeout 1h",
        "turno job wait 1,3,5-8 --ignore-failures",
        "turno job wait 7 8 --any --progress none",
    ],
    &[1, 4, 5, 78, 124, 130, 143],
))]
pub(super) struct WaitArgs {
    /// Jobs: 7, last, 1,3,5-8 or all
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<Jobs>,

    /// Wait until any one of the jobs has ended; show only ended jobs
    #[arg(long)]
    any: bool,

    /// Exit status 0 even if tasks failed or were cancelled
    #[arg(long)]
    ignore_failures: bool,
}

pub(super) async fn run(args: &WaitArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let mut wait = Wait::new(invocation)?;
    let mut asked = JobClient::connect(invocation).await?;
    let mut jobs = asked.named(&args.jobs, |_| true).await?;
    let until = if args.any { Until::Any } else { Until::All };
    if let Err(cut) = wait.until(until, &mut jobs, &mut asked).await {
        return Err(explained(cut, &jobs));
    }
    jobs.retain(|job| job.state.is_end());
    tell_ends(&jobs, is_one(&args.jobs), &asked).await?;
    let bad = jobs.iter().any(|job| job.state != JobState::Finished);
    Ok(u8::from(bad && !args.ignore_failures))
}

/// How jobs ended, and what failed in them: on stdout in every format, with the next useful commands on stderr. `alone`:
/// one job was named by its number, and its document is that of one job.
pub(super) async fn tell_ends(jobs: &[JobView], alone: bool, asked: &JobClient<'_>) -> Result<(), Failure> {
    let output = &asked.invocation.output;
    let mut rows = Vec::new();
    for job in jobs {
        rows.push(JobRow { failures: asked.failures_if_told(job).await, ..JobRow::listed(job) });
    }
    let text = || {
        let told = |(job, row): (&JobView, &JobRow)| {
            [state_line(job).into(), row.failures.as_ref().map(failures::text).unwrap_or_default()]
        };
        jobs.iter().zip(&rows).flat_map(told).collect::<Page>()
    };
    let names: Page = rows.iter().map(|row| row.id.to_string()).collect();
    match (jobs, alone) {
        ([job], true) => {
            let mut document = JobDocument::from(job);
            document.job.failures.clone_from(&rows[0].failures);
            output.several(&document, names, text)?;
        }
        _ => output.several(&JobListDocument { jobs: &rows, next: None, errors: None }, names, text)?,
    }
    if let Some(job) = jobs.iter().find(|job| job.counts.failed > 0) {
        failures::hints(job.id, output);
    }
    Ok(())
}
