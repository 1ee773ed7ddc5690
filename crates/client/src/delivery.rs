//! What a handler gets.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use turno_proto::headers::Headers;
use turno_proto::model::{Code, MessageId};
use turno_proto::native::HEADER_LEN;

use crate::Error;
use crate::command::Command;
use crate::core::Held;
use crate::message::millis;

/// One message handed to this worker.
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
    /// How long its caller still waited when it came.
    pub deadline: Option<Duration>,
    /// Somebody waits for a reply.
    pub wants_reply: bool,
    /// The token with which this worker has the queue to itself: higher than that of everyone who had it before. Hand it to
    /// what the work changes, which should refuse lower ones.
    pub token: Option<u64>,
    /// Header names and values.
    pub headers: Headers,
    /// The body.
    pub body: Bytes,
    pub(crate) held: Held,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) cancellation: Cancellation,
    pub(crate) frame_bytes_max: usize,
}

impl Delivery {
    /// Waits until nobody wants this delivery any more, and says why. What runs should stop then; the slot is
    /// free when the handler ends.
    pub async fn cancelled(&self) -> Code {
        self.cancellation.cancelled().await
    }

    /// The same, to be handed to whatever does the work.
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Sends a piece of the reply; the handler's outcome is the last. Waits while the broker does not read.
    pub async fn piece(&self, body: impl Into<Bytes>) -> Result<(), Error> {
        let body = self.fitting(body.into())?;
        self.tell(Command::Piece { held: self.held, body }).await
    }

    /// Tells the caller how far the work is.
    pub async fn progress(&self, body: impl Into<Bytes>) -> Result<(), Error> {
        let body = self.fitting(body.into())?;
        self.tell(Command::Progress { held: self.held, body }).await
    }

    /// Asks for that much time from now on, where the queue sets a lease.
    pub async fn extend(&self, lease: Duration) -> Result<(), Error> {
        self.tell(Command::Extend { held: self.held, lease_ms: millis(lease) }).await
    }

    fn fitting(&self, body: Bytes) -> Result<Bytes, Error> {
        if body.len() + HEADER_LEN > self.frame_bytes_max {
            return Err(Error::Refused { code: Code::FrameTooLarge, detail: String::new() });
        }
        Ok(body)
    }

    async fn tell(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| Error::Closed)
    }
}

/// Tells that a delivery is wanted no more. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cancellation(pub(crate) watch::Receiver<Option<Code>>);

impl Cancellation {
    /// Waits until nobody wants the delivery any more, and says why.
    pub async fn cancelled(&self) -> Code {
        let mut reason = self.0.clone();
        let reason = reason.wait_for(Option::is_some).await;
        // Without a sender the worker is gone, and its deliveries are with others.
        reason.ok().and_then(|reason| *reason).unwrap_or(Code::ConnectionLost)
    }

    /// Why nobody wants the delivery any more; `None` while somebody does.
    pub fn reason(&self) -> Option<Code> {
        *self.0.borrow()
    }
}
