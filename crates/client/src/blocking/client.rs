//! The client whose calls block.

use turno_proto::model::Filter;
#[cfg(feature = "unstable-core")]
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::native::Config;

use super::builders::{BroadcastBuilder, PublishBuilder, RequestBuilder, SendBuilder, SubscribeBuilder};
use super::runtime::{Runtime, wait};
use crate::admin::Admin;
use crate::jobs::Jobs;
use crate::queues::Queues;
use crate::{Error, Message, Options};

/// A [`crate::Client`] whose calls block. Threads may share it by reference; it is closed when it is dropped.
#[derive(Debug)]
pub struct BlockingClient {
    client: crate::Client,
    /// Dropped after the connection was closed.
    _runtime: Runtime,
}

impl BlockingClient {
    /// Connects; see [`crate::Client::connect`].
    pub fn connect(brokers: impl Into<Options>) -> Result<Self, Error> {
        let options = brokers.into();
        let runtime = Runtime::start(1)?;
        let client = runtime.wait(crate::Client::connect(options))?;
        Ok(Self { client, _runtime: runtime })
    }

    /// A request; see [`crate::Client::request`].
    pub fn request(&self, queue: impl Into<String>, message: impl Into<Message>) -> RequestBuilder {
        RequestBuilder(self.client.request(queue, message))
    }

    /// A message to store; see [`crate::Client::send`].
    pub fn send(&self, queue: impl Into<String>, message: impl Into<Message>) -> SendBuilder {
        SendBuilder(self.client.send(queue, message))
    }

    /// A message to every consumer of a queue; see [`crate::Client::broadcast`].
    pub fn broadcast(&self, queue: impl Into<String>, message: impl Into<Message>) -> BroadcastBuilder {
        BroadcastBuilder(self.client.broadcast(queue, message))
    }

    /// An event about a topic; see [`crate::Client::publish`].
    pub fn publish(&self, topic: impl Into<String>, message: impl Into<Message>) -> PublishBuilder {
        PublishBuilder(self.client.publish(topic, message))
    }

    /// A subscription; see [`crate::Client::subscribe`].
    pub fn subscribe<F>(&self, filter: F) -> SubscribeBuilder
    where
        F: TryInto<Filter>,
        Error: From<F::Error>,
    {
        SubscribeBuilder(self.client.subscribe(filter))
    }

    /// Calls about jobs. They are those of the async client; [`wait`](Self::wait) waits for them:
    ///
    /// ```
    /// # let broker = turno_broker::Broker::start_loopback()?;
    /// # let url = broker.url();
    /// # let client = turno_client::blocking::Client::connect(&url)?;
    /// let job = client.wait(client.jobs().submit(["sleep", "1"]))?;
    /// let tasks = client.wait(client.jobs().tasks(job.id).collect())?;
    /// assert_eq!(tasks.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn jobs(&self) -> Jobs {
        self.client.jobs()
    }

    /// Calls about queues; [`wait`](Self::wait) waits for them.
    pub fn queues(&self) -> Queues {
        self.client.queues()
    }

    /// Calls about the broker; [`wait`](Self::wait) waits for them.
    pub fn admin(&self) -> Admin {
        self.client.admin()
    }

    /// Waits for a call of [`jobs`](Self::jobs), [`queues`](Self::queues) or [`admin`](Self::admin).
    pub fn wait<F: IntoFuture>(&self, call: F) -> F::Output {
        wait(call.into_future())
    }

    /// Makes an admin call in the types of the wire, which may change in any release.
    #[cfg(feature = "unstable-core")]
    pub fn admin_call(&self, call: AdminCall) -> Result<AdminAnswer, Error> {
        wait(self.client.ask(call))
    }

    /// The settings that the broker announced when it was connected last.
    pub fn config(&self) -> Config {
        self.client.config()
    }

    /// Closes the connection and ends the thread.
    pub fn close(self) {
        // Dropping does it.
    }
}

impl Drop for BlockingClient {
    fn drop(&mut self) {
        wait(self.client.close());
    }
}
