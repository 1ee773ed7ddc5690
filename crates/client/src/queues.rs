//! Queues: their state, their settings, their dead letters. [`Client::queues`] is the way in.

use std::pin::Pin;

use bytes::BytesMut;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::{PAGE_MAX, PORTION_MAX};
use turno_proto::model::{Code, Durability, MessageId, Payload};

pub use turno_proto::model::view::{
    ConsumerView, DeadView, ExclusiveView, MessageView, QueueSettings, QueueView, Standing, StandingState,
};

use crate::pages::{Pages, answer};
use crate::{Client, Error, Message};

/// Ids in one call. More: several calls.
const IDS_PER_CALL: usize = 1_000;

/// Calls about queues; [`Client::queues`] returns it.
///
/// # Cancel safety
///
/// If the future of a call that changes something is dropped before it ends, the change may be made or not. The others change
/// nothing. A call in several round trips says so.
#[derive(Clone, Debug)]
pub struct Queues {
    client: Client,
}

/// The consumers of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Consumers {
    /// In the order in which they get the next messages.
    pub consumers: Vec<ConsumerView>,
    /// Consumers that follow and are not listed.
    pub more: u64,
}

/// A dead letter and the message it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its state and its last failure.
    pub view: DeadView,
    /// The message. If its headers cannot be read, the body is all its bytes.
    pub message: Message,
}

/// Settings of a queue that are not made yet: [`Queues::configure`] returns it, awaiting it makes them.
#[derive(Clone, Debug)]
#[must_use = "the settings are made when it is awaited"]
pub struct ConfigureBuilder {
    client: Client,
    queue: String,
    settings: QueueSettings,
}

impl ConfigureBuilder {
    /// These settings, for example those of another queue. Later calls change them.
    pub const fn settings(mut self, settings: QueueSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Where sends are stored before they are answered: on disk or in memory.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.settings.durable = Some(durability == Durability::Disk);
        self
    }

    /// The number of consecutive expired deliveries after which a worker is dropped; 0: never.
    pub const fn drop_after(mut self, deliveries: u16) -> Self {
        self.settings.drop_after = Some(deliveries);
        self
    }

    /// Messages in a row that a worker of several queues receives from this one.
    pub const fn weight(mut self, messages: u8) -> Self {
        self.settings.weight = Some(messages);
        self
    }
}

impl IntoFuture for ConfigureBuilder {
    type Output = Result<QueueView, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, queue, settings } = self;
        let call = AdminCall::QueueSet { queue, settings: Some(settings) };
        Box::pin(async move { answer!(client, call, AdminAnswer::Queue { queue } => *queue) })
    }
}

impl Queues {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// All queues, in order of name.
    pub fn list(&self) -> Pages<QueueView> {
        let client = self.client.clone();
        Pages::new(move |after| {
            let client = client.clone();
            async move {
                let call = AdminCall::QueueLs { after, limit: PAGE_MAX };
                answer!(client, call, AdminAnswer::Queues { queues, next } => (queues, next))
            }
        })
    }

    /// One queue with the head of its backlog.
    pub async fn get(&self, queue: impl Into<String>) -> Result<QueueView, Error> {
        answer!(self.client, AdminCall::QueueShow { queue: queue.into() }, AdminAnswer::Queue { queue } => *queue)
    }

    /// The consumers of a queue.
    pub async fn consumers(&self, queue: impl Into<String>) -> Result<Consumers, Error> {
        let call = AdminCall::QueueConsumers { queue: queue.into() };
        answer!(self.client, call, AdminAnswer::Consumers { consumers, more } => Consumers { consumers, more })
    }

