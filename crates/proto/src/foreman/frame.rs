//! A frame as a value.

use super::{Counts, ErrorCode, Hello, Kind, StatusUpdate, Stop, Task, TaskPair};

/// A frame of either end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the table in docs/reference/protocol/job-worker.md")]
pub enum Frame {
    Ok {
        seq: u32,
        counts: Counts,
    },
    /// Without a body nothing is running, and how many processors there are is not said.
    Hello {
        seq: u32,
        hello: Option<Hello>,
    },
    Job {
        seq: u32,
        tasks: Vec<Task>,
    },
    Update {
        seq: u32,
        update: StatusUpdate,
    },
    Cancel {
        seq: u32,
        pairs: Vec<TaskPair>,
    },
    Stop {
        seq: u32,
        stop: Stop,
    },
    /// `arg0` by code, see [`ErrorCode`].
    Error {
        seq: u32,
        code: ErrorCode,
        arg0: u32,
    },
    /// `last` is the highest number that the sender has answered.
    Reset {
        seq: u32,
        last: u32,
    },
}

impl Frame {
    /// Its type.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Ok { .. } => Kind::Ok,
            Self::Hello { .. } => Kind::Hello,
            Self::Job { .. } => Kind::Job,
            Self::Update { .. } => Kind::Update,
            Self::Cancel { .. } => Kind::Cancel,
            Self::Stop { .. } => Kind::Stop,
            Self::Error { .. } => Kind::Error,
            Self::Reset { .. } => Kind::Reset,
        }
    }

    /// Its number.
    pub const fn seq(&self) -> u32 {
        match self {
            Self::Ok { seq, .. }
            | Self::Hello { seq, .. }
            | Self::Job { seq, .. }
            | Self::Update { seq, .. }
            | Self::Cancel { seq, .. }
            | Self::Stop { seq, .. }
            | Self::Error { seq, .. }
            | Self::Reset { seq, .. } => *seq,
        }
    }
}
