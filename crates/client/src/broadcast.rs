//! A broadcast: what its consumers say, as it comes, and its one end.

use std::sync::Arc;

use tokio::sync::mpsc;
use turno_proto::model::{BroadcastEnd, Payload};

use crate::command::Cancels;
use crate::core::Ticket;
use crate::{Error, Reply};

/// Answers that wait for their reader. More: the broadcast ends with `slow_reader`, so that one reader that stands still
/// holds up nobody else on the connection. Several times as many as a broker has connections by default: all consumers
/// may answer in one breath.
pub(crate) const ANSWERS_MAX: usize = 65_536;

/// What one consumer says to a broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The consumer's id at the broker: it tells apart those of the same name.
    pub worker: u64,
    /// The consumer's name.
    pub name: String,
    /// What it says.
    pub part: AnswerPart,
}

/// What a consumer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// A piece of its reply; more of this consumer follow.
    Piece(Reply),
    /// Its reply, or the last piece of it.
    Last(Reply),
    /// It failed, and says why; bytes that are no text are replaced.
    Failed(String),
}

impl Answer {
    pub(crate) fn new(worker: u64, name: String, more: bool, failed: bool, payload: &Payload) -> Result<Self, Error> {
        let part = if failed {
            AnswerPart::Failed(String::from_utf8_lossy(&payload.split().1).into_owned())
        } else {
            let reply = Reply::from_payload(payload)?;
            if more { AnswerPart::Piece(reply) } else { AnswerPart::Last(reply) }
        };
        Ok(Self { worker, name, part })
    }
}

/// What comes of a broadcast.
#[derive(Debug)]
pub(crate) enum Part {
    Answer(Answer),
    End(BroadcastEnd),
}

/// A broadcast on its way. Dropping it before its end gives it up: whoever still works on it is told to stop.
#[derive(Debug)]
pub struct Broadcast {
    parts: mpsc::Receiver<Result<Part, Error>>,
    ticket: Ticket,
    cancels: Arc<Cancels>,
    over: bool,
    end: Option<BroadcastEnd>,
}

impl Broadcast {
    pub(crate) const fn new(parts: mpsc::Receiver<Result<Part, Error>>, ticket: Ticket, cancels: Arc<Cancels>) -> Self {
        Self { parts, ticket, cancels, over: false, end: None }
    }

    /// The next answer, as it comes; `None` after the end. An error is an end too.
    pub async fn next(&mut self) -> Option<Result<Answer, Error>> {
        if self.over {
            return None;
        }
        match self.parts.recv().await.unwrap_or(Err(Error::Closed)) {
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
        }
    }

    /// How it ended, once [`Self::next`] gave `None`.
    pub const fn end(&self) -> Option<&BroadcastEnd> {
        self.end.as_ref()
    }

    /// Waits for the end; all answers, in the order they came, and the end.
    pub async fn finish(mut self) -> Result<(Vec<Answer>, BroadcastEnd), Error> {
        let mut answers = Vec::new();
        while let Some(answer) = self.next().await {
            answers.push(answer?);
        }
        self.end.take().map(|end| (answers, end)).ok_or(Error::Closed)
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
