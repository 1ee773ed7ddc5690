//! The broker's shell: sockets, clock, signals. It carries bytes to the engine and effects back, and decides
//! nothing about queues or messages.
//!
//! The way of a message: `reader` takes what a connection sent (at most 64 KiB a turn), the `switchboard` runs it
//! through the connection's `Session` and turns frames into inputs (`inward`), the engine makes effects of them,
//! `outward` writes those into out-buffers, and `flush` gives each connection one write per tick.

mod clock;
mod data;
mod dispatcher;
mod error;
mod flush;
mod listen;
mod reader;
mod run;
mod settings;
mod socket;
mod sweep;
mod switchboard;

pub use error::ServeError;
pub(crate) use run::Until;
pub(crate) use run::serve;
pub use run::{Bound, Ended, run};
pub use settings::{QueueDefaults, Settings};
pub use switchboard::{Drained, Switchboard};
