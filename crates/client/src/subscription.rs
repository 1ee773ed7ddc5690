//! Subscriptions: events whose topics match, as they are published.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use turno_proto::headers::Headers;
use turno_proto::model::limits::{EVENTS_WAITING_BYTES_MAX, MESSAGE_OVERHEAD_BYTES};
use turno_proto::model::{Code, Filter, Payload, Topic, parts};

use crate::command::{Cancels, Command, Sink};
use crate::core::Ticket;
use crate::{Client, Error, Message};

/// A subscription that has not begun: [`Client::subscribe`] returns it, awaiting it gives the [`Subscription`] once the
/// broker knows its filters.
///
/// # Cancel safety
///
/// If the future is dropped before it ends, there is no subscription.
#[derive(Clone, Debug)]
#[must_use = "a subscription begins when it is awaited"]
pub struct SubscribeBuilder {
    client: Client,
    filters: Result<Vec<Filter>, Error>,
    or_close: bool,
}

impl SubscribeBuilder {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client, filters: Ok(Vec::new()), or_close: false }
    }

    /// Adds a filter. Each event comes once, in the order of publishing, however many of the filters match.
    pub fn filter<F>(mut self, filter: F) -> Self
    where
        F: TryInto<Filter>,
        Error: From<F::Error>,
    {
        if let Ok(filters) = &mut self.filters {
            match filter.try_into() {
                Ok(filter) => filters.push(filter),
                Err(error) => self.filters = Err(error.into()),
            }
        }
        self
    }

    /// End the subscription rather than miss an event: with the code `slow_reader` if this program reads too slowly, with
    /// `connection_lost` if the connection is lost.
    ///
    /// All subscriptions of a client share its connection: if it is closed for one of them, the others get
    /// [`Received::Reconnected`].
    pub fn end_on_loss(mut self) -> Self {
        self.or_close = true;
        self
    }

    async fn begin(self) -> Result<Subscription, Error> {
        let Self { client, filters, or_close } = self;
        let filters = filters?;
        let inbox = Arc::new(Inbox::new(or_close));
        let mut subscription = None;
        client
            .call(|ticket, begun| {
                subscription = Some(Subscription { inbox: Arc::clone(&inbox), ticket, cancels: client.cancels() });
                Command::Subscribe { ticket, filters, or_close, sink: Sink::Subscribed { begun: Some(begun), inbox } }
            })
            .await?;
        subscription.ok_or_else(Error::closed)
    }
}

impl IntoFuture for SubscribeBuilder {
    type Output = Result<Subscription, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.begin())
    }
}

/// A published event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The topic it was published about.
    pub topic: Topic,
    /// Header names and values.
    pub headers: Headers,
    /// The body of the event.
    pub body: Bytes,
}

impl Event {
    /// An event about that topic.
    pub fn new(topic: Topic, message: impl Into<Message>) -> Self {
        let Message { headers, body } = message.into();
        Self { topic, headers, body }
    }

    /// The parts of the event, at least one; see [`Message::parts`].
    pub fn parts(&self) -> Vec<Bytes> {
        parts::of(&self.headers, &self.body)
    }

    /// From a frame. Headers that cannot be read are the publisher's fault; the bytes are still there.
    #[doc(hidden)]
    pub fn from_publisher(topic: Topic, payload: &Payload) -> Self {
        let read = Message::from_payload(payload);
        Self::new(topic, read.unwrap_or_else(|_| Message::new(payload.bytes.clone())))
    }
}

/// An item of a [`Subscription`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Received {
    /// An event came.
    Event(Event),
    /// This many events are missing here: the broker, or this client, had too many to keep.
    Dropped(u64),
    /// The connection was lost and is open again; events that were published in between are missing.
    Reconnected,
}

impl Received {
    /// The event, if it is one.
    pub fn into_event(self) -> Option<Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::Dropped(_) | Self::Reconnected => None,
        }
    }
}

/// Events whose topics match the filters, as they are published: a [`Stream`]. Dropping it ends it.
///
/// It outlives a lost connection. Gaps are not silent: [`Received::Dropped`] and [`Received::Reconnected`] mark them where
/// they are. A program that does not care reads with [`next_event`](Self::next_event).
///
/// # Cancel safety
///
/// [`next`](Self::next) and [`next_event`](Self::next_event) are cancel safe: dropping their futures loses no event.
#[derive(Debug)]
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    inbox: Arc<Inbox>,
    ticket: Ticket,
    cancels: Arc<Cancels>,
}

impl Subscription {
    /// The next item; `None` once the client is closed. An error is the end of the subscription.
    pub async fn next(&mut self) -> Option<Result<Received, Error>> {
        std::future::poll_fn(|context| self.inbox.poll(context)).await
    }

