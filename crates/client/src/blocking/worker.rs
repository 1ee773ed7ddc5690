//! The worker whose handler is a plain function.

use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turno_proto::model::{Code, Slots};
use turno_proto::native::Config;

use super::runtime::{Runtime, wait};
use crate::{Error, Message, Options, Outcome, WorkerEnd, WorkerEvent};

/// Threads for handlers, however many slots the worker has. More deliveries wait for a thread.
const THREADS_MAX: usize = 512;

/// A [`crate::Worker`] whose handler is a plain function, which runs on a thread per slot.
#[derive(Debug)]
#[must_use = "a worker runs when it is started"]
pub struct BlockingWorker(crate::Worker);

impl BlockingWorker {
    /// A worker with 10 slots and no queue yet; see [`crate::Worker::new`].
    pub fn new(brokers: impl Into<Options>) -> Self {
        Self(crate::Worker::new(brokers))
    }

    /// Adds a queue to take messages from.
    pub fn queue(self, queue: impl Into<String>) -> Self {
        Self(self.0.queue(queue))
    }

    /// The number of slots, which is also the number of threads, up to 512; see [`crate::Worker::slots`].
    pub fn slots(self, slots: impl Into<Slots>) -> Self {
        Self(self.0.slots(slots))
    }

    /// Consume the queues alone; see [`crate::Worker::exclusive`].
    pub fn exclusive(self) -> Self {
        Self(self.0.exclusive())
    }

    /// Consume the queues alone, or stand by; see [`crate::Worker::standby`].
    pub fn standby(self) -> Self {
        Self(self.0.standby())
    }

    /// A name for people; the name of the options if not set.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self(self.0.name(name))
    }

    /// Do not ask again for a queue that the broker dropped this worker from; see [`crate::Worker::no_rejoin`].
    pub fn no_rejoin(self) -> Self {
        Self(self.0.no_rejoin())
    }

    /// Registers a callback for connection events. It must not block.
    pub fn on_event(self, observer: impl Fn(WorkerEvent) + Send + Sync + 'static) -> Self {
        Self(self.0.on_event(observer))
    }

    /// Connects, registers and begins to work; see [`crate::Worker::start`].
    pub fn start<R>(
        self,
        handler: impl Fn(BlockingDelivery) -> R + Send + Sync + 'static,
    ) -> Result<BlockingWorkerHandle, Error>
    where
        R: Into<Outcome> + Send + 'static,
    {
        let threads = match self.0.slot_count() {
            Slots::Limited(count) => usize::try_from(count).unwrap_or(usize::MAX).clamp(1, THREADS_MAX),
            Slots::Unlimited => THREADS_MAX,
        };
        let runtime = Runtime::start(threads)?;
        let handler = Arc::new(handler);
        let worker = runtime.wait(self.0.start(move |delivery| {
            let handler = Arc::clone(&handler);
            async move {
                let handled = tokio::task::spawn_blocking(move || handler(BlockingDelivery(delivery)).into()).await;
                // A panic goes on here, so that it is counted and reported as that of any handler.
                handled.unwrap_or_else(|error| match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    Err(_) => Outcome::failed("the worker ended before the handler began"),
                })
            }
        }))?;
        Ok(BlockingWorkerHandle { worker, _runtime: runtime })
    }

    /// [Starts](Self::start) the worker and waits for its end: for programs that are nothing but a worker.
    pub fn run<R>(self, handler: impl Fn(BlockingDelivery) -> R + Send + Sync + 'static) -> Result<WorkerEnd, Error>
    where
        R: Into<Outcome> + Send + 'static,
    {
        Ok(self.start(handler)?.wait())
    }
}

/// A running worker. Dropping it ends the worker at once; [`stop`](Self::stop) lets it finish.
#[derive(Debug)]
#[must_use = "dropping it ends the worker at once"]
pub struct BlockingWorkerHandle {
    worker: crate::WorkerHandle,
    _runtime: Runtime,
}

impl BlockingWorkerHandle {
    /// Takes no new deliveries, gives running handlers this time to finish, cancels the rest, gives them 10 s to stop,
    /// and closes the connection.
    pub fn stop(&self, drain: Duration) -> WorkerEnd {
        wait(self.worker.stop(drain))
    }

    /// Closes at once: running handlers are cancelled, and their deliveries go to other workers.
    pub fn stop_now(&self) -> WorkerEnd {
        wait(self.worker.stop_now())
    }

    /// Waits until the worker has ended.
    pub fn wait(&self) -> WorkerEnd {
        wait(self.worker.wait())
    }

    /// Changes the number of slots, also for later connections. The number of threads stays.
    pub fn resize(&self, slots: impl Into<Slots>) -> Result<(), Error> {
        wait(self.worker.resize(slots))
    }

    /// The number of handlers that run now.
    pub fn in_flight(&self) -> usize {
        self.worker.in_flight()
    }

    /// The number of handlers that panicked so far.
    pub fn panics(&self) -> u64 {
        self.worker.panics()
    }

    /// The settings that the broker announced when it was connected last.
    pub fn config(&self) -> Config {
        self.worker.config()
    }
}

impl Drop for BlockingWorkerHandle {
    fn drop(&mut self) {
        wait(self.worker.stop_now());
    }
}

/// A [`crate::Delivery`] for a handler that blocks; its fields are those of the other.
#[derive(Debug)]
pub struct BlockingDelivery(crate::Delivery);

impl BlockingDelivery {
    /// Sends a piece of the reply; the handler's result is the last piece. Blocks while the broker does not read.
    pub fn piece(&self, message: impl Into<Message>) -> Result<(), Error> {
        wait(self.0.piece(message))
    }

    /// Tells the caller how far the work is.
    pub fn progress(&self, body: impl Into<Bytes>) -> Result<(), Error> {
        wait(self.0.progress(body))
    }

    /// Extends the lease to this time from now, if the queue has leases.
    pub fn extend(&self, lease: Duration) -> Result<(), Error> {
        wait(self.0.extend(lease))
    }

    /// Blocks until this delivery is cancelled, and gives the reason. To look without blocking, ask
    /// [`cancellation`](crate::Delivery::cancellation) for its reason.
    pub fn cancelled(&self) -> Code {
        wait(self.0.cancelled())
    }
}

impl Deref for BlockingDelivery {
    type Target = crate::Delivery;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
