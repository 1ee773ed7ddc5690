//! Items of another crate that a crate shows as its own.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Paths that the crate re-exports from other crates, from rustdoc's JSON of it.
pub(super) fn of(json: &str) -> Result<Vec<String>> {
    let document: Value = serde_json::from_str(json).context("rustdoc wrote no JSON")?;
    let index = document["index"].as_object().context("rustdoc's JSON has no index")?;
    let uses = index.values().filter(|item| item["visibility"] == "public").map(|item| &item["inner"]["use"]);
    let mut paths: Vec<String> = uses.filter_map(|of| of["source"].as_str()).map(ToOwned::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Whether a line of an API is about one of the items, or about a part of it.
pub(super) fn is_part(line: &str, paths: &[String]) -> bool {
    let about = subject(line);
    paths.iter().any(|path| {
        about.match_indices(path.as_str()).any(|(at, _)| {
            let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
            let (before, after) = (about[..at].chars().next_back(), about[at + path.len()..].chars().next());
            let ends = after.is_none_or(|letter| letter == ':' || !is_word(letter));
            before.is_none_or(|letter| !is_word(letter)) && ends
        })
    })
}

/// The types, constants excluded, of these crates that a line names: paths up to the first name in upper case.
pub(super) fn types(line: &str, crates: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for word in line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':')) {
        let mut path = Vec::new();
        let mut segments = word.trim_end_matches(':').split("::");
        if !segments.clone().next().is_some_and(|first| crates.iter().any(|of| of == first)) {
            continue;
        }
        let is_type = segments.any(|segment| {
            path.push(segment);
            segment.starts_with(char::is_uppercase) && segment.contains(char::is_lowercase)
        });
        if is_type {
            found.push(path.join("::"));
        }
    }
    found
}

/// Whether two paths are about one type: the same name in the same crate. rustdoc names a type now by the module that declares it,
/// which may be private, now by the one that shows it.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let ends = |path: &str| {
        let crate_name = path.split("::").next().unwrap_or_default().to_owned();
        (crate_name, path.rsplit("::").next().unwrap_or_default().to_owned())
    };
    ends(one) == ends(other)
}

/// The words of a line up to the types of a function or a field; all of an implementation.
fn subject(line: &str) -> &str {
    if line.starts_with("impl") {
        return line;
    }
    let end = ["(", ": ", " = ", " where "].iter().filter_map(|mark| line.find(mark)).min();
    &line[..end.unwrap_or(line.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_uses_are_found() {
        let json = r#"{ "index": {
            "1": { "visibility": "public", "inner": { "use": { "source": "other::model::Code" } } },
            "2": { "visibility": "crate", "inner": { "use": { "source": "other::Hidden" } } },
            "3": { "visibility": "public", "inner": { "struct": {} } }
        } }"#;
        assert_eq!(of(json).unwrap(), ["other::model::Code"]);
        assert!(of("no").is_err());
    }

    #[test]
    fn types_of_other_crates_are_found() {
        let crates = ["other".to_owned()];
        let line =
            "pub fn mine::a(other::model::Code, &[other::b::View::Part]) -> alloc::vec::Vec<other::MAX> other::c::go";
        assert_eq!(types(line, &crates), ["other::model::Code", "other::b::View"]);
        assert!(is_same("other::model::Code", "other::code::Code"));
        assert!(!is_same("other::model::Code", "another::model::Code") && !is_same("other::Code", "other::CodeText"));
    }

    #[test]
    fn parts_of_an_item_belong_to_it_and_mentions_do_not() {
        let paths = ["other::model::Code".to_owned()];
        for part in [
            "pub enum other::model::Code",
            "pub other::model::Code::NotFound",
            "pub const fn other::model::Code::name(self) -> &'static str",
            "impl core::clone::Clone for other::model::Code",
        ] {
            assert!(is_part(part, &paths), "{part}");
        }
        for other in [
            "pub struct other::model::CodeText",
            "pub other::model::View::code: other::model::Code",
            "pub fn other::explain(code: other::model::Code)",
            "pub enum another::other::model::Code",
        ] {
            assert!(!is_part(other, &paths), "{other}");
        }
    }
}
