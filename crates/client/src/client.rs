//! The client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot, watch};
use turno_proto::native::Config;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use crate::broadcast::ANSWERS_MAX;
use crate::command::{COMMANDS_MAX, Cancels, Command, Sink};
use crate::core::Ticket;
use crate::driver::{Driver, Wiring};
use crate::replies::PIECES_MAX;
use crate::subscription::Inbox;
use crate::{Broadcast, Error, Filter, Message, Options, Replies, Reply, Stored, Subscription};

/// A connection to a broker, and to the next one should it be lost. Cheap to clone: all clones share the
/// connection, and it is closed when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    cancels: Arc<Cancels>,
    tickets: Arc<AtomicU64>,
    config: watch::Receiver<Arc<Config>>,
}

impl Client {
    /// Connects. Each broker is tried once, then it fails with [`Error::CannotConnect`]; after the first success
    /// a lost connection is mended without the caller.
    ///
    /// Takes [`Options`], an [`Address`](crate::Address), or text such as `turno://127.0.0.1:7460`, several
    /// brokers parted by commas.
    pub async fn connect<O>(options: O) -> Result<Self, Error>
    where
        O: TryInto<Options>,
        Error: From<O::Error>,
    {
        Self::open(options.try_into()?).await
    }

    /// Makes a request and waits for its reply; pieces are put together. Dropping the future cancels it.
    ///
    /// While no broker is connected it waits for the next one until its own time-out.
    pub async fn request(&self, queue: &str, message: impl Into<Message>) -> Result<Reply, Error> {
        let ask = message.into().into_request(queue)?;
        self.call(|ticket, answer| Command::Request { ticket, ask, sink: Sink::Reply { answer, pieces: None } }).await
    }

    /// Makes a request whose reply comes in pieces. Dropping what is returned cancels it.
    pub async fn stream(&self, queue: &str, message: impl Into<Message>) -> Result<Replies, Error> {
        let ask = message.into().into_request(queue)?;
        let (sender, parts) = mpsc::channel(PIECES_MAX + 1);
        let ticket = self.next_ticket();
        let command = Command::Request { ticket, ask, sink: Sink::Stream(sender) };
        self.commands.send(command).await.map_err(|_| Error::Closed)?;
        Ok(Replies::new(parts, ticket, Arc::clone(&self.cancels)))
    }

    /// Sends a message and waits until the broker has it. Many may wait at a time.
    ///
    /// Lost in between, the connection leaves it unknown whether the broker has the message
    /// ([`Error::ConnectionLost`]), unless it has a [dedup id](Message::dedup_id): then it is sent again.
    pub async fn send(&self, queue: &str, message: impl Into<Message>) -> Result<Stored, Error> {
        let ask = message.into().into_ask(queue)?;
        self.call(|ticket, answer| Command::Send { ticket, ask, sink: Sink::Stored(answer) }).await
    }

    /// Says something to every consumer of a queue, busy ones too. Their answers come as they arrive, then one end.
    /// Dropping what is returned gives it up.
    ///
    /// With [`Message::no_reply`] it ends as soon as it is written to all of them.
    pub async fn broadcast(&self, queue: &str, message: impl Into<Message>) -> Result<Broadcast, Error> {
        let ask = message.into().into_broadcast(queue)?;
        let (sender, parts) = mpsc::channel(ANSWERS_MAX + 1);
        let ticket = self.next_ticket();
        let command = Command::Broadcast { ticket, ask, sink: Sink::Broadcast(sender) };
        self.commands.send(command).await.map_err(|_| Error::Closed)?;
        Ok(Broadcast::new(parts, ticket, Arc::clone(&self.cancels)))
    }

    /// Publishes an event to whoever listens now, and waits until it is written to the connection. Whether anybody listens,
    /// or it arrives, nobody tells.
    ///
    /// Of the message only headers and body count.
    pub async fn publish(&self, topic: &str, message: impl Into<Message>) -> Result<(), Error> {
        self.publish_event(topic, message.into(), false).await
    }

    /// The same, and waits until the broker has passed it on to everyone who listens there.
    pub async fn publish_confirmed(&self, topic: &str, message: impl Into<Message>) -> Result<(), Error> {
        self.publish_event(topic, message.into(), true).await
    }