    /// The next event; gaps are skipped.
    pub async fn next_event(&mut self) -> Option<Result<Event, Error>> {
        loop {
            match self.next().await? {
                Ok(Received::Event(event)) => return Some(Ok(event)),
                Ok(Received::Dropped(_) | Received::Reconnected) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Stream for Subscription {
    type Item = Result<Received, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inbox.poll(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.cancels.push(self.ticket);
    }
}

/// Events that wait for the reader, up to as many as may wait for a connection at the broker.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<SubscriptionQueue>,
    /// It ends rather than miss something.
    or_close: bool,
}

#[derive(Debug, Default)]
struct SubscriptionQueue {
    received: VecDeque<Received>,
    bytes: usize,
    /// Events that went before the first that waits.
    dropped: u64,
    end: Option<Error>,
    over: bool,
    reader: Option<Waker>,
}

impl SubscriptionQueue {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Result<Received, Error>>> {
        if self.dropped > 0 {
            return Poll::Ready(Some(Ok(Received::Dropped(std::mem::take(&mut self.dropped)))));
        }
        if let Some(received) = self.received.pop_front() {
            self.bytes -= bytes_of(&received);
            return Poll::Ready(Some(Ok(received)));
        }
        match self.end.take() {
            Some(error) => Poll::Ready(Some(Err(error))),
            None if self.over => Poll::Ready(None),
            None => {
                self.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

fn bytes_of(received: &Received) -> usize {
    let carried = match received {
        Received::Event(Event { topic, headers, body }) => {
            let headers = headers.iter().map(|(name, value)| MESSAGE_OVERHEAD_BYTES + name.len() + value.len());
            topic.as_str().len() + headers.sum::<usize>() + body.len()
        }
        Received::Dropped(_) | Received::Reconnected => 0,
    };
    MESSAGE_OVERHEAD_BYTES + carried
}

impl Inbox {
    pub(crate) fn new(or_close: bool) -> Self {
        Self { or_close, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, SubscriptionQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Option<Result<Received, Error>>> {
        self.lock().poll(context)
    }

    /// One more. The oldest go until there is room for it, or this is the end; one that is larger than all that may wait
    /// waits alone.
    pub(crate) fn put(&self, received: Received) {
        let mut waiting = self.lock();
        if waiting.over {
            return;
        }
        let bytes = bytes_of(&received);
        let full = waiting.bytes + bytes > EVENTS_WAITING_BYTES_MAX && !waiting.received.is_empty();
        let missing = full || matches!(received, Received::Dropped(_));
        if missing && self.or_close {
            drop(waiting);
            return self.end(Some(Error::from_end(Code::SlowReader, &Payload::default())));
        }
        while waiting.bytes + bytes > EVENTS_WAITING_BYTES_MAX
            && let Some(oldest) = waiting.received.pop_front()
        {
            waiting.bytes -= bytes_of(&oldest);
            waiting.dropped += match oldest {
                Received::Event(_) => 1,
                Received::Dropped(count) => count,
                Received::Reconnected => 0,
            };
        }
        waiting.bytes += bytes;
        waiting.received.push_back(received);
        waiting.wake();
    }

    /// The end; there is one.
    pub(crate) fn end(&self, error: Option<Error>) {
        let mut waiting = self.lock();
        if std::mem::replace(&mut waiting.over, true) {
            return;
        }
        waiting.end = error;
        waiting.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize, bytes: usize) -> Received {
        let body = vec![0; bytes].into();
        Received::Event(Event { topic: format!("t.{number}").parse().unwrap(), headers: Headers::new(), body })
    }

    fn subscription(or_close: bool) -> (Arc<Inbox>, Subscription) {
        let inbox = Arc::new(Inbox::new(or_close));
        (Arc::clone(&inbox), Subscription { inbox, ticket: Ticket(1), cancels: Arc::default() })
    }

    #[tokio::test]
    async fn who_reads_too_slowly_misses_the_oldest_and_is_told() {
        let (inbox, mut subscription) = subscription(false);
        for number in 0..10 {
            inbox.put(event(number, EVENTS_WAITING_BYTES_MAX / 4));
        }
        assert_eq!(subscription.next().await, Some(Ok(Received::Dropped(7))));
        for number in 7..10 {
            assert_eq!(subscription.next().await, Some(Ok(event(number, EVENTS_WAITING_BYTES_MAX / 4))));
        }
        inbox.put(event(10, 2 * EVENTS_WAITING_BYTES_MAX));
        assert_eq!(subscription.next().await, Some(Ok(event(10, 2 * EVENTS_WAITING_BYTES_MAX))), "however large it is");
    }

    #[tokio::test]
    async fn what_waits_is_read_before_the_end() {
        let (inbox, mut subscription) = subscription(false);
        inbox.put(event(1, 1));
        inbox.put(Received::Reconnected);
        inbox.end(Some(Error::closed()));
        assert_eq!(subscription.next().await, Some(Ok(event(1, 1))));
        assert_eq!(subscription.next().await, Some(Ok(Received::Reconnected)));
        assert_eq!(subscription.next().await, Some(Err(Error::closed())));
        assert!(subscription.next().await.is_none());
    }

    /// A subscription with `or_close` reads the earlier events, and then the reason.
    #[tokio::test]
    async fn who_would_rather_end_does() {
        let (inbox, mut subscription) = subscription(true);
        for number in 0..10 {
            inbox.put(event(number, EVENTS_WAITING_BYTES_MAX / 4));
        }
        for number in 0..3 {
            assert_eq!(subscription.next().await, Some(Ok(event(number, EVENTS_WAITING_BYTES_MAX / 4))));
        }
        let end = subscription.next().await;
        assert!(matches!(&end, Some(Err(error)) if error.code() == Code::SlowReader), "{end:?}");
        assert!(subscription.next().await.is_none());
    }

    /// Headers take memory too.
    #[tokio::test]
    async fn headers_count_as_bodies_do() {
        let (inbox, mut subscription) = subscription(false);
        let value = "x".repeat(EVENTS_WAITING_BYTES_MAX / 2);
        for topic in ["t.1", "t.2"] {
            let headers = Headers::from([("k".to_owned(), value.clone())]);
            inbox.put(Received::Event(Event { topic: topic.parse().unwrap(), headers, body: Bytes::new() }));
        }
        assert_eq!(subscription.next().await, Some(Ok(Received::Dropped(1))));
    }
}
