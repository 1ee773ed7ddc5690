//! Views of the broker.

use serde::{Deserialize, Serialize};

use crate::model::ring::view::RingView;
use crate::model::view::Counters;
use crate::model::{Moment, Seconds};

/// The broker as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct BrokerView {
    /// Name of the broker.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// When it started.
    pub started_at: Moment,
    /// Seconds since it started.
    pub up_seconds: Seconds,
    /// True while the broker accepts and delivers nothing.
    pub draining: bool,
    /// True if it is drained for maintenance, until `turno resume`.
    pub maintenance: bool,
    /// The bound address for job workers; null if there is none.
    pub foreman: Option<String>,
    /// Open connections.
    pub connections: u64,
    /// Registered workers.
    pub workers: u64,
    /// Slots of all workers with limited slots.
    pub slots: u64,
    /// Slots in use.
    pub slots_used: u64,
    /// Number of queues.
    pub queues: u64,
    /// Messages that wait for a free slot.
    pub ready: u64,
    /// Messages that wait for a time.
    pub delayed: u64,
    /// Messages at workers.
    pub in_flight: u64,
    /// Dead letters.
    pub dead: u64,
    /// Jobs, as counts.
    pub jobs: JobsView,
    /// Data directory; null if the broker keeps everything in memory.
    pub data: Option<String>,
    /// File system of the data directory; null if there is none or if it is unknown.
    pub disk: Option<DiskView>,
    /// Bytes of messages in memory, with overhead.
    pub bytes: u64,
    /// Limit for all bytes that `memory` counts.
    pub bytes_max: u64,
    /// Memory in use, by part.
    pub memory: MemoryView,
    /// Links that are up, in both directions.
    pub links_up: u64,
    /// Configured links: addresses that the broker dials.
    pub links_wanted: u64,
    /// Configured links that are down or being dialled.
    pub links_down: u64,
    /// The broker's ring; null if it is in none.
    pub ring: Option<Box<RingView>>,
    /// Counters since the start.
    pub counters: Counters,
}

/// The jobs of a broker, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct JobsView {
    /// Known jobs, including ended ones.
    pub known: u64,
    /// Jobs that have not ended.
    pub unfinished: u64,
    /// Tasks at workers, including lost workers.
    pub tasks_running: u64,
    /// Running tasks whose worker is lost and might return.
    pub tasks_lost: u64,
}

/// The file system of the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct DiskView {
    /// Free bytes.
    pub free: u64,
    /// Total bytes.
    pub total: u64,
}

/// Memory that counts against `limits.memory`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct MemoryView {
    /// The sum of the parts.
    pub used: u64,
    /// Messages, with overhead.
    pub messages: u64,
    /// The part of `messages` that are dead letters.
    pub dead: u64,
    /// Jobs: their commands, their items, and the results of their tasks.
    pub jobs: u64,
    /// Events that wait to be fetched, and ring publications that have not come round.
    pub events: u64,
    /// Unanswered calls to the archive.
    pub archive: u64,
    /// Input buffers: incomplete frames of connections.
    pub incoming: u64,
    /// Output buffers: bytes that connections have not read.
    pub outgoing: u64,
    /// Bytes that messages leave free for incoming frames.
    pub kept_free: u64,
    /// Connections that the broker does not read until there is memory for their next frame.
    pub waiting: u64,
    /// Frames refused with `over_memory`.
    pub refused: u64,
    /// Connections closed with `over_memory`.
    pub closed: u64,
}

impl MemoryView {
    /// The same, with `used` as the sum of all parts.
    #[must_use]
    pub const fn summed(self) -> Self {
        let Self { messages, jobs, events, archive, incoming, outgoing, .. } = self;
        Self { used: messages + jobs + events + archive + incoming + outgoing, ..self }
    }

    /// Whether dead letters take most of it.
    pub const fn is_mostly_dead(&self) -> bool {
        self.dead > self.used / 2
    }

    /// Whether new messages are refused, or soon will be: of `max` bytes less than a sixteenth is left for them.
    pub const fn is_short(&self, max: u64) -> bool {
        self.used.saturating_add(self.kept_free) > max - max / 16
    }
}
