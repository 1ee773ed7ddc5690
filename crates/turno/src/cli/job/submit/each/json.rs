//! One task for each JSON value: of an array, or of values one after the other, as in JSON lines.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::lines::not_text;
use super::{Input, Items, bad};
use crate::cli::error::Failure;

/// Objects have a field for each of their members, everything else is one field.
pub(super) fn items(input: &Input) -> Result<Items, Failure> {
    let text = std::str::from_utf8(&input.bytes).map_err(|error| {
        let before = input.bytes.get(..error.valid_up_to()).unwrap_or_default();
        not_text(&input.at(lines_of(before)))
    })?;
    let failed =
        |error: serde_json::Error| bad(&input.at(error.line() as u64), "not valid JSON").why(error.to_string());
    let values: Vec<&RawValue> = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text).map_err(failed)?,
        false => serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map_err(failed)?,
    };
    let Some(first) = values.first() else { return Items::plain() };
    // The value is a part of the text: its place tells the line.
    let at = |value: &RawValue| {
        let place = value.get().as_ptr() as usize - text.as_ptr() as usize;
        input.at(lines_of(input.bytes.get(..place).unwrap_or_default()))
    };
    match Value::of(first) {
        Value::Object(members) => objects(&values, members, at),
        Value::Scalar(_) => {
            let mut items = Items::plain()?;
            for value in &values {
                let Value::Scalar(text) = Value::of(value) else {
                    return Err(bad(&at(value), "an object follows a value that is not an object").why(ALIKE));
                };
                items.push(&[text], || at(value))?;
            }
            Ok(items)
        }
    }
}

const ALIKE: &str = "either all values are objects with the same members, or none is";

/// The members of the first one name the columns; all others have the same, in whatever order.
fn objects(
    values: &[&RawValue],
    first: Vec<(String, String)>,
    at: impl Fn(&RawValue) -> String,
) -> Result<Items, Failure> {
    let columns: Vec<String> = first.into_iter().map(|(name, _)| name).collect();
    let place = values.first().map(|value| at(value)).unwrap_or_default();
    if columns.is_empty() {
        return Err(bad(&place, "the object is empty").why(ALIKE));
    }
    let places: BTreeMap<&str, usize> = columns.iter().map(String::as_str).zip(0..).collect();
    let mut items = Items::new(columns.clone(), &place)?;
    for value in values {
        let Value::Object(members) = Value::of(value) else {
            return Err(bad(&at(value), "a value that is not an object follows an object").why(ALIKE));
        };
        let mut fields: Vec<Option<String>> = vec![None; columns.len()];
        for (name, text) in members {
            let field = places.get(name.as_str()).and_then(|place| fields.get_mut(*place));
            match field {
                None => return Err(bad(&at(value), &format!("the first object has no member {name:?}")).why(ALIKE)),
                Some(Some(_)) => return Err(bad(&at(value), &format!("duplicate member {name:?}"))),
                Some(field) => *field = Some(text),
            }
        }
        let missing = fields.iter().zip(&columns).find(|(field, _)| field.is_none());
        if let Some((_, name)) = missing {
            return Err(bad(&at(value), &format!("the member {name:?} is missing")).why(ALIKE));
        }
        let fields: Vec<String> = fields.into_iter().flatten().collect();
        items.push(&fields, || at(value))?;
    }
    Ok(items)
}

/// A value as far as tasks are concerned.
enum Value {
    /// Name and text of each member, in their order.
    Object(Vec<(String, String)>),
    /// Its text.
    Scalar(String),
}

impl Value {
    fn of(raw: &RawValue) -> Self {
        match serde_json::from_str::<Members<'_>>(raw.get()) {
            Ok(Members(members)) => {
                Self::Object(members.into_iter().map(|(name, value)| (name, text_of(value))).collect())
            }
            Err(_) => Self::Scalar(text_of(raw)),
        }
    }
}

/// A string without its quotes, nothing for null; numbers, lists and objects as they are written.
fn text_of(raw: &RawValue) -> String {
    match raw.get() {
        "null" => String::new(),
        text => serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()),
    }
}

/// The members of an object in their order, also those that are there twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// The line behind that text, from 1 on.
fn lines_of(before: &[u8]) -> u64 {
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}
