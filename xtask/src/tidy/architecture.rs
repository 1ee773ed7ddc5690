//! Rule about the map: ARCHITECTURE.md names every crate and every room of the core, in code font,
//! so that a stray use of an everyday word such as "queue" does not pass for an entry.

use std::collections::BTreeSet;

use super::{Breach, lints};
use crate::manifest::Manifest;
use crate::tree::{File, Tree};

const MAP: &str = "ARCHITECTURE.md";

/// Folders whose files and folders are rooms.
const ROOMS: [&str; 2] = ["crates/engine/src/", "crates/proto/src/"];

pub(super) fn architecture_map(tree: &Tree) -> Vec<Breach> {
    let Some(map) = tree.file(MAP) else {
        let advice = "the file is missing: write the map of crates and rooms";
        return vec![Breach::new(MAP, 1, advice)];
    };
    let named = code_words(&map.text);
    let mut breaches = Vec::new();
    for file in lints::member_manifests(tree) {
        let toml = Manifest::read(&file.text);
        let name = toml.string("package.name").unwrap_or_default();
        if !named.contains(name) {
            let advice = format!("the crate `{name}` ({}) is not on the map: say what it is for", file.path);
            breaches.push(Breach::new(MAP, 1, advice));
        }
    }
    for (folder, room) in rooms(tree) {
        if !named.contains(room) {
            let advice = format!("the room `{room}` of {folder} is not on the map: say what it is for");
            breaches.push(Breach::new(MAP, 1, advice));
        }
    }
    breaches
}

/// Every room with its folder, once.
fn rooms(tree: &Tree) -> BTreeSet<(&'static str, &str)> {
    let is_test_only = |file: &File| {
        let source = file.source.as_ref();
        source.is_some_and(|source| source.lines().iter().all(|line| line.is_test))
    };
    let mut rooms = BTreeSet::new();
    for file in tree.files() {
        for folder in ROOMS {
            let Some(inner) = file.path.strip_prefix(folder) else {
                continue;
            };
            let room = match inner.split_once('/') {
                Some((room, _)) => room,
                None => file.stem(),
            };
            // An empty file counts as test-only, but it holds nothing to put on a map either.
            if inner != "lib.rs" && !is_test_only(file) {
                rooms.insert((folder, room));
            }
        }
    }
    rooms
}

/// Words that stand in code font: between backticks or in a fenced block.
fn code_words(markdown: &str) -> BTreeSet<&str> {
    let mut words = BTreeSet::new();
    let mut is_fenced = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let spans = line.split('`').enumerate();
        let code = spans.filter(|(index, _)| is_fenced || index % 2 == 1).map(|(_, span)| span);
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        words.extend(code.flat_map(|span| span.split(move |c| !is_word(c))));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const TREE: &[(&str, &str)] = &[
        ("Cargo.toml", "[workspace]\nmembers = [\"crates/engine\"]\n"),
        ("crates/engine/Cargo.toml", "[package]\nname = \"turno-engine\"\n"),
        ("crates/engine/src/lib.rs", "mod queue;\n#[cfg(test)]\nmod tests;\n"),
        ("crates/engine/src/queue.rs", "fn f() {}\n"),
        ("crates/engine/src/tests.rs", "fn f() {}\n"),
        ("crates/proto/src/zmtp/frame.rs", "fn f() {}\n"),
        ("crates/turno/src/shell.rs", "fn f() {}\n"),
    ];

    fn missing(map: &str) -> Vec<String> {
        let mut files = TREE.to_vec();
        files.push((MAP, map));
        let advice = |breach: Breach| breach.advice.split('`').nth(1).unwrap_or_default().to_owned();
        architecture_map(&Tree::of(&files)).into_iter().map(advice).collect()
    }

    #[test]
    fn what_is_not_on_the_map_is_found() {
        assert_eq!(missing("The queue of turno-engine."), ["turno-engine", "queue", "zmtp"]);
        assert_eq!(missing("`turno-engine`: `queue`"), ["zmtp"]);
    }

    #[test]
    fn what_is_on_the_map_is_left() {
        assert!(missing("`turno-engine` has `queue.rs`.\n```text\nproto/zmtp/ frames\n```\n").is_empty());
    }

    #[test]
    fn a_missing_map_is_a_finding() {
        assert_eq!(places(architecture_map, TREE), ["ARCHITECTURE.md:1"]);
    }
}
