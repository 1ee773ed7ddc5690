//! Job workers that speak the foreman's protocol and start no program: every task ends as soon as it is there. All in one
//! process of their own.

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use turno_proto::foreman::{ForemanSettings, StatusUpdate, Task, Worker, WorkerEvent};
use turno_proto::model::Mono;

use crate::tasks::block_on;

const READ_BYTES: usize = 64 * 1024;
/// Greetings that are not counted yet: they are soon.
const GREETINGS: usize = 64;

/// The process, until it is dropped.
pub(super) struct WorkersProcess(Child);

impl WorkersProcess {
    pub(super) const WORKERS: u16 = 64;
    pub(super) const SLOTS: u16 = 4;

    /// Starts it with so many workers, and waits until the foreman has greeted all of them.
    pub(super) fn start(foreman: SocketAddr, workers: u16) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["farm-workers", &foreman.to_string(), &workers.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the workers")?;
        let output = child.stdout.take().context("piped")?;
        let workers = Self(child);
        let mut line = String::new();
        std::io::BufReader::new(output).read_line(&mut line)?;
        if line.trim() != "ready" {
            bail!("the workers were not greeted");
        }
        Ok(workers)
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for WorkersProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Is the process: says when all are greeted, and works until it is killed or the broker goes.
pub(crate) fn run(foreman: SocketAddr, workers: u16) -> Result<()> {
    block_on(async {
        let (greeted, mut greetings) = mpsc::channel(GREETINGS);
        let mut job_workers = Vec::new();
        for number in 0..workers {
            let mut job_worker = JobWorker::connect(foreman, number).await?;
            let greeted = greeted.clone();
            job_workers.push(tokio::task::spawn_local(async move { job_worker.work(greeted).await }));
        }
        drop(greeted);
        for _ in 0..workers {
            greetings.recv().await.context("a worker ended before it was greeted")?;
        }
        println!("ready");
        for job_worker in job_workers {
            job_worker.await??;
        }
        Ok(())
    })
}

/// One worker.
struct JobWorker {
    end: Worker,
    stream: TcpStream,
    inbox: Vec<u8>,
    out: Vec<u8>,
    began: Instant,
}

impl JobWorker {
    async fn connect(foreman: SocketAddr, number: u16) -> Result<Self> {
        let stream = TcpStream::connect(foreman).await?;
        stream.set_nodelay(true)?;
        let name = format!("worker-{number}");
        let end = Worker::new(name.clone(), name, WorkersProcess::SLOTS, ForemanSettings::default())?;
        Ok(Self { end, stream, inbox: Vec::new(), out: Vec::new(), began: Instant::now() })
    }

    async fn work(&mut self, greeted: mpsc::Sender<()>) -> Result<()> {
        self.end.connect(self.now());
        loop {
            while let Some(event) = self.end.poll_event() {
                match event {
                    WorkerEvent::Greeted => greeted.send(()).await?,
                    WorkerEvent::Start(tasks) => {
                        for task in &tasks {
                            self.end.task_ended(self.now(), done(task));
                        }
                    }
                    WorkerEvent::Reported(_) => {}
                    other => bail!("not what a quiet day brings: {other:?}"),
                }
            }
            self.end.take_output(&mut self.out);
            self.stream.write_all(&self.out).await?;
            self.out.clear();
            self.read().await?;
        }
    }

    /// Waits for bytes, or until something is due.
    async fn read(&mut self) -> Result<()> {
        self.inbox.reserve(READ_BYTES);
        let due = self.end.next_deadline();
        let bytes = self.stream.read_buf(&mut self.inbox);
        let count = match due {
            None => bytes.await?,
            Some(at) => {
                let at = self.began + Duration::from_millis(at.as_millis());
                match tokio::time::timeout_at(at.into(), bytes).await {
                    Ok(count) => count?,
                    Err(_) => {
                        self.end.handle_timeout(self.now());
                        return Ok(());
                    }
                }
            }
        };
        if count == 0 {
            bail!("the foreman closed the connection");
        }
        let used = self.end.handle_bytes(self.now(), &self.inbox);
        self.inbox.drain(..used);
        Ok(())
    }

    fn now(&self) -> Mono {
        Mono::from_millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// The end of a task that had nothing to do.
fn done(task: &Task) -> StatusUpdate {
    StatusUpdate {
        job: task.job,
        task: task.task,
        success: true,
        status: "done".to_owned(),
        exit_code: Some(0),
        ..StatusUpdate::default()
    }
}
