//! How a handler ends a delivery.

use std::fmt::Display;

use bytes::Bytes;
use turno_proto::model::Payload;

use crate::Reply;
use crate::core::Settlement;

/// Bytes of a failure's text that travel. More: cut.
const FAILURE_BYTES_MAX: usize = 64 * 1024;

/// What a handler made of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The reply, or its last piece. For a send it counts as done.
    Reply(Reply),
    /// Done; the caller of a request gets an empty reply.
    Done,
    /// Not done: the message goes to another attempt if it has one left.
    Failed {
        /// What went wrong, for the caller and for the dead letter.
        text: String,
        /// No other attempt will do better.
        permanent: bool,
    },
}

impl Outcome {
    /// A reply without headers.
    pub fn reply(body: impl Into<Bytes>) -> Self {
        Self::Reply(Reply::new(body))
    }

    /// A failure that another attempt may mend.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed { text: text.into(), permanent: false }
    }

    /// A failure that no other attempt will mend.
    pub fn failed_for_good(text: impl Into<String>) -> Self {
        Self::Failed { text: text.into(), permanent: true }
    }

    pub(crate) fn into_settlement(self, wants_reply: bool) -> Settlement {
        match self {
            Self::Reply(_) | Self::Done if !wants_reply => Settlement::Ack,
            Self::Done => Settlement::Reply(Payload::default()),
            Self::Reply(reply) => match reply.into_payload() {
                Ok(payload) => Settlement::Reply(payload),
                Err(error) => fail(error.to_string(), true),
            },
            Self::Failed { text, permanent } => fail(text, permanent),
        }
    }
}

fn fail(text: String, permanent: bool) -> Settlement {
    let mut bytes = Bytes::from(text);
    bytes.truncate(FAILURE_BYTES_MAX);
    Settlement::Fail { permanent, payload: Payload::body(bytes) }
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
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
            (Outcome::failed_for_good("no"), false, Settlement::Fail { permanent: true, payload: Payload::body("no") }),
        ];
        for (outcome, wants_reply, expected) in table {
            assert_eq!(&outcome.clone().into_settlement(*wants_reply), expected, "{outcome:?} {wants_reply}");
        }
    }
}
