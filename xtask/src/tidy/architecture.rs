//! Rule about the map: ARCHITECTURE.md names every crate, shows the rooms of those that ship as they are, and its table of
//! places holds.

use super::{Breach, lints};
use crate::manifest::Manifest;
use crate::map::{self, MAP};
use crate::tree::Tree;

/// The crate that is shipped, with all it depends on.
const SHIPPED: &str = "turno";

pub(super) fn architecture_map(tree: &Tree) -> Vec<Breach> {
    let Some(page) = tree.file(MAP) else {
        return vec![Breach::new(MAP, 1, "the file is missing: write the map of crates and rooms")];
    };
    let drawn = map::draw(tree, &page.text);
    let mut breaches: Vec<Breach> =
        drawn.faults.iter().map(|fault| Breach::new(&fault.path, fault.line, &*fault.advice)).collect();
    if drawn.text != page.text {
        let same = drawn.text.lines().zip(page.text.lines()).take_while(|(one, other)| one == other).count();
        breaches.push(Breach::new(MAP, same + 1, "the map is not current: `cargo xtask map --write`"));
    }
    let manifests: Vec<(&str, Manifest<'_>)> = lints::member_manifests(tree)
        .into_iter()
        .filter_map(|file| Some((file.path.strip_suffix("/Cargo.toml")?, Manifest::read(&file.text))))
        .collect();
    let shipped = shipped(&manifests);
    for (folder, manifest) in &manifests {
        let name = manifest.string("package.name").unwrap_or_default();
        if !page.text.contains(&format!("`{name}`")) {
            let advice = format!("the crate `{name}` ({folder}) is not on the map: say what it is for");
            breaches.push(Breach::new(MAP, 1, advice));
        }
        let rooms = format!("{folder}/src");
        if shipped.contains(&name) && !drawn.folders.contains(&rooms) {
            let advice = format!(
                "the rooms of `{name}` are not on the map: write `<!-- rooms of {rooms} -->` and `<!-- end -->`"
            );
            breaches.push(Breach::new(MAP, 1, advice));
        }
    }
    breaches
}

/// Names of the crates that end up in what users run.
fn shipped<'a>(manifests: &'a [(&str, Manifest<'_>)]) -> Vec<&'a str> {
    let mut names = vec![SHIPPED];
    let mut at = 0;
    while let Some(name) = names.get(at).copied() {
        let found = manifests.iter().find(|(_, manifest)| manifest.string("package.name") == Some(name));
        for dependency in found.iter().flat_map(|(_, manifest)| manifest.dependencies()) {
            if dependency.is_shipped && !names.contains(&dependency.name) {
                names.push(dependency.name);
            }
        }
        at += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const TREE: &[(&str, &str)] = &[
        ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
        ("crates/turno/Cargo.toml", "[package]\nname = \"turno\"\n[dependencies]\nturno-engine.workspace = true\n"),
        ("crates/engine/Cargo.toml", "[package]\nname = \"turno-engine\"\n"),
        ("crates/engine/src/queue.rs", "//! A queue.\nfn f() {}\n"),
        ("crates/sim/Cargo.toml", "[package]\nname = \"turno-sim\"\n[dependencies]\nturno.workspace = true\n"),
    ];

    const CURRENT: &str = "`turno` `turno-engine` `turno-sim`\n<!-- rooms of crates/turno/src -->\n\
                           | room | what it is for |\n|---|---|\n<!-- end -->\n<!-- rooms of crates/engine/src -->\n\
                           | room | what it is for |\n|---|---|\n| `queue` | A queue |\n<!-- end -->\n";

    fn faults(page: &str) -> Vec<String> {
        places(architecture_map, &[TREE, &[(MAP, page)]].concat())
    }

    #[test]
    fn a_current_map_is_left() {
        assert!(faults(CURRENT).is_empty());
    }

    #[test]
    fn what_is_not_on_the_map_or_not_current_is_found() {
        assert_eq!(faults(&CURRENT.replace("`turno-sim`", "turno-sim")), ["ARCHITECTURE.md:1"]);
        assert_eq!(faults(&CURRENT.replace("A queue", "A backlog")), ["ARCHITECTURE.md:9"]);
        assert_eq!(faults("`turno` `turno-engine` `turno-sim`\n"), ["ARCHITECTURE.md:1", "ARCHITECTURE.md:1"]);
        assert_eq!(places(architecture_map, TREE), ["ARCHITECTURE.md:1"]);
    }
}
