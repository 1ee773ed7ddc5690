//! Documents on stdout for programs. Every document names its schema; within a major version keys are only added.
//!
//! Views of the broker have their types in `turno_proto`: the same value goes over the wire and to stdout. Here are the columns of
//! its tables, the documents around it, and documents that only the command line makes.

pub(crate) mod bench;
pub(crate) mod broadcast;
pub(crate) mod broker;
pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod doctor;
pub(crate) mod error;
pub(crate) mod failures;
#[cfg(test)]
mod fits;
pub(crate) mod job;
pub(crate) mod job_explain;
pub(crate) mod job_retry;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod meta;
pub(crate) mod output;
pub(crate) mod queue;
pub(crate) mod reply;
pub(crate) mod report;
pub(crate) mod ring;
pub(crate) mod submission;
pub(crate) mod task;
pub(crate) mod topic;
pub(crate) mod trace;
pub(crate) mod worker;
pub(crate) mod zmq;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde::Serialize;
use serde_json::{Value, json};
use turno_proto::model::job::TaskView;
use turno_proto::model::link::view::{BrokerNode, LinkView};
use turno_proto::model::topic::view::{SubscriberView, TopicView};
use turno_proto::model::view::{ConsumerView, DeadView, Explanation, QueueView, WorkerView};
use turno_proto::model::zmq::EndpointView;

use super::shown;

/// Something printed as one JSON document.
pub(crate) trait Document: Serialize + JsonSchema {
    /// Its name and version, the value of its key `schema`.
    const SCHEMA: &'static str;
}

/// The document with its schema's name in front.
#[derive(Serialize)]
pub(crate) struct Envelope<'a, D> {
    schema: &'static str,
    #[serde(flatten)]
    body: &'a D,
}

/// Puts the schema's name in front of a document.
pub(crate) fn envelope<D: Document>(document: &D) -> Envelope<'_, D> {
    Envelope { schema: D::SCHEMA, body: document }
}

/// One line of JSON. Documents are plain structs with text keys, so writing them cannot fail.
pub(crate) fn line<T: Serialize>(value: &T) -> String {
    shown::json(serde_json::to_string(value).unwrap_or_default()) + "\n"
}

/// Every document with the name of its schema.
macro_rules! documents {
    ($($document:ty = $schema:literal,)*) => {
        $(impl Document for $document {
            const SCHEMA: &'static str = $schema;
        })*

        /// Every schema: its name and the JSON Schema of its documents.
        pub fn all() -> Vec<(&'static str, Value)> {
            vec![$(of::<$document>()),*]
        }
    };
}

