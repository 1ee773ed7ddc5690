//! Workers, as programs read them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::{HoldingView, StandingView, WorkerKind, WorkerState, WorkerTaskView, WorkerView};

use super::Document;
use super::job::at;
use super::message::MessageBody;
use super::queue::{StandingBody, count_or_unlimited, limited};
use crate::cli::table::{Column, Row};
use crate::cli::time::{Clock, rfc3339};

/// A queue that a worker has to itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HoldingBody {
    /// The queue.
    pub(crate) queue: String,
    /// The token, a decimal number.
    pub(crate) token: String,
}

impl From<&HoldingView> for HoldingBody {
    fn from(view: &HoldingView) -> Self {
        Self { queue: view.queue.clone(), token: view.token.to_string() }
    }
}

/// A worker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkerRow {
    /// Its id: no other worker of this broker's run gets the same.
    pub(crate) id: String,
    /// What it works on: `queue` (messages of queues), `job` (tasks of jobs) or `both`.
    pub(crate) kind: String,
    /// Its name; need not be unique.
    pub(crate) name: String,
    /// Where it connects from.
    pub(crate) address: String,
    /// `greeting`, `ready` or `draining`.
    pub(crate) state: String,
    /// Its slots; null without a limit.
    pub(crate) slots: Option<u32>,
    /// Of a worker for jobs: the slots it started with, which `worker resize` cannot exceed; null for others.
    pub(crate) slots_max: Option<u32>,
    /// Slots in use.
    pub(crate) used: u32,
    /// Tasks of jobs that it has.
    pub(crate) tasks_running: u64,
    /// Slots free; null without a limit.
    pub(crate) free: Option<u32>,
    /// The queues it consumes.
    pub(crate) queues: Vec<String>,
    /// Those of them that it has to itself.
    pub(crate) exclusive: Vec<HoldingBody>,
    /// The queues it waits for until they are free.
    pub(crate) waits_for: Vec<String>,
    /// What it has that others may not, for jobs that ask for it.
    pub(crate) labels: BTreeMap<String, String>,
    /// When it registered.
    pub(crate) registered_at: String,
    /// When it was last given work; null if never.
    pub(crate) last_used_at: Option<String>,
    /// Deliveries it got.
    pub(crate) deliveries: u64,
    /// Deliveries it settled well.
    pub(crate) settled: u64,
    /// Deliveries that failed at it.
    pub(crate) failed: u64,
    /// How often it was dropped from a queue.
    pub(crate) dropped: u64,
    /// Bytes of deliveries that it has not read: it gets nothing more before it has. 0 while it reads.
    pub(crate) unread_bytes: u64,
}

impl WorkerRow {
    pub(crate) fn new(view: &WorkerView, clock: &Clock) -> Self {
        Self {
            id: view.id.to_string(),
            kind: kind(view.kind).to_owned(),
            name: view.name.clone(),
            address: view.address.clone(),
            state: state(view.state).to_owned(),
            slots: limited(view.slots),
            slots_max: view.slots_max,
            used: view.used,
            tasks_running: view.tasks_running,
            free: limited(view.slots).map(|slots| slots.saturating_sub(view.used)),
            queues: view.queues.clone(),
            exclusive: view.exclusive.iter().map(HoldingBody::from).collect(),
            waits_for: view.waits_for.clone(),
            labels: view.labels.clone(),
            registered_at: rfc3339(clock.ago(view.registered_ms)),
            last_used_at: view.idle_ms.map(|ms| rfc3339(clock.ago(ms))),
            deliveries: view.deliveries,
            settled: view.settled,
            failed: view.failed,
            dropped: view.dropped,
            unread_bytes: view.unread_bytes,
        }
    }
}

const fn kind(kind: WorkerKind) -> &'static str {
    match kind {
        WorkerKind::Queue => "queue",
        WorkerKind::Job => "job",
        WorkerKind::Both => "both",
    }
}

const fn state(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Greeting => "greeting",
        WorkerState::Ready => "ready",
        WorkerState::Draining => "draining",
    }
}

impl Document for WorkerRow {
    const SCHEMA: &'static str = "turno.worker_row/1";
}

