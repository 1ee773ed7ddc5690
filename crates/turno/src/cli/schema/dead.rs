//! Dead letters and what was done to them, as programs read it.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::DeadView;

use super::Document;
use super::message::MessageBody;
use super::reply::Content;
use crate::cli::table::{Column, Row};
use crate::cli::time::{Clock, short};

/// A dead letter, without its body.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeadRow {
    #[serde(flatten)]
    pub(crate) message: MessageBody,
    /// What the last failure said; in listings the beginning of it.
    pub(crate) failure: String,
}

impl DeadRow {
    pub(crate) fn new(view: &DeadView, clock: &Clock) -> Self {
        Self { message: MessageBody::new(&view.message, clock), failure: view.failure.clone() }
    }
}

impl Document for DeadRow {
    const SCHEMA: &'static str = "turno.dead_row/1";
}

impl Row for DeadRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("id", |row, _| row.message.id.clone()),
        Column::new("attempts", |row, _| row.message.attempts.to_string()),
        Column::new("age_seconds", |row, _| short(Duration::from_secs_f64(row.message.age_seconds))),
        Column::new("bytes", |row, _| row.message.bytes.to_string()),
        Column::wide("priority", |row, _| row.message.priority.to_string()),
        Column::wide("cost", |row, _| row.message.cost.to_string()),
        Column::wide("received_at", |row, clock| {
            row.message.received_at.parse().map(|moment| clock.cell(moment)).unwrap_or_default()
        }),
        Column::new("failure", |row, _| row.failure.lines().next().unwrap_or_default().to_owned()),
    ];

    fn name(&self) -> String {
        self.message.id.clone()
    }
}

/// The dead letters of a queue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeadListDocument<'a> {
    /// The queue.
    pub(crate) queue: String,
    /// In the order of their deaths.
    pub(crate) dead: &'a [DeadRow],
    /// What `--after` takes for the next page; null at the end.
    pub(crate) next: Option<String>,
}

impl Document for DeadListDocument<'_> {
    const SCHEMA: &'static str = "turno.dead_list/1";
}

/// A dead letter with what it carries.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeadBody {
    #[serde(flatten)]
    pub(crate) row: DeadRow,
    #[serde(flatten)]
    pub(crate) content: Content,
    /// Its headers.
    pub(crate) headers: BTreeMap<String, String>,
}

/// One dead letter.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeadDocument {
    pub(crate) dead: DeadBody,
}

impl Document for DeadDocument {
    const SCHEMA: &'static str = "turno.dead/1";
}

/// Dead letters that were put back into their queue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RetriedDocument {
    /// The queue.
    pub(crate) queue: String,
    /// How many.
    pub(crate) retried: u64,
    /// Dead letters it has now.
    pub(crate) dead: u64,
}

impl Document for RetriedDocument {
    const SCHEMA: &'static str = "turno.retried/1";
}

/// What was removed from a queue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PurgedDocument {
    /// The queue.
    pub(crate) queue: String,
    /// Messages removed that waited for a slot.
    pub(crate) purged: u64,
    /// Dead letters removed.
    pub(crate) purged_dead: u64,
    /// Messages that wait for a slot now.
    pub(crate) ready: u64,
    /// Messages at a worker now.
    pub(crate) in_flight: u64,
    /// Dead letters it has now.
    pub(crate) dead: u64,
}

impl Document for PurgedDocument {
    const SCHEMA: &'static str = "turno.purged/1";
}
