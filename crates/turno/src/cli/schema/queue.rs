//! Queues and their rotas, as programs read them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::Slots;
use turno_proto::model::view::{ConsumerView, ExclusiveView, QueueSettings, QueueView, Standing, StandingState};

use super::Document;
use super::broker::CountersBody;
use super::message::MessageBody;
use super::worker::moment;
use crate::cli::table::{Column, Row};
use crate::cli::time::{Clock, rfc3339, seconds, short};

/// Settings of a queue's own; null where it has none.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettingsBody {
    /// Whether sends to it are stored on disk before they are answered.
    pub(crate) durable: Option<bool>,
    /// Deliveries in a row that expire at a worker until it is dropped; 0: never.
    pub(crate) drop_after: Option<u16>,
    /// Messages a worker of several queues gets from this one in each round.
    pub(crate) weight: Option<u8>,
}

impl From<QueueSettings> for SettingsBody {
    fn from(settings: QueueSettings) -> Self {
        let QueueSettings { durable, drop_after, weight } = settings;
        Self { durable, drop_after, weight }
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
    /// Dead letters.
    pub(crate) dead: u64,
    /// Bytes of them, with overhead and what their last failures said.
    pub(crate) dead_bytes: u64,
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
    /// Deliveries in a row that expire at a worker until it is dropped; 0: never.
    pub(crate) drop_after: u16,
    /// Messages a worker of several queues gets from this one in each round.
    pub(crate) weight: u8,
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
            dead: view.dead,
            dead_bytes: view.dead_bytes,
            bytes: view.bytes,
            oldest_seconds: view.oldest_ms.map(seconds),
            consumers: view.consumers,
            slots_free: view.slots_free,
            durable: view.durable,
            drop_after: view.drop_after,
            weight: view.weight,
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
        Column::new("dead", |row, _| row.dead.to_string()),
        Column::new("bytes", |row, _| row.bytes.to_string()),
        Column::new("oldest_seconds", |row, _| {
            row.oldest_seconds.map(|age| short(Duration::from_secs_f64(age))).unwrap_or_default()
        }),
        Column::new("consumers", |row, _| row.consumers.to_string()),
        Column::new("slots_free", |row, _| row.slots_free.to_string()),
        Column::new("durable", |row, _| if row.durable { "yes" } else { "no" }.to_owned()),
        Column::wide("drop_after", |row, _| row.drop_after.to_string()),
        Column::wide("weight", |row, _| row.weight.to_string()),
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
    /// Its place in the rota: 1 is next; null of one that was dropped, or that stands by.
    pub(crate) turn: Option<u64>,
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
    /// Its place among those who stand by until the queue is free: 1 is next; null if it does not.
    pub(crate) waits: Option<u64>,
    #[serde(flatten)]
    pub(crate) standing: StandingBody,
}

/// How a worker stands in a queue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StandingBody {
    /// `consuming`; `suspect` if its last delivery expired; `dropped` if too many did in a row; `probing` if it came
    /// back and gets one delivery at a time until it settles one; `standby` if it waits until the queue is free.
    pub(crate) standing: &'static str,
    /// Deliveries in a row that expired at it.
    pub(crate) expired: u32,
    /// When it was dropped; null if it was not.
    pub(crate) dropped_at: Option<String>,
    /// The code the last of them expired with; null if none did.
    pub(crate) reason: Option<String>,
}

impl StandingBody {
    pub(crate) fn new(standing: Option<&Standing>, clock: &Clock) -> Self {
        let Some(standing) = standing else {
            return Self { standing: "consuming", expired: 0, dropped_at: None, reason: None };
        };
        Self {
            standing: match standing.state {
                StandingState::Suspect => "suspect",
                StandingState::Dropped => "dropped",
                StandingState::Probing => "probing",
            },
            expired: standing.expired,
            dropped_at: standing.dropped_ms.map(|ms| rfc3339(clock.ago(ms))),
            reason: Some(standing.reason.clone()),
        }
    }
}

impl ConsumerRow {
    pub(crate) fn new(view: &ConsumerView, clock: &Clock) -> Self {
        Self {
            turn: view.turn,
            worker: view.worker.to_string(),
            name: view.name.clone(),
            slots: limited(view.slots),
            used: view.used,
            free: limited(view.slots).map(|slots| slots.saturating_sub(view.used)),
            in_flight: view.in_flight,
            token: view.token.map(|token| token.to_string()),
            waits: view.waits,
            standing: match (&view.standing, view.waits) {
                (None, Some(_)) => StandingBody { standing: "standby", ..StandingBody::new(None, clock) },
                (standing, _) => StandingBody::new(standing.as_ref(), clock),
            },
        }
    }

    /// How it stands, for people: the holder of an exclusive queue consumes it too, but alone.
    fn told(&self) -> String {
        match (&self.token, self.standing.standing) {
            (Some(_), "consuming") => "exclusive".to_owned(),
            (Some(_), standing) => format!("exclusive,{standing}"),
            (None, standing) => standing.to_owned(),
        }
    }
}

impl Document for ConsumerRow {
    const SCHEMA: &'static str = "turno.consumer_row/1";
}

impl Row for ConsumerRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("turn", |row, _| row.turn.map(|turn| turn.to_string()).unwrap_or_default()),
        Column::new("worker", |row, _| row.worker.clone()),
        Column::new("name", |row, _| row.name.clone()),
        Column::new("slots", |row, _| count_or_unlimited(row.slots)),
        Column::new("used", |row, _| row.used.to_string()),
        Column::new("free", |row, _| count_or_unlimited(row.free)),
        Column::new("in_flight", |row, _| row.in_flight.to_string()),
        Column::new("standing", |row, _| row.told()),
        Column::wide("waits", |row, _| row.waits.map(|place| place.to_string()).unwrap_or_default()),
        Column::wide("expired", |row, _| row.standing.expired.to_string()),
        Column::wide("dropped_at", |row, clock| moment(row.standing.dropped_at.as_deref(), clock)),
        Column::wide("reason", |row, _| row.standing.reason.clone().unwrap_or_default()),
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
    /// Next first, then those that stand by, next first, then those that were dropped.
    pub(crate) consumers: &'a [ConsumerRow],
    /// How many follow that are not shown.
    pub(crate) more: u64,
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
