//! The pieces of a streamed reply.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::command::Cancels;
use crate::core::Ticket;
use crate::{Error, Reply};

/// Pieces that wait for their reader. More: the stream ends with `slow_reader`, so that one reader that
/// stands still holds up nobody else on the connection.
pub(crate) const PIECES_MAX: usize = 1_024;

/// What comes of a streamed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyPart {
    /// Word from the worker about how far it is; no part of the reply.
    Progress(Reply),
    /// A piece; more follow.
    Piece(Reply),
    /// The last piece.
    Last(Reply),
}

/// The reply to a request, piece by piece. Dropping it before its end cancels the request.
#[derive(Debug)]
pub struct Replies {
    parts: mpsc::Receiver<Result<ReplyPart, Error>>,
    ticket: Ticket,
    cancels: Arc<Cancels>,
    pieces: u64,
    ended: bool,
}

impl Replies {
    pub(crate) const fn new(
        parts: mpsc::Receiver<Result<ReplyPart, Error>>,
        ticket: Ticket,
        cancels: Arc<Cancels>,
    ) -> Self {
        Self { parts, ticket, cancels, pieces: 0, ended: false }
    }

    /// The next piece; `None` after the last. An empty last piece only marks the end and is not given out,
    /// unless it is the only one.
    pub async fn next(&mut self) -> Option<Result<Reply, Error>> {
        loop {
            let first = self.pieces == 0;
            return match self.next_part().await? {
                Ok(ReplyPart::Progress(_)) => continue,
                Ok(ReplyPart::Last(last)) if !first && last == Reply::default() => None,
                Ok(ReplyPart::Piece(piece) | ReplyPart::Last(piece)) => Some(Ok(piece)),
                Err(error) => Some(Err(error)),
            };
        }
    }

    /// The next piece or word of progress; `None` after the last piece.
    pub async fn next_part(&mut self) -> Option<Result<ReplyPart, Error>> {
        if self.ended {
            return None;
        }
        let part = self.parts.recv().await.unwrap_or(Err(Error::Closed));
        match &part {
            Ok(ReplyPart::Progress(_)) => {}
            Ok(ReplyPart::Piece(_)) => self.pieces += 1,
            Ok(ReplyPart::Last(_)) | Err(_) => self.ended = true,
        }
        Some(part)
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        // Closed first: a driver that has not taken the command yet sees that nobody waits for it.
        self.parts.close();
        if !self.ended {
            self.cancels.push(self.ticket);
        }
    }
}
