//! Requests of each end to the other, before they are numbered.

use super::numbering::RequestNumbering;
use super::{ForemanFrame, ForemanKind, Hello, RequestId, Running, StatusUpdate, Stop, Task, TaskPair};

/// A request to the worker.
#[derive(Clone, Debug)]
pub(super) enum ToWorker {
    Job(RequestId, Vec<Task>),
    Cancel(RequestId, Vec<TaskPair>),
    Stop(RequestId, Stop),
}

/// A request to the foreman.
#[derive(Clone, Debug)]
pub(super) enum ToForeman {
    /// Built when it is sent, so that it tells the state of that moment.
    Hello,
    /// With what the task took while it ran: until the foreman has taken this in, it counts that as busy.
    Update(StatusUpdate, Running),
}

impl ToWorker {
    pub(super) const fn id(&self) -> RequestId {
        match self {
            Self::Job(id, _) | Self::Cancel(id, _) | Self::Stop(id, _) => *id,
        }
    }

    pub(super) const fn kind(&self) -> ForemanKind {
        match self {
            Self::Job(..) => ForemanKind::Job,
            Self::Cancel(..) => ForemanKind::Cancel,
            Self::Stop(..) => ForemanKind::Stop,
        }
    }

    /// Processors that its tasks take.
    pub(super) fn needs(&self) -> u32 {
        match self {
            Self::Job(_, tasks) => tasks.iter().map(|task| u32::from(task.needs())).sum(),
            _ => 0,
        }
    }

    pub(super) const fn is_urgent(&self) -> bool {
        matches!(self, Self::Stop(_, Stop::Immediate))
    }
}

impl ToForeman {
    pub(super) const fn kind(&self) -> ForemanKind {
        match self {
            Self::Hello => ForemanKind::Hello,
            Self::Update(..) => ForemanKind::Update,
        }
    }
}

/// A HELLO that waits for its turn.
pub(super) fn held_hello(line: &mut RequestNumbering<ToWorker>) -> Option<&mut Hello> {
    line.held_mut().find_map(|frame| match frame {
        ForemanFrame::Hello { hello, .. } => hello.as_mut(),
        _ => None,
    })
}
