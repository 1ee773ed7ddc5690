//! Workers: columns, listings, and the documents of starting one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::WorkerView;
use turno_proto::model::{Slots, WorkerId};

use crate::cli::table::{Column, Row, columns};

impl Row for WorkerView {
    const COLUMNS: &'static [Column<Self>] = columns![
        id;
        name;
        kind;
        address;
        state;
        wide slots;
        used;
        free;
        queues;
        wide tasks_running as "RUNNING TASKS";
        wide slots_max as "MAX SLOTS";
        wide exclusive = |row, _| {
            row.exclusive.iter().map(|held| held.queue.as_str()).collect::<Vec<_>>().join(",")
        };
        wide waits_for;
        wide labels = |row, _| label_words(&row.labels, ",");
        wide registered_at;
        wide last_used_at;
        wide deliveries;
        wide settled;
        wide failed;
        wide dropped;
    ];

    fn name(&self) -> String {
        self.id.to_string()
    }
}

/// Labels as they are typed.
pub(crate) fn label_words(labels: &BTreeMap<String, String>, between: &str) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(between)
}

/// The workers of a broker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkerListDocument<'a> {
    /// In order of id.
    pub(crate) workers: &'a [WorkerView],
    /// The value of `--after` for the next page; null at the end.
    pub(crate) next: Option<WorkerId>,
}

/// One worker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkerDocument<'a> {
    pub(crate) worker: &'a WorkerView,
}

/// Printed by `turno work` and `turno worker start` once the broker has taken them in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegisteredDocument {
    /// The worker's name.
    pub(crate) name: String,
    /// The queues it consumes.
    pub(crate) queues: Vec<String>,
    /// Its slots; null without a limit.
    pub(crate) slots: Slots,
    /// The broker's address; empty if none was asked.
    pub(crate) broker: String,
    /// The id of a job worker, the same over all its connections; null for others.
    pub(crate) id: Option<String>,
    /// The labels of the worker.
    pub(crate) labels: BTreeMap<String, String>,
    /// Where it gets tasks; null if it takes none.
    pub(crate) foreman: Option<String>,
}

/// A host on which a worker was to be started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeployedBody {
    /// The host, as given to ssh.
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

#[cfg(test)]
mod tests {
    use turno_proto::model::Moment;
    use turno_proto::model::view::{WorkerKind, WorkerState};

    use super::*;
    use crate::cli::table;
    use crate::cli::time::{Clock, TimeStyle};

    fn view(id: u64, kind: WorkerKind, slots: Slots, used: u32) -> WorkerView {
        WorkerView {
            id: WorkerId(id),
            kind,
            name: format!("w-{id}"),
            address: format!("10.0.0.{id}:4711"),
            state: WorkerState::Ready,
            slots,
            used,
            free: slots.free(used),
            queues: vec!["a".to_owned(), "b".to_owned()],
            labels: BTreeMap::from([("gpu".to_owned(), "yes".to_owned()), ("pool".to_owned(), "night".to_owned())]),
            registered_at: Moment::from_unix_ms(1_794_743_910_000),
            ..WorkerView::default()
        }
    }

    /// Proves S0.23: address and free slots of every worker.
    #[test]
    fn a_listing_shows_addresses_and_free_slots() {
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
        let rows = [
            view(1, WorkerKind::Queue, Slots::Limited(10), 3),
            view(2, WorkerKind::Job, Slots::Unlimited, 7),
            view(3, WorkerKind::Both, Slots::Limited(1), 4),
        ];
        let columns = table::choose::<WorkerView>(&[], false).unwrap();
        assert_eq!(
            table::render(&columns, &rows, &clock, None),
            "ID  NAME  KIND   ADDRESS        STATE  USED       FREE  QUEUES\n \
             1  w-1   queue  10.0.0.1:4711  ready     3          7  a,b\n \
             2  w-2   job    10.0.0.2:4711  ready     7  unlimited  a,b\n \
             3  w-3   both   10.0.0.3:4711  ready     4          0  a,b\n"
        );
        let wide = ["labels", "registered_at", "last_used_at"].map(ToOwned::to_owned);
        let columns = table::choose::<WorkerView>(&wide, false).unwrap();
        let expected = "LABELS              REGISTERED  LAST USED\ngpu=yes,pool=night       1m30s  -\n";
        assert_eq!(table::render(&columns, &rows[..1], &clock, None), expected);
        let row = serde_json::to_value(&rows[1]).unwrap();
        assert_eq!((&row["id"], &row["free"]), (&"2".into(), &serde_json::Value::Null));
        assert_eq!(row["registered_at"], "2026-11-15T11:58:30.000Z");
        assert_eq!(row.get("holds"), None, "left out in listings");
    }
}
