//! Submitting an array, and how long until it is done; and what a long one costs before anything of it runs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use turno_proto::model::job::{Array, JobId, JobSpec, JobView, Work};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::work;

use crate::link::{Link, scratch};
use crate::memory::settled;
use crate::process;
use crate::rules::admin::ask;
use crate::rules::figures::RuleSample;
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::tasks::block_on;

/// Tasks of the long array.
const LONG: u32 = 1_000_000;
const MEGABYTE: f64 = 1e6;

/// Somebody who submits.
pub(super) async fn submitter(server: &Server) -> Result<Link> {
    Link::client(System::Turno, server.address, &scratch(), 0..0).await
}

/// Submits an array of tasks that do nothing; it is stored when this returns.
pub(super) async fn submit(link: &mut Link, count: u32) -> Result<JobId> {
    submit_command(link, count, &["true"]).await
}

/// The same with another command.
pub(super) async fn submit_command(link: &mut Link, count: u32, argv: &[&str]) -> Result<JobId> {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let work = work::encode(&Work { argv, ..Work::default() })?;
    let spec = JobSpec::new("no-op", Array { first: 1, count, step: 1 }, work);
    Ok(job(link, AdminCall::JobSubmit { spec: Box::new(spec) }).await?.id)
}

/// Waits until every task of it is finished.
pub(super) async fn wait(link: &mut Link, id: JobId, patience: Duration) -> Result<()> {
    let ended = tokio::time::timeout(patience, job(link, AdminCall::JobWait { job: id }));
    check(&ended.await.context("the job does not end")??)
}

/// That every task of a job is finished.
pub(super) fn check(job: &JobView) -> Result<()> {
    if job.counts.finished != job.tasks {
        bail!("of job {} with {} tasks there are {:?}", job.id, job.tasks, job.counts);
    }
    Ok(())
}

pub(super) async fn job(link: &mut Link, call: AdminCall) -> Result<JobView> {
    match ask(link, call).await? {
        AdminAnswer::Job { job } => Ok(*job),
        other => bail!("not a job: {other:?}"),
    }
}

/// The time of a long submission, and the memory it takes; nobody is there to run it.
pub(super) fn measure(router_count: usize) -> Result<[RuleSample; 2]> {
    let server = Server::start(System::Turno, false, Keeps::Disk, &[routers(router_count)])?;
    block_on(async {
        let mut link = submitter(&server).await?;
        let pids = server.pids();
        let before = settled(&pids).await;
        let begun = Instant::now();
        submit(&mut link, LONG).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = process::memory_bytes(&pids).max(settled(&pids).await);
        let grown = after.saturating_sub(before) as f64 / MEGABYTE;
        Ok([RuleSample(vec![("s for 1,000,000 tasks", seconds)]), RuleSample(vec![("MB for 1,000,000 tasks", grown)])])
    })
}

#[cfg(test)]
mod tests {
    use turno_proto::model::job::TaskCounts;

    use super::*;

    #[test]
    fn a_job_with_a_task_that_did_not_finish_is_no_figure() {
        let counts = TaskCounts { finished: 3, ..TaskCounts::default() };
        let mut job = JobView { id: JobId(7), tasks: 3, counts, ..JobView::default() };
        assert!(check(&job).is_ok());
        (job.counts.finished, job.counts.failed) = (2, 1);
        assert!(check(&job).unwrap_err().to_string().starts_with("of job 7 with 3 tasks"));
    }
}
