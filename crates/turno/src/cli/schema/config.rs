//! Documents of the configuration.

use schemars::JsonSchema;
use serde::Serialize;
use turno_broker::config::{Setting, Value};

use crate::cli::table::{Column, Row, columns};

/// A key with its value.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettingRow {
    /// The key, with dots between tables.
    pub(crate) key: String,
    /// Its value: durations in seconds, sizes in bytes.
    pub(crate) value: serde_json::Value,
    /// Its value as it would be written.
    pub(crate) text: String,
    /// `default`, file and line, `environment VARIABLE` or `flag --FLAG`.
    pub(crate) origin: String,
    /// The environment variable that sets it.
    pub(crate) variable: String,
    /// Its effect.
    pub(crate) doc: String,
}

impl From<&Setting> for SettingRow {
    fn from(setting: &Setting) -> Self {
        Self {
            key: setting.key.name.to_owned(),
            value: json_of(&setting.value),
            text: setting.value.to_string(),
            origin: setting.origin.to_string(),
            variable: setting.key.variable(),
            doc: setting.key.doc.to_owned(),
        }
    }
}

/// Durations in seconds, sizes in bytes.
fn json_of(value: &Value) -> serde_json::Value {
    match value {
        Value::None => serde_json::Value::Null,
        Value::List(items) => items.clone().into(),
        Value::Listen(addresses) => addresses.iter().map(ToString::to_string).collect::<Vec<_>>().into(),
        Value::Size(number) | Value::Count(number) => (*number).into(),
        Value::Switch(on) => (*on).into(),
        Value::Duration(duration) => duration.as_secs_f64().into(),
        // A secret is hidden here as well.
        Value::Text(_) | Value::Path(_) | Value::Secret(_) => value.to_string().into(),
    }
}

impl Row for SettingRow {
    const COLUMNS: &'static [Column<Self>] = columns![
        key;
        value = |row, _| row.text.clone();
        wide origin;
        wide variable;
        wide doc as "MEANING";
    ];

    fn name(&self) -> String {
        self.key.clone()
    }
}

/// Every key.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigDocument<'a> {
    /// The files that were read, in order.
    pub(crate) files: Vec<String>,
    /// The keys in order.
    pub(crate) settings: &'a [SettingRow],
}

/// A configuration without problems.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckDocument {
    /// The files that were read, in order.
    pub(crate) files: Vec<String>,
    /// Always true: problems end in an error document.
    pub(crate) valid: bool,
}
