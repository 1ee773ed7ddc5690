//! Views: one type for each thing that the broker shows, for the wire, for `--json` and for the published schemas.
//!
//! Keys are the same in every format, and each is always present unless its comment says that it is omitted. Only ids
//! ([`super::WorkerId`]) and points in time ([`super::Moment`]) have another form in MessagePack than in JSON. A key that the
//! other side does not know yet gets its default. The comments are the reference in docs/reference/views.md.

mod broker;
mod message;
mod queue;
mod worker;

pub use self::broker::{BrokerView, DiskView, JobsView, MemoryView};
pub use self::message::{DeadView, Explanation, MessageKind, MessageState, MessageView};
pub use self::queue::{ConsumerView, ExclusiveView, QueueSettings, QueueView, Standing, StandingState};
pub use self::worker::{HoldingView, StandingView, WorkerKind, WorkerState, WorkerTaskView, WorkerView};
pub use super::counters::Counters;
pub use super::reason::{Because, Reason};
