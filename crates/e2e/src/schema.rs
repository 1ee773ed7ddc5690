//! Holds what commands print to the published schemas in `docs/reference/schemas`.
//!
//! A small reader of JSON Schema: only the words that those files use. One that it does not know fails the test,
//! so that no check is skipped in silence.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::run::Run;

/// Words that describe and do not check.
const SILENT: [&str; 6] = ["$defs", "$schema", "default", "description", "format", "title"];

impl Run {
    /// Standard output as exactly one JSON document of that schema (`turno.queue_list/1`), and nothing else.
    #[track_caller]
    pub fn document(&self, schema: &str) -> Value {
        let document = self.json();
        assert_eq!(document["schema"], schema, "stdout: {}\nstderr: {}", self.text(), self.stderr);
        check(&document);
        document
    }

    /// Standard output as one JSON document a line, each of its own schema.
    #[track_caller]
    pub fn documents(&self) -> Vec<Value> {
        self.text().lines().map(document).collect()
    }

    /// The code of the error that standard output holds as its one document.
    #[track_caller]
    pub fn error_code(&self) -> String {
        let document = self.document("turno.error/1");
        document["error"]["code"].as_str().expect("the schema says text").to_owned()
    }
}

/// One line as a document of the schema it names.
#[track_caller]
pub fn document(line: &str) -> Value {
    let document: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    check(&document);
    document
}

/// Fails the test unless the document is what the published schema it names says.
#[track_caller]
pub fn check(document: &Value) {
    let name = document["schema"].as_str().unwrap_or_else(|| panic!("a document names its schema: {document}"));
    let file = folder().join(format!("{}.json", name.replace('/', ".")));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let root: Value = serde_json::from_str(&text).expect("a published schema is JSON");
    let faults = faults(&root, document);
    assert!(faults.is_empty(), "{name}: {}\n{document:#}", faults.join("; "));
}

/// The names of every published schema.
pub fn published() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the published schemas");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".1.json").map(|stem| format!("{stem}/1")))
        .collect();
    names.sort();
    names
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas")
}

/// Mistakes of a value, by the root of a schema.
pub fn faults(root: &Value, value: &Value) -> Vec<String> {
    let mut reader = Reader { root, faults: Vec::new() };
    reader.value(root, value, "$");
    reader.faults
}

struct Reader<'a> {
    root: &'a Value,
    faults: Vec<String>,
}

