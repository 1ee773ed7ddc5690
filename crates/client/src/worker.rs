//! The worker: what it is before it runs, and while it does.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use turno_proto::model::{Code, QueueName, Slots, limits};
use turno_proto::native::{ClosingReason, Config};

use crate::command::{COMMANDS_MAX, Cancels, Command, Sink};
use crate::core::{Claim, Registration, Ticket};
use crate::crew::{Control, Counts, Crew, Handler, Observer};
use crate::driver::{Driver, Wiring};
use crate::{Address, Delivery, Error, Options, Outcome};

/// A worker that is not running yet.
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
    /// A worker with 10 slots and no queue yet.
    pub fn new(options: impl Into<Options>) -> Self {
        Self {
            options: options.into(),
            name: String::new(),
            key: String::new(),
            slots: Slots::Limited(limits::SLOTS),
            queues: Vec::new(),
            claim: Claim::Shared,
            observer: None,
        }
    }

    /// Adds a queue to take work from.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queues.push(queue.into());
        self
    }

    /// How much it takes at a time.
    #[must_use]
    pub const fn slots(mut self, slots: Slots) -> Self {
        self.slots = slots;
        self
    }

    /// Has its queues to itself: as long as it is connected nobody else gets anything of them. A queue that somebody else
    /// consumes is an error of [`Worker::start`], with the code `queue_full`. If it is so after a lost connection, and not
    /// by that connection, which the broker may not yet know to be lost, the worker ends with [`Ended::GaveUp`] and the
    /// same code.
    #[must_use]
    pub const fn exclusive(mut self) -> Self {
        self.claim = Claim::Exclusive;
        self
    }

    /// Has its queues to itself as soon as nobody else consumes them, and stands by until then, in the order of asking,
    /// also after a lost connection. [`WorkerEvent`] tells which of the two it is.
    #[must_use]
    pub const fn standby(mut self) -> Self {
        self.claim = Claim::Standby;
        self
    }

    /// A name for people; that of the options if not set.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What the foreman knows this worker by, if it also runs tasks over a connection there: then both share one account
    /// of slots, and what tasks take is not handed out here.
    #[must_use]
    pub fn known_as(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Has a function told of what becomes of the connection. It must not block.
    #[must_use]
    pub fn on_event(mut self, observer: impl Fn(WorkerEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Connects, registers and begins to work: the handler runs once a delivery, each in a task of its own. One
    /// that panics has failed; the worker goes on.
    ///
    /// Each broker is tried once, then it fails with [`Error::CannotConnect`]; it fails at once if a broker does
    /// not take the worker. After the first success a lost connection is mended, and the worker registered again,
    /// without the caller.
    pub async fn start<H, F>(self, handler: H) -> Result<Running, Error>
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

    async fn start_boxed(self, handler: Handler) -> Result<Running, Error> {
        let queues: Result<Vec<QueueName>, _> = self.queues.iter().map(|queue| queue.parse()).collect();
        let Self { name, key, slots, claim, .. } = &self;
        let (name, key, slots, claim) = (name.clone(), key.clone(), *slots, *claim);
        let registration = Registration { name, key, slots, queues: queues?, claim };
        if registration.queues.is_empty() {
            return Err(Error::NoQueue);
        }
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let (control, controlled) = watch::channel(Control::Run);
        let (end, ended) = watch::channel(None);
        let (ready, is_ready) = oneshot::channel();
        let counts = Arc::new(Counts::default());
        let crew = Crew::new(handler, self.observer, commands.clone(), controlled, Arc::clone(&counts), end);
        let wiring = Wiring { commands: receiver, cancels: Arc::new(Cancels::default()), ready };
        let (driver, config) = Driver::new(&self.options, wiring, Some((crew, registration)))?;
        tokio::spawn(driver.run());
        is_ready.await.unwrap_or(Err(Error::Closed))?;
        Ok(Running { commands, control, ended, counts, config, tickets: AtomicU64::new(0) })
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

/// A running worker. Dropping it ends the worker at once; [`Running::stop`] lets it finish.
#[derive(Debug)]
pub struct Running {
    commands: mpsc::Sender<Command>,
    control: watch::Sender<Control>,
    ended: watch::Receiver<Option<Ended>>,
    counts: Arc<Counts>,
    config: watch::Receiver<Arc<Config>>,
    tickets: AtomicU64,
}

impl Running {
    /// Takes no new work, lets what runs finish for so long, cancels the rest and gives it 10 s to stop, then
    /// closes. To call it again with a shorter time is to hurry it.
    pub async fn stop(&self, drain: Duration) -> Ended {
        self.control.send_replace(Control::Drain { within: drain });
        self.wait().await
    }

    /// Closes at once: what runs is cancelled and goes to other workers.
    pub async fn stop_now(&self) -> Ended {
        self.control.send_replace(Control::Now);
        self.wait().await
    }

    /// Waits until the worker has ended, and says why.
    pub async fn wait(&self) -> Ended {
        let mut ended = self.ended.clone();
        let end = ended.wait_for(Option::is_some).await;
        end.ok().and_then(|end| end.clone()).unwrap_or(Ended::GaveUp(Error::Closed))
    }

    /// Gives the worker another number of slots, also on later connections.
    pub async fn resize(&self, slots: Slots) -> Result<(), Error> {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let (answer, receiver) = oneshot::channel();
        let command = Command::Resize { ticket, slots, sink: Sink::Done(answer) };
        self.commands.send(command).await.map_err(|_| Error::Closed)?;
        receiver.await.unwrap_or(Err(Error::Closed))
    }

    /// Handlers that run now.
    pub fn in_flight(&self) -> usize {
        self.counts.in_flight.load(Ordering::Relaxed)
    }

    /// Handlers that panicked so far.
    pub fn panics(&self) -> u64 {
        self.counts.panics.load(Ordering::Relaxed)
    }

    /// What the broker connected last said about itself.
    pub fn config(&self) -> Config {
        Config::clone(&self.config.borrow())
    }
}

/// Why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// [`Running::stop`] or [`Running::stop_now`] was called, or [`Running`] dropped.
    Stopped,
    /// The broker asked for it: somebody said `turno worker stop`.
    StoppedByBroker {
        /// At once, without finishing what ran.
        now: bool,
    },
    /// It could not go on.
    GaveUp(Error),
}

/// What becomes of a worker's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// Connected and registered.
    Connected {
        /// Where.
        address: Address,
        /// The broker's name.
        broker: String,
    },
    /// A queue is this worker's alone now.
    Active {
        /// The queue.
        queue: String,
        /// Higher than that of everyone who had the queue before; what the work changes should refuse lower ones.
        token: u64,
    },
    /// A queue is another worker's; this one waits for it.
    StandingBy {
        /// The queue.
        queue: String,
    },
    /// The connection was lost; the next broker is dialled.
    Lost {
        /// With whom.
        address: Address,
        /// Why.
        reason: String,
    },
    /// A broker could not be connected to.
    Unreachable {
        /// Which.
        address: Address,
        /// Why.
        reason: String,
    },
    /// A broker did not take the worker; the next one is dialled.
    Refused {
        /// Why.
        code: Code,
        /// What the broker said.
        detail: String,
    },
    /// The broker takes no new work (`Shutdown`), or asks this worker to end.
    Closing {
        /// Which of them.
        reason: ClosingReason,
    },
    /// Deliveries expired here, and the broker dropped the worker from their queue. It asks for it again after a pause:
    /// 1 second, twice as long each time up to 30, until a delivery of that queue was settled in time. It does not if
    /// [`Options::come_back`] says so.
    Dropped {
        /// The queue.
        queue: String,
        /// Why.
        reason: Code,
        /// The pause; `None` if it does not ask again.
        again: Option<Duration>,
    },
    /// The worker is back in a queue it was dropped from, with one delivery at a time until it settles one in time.
    Returned {
        /// The queue.
        queue: String,
    },
    /// A handler panicked; its delivery failed.
    Panicked {
        /// The queue of the delivery.
        queue: String,
    },
}
