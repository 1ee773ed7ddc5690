//! Code that the end-to-end tests share: a place of their own, a broker on a free port or on a host of a network, a way to it
//! that breaks, commands with a deadline, a peer that speaks raw frames, programs of libzmq, and the runner of the documents' terminal
//! blocks.
//!
//! The binary is the one beside the test programs; `cargo xtask test` builds it first.

mod archive;
mod broker;
mod circle;
mod cluster;
pub mod directory;
mod door;
mod job_worker;
mod jobs;
mod net;
mod netns;
mod peer;
mod place;
mod port;
pub mod process;
mod proxy;
mod pyzmq;
mod run;
pub mod schema;
mod script;
mod socket;
mod talk;
mod topics;
pub mod transcript;
pub mod tree;
pub mod wait;
mod zmtp;

pub use broker::Broker;
pub use circle::{Circle, heard_up_to};
pub use cluster::{Cluster, Plan};
pub use job_worker::JobWorker;
pub use net::{Host, Net};
pub use peer::Peer;
pub use place::Place;
pub use port::Port;
pub use proxy::{Cut, Proxy, Way};
pub use pyzmq::{Pyzmq, ZmqProgram, ZmqSocket};
pub use run::{Background, Run};
pub use script::{Act, Script};
pub use zmtp::Wire;
