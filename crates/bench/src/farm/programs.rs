//! Tasks that are programs, by `turno worker start`: what the broker takes of all the CPU, how busy slots are, what is
//! left on disk, and how long an explanation takes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use super::submit::{submit, submit_command, submitter, wait};
use crate::link::Link;
use crate::process;
use crate::rules::admin::ask;
use crate::rules::figures::RuleSample;
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::tasks::block_on;

/// Tasks of `true`, and the slots of the workers that run them.
const TASKS: u32 = 10_000;
const SLOTS: [u32; 3] = [8, 8, 8];
/// Tasks of a second each, and the slots for them.
const SECONDS: u32 = 1_280;
const BUSY_SLOTS: [u32; 2] = [32, 32];
/// How often an explanation is asked for.
const EXPLAINED: u32 = 100;
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Workers, ended when this goes.
struct WorkerPrograms(Vec<Child>);

impl WorkerPrograms {
    async fn start(server: &Server, slots: &[u32], link: &mut Link) -> Result<Self> {
        let turno = std::env::current_exe()?.with_file_name("turno");
        let mut workers = Self(Vec::new());
        for slots in slots {
            let mut command = Command::new(&turno);
            command.args(["worker", "start", "-q", "--slots", &slots.to_string(), "--url"]);
            command.arg(format!("turno://{}", server.address)).current_dir(&server.data);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            workers.0.push(command.spawn().context("cannot start a worker")?);
        }
        let until = Instant::now() + PATIENCE;
        while worker_count(link).await? < slots.len() {
            if Instant::now() > until {
                bail!("the workers do not come");
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(workers)
    }

    /// Seconds of CPU of them and of all tasks that ended.
    fn cpu_seconds(&self) -> f64 {
        self.0.iter().flat_map(|child| process::tree(child.id())).map(process::cpu_seconds_with_children).sum()
    }
}

impl Drop for WorkerPrograms {
    fn drop(&mut self) {
        for child in &mut self.0 {
            for pid in process::tree(child.id()) {
                process::kill(pid);
            }
            let _ = child.wait();
        }
    }
}

async fn worker_count(link: &mut Link) -> Result<usize> {
    match ask(link, AdminCall::WorkerLs { after: None, limit: 100 }).await? {
        AdminAnswer::Workers { workers, .. } => Ok(workers.len()),
        other => bail!("no workers: {other:?}"),
    }
}

fn files(folder: &Path) -> Result<u32> {
    let mut count = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        count += if path.is_dir() { files(&path)? } else { 1 };
    }
    Ok(count)
}

/// The broker's share of the CPU, files it leaves, and the time of an explanation.
pub(super) fn measure(router_count: usize) -> Result<[RuleSample; 3]> {
    let server = Server::start(System::Turno, false, Keeps::Disk, &[routers(router_count)])?;
    block_on(async {
        let mut link = submitter(&server).await?;
        let workers = WorkerPrograms::start(&server, &SLOTS, &mut link).await?;
        let (broker, others) = (process::cpu_seconds(&server.pids()), workers.cpu_seconds());
        let begun = Instant::now();
        let job = submit(&mut link, TASKS).await?;
        wait(&mut link, job, PATIENCE).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let broker = process::cpu_seconds(&server.pids()) - broker;
        let others = workers.cpu_seconds() - others;
        let left = files(&server.data)?;
        drop(workers);
        let waits = submit(&mut link, TASKS).await?;
        let mut slowest: f64 = 0.0;
        for _ in 0..EXPLAINED {
            let begun = Instant::now();
            ask(&mut link, AdminCall::JobExplain { job: waits, task: None }).await?;
            slowest = slowest.max(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok([
            RuleSample(vec![
                ("% of the CPU is the broker's", 100.0 * broker / (broker + others)),
                ("tasks/s", f64::from(TASKS) / seconds),
                ("broker's CPU us per task", broker * 1e6 / f64::from(TASKS)),
            ]),
            RuleSample(vec![("files", f64::from(left))]),
            RuleSample(vec![("ms for the slowest of 100 explanations", slowest)]),
        ])
    })
}

/// How busy slots are with tasks of a second.
pub(super) fn busy(router_count: usize) -> Result<RuleSample> {
    let server = Server::start(System::Turno, false, Keeps::Disk, &[routers(router_count)])?;
    block_on(async {
        let mut link = submitter(&server).await?;
        let _workers = WorkerPrograms::start(&server, &BUSY_SLOTS, &mut link).await?;
        let begun = Instant::now();
        let job = submit_command(&mut link, SECONDS, &["sleep", "1"]).await?;
        wait(&mut link, job, PATIENCE).await?;
        let rounds = f64::from(SECONDS) / f64::from(BUSY_SLOTS.iter().sum::<u32>());
        Ok(RuleSample(vec![("% of the time slots are busy", 100.0 * rounds / begun.elapsed().as_secs_f64())]))
    })
}
