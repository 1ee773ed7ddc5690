//! Commands of callers to the driver, and the receivers of its answers.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::{BroadcastEnd, Code, Filter, Payload, Slots, Topic};

use crate::broadcast::Part;
use crate::core::{Ask, Held, Ticket};
use crate::pieces::Pieces;
use crate::subscription::Inbox;
use crate::{Answer, Error, Message, Outcome, ReplyPart, Stored};

/// Commands that wait for the driver. More: the caller waits.
pub(crate) const COMMANDS_MAX: usize = 1_024;

pub(crate) enum Command {
    Request { ticket: Ticket, ask: Ask, sink: Sink },
    Send { ticket: Ticket, ask: Ask, sink: Sink },
    Broadcast { ticket: Ticket, ask: Ask, sink: Sink },
    Publish { ticket: Ticket, topic: Topic, payload: Payload, confirm: bool, sink: Sink },
    Subscribe { ticket: Ticket, filters: Vec<Filter>, or_close: bool, sink: Sink },
    Admin { ticket: Ticket, call: AdminCall, sink: Sink },
    Resize { ticket: Ticket, slots: Slots, sink: Sink },
    Settle { held: Held, wants_reply: bool, outcome: Outcome },
    Piece { held: Held, payload: Payload },
    Progress { held: Held, payload: Payload },
    Extend { held: Held, lease_ms: u32 },
    Close { done: oneshot::Sender<()> },
}

/// Where the end of a call goes.
pub(crate) enum Sink {
    Reply {
        answer: oneshot::Sender<Result<Message, Error>>,
        pieces: Option<Pieces>,
    },
    Stream(mpsc::Sender<Result<ReplyPart, Error>>),
    Stored(oneshot::Sender<Result<Stored, Error>>),
    Broadcast(mpsc::Sender<Result<Part, Error>>),
    Admin(oneshot::Sender<Result<AdminAnswer, Error>>),
    /// Nothing but whether it is done.
    Done(oneshot::Sender<Result<(), Error>>),
    /// Told once whether it begins; then events go to the inbox.
    Subscribed {
        begun: Option<oneshot::Sender<Result<(), Error>>>,
        inbox: Arc<Inbox>,
    },
}

impl Sink {
    /// The caller is gone.
    pub(crate) fn closed(&self) -> bool {
        match self {
            Self::Reply { answer, .. } => answer.is_closed(),
            Self::Stream(parts) => parts.is_closed(),
            Self::Stored(answer) => answer.is_closed(),
            Self::Broadcast(parts) => parts.is_closed(),
            Self::Admin(answer) => answer.is_closed(),
            Self::Done(answer) => answer.is_closed(),
            Self::Subscribed { begun, .. } => begun.as_ref().is_some_and(oneshot::Sender::is_closed),
        }
    }

    pub(crate) fn fail(self, error: Error) {
        // A caller that is gone needs no answer.
        match self {
            Self::Reply { answer, .. } => drop(answer.send(Err(error))),
            Self::Stream(parts) => drop(parts.try_send(Err(error))),
            Self::Stored(answer) => drop(answer.send(Err(error))),
            Self::Broadcast(parts) => drop(parts.try_send(Err(error))),
            Self::Admin(answer) => drop(answer.send(Err(error))),
            Self::Done(answer) => drop(answer.send(Err(error))),
            Self::Subscribed { begun: Some(begun), .. } => drop(begun.send(Err(error))),
            Self::Subscribed { begun: None, inbox } => inbox.end(Some(error)),
        }
    }

    /// Takes a piece of a reply. An error is the end of the call.
    pub(crate) fn piece(&mut self, reply: Message) -> Result<(), Error> {
        match self {
            Self::Reply { pieces, .. } => pieces.get_or_insert_default().add(reply),
            Self::Stream(parts) => pass_on(parts, ReplyPart::Piece(reply)),
            _ => Err(refused(Code::BadBody)),
        }
    }

    /// Takes progress; dropped where nobody asked for it.
    pub(crate) fn progress(&mut self, reply: Message) -> Result<(), Error> {
        match self {
            Self::Stream(parts) => pass_on(parts, ReplyPart::Progress(reply)),
            _ => Ok(()),
        }
    }

    /// Takes one consumer's answer to a broadcast.
    pub(crate) fn answer(&mut self, answer: Answer) -> Result<(), Error> {
        match self {
            Self::Broadcast(parts) => pass_on(parts, Part::Answer(answer)),
            _ => Err(refused(Code::BadBody)),
        }
    }

    /// Takes the end of a broadcast.
    pub(crate) fn end(self, end: BroadcastEnd) {
        match self {
            Self::Broadcast(parts) => drop(parts.try_send(Ok(Part::End(end)))),
            other => other.fail(refused(Code::BadBody)),
        }
    }

    /// Takes the last piece, or the only one.
    pub(crate) fn finish(self, reply: Message) {
        match self {
            Self::Reply { answer, pieces: Some(pieces) } => drop(answer.send(pieces.finish(reply))),
            Self::Reply { answer, pieces: None } => drop(answer.send(Ok(reply))),
            Self::Stream(parts) => drop(parts.try_send(Ok(ReplyPart::Last(reply)))),
            other => other.fail(refused(Code::BadBody)),
        }
    }
}

/// The last place of the channel is for the end, so that there is always room for it.
fn pass_on<T>(parts: &mpsc::Sender<Result<T, Error>>, part: T) -> Result<(), Error> {
    if parts.capacity() <= 1 {
        return Err(refused(Code::SlowReader));
    }
    let _ = parts.try_send(Ok(part));
    Ok(())
}

fn refused(code: Code) -> Error {
    Error::from_code(code, "")
}

/// Calls whose futures were dropped. A drop cannot wait for room in the channel of commands, so it leaves its
/// ticket here; there are never more than there are calls, which are bounded.
#[derive(Debug, Default)]
pub(crate) struct Cancels {
    tickets: Mutex<Vec<Ticket>>,
    pub(crate) some: Notify,
}

impl Cancels {
    pub(crate) fn push(&self, ticket: Ticket) {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner).push(ticket);
        self.some.notify_one();
    }

    pub(crate) fn take(&self) -> Vec<Ticket> {
        std::mem::take(&mut *self.tickets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
