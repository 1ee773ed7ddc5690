//! Queues and their rotas: columns and listings.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::{ConsumerView, QueueView, StandingState};

use crate::cli::size;
use crate::cli::table::{Column, Row, columns};

impl Row for QueueView {
    const COLUMNS: &'static [Column<Self>] = columns![
        name;
        ready;
        in_flight;
        dead;
        oldest_seconds;
        consumers;
        slots_free;
        wide delayed;
        wide bytes as "SIZE" = |row, _| size::short(row.bytes);
        wide durable;
        wide drop_after;
        wide weight;
        wide retry_delay_seconds;
        wide retry_delay_max_seconds;
    ];

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// The queues of a broker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueueListDocument<'a> {
    /// In order of name.
    pub(crate) queues: &'a [QueueView],
    /// The value of `--after` for the next page; null at the end.
    pub(crate) next: Option<String>,
}

/// One queue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueueDocument<'a> {
    pub(crate) queue: &'a QueueView,
}

/// How it stands, for people: the holder of an exclusive queue consumes it too, but alone.
fn standing(row: &ConsumerView) -> String {
    match (row.token, row.standing.state) {
        (Some(_), StandingState::Consuming) => "exclusive".to_owned(),
        (Some(_), standing) => format!("exclusive,{standing}"),
        (None, standing) => standing.to_string(),
    }
}

impl Row for ConsumerView {
    const COLUMNS: &'static [Column<Self>] = columns![
        turn;
        worker;
        name;
        wide slots;
        used;
        free;
        in_flight;
        standing as "STATE" = |row, _| standing(row);
        wide waits as "STANDBY";
        wide expired = |row, clock| row.standing.expired.cell(clock);
        wide dropped_at = |row, clock| row.standing.dropped_at.cell(clock);
        wide reason = |row, clock| row.standing.reason.cell(clock);
        wide token;
    ];

    fn name(&self) -> String {
        self.worker.to_string()
    }
}

/// A queue's rota.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConsumerListDocument<'a> {
    /// The queue.
    pub(crate) queue: String,
    /// Next first, then those that stand by, next first, then those that were dropped.
    pub(crate) consumers: &'a [ConsumerView],
    /// How many follow that are not shown.
    pub(crate) more: u64,
}
