//! A send: its options, and the broker's answer.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use turno_proto::model::{Durability, MessageId};

use crate::command::{Command, Sink};
use crate::draft::{Draft, draft_options};
use crate::message::millis;
use crate::{Client, Error};

/// A message that is not sent yet: [`Client::send`] returns it, awaiting it sends the message and ends when the broker has
/// stored it.
///
/// ```
/// # let broker = turno_broker::Broker::start_loopback()?;
/// # let url = broker.url();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let client = turno_client::Client::connect(&url).await?;
/// let first = client.send("emails", "to: you").dedup_id("order-17").await?;
/// let again = client.send("emails", "to: you").dedup_id("order-17").await?;
/// assert!(!first.duplicate && again.duplicate);
/// # Ok::<(), turno_client::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cancel safety
///
/// If the future is dropped before it ends, the message may be stored or not.
#[derive(Clone, Debug)]
#[must_use = "a message is sent when it is awaited"]
pub struct SendBuilder {
    client: Client,
    draft: Draft,
}

impl SendBuilder {
    pub(crate) const fn new(client: Client, draft: Draft) -> Self {
        Self { client, draft }
    }

    draft_options! { header retries priority cost idempotent }

    /// How long the message is worth delivering; for ever if not set. A message that no worker took in time is removed.
    pub fn ttl(mut self, ttl: impl Into<Option<Duration>>) -> Self {
        self.draft.ask.timeout_ms = ttl.into().map(millis);
        self
    }

    /// How long the message waits before it is delivered, at most 366 days; its [time to live](Self::ttl) begins then.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.draft.ask.delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// 1 to 64 bytes that no other message of the queue has. However often a message with this id is sent within an
    /// hour, the broker stores it once, so that it is sent again by itself after a lost connection.
    ///
    /// Brokers do not know each other's ids: if the next connection is to another broker, both may store it.
    pub fn dedup_id(mut self, dedup_id: impl Into<Bytes>) -> Self {
        self.draft.ask.dedup_id = Some(dedup_id.into());
        self
    }
}

impl IntoFuture for SendBuilder {
    type Output = Result<Stored, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, draft } = self;
        Box::pin(async move {
            let ask = draft.into_ask()?;
            client.call(|ticket, answer| Command::Send { ticket, ask, sink: Sink::Stored(answer) }).await
        })
    }
}

/// The broker has stored a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The message's id.
    pub id: MessageId,
    /// Where it is stored: in memory or on disk.
    pub durability: Durability,
    /// The broker had the message already, from this send or from another with the same dedup id; it was not added again.
    pub duplicate: bool,
}
