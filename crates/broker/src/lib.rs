//! The broker's shell: sockets, clock, signals. It carries bytes to the engine and effects back, and decides
//! nothing about queues or messages.
//!
//! The way of a message: a `router`'s `reader` takes what a connection sent (at most 64 KiB a turn, and no
//! more work than a `turn` may be), the `switchboard` runs it through the connection's `Session` and turns frames into inputs (`inward`), the engine makes
//! effects of them, `outward` writes those into out-buffers, and `flush` gives each connection one write per tick.
//!
//! With one router all of that is one thread. With more, each router has its own and the `dispatcher` has the
//! engine's; inputs and effects travel by batches through a `mailbox`.
//!
//! What tasks leave behind goes to the `archive` and its own thread.
//!
//! What must outlive the broker goes to the `keeper` beside the engine, and comes back as an input once it is on disk.

pub mod archive;
mod clock;
pub mod config;
mod data;
mod diary;
mod dispatcher;
mod embedded;
mod error;
pub mod files;
pub mod keepalive;
pub mod keeper;
mod listen;
mod log_limit;
mod mailbox;
mod memory;
mod ring;
mod ringways;
mod router;
mod run;
mod settings;
mod shell;
pub mod switchboard;
mod tasks;
mod timer;
mod turn;

pub use embedded::Broker;
pub use error::ServeError;
pub use ring::{Finding, ask_for_sid, run_finding};
pub(crate) use run::Until;
pub(crate) use run::serve;
pub use run::{Bound, Ended, run};
pub use settings::{ArchiveSettings, Links, QueueDefaults, RingConfig, Settings};
