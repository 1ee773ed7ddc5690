//! The workers of a load: they answer with what they got, on a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use turno_client::{Options, Outcome, Slots, Worker};
use turno_proto::model::Code;

use crate::cli::connect;
use crate::cli::error::Failure;

/// How long a worker may take to settle what it has when the load is over.
const DRAIN: Duration = Duration::from_secs(1);

/// Workers that run. Dropping it lets them finish.
pub(super) struct Workers {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    worked: Arc<AtomicU64>,
}

impl Workers {
    /// Starts workers and returns once all of them take work.
    pub(super) async fn start(options: Options, queue: &str, count: u64, slots: Slots) -> Result<Self, Failure> {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let worked = Arc::new(AtomicU64::new(0));
        let (queue, counter) = (queue.to_owned(), Arc::clone(&worked));
        let thread = std::thread::Builder::new()
            .name("turno-workers".to_owned())
            .spawn(move || work(&options, &queue, count, slots, &counter, tell, stopped))
            .map_err(|error| Failure::system("cannot start a thread", &error))?;
        told.await.unwrap_or_else(|_| Err(Failure::of(Code::Io)))?;
        Ok(Self { stop: Some(stop), thread: Some(thread), worked })
    }

    /// Messages they took so far.
    pub(super) fn worked(&self) -> u64 {
        self.worked.load(Ordering::Relaxed)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell; a panic of its own was printed already.
            let _ = thread.join();
        }
    }
}

fn work(
    options: &Options,
    queue: &str,
    count: u64,
    slots: Slots,
    worked: &Arc<AtomicU64>,
    tell: oneshot::Sender<Result<(), Failure>>,
    stopped: oneshot::Receiver<()>,
) {
    let _ = connect::block_on(async move {
        let mut running = Vec::new();
        for number in 1..=count {
            let worker = Worker::new(options.clone()).queue(queue).slots(slots).name(format!("bench-{number}"));
            let worked = Arc::clone(worked);
            let started = worker.start(move |delivery| {
                worked.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Outcome::reply(delivery.body))
            });
            match started.await {
                Ok(worker) => running.push(worker),
                // The command that started us is told, and ends.
                Err(error) => {
                    let _ = tell.send(Err(error.into()));
                    return Ok(());
                }
            }
        }
        let _ = tell.send(Ok(()));
        // An error is the sender's end, which means the same.
        let _ = stopped.await;
        for worker in running {
            worker.stop(DRAIN).await;
        }
        Ok(())
    });
}
