//! Events of a connection for its owner, and the owner's answers.

use std::fmt;

use super::{Counts, ErrorCode, ForemanKind, Hello, StatusUpdate, Task, WireTaskId};

/// The owner's own number for something it asked the worker for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A worker's request that waits for the owner's answer. It is good for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(super) u64);

/// The owner's answer to a worker's HELLO or UPDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForemanAnswer {
    /// It is taken in; the worker gets the counts.
    Ok,
    /// "I know nothing of you": an UPDATE is not taken in, the worker says HELLO and then the UPDATE again.
    SendHello,
    /// Not taken in. With `overflow` the worker says it again a little later; with another code it gives up.
    Refuse(ErrorCode),
}

/// How a request of the owner ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The worker did it; these are its counts. For a JOB: all of its tasks run.
    Ok(Counts),
    /// The worker did not do it, or could not have read it (`bad_message`). For a JOB: none of its tasks runs. The counts
    /// are those of `no_procs`, else what the foreman believes. `no_such_job` answers a CANCEL for tasks that have ended
    /// already.
    Refused {
        /// The reason of the refusal.
        code: ErrorCode,
        /// The worker's counts.
        counts: Counts,
    },
    /// It never went out: there was no room any more, or the worker rests, or the connection ended before its turn.
    NotSent,
    /// It went out, and the connection ended before the answer came. The worker's next HELLO tells.
    Unknown,
}

/// An event at the foreman's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForemanEvent {
    /// The worker's state. Reconcile, then answer.
    Hello {
        /// For the answer.
        ticket: Ticket,
        /// `None` if it was not said: nothing runs, and the processors are those that
        /// [`Foreman::set_procs`](super::Foreman::set_procs) knows of.
        hello: Option<Hello>,
        /// False for the first one on this connection.
        again: bool,
    },
    /// A task has ended. Record it, then answer.
    Update {
        /// For the answer.
        ticket: Ticket,
        /// The end of the task, as the worker reports it.
        update: StatusUpdate,
        /// Whether this worker had that task in that attempt, as far as the connection knows; its processors are free now.
        known: bool,
    },
    /// The end of a request of the owner: each has exactly one.
    Answered {
        /// The owner's number for it.
        id: RequestId,
        /// JOB, CANCEL or STOP.
        kind: ForemanKind,
        /// The worker's answer.
        outcome: Outcome,
    },
    /// So many processors are free, and an offer would go out at once.
    Ready {
        /// Processors.
        room: u16,
    },
    /// A line for the log.
    Note(ConnectionNote),
    /// Write what is left to write, then close the connection. No event follows but those of unanswered requests.
    Close(CloseReason),
}

/// An event at the worker's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// The foreman knows this worker: the greeting is done.
    Greeted,
    /// Start these tasks; their processors are taken.
    Start(Vec<Task>),
    /// Stop these tasks (TERM, 5 s, KILL) and report each with
    /// [`Worker::task_ended`](super::Worker::task_ended) when it is gone.
    Cancel(Vec<WireTaskId>),
    /// Not more than so many processors may be busy from now on.
    Stopping {
        /// Processors.
        max: u16,
    },
    /// The foreman has recorded the end of a task.
    Reported(WireTaskId),
    /// The foreman does not want the end of a task: it is not said again.
    NotReported {
        /// The task that is refused.
        id: WireTaskId,
        /// The reason of the refusal.
        code: ErrorCode,
    },
    /// All is done: write what is left to write, close, exit with status 0.
    Exit,
    /// Write what is left to write, kill every task, exit with status 0.
    ExitNow,
    /// A line for the log.
    Note(ConnectionNote),
    /// Write what is left to write, close the connection, and connect anew.
    Close(CloseReason),
}

