//! What goes out and what comes back.

use std::time::Duration;

use bytes::Bytes;
use turno_proto::headers::{self, Headers, HeadersError};
use turno_proto::model::{DedupId, Durability, MessageId, Payload};

use crate::Error;
use crate::core::Ask;

/// A message with its options. What is not set is the broker's to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    headers: Headers,
    /// For a queue that is not known yet, with what may turn out to be no dedup id.
    ask: Ask<(), Bytes, Bytes>,
}

impl Default for Message {
    fn default() -> Self {
        Self::new(Bytes::new())
    }
}

impl Message {
    /// A message with that body and no options.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { headers: Headers::new(), ask: Ask::new((), body.into()) }
    }

    /// Adds a header; the same name again replaces it.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// A request: how long the caller waits for the reply. A send: how long the message is worth delivering.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.ask.timeout_ms = Some(millis(timeout));
        self
    }

    /// A request: how long the work itself may take, if that is not how long the caller waits. If the caller's
    /// [time-out](Self::timeout) is over first, the call ends with `timed_out` and the work goes on, unless
    /// [`cancel_on_timeout`](Self::cancel_on_timeout) says otherwise.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.ask.deadline_ms = Some(millis(deadline));
        self
    }

    /// A request with a [deadline](Self::deadline) of its own: cancelled when the caller's time is over. Without such a
    /// deadline it always is, because both end at the same time.
    #[must_use]
    pub const fn cancel_on_timeout(mut self, cancel: bool) -> Self {
        self.ask.cancel_on_timeout = cancel;
        self
    }

    /// A request: whether its worker is told to stop when the connection of its caller ends. It is, unless this says
    /// otherwise: nobody would take the reply.
    #[must_use]
    pub const fn cancel_on_disconnect(mut self, cancel: bool) -> Self {
        self.ask.cancel_on_disconnect = cancel;
        self
    }

    /// How often it is delivered again after a lost worker or a failure.
    #[must_use]
    pub const fn retries(mut self, retries: u8) -> Self {
        self.ask.retries = Some(retries);
        self
    }

    /// 0 to 9, 9 first.
    #[must_use]
    pub const fn priority(mut self, priority: u8) -> Self {
        self.ask.priority = Some(priority);
        self
    }

    /// Slots of a worker that it takes.
    #[must_use]
    pub const fn cost(mut self, cost: u16) -> Self {
        self.ask.cost = Some(cost);
        self
    }

    /// A request: fail at once with `no_responder` if nobody consumes the queue.
    #[must_use]
    pub const fn fail_fast(mut self, fail_fast: bool) -> Self {
        self.ask.fail_fast = fail_fast;
        self
    }

    /// A request or broadcast: done as soon as it is written to its worker or workers.
    #[must_use]
    pub const fn no_reply(mut self, no_reply: bool) -> Self {
        self.ask.no_reply = no_reply;
        self
    }

    /// A broadcast: not to the connection it goes out on, should that consume the queue.
    #[must_use]
    pub const fn skip_self(mut self, skip_self: bool) -> Self {
        self.ask.skip_self = skip_self;
        self
    }

    /// Doing it twice does no harm: should the connection be lost before the answer, the next broker gets it
    /// again. Without this the call ends with `connection_lost`.
    #[must_use]
    pub const fn resend(mut self, resend: bool) -> Self {
        self.ask.resend = resend;
        self
    }

    /// A send: 1 to 64 bytes that no other message of the queue has. However often it is sent within an hour, the
    /// broker stores it once. So it is sent again after a lost connection, until a broker answers or its time is over.
    ///
    /// Brokers do not know each other's ids: if the next connection is to another broker, both may have it.
    #[must_use]
    pub fn dedup_id(mut self, dedup_id: impl Into<Bytes>) -> Self {
        self.ask.dedup_id = Some(dedup_id.into());
        self
    }

    /// As [`Self::into_ask`], for a request: only a send has a dedup id.
    pub(crate) fn into_request(self, queue: &str) -> Result<Ask, Error> {
        if self.ask.dedup_id.is_some() { Err(Error::DedupRequest) } else { self.into_ask(queue) }
    }

    /// As [`Self::into_ask`], for a broadcast, which goes out once, at once and to all.
    pub(crate) fn into_broadcast(self, queue: &str) -> Result<Ask, Error> {
        let Ask { retries, priority, cost, fail_fast, dedup_id, .. } = &self.ask;
        let numbers = retries.is_some() || priority.is_some() || cost.is_some();
        if numbers || *fail_fast || dedup_id.is_some() { Err(Error::BroadcastOption) } else { self.into_ask(queue) }
    }

    /// Headers and body alone: the options of a message mean nothing for an event.
    pub(crate) fn to_payload(&self) -> Result<Payload, Error> {
        Ok(payload(&self.headers, self.ask.payload.clone())?)
    }

    pub(crate) fn into_ask(self, queue: &str) -> Result<Ask, Error> {
        let Self { headers, mut ask } = self;
        let queue = queue.parse()?;
        let payload = payload(&headers, std::mem::take(&mut ask.payload))?;
        let dedup_id = ask.dedup_id.as_deref().map(DedupId::new).transpose()?;
        Ok(ask.with(queue, payload, dedup_id))
    }
}

