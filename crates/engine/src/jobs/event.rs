//! Events of a job worker, and effects for it. The shell makes frames of document 004 of them.

use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::Code;
use turno_proto::model::job::JobId;

/// Something that happened on a foreman's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForemanEvent {
    /// It is open.
    Connected {
        /// Where the worker is.
        address: String,
    },
    /// HELLO, for the first time or again.
    Hello(Hello),
    /// OK to an offer.
    Accepted {
        /// Which one.
        offer: u64,
    },
    /// ERROR to an offer: nothing of it was started.
    Refused {
        /// Which one.
        offer: u64,
        /// Processors the worker says it has free.
        slots_free: u16,
    },
    /// UPDATE: an attempt is over.
    Update(Update),
    /// OK to a CANCEL: the task is being stopped.
    Cancelled {
        /// Which one.
        cancel: u64,
    },
    /// ERROR to a CANCEL: no such task runs there.
    NoSuchJob {
        /// Which one.
        cancel: u64,
    },
    /// OK to a STOP.
    Stopped,
}

/// A worker tells who it is and what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The id of the worker, the same over all its connections.
    pub id: Option<String>,
    /// For people.
    pub name: String,
    /// Its processors, those in use too.
    pub slots: u16,
    /// The tasks it runs.
    pub running: Vec<RunningTask>,
    /// Labels of the worker.
    pub labels: Vec<(String, String)>,
}

/// A task that a worker says it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTask {
    /// The number of the job.
    pub job: JobId,
    /// The number of the task.
    pub task: u32,
    /// Which attempt, if the worker says.
    pub attempt: Option<u32>,
}

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The number that the answer repeats.
    pub request: u32,
    /// The number of the job.
    pub job: JobId,
    /// The number of the task.
    pub task: u32,
    /// Which attempt, if the worker says.
    pub attempt: Option<u32>,
    /// It did what it should.
    pub success: bool,
    /// It was ended for its worker's reasons: it has not failed.
    pub given_back: bool,
    /// The exit status of its program.
    pub exit_code: Option<i32>,
    /// The signal that ended its program.
    pub signal: Option<i32>,
    /// A text about the end.
    pub status: String,
    /// When the program began, in Unix milliseconds.
    pub started_unix_ms: Option<u64>,
    /// When the attempt ended.
    pub ended_unix_ms: Option<u64>,
}

/// Something that a foreman's worker is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForemanOrder {
    /// JOB: all of these, or none. Answered by [`ForemanEvent::Accepted`] or [`ForemanEvent::Refused`].
    Offer {
        /// The number that the answer repeats.
        offer: u64,
        /// The offered tasks.
        tasks: Vec<OfferedTask>,
    },
    /// OK to an UPDATE: what it said is stored.
    Acknowledge {
        /// Which one.
        request: u32,
    },
    /// OK to an UPDATE that says: tell what you are, by HELLO.
    SendHello {
        /// Which one.
        request: u32,
    },
    /// CANCEL of one task. Answered by [`ForemanEvent::Cancelled`] or [`ForemanEvent::NoSuchJob`].
    Cancel {
        /// The number that the answer repeats.
        cancel: u64,
        /// The number of the job.
        job: JobId,
        /// The number of the task.
        task: u32,
    },
    /// STOP of all processors: the worker finishes its tasks and ends. Answered by [`ForemanEvent::Stopped`], in order.
    Stop,
    /// STOP at once: the worker kills its tasks and ends. Answered in the same way.
    StopNow,
    /// The connection is to end.
    Close {
        /// The reason of the refusal.
        code: Code,
    },
}

/// A task that a worker may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedTask {
    /// The number of the job.
    pub job: JobId,
    /// The number of the task within its job.
    pub task: u32,
    /// From 1 on. No two workers ever have the same attempt of a task, unless the first refused it.
    pub attempt: u32,
    /// Slots it takes.
    pub slots: u16,
    /// How long it may take.
    pub time_limit_ms: Option<u64>,
    /// The job's name.
    pub name: Arc<str>,
    /// Tasks of the job.
    pub count: u32,
    /// The command, as the submitter wrote it.
    pub work: Bytes,
    /// The items of its job; empty if there are none.
    pub items: Bytes,
    /// Which of them is its own.
    pub place: u32,
}
