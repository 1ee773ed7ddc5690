//! Dead letters: columns, listings, and results of commands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::DeadView;

use super::reply::MessageContent;
use crate::cli::size;
use crate::cli::table::{Column, Row, columns};

impl Row for DeadView {
    const COLUMNS: &'static [Column<Self>] = columns![
        id = |row, clock| row.message.id.cell(clock);
        attempts = |row, clock| row.message.attempts.cell(clock);
        age_seconds = |row, clock| row.message.age_seconds.cell(clock);
        bytes as "SIZE" = |row, _| size::short(row.message.bytes);
        wide priority = |row, clock| row.message.priority.cell(clock);
        wide cost = |row, clock| row.message.cost.cell(clock);
        wide received_at = |row, clock| row.message.received_at.cell(clock);
        failure = |row, _| row.failure.lines().next().unwrap_or_default().to_owned();
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
    pub(crate) dead: &'a [DeadView],
    /// The value of `--after` for the next page; null at the end.
    pub(crate) next: Option<String>,
}

/// A dead letter with what it carries.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeadBody {
    #[serde(flatten)]
    pub(crate) letter: DeadView,
    #[serde(flatten)]
    pub(crate) content: MessageContent,
    /// Its headers.
    pub(crate) headers: BTreeMap<String, String>,
}

/// One dead letter.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeadDocument {
    pub(crate) dead: DeadBody,
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

/// The messages that were removed from a queue.
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
