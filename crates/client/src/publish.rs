//! Publishing an event about a topic.

use std::pin::Pin;

use crate::command::{Command, Sink};
use crate::{Client, Error, Message};

/// An event that is not published yet: [`Client::publish`] returns it, awaiting it publishes the event and ends when it is
/// written to the connection.
///
/// Events go to the subscribers that listen now; brokers do not keep them.
///
/// # Cancel safety
///
/// If the future is dropped before it ends, the event may be published or not.
#[derive(Clone, Debug)]
#[must_use = "an event is published when it is awaited"]
pub struct PublishBuilder {
    client: Client,
    topic: String,
    message: Message,
    confirm: bool,
}

impl PublishBuilder {
    pub(crate) const fn new(client: Client, topic: String, message: Message) -> Self {
        Self { client, topic, message, confirm: false }
    }

    /// Adds a header; the same name again replaces it.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.message = self.message.header(name, value);
        self
    }

    /// Wait until the broker has passed the event on to all its subscribers.
    pub fn confirmed(mut self) -> Self {
        self.confirm = true;
        self
    }
}

impl IntoFuture for PublishBuilder {
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, topic, message, confirm } = self;
        Box::pin(async move {
            let topic = topic.parse()?;
            let payload = message.into_payload()?;
            client
                .call(|ticket, answer| Command::Publish { ticket, topic, payload, confirm, sink: Sink::Done(answer) })
                .await
        })
    }
}
