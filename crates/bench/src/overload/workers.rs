//! The workers: ten of ten slots that take their time, in a process of their own, so that callers cannot starve
//! them.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use turno_proto::native::Kind;

use crate::link::{Link, scratch};
use crate::native::echo;
use crate::system::System;
use crate::tasks::block_on;

const WORKERS: usize = 10;
const SLOTS: u32 = 10;

/// The workers, until this is dropped.
pub(super) struct QueueWorkers(Child);

impl QueueWorkers {
    /// Starts them and waits until all are connected.
    pub(super) fn hire(address: SocketAddr, work_time: Duration) -> Result<Self> {
        let micros = work_time.as_micros().to_string();
        let mut child = Command::new(std::env::current_exe()?)
            .args(["overload-workers", &address.to_string(), &micros])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the workers")?;
        let stdout = child.stdout.take();
        let workers = Self(child);
        let mut line = String::new();
        BufReader::new(stdout.context("piped")?).read_line(&mut line)?;
        if line.is_empty() {
            bail!("the workers could not connect");
        }
        Ok(workers)
    }
}

impl Drop for QueueWorkers {
    fn drop(&mut self) {
        // They may have ended by themselves with the broker; there is nothing to be done about either.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Is the workers, each of which takes so many microseconds, until one loses its connection.
pub(crate) fn run(address: SocketAddr, micros: u64) -> Result<()> {
    let work_time = Duration::from_micros(micros);
    block_on(async {
        let scratch = scratch();
        let mut tasks = Vec::new();
        for _ in 0..WORKERS {
            let worker = Link::worker(System::Turno, address, &scratch, 0..1, SLOTS).await?;
            tasks.push(tokio::task::spawn_local(work(worker, work_time)));
        }
        println!("ready");
        for task in tasks {
            task.await??;
        }
        Ok(())
    })
}

/// Answers each delivery after its work time.
async fn work(mut worker: Link, work_time: Duration) -> Result<()> {
    let mut busy: VecDeque<(tokio::time::Instant, Vec<u8>)> = VecDeque::new();
    loop {
        let now = tokio::time::Instant::now();
        while busy.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, reply)) = busy.pop_front() {
                worker.out.extend_from_slice(&reply);
            }
        }
        worker.flush().await?;
        let next = busy.front().map(|(due, _)| *due);
        let take = worker.receive(|header, rest, out| {
            if header.kind != Kind::Deliver.number() {
                return;
            }
            if work_time.is_zero() {
                echo(&header, rest, out);
            } else {
                let mut reply = Vec::new();
                echo(&header, rest, &mut reply);
                busy.push_back((tokio::time::Instant::now() + work_time, reply));
            }
        });
        tokio::select! {
            taken = take => { taken?; }
            () = sleep_until(next) => {}
        }
    }
}

async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
