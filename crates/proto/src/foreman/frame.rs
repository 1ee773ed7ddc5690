//! Frames as values.

use super::{Counts, ErrorCode, ForemanKind, Hello, StatusUpdate, Stop, Task, TaskPair};

/// A frame of either end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the table in docs/reference/protocol/job-worker.md")]
pub enum ForemanFrame {
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

impl ForemanFrame {
    /// The frame type.
    pub const fn kind(&self) -> ForemanKind {
        match self {
            Self::Ok { .. } => ForemanKind::Ok,
            Self::Hello { .. } => ForemanKind::Hello,
            Self::Job { .. } => ForemanKind::Job,
            Self::Update { .. } => ForemanKind::Update,
            Self::Cancel { .. } => ForemanKind::Cancel,
            Self::Stop { .. } => ForemanKind::Stop,
            Self::Error { .. } => ForemanKind::Error,
            Self::Reset { .. } => ForemanKind::Reset,
        }
    }

    /// The sequence number.
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