    /// Gives a queue settings of its own, in place of those that it had. Settings that are not named are the broker's.
    /// Awaiting it makes the change and gives the queue after it.
    ///
    /// ```
    /// # let broker = turno_broker::Broker::start_loopback()?;
    /// # let url = broker.url();
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let client = turno_client::Client::connect(&url).await?;
    /// let queue = client.queues().configure("emails").weight(3).drop_after(5).await?;
    /// assert_eq!((queue.weight, queue.drop_after), (3, 5));
    /// # Ok::<(), turno_client::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn configure(&self, queue: impl Into<String>) -> ConfigureBuilder {
        let (client, queue) = (self.client.clone(), queue.into());
        ConfigureBuilder { client, queue, settings: QueueSettings::default() }
    }

    /// Takes a queue's own settings away: all of them are the broker's again.
    pub async fn reset(&self, queue: impl Into<String>) -> Result<QueueView, Error> {
        let call = AdminCall::QueueSet { queue: queue.into(), settings: None };
        answer!(self.client, call, AdminAnswer::Queue { queue } => *queue)
    }

    /// Removes the messages that wait in a queue now, and gives their number. Messages at workers stay.
    ///
    /// # Cancel safety
    ///
    /// Many messages take several round trips. If the future is dropped before it ends, it may be done for some of them and
    /// not for others.
    pub async fn purge(&self, queue: impl Into<String>) -> Result<u64, Error> {
        let queue = queue.into();
        let waiting = self.get(&queue).await?.ready;
        self.in_portions(waiting, |limit| AdminCall::QueuePurge { queue: queue.clone(), limit }).await
    }

    /// The dead letters of a queue, oldest first.
    pub fn dead_letters(&self, queue: impl Into<String>) -> Pages<DeadView> {
        let (client, queue) = (self.client.clone(), queue.into());
        Pages::new(move |after| {
            let (client, queue) = (client.clone(), queue.clone());
            async move {
                let call = AdminCall::DeadLs { queue, after, limit: PAGE_MAX };
                answer!(client, call, AdminAnswer::DeadLetters { dead, next } => (dead, next))
            }
        })
    }

    /// One dead letter with its message, in several round trips if that is long.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it changes nothing at the broker.
    pub async fn dead_letter(&self, queue: impl Into<String>, id: MessageId) -> Result<DeadLetter, Error> {
        let (queue, id) = (queue.into(), id.to_string());
        let mut bytes = BytesMut::new();
        loop {
            let call = AdminCall::DeadShow { queue: queue.clone(), id: id.clone(), from: bytes.len() as u64 };
            let (view, headers, piece) = answer!(self.client, call,
                AdminAnswer::DeadLetter { dead, headers, piece } => (*dead, headers, piece))?;
            bytes.extend_from_slice(&piece);
            if piece.is_empty() || bytes.len() as u64 >= view.message.bytes {
                let payload = Payload { headers, bytes: bytes.freeze() };
                let message = Message::from_payload(&payload).unwrap_or_else(|_| Message::new(payload.bytes));
                return Ok(DeadLetter { view, message });
            }
        }
    }

    /// Puts dead letters back into their queue as if they had never been tried, and gives their number.
    ///
    /// # Cancel safety
    ///
    /// Many messages take several round trips. If the future is dropped before it ends, it may be done for some of them and
    /// not for others.
    pub async fn retry_dead(
        &self,
        queue: impl Into<String>,
        ids: impl IntoIterator<Item = MessageId>,
    ) -> Result<u64, Error> {
        let queue = queue.into();
        self.by_ids(ids, |ids| AdminCall::DeadRetry { queue: queue.clone(), ids, oldest: 0 }).await
    }

    /// Puts all dead letters that there are now back into their queue, and gives their number.
    ///
    /// # Cancel safety
    ///
    /// Many messages take several round trips. If the future is dropped before it ends, it may be done for some of them and
    /// not for others.
    pub async fn retry_all_dead(&self, queue: impl Into<String>) -> Result<u64, Error> {
        let queue = queue.into();
        let dead = self.get(&queue).await?.dead;
        let retry = |oldest| AdminCall::DeadRetry { queue: queue.clone(), ids: Vec::new(), oldest };
        self.in_portions(dead, retry).await
    }

    /// Removes dead letters, and gives their number.
    ///
    /// # Cancel safety
    ///
    /// Many messages take several round trips. If the future is dropped before it ends, it may be done for some of them and
    /// not for others.
    pub async fn purge_dead(
        &self,
        queue: impl Into<String>,
        ids: impl IntoIterator<Item = MessageId>,
    ) -> Result<u64, Error> {
        let queue = queue.into();
        self.by_ids(ids, |ids| AdminCall::DeadPurge { queue: queue.clone(), ids, oldest: 0 }).await
    }

    /// Removes all dead letters that there are now, and gives their number.
    ///
    /// # Cancel safety
    ///
    /// Many messages take several round trips. If the future is dropped before it ends, it may be done for some of them and
    /// not for others.
    pub async fn purge_all_dead(&self, queue: impl Into<String>) -> Result<u64, Error> {
        let queue = queue.into();
        let dead = self.get(&queue).await?.dead;
        let purge = |oldest| AdminCall::DeadPurge { queue: queue.clone(), ids: Vec::new(), oldest };
        self.in_portions(dead, purge).await
    }

    async fn by_ids(
        &self,
        ids: impl IntoIterator<Item = MessageId>,
        call: impl Fn(Vec<String>) -> AdminCall,
    ) -> Result<u64, Error> {
        let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
        let mut total = 0;
        for ids in ids.chunks(IDS_PER_CALL) {
            total += answer!(self.client, call(ids.to_vec()), AdminAnswer::Portion { done, .. } => done)?;
        }
        Ok(total)
    }

    /// Repeats a call that does a portion at a time until `all` are done or none is left. No more than there were at the
    /// start: messages that come meanwhile were not meant.
    async fn in_portions(&self, all: u64, call: impl Fn(u32) -> AdminCall) -> Result<u64, Error> {
        let mut total = 0;
        while total < all {
            let limit = u32::try_from(all - total).unwrap_or(u32::MAX).min(PORTION_MAX);
            let portion = answer!(self.client, call(limit), AdminAnswer::Portion { done, left } => (done, left));
            match portion {
                Ok((done, left)) => {
                    total += done;
                    if done == 0 || left == 0 {
                        break;
                    }
                }
                // With its last message a queue that nobody uses is forgotten.
                Err(error) if error.code() == Code::NotFound => break,
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }
}
