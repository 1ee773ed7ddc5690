//! The worker: its options, its start, and its handle while it runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use turno_proto::model::{Code, QueueName, Slots, limits};
use turno_proto::native::{ClosingReason, Config};

use crate::command::{COMMANDS_MAX, Cancels, Command, Sink};
use crate::core::{Claim, Registration, Ticket};
use crate::driver::{Driver, DriverChannels};
use crate::running_deliveries::{Control, Counts, Handler, Observer, RunningDeliveries};
use crate::{Address, Deliveries, Delivery, Error, Options, Outcome};

/// A worker that is not running yet: it takes messages from queues and gives each to a handler.
///
/// ```
/// # let broker = turno_broker::Broker::start_loopback()?;
/// # let url = broker.url();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::time::Duration;
/// use turno_client::{Client, Outcome, Worker};
///
/// let worker = Worker::new(&url)
///     .queue("resize")
///     .slots(4) // up to 4 deliveries at a time
///     .name("pixel-1")
///     .start(|delivery| async move {
///         match delivery.body.len() {
///             0 => Outcome::failed_permanently("an image has at least one byte"),
///             size => Outcome::reply(format!("{size} bytes")),
///         }
///     })
///     .await?;
///
/// let client = Client::connect(&url).await?;
/// assert_eq!(client.request("resize", "1234").await?.body, "4 bytes");
/// worker.stop(Duration::from_secs(5)).await;
/// # Ok::<(), turno_client::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a worker runs when it is started"]
pub struct Worker {
    options: Options,
    name: String,
    key: String,
    slots: Slots,
    queues: Vec<String>,
    claim: Claim,
    observer: Option<Observer>,
}

impl Worker {
    /// A worker with 10 slots and no queue yet. The brokers are named as for [`Client::connect`](crate::Client::connect).
    pub fn new(brokers: impl Into<Options>) -> Self {
        Self {
            options: brokers.into(),
            name: String::new(),
            key: String::new(),
            slots: Slots::Limited(limits::SLOTS),
            queues: Vec::new(),
            claim: Claim::Shared,
            observer: None,
        }
    }