impl<'a> Reader<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value, place: &str) {
        let rules = match schema {
            Value::Bool(true) => return,
            Value::Object(rules) => rules,
            other => return self.fault(place, format!("is held to {other}, which is no schema")),
        };
        for (word, rule) in rules {
            self.rule(rules, word, rule, value, place);
        }
    }

    fn rule(&mut self, rules: &'a Map<String, Value>, word: &str, rule: &'a Value, value: &Value, place: &str) {
        match word {
            _ if SILENT.contains(&word) => {}
            "$ref" => match rule.as_str().and_then(|path| self.root.pointer(path.strip_prefix('#')?)) {
                Some(target) => self.value(target, value, place),
                None => self.fault(place, format!("is held to {rule}, which is not there")),
            },
            "type" if !types(rule).any(|name| is(name, value)) => self.fault(place, format!("is {value}, not {rule}")),
            "const" if rule != value => self.fault(place, format!("is {value}, not {rule}")),
            "enum" if !rule.as_array().is_some_and(|list| list.contains(value)) => {
                self.fault(place, format!("is {value}, not one of {rule}"));
            }
            "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => {
                self.fault(place, format!("is {value}, less than {rule}"));
            }
            "maximum" if value.as_f64() > rule.as_f64() => self.fault(place, format!("is {value}, more than {rule}")),
            "required" => {
                let keys = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                let missing: Vec<&str> = keys.filter(|key| value.is_object() && value.get(key).is_none()).collect();
                missing.iter().for_each(|key| self.fault(place, format!("has no {key}")));
            }
            "properties" | "additionalProperties" => self.members(rules, word, rule, value, place),
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.value(rule, item, &format!("{place}[{number}]"));
                }
            }
            "anyOf" | "oneOf" => {
                let choices = rule.as_array().into_iter().flatten();
                let fitting = choices.filter(|choice| self.fits(choice, value)).count();
                if fitting == 0 || (word == "oneOf" && fitting > 1) {
                    self.fault(place, format!("fits {fitting} of {word}"));
                }
            }
            "type" | "const" | "enum" | "minimum" | "maximum" => {}
            unknown => self.fault(place, format!("is held to {unknown:?}, which this reader does not know")),
        }
    }

    fn members(&mut self, rules: &'a Map<String, Value>, word: &str, rule: &'a Value, value: &Value, place: &str) {
        let listed = rules.get("properties").and_then(Value::as_object);
        for (key, member) in value.as_object().into_iter().flatten() {
            let inner = format!("{place}.{key}");
            match (word, listed.and_then(|listed| listed.get(key))) {
                ("properties", Some(schema)) => self.value(schema, member, &inner),
                ("additionalProperties", None) if *rule == Value::Bool(false) => {
                    self.fault(&inner, "is not foreseen".to_owned());
                }
                ("additionalProperties", None) => self.value(rule, member, &inner),
                _ => {}
            }
        }
    }

    fn fits(&self, schema: &'a Value, value: &Value) -> bool {
        let mut reader = Self { root: self.root, faults: Vec::new() };
        reader.value(schema, value, "");
        reader.faults.is_empty()
    }

    fn fault(&mut self, place: &str, text: String) {
        self.faults.push(format!("{place} {text}"));
    }
}

fn types(rule: &Value) -> impl Iterator<Item = &str> {
    let many = rule.as_array().into_iter().flatten();
    rule.as_str().into_iter().chain(many.filter_map(Value::as_str))
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_has_no_faults_and_what_does_not_has() {
        let schema = json!({
            "$defs": { "Row": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } } },
            "type": "object",
            "required": ["rows"],
            "properties": {
                "rows": { "type": "array", "items": { "$ref": "#/$defs/Row" } },
                "next": { "type": ["string", "null"] },
                "one": { "anyOf": [{ "$ref": "#/$defs/Row" }, { "type": "null" }] },
                "count": { "type": "integer", "minimum": 0, "maximum": 9 },
                "kind": { "enum": ["a", "b"] },
                "headers": { "type": "object", "additionalProperties": { "type": "string" } },
            },
        });
        let table = [
            (json!({ "rows": [] }), 0),
            (json!({ "rows": [{ "name": "a" }], "next": null, "one": null, "count": 9, "kind": "b" }), 0),
            (json!({ "rows": [], "headers": { "a": "b" }, "one": { "name": "x" }, "added later": 1 }), 0),
            (json!([]), 1),
            (json!({}), 1),
            (json!({ "rows": [{}] }), 1),
            (json!({ "rows": [{ "name": 1 }, 2] }), 2),
            (json!({ "rows": [], "next": 1 }), 1),
            (json!({ "rows": [], "one": {} }), 1),
            (json!({ "rows": [], "count": -1 }), 1),
            (json!({ "rows": [], "count": 10 }), 1),
            (json!({ "rows": [], "count": 1.5 }), 1),
            (json!({ "rows": [], "kind": "c" }), 1),
            (json!({ "rows": [], "headers": { "a": 1 } }), 1),
        ];
        for (value, expected) in table {
            let found = faults(&schema, &value);
            assert_eq!(found.len(), expected, "{value}: {found:?}");
        }
        assert_eq!(faults(&json!({ "pattern": "x" }), &json!("y")).len(), 1, "an unknown word is a fault");
        assert_eq!(faults(&json!({ "$ref": "#/$defs/None" }), &json!("y")).len(), 1);
        assert_eq!(faults(&json!({ "oneOf": [{ "type": "string" }, { "const": "y" }] }), &json!("y")).len(), 1);
    }
}
