//! Rule about the walls inside the engine: a machine is a folder with a struct whose fields nobody else sees, and knows only
//! those rooms and machines that it is given. None knows the engine, which lends each what it needs of the rest.

use super::Breach;
use crate::source::Source;
use crate::tree::Tree;

const ENGINE: &str = "crates/engine/src/";

/// Each machine, and what it may name of the crate beside itself: other machines, and rooms that are none.
const MACHINES: [(&str, &[&str]); 5] = [
    ("archive", &["effect", "jobs", "messages", "settings"]),
    ("jobs", &["effect", "messages", "page", "settings"]),
    ("messages", &["effect", "input", "jobs", "page", "ring", "settings", "topics"]),
    ("ring", &["settings"]),
    ("topics", &["effect", "messages"]),
];

pub(super) fn machine_walls(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (file, source) in tree.sources() {
        let folder = file.path.strip_prefix(ENGINE).and_then(|inner| inner.split_once('/')).map(|(folder, _)| folder);
        let Some((machine, may_use)) = MACHINES.iter().find(|(machine, _)| folder == Some(machine)) else { continue };
        for (line, used) in used_rooms(source) {
            if used != *machine && !may_use.contains(&used.as_str()) {
                let advice = format!(
                    "the machine `{machine}` may not use `crate::{used}`: let its context carry what it needs, or give \
                     back what follows as a value"
                );
                breaches.push(Breach::new(&file.path, line, advice));
            }
        }
    }
    breaches
}

/// The rooms of the crate that are named outside tests, with their lines: written out, or by an import.
fn used_rooms(source: &Source) -> Vec<(usize, String)> {
    let written = source.numbered().flat_map(|(number, line)| {
        line.code.split("crate::").skip(1).map(move |rest| (number, first_word(rest))).collect::<Vec<_>>()
    });
    let imports = source.imports().iter();
    let imported = imports.filter_map(|import| Some((import.line, first_word(import.path.strip_prefix("crate::")?))));
    let is_named = |(number, room): &(usize, String)| !room.is_empty() && !source.lines()[number - 1].is_test;
    let mut rooms: Vec<(usize, String)> = written.chain(imported).filter(is_named).collect();
    rooms.sort_unstable();
    rooms.dedup();
    rooms
}

fn first_word(path: &str) -> String {
    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const JOBS: &str = "crates/engine/src/jobs/offer.rs";

    #[test]
    fn a_machine_that_knows_too_much_is_found() {
        for bad in [
            "use crate::engine::Engine;",
            "use crate::{archive::Archive, effect::Sink};",
            "fn f(engine: &mut crate::engine::Engine) {}",
        ] {
            assert_eq!(places(machine_walls, &[(JOBS, bad)]), [format!("{JOBS}:1")], "{bad}");
        }
    }

    #[test]
    fn what_a_machine_may_know_is_left() {
        for good in [
            "use crate::effect::{Effect, Sink};",
            "use crate::jobs::Jobs;",
            "pub(crate) fn f() {} // crate::engine",
            "#[cfg(test)]\nmod tests {\n    use crate::engine::Engine;\n}\n",
        ] {
            assert!(places(machine_walls, &[(JOBS, good)]).is_empty(), "{good}");
        }
        assert!(places(machine_walls, &[("crates/engine/src/queue.rs", "use crate::engine::Engine;")]).is_empty());
    }
}
