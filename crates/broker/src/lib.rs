//! A Turno broker, for the `turno` command and to embed in tests and other programs.
//!
//! [`Broker`] runs a broker on a thread of its own, [`run`] on this thread until a signal ends it. [`Settings`] has
//! everything that can be set; [`config`] reads it from a file and the environment.
//!
//! ```
//! use turno_broker::Broker;
//! use turno_client::blocking::Client;
//!
//! // By default a broker is on loopback at a free port, and keeps nothing on disk.
//! let broker = Broker::builder().name("test").start()?;
//! assert!(broker.addresses()[0].ip().is_loopback());
//!
//! let client = Client::connect(broker.url())?;
//! client.send("letters", "hello").wait()?;
//! drop(client);
//!
//! // Drains: what is under way is finished. The letter was in memory, and nobody took it.
//! let ended = broker.stop()?;
//! assert_eq!((ended.cut, ended.lost), (0, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The way of a message
//!
//! This is the shell: sockets, clock, signals. It carries bytes to the engine and effects back, and decides nothing about
//! queues or messages.
//!
//! A `router`'s `reader` takes what a connection sent (at most 64 KiB a turn, and no more work than a `turn` may be), the
//! [`connections`] runs it through the connection's `Session` and turns frames into inputs (`inward`), the engine makes
//! effects of them, `outward` writes those into out-buffers, and `flush` gives each connection one write per tick.
//!
//! With one router all of that is one thread. With more, each router has its own and the `dispatcher` has the
//! engine's; inputs and effects travel by batches through a `mailbox`.
//!
//! Output and files of tasks go to the [`archive`] and its own thread. Durable records go to the [`storage`]
//! beside the engine, and come back as an input once they are on disk.

// Public for the simulator, which runs these parts without sockets, and for the command line. They are not part of the API.
#[doc(hidden)]
pub mod archive;
mod clock;
pub mod config;
#[doc(hidden)]
pub mod connections;
mod data;
mod dispatcher;
mod embedded;
mod error;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod keepalive;
mod listen;
mod log_limit;
mod mailbox;
mod memory;
mod operator_log;
mod ring;
mod ring_routes;
mod router;
mod run;
mod settings;
#[doc(hidden)]
pub mod storage;
mod tasks;
mod threads;
mod timer;
mod turn;
mod zmq;

pub use turno_engine::{Policy, RetryDelay};
pub use turno_proto::model::ring::Sid;
pub use turno_proto::model::{Code, CodeText, Limits, NameError, QueueName};
pub use turno_proto::native::Secret;
pub use turno_proto::zmtp::SocketType;
pub use turno_proto::zmtp::curve::{BadKey, KeyPair, PublicKey};
pub use turno_store::{CommitError, CommitNo, DamageKind, Epoch, OpenError, ReadError, Retry};

pub use embedded::{Broker, BrokerBuilder};
pub use error::{ServeError, StoreError};
#[doc(hidden)]
pub use ring::{Finding, ask_for_sid, run_finding};
pub use run::{Bound, Ended, run};
pub use settings::{
    ArchiveSettings, IfTaken, IfUnreachable, Links, QueueDefaults, RingConfig, RingLinks, RingOrder, RingTiming,
    Settings, SidSource,
};
#[doc(hidden)]
pub use zmq::Endpoints as ZmqEndpoints;
pub use zmq::{ZmqAccess, ZmqAddress, ZmqEndpoint, ZmqPlace, ZmqRole};
