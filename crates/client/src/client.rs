//! The client: one connection, many callers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot, watch};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::native::Config;

use crate::admin::Admin;
use crate::command::{COMMANDS_MAX, Cancels, Command, Sink};
use crate::core::Ticket;
use crate::draft::Draft;
use crate::driver::{Driver, DriverChannels};
use crate::jobs::Jobs;
use crate::queues::Queues;
use crate::{
    BroadcastBuilder, Error, Filter, Message, Options, PublishBuilder, RequestBuilder, SendBuilder, SubscribeBuilder,
};

/// A connection to a broker, and to the next one if it is lost. Cheap to clone: all clones share the connection, which is
/// closed when the last of them is dropped.
///
/// Every verb returns a builder. Awaiting the builder makes the call:
///
/// ```
/// # let broker = turno_broker::Broker::start_loopback()?;
/// # let url = broker.url();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use turno_client::Client;
///
/// let client = Client::connect(&url).await?; // for example "turno://127.0.0.1:7460"
/// let stored = client.send("emails", "to: you").priority(9).await?;
/// println!("{} is stored in {}", stored.id, stored.durability.name());
/// client.close().await;
/// # Ok::<(), turno_client::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    commands: mpsc::Sender<Command>,
    cancels: Arc<Cancels>,
    tickets: AtomicU64,
    config: watch::Receiver<Arc<Config>>,
}

impl Client {
    /// Connects. Each broker is tried once, then it fails with
    /// [`ErrorKind::CannotConnect`](crate::ErrorKind::CannotConnect); after the first success the client reconnects by
    /// itself.
    ///
    /// The brokers are named as for a [`Worker`](crate::Worker): by [`Options`], by an [`Address`](crate::Address), or by
    /// text such as `turno://127.0.0.1:7460`, several brokers separated by commas.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it ends, the connection is closed.
    pub async fn connect(brokers: impl Into<Options>) -> Result<Self, Error> {
        let options = brokers.into();
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let (ready, is_ready) = oneshot::channel();
        let cancels = Arc::new(Cancels::default());
        let wiring = DriverChannels { commands: receiver, cancels: Arc::clone(&cancels), ready };
        let (driver, config) = Driver::new(&options, wiring, None)?;
        tokio::spawn(driver.run());
        is_ready.await.unwrap_or_else(|_| Err(Error::closed()))?;
        Ok(Self(Arc::new(Shared { commands, cancels, tickets: AtomicU64::new(0), config })))
    }

    /// A request to one worker of a queue. Awaiting it gives the reply; [`RequestBuilder::stream`] gives the reply in
    /// pieces.
    ///
    /// While no broker is connected it waits for the next one until its own time-out.
    pub fn request(&self, queue: impl Into<String>, message: impl Into<Message>) -> RequestBuilder {
        RequestBuilder::new(self.clone(), Draft::new(queue, message))
    }

    /// A message for one worker of a queue, which is stored until it is acknowledged. Awaiting it ends when the broker has
    /// stored it.
    ///
    /// If the connection is lost in between, it is unknown whether the broker has the message
    /// ([`ErrorKind::ConnectionLost`](crate::ErrorKind::ConnectionLost)), unless it has a
    /// [dedup id](SendBuilder::dedup_id): then it is sent again.
    pub fn send(&self, queue: impl Into<String>, message: impl Into<Message>) -> SendBuilder {
        SendBuilder::new(self.clone(), Draft::new(queue, message))
    }

    /// A message to every consumer of a queue, busy ones too. Awaiting it gives the stream of their answers.
    pub fn broadcast(&self, queue: impl Into<String>, message: impl Into<Message>) -> BroadcastBuilder {
        BroadcastBuilder::new(self.clone(), Draft::new(queue, message))
    }

    /// An event about a topic, for the subscribers that listen now. Awaiting it ends when the event is written to the
    /// connection; [`PublishBuilder::confirmed`] waits for the broker.
    pub fn publish(&self, topic: impl Into<String>, message: impl Into<Message>) -> PublishBuilder {
        PublishBuilder::new(self.clone(), topic.into(), message.into())
    }

