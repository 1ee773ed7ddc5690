//! Inputs and events of the outbox's core.

use turno_proto::model::Code;
use turno_proto::model::job::JobId;

use super::attempt::AttemptId;

/// An attempt whose output is taken. Numbers are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(pub(super) u64);

/// A call to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallId(pub(super) u64);

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OutboxAnswer {
    /// The output in it is kept, but for attempts that the broker does not know to be here.
    Kept {
        /// Bytes of one attempt that are kept.
        per_task: u64,
        /// Tasks that somebody looks at.
        follow: Vec<(JobId, u32)>,
        /// Job, task and attempt of those whose output is not wanted.
        refused: Vec<(JobId, u32, u32)>,
    },
    /// It may be kept or not, or was not for now: it is sent again.
    Again,
    /// It is not kept, and would not be another time.
    Refused(Code),
}

/// An event for tasks that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Its task may write on.
    Room(Ticket),
    /// It has ended, and all that is to be kept of it is.
    Done(Ticket),
    /// So many bytes of it are not, for the first time or not. If it has ended, nothing else follows.
    Lost { ticket: Ticket, id: AttemptId, bytes: u64, why: LossReason, ended: bool, first: bool },
}

/// Why bytes were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossReason {
    /// The broker did not answer for too long.
    Silence,
    /// The broker knows of no such attempt here.
    NotOurs,
    /// The broker said so.
    Said(Code),
}

/// Output that should have been kept and was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Attempts that lost something.
    pub(crate) tasks: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}