    /// Adds a queue to take messages from.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queues.push(queue.into());
        self
    }

    /// How many slots it has: deliveries that it works on at a time, if each costs one slot. A number, or
    /// [`Slots::Unlimited`].
    pub fn slots(mut self, slots: impl Into<Slots>) -> Self {
        self.slots = slots.into();
        self
    }

    /// Consume the queues alone: while this worker is connected, no other worker gets messages of them.
    ///
    /// If another worker consumes a queue, [`start`](Self::start) fails with the code `queue_full`. If that is so after
    /// a lost connection, the worker ends with [`WorkerEnd::GaveUp`] and the same code.
    pub fn exclusive(mut self) -> Self {
        self.claim = Claim::Exclusive;
        self
    }

    /// Consume the queues alone as soon as no other worker consumes them, and stand by until then, also after a lost
    /// connection. [`WorkerEvent::Active`] and [`WorkerEvent::StandingBy`] tell which it is.
    pub fn standby(mut self) -> Self {
        self.claim = Claim::Standby;
        self
    }

    /// A name for people; the name of the options if not set.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Do not ask again for a queue that the broker dropped this worker from because deliveries expired. By default the
    /// worker asks again after a pause; see [`WorkerEvent::Dropped`].
    pub fn no_rejoin(mut self) -> Self {
        self.options.rejoin = false;
        self
    }

    /// The key of this worker at the foreman, if it also runs tasks of jobs over a connection there: both then share one
    /// account of slots.
    #[doc(hidden)]
    pub fn known_as(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Registers a callback for connection events. It must not block.
    pub fn on_event(mut self, observer: impl Fn(WorkerEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Connects, registers and begins to work. The handler runs once per delivery, each time in a task of its own; its
    /// result settles the delivery. A handler that panics has failed; the worker goes on.
    ///
    /// Each broker is tried once, then it fails with
    /// [`ErrorKind::CannotConnect`](crate::ErrorKind::CannotConnect); it fails at once if a broker refuses the worker.
    /// After the first success the worker reconnects and registers again by itself.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it ends, the worker ends.
    pub async fn start<H, F>(self, handler: H) -> Result<WorkerHandle, Error>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Into<Outcome>,
    {
        let handler = Arc::new(handler);
        let boxed: Handler = Arc::new(move |delivery| {
            let handler = Arc::clone(&handler);
            // Called inside the future, so that a panic before the first await is caught like any other.
            Box::pin(async move { handler(delivery).await.into() })
        });
        self.start_boxed(boxed).await
    }

    /// [Starts](Self::start) the worker and waits for its end: for programs that are nothing but a worker.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the worker at once, as dropping [`WorkerHandle`] does.
    pub async fn run<H, F>(self, handler: H) -> Result<WorkerEnd, Error>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Into<Outcome>,
    {
        Ok(self.start(handler).await?.wait().await)
    }

    /// Connects, registers and gives the deliveries as a stream, each settled by a call: for programs that have a loop of
    /// their own instead of a handler.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it ends, the worker ends.
    pub async fn deliveries(self) -> Result<Deliveries, Error> {
        Deliveries::begin(self).await
    }

    async fn start_boxed(self, handler: Handler) -> Result<WorkerHandle, Error> {
        let queues: Result<Vec<QueueName>, _> = self.queues.iter().map(|queue| queue.parse()).collect();
        let Self { name, key, slots, claim, .. } = &self;
        let (name, key, slots, claim) = (name.clone(), key.clone(), *slots, *claim);
        let registration = Registration { name, key, slots, queues: queues?, claim };
        if registration.queues.is_empty() {
            return Err(Error::no_queue());
        }
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let (control, controlled) = watch::channel(Control::Run);
        let (end, ended) = watch::channel(None);
        let (ready, is_ready) = oneshot::channel();
        let counts = Arc::new(Counts::default());
        let running_deliveries =
            RunningDeliveries::new(handler, self.observer, commands.clone(), controlled, Arc::clone(&counts), end);
        let wiring = DriverChannels { commands: receiver, cancels: Arc::new(Cancels::default()), ready };
        let (driver, config) = Driver::new(&self.options, wiring, Some((running_deliveries, registration)))?;
        tokio::spawn(driver.run());
        is_ready.await.unwrap_or_else(|_| Err(Error::closed()))?;
        Ok(WorkerHandle { commands, control, ended, counts, config, tickets: AtomicU64::new(0) })
    }

    #[cfg(feature = "blocking")]
    pub(crate) const fn slot_count(&self) -> Slots {
        self.slots
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, name, key, slots, queues, claim, observer: _ } = self;
        f.debug_struct("Worker")
            .field("options", options)
            .field("name", name)
            .field("slots", slots)
            .field("queues", queues)
            .field("key", key)
            .field("claim", claim)
            .finish_non_exhaustive()
    }
}

/// A running worker. Dropping it ends the worker at once; [`stop`](Self::stop) lets it finish.
#[derive(Debug)]
#[must_use = "dropping it ends the worker at once"]
pub struct WorkerHandle {
    commands: mpsc::Sender<Command>,
    control: watch::Sender<Control>,
    ended: watch::Receiver<Option<WorkerEnd>>,
    counts: Arc<Counts>,
    config: watch::Receiver<Arc<Config>>,
    tickets: AtomicU64,
}

impl WorkerHandle {
    /// Takes no new deliveries, gives running handlers this time to finish, cancels the rest, gives them 10 s to stop,
    /// and closes the connection. Call it again with a shorter time to hurry it.
    ///
    /// # Cancel safety
    ///
    /// The worker goes on stopping if the future is dropped.
    pub async fn stop(&self, drain: Duration) -> WorkerEnd {
        self.control.send_replace(Control::Drain { within: drain });
        self.wait().await
    }

    /// Closes at once: running handlers are cancelled, and their deliveries go to other workers.
    ///
    /// # Cancel safety
    ///
    /// The worker goes on stopping if the future is dropped.
    pub async fn stop_now(&self) -> WorkerEnd {
        self.control.send_replace(Control::Now);
        self.wait().await
    }

    /// Waits until the worker has ended. Cancel safe.
    pub async fn wait(&self) -> WorkerEnd {
        let mut ended = self.ended.clone();
        let end = ended.wait_for(Option::is_some).await;
        end.ok().and_then(|end| end.clone()).unwrap_or_else(|| WorkerEnd::GaveUp(Error::closed()))
    }

    /// Changes the number of slots, also for later connections.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it ends, the number may be changed or not.
    pub async fn resize(&self, slots: impl Into<Slots>) -> Result<(), Error> {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let (answer, receiver) = oneshot::channel();
        let command = Command::Resize { ticket, slots: slots.into(), sink: Sink::Done(answer) };
        self.commands.send(command).await.map_err(|_| Error::closed())?;
        receiver.await.unwrap_or_else(|_| Err(Error::closed()))
    }

    /// The number of handlers that run now.
    pub fn in_flight(&self) -> usize {
        self.counts.in_flight.load(Ordering::Relaxed)
    }

    /// The number of handlers that panicked so far.
    pub fn panics(&self) -> u64 {
        self.counts.panics.load(Ordering::Relaxed)
    }

    /// The settings that the broker announced when it was connected last.
    pub fn config(&self) -> Config {
        Config::clone(&self.config.borrow())
    }
}

/// Why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerEnd {
    /// This program stopped it, or dropped its [`WorkerHandle`].
    Stopped,
    /// The broker asked for it, as `turno worker stop` does.
    StoppedByBroker(StopMode),
    /// It could not go on.
    GaveUp(Error),
}

