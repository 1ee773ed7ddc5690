//! A broadcast: its options, the answers of its consumers, and its one end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::mpsc;
use turno_proto::model::{BroadcastEnd, Payload};

use crate::command::{Cancels, Command, Sink};
use crate::core::Ticket;
use crate::draft::{Draft, draft_options};
use crate::message::millis;
use crate::{Client, Error, Message};

/// Answers that wait for their reader. More: the broadcast ends with `slow_reader`, so that one reader that stands still
/// holds up nobody else on the connection. Several times as many as a broker has connections by default: all consumers
/// may answer in one breath.
const ANSWERS_MAX: usize = 65_536;

/// A broadcast that is not made yet: [`Client::broadcast`] returns it, awaiting it sends the message to every consumer of
/// the queue and gives the [`Broadcast`], a stream of their answers.
///
/// # Cancel safety
///
/// If the future is dropped before it ends, nothing is sent.
#[derive(Clone, Debug)]
#[must_use = "a broadcast is made when it is awaited"]
pub struct BroadcastBuilder {
    client: Client,
    draft: Draft,
}

impl BroadcastBuilder {
    pub(crate) const fn new(client: Client, draft: Draft) -> Self {
        Self { client, draft }
    }

    draft_options! { header idempotent }

    /// How long to wait for the answers; the broker's default if not set, which is 30 s. Consumers that have not
    /// answered by then are told to stop, and counted in [`BroadcastEnd::expired`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.ask.timeout_ms = Some(millis(timeout));
        self
    }

    /// Wants no answers: the broadcast ends as soon as it is written to all consumers.
    pub fn no_reply(mut self) -> Self {
        self.draft.ask.no_reply = true;
        self
    }

    /// Omit the connection that makes the broadcast, if that consumes the queue too.
    pub fn skip_self(mut self) -> Self {
        self.draft.ask.skip_self = true;
        self
    }

    async fn begin(self) -> Result<Broadcast, Error> {
        let Self { client, draft } = self;
        let ask = draft.into_ask()?;
        let (sender, parts) = mpsc::channel(ANSWERS_MAX + 1);
        let ticket = client.next_ticket();
        client.command(Command::Broadcast { ticket, ask, sink: Sink::Broadcast(sender) }).await?;
        Ok(Broadcast { parts, ticket, cancels: client.cancels(), over: false, end: None })
    }
}

impl IntoFuture for BroadcastBuilder {
    type Output = Result<Broadcast, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.begin())
    }
}

/// An answer of one consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The consumer's id at the broker, which tells apart consumers of the same name.
    pub worker: u64,
    /// The consumer's name.
    pub name: String,
    /// The content of the answer.
    pub part: AnswerPart,
}

/// The content of an [`Answer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// A piece of the consumer's reply; more of this consumer follow.
    Piece(Message),
    /// The consumer's reply, or the last piece of it.
    Last(Message),
    /// The consumer failed, for this reason. Bytes that are not UTF-8 are replaced.
    Failed(String),
}

impl Answer {
    pub(crate) fn new(worker: u64, name: String, more: bool, failed: bool, payload: &Payload) -> Result<Self, Error> {
        let part = if failed {
            AnswerPart::Failed(String::from_utf8_lossy(&payload.split().1).into_owned())
        } else {
            let reply = Message::from_payload(payload)?;
            if more { AnswerPart::Piece(reply) } else { AnswerPart::Last(reply) }
        };
        Ok(Self { worker, name, part })
    }
}

/// A part of a broadcast's result.
#[derive(Debug)]
pub(crate) enum Part {
    Answer(Answer),
    End(BroadcastEnd),
}

/// A broadcast under way: a [`Stream`] of answers, then one end. Dropping it before its end gives it up: consumers that
/// still work on it are told to stop.
///
/// # Cancel safety
///
/// [`next`](Self::next) is cancel safe: dropping its future loses no answer.
#[derive(Debug)]
#[must_use = "dropping it gives the broadcast up"]
pub struct Broadcast {
    parts: mpsc::Receiver<Result<Part, Error>>,
    ticket: Ticket,
    cancels: Arc<Cancels>,
    over: bool,
    end: Option<BroadcastEnd>,
}

impl Broadcast {
    /// The next answer, in order of arrival; `None` after the end. An error is an end too.
    pub async fn next(&mut self) -> Option<Result<Answer, Error>> {
        std::future::poll_fn(|context| self.poll_answer(context)).await
    }

    /// How it ended, once [`next`](Self::next) gave `None`.
    pub const fn end(&self) -> Option<&BroadcastEnd> {
        self.end.as_ref()
    }

    /// Waits for the end and gives all answers in order of arrival, and the end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the broadcast up, and the answers that came with it.
    pub async fn finish(mut self) -> Result<(Vec<Answer>, BroadcastEnd), Error> {
        let mut answers = Vec::new();
        while let Some(answer) = self.next().await {
            answers.push(answer?);
        }
        self.end.take().map(|end| (answers, end)).ok_or_else(Error::closed)
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Answer, Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let part = ready!(self.parts.poll_recv(context)).unwrap_or_else(|| Err(Error::closed()));
        Poll::Ready(match part {
            Ok(Part::Answer(answer)) => Some(Ok(answer)),
            Ok(Part::End(end)) => {
                self.over = true;
                self.end = Some(end);
                None
            }
            Err(error) => {
                self.over = true;
                Some(Err(error))
            }
        })
    }
}

impl Stream for Broadcast {
    type Item = Result<Answer, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_answer(context)
    }
}

impl Drop for Broadcast {
    fn drop(&mut self) {
        // Closed first: a driver that has not taken the command yet sees that nobody waits for it.
        self.parts.close();
        if !self.over {
            self.cancels.push(self.ticket);
        }
    }
}
