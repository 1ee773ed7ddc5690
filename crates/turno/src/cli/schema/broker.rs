//! The broker, as programs read it.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::{BrokerView, Counters, MemoryView};

use super::Document;
use super::ring::RingBody;
use crate::cli::time::{Clock, rfc3339, seconds};

/// Printed once when a broker is ready. A gateway that is off is null.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ready {
    /// The first native address really bound.
    pub(crate) native: Option<String>,
    /// Every native address really bound.
    pub(crate) listen: Vec<String>,
    /// The path of the Unix socket.
    pub(crate) unix: Option<String>,
    /// The foreman's address.
    pub(crate) foreman: Option<String>,
    /// The ring's address.
    pub(crate) ring: Option<String>,
}

impl Document for Ready {
    const SCHEMA: &'static str = "turno.ready/1";
}

/// What happened since the broker started. Numbers only rise.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CountersBody {
    /// Requests taken in.
    pub(crate) requests: u64,
    /// Sends taken in.
    pub(crate) sends: u64,
    /// Broadcasts taken in.
    pub(crate) broadcasts: u64,
    /// Messages refused at the door.
    pub(crate) refused: u64,
    /// Deliveries made.
    pub(crate) deliveries: u64,
    /// Deliveries settled by a reply.
    pub(crate) replied: u64,
    /// Deliveries of sends settled well.
    pub(crate) acked: u64,
    /// Deliveries that failed.
    pub(crate) failed: u64,
    /// Deliveries that ended because the worker was lost.
    pub(crate) lost: u64,
    /// Messages put back for another attempt.
    pub(crate) retried: u64,
    /// Deliveries given back without counting as an attempt.
    pub(crate) returned: u64,
    /// Messages that passed their deadline.
    pub(crate) expired: u64,
    /// Messages cancelled.
    pub(crate) cancelled: u64,
    /// Messages that became dead letters.
    pub(crate) dead: u64,
    /// Dedup ids forgotten before their hour was over, because their queue had too many.
    pub(crate) dedup_forgotten: u64,
    /// Answers for a delivery that was no longer the worker's.
    pub(crate) late: u64,
    /// Answers for a delivery the worker had answered already.
    pub(crate) doubled: u64,
    /// Answers for a delivery of another worker.
    pub(crate) forged: u64,
    /// Replies whose caller was gone.
    pub(crate) unclaimed: u64,
    /// Workers dropped from a queue because deliveries expired at them.
    pub(crate) dropped: u64,
}

impl From<&Counters> for CountersBody {
    fn from(counters: &Counters) -> Self {
        Self {
            requests: counters.requests,
            sends: counters.sends,
            broadcasts: counters.broadcasts,
            refused: counters.refused,
            deliveries: counters.deliveries,
            replied: counters.replied,
            acked: counters.acked,
            failed: counters.failed,
            lost: counters.lost,
            retried: counters.retried,
            returned: counters.returned,
            expired: counters.expired,
            cancelled: counters.cancelled,
            dead: counters.dead,
            dedup_forgotten: counters.dedup_forgotten,
            late: counters.late,
            doubled: counters.doubled,
            forged: counters.forged,
            unclaimed: counters.unclaimed,
            dropped: counters.dropped,
        }
    }
}

impl CountersBody {
    /// Those that are not zero, for people.
    pub(crate) fn told(&self) -> String {
        let Ok(serde_json::Value::Object(map)) = serde_json::to_value(self) else { return String::new() };
        let parts: Vec<String> =
            map.iter().filter(|(_, count)| **count != 0).map(|(name, count)| format!("{count} {name}")).collect();
        if parts.is_empty() { "nothing yet".to_owned() } else { parts.join(", ") }
    }
}

/// The jobs of a broker, as counts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobsBody {
    /// Jobs it knows, ended ones included.
    pub(crate) known: u64,
    /// Those that have not ended.
    pub(crate) unfinished: u64,
    /// Tasks that workers have, those of lost workers included.
    pub(crate) tasks_running: u64,
    /// Those of them whose worker is lost and may still come back.
    pub(crate) tasks_lost: u64,
}

/// The file system of the data directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DiskBody {
    /// Bytes that are free for the broker.
    pub(crate) free: u64,
    /// Bytes it has in all.
    pub(crate) total: u64,
}

