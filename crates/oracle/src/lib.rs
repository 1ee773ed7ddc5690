//! One generator of operations on an engine, and one oracle for what comes of them.
//!
//! Three drive it: property tests and the fuzzer with bytes, the simulator with seeds ([`Chance`]). [`Op`]s are drawn, a
//! [`World`] plays them on one engine with its peers, its clock and its disk, and an account that shares nothing with the engine
//! judges every effect. The simulator's own worlds, which see brokers only through the cores of clients, take from here the
//! rules that are the same there: [`Place`] for exclusive queues, [`Listeners`] for topics, [`chance`](Chance) itself.

mod casts;
mod chance;
mod disk;
mod exclusive;
mod listeners;
mod manner;
mod message;
mod op;
mod oracle;
mod standings;
mod watch;
mod world;

pub use chance::{Bytes, Chance};
pub use exclusive::Place;
pub use listeners::{Expected, Listeners};
pub use manner::Manner;
pub use op::{Fence, Focus, Op, Options, TopicOp, Word, WorkerOp};
pub use world::World;

/// Places at which one connection at a time sits.
pub(crate) const PLACES: usize = 6;

/// Queues. A connection opens the first three under the handles 0, 1 and 2, and others as it likes.
pub(crate) const NAMES: [&str; 4] = ["a", "b", "ab", "c.d"];

/// Unanswered requests of one connection.
pub(crate) const IN_FLIGHT_MAX: usize = 30;

/// How long a dedup id is known.
pub(crate) const HOUR_MS: u64 = 3_600_000;
