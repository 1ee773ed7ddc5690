//! Rule about names: a room that is called after nothing ends up holding everything.

use std::collections::BTreeSet;

use super::{Breach, may_be_searched};
use crate::tree::{File, Tree};
use crate::word::{find_word, is_ident};

const VAGUE: [&str; 4] = ["helper", "util", "common", "manager"];

/// Honest words that begin with a vague one.
const CLEAR: [&str; 2] = ["utilis", "utiliz"];

pub(super) fn vague_name(tree: &Tree) -> Vec<Breach> {
    let mut seen = BTreeSet::new();
    let mut breaches = Vec::new();
    for file in tree.files() {
        for (place, name) in parts(&file.path) {
            if let Some(word) = vague_word(name)
                && seen.insert(place.to_owned())
            {
                breaches.push(Breach::new(&file.path, 1, advice(place, word)));
            }
        }
        breaches.extend(vague_modules(file));
    }
    breaches
}

/// Modules written inside a file; those in files of their own are seen by their path.
fn vague_modules(file: &File) -> Vec<Breach> {
    let Some(source) = file.source.as_ref().filter(|_| may_be_searched(file)) else {
        return Vec::new();
    };
    let breach = |(number, code): (usize, &str)| {
        let at = find_word(code, "mod")?;
        let name = code[at + "mod".len()..].trim_start();
        let name = &name[..name.find(|c| !is_ident(c)).unwrap_or(name.len())];
        let is_inline = code.trim_end().ends_with(['{', '}']);
        let word = vague_word(name).filter(|_| is_inline)?;
        Some(Breach::new(&file.path, number, advice(name, word)))
    };
    let codes = source.numbered().map(|(number, line)| (number, line.code.as_str()));
    codes.filter_map(breach).collect()
}

fn advice(place: &str, word: &str) -> String {
    format!("`{place}` says \"{word}\": name the thing it holds, or move each part to its own room")
}

fn vague_word(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let clear = CLEAR.iter().any(|word| name.contains(word));
    VAGUE.into_iter().find(|word| name.contains(word) && !clear)
}

/// Every folder above a path and the path itself, each with its last part.
fn parts(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| {
        let place = &path[..end];
        (place, place.rsplit('/').next().unwrap_or(place))
    })
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn vague_files_folders_and_modules_are_found() {
        for bad in ["crates/turno/src/utils.rs", "crates/e2e/tests/common/mod.rs", "src/queue_manager.rs"] {
            assert_eq!(places(vague_name, &[(bad, "")]), [format!("{bad}:1")]);
        }
        let inline = "fn f() {}\npub(crate) mod helpers {\n}\n";
        assert_eq!(places(vague_name, &[("a.rs", inline)]), ["a.rs:2"]);
    }

    #[test]
    fn a_folder_is_reported_once() {
        let files = [("tests/common/a.rs", ""), ("tests/common/b.rs", "")];
        assert_eq!(places(vague_name, &files), ["tests/common/a.rs:1"]);
    }

    #[test]
    fn clear_names_are_left() {
        let good = [
            ("crates/engine/src/rota.rs", "mod order {\n}\n// mod util {}\n"),
            ("crates/engine/src/utilisation.rs", ""),
        ];
        assert!(places(vague_name, &good).is_empty());
    }
}
