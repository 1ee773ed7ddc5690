//! Deliveries, as handlers get them.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use turno_proto::headers::Headers;
use turno_proto::model::{Code, MessageId, Payload, parts};
use turno_proto::native::HEADER_LEN;

use crate::command::Command;
use crate::core::Held;
use crate::message::millis;
use crate::{Error, Message};

/// One message handed to this worker. The handler's result settles it; see [`Outcome`](crate::Outcome).
///
/// # Cancel safety
///
/// [`cancelled`](Self::cancelled) is cancel safe. If the future of [`piece`](Self::piece), [`progress`](Self::progress) or
/// [`extend`](Self::extend) is dropped before it ends, nothing was sent.
#[derive(Debug)]
pub struct Delivery {
    /// The message's id.
    pub id: MessageId,
    /// The queue it comes from.
    pub queue: String,
    /// 1 for the first attempt.
    pub attempt: u16,
    /// Slots it takes; 0 for a broadcast, which comes beside them.
    pub cost: u16,
    /// How long its caller still waits, counted from the delivery's arrival.
    pub deadline: Option<Duration>,
    /// The caller waits for a reply; otherwise the delivery is settled by an acknowledgement.
    pub wants_reply: bool,
    /// The fencing token of an exclusive worker: higher than that of every earlier holder of the queue. Pass it to the
    /// systems that the work changes, which should refuse lower ones.
    pub token: Option<u64>,
    /// Header names and values.
    pub headers: Headers,
    /// The body of the message.
    pub body: Bytes,
    pub(crate) held: Held,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) cancellation: Cancellation,
    pub(crate) frame_bytes_max: usize,
}

impl Delivery {
    /// Waits until this delivery is cancelled, and gives the reason: the caller gave up, the deadline passed, or the
    /// worker stops. The handler should end then, which frees the slot. Cancel safe.
    pub async fn cancelled(&self) -> Code {
        self.cancellation.cancelled().await
    }

    /// A token that tells of the cancellation, to pass to other parts of the handler.
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// The parts of the message, at least one; see [`Message::parts`].
    pub fn parts(&self) -> Vec<Bytes> {
        parts::of(&self.headers, &self.body)
    }

    /// Sends a piece of the reply; the handler's result is the last piece. Waits while the broker does not read.
    pub async fn piece(&self, message: impl Into<Message>) -> Result<(), Error> {
        let payload = self.fitting(message.into().into_payload()?)?;
        self.tell(Command::Piece { held: self.held, payload }).await
    }

    /// Tells the caller how far the work is.
    pub async fn progress(&self, body: impl Into<Bytes>) -> Result<(), Error> {
        let payload = self.fitting(Payload::body(body.into()))?;
        self.tell(Command::Progress { held: self.held, payload }).await
    }

    /// Extends the lease to this time from now, if the queue has leases.
    pub async fn extend(&self, lease: Duration) -> Result<(), Error> {
        self.tell(Command::Extend { held: self.held, lease_ms: millis(lease) }).await
    }

    fn fitting(&self, payload: Payload) -> Result<Payload, Error> {
        if payload.len() + HEADER_LEN > self.frame_bytes_max {
            return Err(Error::from_code(Code::FrameTooLarge, ""));
        }
        Ok(payload)
    }

    async fn tell(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| Error::closed())
    }
}

/// Tells when a delivery is cancelled. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cancellation(pub(crate) watch::Receiver<Option<Code>>);

impl Cancellation {
    /// Waits until the delivery is cancelled, and gives the reason. Cancel safe.
    pub async fn cancelled(&self) -> Code {
        let mut reason = self.0.clone();
        let reason = reason.wait_for(Option::is_some).await;
        // Without a sender the worker is gone, and its deliveries are with others.
        reason.ok().and_then(|reason| *reason).unwrap_or(Code::ConnectionLost)
    }

    /// Why the delivery is cancelled; `None` while it is not.
    pub fn reason(&self) -> Option<Code> {
        *self.0.borrow()
    }
}