documents! {
    bench::BenchDocument = "turno.bench/1",
    broadcast::BroadcastAnswer = "turno.broadcast_answer/1",
    broadcast::BroadcastDocument = "turno.broadcast/1",
    broadcast::BroadcastEndDocument = "turno.broadcast_end/1",
    broker::Ready = "turno.ready/1",
    broker::StatusDocument<'_> = "turno.status/1",
    config::CheckDocument = "turno.config_check/1",
    config::ConfigDocument<'_> = "turno.config/1",
    config::SettingRow = "turno.setting_row/1",
    dead::DeadDocument = "turno.dead/1",
    dead::DeadListDocument<'_> = "turno.dead_list/1",
    DeadView = "turno.dead_row/1",
    dead::PurgedDocument = "turno.purged/1",
    dead::RetriedDocument = "turno.retried/1",
    doctor::DoctorDocument = "turno.doctor/1",
    error::ErrorDocument = "turno.error/1",
    job::JobDocument = "turno.job/1",
    job::JobListDocument<'_> = "turno.job_list/1",
    job::JobRow = "turno.job_row/1",
    job_explain::JobExplainDocument<'_> = "turno.job_explain/1",
    job_retry::JobRetryDocument = "turno.job_retry/1",
    BrokerNode = "turno.broker_row/1",
    link::LinkDocument<'_> = "turno.link/1",
    link::LinkGraphDocument<'_> = "turno.link_graph/1",
    link::LinkListDocument<'_> = "turno.link_list/1",
    LinkView = "turno.link_row/1",
    Explanation = "turno.explanation/1",
    message::CancelledDocument = "turno.cancelled/1",
    message::CancelledListDocument = "turno.cancelled_list/1",
    message::RetriedMessageDocument = "turno.message_retried/1",
    message::CancelledRow = "turno.cancelled_row/1",
    meta::CodeDocument = "turno.code/1",
    meta::CodeListDocument<'_> = "turno.code_list/1",
    meta::CodeRow = "turno.code_row/1",
    meta::PagesDocument = "turno.files/1",
    meta::TextDocument = "turno.text/1",
    meta::VersionDocument = "turno.version/1",
    output::OutputDocument<'_> = "turno.output/1",
    output::OutputRow = "turno.output_row/1",
    output::ResultListDocument<'_> = "turno.result_list/1",
    output::ResultRow = "turno.result_row/1",
    queue::ConsumerListDocument<'_> = "turno.consumer_list/1",
    ConsumerView = "turno.consumer_row/1",
    queue::QueueDocument<'_> = "turno.queue/1",
    queue::QueueListDocument<'_> = "turno.queue_list/1",
    QueueView = "turno.queue_row/1",
    reply::Answer = "turno.answer/1",
    reply::Line = "turno.stored_line/1",
    reply::PieceDocument = "turno.piece/1",
    reply::ReplyDocument = "turno.reply/1",
    reply::ReplyListDocument = "turno.reply_list/1",
    reply::StoredDocument = "turno.stored/1",
    reply::StoredListDocument = "turno.stored_list/1",
    reply::StreamDocument = "turno.stream/1",
    report::ReportDocument = "turno.report/1",
    ring::RingDocument<'_> = "turno.ring/1",
    submission::SubmissionDocument = "turno.submission/1",
    task::TaskDocument = "turno.task/1",
    task::TaskListDocument<'_> = "turno.task_list/1",
    TaskView = "turno.task_row/1",
    topic::EventDocument = "turno.event/1",
    topic::EventListDocument = "turno.event_list/1",
    topic::PublishedDocument = "turno.published/1",
    topic::SubscriberDocument<'_> = "turno.subscriber/1",
    topic::SubscriberListDocument<'_> = "turno.subscriber_list/1",
    SubscriberView = "turno.subscriber_row/1",
    topic::TopicListDocument<'_> = "turno.topic_list/1",
    TopicView = "turno.topic_row/1",
    EndpointView = "turno.zmq_row/1",
    zmq::ZmqDocument<'_> = "turno.zmq/1",
    zmq::ZmqListDocument<'_> = "turno.zmq_list/1",
    trace::TraceDocument = "turno.trace/1",
    worker::DeployedDocument = "turno.deployed/1",
    worker::RegisteredDocument = "turno.registered/1",
    worker::WorkerDocument<'_> = "turno.worker/1",
    worker::WorkerListDocument<'_> = "turno.worker_list/1",
    WorkerView = "turno.worker_row/1",
}

fn of<D: Document>() -> (&'static str, Value) {
    // As it is written: a key that is always there is required, null or not.
    let no_defaults = RecursiveTransform(|schema: &mut schemars::Schema| drop(schema.remove("default")));
    let settings = SchemaSettings::default().for_serialize().with_transform(no_defaults);
    let mut schema = settings.into_generator().into_root_schema_for::<D>().to_value();
    if let Some(map) = schema.as_object_mut() {
        map.insert("title".to_owned(), D::SCHEMA.into());
        let properties = map.entry("properties").or_insert_with(|| json!({}));
        properties["schema"] = json!({ "const": D::SCHEMA });
        let required = map.entry("required").or_insert_with(|| json!([]));
        if let Some(list) = required.as_array_mut() {
            list.insert(0, "schema".into());
        }
    }
    (D::SCHEMA, schema)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_unique_and_versioned() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), all.len());
        for (name, schema) in &all {
            let stem = name.strip_prefix("turno.").and_then(|rest| rest.strip_suffix("/1"));
            assert!(stem.is_some_and(|stem| stem.chars().all(|c| c.is_ascii_lowercase() || c == '_')), "{name}");
            assert_eq!(schema["properties"]["schema"]["const"], *name);
            assert_eq!(schema["required"][0], "schema", "{name}");
        }
    }

    /// The published files are those of this build; `TURNO_BLESS=1` writes them anew.
    #[test]
    fn the_published_schemas_are_current() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
        let mut expected = BTreeSet::new();
        let bless = std::env::var_os("TURNO_BLESS").is_some();
        for (name, schema) in all() {
            let file = format!("{}.json", name.replace('/', "."));
            let text = format!("{schema:#}\n");
            if bless {
                fs::create_dir_all(&dir).unwrap();
                fs::write(dir.join(&file), &text).unwrap();
            }
            let found = fs::read_to_string(dir.join(&file)).unwrap_or_default();
            assert_eq!(found, text, "{file} is out of date: run the tests with TURNO_BLESS=1");
            expected.insert(file);
        }
        let found: BTreeSet<String> =
            fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(found, expected);
    }
}