impl Row for WorkerRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("id", |row, _| row.id.clone()),
        Column::new("name", |row, _| row.name.clone()),
        Column::new("kind", |row, _| row.kind.clone()),
        Column::new("address", |row, _| row.address.clone()),
        Column::new("state", |row, _| row.state.clone()),
        Column::new("slots", |row, _| count_or_unlimited(row.slots)),
        Column::new("used", |row, _| row.used.to_string()),
        Column::new("free", |row, _| count_or_unlimited(row.free)),
        Column::new("queues", |row, _| row.queues.join(",")),
        Column::wide("tasks_running", |row, _| row.tasks_running.to_string()),
        Column::wide("slots_max", |row, _| row.slots_max.map(|slots| slots.to_string()).unwrap_or_default()),
        Column::wide("exclusive", |row, _| {
            row.exclusive.iter().map(|held| held.queue.as_str()).collect::<Vec<_>>().join(",")
        }),
        Column::wide("waits_for", |row, _| row.waits_for.join(",")),
        Column::wide("labels", |row, _| label_words(&row.labels, ",")),
        Column::wide("registered_at", |row, clock| moment(Some(&row.registered_at), clock)),
        Column::wide("last_used_at", |row, clock| moment(row.last_used_at.as_deref(), clock)),
        Column::wide("deliveries", |row, _| row.deliveries.to_string()),
        Column::wide("settled", |row, _| row.settled.to_string()),
        Column::wide("failed", |row, _| row.failed.to_string()),
        Column::wide("dropped", |row, _| row.dropped.to_string()),
    ];

    fn name(&self) -> String {
        self.id.clone()
    }
}

/// Labels as they are typed.
pub(crate) fn label_words(labels: &BTreeMap<String, String>, between: &str) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(between)
}

pub(super) fn moment(text: Option<&str>, clock: &Clock) -> String {
    let moment = text.and_then(|text| text.parse::<Timestamp>().ok());
    moment.map(|moment| clock.cell(moment)).unwrap_or_default()
}

/// The workers of a broker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkerListDocument<'a> {
    /// In order of id.
    pub(crate) workers: &'a [WorkerRow],
    /// What `--after` takes for the next page; null at the end.
    pub(crate) next: Option<String>,
}

impl Document for WorkerListDocument<'_> {
    const SCHEMA: &'static str = "turno.worker_list/1";
}

/// How a worker stands in one of its queues.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueueStandingBody {
    /// The queue.
    pub(crate) queue: String,
    #[serde(flatten)]
    pub(crate) standing: StandingBody,
}

/// A worker with what it holds.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkerBody {
    #[serde(flatten)]
    pub(crate) row: WorkerRow,
    /// The queues in which something counts against it, some of them.
    pub(crate) standings: Vec<QueueStandingBody>,
    /// Some of the messages it has now.
    pub(crate) holds: Vec<MessageBody>,
    /// Some of the tasks it has now.
    pub(crate) tasks: Vec<WorkerTaskBody>,
}

/// A task that a worker has.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkerTaskBody {
    /// Its job and its number, as commands take it.
    pub(crate) id: String,
    /// The name of its job; empty if the job was removed.
    pub(crate) name: String,
    /// Its attempt.
    pub(crate) attempt: u32,
    /// Slots that it takes.
    pub(crate) slots: u16,
    /// When the attempt began; null if the worker was told to stop it and has not let go of it.
    pub(crate) started_at: Option<String>,
}

impl From<&WorkerTaskView> for WorkerTaskBody {
    fn from(view: &WorkerTaskView) -> Self {
        Self {
            id: format!("{}.{}", view.job, view.task),
            name: view.name.clone(),
            attempt: view.attempt,
            slots: view.slots,
            started_at: view.started_unix_ms.map(at),
        }
    }
}

/// One worker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkerDocument {
    pub(crate) worker: WorkerBody,
}

impl WorkerDocument {
    pub(crate) fn new(view: &WorkerView, clock: &Clock) -> Self {
        let holds = view.holds.iter().map(|message| MessageBody::new(message, clock)).collect();
        let standing = |view: &StandingView| QueueStandingBody {
            queue: view.queue.clone(),
            standing: StandingBody::new(Some(&view.standing), clock),
        };
        let standings = view.standings.iter().map(standing).collect();
        let tasks = view.tasks.iter().map(WorkerTaskBody::from).collect();
        Self { worker: WorkerBody { row: WorkerRow::new(view, clock), standings, holds, tasks } }
    }
}

