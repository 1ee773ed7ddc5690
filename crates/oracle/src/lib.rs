//! One generator of operations on an engine, and one oracle that judges their effects.
//!
//! Property tests and the fuzzer draw [`Op`]s from bytes, the simulator draws them from seeds ([`Chance`]). A [`World`] applies
//! them to one engine with peers, a clock and a disk. The oracle keeps an account of its own, which shares nothing with the
//! engine, and panics at the first effect that contradicts it. The simulator's worlds of brokers, which see only frames, use
//! the rules that are the same there: [`ExclusiveQueue`] and [`Listeners`].

mod broadcasts;
mod chance;
mod disk;
mod exclusive;
mod listeners;
mod message;
mod op;
mod oracle;
mod setup;
mod standings;
mod watch;
mod world;

pub use chance::{Bytes, Chance};
pub use exclusive::ExclusiveQueue;
pub use listeners::{Expected, Listeners};
pub use op::{DeliveryReport, Fence, Focus, Op, Options, TopicOp, WorkerOp};
pub use setup::Setup;
pub use world::World;

/// Places at which one connection at a time sits.
pub(crate) const PLACES: usize = 6;

/// Queues. A connection opens the first three under the handles 0, 1 and 2, and others as it likes.
pub(crate) const NAMES: [&str; 4] = ["a", "b", "ab", "c.d"];

/// Unanswered requests of one connection.
pub(crate) const IN_FLIGHT_MAX: usize = 30;

/// How long a dedup id is known.
pub(crate) const HOUR_MS: u64 = 3_600_000;
