//! Queues and their rotas, as programs read them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::Slots;
use turno_proto::model::view::{ConsumerView, ExclusiveView, QueueSettings, QueueView};

use super::Document;
use super::broker::CountersBody;
use super::message::MessageBody;
use crate::cli::table::{Column, Row};
use crate::cli::time::{Clock, seconds, short};

/// Settings of a queue's own.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettingsBody {
    /// Whether sends to it are stored on disk before they are answered.
    pub(crate) durable: bool,
}

impl From<QueueSettings> for SettingsBody {
    fn from(settings: QueueSettings) -> Self {
        Self { durable: settings.durable }
    }
}

/// Whose an exclusive queue is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExclusiveBody {
    /// The token, a decimal number of up to 20 digits: text, because many programs read large numbers inexactly.
    pub(crate) token: String,
    /// The worker's id; null if it is gone and its last messages are on their way back.
    pub(crate) worker: Option<String>,
}

impl From<ExclusiveView> for ExclusiveBody {
    fn from(view: ExclusiveView) -> Self {
        Self { token: view.token.to_string(), worker: view.worker.map(|id| id.to_string()) }
    }
}

/// A queue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueueRow {
    /// Its name.
    pub(crate) name: String,
    /// Messages that wait for a slot.
    pub(crate) ready: u64,
    /// Messages at a worker.
    pub(crate) in_flight: u64,
    /// Messages that wait for their time.
    pub(crate) delayed: u64,
    /// Dead letters.
    pub(crate) dead: u64,
    /// Bytes of its messages in memory, with overhead.
    pub(crate) bytes: u64,
    /// Age of the oldest waiting message.
    pub(crate) oldest_seconds: Option<f64>,
    /// Workers that consume it.
    pub(crate) consumers: u64,
    /// Slots its consumers have free.
    pub(crate) slots_free: u64,
    /// Whether a send to it outlives the broker.
    pub(crate) durable: bool,
    /// Its own settings; null if it has none.
    pub(crate) settings: Option<SettingsBody>,
    /// Whose it is, if one worker has it to itself; null otherwise.
    pub(crate) exclusive: Option<ExclusiveBody>,
    /// Workers that wait until it is free.
    pub(crate) waiters: u64,
    /// What happened so far.
    pub(crate) counters: CountersBody,
}

impl From<&QueueView> for QueueRow {
    fn from(view: &QueueView) -> Self {
        Self {
            name: view.name.clone(),
            ready: view.ready,
            in_flight: view.in_flight,
            delayed: 0,
            dead: view.dead,
            bytes: view.bytes,
            oldest_seconds: view.oldest_ms.map(seconds),
            consumers: view.consumers,
            slots_free: view.slots_free,
            durable: view.durable,
            settings: view.settings.map(SettingsBody::from),
            exclusive: view.exclusive.map(ExclusiveBody::from),
            waiters: view.waiters,
            counters: CountersBody::from(&view.counters),
        }
    }
}

impl Document for QueueRow {
    const SCHEMA: &'static str = "turno.queue_row/1";
}

impl Row for QueueRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("name", |row, _| row.name.clone()),
        Column::new("ready", |row, _| row.ready.to_string()),
        Column::new("in_flight", |row, _| row.in_flight.to_string()),
        Column::wide("delayed", |row, _| row.delayed.to_string()),
        Column::new("dead", |row, _| row.dead.to_string()),
        Column::new("bytes", |row, _| row.bytes.to_string()),
        Column::new("oldest_seconds", |row, _| {
            row.oldest_seconds.map(|age| short(Duration::from_secs_f64(age))).unwrap_or_default()
        }),
        Column::new("consumers", |row, _| row.consumers.to_string()),
        Column::new("slots_free", |row, _| row.slots_free.to_string()),
        Column::new("durable", |row, _| if row.durable { "yes" } else { "no" }.to_owned()),
    ];

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// The queues of a broker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueueListDocument<'a> {
    /// In order of name.
    pub(crate) queues: &'a [QueueRow],
    /// What `--after` takes for the next page; null at the end.
    pub(crate) next: Option<String>,
}

impl Document for QueueListDocument<'_> {
    const SCHEMA: &'static str = "turno.queue_list/1";
}

/// A queue with the head of its backlog.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueueBody {
    #[serde(flatten)]
    pub(crate) row: QueueRow,
    /// The first of those that wait.
    pub(crate) head: Vec<MessageBody>,
}

/// One queue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueueDocument {
    pub(crate) queue: QueueBody,
}

impl QueueDocument {
    pub(crate) fn new(view: &QueueView, clock: &Clock) -> Self {
        let head = view.head.iter().map(|message| MessageBody::new(message, clock)).collect();
        Self { queue: QueueBody { row: QueueRow::from(view), head } }
    }
}

impl Document for QueueDocument {
    const SCHEMA: &'static str = "turno.queue/1";
}

/// A worker in a queue's rota.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConsumerRow {
    /// Its place in the rota: 1 is next.
    pub(crate) turn: u64,
    /// The worker's id.
    pub(crate) worker: String,
    /// The worker's name.
    pub(crate) name: String,
    /// Its slots; null without a limit.
    pub(crate) slots: Option<u32>,
    /// Slots in use, by all its queues.
    pub(crate) used: u32,
    /// Slots free; null without a limit.
    pub(crate) free: Option<u32>,
    /// Messages of this queue it has now.
    pub(crate) in_flight: u64,
    /// The token with which it has the queue to itself, a decimal number; null if it shares it.
    pub(crate) token: Option<String>,
}

impl From<&ConsumerView> for ConsumerRow {
    fn from(view: &ConsumerView) -> Self {
        Self {
            turn: view.turn,
            worker: view.worker.to_string(),
            name: view.name.clone(),
            slots: limited(view.slots),
            used: view.used,
            free: limited(view.slots).map(|slots| slots.saturating_sub(view.used)),
            in_flight: view.in_flight,
            token: view.token.map(|token| token.to_string()),
        }
    }
}

impl Document for ConsumerRow {
    const SCHEMA: &'static str = "turno.consumer_row/1";
}

impl Row for ConsumerRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("turn", |row, _| row.turn.to_string()),
        Column::new("worker", |row, _| row.worker.clone()),
        Column::new("name", |row, _| row.name.clone()),
        Column::new("slots", |row, _| count_or_unlimited(row.slots)),
        Column::new("used", |row, _| row.used.to_string()),
        Column::new("free", |row, _| count_or_unlimited(row.free)),
        Column::new("in_flight", |row, _| row.in_flight.to_string()),
        Column::wide("token", |row, _| row.token.clone().unwrap_or_default()),
    ];

    fn name(&self) -> String {
        self.worker.clone()
    }
}

/// A queue's rota.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConsumerListDocument<'a> {
    /// The queue.
    pub(crate) queue: String,
    /// Next first.
    pub(crate) consumers: &'a [ConsumerRow],
}

impl Document for ConsumerListDocument<'_> {
    const SCHEMA: &'static str = "turno.consumer_list/1";
}

/// The number, or null for "no limit".
pub(crate) const fn limited(slots: Slots) -> Option<u32> {
    match slots {
        Slots::Limited(count) => Some(count),
        Slots::Unlimited => None,
    }
}

/// For people.
pub(crate) fn count_or_unlimited(count: Option<u32>) -> String {
    count.map_or_else(|| "unlimited".to_owned(), |count| count.to_string())
}
