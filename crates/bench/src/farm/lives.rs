//! A broker with many finished tasks starts again after a kill.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use turno_proto::model::job::JobId;
use turno_proto::native::admin::AdminCall;

use super::burst::work_off;
use super::submit::{check, job, submitter};
use super::workers::WorkersProcess;
use super::{FULL, Finished};
use crate::process;
use crate::rules::figures::RuleSample;
use crate::server::{Keeps, Server, routers};
use crate::spread::MIB;
use crate::system::System;
use crate::tasks::block_on;

/// More than where the rate is measured: nobody judges how long it takes to get there.
pub(super) const WORKERS: u16 = 512;

/// A broker with so many jobs that ended, each worked off by the job workers.
pub(super) fn fill(finished: Finished, router_count: usize) -> Result<Server> {
    let server = Server::start(System::Turno, false, Keeps::Disk, &[routers(router_count)])?;
    let workers = WorkersProcess::start(server.foreman, WORKERS)?;
    block_on(async {
        let mut link = submitter(&server).await?;
        for number in 1..=finished.jobs {
            work_off(&mut link, finished.tasks).await?;
            eprintln!("restart: job {number} of {} is finished", finished.jobs);
        }
        Ok(())
    })?;
    drop(workers);
    Ok(server)
}

/// One more start, and a look at each job.
pub(super) fn measure(server: &mut Server, finished: Finished, router_count: usize) -> Result<RuleSample> {
    let took = server.restart(Keeps::Disk, &[routers(router_count)]).context("the broker does not start again")?;
    let memory = process::memory_bytes(&server.pids());
    block_on(async {
        let mut link = submitter(server).await?;
        for number in 1..=finished.jobs {
            let view = job(&mut link, AdminCall::JobShow { job: Some(JobId(number.into())) }).await?;
            if view.tasks != finished.tasks {
                bail!("job {number} has {} tasks", view.tasks);
            }
            check(&view)?;
        }
        Ok(())
    })?;
    Ok(sample(took, finished, memory))
}

/// The bar is for ten million tasks. What fewer take is taken times as much; a start has a part that does not grow, so
/// that is rather too long than too short.
fn sample(took: Duration, finished: Finished, memory: u64) -> RuleSample {
    let seconds = took.as_secs_f64();
    RuleSample(vec![
        ("s for 10,000,000 tasks", seconds * FULL.all() / finished.all()),
        ("s", seconds),
        ("tasks", finished.all()),
        ("MiB after", memory as f64 / MIB),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_tasks_are_scaled_and_all_are_not() {
        let half = Duration::from_millis(500);
        let part = sample(half, Finished { jobs: 10, tasks: 100_000 }, 1 << 20);
        assert_eq!(part.0[0], ("s for 10,000,000 tasks", 5.0));
        assert_eq!(part.0[1..], [("s", 0.5), ("tasks", 1e6), ("MiB after", 1.0)]);
        assert_eq!(sample(half, FULL, 0).0[0].1, 0.5);
    }
}