impl Document for WorkerDocument {
    const SCHEMA: &'static str = "turno.worker/1";
}

/// Printed by `turno work` and `turno worker start` once the broker has taken them in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegisteredDocument {
    /// The worker's name.
    pub(crate) name: String,
    /// The queues it consumes.
    pub(crate) queues: Vec<String>,
    /// Its slots; null without a limit.
    pub(crate) slots: Option<u32>,
    /// The broker's address; empty if none was asked.
    pub(crate) broker: String,
    /// What a worker of jobs is known by over all its connections; null for others.
    pub(crate) id: Option<String>,
    /// What it has that others may not.
    pub(crate) labels: BTreeMap<String, String>,
    /// Where it gets tasks; null if it takes none.
    pub(crate) foreman: Option<String>,
}

/// A host on which a worker was to be started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeployedBody {
    /// What ssh was told.
    pub(crate) host: String,
    /// The name of its worker.
    pub(crate) name: String,
    /// The worker is there.
    pub(crate) ready: bool,
    /// Its slots; null if it is not there.
    pub(crate) slots: Option<u64>,
    /// Why it is not there; null if it is.
    pub(crate) error: Option<String>,
}

/// Printed by `turno worker deploy` once every host has its worker or has failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeployedDocument {
    /// The hosts, in the order of the file.
    pub(crate) hosts: Vec<DeployedBody>,
}

impl Document for DeployedDocument {
    const SCHEMA: &'static str = "turno.deployed/1";
}

impl Document for RegisteredDocument {
    const SCHEMA: &'static str = "turno.registered/1";
}

#[cfg(test)]
mod tests {
    use turno_proto::model::Slots;

    use super::*;
    use crate::cli::table;
    use crate::cli::time::TimeStyle;

    fn view(id: u64, slots: Slots, used: u32) -> WorkerView {
        WorkerView {
            id,
            kind: WorkerKind::Queue,
            name: format!("w-{id}"),
            address: format!("10.0.0.{id}:4711"),
            state: WorkerState::Ready,
            slots,
            slots_max: None,
            used,
            queues: vec!["a".to_owned(), "b".to_owned()],
            exclusive: Vec::new(),
            waits_for: Vec::new(),
            labels: BTreeMap::from([("gpu".to_owned(), "yes".to_owned()), ("pool".to_owned(), "night".to_owned())]),
            registered_ms: 90_000,
            idle_ms: None,
            deliveries: 0,
            settled: 0,
            failed: 0,
            dropped: 0,
            unread_bytes: 0,
            standings: Vec::new(),
            holds: Vec::new(),
            tasks_running: 0,
            tasks: Vec::new(),
        }
    }

    /// Proves S0.23: address and free slots of every worker.
    #[test]
    fn a_listing_shows_addresses_and_free_slots() {
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
        let views = [view(1, Slots::Limited(10), 3), view(2, Slots::Unlimited, 7), view(3, Slots::Limited(1), 4)];
        let kinds = [WorkerKind::Queue, WorkerKind::Job, WorkerKind::Both];
        let views = views.into_iter().zip(kinds).map(|(view, kind)| WorkerView { kind, ..view }).collect::<Vec<_>>();
        let rows: Vec<WorkerRow> = views.iter().map(|view| WorkerRow::new(view, &clock)).collect();
        let columns = table::choose::<WorkerRow>(&[], false).unwrap();
        assert_eq!(
            table::render(&columns, &rows, &clock),
            "ID  NAME  KIND   ADDRESS        STATE      SLOTS  USED       FREE  QUEUES\n \
             1  w-1   queue  10.0.0.1:4711  ready         10     3          7  a,b\n \
             2  w-2   job    10.0.0.2:4711  ready  unlimited     7  unlimited  a,b\n \
             3  w-3   both   10.0.0.3:4711  ready          1     4          0  a,b\n"
        );
        assert_eq!(label_words(&rows[0].labels, ", "), "gpu=yes, pool=night");
        let row = serde_json::to_value(&rows[1]).unwrap();
        assert_eq!((&row["free"], &row["address"]), (&serde_json::Value::Null, &"10.0.0.2:4711".into()));
        assert_eq!(rows[0].registered_at, "2026-11-15T11:58:30.000Z");
    }
}
