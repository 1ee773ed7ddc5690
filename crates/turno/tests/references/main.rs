//! The references in docs/ that are written from the program's own tables. `TURNO_BLESS=1` writes them anew.

mod limits;
mod logs;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use turno_broker::config::{KEYS, Preset};
use turno_proto::model::archive::FileView;
use turno_proto::model::job::{AttemptView, JobView, TaskView};
use turno_proto::model::link::view::{BrokerNode, LinkView};
use turno_proto::model::ring::view::RingView;
use turno_proto::model::topic::view::{SubscriberView, TopicView};
use turno_proto::model::view::{BrokerView, ConsumerView, DeadView, Explanation, QueueView, WorkerView};
use turno_proto::model::zmq::EndpointView;
use turno_proto::model::{BroadcastEnd, Code, CodeText};

fn same_as_published(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("TURNO_BLESS").is_some() {
        std::fs::write(&path, text).expect("docs/ can be written");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(published, text, "docs/reference/{name} is out of date: run the tests with TURNO_BLESS=1");
}

/// Every key with its variable, default and meaning.
#[test]
fn the_configuration_reference_is_true() {
    let mut text = String::from(
        "# Configuration\n\n\
         All keys of the broker and the command line, generated from the code. A value comes from the first of these that\n\
         sets it: a flag, the environment, a file, the built-in default. `turno config show --origin` shows every value and its\n\
         origin; `turno config check FILE` lists all errors of a file with their lines.\n\n\
         The first of these files is read: `--config FILE`, `$TURNO_CONFIG`, `$XDG_CONFIG_HOME/turno/turno.toml`,\n\
         `/etc/turno/turno.toml` followed by `/etc/turno/turno.d/*.toml`. A key with dots is in a TOML table:\n\n\
         ```toml\n[limits]\nmessage = \"16MiB\"\nconnections = 10_000\n```\n\n\
         | key | takes | default | meaning |\n|---|---|---|---|\n",
    );
    for key in KEYS {
        let default = match key.default {
            Preset::Text(text) => format!("`{text}`"),
            Preset::Empty | Preset::Nothing => "none".to_owned(),
            Preset::HostName => "the machine's name".to_owned(),
            Preset::DataDirectory => "`turno` in the user's data directory".to_owned(),
            Preset::HalfOfMemory => "half of the memory".to_owned(),
        };
        let (name, variable, takes, doc) = (key.name, key.variable(), key.kind.expected(), key.doc);
        writeln!(text, "| `{name}`<br>`{variable}` | {takes} | {default} | {doc} |")
            .expect("a String takes everything");
    }
    same_as_published("configuration.md", &text);
}

/// Every code with its number, exit status, and what `turno explain` says.
#[test]
fn the_reference_of_codes_is_true() {
    let mut text = String::from(
        "# Codes\n\n\
         Every error has one code, which is the same on the wire, in the client, on the command line and in its JSON.\n\
         `turno explain CODE` shows the same text in a terminal. Generated from the code.\n\n\
         | code | number | exit status | what | why | what to do |\n|---|---|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let CodeText { what, why, fix } = code.text();
        let (number, exit) = (code.number(), code.exit());
        writeln!(text, "| `{code}` | {number} | {exit} | {what} | {why} | {fix} |").expect("a String takes everything");
    }
    same_as_published("codes.md", &text);
}

/// Every key of what the broker shows, with its kind and meaning.
#[test]
fn the_reference_of_views_is_true() {
    let mut text = String::from(
        "# Views\n\n\
         All keys of the values that the broker shows: in the answers to [admin calls](protocol/admin.md) and in `--json`. Generated\n\
         from the types of the program; the JSON schemas of `--json` documents are in `schemas/`.\n\n\
         Keys are the same in MessagePack and in JSON. Every key is present, possibly with null (nil), unless its description says\n\
         that it is omitted. Two kinds of values have different forms: a moment is RFC 3339 text in JSON and a number of Unix\n\
         milliseconds in MessagePack, both by the broker's clock; an id is text in JSON and a number in MessagePack (the id of a task:\n\
         `JOB.TASK`, and a pair of numbers). Durations are numbers of seconds with a fraction. Ignore unknown keys.\n",
    );
    let all = views();
    for (name, schema) in all.iter().filter(|(_, schema)| schema.get("properties").is_some()) {
        let about = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
        write!(text, "\n## {}\n\n{about}\n\n| key | kind | meaning |\n|---|---|---|\n", title(name))
            .expect("a String takes everything");
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            let meaning = value["description"].as_str().unwrap_or_default().replace('\n', " ");
            writeln!(text, "| `{key}` | {} | {meaning} |", kind(value, &all)).expect("a String takes everything");
        }
    }
    same_as_published("views.md", &text);
}

/// What is shown and its parts, by the names of their types.
fn views() -> BTreeMap<String, Value> {
    fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
        generator.subschema_for::<T>();
    }
    let mut generator = SchemaSettings::default().for_serialize().into_generator();
    let all = [
        add::<BroadcastEnd>,
        add::<BrokerNode>,
        add::<BrokerView>,
        add::<ConsumerView>,
        add::<DeadView>,
        add::<Explanation>,
        add::<AttemptView>,
        add::<FileView>,
        add::<JobView>,
        add::<EndpointView>,
        add::<LinkView>,
        add::<QueueView>,
        add::<RingView>,
        add::<SubscriberView>,
        add::<TaskView>,
        add::<TopicView>,
        add::<WorkerView>,
    ];
    all.iter().for_each(|add| add(&mut generator));
    generator.take_definitions(true).into_iter().collect()
}

/// `QueueView` as a heading.
fn title(name: &str) -> String {
    let mut words = String::new();
    for letter in name.trim_end_matches("View").chars() {
        match letter.is_uppercase() && !words.is_empty() {
            true => write!(words, " {}", letter.to_lowercase()).expect("a String takes everything"),
            false => words.push(letter),
        }
    }
    words
}

/// What a value is, for people.
fn kind(schema: &Value, all: &BTreeMap<String, Value>) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.trim_start_matches("#/$defs/");
        let target = &all[name];
        return match target.get("properties") {
            Some(_) => format!("[{}](#{})", title(name).to_lowercase(), title(name).to_lowercase().replace(' ', "-")),
            None => kind(target, all),
        };
    }
    if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        let choices = choices.iter().map(|choice| match choice["const"].as_str() {
            Some(word) => format!("`{word}`"),
            None => kind(choice, all),
        });
        return choices.collect::<Vec<_>>().join(", ").replace(", null", " or null");
    }
    if let Some(kinds) = schema["type"].as_array() {
        let of = |kind_of: &Value| {
            let mut one = schema.clone();
            one["type"] = kind_of.clone();
            kind(&one, all)
        };
        return kinds.iter().map(of).collect::<Vec<_>>().join(" or ");
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("date-time")) => "moment".to_owned(),
        (Some("string"), Some("decimal" | "task")) => "id".to_owned(),
        (Some("string"), _) => "text".to_owned(),
        (Some("boolean"), _) => "bool".to_owned(),
        (Some("array"), _) => format!("list of {}", kind(&schema["items"], all)),
        (Some("object"), _) => format!("map of text to {}", kind(&schema["additionalProperties"], all)),
        (Some(other), _) => other.to_owned(),
        (None, _) => "any".to_owned(),
    }
}