    async fn publish_event(&self, topic: &str, message: Message, confirm: bool) -> Result<(), Error> {
        let topic = topic.parse()?;
        let payload = message.to_payload()?;
        self.call(|ticket, answer| Command::Publish { ticket, topic, payload, confirm, sink: Sink::Done(answer) }).await
    }

    /// Listens: events whose topics match come from now on. In a filter `*` stands for one segment of a topic, `>` as the
    /// last one for the rest. It outlives a lost connection; what is published meanwhile is missed.
    pub async fn subscribe(&self, filter: &str) -> Result<Subscription, Error> {
        self.listen(filter.parse()?, false).await
    }

    /// The same with any filter. `or_close`: it ends rather than miss something, with `slow_reader` if this client reads
    /// too slowly, with `connection_lost` if the connection is lost. All subscriptions of a client share its connection: if
    /// it is closed for one of them, the others hear of it as [`Heard::Reconnected`](crate::Heard::Reconnected).
    pub async fn listen(&self, filter: Filter, or_close: bool) -> Result<Subscription, Error> {
        self.listen_to_all([filter], or_close).await
    }

    /// The same with several filters: events come in the order in which they were published, once each, however many of
    /// the filters match.
    pub async fn listen_to_all(
        &self,
        filters: impl IntoIterator<Item = Filter>,
        or_close: bool,
    ) -> Result<Subscription, Error> {
        let filters = filters.into_iter().collect();
        let inbox = Arc::new(Inbox::new(or_close));
        let mut subscription = None;
        self.call(|ticket, begun| {
            subscription = Some(Subscription::new(Arc::clone(&inbox), ticket, Arc::clone(&self.cancels)));
            Command::Subscribe { ticket, filters, or_close, sink: Sink::Subscribed { begun: Some(begun), inbox } }
        })
        .await?;
        subscription.ok_or(Error::Closed)
    }

    /// Asks about, or changes, something of the broker.
    pub async fn admin(&self, call: AdminCall) -> Result<AdminAnswer, Error> {
        self.call(|ticket, answer| Command::Admin { ticket, call, sink: Sink::Admin(answer) }).await
    }

    /// What the broker connected last said about itself.
    pub fn config(&self) -> Config {
        Config::clone(&self.config.borrow())
    }

    /// Ends the connection, for all clones; calls still open end with `cancelled`.
    pub async fn close(&self) {
        let (done, is_done) = oneshot::channel();
        if self.commands.send(Command::Close { done }).await.is_ok() {
            // The driver drops its end when it is done, whichever of several closers was first.
            let _ = is_done.await;
        }
    }

    pub(crate) async fn open(options: Options) -> Result<Self, Error> {
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let (ready, is_ready) = oneshot::channel();
        let cancels = Arc::new(Cancels::default());
        let wiring = Wiring { commands: receiver, cancels: Arc::clone(&cancels), ready };
        let (driver, config) = Driver::new(&options, wiring, None)?;
        tokio::spawn(driver.run());
        is_ready.await.unwrap_or(Err(Error::Closed))?;
        Ok(Self { commands, cancels, tickets: Arc::default(), config })
    }

    fn next_ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    async fn call<T>(
        &self,
        command: impl FnOnce(Ticket, oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let ticket = self.next_ticket();
        let (answer, receiver) = oneshot::channel();
        self.commands.send(command(ticket, answer)).await.map_err(|_| Error::Closed)?;
        let mut waiting = Waiting { receiver, ticket, cancels: &self.cancels, ended: false };
        let end = (&mut waiting.receiver).await;
        waiting.ended = true;
        end.unwrap_or(Err(Error::Closed))
    }
}

/// A call whose answer is awaited; dropped before that, it is cancelled.
struct Waiting<'a, T> {
    receiver: oneshot::Receiver<Result<T, Error>>,
    ticket: Ticket,
    cancels: &'a Cancels,
    ended: bool,
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        // Closed first: a driver that has not taken the command yet sees that nobody waits for it.
        self.receiver.close();
        if !self.ended {
            self.cancels.push(self.ticket);
        }
    }
}