    /// A subscription to the topics that match. In a filter `*` stands for one segment of a topic, and `>` as the last
    /// segment for all the rest. Awaiting it gives the stream of events.
    ///
    /// ```
    /// # let broker = turno_broker::Broker::start_loopback()?;
    /// # let url = broker.url();
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let client = turno_client::Client::connect(&url).await?;
    /// let mut events = client.subscribe("sensor.*").filter("alarm.>").await?;
    /// client.publish("sensor.kitchen", "21.5").await?;
    /// let event = events.next_event().await.expect("the client is open")?;
    /// assert_eq!((event.topic.as_str(), &event.body[..]), ("sensor.kitchen", &b"21.5"[..]));
    /// # Ok::<(), turno_client::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn subscribe<F>(&self, filter: F) -> SubscribeBuilder
    where
        F: TryInto<Filter>,
        Error: From<F::Error>,
    {
        self.subscribe_all([]).filter(filter)
    }

    /// A subscription with any number of filters.
    pub fn subscribe_all(&self, filters: impl IntoIterator<Item = Filter>) -> SubscribeBuilder {
        filters.into_iter().fold(SubscribeBuilder::new(self.clone()), SubscribeBuilder::filter)
    }

    /// Calls about jobs: submit, watch, cancel.
    pub fn jobs(&self) -> Jobs {
        Jobs::new(self.clone())
    }

    /// Calls about queues: their state, their settings, their dead letters.
    pub fn queues(&self) -> Queues {
        Queues::new(self.clone())
    }

    /// Calls about the broker: its state, workers, messages, topics, links and ring.
    pub fn admin(&self) -> Admin {
        Admin::new(self.clone())
    }

    /// Makes an admin call in the types of the wire, which may change in any release.
    #[cfg(feature = "unstable-core")]
    pub async fn admin_call(&self, call: AdminCall) -> Result<AdminAnswer, Error> {
        self.ask(call).await
    }

    pub(crate) async fn ask(&self, call: AdminCall) -> Result<AdminAnswer, Error> {
        self.call(|ticket, answer| Command::Admin { ticket, call, sink: Sink::Admin(answer) }).await
    }

    /// The settings that the broker announced when it was connected last: its name, its limits, its heartbeat.
    pub fn config(&self) -> Config {
        Config::clone(&self.0.config.borrow())
    }

    /// Closes the connection, for all clones. Calls that are still open end with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    ///
    /// # Cancel safety
    ///
    /// The client may go on or close if the future is dropped before it ends.
    pub async fn close(&self) {
        let (done, is_done) = oneshot::channel();
        if self.0.commands.send(Command::Close { done }).await.is_ok() {
            // The driver drops its end when it is done, whichever of several closers was first.
            let _ = is_done.await;
        }
    }

    pub(crate) fn next_ticket(&self) -> Ticket {
        Ticket(self.0.tickets.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn cancels(&self) -> Arc<Cancels> {
        Arc::clone(&self.0.cancels)
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), Error> {
        self.0.commands.send(command).await.map_err(|_| Error::closed())
    }

    pub(crate) async fn call<T>(
        &self,
        command: impl FnOnce(Ticket, oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let ticket = self.next_ticket();
        let (answer, receiver) = oneshot::channel();
        self.command(command(ticket, answer)).await?;
        let mut waiting = PendingCall { receiver, ticket, cancels: &self.0.cancels, ended: false };
        let end = (&mut waiting.receiver).await;
        waiting.ended = true;
        end.unwrap_or_else(|_| Err(Error::closed()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("broker", &self.0.config.borrow().broker).finish_non_exhaustive()
    }
}

/// A call whose answer is awaited; dropped before that, it is cancelled.
struct PendingCall<'a, T> {
    receiver: oneshot::Receiver<Result<T, Error>>,
    ticket: Ticket,
    cancels: &'a Cancels,
    ended: bool,
}

impl<T> Drop for PendingCall<'_, T> {
    fn drop(&mut self) {
        // Closed first: a driver that has not taken the command yet sees that nobody waits for it.
        self.receiver.close();
        if !self.ended {
            self.cancels.push(self.ticket);
        }
    }
}
