//! What the broker tells about itself: the answers of admin calls, as plain values.
//!
//! Times are milliseconds, because a view crosses the wire and the reader's clock is another one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Slots;
pub use super::counters::Counters;
use super::job::JobId;
pub use super::reason::{Explanation, Reason};
use super::ring::view::RingView;

/// The broker as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerView {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Milliseconds since it started.
    pub up_ms: u64,
    /// True while it takes and hands out no work.
    pub draining: bool,
    /// True if that is for maintenance, and ends with `resume`.
    #[serde(default)]
    pub maintenance: bool,
    /// Where job workers find it: the address really bound; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreman: Option<String>,
    /// Open connections.
    pub connections: u64,
    /// Registered workers.
    pub workers: u64,
    /// Slots of all workers with a limit.
    pub slots: u64,
    /// Slots in use.
    pub slots_used: u64,
    /// Queues.
    pub queues: u64,
    /// Messages that wait for a slot.
    pub ready: u64,
    /// Messages at a worker.
    pub in_flight: u64,
    /// Dead letters.
    pub dead: u64,
    /// Its jobs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jobs: JobsView,
    /// Its data directory; `None`: it keeps everything in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The file system of that directory; `None` if the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskView>,
    /// Bytes of messages in memory, with overhead.
    pub bytes: u64,
    /// Bytes that the broker may hold, of whatever is counted in `memory`.
    pub bytes_max: u64,
    /// What it holds, by part.
    #[serde(default, skip_serializing_if = "MemoryView::is_nothing")]
    pub memory: MemoryView,
    /// Links that are up, whoever dialled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub links_up: u64,
    /// Links that are wanted: addresses that this broker dials.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub links_wanted: u64,
    /// Those of the wanted links that are not up, though they could be.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub links_down: u64,
    /// Its ring; `None`: it is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<Box<RingView>>,
    /// What happened so far.
    pub counters: Counters,
}

/// The jobs of a broker, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobsView {
    /// Jobs it knows, ended ones included.
    pub known: u64,
    /// Those that have not ended.
    pub unfinished: u64,
    /// Tasks that workers have, those of lost workers included.
    pub tasks_running: u64,
    /// Those of them whose worker is lost and may still come back.
    pub tasks_lost: u64,
}

/// A file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskView {
    /// Bytes that are free for the broker.
    pub free: u64,
    /// Bytes it has in all.
    pub total: u64,
}

/// The memory that the broker counts, in bytes. All of it together is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryView {
    /// Messages, with overhead.
    pub messages: u64,
    /// Dead letters among them.
    #[serde(skip_serializing_if = "is_zero")]
    pub dead: u64,
    /// Jobs: what their tasks do, their items, and the records of how their tasks ended.
    pub jobs: u64,
    /// Events that wait to be fetched, and publications of the ring that have not come round.
    pub events: u64,
    /// Calls to the archive that are not answered.
    pub archive: u64,
    /// In-buffers: what connections have sent of frames that are not complete.
    pub incoming: u64,
    /// Out-buffers: what connections have not read yet.
    pub outgoing: u64,
    /// What messages leave free for frames on their way in.
    #[serde(skip_serializing_if = "is_zero")]
    pub kept_free: u64,
    /// Connections that are not read from until there is memory for the frame they have begun.
    pub waiting: u64,
    /// Frames refused with `over_memory` before they were read.
    pub refused: u64,
    /// Connections closed with `over_memory`.
    pub closed: u64,
}

impl MemoryView {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// All bytes.
    pub const fn total(&self) -> u64 {
        let Self { messages, jobs, events, archive, incoming, outgoing, .. } = *self;
        messages + jobs + events + archive + incoming + outgoing
    }

    /// Whether dead letters take most of it.
    pub const fn is_mostly_dead(&self) -> bool {
        self.dead > self.total() / 2
    }

