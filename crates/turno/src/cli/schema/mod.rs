//! What programs read on stdout. Every document names its schema; within a major version keys are only added.

pub(crate) mod bench;
pub(crate) mod broadcast;
pub(crate) mod broker;
pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod doctor;
pub(crate) mod error;
pub(crate) mod failures;
pub(crate) mod job;
pub(crate) mod job_explain;
mod job_reason;
pub(crate) mod job_retry;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod meta;
pub(crate) mod output;
pub(crate) mod queue;
pub(crate) mod reason;
pub(crate) mod reply;
pub(crate) mod report;
pub(crate) mod ring;
pub(crate) mod spec;
pub(crate) mod submission;
pub(crate) mod task;
pub(crate) mod task_show;
pub(crate) mod topic;
pub(crate) mod trace;
pub(crate) mod worker;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

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

/// Every schema: its name and the JSON Schema of its documents.
pub fn all() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        of::<worker::DeployedDocument>(),
        of::<bench::BenchDocument>(),
        of::<broadcast::BroadcastAnswer>(),
        of::<broadcast::BroadcastDocument>(),
        of::<broadcast::BroadcastEndDocument>(),
        of::<broker::Ready>(),
        of::<broker::StatusDocument>(),
        of::<config::ConfigDocument<'_>>(),
        of::<config::SettingRow>(),
        of::<config::CheckDocument>(),
        of::<dead::DeadDocument>(),
        of::<dead::DeadListDocument<'_>>(),
        of::<dead::DeadRow>(),
        of::<dead::PurgedDocument>(),
        of::<dead::RetriedDocument>(),
        of::<doctor::DoctorDocument>(),
        of::<error::ErrorDocument>(),
        of::<link::BrokerRow>(),
        of::<link::LinkDocument>(),
        of::<link::LinkGraphDocument<'_>>(),
        of::<link::LinkListDocument<'_>>(),
        of::<link::LinkRow>(),
        of::<message::ExplanationDocument>(),
        of::<message::CancelledDocument>(),
        of::<message::CancelledListDocument>(),
        of::<message::CancelledRow>(),
        of::<meta::CodeDocument>(),
        of::<meta::CodeListDocument<'_>>(),
        of::<meta::CodeRow>(),
        of::<meta::PagesDocument>(),
        of::<meta::TextDocument>(),
        of::<meta::VersionDocument>(),
        of::<queue::ConsumerListDocument<'_>>(),
        of::<queue::ConsumerRow>(),
        of::<queue::QueueDocument>(),
        of::<queue::QueueListDocument<'_>>(),
        of::<queue::QueueRow>(),
        of::<reply::Answer>(),
        of::<reply::Line>(),
        of::<reply::PieceDocument>(),
        of::<reply::ReplyDocument>(),
        of::<reply::ReplyListDocument>(),
        of::<reply::StoredDocument>(),
        of::<reply::StoredListDocument>(),
        of::<reply::StreamDocument>(),
        of::<ring::RingDocument>(),
        of::<topic::EventDocument>(),
        of::<topic::EventListDocument>(),
        of::<topic::PublishedDocument>(),
        of::<topic::SubscriberDocument>(),
        of::<topic::SubscriberListDocument<'_>>(),
        of::<topic::SubscriberRow>(),
        of::<topic::TopicListDocument<'_>>(),
        of::<topic::TopicRow>(),
        of::<trace::TraceDocument>(),
        of::<worker::RegisteredDocument>(),
        of::<worker::WorkerDocument>(),
        of::<worker::WorkerListDocument<'_>>(),
        of::<worker::WorkerRow>(),
    ];
    all.extend(of_jobs());
    all
}

/// Those about jobs.
fn of_jobs() -> [(&'static str, Value); 14] {
    [
        of::<job::JobDocument>(),
        of::<job_explain::JobExplainDocument>(),
        of::<job::JobListDocument<'_>>(),
        of::<job::JobRow>(),
        of::<job_retry::JobRetryDocument>(),
        of::<output::OutputDocument<'_>>(),
        of::<output::OutputRow>(),
        of::<output::ResultListDocument<'_>>(),
        of::<output::ResultRow>(),
        of::<report::ReportDocument>(),
        of::<submission::SubmissionDocument>(),
        of::<task::TaskListDocument<'_>>(),
        of::<task::TaskRow>(),
        of::<task_show::TaskDocument>(),
    ]
}

fn of<D: Document>() -> (&'static str, Value) {
    let mut schema = schemars::schema_for!(D).to_value();
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