/// Something worth a line in a log. The connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionNote {
    /// A request had a number it may not have; it was answered with `bad_seq`.
    BadSeq {
        /// The unexpected sequence number.
        seq: u32,
        /// The last one that was taken.
        last: Option<u32>,
    },
    /// A request had a type that is not the other end's to send, or not now; it was answered with `bad_message`.
    BadType {
        /// The type of the frame.
        kind: ForemanKind,
        /// The sequence number of the frame.
        seq: u32,
    },
    /// A body could not be read, or named a task twice; it was answered with `bad_message`.
    BadBody {
        /// The type of the frame.
        kind: ForemanKind,
        /// The sequence number of the frame.
        seq: u32,
    },
    /// Too many requests wait; this one was answered with `overflow`.
    Overflow {
        /// The sequence number of the frame.
        seq: u32,
    },
    /// An OK or ERROR that answers nothing was ignored.
    Unsolicited {
        /// The type of the frame.
        kind: ForemanKind,
        /// The sequence number of the frame.
        seq: u32,
    },
    /// A request behind a RESET was dropped; the other end sends it again.
    Dropped {
        /// The sequence number of the frame.
        seq: u32,
    },
    /// The numbers begin anew.
    Reset,
    /// The two ends count differently. The worker's counts win.
    Mismatch {
        /// The counts of this end.
        ours: Counts,
        /// The counts that the other end reports.
        theirs: Counts,
    },
    /// The foreman knows nothing of this worker: it says HELLO again.
    HelloWanted,
    /// A request of ours was refused with `overflow` and is sent again later.
    Later {
        /// The type of the frame.
        kind: ForemanKind,
    },
    /// A request of ours was refused.
    Refused {
        /// The type of the frame.
        kind: ForemanKind,
        /// The error that the other end reported.
        code: ErrorCode,
    },
}

impl fmt::Display for ConnectionNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadSeq { seq, last: Some(last) } => write!(f, "request {seq} is out of order after {last}"),
            Self::BadSeq { seq, last: None } => write!(f, "request {seq} cannot be the first"),
            Self::BadType { kind, seq } => write!(f, "request {seq} must not be {} in this state", kind.name()),
            Self::BadBody { kind, seq } => write!(f, "invalid body of request {seq} ({})", kind.name()),
            Self::Overflow { seq } => write!(f, "too many requests wait for {seq} to be taken"),
            Self::Unsolicited { kind, seq } => write!(f, "{} for {seq} matches no request", kind.name()),
            Self::Dropped { seq } => write!(f, "request {seq} followed a RESET"),
            Self::Reset => f.write_str("sequence numbers restart"),
            Self::Mismatch { .. } => f.write_str("broker and worker disagree about the running tasks"),
            Self::HelloWanted => f.write_str("the broker requests another HELLO"),
            Self::Later { kind } => write!(f, "{} was refused with overflow and is sent again later", kind.name()),
            Self::Refused { kind, code } => write!(f, "{} was refused: {code}", kind.name()),
        }
    }
}

/// Why a connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The bytes are no frames.
    #[error("the peer sent invalid bytes")]
    BadMagic,
    /// A type that nobody knows. What follows it cannot be found.
    #[error("unknown frame type {0}")]
    UnknownType(u8),
    /// A body beyond the limit. Nothing was kept of it.
    #[error("a body of {0} bytes is too long")]
    BodyTooLarge(u32),
    /// The worker did not say HELLO in time.
    #[error("no HELLO from the worker in time")]
    NoHello,
    /// RESET was not answered in time.
    #[error("no answer to RESET in time")]
    ResetTimeout,
    /// RESET was refused.
    #[error("RESET was refused: {0}")]
    ResetRefused(ErrorCode),
    /// HELLO was refused.
    #[error("HELLO was refused: {0}")]
    HelloRefused(ErrorCode),
    /// After a RESET for a refused number the next one was refused too.
    #[error("sequence numbers were refused repeatedly")]
    BadSeqAgain,
    /// The two ends count differently, or the foreman knows nothing of the worker, after a new HELLO too.
    #[error("broker and worker still disagree about the running tasks after a new HELLO")]
    MismatchAgain,
}
