//! Settings of the engine, given once at its start.

use std::num::NonZeroUsize;

use turno_proto::model::{Limits, MessageId, Moment, Mono, limits};

use crate::messages::RetryDelay;
use crate::messages::workers::policy::Policy;
use crate::ring::RingSettings;

/// The latest term that a broker can have while the clock here shows that: terms are milliseconds of the wall clock, or little more,
/// and clocks of two machines differ by no more than `ahead_ms`. A clock that stands before this program was written tells nothing.
pub(crate) const fn latest_term(clock_ms: u64, ahead_ms: u64) -> u64 {
    if clock_ms < limits::CLOCK_MIN_MS { limits::RING_INCARNATION_MAX } else { clock_ms.saturating_add(ahead_ms) }
}

/// Where telling every rota begins to cost more than looking at another one.
const OWN_ROTAS_MAX: usize = 8;

/// Settings of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// 48 random bits that the ids of its messages share, in every run.
    pub run: u64,
    /// Unix milliseconds at [`Mono::ZERO`]: deadlines outlive the run, and its clock does not.
    pub unix_ms: u64,
    /// The highest serial any message of the store ever had.
    pub last_serial: u64,
}

/// The engine's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The broker's name, for people.
    pub name: String,
    /// The broker's version, for people.
    pub version: String,
    /// The address for job workers, which clients can ask for.
    pub foreman: Option<String>,
    /// The data directory, shown by `status`.
    pub data: Option<String>,
    /// 48 random bits that tell the ids of this run's messages in memory from every other run's.
    pub run: u64,
    /// Random bits that are told to nobody: where things are in tables whose keys peers choose depends on them.
    pub seed: u64,
    /// Rises with every start of this broker: the upper part of the tokens of exclusive queues.
    pub term: u64,
    /// Every limit.
    pub limits: Limits,
    /// How long a worker may hold a delivery without extending it; `None`: as long as it is connected.
    pub lease_ms: Option<u64>,
    /// Deliveries in a row that expire at a worker until it is dropped from their queue, where the queue has no number
    /// of its own; 0: never.
    pub drop_after: u16,
    /// How long a failed send waits before it is tried again, where the queue has no waits of its own.
    pub retry_delay: RetryDelay,
    /// How long a job that has ended is known; `None`: until somebody removes it.
    pub keep_finished_ms: Option<u64>,
    /// How long tasks stay with a worker whose connection is lost, before another worker gets them.
    pub task_grace_ms: u64,
    /// How the next worker of a queue is chosen.
    pub policy: Policy,
    /// The store for sends; `None`: memory alone.
    pub store: Option<StoreSettings>,
    /// Bytes of stored messages that a queue keeps at hand for each priority; what waits behind them is only on disk.
    pub hot_bytes: u64,
    /// Messages whose rotas a worker stands in itself. With more it belongs to a shared rota. Only speed depends on it.
    pub own_rotas_max: usize,
    /// Bytes of memory that messages which are read back from the disk leave to new ones; `None`: as the limits say.
    pub kept_for_new: Option<u64>,
    /// Bytes that are kept of one attempt's output.
    pub output_per_task: u64,
    /// Brokers that links are wanted to, HOST:PORT each.
    pub links: Vec<String>,
    /// Names of brokers: the first of them that can be reached is home to the queues that are one worker's alone.
    pub link_order: Vec<String>,
    /// The broker's place in a ring; `None`: it stands by itself.
    pub ring: Option<RingSettings>,
    /// Requests that end in one go when their caller is gone or the broker drains.
    pub portion: NonZeroUsize,
}

impl Settings {
    /// A moment as it is stored.
    pub(crate) fn unix_ms(&self, at: Mono) -> u64 {
        self.store.map_or(0, |store| store.unix_ms) + at.as_millis()
    }

    /// The same, as it is shown.
    pub(crate) fn moment(&self, at: Mono) -> Moment {
        Moment::from_unix_ms(self.unix_ms(at))
    }

    /// The id of a message. That of a durable one names no place, and holds in every run of its store.
    #[inline]
    pub(crate) fn id(&self, serial: u64, place: Option<u32>) -> MessageId {
        match place {
            Some(place) => MessageId::new(self.run, serial, place),
            None => MessageId::durable(self.store_run(), serial),
        }
    }

    /// The run that ids of durable messages name.
    pub(crate) fn store_run(&self) -> u64 {
        self.store.map_or(self.run, |store| store.run)
    }

    /// A stored moment that is at most `most_ms` ahead: a clock on the wall that was set back since makes no wait longer.
    pub(crate) fn mono_within(&self, unix_ms: u64, from: Mono, most_ms: u64) -> Mono {
        self.mono(unix_ms).min(from.plus_millis(most_ms))
    }

    /// A stored moment; what was before this run's clock began is when it began.
    pub(crate) fn mono(&self, unix_ms: u64) -> Mono {
        Mono::from_millis(unix_ms.saturating_sub(self.store.map_or(0, |store| store.unix_ms)))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "turno".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            foreman: None,
            data: None,
            run: 1,
            seed: 1,
            term: 1,
            limits: Limits::default(),
            lease_ms: None,
            drop_after: limits::DROP_AFTER,
            retry_delay: RetryDelay::default(),
            keep_finished_ms: None,
            task_grace_ms: limits::TASK_GRACE_MS,
            policy: Policy::default(),
            store: None,
            hot_bytes: limits::HOT_BYTES,
            own_rotas_max: OWN_ROTAS_MAX,
            kept_for_new: None,
            output_per_task: limits::OUTPUT_PER_TASK_BYTES,
            links: Vec::new(),
            link_order: Vec::new(),
            ring: None,
            portion: limits::CHORES_MAX,
        }
    }
}