/// How a worker stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// After its running handlers have finished.
    Drain,
    /// At once; its deliveries go to other workers.
    Now,
}

/// An event of a worker's connection; see [`Worker::on_event`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// Connected and registered.
    Connected {
        /// The broker's address.
        address: Address,
        /// The broker's name.
        broker: String,
    },
    /// This worker is the only consumer of a queue now.
    Active {
        /// The name of the queue.
        queue: String,
        /// The fencing token: higher than that of every earlier holder. Systems that the work changes should refuse
        /// lower ones.
        token: u64,
    },
    /// Another worker is the only consumer of a queue; this one waits for it.
    StandingBy {
        /// The name of the queue.
        queue: String,
    },
    /// The connection was lost; the next broker is dialled.
    Lost {
        /// The broker's address.
        address: Address,
        /// The reason, for people.
        reason: String,
    },
    /// A broker could not be connected to.
    Unreachable {
        /// The broker's address.
        address: Address,
        /// The reason, for people.
        reason: String,
    },
    /// A broker refused the worker; the next one is dialled.
    Refused {
        /// The reason.
        code: Code,
        /// The broker's text.
        detail: String,
    },
    /// The broker shuts down, is drained, or asks this worker to end.
    Closing {
        /// Which of these.
        reason: ClosingReason,
    },
    /// Deliveries expired at this worker, and the broker dropped it from their queue. It asks again after a pause of 1 s,
    /// twice as long each time up to 30 s, until a delivery of that queue is settled in time. With
    /// [`Worker::no_rejoin`] it does not ask again.
    Dropped {
        /// The name of the queue.
        queue: String,
        /// The reason.
        reason: Code,
        /// The pause; `None` with [`Worker::no_rejoin`].
        again: Option<Duration>,
    },
    /// The worker consumes a queue again that it was dropped from, with one delivery at a time until it settles one in time.
    Rejoined {
        /// The name of the queue.
        queue: String,
    },
    /// A handler panicked; its delivery failed.
    Panicked {
        /// The queue of the delivery.
        queue: String,
    },
}