/// A reply, or one piece of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Header names and values.
    pub headers: Headers,
    /// The body, as the worker wrote it.
    pub body: Bytes,
}

impl Reply {
    /// A reply without headers.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { headers: Headers::new(), body: body.into() }
    }

    /// Adds a header; the same name again replaces it.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    pub(crate) fn from_payload(payload: &Payload) -> Result<Self, HeadersError> {
        let (headers, body) = headers::decode(payload)?;
        Ok(Self { headers, body })
    }

    pub(crate) fn into_payload(self) -> Result<Payload, HeadersError> {
        payload(&self.headers, self.body)
    }
}

/// The broker has a sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The message's id.
    pub id: MessageId,
    /// How safe it is.
    pub durability: Durability,
    /// The broker had it already, from this send or another with the same dedup id; it was not added again.
    pub duplicate: bool,
}

macro_rules! from_bodies {
    ($type:ident) => {
        impl From<&str> for $type {
            fn from(body: &str) -> Self {
                Self::new(Bytes::copy_from_slice(body.as_bytes()))
            }
        }

        impl From<String> for $type {
            fn from(body: String) -> Self {
                Self::new(body)
            }
        }

        impl From<Vec<u8>> for $type {
            fn from(body: Vec<u8>) -> Self {
                Self::new(body)
            }
        }

        impl From<Bytes> for $type {
            fn from(body: Bytes) -> Self {
                Self::new(body)
            }
        }
    };
}

from_bodies!(Message);
from_bodies!(Reply);

/// Milliseconds for the wire: at least one, so that a short time-out is not read as none.
pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX).max(1)
}

fn payload(headers: &Headers, body: Bytes) -> Result<Payload, HeadersError> {
    // Without headers the body goes out as it is, uncopied.
    if headers.is_empty() { Ok(Payload::body(body)) } else { headers::encode(headers, &body) }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::{DedupIdError, NameError};

    use super::*;

    #[test]
    fn a_message_becomes_what_the_core_is_asked() {
        let ask = Message::from("hi").timeout(Duration::from_micros(1)).retries(2).priority(9).cost(3).resend(true);
        let ask = ask.into_ask("q").expect("a good name");
        assert_eq!((ask.timeout_ms, ask.retries, ask.priority, ask.cost), (Some(1), Some(2), Some(9), Some(3)));
        assert!(ask.resend && !ask.no_reply && !ask.fail_fast);
        assert_eq!(ask.payload, Payload::body("hi"));
        assert_eq!(Message::default().into_ask("a b"), Err(Error::BadName(NameError::BadCharacter)));
    }

    #[test]
    fn a_dedup_id_is_looked_at_before_anything_is_sent() {
        let id_of = |id: &'static str| Message::from("hi").dedup_id(id).into_ask("q").map(|ask| ask.dedup_id);
        assert_eq!(id_of("x"), Ok(DedupId::new(b"x").ok()));
        assert_eq!(id_of(""), Err(Error::BadDedupId(DedupIdError::Empty)));
        assert_eq!(Message::from("hi").dedup_id("x").into_request("q"), Err(Error::DedupRequest));
    }

    /// S2.15: what is never retried has no retry limit.
    #[test]
    fn a_broadcast_has_no_options_of_other_messages() {
        let plain = || Message::from("hi").skip_self(true).no_reply(true).timeout(Duration::from_secs(1));
        let ask = plain().into_broadcast("q").expect("a good name");
        assert!(ask.skip_self && ask.no_reply && ask.timeout_ms == Some(1_000));
        for message in [plain().retries(0), plain().priority(4), plain().cost(1), plain().fail_fast(true)] {
            assert_eq!(message.into_broadcast("q"), Err(Error::BroadcastOption));
        }
        assert_eq!(plain().dedup_id("x").into_broadcast("q"), Err(Error::BroadcastOption));
    }

    #[test]
    fn a_reply_keeps_headers_and_body() {
        let reply = Reply::from(vec![0, 1, 2]).header("content-type", "x/y");
        let payload = reply.clone().into_payload().expect("within the limits");
        assert_eq!(Reply::from_payload(&payload), Ok(reply));
    }
}
