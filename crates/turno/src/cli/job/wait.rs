//! Waiting until jobs have ended. The wait is nothing to the jobs: they go on when it ends.

use std::future::pending;
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep, sleep_until};
use turno_client::{AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::job::{JobId, JobState, JobView};

use super::select::{Jobs, is_one};
use super::text::{counts, state_line, title};
use super::{Asked, done, named, view};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::global::TIMEOUT;
use crate::cli::help;
use crate::cli::signals::Signals;

/// Pause before a lost broker is looked for again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long it is looked for: jobs outlive the broker's runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Wait until jobs have ended
///
/// The exit status is 1 if a task failed or was cancelled. --timeout says how long to wait at most; without it, for ever.
/// A broker that restarts is waited for. Ctrl-C ends the wait and leaves the jobs as they are.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job wait 7", "turno job wait last --timeout 1h", "turno job wait 1,3,5-8 --ignore-failures"],
    &[1, 4, 5, 78, 124, 130, 143],
))]
pub(super) struct WaitArgs {
    /// Jobs: 7, last, 1,3,5-8 or all
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<Jobs>,

    /// Exit status 0 even if tasks failed or were cancelled
    #[arg(long)]
    ignore_failures: bool,
}

pub(super) async fn run(args: &WaitArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let mut wait = Wait::new(invocation)?;
    let mut asked = Asked::connect(invocation).await?;
    let views = asked.named(&args.jobs, |_| true).await?;
    let mut ends = Vec::new();
    for view in &views {
        ends.push((view.id, Ok(wait.until_end(view, &mut asked).await?)));
    }
    done(&ends, is_one(&args.jobs), invocation, state_line)?;
    let bad = ends.iter().filter_map(|(_, end)| end.as_ref().ok()).find(|view| view.state != JobState::Finished);
    tell_failures(bad, invocation);
    Ok(u8::from(bad.is_some() && !args.ignore_failures))
}

/// Where to look for what went wrong.
pub(super) fn tell_failures(view: Option<&JobView>, invocation: &Invocation) {
    if let Some(view) = view.filter(|view| view.tasks.failed > 0) {
        invocation.output.hint(&format!("see what failed: turno job tasks {} --state failed", view.id));
    }
}

/// What ends a wait before its job does.
pub(super) struct Wait {
    signals: Signals,
    deadline: Option<Instant>,
}

impl Wait {
    /// The time runs from now.
    pub(super) fn new(invocation: &Invocation) -> Result<Self, Failure> {
        let deadline = invocation.global.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Ok(Self { signals: Signals::catch()?, deadline })
    }

    /// The job once it has ended. Should the connection be lost, `asked` gets another.
    pub(super) async fn until_end(&mut self, job: &JobView, asked: &mut Asked<'_>) -> Result<JobView, Failure> {
        if job.state.is_end() {
            return Ok(job.clone());
        }
        let late = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => pending().await,
            }
        };
        tokio::select! {
            end = ended(job.id, asked) => end.map_err(|failure| lost(failure, job)),
            () = late => {
                let call = AdminCall::JobShow { job: Some(job.id) };
                let now = connect::admin(&asked.client, call, TIMEOUT).await.and_then(view);
                // If nobody answers, what was last known must do.
                Err(timed_out(&now.unwrap_or_else(|_| job.clone())))
            }
            exit = self.signals.next() => Err(interrupted(job, exit)),
        }
    }
}

/// Asks until the broker says that the job has ended, again whenever the connection is lost.
async fn ended(job: JobId, asked: &mut Asked<'_>) -> Result<JobView, Failure> {
    loop {
        let end = asked.client.admin(AdminCall::JobWait { job }).await.map_err(Failure::from).and_then(view);
        match end {
            Err(failure) if is_loss(failure.code()) => {
                asked.invocation.output.note("the connection is lost; looking for the broker");
                asked.client = found_again(asked.invocation).await?;
            }
            other => return other.map_err(|failure| named(failure, job)),
        }
    }
}

/// Whether asking again, on another connection, may help.
pub(super) const fn is_loss(code: Code) -> bool {
    matches!(code, Code::ConnectionLost | Code::CannotConnect | Code::Closing | Code::CutShort | Code::TimedOut)
}

pub(super) async fn found_again(invocation: &Invocation) -> Result<Client, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        sleep(PAUSE).await;
        match connect::client(invocation).await {
            Err(failure) if is_loss(failure.code()) && Instant::now() < until => {}
            other => return other,
        }
    }
}

/// How to come back to a job that goes on.
fn come_back(job: &JobView) -> String {
    format!("come back with `turno job wait {0}`, end it with `turno job cancel {0}`", job.id)
}

fn timed_out(job: &JobView) -> Failure {
    Failure::new(Code::TimedOut, format!("{} has not ended: {}", title(job), counts(&job.tasks)))
        .why("--timeout is over; the job goes on")
        .fix(come_back(job))
}

fn interrupted(job: &JobView, exit: u8) -> Failure {
    Failure::new(Code::Cancelled, format!("the wait for {} was ended", title(job)))
        .why("a signal ended it; the job goes on")
        .fix(come_back(job))
        .exit_with(exit)
}

/// A wait that ended since nobody answers is no end of the job.
fn lost(failure: Failure, job: &JobView) -> Failure {
    if is_loss(failure.code()) { failure.fix(format!("the job is stored; {}", come_back(job))) } else { failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::job::tests;

    #[test]
    fn whoever_stops_waiting_is_told_how_to_come_back() {
        let job = tests::view(7);
        let back = "come back with `turno job wait 7`, end it with `turno job cancel 7`";
        for (failure, exit) in [(timed_out(&job), 124), (interrupted(&job, 130), 130), (interrupted(&job, 143), 143)] {
            assert_eq!(failure.exit(), exit);
            assert_eq!(failure.body().hint, back);
            assert!(failure.what().contains("job 7 (sim)") && failure.body().why.ends_with("the job goes on"));
        }
        assert_eq!(timed_out(&job).what(), "job 7 (sim) has not ended: 20 waiting, 4 running, 6 finished");
    }

    #[test]
    fn only_a_lost_connection_is_tried_again() {
        assert!(is_loss(Code::ConnectionLost) && is_loss(Code::CannotConnect) && is_loss(Code::Closing));
        assert!(!is_loss(Code::NotFound) && !is_loss(Code::BadCall) && !is_loss(Code::TooManyInFlight));
        let gone = lost(Failure::of(Code::CannotConnect), &tests::view(7));
        assert!(gone.body().hint.contains("turno job wait 7"), "{gone:?}");
        assert_eq!(lost(Failure::of(Code::NotFound), &tests::view(7)), Failure::of(Code::NotFound));
    }
}
