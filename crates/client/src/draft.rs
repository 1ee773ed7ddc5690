//! A message for a queue before it is sent: the options that the builders of the verbs collect.

use bytes::Bytes;
use turno_proto::model::DedupId;

use crate::core::Ask;
use crate::{Error, Message};

/// A message, its queue and its options. The queue's name and the dedup id are checked when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    queue: String,
    pub(crate) message: Message,
    pub(crate) ask: Ask<(), (), Bytes>,
}

impl Draft {
    pub(crate) fn new(queue: impl Into<String>, message: impl Into<Message>) -> Self {
        Self { queue: queue.into(), message: message.into(), ask: Ask::new((), ()) }
    }

    pub(crate) fn into_ask(self) -> Result<Ask, Error> {
        let Self { queue, message, ask } = self;
        let queue = queue.parse()?;
        let payload = message.into_payload()?;
        let dedup_id = ask.dedup_id.as_deref().map(DedupId::new).transpose()?;
        Ok(ask.with(queue, payload, dedup_id))
    }
}

/// Methods that several builders have, on their field `draft`.
macro_rules! draft_options {
    () => {};
    (header $($rest:ident)*) => {
        /// Adds a header; the same name again replaces it.
        pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.draft.message = self.draft.message.header(name, value);
            self
        }
        $crate::draft::draft_options! { $($rest)* }
    };
    (retries $($rest:ident)*) => {
        /// How often the message may be delivered again after a failure or the loss of its worker. `None` leaves it to
        /// the broker.
        pub fn retries(mut self, retries: impl Into<Option<u8>>) -> Self {
            self.draft.ask.retries = retries.into();
            self
        }
        $crate::draft::draft_options! { $($rest)* }
    };
    (priority $($rest:ident)*) => {
        /// 0 to 9; messages with 9 are delivered first. `None` leaves it to the broker, which takes 4.
        pub fn priority(mut self, priority: impl Into<Option<u8>>) -> Self {
            self.draft.ask.priority = priority.into();
            self
        }
        $crate::draft::draft_options! { $($rest)* }
    };
    (cost $($rest:ident)*) => {
        /// The number of a worker's slots that the message takes. `None` leaves it to the broker, which takes 1.
        pub fn cost(mut self, cost: impl Into<Option<u16>>) -> Self {
            self.draft.ask.cost = cost.into();
            self
        }
        $crate::draft::draft_options! { $($rest)* }
    };
    (idempotent $($rest:ident)*) => {
        /// Declares that doing it twice does no harm: if the connection is lost before the answer, the message is sent
        /// again to the next broker. Without it the call ends with
        /// [`ErrorKind::ConnectionLost`](crate::ErrorKind::ConnectionLost).
        pub fn idempotent(mut self) -> Self {
            self.draft.ask.resend = true;
            self
        }
        $crate::draft::draft_options! { $($rest)* }
    };
}

pub(crate) use draft_options;

#[cfg(test)]
mod tests {
    use turno_proto::model::{DedupIdError, NameError, Payload};

    use super::*;

    #[test]
    fn a_draft_becomes_an_ask() {
        let ask = Draft::new("q", "hi").into_ask().expect("a good name");
        assert_eq!(ask.payload, Payload::body("hi"));
        assert!(!ask.resend && !ask.no_reply && !ask.fail_fast);
        assert_eq!(Draft::new("a b", "").into_ask(), Err(NameError::BadCharacter.into()));
    }

    #[test]
    fn a_dedup_id_is_checked_before_anything_is_sent() {
        let id_of = |id: &'static str| {
            let mut draft = Draft::new("q", "hi");
            draft.ask.dedup_id = Some(id.into());
            draft.into_ask().map(|ask| ask.dedup_id)
        };
        assert_eq!(id_of("x"), Ok(DedupId::new(b"x").ok()));
        assert_eq!(id_of(""), Err(DedupIdError::Empty.into()));
    }
}
