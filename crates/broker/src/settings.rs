//! Settings of a broker.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use turno_engine::{Policy, RetryDelay};
use turno_proto::model::ring::Sid;
use turno_proto::model::{Limits, limits};
use turno_proto::native::Secret;

use crate::zmq::ZmqEndpoint;

/// The defaults of every queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueDefaults {
    /// How long a worker may hold a delivery without extending it; `None`: as long as it is connected.
    pub lease: Option<Duration>,
    /// How the next worker of a queue is chosen.
    pub policy: Policy,
    /// Deliveries in a row that expire at a worker until it is dropped from their queue; 0: never.
    pub drop_after: u16,
    /// How long a failed send waits before it is tried again.
    pub retry_delay: RetryDelay,
}

impl Default for QueueDefaults {
    fn default() -> Self {
        Self {
            lease: None,
            policy: Policy::default(),
            drop_after: limits::DROP_AFTER,
            retry_delay: RetryDelay::default(),
        }
    }
}

/// How much room what tasks leave behind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveSettings {
    /// Bytes that are kept of one attempt's output.
    pub output_per_task: u64,
    /// Bytes of all output; in memory no more than [`limits::ARCHIVE_MEMORY_BYTES`].
    pub output_total: u64,
    /// Bytes of all results; in memory no more than [`limits::ARCHIVE_MEMORY_BYTES`].
    pub result_total: u64,
}

impl Default for ArchiveSettings {
    fn default() -> Self {
        Self {
            output_per_task: limits::OUTPUT_PER_TASK_BYTES,
            output_total: limits::OUTPUT_TOTAL_BYTES,
            result_total: limits::RESULT_TOTAL_BYTES,
        }
    }
}

/// Links to other brokers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Links {
    /// Brokers that links are wanted to.
    pub to: Vec<String>,
    /// The shared secret of all linked brokers; without it they must be on one machine.
    pub secret: Option<Secret>,
    /// Names of brokers, the first that can be reached being home to exclusive queues.
    pub order: Vec<String>,
}

/// A broker's place in a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingConfig {
    /// The broker's sid in the ring.
    pub sid: Sid,
    /// Where it listens for other members; port 0: the system chooses one.
    pub listen: SocketAddr,
    /// The host that others are told to reach it at; `None`: the address that it listens on, or loopback if that is any.
    pub advertise: Option<String>,
    /// Where its sid is from.
    pub sid_source: SidSource,
    /// The member to join at, HOST:PORT, with its sid if it was given; `None`: it is the first of its ring.
    pub next: Option<(Option<Sid>, String)>,
    /// The start of a broker that cannot reach `next`.
    pub if_unreachable: IfUnreachable,
    /// The order of members.
    pub order: RingOrder,
    /// Timers of the connections to neighbours.
    pub timing: RingTiming,
    /// The shared secret of all members; without it they must be on one machine.
    pub secret: Option<Secret>,
    /// Links between neighbours.
    pub links: RingLinks,
}

impl RingConfig {
    /// The first member of a ring, with that sid, listening there.
    pub fn new(sid: Sid, listen: SocketAddr) -> Self {
        Self {
            sid,
            listen,
            advertise: None,
            sid_source: SidSource::default(),
            next: None,
            if_unreachable: IfUnreachable::default(),
            order: RingOrder::default(),
            timing: RingTiming::default(),
            secret: None,
            links: RingLinks::default(),
        }
    }
}

/// Where a broker's sid is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SidSource {
    /// Its settings.
    #[default]
    Configured,
    /// A member named it as free. The broker is ready once the ring has taken it in.
    Assigned,
}

/// The start of a broker that cannot reach the member to join at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfUnreachable {
    /// It fails.
    #[default]
    Fail,
    /// It goes on trying.
    Retry,
}

/// The order of the members of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingOrder {
    /// Each before the member that it joined at.
    #[default]
    ByJoining,
    /// By sid.
    BySid,
}

/// Timers of the connections between neighbours of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingTiming {
    /// For any network.
    #[default]
    Usual,
    /// For a network that is quick and does not fail for moments.
    Fast,
}

/// Links between neighbours of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingLinks {
    /// None: the ring carries topics only.
    #[default]
    None,
    /// Neighbours are linked, so that messages cross between them.
    Neighbours,
}

/// The start of a broker if an address that it should listen on is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfTaken {
    /// It fails.
    #[default]
    Fail,
    /// It listens at a free port of the same host.
    FreePort,
}

/// A broker's settings. Begin with the default and set fields:
///
/// ```
/// use std::time::Duration;
/// use turno_broker::{Broker, Settings};
///
/// let mut settings = Settings::default();
/// settings.name = "test".to_owned();
/// settings.queue_defaults.lease = Some(Duration::from_secs(60));
/// Broker::start(settings)?.stop()?;
/// # Ok::<(), turno_broker::ServeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Its name, for people.
    pub name: String,
    /// Addresses that it listens on.
    pub listen: Vec<SocketAddr>,
    /// Where it listens for job workers.
    pub foreman: Vec<SocketAddr>,
    /// The start if one of these is taken.
    pub foreman_if_taken: IfTaken,
    /// Where ZeroMQ programs connect.
    pub zmq: Vec<ZmqEndpoint>,
    /// Its directory: lock, Unix socket, and the store of what is sent. `None`: none of these, and what is sent ends
    /// with the broker.
    pub data: Option<PathBuf>,
    /// The brokers that clients are told of, in order. Empty: this one alone.
    pub brokers: Vec<String>,
    /// The heartbeat of peers that ask for none.
    pub heartbeat_ms: u32,
    /// How long what runs may take to finish when the broker is asked to end.
    pub drain_timeout: Duration,
    /// Routers: 1 shares the engine's thread, more have threads of their own.
    pub routers: usize,
    /// Every limit.
    pub limits: Limits,
    /// The defaults of every queue.
    pub queue_defaults: QueueDefaults,
    /// How much room what tasks leave behind has.
    pub archive: ArchiveSettings,
    /// How long a job that has ended is known; `None`: until somebody removes it.
    pub keep_finished: Option<Duration>,
    /// How long the tasks of a lost worker wait for it, before another worker gets them.
    pub worker_grace: Duration,
    /// Links to other brokers.
    pub links: Links,
    /// Its place in a ring; `None`: it stands by itself.
    pub ring: Option<RingConfig>,
}

impl Default for Settings {
    /// Loopback, any free port, no directory: for tests and for embedding.
    fn default() -> Self {
        Self {
            name: "turno".to_owned(),
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            foreman: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            foreman_if_taken: IfTaken::Fail,
            zmq: Vec::new(),
            data: None,
            brokers: Vec::new(),
            heartbeat_ms: limits::HEARTBEAT_MS,
            drain_timeout: Duration::from_secs(30),
            routers: 1,
            limits: Limits::default(),
            queue_defaults: QueueDefaults::default(),
            archive: ArchiveSettings::default(),
            keep_finished: Some(Duration::from_millis(limits::KEEP_FINISHED_MS)),
            worker_grace: Duration::from_millis(limits::TASK_GRACE_MS),
            links: Links::default(),
            ring: None,
        }
    }
}
