//! Deliveries as a stream, each settled by a call, for programs that have a loop of their own.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::{mpsc, oneshot};

use crate::{Delivery, Error, Message, Outcome, Worker, WorkerHandle};

/// The deliveries of a worker: a [`Stream`]; [`Worker::deliveries`] returns it. Dropping it ends the worker at once.
///
/// ```
/// # let broker = turno_broker::Broker::start_loopback()?;
/// # let url = broker.url();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let client = turno_client::Client::connect(&url).await?;
/// # client.send("emails", "to: you").await?;
/// use turno_client::Worker;
///
/// let mut deliveries = Worker::new(&url).queue("emails").slots(1).deliveries().await?;
/// while let Some(delivery) = deliveries.next().await {
///     match &delivery.body[..] {
///         b"" => delivery.reject("an email has a text"),
///         text => {
///             println!("{} bytes", text.len());
///             delivery.ack();
///         }
///     }
/// #   break;
/// }
/// # Ok::<(), turno_client::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cancel safety
///
/// [`next`](Self::next) is cancel safe: dropping its future loses no delivery.
#[derive(Debug)]
#[must_use = "dropping it ends the worker at once"]
pub struct Deliveries {
    open: mpsc::Receiver<OpenDelivery>,
    worker: WorkerHandle,
}

impl Deliveries {
    pub(crate) async fn begin(worker: Worker) -> Result<Self, Error> {
        // Handlers wait for room, and there are no more of them than slots.
        let (sender, open) = mpsc::channel::<OpenDelivery>(1);
        let sender = Arc::new(sender);
        let worker = worker.start(move |delivery| {
            let sender = Arc::clone(&sender);
            async move {
                let (settle, settled) = oneshot::channel();
                if sender.send(OpenDelivery { delivery, settle }).await.is_err() {
                    return Outcome::failed("the worker reads no more deliveries");
                }
                settled.await.unwrap_or_else(|_| Outcome::failed("the worker dropped the delivery"))
            }
        });
        Ok(Self { open, worker: worker.await? })
    }

    /// The next delivery; `None` when the worker has ended.
    pub async fn next(&mut self) -> Option<OpenDelivery> {
        self.open.recv().await
    }

    /// The running worker: to stop it, to resize it, to learn why it ended.
    pub const fn worker(&self) -> &WorkerHandle {
        &self.worker
    }
}

impl Stream for Deliveries {
    type Item = OpenDelivery;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.open.poll_recv(context)
    }
}

/// A [`Delivery`] that is settled by one of these calls. One that is dropped has failed, and may be delivered again.
#[derive(Debug)]
#[must_use = "a delivery that is dropped has failed"]
pub struct OpenDelivery {
    delivery: Delivery,
    settle: oneshot::Sender<Outcome>,
}

impl OpenDelivery {
    /// Settles it with this reply.
    pub fn reply(self, message: impl Into<Message>) {
        self.settle(Outcome::Reply(message.into()));
    }

    /// Settles it as done; the caller of a request gets an empty reply.
    pub fn ack(self) {
        self.settle(Outcome::Done);
    }

    /// Settles it as failed: it is delivered again if it has a retry left.
    pub fn fail(self, reason: impl Into<String>) {
        self.settle(Outcome::failed(reason));
    }

    /// Settles it as failed for a reason that no other attempt would change: it is not delivered again.
    pub fn reject(self, reason: impl Into<String>) {
        self.settle(Outcome::failed_permanently(reason));
    }

    fn settle(self, outcome: Outcome) {
        // Without a receiver the delivery was taken from this worker, and is with another.
        let _ = self.settle.send(outcome);
    }
}

impl Deref for OpenDelivery {
    type Target = Delivery;

    fn deref(&self) -> &Delivery {
        &self.delivery
    }
}
