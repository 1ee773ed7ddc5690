//! One array, worked off by all workers at once.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::submit::{submit, submitter, wait};
use super::workers::WorkersProcess;
use crate::link::Link;
use crate::plain_log;
use crate::process;
use crate::rules::figures::RuleSample;
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::tasks::block_on;

/// Tasks before the clock runs.
const WARM_UP: u32 = 5_000;
/// Nobody waits longer for a task than that.
const TASK_MAX: Duration = Duration::from_millis(2);
const LEAST: Duration = Duration::from_secs(60);

/// How long an array may take.
pub(super) fn patience(count: u32) -> Duration {
    LEAST + TASK_MAX * count
}

/// Has an array of so many tasks done.
pub(super) async fn work_off(link: &mut Link, count: u32) -> Result<()> {
    let job = submit(link, count).await?;
    wait(link, job, patience(count)).await
}

pub(super) fn measure(count: u32, router_count: usize) -> Result<RuleSample> {
    let mut server = Server::start(System::Turno, false, Keeps::Disk, &[routers(router_count)])?;
    let workers = WorkersProcess::start(server.foreman, WorkersProcess::WORKERS)?;
    let load = process::load_average()?;
    let mut run = block_on(async {
        let mut link = submitter(&server).await?;
        work_off(&mut link, WARM_UP).await?;
        let cpu = || (process::cpu_seconds(&server.pids()), process::cpu_seconds(&[workers.pid()]));
        let (broker, workers) = cpu();
        let begun = Instant::now();
        work_off(&mut link, count).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let (broker_then, workers_then) = cpu();
        Ok(Run { count, seconds, broker: broker_then - broker, workers: workers_then - workers, load, commits: 0 })
    })?;
    drop(workers);
    server.stop();
    run.commits = plain_log::commits(&server.data.join("store"))?;
    Ok(run.sample())
}

struct Run {
    count: u32,
    seconds: f64,
    /// Seconds of CPU.
    broker: f64,
    workers: f64,
    /// Of the machine, before.
    load: f64,
    /// Of the store, the warm-up's too.
    commits: u64,
}

impl Run {
    fn sample(&self) -> RuleSample {
        let count = f64::from(self.count);
        let rate = count / self.seconds;
        let per_sync = f64::from(self.count + WARM_UP) / self.commits as f64;
        RuleSample(vec![
            ("tasks/s", rate),
            ("broker's CPU us per task", self.broker * 1e6 / count),
            ("workers' CPU us per task", self.workers * 1e6 / count),
            ("tasks per sync", per_sync),
            ("syncs/s", rate / per_sync),
            ("load average before", self.load),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_run() {
        let count = 195_000;
        let run = Run { count, seconds: 10.0, broker: 7.8, workers: 3.9, load: 0.5, commits: 4_000 };
        let values: Vec<f64> = run.sample().0.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [19_500.0, 40.0, 20.0, 50.0, 390.0, 0.5]);
        assert_eq!(run.sample().0[0].0, "tasks/s", "which is judged");
    }

    #[test]
    fn a_long_array_may_take_longer() {
        assert_eq!(patience(100_000), Duration::from_secs(260));
    }
}
