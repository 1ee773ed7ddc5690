//! The broker's brain: inputs in, effects out.
//!
//! [`Engine::handle`] takes what a connection said (or that time passed) and gives what must be said to
//! whom. It holds every queue, worker and message of a broker, and nothing else: no socket, no clock, no
//! thread. Time is an argument, ids are its own, and the same inputs always give the same effects.
//!
//! The rooms, each a file with one idea:
//!
//! | room | what it decides |
//! |---|---|
//! | [`intake`](self) | what is let in, and what is refused at the door |
//! | `queue`, `backlog`, `line` | a queue: what waits, in memory and on disk, consumers, counts |
//! | `rota`, `policy`, `crew`, `turn` | whose turn it is |
//! | `dispatch` | a message meets a slot |
//! | `service` | how long workers take, and which request would be late |
//! | `worker` | register, resize, consume, leave |
//! | `exclusive` | queues with a single consumer, and who is the next one |
//! | `pending` | what a delivery's holder says about it |
//! | `broadcast` | a message to every consumer, and its one end |
//! | `retry` | what happens when an attempt failed |
//! | `cancel` | ending a message before its time |
//! | `dead` | dead letters: shown, put back, removed |
//! | `upkeep` | a queue is emptied, or gets settings of its own |
//! | `timers`, `expiry` | deadlines, leases, grace |
//! | `durable`, `persist` | what must be on disk before anyone is told, and as which values |
//! | `owed` | what the disk refused and must have all the same |
//! | `dedup` | which send came before, and the answer it got |
//! | `cold` | what waits on disk alone, and when it is loaded |
//! | `jobs` | jobs, their tasks, and the workers that a foreman hands them to |
//! | `machines` | what jobs and the archive's gate are lent of the rest, and what follows elsewhere |
//! | `links` | messages that cross to other brokers, and what these tell of themselves |
//! | `topics` | events for whoever listens |
//! | `ring` | brokers in a circle that carries topics and heals |
//! | `archive` | the gate of what tasks write, bring back and are given |
//! | `drain` | ending in order |
//! | `explain`, `admin`, `page`, `stats` | telling what is going on |
//! | `check` | all rooms agree |

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
pub use effect::{Deliver, Effect, Report, Sink};
pub use engine::{Buffers, Engine};
pub use input::{FarWord, Input};
pub use jobs::{
    CHUNK_TASKS, ChunkRecord, ForemanEvent, ForemanOrder, Hello, JobRecord, OfferedTask, STOP_NOW, ShortEnd,
    StoredJobs, TaskEnd, TaskRecord, Tried, Update,
};
pub use messages::disk::persist::{Persist, Put, Record, Remembered, Survivor};
pub use messages::workers::policy::Policy;
pub use settings::{Settings, StoreSettings};
pub use topics::Listener;
pub use turno_proto::model::link::{Forward, ForwardBroadcast, ForwardEvent, LinkWord};
pub use turno_proto::model::topic::{Event, EventRef};
pub use turno_proto::model::{Broadcast, Outgoing};