    /// Whether new messages are refused, or soon will be: of `max` bytes less than a sixteenth is left for them.
    pub const fn is_short(&self, max: u64) -> bool {
        self.total().saturating_add(self.kept_free) > max - max / 16
    }
}

/// What a queue may have of its own; `None`: as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// Whether sends to it are stored on disk before they are answered; otherwise they are kept in memory alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// Deliveries in a row that expire at a worker until it is dropped from the queue; 0: it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_after: Option<u16>,
    /// Messages a worker of several queues gets from this one in each round over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u8>,
}

impl QueueSettings {
    /// These, with what `change` has instead.
    #[must_use]
    pub fn changed_by(self, change: Self) -> Self {
        Self {
            durable: change.durable.or(self.durable),
            drop_after: change.drop_after.or(self.drop_after),
            weight: change.weight.or(self.weight),
        }
    }
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueView {
    /// Its name.
    pub name: String,
    /// Messages that wait for a slot.
    pub ready: u64,
    /// Messages at a worker.
    pub in_flight: u64,
    /// Dead letters.
    pub dead: u64,
    /// Bytes of them, with overhead and what their last failures said.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dead_bytes: u64,
    /// Bytes of its messages with overhead, in memory or on disk.
    pub bytes: u64,
    /// Age of the oldest waiting message.
    pub oldest_ms: Option<u64>,
    /// Workers that consume it.
    pub consumers: u64,
    /// Slots its consumers have free.
    pub slots_free: u64,
    /// Whether a send to it outlives the broker.
    #[serde(default)]
    pub durable: bool,
    /// Deliveries in a row that expire at a worker until it is dropped; 0: it never is.
    #[serde(default)]
    pub drop_after: u16,
    /// Messages a worker of several queues gets from this one in each round.
    #[serde(default)]
    pub weight: u8,
    /// Its own settings, if it has any.
    #[serde(default)]
    pub settings: Option<QueueSettings>,
    /// Whose it is, if a worker has it to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<ExclusiveView>,
    /// Workers that wait until it is free.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiters: u64,
    /// What happened so far.
    pub counters: Counters,
    /// The waiting messages at the head, a few of them; empty in listings.
    #[serde(default)]
    pub head: Vec<MessageView>,
}

/// Whose an exclusive queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusiveView {
    /// The number that fences earlier holders off.
    pub token: u64,
    /// The holder's id; `None` if it is gone and its last messages are on their way back.
    pub worker: Option<u64>,
}

/// A queue that a worker has to itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldingView {
    /// The queue.
    pub queue: String,
    /// The token it has it with.
    pub token: u64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(in crate::model) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One worker in a queue's rota, or outside of it: dropped, or waiting until the queue is free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerView {
    /// The worker's id.
    pub worker: u64,
    /// The worker's name.
    pub name: String,
    /// Its slots.
    pub slots: Slots,
    /// Slots in use, by all its queues.
    pub used: u32,
    /// Its place in the rota: 1 is next; `None` of one that was dropped, or that waits until the queue is free.
    pub turn: Option<u64>,
    /// Messages of this queue it has now.
    pub in_flight: u64,
    /// What counts against it; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The token with which it has the queue to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// Its place among those who wait until the queue is free: 1 is next; `None`: it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<u64>,
}

/// What a queue thinks of a worker at which deliveries expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StandingState {
    /// The last delivery expired, but not enough in a row.
    Suspect,
    /// It gets nothing from the queue until it asks again.
    Dropped,
    /// It asked again and gets one delivery at a time, until it settles one.
    Probing,
}

/// How a worker stands in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// What it comes to.
    pub state: StandingState,
    /// Deliveries in a row that expired at it.
    pub expired: u32,
    /// Milliseconds since it was dropped.
    pub dropped_ms: Option<u64>,
    /// The code the last of them expired with.
    pub reason: String,
}

