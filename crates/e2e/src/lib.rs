//! What the end-to-end tests share: a place of their own, a broker on a free port, commands with a deadline, a peer
//! that speaks raw frames, and the runner of the documents' terminal blocks.
//!
//! The binary is the one beside the test programs; `cargo xtask test` builds it first.

mod archive;
mod broker;
pub mod directory;
mod job_worker;
mod jobs;
mod peer;
mod place;
pub mod process;
mod proxy;
mod run;
pub mod schema;
mod script;
mod socket;
mod talk;
mod topics;
pub mod transcript;
pub mod tree;
pub mod wait;

pub use broker::Broker;
pub use job_worker::JobWorker;
pub use peer::Peer;
pub use place::Place;
pub use proxy::Proxy;
pub use run::{Background, Run};
pub use script::{Act, Script};
