//! Rules that keep the core predictable: the same inputs give the same effects, in every process.

use super::{Breach, crate_folder, may_be_searched};
use crate::source::Source;
use crate::tree::{File, Tree};
use crate::word::find_path;

/// Crates that touch the world only through their arguments and results.
const PURE_CRATES: [&str; 3] = ["proto", "engine", "store"];

const IMPURE: [(&str, &str); 6] = [
    ("Instant::now", "take `now: Mono` as an argument"),
    ("SystemTime::now", "let the shell pass wall-clock facts in as values"),
    ("std::net::Tcp", "take and give bytes; sockets belong to crates/broker"),
    ("std::fs", "give an effect out and take its result in; the shell does the I/O"),
    ("thread::sleep", "set a timer and report it by `next_deadline`"),
    ("tokio::", "no runtime here: `handle_*` takes, `poll_*` gives"),
];

/// The one file of the core that is the world: the store's real disk.
const REAL_DISK: &str = "crates/store/src/disk/fs.rs";

const HASHED: [&str; 2] = ["HashMap", "HashSet"];

pub(super) fn core_purity(tree: &Tree) -> Vec<Breach> {
    let is_core = |file: &File| crate_folder(&file.path).is_some_and(|name| PURE_CRATES.contains(&name));
    let is_pure = |file: &File| is_core(file) && file.path != REAL_DISK;
    let mut breaches = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| is_pure(file)) {
        for (forbidden, instead) in IMPURE {
            for line in production_uses(source, forbidden) {
                let advice = format!("{forbidden} in the core: {instead}");
                breaches.push(Breach::new(&file.path, line, advice));
            }
        }
    }
    breaches
}

/// Lines outside tests that name `path`, written out or through a grouped import.
fn production_uses(source: &Source, path: &str) -> Vec<usize> {
    let mut lines = uses(source, path);
    lines.retain(|&number| !source.lines()[number - 1].is_test);
    lines
}

fn uses(source: &Source, path: &str) -> Vec<usize> {
    let written = source.numbered().filter(|(_, line)| find_path(&line.code, path).is_some()).map(|(number, _)| number);
    let imported =
        source.imports().iter().filter(|import| find_path(&import.path, path).is_some()).map(|import| import.line);
    let mut lines: Vec<usize> = written.chain(imported).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Where tables have an order that is the same in each process: by a seed that is told from outside, or by none.
const ORDERED: [&str; 2] = ["crates/engine/src/topics/seeded.rs", "crates/engine/src/messages/table/numbered.rs"];

pub(super) fn hash_order(tree: &Tree) -> Vec<Breach> {
    let is_ordered = |path: &str| ORDERED.contains(&path);
    let in_engine =
        |file: &File| file.path.starts_with("crates/engine/src/") && !is_ordered(&file.path) && may_be_searched(file);
    let mut breaches = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| in_engine(file)) {
        for name in HASHED {
            for line in uses(source, &format!("std::collections::{name}")) {
                let advice =
                    format!("{name} is ordered at random in each process: use a BTree collection or an own index");
                breaches.push(Breach::new(&file.path, line, advice));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const ENGINE: &str = "crates/engine/src/queue.rs";

    #[test]
    fn the_world_is_found_in_the_core() {
        for bad in [
            "let now = Instant::now();",
            "let now = std::time::SystemTime::now();",
            "use std::net::TcpStream;",
            "use std::{fs, io};",
            "std::fs::read(path);",
            "thread::sleep(x);",
            "use tokio::sync::mpsc;",
        ] {
            assert_eq!(places(core_purity, &[(ENGINE, bad)]), [format!("{ENGINE}:1")], "{bad}");
            assert_eq!(places(core_purity, &[("crates/store/src/a.rs", bad)]).len(), 1, "{bad}");
            assert!(places(core_purity, &[("crates/turno/src/a.rs", bad)]).is_empty(), "{bad}");
        }
    }

    #[test]
    fn the_world_may_stand_in_tests_and_comments_of_the_core() {
        let good = "//! No tokio::, no std::fs.\nuse std::net::IpAddr;\nfn f(now: Mono) {}\n\
                    #[cfg(test)]\nmod tests {\n    use std::fs;\n    fn g() { Instant::now(); }\n}\n";
        assert!(places(core_purity, &[(ENGINE, good)]).is_empty());
        assert!(places(core_purity, &[("crates/proto/tests/a.rs", "use std::fs;")]).is_empty());
    }

    #[test]
    fn files_are_touched_in_one_place_of_the_store() {
        assert!(places(core_purity, &[(REAL_DISK, "use std::fs;")]).is_empty());
        assert_eq!(places(core_purity, &[("crates/store/src/disk/mod.rs", "use std::fs;")]).len(), 1);
    }

    #[test]
    fn hashed_collections_are_found_in_the_engine() {
        let bad = "use std::collections::{BTreeMap, HashMap};\nlet x: std::collections::HashSet<u8>;\n";
        assert_eq!(places(hash_order, &[(ENGINE, bad)]), [format!("{ENGINE}:1"), format!("{ENGINE}:2")]);
        let good = "use std::collections::{BTreeMap, VecDeque};\n// std::collections::HashMap\n";
        assert!(places(hash_order, &[(ENGINE, good)]).is_empty());
        assert!(
            places(hash_order, &[("crates/client/src/a.rs", bad), (ORDERED[0], bad), (ORDERED[1], bad)]).is_empty()
        );
    }
}