/// The memory that the broker counts, in bytes. All of it together is limited.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct MemoryBody {
    /// All of it.
    pub(crate) used: u64,
    /// Messages, with overhead.
    pub(crate) messages: u64,
    /// Dead letters among them.
    pub(crate) dead: u64,
    /// Jobs: what their tasks do, their items, and the records of how their tasks ended.
    pub(crate) jobs: u64,
    /// Events that wait to be fetched, and publications of the ring that have not come round.
    pub(crate) events: u64,
    /// Calls to the archive that are not answered.
    pub(crate) archive: u64,
    /// In-buffers: what connections have sent of frames that are not complete.
    pub(crate) incoming: u64,
    /// Out-buffers: what connections have not read yet.
    pub(crate) outgoing: u64,
    /// What messages leave free for frames on their way in.
    pub(crate) kept_free: u64,
    /// Connections that are not read from until there is memory for the frame they have begun.
    pub(crate) waiting: u64,
    /// Frames refused with `over_memory` before they were read.
    pub(crate) refused: u64,
    /// Connections closed with `over_memory`.
    pub(crate) closed: u64,
}

impl From<&MemoryView> for MemoryBody {
    fn from(view: &MemoryView) -> Self {
        let MemoryView {
            messages,
            dead,
            jobs,
            events,
            archive,
            incoming,
            outgoing,
            kept_free,
            waiting,
            refused,
            closed,
        } = *view;
        let used = view.total();
        Self { used, messages, dead, jobs, events, archive, incoming, outgoing, kept_free, waiting, refused, closed }
    }
}

/// The broker as a whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BrokerBody {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// When it started.
    pub(crate) started_at: String,
    /// Seconds since it started.
    pub(crate) up_seconds: f64,
    /// True while it takes and hands out no work.
    pub(crate) draining: bool,
    /// True if that is for maintenance, until `turno resume`.
    pub(crate) maintenance: bool,
    /// Where job workers find it, an address really bound; null if there is none.
    pub(crate) foreman: Option<String>,
    /// Open connections.
    pub(crate) connections: u64,
    /// Registered workers.
    pub(crate) workers: u64,
    /// Slots of all workers with a limit.
    pub(crate) slots: u64,
    /// Slots in use.
    pub(crate) slots_used: u64,
    /// Queues.
    pub(crate) queues: u64,
    /// Messages that wait for a slot.
    pub(crate) ready: u64,
    /// Messages at a worker.
    pub(crate) in_flight: u64,
    /// Dead letters.
    pub(crate) dead: u64,
    /// Its jobs.
    pub(crate) jobs: JobsBody,
    /// Its data directory; null if it keeps everything in memory.
    pub(crate) data: Option<String>,
    /// The file system of that directory; null if there is none, or if the system does not tell.
    pub(crate) disk: Option<DiskBody>,
    /// Bytes of messages in memory, with overhead.
    pub(crate) bytes: u64,
    /// Bytes that the broker may hold, of all that `memory` counts.
    pub(crate) bytes_max: u64,
    /// What it holds, by part.
    pub(crate) memory: MemoryBody,
    /// Links that are up, whoever dialled.
    pub(crate) links_up: u64,
    /// Addresses that links are wanted to.
    pub(crate) links_wanted: u64,
    /// Those of the wanted that are down, or on their way.
    pub(crate) links_down: u64,
    /// The ring that it is in; null if it is in none.
    pub(crate) ring: Option<RingBody>,
    /// What happened so far.
    pub(crate) counters: CountersBody,
}

impl BrokerBody {
    pub(crate) fn new(view: &BrokerView, clock: &Clock) -> Self {
        Self {
            name: view.name.clone(),
            version: view.version.clone(),
            started_at: rfc3339(clock.ago(view.up_ms)),
            up_seconds: seconds(view.up_ms),
            draining: view.draining,
            maintenance: view.maintenance,
            foreman: view.foreman.clone(),
            connections: view.connections,
            workers: view.workers,
            slots: view.slots,
            slots_used: view.slots_used,
            queues: view.queues,
            ready: view.ready,
            in_flight: view.in_flight,
            dead: view.dead,
            jobs: JobsBody {
                known: view.jobs.known,
                unfinished: view.jobs.unfinished,
                tasks_running: view.jobs.tasks_running,
                tasks_lost: view.jobs.tasks_lost,
            },
            data: view.data.clone(),
            disk: view.disk.map(|disk| DiskBody { free: disk.free, total: disk.total }),
            bytes: view.bytes,
            bytes_max: view.bytes_max,
            memory: MemoryBody::from(&view.memory),
            links_up: view.links_up,
            links_wanted: view.links_wanted,
            links_down: view.links_down,
            ring: view.ring.as_ref().map(|ring| RingBody::new(ring, clock)),
            counters: CountersBody::from(&view.counters),
        }
    }
}

/// The answer of `turno status`, `turno drain` and `turno resume`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusDocument {
    pub(crate) broker: BrokerBody,
}

impl Document for StatusDocument {
    const SCHEMA: &'static str = "turno.status/1";
}
