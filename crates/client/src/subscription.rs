//! Events, as somebody listens to them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use turno_proto::headers::Headers;
use turno_proto::model::limits::{EVENTS_WAITING_BYTES_MAX, MESSAGE_OVERHEAD_BYTES};
use turno_proto::model::{Code, Payload, Topic};

use crate::command::Cancels;
use crate::core::Ticket;
use crate::{Error, Reply};

/// Something that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is about.
    pub topic: Topic,
    /// Headers, by name.
    pub headers: Headers,
    /// What it says.
    pub body: Bytes,
}

impl Event {
    /// From what came in a frame. Headers that cannot be read are the publisher's fault; what it says is still there.
    pub fn from_publisher(topic: Topic, payload: &Payload) -> Self {
        let read = Reply::from_payload(payload);
        let Reply { headers, body } =
            read.unwrap_or_else(|_| Reply { headers: Headers::new(), body: payload.bytes.clone() });
        Self { topic, headers, body }
    }
}

/// What a subscription brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// An event.
    Event(Event),
    /// So many events are missing here: the broker, or this client, had too many to keep.
    Dropped(u64),
    /// The connection was lost and is there again; what was published in between is missing.
    Reconnected,
}

/// Events whose topics match a filter. Dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    inbox: Arc<Inbox>,
    ticket: Ticket,
    cancels: Arc<Cancels>,
}

impl Subscription {
    pub(crate) const fn new(inbox: Arc<Inbox>, ticket: Ticket, cancels: Arc<Cancels>) -> Self {
        Self { inbox, ticket, cancels }
    }

    /// What comes next; `None` once the client is closed. An error is the end of the subscription.
    pub async fn next(&mut self) -> Option<Result<Heard, Error>> {
        loop {
            let notified = self.inbox.some.notified();
            match self.inbox.lock().take() {
                Taken::Some(heard) => return Some(heard),
                Taken::Over => return None,
                Taken::Nothing => {}
            }
            notified.await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.cancels.push(self.ticket);
    }
}

/// What waits for the reader, up to as much as may wait for a connection at the broker.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<Waiting>,
    some: Notify,
    /// It ends rather than miss something.
    or_close: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    heard: VecDeque<Heard>,
    bytes: usize,
    /// Events that went before the first that waits.
    dropped: u64,
    end: Option<Error>,
    over: bool,
}

enum Taken {
    Some(Result<Heard, Error>),
    Nothing,
    Over,
}

impl Waiting {
    fn take(&mut self) -> Taken {
        if self.dropped > 0 {
            return Taken::Some(Ok(Heard::Dropped(std::mem::take(&mut self.dropped))));
        }
        if let Some(heard) = self.heard.pop_front() {
            self.bytes -= bytes_of(&heard);
            return Taken::Some(Ok(heard));
        }
        match self.end.take() {
            Some(error) => Taken::Some(Err(error)),
            None if self.over => Taken::Over,
            None => Taken::Nothing,
        }
    }
}

fn bytes_of(heard: &Heard) -> usize {
    let carried = match heard {
        Heard::Event(Event { topic, headers, body }) => {
            let headers = headers.iter().map(|(name, value)| MESSAGE_OVERHEAD_BYTES + name.len() + value.len());
            topic.as_str().len() + headers.sum::<usize>() + body.len()
        }
        Heard::Dropped(_) | Heard::Reconnected => 0,
    };
    MESSAGE_OVERHEAD_BYTES + carried
}

impl Inbox {
    pub(crate) fn new(or_close: bool) -> Self {
        Self { or_close, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more. The oldest go until there is room for it, or this is the end; one that is larger than all that may wait
    /// waits alone.
    pub(crate) fn put(&self, heard: Heard) {
        let mut waiting = self.lock();
        if waiting.over {
            return;
        }
        let bytes = bytes_of(&heard);
        let full = waiting.bytes + bytes > EVENTS_WAITING_BYTES_MAX && !waiting.heard.is_empty();
        let missing = full || matches!(heard, Heard::Dropped(_));
        if missing && self.or_close {
            drop(waiting);
            return self.end(Some(Error::from_end(Code::SlowReader, &Payload::default())));
        }
        while waiting.bytes + bytes > EVENTS_WAITING_BYTES_MAX
            && let Some(oldest) = waiting.heard.pop_front()
        {
            waiting.bytes -= bytes_of(&oldest);
            waiting.dropped += match oldest {
                Heard::Event(_) => 1,
                Heard::Dropped(count) => count,
                Heard::Reconnected => 0,
            };
        }
        waiting.bytes += bytes;
        waiting.heard.push_back(heard);
        drop(waiting);
        self.some.notify_one();
    }

    /// The last word; there is one.
    pub(crate) fn end(&self, error: Option<Error>) {
        let mut waiting = self.lock();
        if std::mem::replace(&mut waiting.over, true) {
            return;
        }
        waiting.end = error;
        drop(waiting);
        self.some.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize, bytes: usize) -> Heard {
        let body = vec![0; bytes].into();
        Heard::Event(Event { topic: format!("t.{number}").parse().unwrap(), headers: Headers::new(), body })
    }

    fn subscription(or_close: bool) -> (Arc<Inbox>, Subscription) {
        let inbox = Arc::new(Inbox::new(or_close));
        (Arc::clone(&inbox), Subscription::new(inbox, Ticket(1), Arc::default()))
    }

    #[tokio::test]
    async fn who_reads_too_slowly_misses_the_oldest_and_is_told() {
        let (inbox, mut subscription) = subscription(false);
        for number in 0..10 {
            inbox.put(event(number, EVENTS_WAITING_BYTES_MAX / 4));
        }
        assert_eq!(subscription.next().await, Some(Ok(Heard::Dropped(7))));
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
        inbox.put(Heard::Reconnected);
        inbox.end(Some(Error::Closed));
        assert_eq!(subscription.next().await, Some(Ok(event(1, 1))));
        assert_eq!(subscription.next().await, Some(Ok(Heard::Reconnected)));
        assert!(matches!(subscription.next().await, Some(Err(Error::Closed))));
        assert!(subscription.next().await.is_none());
    }

    /// Who would rather end than miss something reads what was there before, and the reason.
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
            inbox.put(Heard::Event(Event { topic: topic.parse().unwrap(), headers, body: Bytes::new() }));
        }
        assert_eq!(subscription.next().await, Some(Ok(Heard::Dropped(1))));
    }
}
