//! The log of a running broker: peers that come and go, refusals, failures, and the disk. Peers that come and go,
//! refusals, failures, and the disk.
//!
//! Peers cause these lines, so that each kind is written a few times a second at most; what is left out is counted and told.

use std::collections::BTreeMap;
use std::time::Duration;

use tracing::{info, warn};
use turno_engine::{Engine, ForemanEvent, Input};
use turno_proto::model::view::{Counters, WorkerView};
use turno_proto::model::{Code, ConnId};

/// How often counters are looked at, and how long a second of the budget is.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// Workers that are told of by name between two looks. More: counted.
const WORKERS_TOLD: u32 = 20;
/// Queues of a worker, or with dead letters, that are named. More: counted.
const QUEUES_TOLD: usize = 10;

/// The known peers, and entries that are not logged yet.
#[derive(Debug, Default)]
pub(crate) struct OperatorLog {
    /// Workers told of since the last look, and those that came and went beyond that.
    told: u32,
    untold: u64,
    /// Refusals since the last look, by reason.
    refused: BTreeMap<&'static str, u64>,
    /// Groups that the disk refused and that it took, since the last look.
    disk_refused: u64,
    disk_took: u64,
    is_disk_full: bool,
    is_drained: bool,
    is_idle: bool,
    before: Counters,
    dead: BTreeMap<String, u64>,
}

impl OperatorLog {
    /// The worker on the connection that an input is about, if that may make or end one.
    pub(super) fn worker_before(engine: &Engine, input: &Input) -> Option<(ConnId, Option<LoggedWorker>)> {
        let conn = match input {
            Input::Register { conn, .. }
            | Input::RegisterAs { conn, .. }
            | Input::RegisterKeeping { conn, .. }
            | Input::Deregister { conn, .. }
            | Input::Disconnected { conn } => *conn,
            Input::Foreman { conn, event } if matches!(**event, ForemanEvent::Hello(_)) => *conn,
            _ => return None,
        };
        Some((conn, LoggedWorker::of(engine, conn)))
    }

    /// The input was dealt with: a peer that is there now and was not before has connected.
    pub(super) fn worker_after(&mut self, engine: &Engine, conn: ConnId, before: Option<LoggedWorker>) {
        let (came, who) = match (before, LoggedWorker::of(engine, conn)) {
            (None, Some(who)) => (true, who),
            (Some(who), None) => (false, who),
            _ => return,
        };
        if self.told >= WORKERS_TOLD {
            self.untold += 1;
            return;
        }
        self.told += 1;
        let LoggedWorker { kind, view: WorkerView { id, name, address, slots, used, queues, .. } } = who;
        let slots = slots.to_string();
        if came {
            info!(worker = id.0, name, address, kind, slots, "worker connected");
        } else {
            let queues = some_of(queues.iter());
            info!(worker = id.0, name, address, kind, in_use = used, queues, "worker disconnected");
        }
    }

    /// Something was refused to a peer. Only what an operator can do something about is told.
    pub(super) fn refused(&mut self, code: Code) {
        let is_told = matches!(
            code,
            Code::OverMemory
                | Code::OverDisk
                | Code::TooManyInFlight
                | Code::TooManyQueues
                | Code::TooManyHandles
                | Code::TooManyJobs
                | Code::TooManySubscriptions
                | Code::TooManyLinks
                | Code::ArchiveFull
                | Code::NotLocal
        );
        if is_told {
            *self.refused.entry(code.name()).or_default() += 1;
        }
    }

    /// Notes an answer of the disk.
    pub(super) const fn disk(&mut self, input: &Input) {
        match input {
            Input::Refused { .. } => self.disk_refused += 1,
            Input::Persisted { .. } => self.disk_took += 1,
            _ => {}
        }
    }

    /// Writes down what has changed since the last look.
    pub(super) fn look(&mut self, engine: &Engine) {
        self.told = 0;
        let untold = std::mem::take(&mut self.untold);
        if untold > 0 {
            info!(count = untold, "more workers connected and disconnected");
        }
        for (code, count) in std::mem::take(&mut self.refused) {
            warn!(code, count, "refused client requests");
        }
        self.look_at_disk();
        self.look_at_drain(engine);
        let counters = *engine.counters();
        if counters.dead != self.before.dead {
            self.look_at_dead(engine);
        }
        let dropped = counters.dropped - self.before.dropped;
        if dropped > 0 {
            warn!(count = dropped, "workers dropped from a queue after expired deliveries");
        }
        self.before = counters;
    }

    fn look_at_disk(&mut self) {
        let (refused, took) = (std::mem::take(&mut self.disk_refused), std::mem::take(&mut self.disk_took));
        if refused > 0 && !self.is_disk_full {
            self.is_disk_full = true;
            warn!("disk full: refusing sends and jobs");
        } else if refused == 0 && took > 0 && self.is_disk_full {
            self.is_disk_full = false;
            info!("disk has space again: accepting sends and jobs");
        }
    }

    fn look_at_drain(&mut self, engine: &Engine) {
        let (was, is) = (std::mem::replace(&mut self.is_drained, engine.is_drained()), engine.is_drained());
        if !was && !is {
            return;
        }
        let (in_flight, tasks) = (engine.in_flight(), engine.tasks_running());
        match (was, is) {
            (false, true) => info!(in_flight, tasks, "draining for maintenance: no new work"),
            (true, false) => info!("resumed: accepting work"),
            _ => {}
        }
        let is_idle = is && in_flight + tasks == 0;
        if is_idle && !self.is_idle {
            info!("drained: nothing is running");
        }
        self.is_idle = is_idle;
    }

    fn look_at_dead(&mut self, engine: &Engine) {
        let (mut count, mut queues) = (0, Vec::new());
        for (queue, dead) in engine.dead_by_queue() {
            let before = self.dead.get(queue.as_str()).copied().unwrap_or(0);
            if dead > before {
                count += dead - before;
                queues.push(queue.to_string());
            }
            if dead != before {
                self.dead.insert(queue.to_string(), dead);
            }
        }
        if count > 0 {
            warn!(
                count,
                queues = some_of(queues.iter()),
                "messages became dead letters; list them with turno queue dead ls QUEUE"
            );
        }
    }
}

/// A worker as the log tells of it.
#[derive(Debug)]
pub(super) struct LoggedWorker {
    kind: &'static str,
    view: WorkerView,
}

impl LoggedWorker {
    fn of(engine: &Engine, conn: ConnId) -> Option<Self> {
        let kind = if engine.is_job_worker(conn) { "jobs" } else { "queues" };
        engine.worker(conn).map(|view| Self { kind, view })
    }
}

/// The first of them, and how many more there are.
fn some_of<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = names.len().saturating_sub(QUEUES_TOLD);
    let mut text = names.take(QUEUES_TOLD).map(String::as_str).collect::<Vec<_>>().join(",");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
