//! Waiting for jobs, with progress. It is nothing to the jobs: they go on when the wait ends.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::job::{JobId, JobView};
use turno_proto::model::limits::PAGE_MAX;

use super::select;
use super::text::{counts, title};
use super::{JobClient, named, view};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::global::TIMEOUT;
use crate::cli::progress::Screen;
use crate::cli::signals::Signals;

/// Pause before a lost broker is looked for again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long it is looked for: jobs outlive the broker's runs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Jobs whose end the broker is asked to tell at a time. The end of others is seen by looking at them.
const WAITS_MAX: usize = 100;
/// How often those are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// All jobs have ended.
    All,
    /// One of them has.
    Any,
}

/// The reason why a wait ended before its jobs.
#[derive(Debug)]
pub(super) enum WaitCut {
    /// The time is over.
    Late,
    /// A signal; the exit status it gives.
    Signal(u8),
    /// The broker refused, or is gone.
    Failed(Failure),
}

/// A wait for jobs, with what may end it before they do.
pub(super) struct Wait<'a> {
    signals: Signals,
    deadline: Option<Instant>,
    screen: Screen<'a>,
}

impl<'a> Wait<'a> {
    /// The time runs from now.
    pub(super) fn new(invocation: &'a Invocation) -> Result<Self, Failure> {
        let deadline = invocation.global.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Ok(Self { signals: Signals::catch()?, deadline, screen: Screen::new(invocation) })
    }

    /// The job once it has ended. Should the connection be lost, `asked` gets another.
    pub(super) async fn until_end(&mut self, job: &JobView, asked: &mut JobClient<'_>) -> Result<JobView, Failure> {
        let mut jobs = vec![job.clone()];
        match self.until(Until::All, &mut jobs, asked).await {
            Ok(()) => Ok(jobs.swap_remove(0)),
            Err(cut) => Err(explained(cut, &jobs)),
        }
    }

    /// Returns when the jobs, or one of them, have ended; they are as they were last seen then.
    pub(super) async fn until(
        &mut self,
        until: Until,
        jobs: &mut [JobView],
        asked: &mut JobClient<'_>,
    ) -> Result<(), WaitCut> {
        let end = self.watch(until, jobs, asked).await;
        self.screen.clear();
        if matches!(end, Err(WaitCut::Late)) {
            // For the last report; without an answer, the last known state is used.
            let _ = look(jobs, &asked.client).await;
        }
        end
    }

    async fn watch(&mut self, until: Until, jobs: &mut [JobView], asked: &mut JobClient<'_>) -> Result<(), WaitCut> {
        let mut waits = Waits::default();
        loop {
            let open: Vec<JobId> = jobs.iter().filter(|job| !job.state.is_end()).map(|job| job.id).collect();
            if open.is_empty() || (until == Until::Any && open.len() < jobs.len()) {
                return Ok(());
            }
            waits.fill(&open, &asked.client);
            let unasked = open.len() > waits.asked.len();
            let told = tokio::select! {
                Some(end) = waits.next() => Some(end),
                () = self.screen.due() => None,
                () = sleep(LOOK_EVERY), if unasked => None,
                () = late(self.deadline) => return Err(WaitCut::Late),
                exit = self.signals.next() => return Err(WaitCut::Signal(exit)),
            };
            let told = match told {
                Some((id, end)) => end.map(|end| {
                    jobs.iter_mut().filter(|job| job.id == id).for_each(|job| *job = end.clone());
                }),
                None => look(jobs, &asked.client).await.map(|()| self.screen.tell(jobs)),
            };
            match told {
                Ok(()) => {}
                Err(failure) if is_loss(failure.code()) => {
                    self.screen.clear();
                    asked.invocation.output.note("connection lost; reconnecting");
                    waits = Waits::default();
                    asked.client = tokio::select! {
                        client = found_again(asked.invocation) => client.map_err(WaitCut::Failed)?,
                        () = late(self.deadline) => return Err(WaitCut::Late),
                        exit = self.signals.next() => return Err(WaitCut::Signal(exit)),
                    };
                }
                Err(failure) => return Err(WaitCut::Failed(failure)),
            }
        }
    }
}

