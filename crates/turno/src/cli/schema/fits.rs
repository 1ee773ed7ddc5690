//! Every table with values of a usual size fits into a terminal of 80 columns, and its headings are words.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use turno_proto::model::Code;
use turno_proto::model::archive::{FileView, OutputStream};
use turno_proto::model::job::{JobView, TaskView};
use turno_proto::model::link::view::{BrokerNode, LinkView};
use turno_proto::model::ring::view::MemberView;
use turno_proto::model::topic::view::{SubscriberView, TopicView};
use turno_proto::model::view::{ConsumerView, DeadView, QueueView, WorkerView};
use turno_proto::model::zmq::EndpointView;

use super::config::SettingRow;
use super::job::JobRow;
use super::meta::CodeRow;
use super::output::{OutputRow, ResultRow};
use super::reply::Content;
use crate::cli::table::{self, Row};
use crate::cli::time::{Clock, TimeStyle};
use crate::cli::width;

const TERMINAL: usize = 80;

fn view<V: DeserializeOwned>(value: Value) -> V {
    serde_json::from_value(value).unwrap()
}

/// The usual columns with one row, all of it.
fn table<R: Row>(row: R) -> String {
    let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
    let columns = table::choose::<R>(&[], false).unwrap();
    table::render(&columns, &[row], &clock, None).to_string()
}

fn tables() -> Vec<String> {
    let moment = "2026-11-15T11:58:30.000Z";
    let queue = json!({ "name": "billing.invoices.retry", "ready": 1_250_000, "in_flight": 1_000, "dead": 1_000,
        "bytes": 5_000_000, "oldest_seconds": 5_400.0, "consumers": 120, "slots_free": 1_000 });
    let consumer = json!({ "turn": 12, "worker": "1234", "name": "node-7.example-4211", "used": 10, "free": null,
        "in_flight": 100, "token": "1795000000000000001", "standing": "consuming" });
    let worker = json!({ "id": "1234", "name": "node-7-4211", "kind": "queue", "address": "127.0.0.1:43210",
        "state": "draining", "slots": 64, "used": 10, "free": 54, "queues": ["invoices"] });
    let job = json!({ "id": "1234", "name": "parameter-sweep", "state": "cancelled", "progress": 100,
        "tasks": 10_000_000, "running": 10_000, "failed": 10_000, "submitted_at": moment });
    let task = json!({ "id": "1234.10000", "state": "cancelled", "attempt": 1, "worker": "node-7",
        "seconds": 90.0, "item": ["in/run-17.csv"], "status": "exit 3: cannot open" });
    let dead = json!({ "id": "22334f3d812c000000000001ffffffff", "attempts": 10, "age_seconds": 5_400.0,
        "bytes": 5_000_000, "failure": "exit 3: no such file" });
    let link = json!({ "name": "rb-2.example", "state": "down", "round_trip_seconds": 0.0012, "offered": 1_000,
        "target": "10.0.0.2:7460", "code": "link_refused" });
    let node = json!({ "name": "rb-3", "hops": 2, "way": ["rb-2", "rb-3"], "neighbours": ["rb-1", "rb-2"] });
    let topic = json!({ "topic": "weather.berlin.temperature", "events": 1_250_000, "subscribers": 1_000,
        "latest_at": moment });
    let subscriber = json!({ "name": "node-7-4211", "address": "127.0.0.1:43210", "filters": ["weather.>", "news.*"],
        "filters_all": 2, "events": 1_250_000, "dropped": 1_000, "waiting": 10_000 });
    let endpoint = json!({ "name": "orders", "address": "tcp://127.0.0.1:7461", "queue": "orders", "role": "client",
        "mechanism": "CURVE", "peers_all": 100, "received": 1_250_000, "sent": 1_250_000 });
    let member = json!({ "sid": 12, "role": "previous", "incarnation": 1_795_000_000_003_u64,
        "address": "10.0.0.12:8012", "native": "10.0.0.12:8112" });
    let file = json!({ "id": "1234.10000", "task": 10_000, "attempt": 1, "name": "out/temperatures-17.csv",
        "bytes": 5_000_000 });
    let piece = OutputRow {
        id: "1234.10000".parse().unwrap(),
        task: 10_000,
        attempt: 1,
        stream: OutputStream::Stderr,
        at: 1_000_000,
        left_out: 0,
        lost: 0,
        content: Content::from(&b"a line that a task printed"[..]),
    };
    let setting = SettingRow {
        key: "queue.defaults.drop-after".to_owned(),
        value: Value::Null,
        text: "turno://127.0.0.1:7460".to_owned(),
        origin: String::new(),
        variable: String::new(),
        doc: String::new(),
    };
    vec![
        table(view::<QueueView>(queue)),
        table(view::<ConsumerView>(consumer)),
        table(view::<WorkerView>(worker)),
        table(JobRow::from(&view::<JobView>(job))),
        table(view::<TaskView>(task)),
        table(view::<DeadView>(dead)),
        table(view::<LinkView>(link)),
        table(view::<BrokerNode>(node)),
        table(view::<TopicView>(topic)),
        table(view::<SubscriberView>(subscriber)),
        table(view::<EndpointView>(endpoint)),
        table(view::<MemberView>(member)),
        table(ResultRow { file: view::<FileView>(file), path: None }),
        table(piece),
        table(CodeRow::from(Code::NoResponder)),
        table(setting),
    ]
}

#[test]
fn every_table_fits_into_a_terminal() {
    for table in tables() {
        let widest = table.lines().map(width::of).max().unwrap_or_default();
        assert!(widest <= TERMINAL, "{widest} columns:\n{table}");
    }
}

#[test]
fn headings_are_words_and_no_keys() {
    let headings: Vec<String> = tables().iter().map(|table| table.lines().next().unwrap().to_owned()).collect();
    assert!(headings.iter().all(|line| !line.contains('_') && !line.contains("SECONDS")), "{headings:#?}");
    assert_eq!(
        headings[0].split("  ").map(str::trim).filter(|word| !word.is_empty()).collect::<Vec<_>>(),
        ["NAME", "READY", "IN FLIGHT", "DEAD", "OLDEST", "CONSUMERS", "SLOTS FREE"]
    );
}