/// How a worker stands in one of its queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingView {
    /// The queue.
    pub queue: String,
    /// How.
    pub standing: Standing,
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// Registered, but its first PING has not come: not in any rota (S1.7).
    Greeting,
    /// Takes work.
    Ready,
    /// Takes no new work; finishes what it has.
    Draining,
}

/// What a worker works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerKind {
    /// Messages of queues.
    #[default]
    Queue,
    /// Tasks of jobs.
    Job,
    /// Both, over two connections with one account of slots.
    Both,
}

/// A task that a worker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTaskView {
    /// Its job.
    pub job: JobId,
    /// The name of its job; empty if the job was removed.
    #[serde(default)]
    pub name: String,
    /// Its number.
    pub task: u32,
    /// Its attempt.
    pub attempt: u32,
    /// Slots that it takes.
    pub slots: u16,
    /// When the attempt began; `None` of one that was told to stop and does not count as running any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_ms: Option<u64>,
}

/// One worker. One that has two connections is shown once, as the connection for jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its id: a number that no other worker of this run gets.
    pub id: u64,
    /// What it works on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: WorkerKind,
    /// Its name.
    pub name: String,
    /// Where it connects from.
    pub address: String,
    /// What it is doing.
    pub state: WorkerState,
    /// Its slots.
    pub slots: Slots,
    /// Of a worker for jobs: the slots it started with. It cannot be given more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_max: Option<u32>,
    /// Slots in use.
    pub used: u32,
    /// The queues it consumes.
    pub queues: Vec<String>,
    /// Those of them that it has to itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusive: Vec<HoldingView>,
    /// The queues it waits for until they are free.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// What it has that others may not; only workers for jobs say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Milliseconds since it registered.
    pub registered_ms: u64,
    /// Milliseconds since it was last given work; `None` if never.
    pub idle_ms: Option<u64>,
    /// Deliveries it got.
    pub deliveries: u64,
    /// Deliveries it settled by REPLY or ACK.
    pub settled: u64,
    /// Deliveries it settled by FAIL.
    pub failed: u64,
    /// How often it was dropped from a queue.
    #[serde(default)]
    pub dropped: u64,
    /// Bytes of deliveries that it has not read: it gets nothing more before it has. 0 while it reads.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread_bytes: u64,
    /// The queues in which something counts against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standings: Vec<StandingView>,
    /// Messages that it has now, a few of them; empty in listings.
    #[serde(default)]
    pub holds: Vec<MessageView>,
    /// How many tasks of jobs it has now.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tasks_running: u64,
    /// Some of them, by job and number; empty in listings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<WorkerTaskView>,
}

/// What a message wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// A reply.
    Request,
    /// To be settled.
    Send,
    /// The replies of all consumers.
    Broadcast,
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// In the backlog.
    Ready,
    /// At a worker.
    InFlight,
    /// Over for its caller; its worker has been told to stop and still holds the slots.
    Stopping,
    /// On its way to the disk.
    Storing,
    /// A dead letter.
    Dead,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageView {
    /// Its id.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// What it wants.
    pub kind: MessageKind,
    /// Where it is.
    pub state: MessageState,
    /// Attempts begun so far.
    pub attempts: u16,
    /// Attempts it may have.
    pub attempts_max: u16,
    /// Its priority, 9 first.
    pub priority: u8,
    /// Slots a delivery of it takes.
    pub cost: u16,
    /// Bytes of header block and body.
    pub bytes: u64,
    /// Milliseconds since it came in.
    pub age_ms: u64,
    /// Milliseconds to its deadline.
    pub deadline_ms: Option<u64>,
    /// The worker that has it; `None` also if it crossed to another broker.
    pub worker: Option<u64>,
    /// Brokers that it came through before this one, the one that it was given to first: their names, or the ids of
    /// those whose names are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came_by: Vec<String>,
}

/// One dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadView {
    /// The message.
    pub message: MessageView,
    /// What its last failure said; the beginning of it in listings.
    pub failure: String,
}
