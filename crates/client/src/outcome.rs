//! Outcomes: the results of handlers, which end deliveries.

use std::fmt::Display;

use bytes::Bytes;
use turno_proto::model::Payload;

use crate::Message;
use crate::core::Settlement;

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

    pub(crate) fn into_settlement(self, wants_reply: bool) -> Settlement {
        match self {
            Self::Reply(_) | Self::Done if !wants_reply => Settlement::Ack,
            Self::Done => Settlement::Reply(Payload::default()),
            Self::Reply(reply) => match reply.into_payload() {
                Ok(payload) => Settlement::Reply(payload),
                Err(error) => fail(error.to_string(), true),
            },
            Self::Failed(reason) => fail(reason, false),
            Self::FailedPermanently(reason) => fail(reason, true),
        }
    }
}

fn fail(reason: String, permanent: bool) -> Settlement {
    let mut bytes = Bytes::from(reason);
    bytes.truncate(FAILURE_BYTES_MAX);
    Settlement::Fail { permanent, payload: Payload::body(bytes) }
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
        let failure = Settlement::Fail { permanent: false, payload: Payload::body("no") };
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
                Settlement::Fail { permanent: true, payload: Payload::body("no") },
            ),
        ];
        for (outcome, wants_reply, expected) in table {
            assert_eq!(&outcome.clone().into_settlement(*wants_reply), expected, "{outcome:?} {wants_reply}");
        }
    }
}