/// Returns when the time is over.
async fn late(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Questions that the broker answers when a job has ended. Each is asked once: the broker keeps it until then.
#[derive(Default)]
struct Waits {
    asked: BTreeSet<JobId>,
    open: JoinSet<(JobId, Result<JobView, Failure>)>,
}

impl Waits {
    /// Asks for those of the jobs that are not asked for yet, as long as that is not too many.
    fn fill(&mut self, open: &[JobId], client: &Client) {
        for id in open {
            if self.open.len() >= WAITS_MAX {
                return;
            }
            if self.asked.insert(*id) {
                let (id, client) = (*id, client.clone());
                self.open.spawn(async move {
                    let end =
                        client.admin_call(AdminCall::JobWait { job: id }).await.map_err(Failure::from).and_then(view);
                    (id, end.map_err(|failure| named(failure, id)))
                });
            }
        }
    }

    /// The next job that has ended.
    async fn next(&mut self) -> Option<(JobId, Result<JobView, Failure>)> {
        let joined = self.open.join_next().await?;
        let (id, end) = joined.expect("a question neither panics nor is it aborted");
        // Tried again after its end, it may be asked for anew.
        self.asked.remove(&id);
        Some((id, end))
    }
}

/// Looks at the jobs, in as few calls as their numbers allow. One that is gone stays as it was.
async fn look(jobs: &mut [JobView], client: &Client) -> Result<(), Failure> {
    let mut wanted: BTreeSet<JobId> = jobs.iter().filter(|job| !job.state.is_end()).map(|job| job.id).collect();
    while let Some(highest) = wanted.last().copied() {
        let limit = u32::try_from(wanted.len()).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let call = AdminCall::JobLs { before: highest.0.checked_add(1).map(JobId), limit };
        let seen = match connect::admin(client, call, TIMEOUT).await? {
            AdminAnswer::Jobs { jobs, .. } => jobs,
            other => return Err(connect::unexpected(&other)),
        };
        for now in &seen {
            if wanted.contains(&now.id) {
                jobs.iter_mut().filter(|job| job.id == now.id).for_each(|job| *job = now.clone());
            }
        }
        // All down to the lowest that was told are told, and the highest in any case.
        let lowest = seen.last().map_or(highest, |last| last.id.min(highest));
        wanted.retain(|id| *id < lowest);
    }
    Ok(())
}

/// Whether asking again, on another connection, may help.
pub(super) const fn is_loss(code: Code) -> bool {
    matches!(code, Code::ConnectionLost | Code::CannotConnect | Code::Closing | Code::CutShort | Code::TimedOut)
}

/// The broker, once it answers again.
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

/// Jobs as commands take them: `7` or `7,9-12`.
pub(super) fn selector(jobs: &[&JobView]) -> String {
    let mut ids: Vec<u64> = jobs.iter().map(|job| job.id.0).collect();
    ids.sort_unstable();
    select::told(&select::joined(&ids))
}

/// Why a wait ended, and how to come back to the jobs that go on.
pub(super) fn explained(cut: WaitCut, jobs: &[JobView]) -> Failure {
    let open: Vec<&JobView> = jobs.iter().filter(|job| !job.state.is_end()).collect();
    let numbers = selector(&open);
    let back = format!("wait again with `turno job wait {numbers}`, or cancel with `turno job cancel {numbers}`");
    let (what, goes_on) = match &open[..] {
        [job] => (title(job), "the job continues"),
        _ => (format!("{} jobs", open.len()), "the jobs continue"),
    };
    match cut {
        WaitCut::Failed(failure) if is_loss(failure.code()) => failure.fix(format!("the job is stored; {back}")),
        WaitCut::Failed(failure) => failure,
        WaitCut::Late => {
            let what = match &open[..] {
                [job] => format!("{what} has not ended: {}", counts(&job.counts)),
                _ => format!("{what} have not ended"),
            };
            Failure::new(Code::TimedOut, what).why(format!("--timeout has passed; {goes_on}")).fix(back)
        }
        WaitCut::Signal(exit) => Failure::new(Code::Cancelled, format!("stopped waiting for {what}"))
            .why(goes_on)
            .fix(back)
            .hinted()
            .exit_with(exit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::job::tests;
    use crate::cli::paint::Paint;

    #[test]
    fn anyone_who_stops_waiting_is_told_how_to_come_back() {
        let job = [tests::view(7)];
        let back = "wait again with `turno job wait 7`, or cancel with `turno job cancel 7`";
        for (cut, exit) in [(WaitCut::Late, 124), (WaitCut::Signal(130), 130), (WaitCut::Signal(143), 143)] {
            let failure = explained(cut, &job);
            assert_eq!(failure.exit(), exit);
            assert_eq!(failure.body().hint, back);
            assert!(failure.what().contains("job 7 (sim)") && failure.body().why.ends_with("the job continues"));
        }
        let left = explained(WaitCut::Signal(130), &job).render(Paint::plain());
        assert_eq!(left, format!("stopped waiting for job 7 (sim): the job continues\nhint: {back}\n"));
        let late = explained(WaitCut::Late, &job);
        assert_eq!(late.what(), "job 7 (sim) has not ended: 20 waiting, 4 running, 6 finished");
        let several = explained(WaitCut::Late, &[tests::view(9), tests::view(7), tests::view(8), tests::view(20)]);
        assert_eq!(several.what(), "4 jobs have not ended");
        assert!(several.body().hint.contains("turno job wait 7-9,20"), "{several:?}");
    }

    #[test]
    fn only_a_lost_connection_is_tried_again() {
        assert!(is_loss(Code::ConnectionLost) && is_loss(Code::CannotConnect) && is_loss(Code::Closing));
        assert!(!is_loss(Code::NotFound) && !is_loss(Code::BadCall) && !is_loss(Code::TooManyInFlight));
        let gone = explained(WaitCut::Failed(Failure::of(Code::CannotConnect)), &[tests::view(7)]);
        assert!(gone.body().hint.contains("turno job wait 7"), "{gone:?}");
        let refused = explained(WaitCut::Failed(Failure::of(Code::NotFound)), &[tests::view(7)]);
        assert_eq!(refused, Failure::of(Code::NotFound));
    }
}
