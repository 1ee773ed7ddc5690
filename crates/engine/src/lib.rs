//! The rules of the broker: inputs in, effects out.
//!
//! [`Engine::handle`] takes what a connection said (or that time passed) and gives what must be said to
//! whom. It holds every queue, worker and message of a broker, and nothing else: no socket, no clock, no
//! thread. Time is an argument, ids are its own, and the same inputs always give the same effects.
//!
//! docs/reference/modules.md lists the modules; each is a file with one subject.

mod archive;
mod effect;
mod engine;
mod input;
mod jobs;
mod messages;
mod page;
pub mod ring;
mod settings;
mod topics;

pub use archive::ArchiveCall;
pub use effect::{
    ArchiveEffect, BorrowedPayload, BroadcastAnswer, CallerMessage, Deliver, DiskEffect, Drained, Effect, HostEffect,
    LinkEffect, NativeEffect, PeerEffect, PeerSink, Report, Sink,
};
pub use engine::{Buffers, Engine};
pub use input::{Input, Neighbour, RemoteMessage, WorkerMessage};
pub use jobs::{
    AttemptCounts, CHUNK_TASKS, ChunkRecord, ForemanEvent, ForemanOrder, Hello, JobRecord, OfferedTask, RunningTask,
    ShortEnd, StoredJobs, TaskEnd, TaskRecord, Update,
};
pub use messages::RetryDelay;
pub use messages::disk::persist::{AttemptMark, DedupRecord, NewRecord, Persist, Record, RecoveredMessage, Wait};
pub use messages::workers::policy::Policy;
pub use settings::{Settings, StoreSettings};
pub use topics::Listener;
pub use turno_proto::model::link::{Forward, ForwardBroadcast, ForwardEvent, LinkMessage};
pub use turno_proto::model::topic::{Event, EventRef};
pub use turno_proto::model::{Again, Broadcast, Outgoing};
