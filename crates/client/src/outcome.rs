//! Outcomes: the results of handlers, which end deliveries.

use std::fmt::Display;
use std::time::Duration;

use bytes::Bytes;
use turno_proto::model::{Again, Payload};

use crate::Message;
use crate::core::Settlement;
use crate::message::millis;

/// Bytes of a failure's text that travel. More: cut.
const FAILURE_BYTES_MAX: usize = 64 * 1024;

/// How a handler ends a delivery.
///
/// Handlers rarely name it: text, bytes and a [`Message`] are a reply, `()` is [`Done`](Self::Done), and the error of a
/// `Result` is a [failure](Self::Failed).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The reply, or its last piece. For a send it counts as done.
    Reply(Message),
    /// Done; the caller of a request gets an empty reply.
    Done,
    /// Not done, for this reason: the message is delivered again if it has a retry left.
    Failed(String),
    /// Not done, for this reason, and no other attempt would succeed: the message is not delivered again.
    FailedPermanently(String),
    /// Not done, for this reason. If it is a send with a retry left, it is delivered again after this time, not after the wait that
    /// its queue sets. A request is delivered again at once.
    FailedFor(Duration, String),
    /// Given back: if it is a send, this attempt does not count, and it is delivered again after this time, or after the first
    /// wait of its queue. For a request it is the same as [`Failed`](Self::Failed).
    GivenBack(Option<Duration>, String),
}

impl Outcome {
    /// A reply without headers.
    pub fn reply(body: impl Into<Bytes>) -> Self {
        Self::Reply(Message::new(body))
    }

    /// A failure after which another attempt may succeed.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }

    /// A failure after which no other attempt would succeed.
    pub fn failed_permanently(reason: impl Into<String>) -> Self {
        Self::FailedPermanently(reason.into())
    }

    /// A failure after which the message is delivered again, but not before this time has passed.
    pub fn failed_for(wait: Duration, reason: impl Into<String>) -> Self {
        Self::FailedFor(wait, reason.into())
    }

    /// Gives the message back without counting the attempt; `wait` is the time until it is delivered again.
    pub fn given_back(wait: impl Into<Option<Duration>>, reason: impl Into<String>) -> Self {
        Self::GivenBack(wait.into(), reason.into())
    }

    pub(crate) fn into_settlement(self, wants_reply: bool) -> Settlement {
        match self {
            Self::Reply(_) | Self::Done if !wants_reply => Settlement::Ack,
            Self::Done => Settlement::Reply(Payload::default()),
            Self::Reply(reply) => match reply.into_payload() {
                Ok(payload) => Settlement::Reply(payload),
                Err(error) => fail(error.to_string(), Again::Never),
            },
            Self::Failed(reason) => fail(reason, Again::AsSet),
            Self::FailedPermanently(reason) => fail(reason, Again::Never),
            Self::FailedFor(wait, reason) => fail(reason, Again::After(millis(wait))),
            Self::GivenBack(wait, reason) => fail(reason, Again::Uncounted(wait.map(millis))),
        }
    }
}

fn fail(reason: String, again: Again) -> Settlement {
    let mut bytes = Bytes::from(reason);
    bytes.truncate(FAILURE_BYTES_MAX);
    Settlement::Fail { again, payload: Payload::body(bytes) }
}

impl From<Message> for Outcome {
    fn from(reply: Message) -> Self {
        Self::Reply(reply)
    }
}

impl From<&str> for Outcome {
    fn from(body: &str) -> Self {
        Self::Reply(body.into())
    }
}

impl From<String> for Outcome {
    fn from(body: String) -> Self {
        Self::Reply(body.into())
    }
}

impl From<Vec<u8>> for Outcome {
    fn from(body: Vec<u8>) -> Self {
        Self::Reply(body.into())
    }
}

impl From<Bytes> for Outcome {
    fn from(body: Bytes) -> Self {
        Self::Reply(body.into())
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Done
    }
}

impl<T: Into<Self>, E: Display> From<Result<T, E>> for Outcome {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => value.into(),
            Err(error) => Self::failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_settle_requests_and_sends() {
        let failure = Settlement::Fail { again: Again::AsSet, payload: Payload::body("no") };
        let table: &[(Outcome, bool, Settlement)] = &[
            ("hi".into(), true, Settlement::Reply(Payload::body("hi"))),
            ("hi".into(), false, Settlement::Ack),
            (Outcome::Done, true, Settlement::Reply(Payload::default())),
            (().into(), false, Settlement::Ack),
            (Outcome::failed("no"), true, failure.clone()),
            (Err::<(), &str>("no").into(), false, failure),
            (
                Outcome::failed_permanently("no"),
                false,
                Settlement::Fail { again: Again::Never, payload: Payload::body("no") },
            ),
        ];
        let wait = Duration::from_millis(1_500);
        let again = |again| Settlement::Fail { again, payload: Payload::body("no") };
        assert_eq!(Outcome::failed_for(wait, "no").into_settlement(false), again(Again::After(1_500)));
        assert_eq!(Outcome::given_back(wait, "no").into_settlement(false), again(Again::Uncounted(Some(1_500))));
        assert_eq!(Outcome::given_back(None, "no").into_settlement(true), again(Again::Uncounted(None)));
        for (outcome, wants_reply, expected) in table {
            assert_eq!(&outcome.clone().into_settlement(*wants_reply), expected, "{outcome:?} {wants_reply}");
        }
    }
}
