//! A request: its options, its reply, whole or in pieces.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::mpsc;

use crate::command::{Cancels, Command, Sink};
use crate::core::Ticket;
use crate::draft::{Draft, draft_options};
use crate::message::millis;
use crate::{Client, Error, Message};

/// Pieces that wait for their reader. More: the stream ends with `slow_reader`, so that one reader that
/// stands still holds up nobody else on the connection.
const PIECES_MAX: usize = 1_024;

/// A request that is not made yet: [`Client::request`] returns it, awaiting it makes the request and gives the reply.
///
/// ```
/// # let broker = turno_broker::Broker::start_loopback()?;
/// # let url = broker.url();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let worker = turno_client::Worker::new(&url).queue("resize");
/// # let worker = worker.start(|delivery| async move { delivery.body }).await?;
/// # let client = turno_client::Client::connect(&url).await?;
/// use std::time::Duration;
///
/// let reply = client
///     .request("resize", "cat.jpg")
///     .header("width", "640")
///     .timeout(Duration::from_secs(30))
///     .retries(2)
///     .await?;
/// assert_eq!(reply.text()?, "cat.jpg");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cancel safety
///
/// Dropping the future cancels the request: a worker that has it is told to stop. A request that must not be cancelled
/// by a `select!` belongs in a task of its own.
#[derive(Clone, Debug)]
#[must_use = "a request is made when it is awaited"]
pub struct RequestBuilder {
    client: Client,
    draft: Draft,
}

impl RequestBuilder {
    pub(crate) const fn new(client: Client, draft: Draft) -> Self {
        Self { client, draft }
    }

    draft_options! { header retries priority cost idempotent }

    /// How long to wait for the reply; the broker's default if not set, which is 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.ask.timeout_ms = Some(millis(timeout));
        self
    }

    /// How long the work itself may take, if that is longer than this caller waits. If the
    /// [time-out](Self::timeout) passes first, the call ends with [`ErrorKind::TimedOut`](crate::ErrorKind::TimedOut)
    /// and the work goes on, unless [`cancel_on_timeout`](Self::cancel_on_timeout) is set.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.draft.ask.deadline_ms = Some(millis(deadline));
        self
    }

    /// With a [deadline](Self::deadline): cancel the work when the [time-out](Self::timeout) passes. Without a deadline
    /// it is always cancelled then.
    pub fn cancel_on_timeout(mut self) -> Self {
        self.draft.ask.cancel_on_timeout = true;
        self
    }

    /// Let the worker finish when this client's connection ends. By default it is told to stop, because nobody would
    /// take the reply.
    pub fn continue_on_disconnect(mut self) -> Self {
        self.draft.ask.cancel_on_disconnect = false;
        self
    }

    /// Fail at once with [`ErrorKind::NoResponder`](crate::ErrorKind::NoResponder) if no worker consumes the queue,
    /// instead of waiting for one.
    pub fn fail_fast(mut self) -> Self {
        self.draft.ask.fail_fast = true;
        self
    }

    /// Wants no reply: awaiting it ends as soon as the request is written to a worker.
    pub fn no_reply(self) -> NoReplyBuilder {
        NoReplyBuilder(self)
    }

    /// Makes the request and gives the reply piece by piece, as the worker sends it.
    ///
    /// # Cancel safety
    ///
    /// If this future is dropped before it ends, no request is made. Dropping the [`ReplyStream`] cancels the request.
    pub async fn stream(self) -> Result<ReplyStream, Error> {
        let Self { client, draft } = self;
        let ask = draft.into_ask()?;
        let (sender, parts) = mpsc::channel(PIECES_MAX + 1);
        let ticket = client.next_ticket();
        client.command(Command::Request { ticket, ask, sink: Sink::Stream(sender) }).await?;
        Ok(ReplyStream { parts, ticket, cancels: client.cancels(), pieces: 0, ended: false })
    }

    async fn reply(self) -> Result<Message, Error> {
        let Self { client, draft } = self;
        let ask = draft.into_ask()?;
        client.call(|ticket, answer| Command::Request { ticket, ask, sink: Sink::Reply { answer, pieces: None } }).await
    }
}

impl IntoFuture for RequestBuilder {
    type Output = Result<Message, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.reply())
    }
}

/// A request that wants no reply; see [`RequestBuilder::no_reply`].
#[derive(Clone, Debug)]
#[must_use = "a request is made when it is awaited"]
pub struct NoReplyBuilder(RequestBuilder);

impl IntoFuture for NoReplyBuilder {
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        self.0.draft.ask.no_reply = true;
        Box::pin(async move { self.0.reply().await.map(drop) })
    }
}

/// One part of a streamed reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyPart {
    /// A progress report of the worker; not part of the reply.
    Progress(Message),
    /// A piece of the reply; more follow.
    Piece(Message),
    /// The last piece.
    Last(Message),
}

/// The reply to a request, piece by piece: a [`Stream`] of messages. Dropping it before its end cancels the request.
///
/// The reader has to keep up: a stream with 1,024 unread pieces ends with the code `slow_reader`.
///
/// # Cancel safety
///
/// [`next`](Self::next) and [`next_part`](Self::next_part) are cancel safe: dropping their futures loses no piece.
#[derive(Debug)]
#[must_use = "dropping it cancels the request"]
pub struct ReplyStream {
    parts: mpsc::Receiver<Result<ReplyPart, Error>>,
    ticket: Ticket,
    cancels: Arc<Cancels>,
    pieces: u64,
    ended: bool,
}

impl ReplyStream {
    /// The next piece; `None` after the last. Progress reports are skipped. An empty last piece only marks the end and
    /// is skipped too, unless it is the only one.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        std::future::poll_fn(|context| self.poll_piece(context)).await
    }

    /// The next piece or progress report; `None` after the last piece.
    pub async fn next_part(&mut self) -> Option<Result<ReplyPart, Error>> {
        std::future::poll_fn(|context| self.poll_part(context)).await
    }

    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<ReplyPart, Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let part = ready!(self.parts.poll_recv(context)).unwrap_or_else(|| Err(Error::closed()));
        match &part {
            Ok(ReplyPart::Progress(_)) => {}
            Ok(ReplyPart::Piece(_)) => self.pieces += 1,
            Ok(ReplyPart::Last(_)) | Err(_) => self.ended = true,
        }
        Poll::Ready(Some(part))
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Message, Error>>> {
        loop {
            let first = self.pieces == 0;
            return Poll::Ready(match ready!(self.poll_part(context)) {
                Some(Ok(ReplyPart::Progress(_))) => continue,
                Some(Ok(ReplyPart::Last(last))) if !first && last == Message::default() => None,
                Some(Ok(ReplyPart::Piece(piece) | ReplyPart::Last(piece))) => Some(Ok(piece)),
                Some(Err(error)) => Some(Err(error)),
                None => None,
            });
        }
    }
}

impl Stream for ReplyStream {
    type Item = Result<Message, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_piece(context)
    }
}

impl Drop for ReplyStream {
    fn drop(&mut self) {
        // Closed first: a driver that has not taken the command yet sees that nobody waits for it.
        self.parts.close();
        if !self.ended {
            self.cancels.push(self.ticket);
        }
    }
}
