//! Rule about the map: ARCHITECTURE.md names every crate and stays short, docs/reference/modules.md shows the modules of
//! the crates that ship as they are, and its table of places holds.

use super::{Breach, lints};
use crate::manifest::Manifest;
use crate::map::{self, MAP};
use crate::tree::Tree;

/// The crate that is shipped, with all it depends on.
const SHIPPED: &str = "turno";
const OVERVIEW: &str = "ARCHITECTURE.md";
/// A page that is read in one sitting.
const OVERVIEW_BYTES_MAX: usize = 15_000;

pub(super) fn architecture_map(tree: &Tree) -> Vec<Breach> {
    let (Some(overview), Some(page)) = (tree.file(OVERVIEW), tree.file(MAP)) else {
        let missing = if tree.file(OVERVIEW).is_none() { OVERVIEW } else { MAP };
        return vec![Breach::new(missing, 1, "the file is missing: write the map of crates and modules")];
    };
    let drawn = map::draw(tree, &page.text);
    let mut breaches: Vec<Breach> =
        drawn.faults.iter().map(|fault| Breach::new(&fault.path, fault.line, &*fault.advice)).collect();
    if drawn.text != page.text {
        let same = drawn.text.lines().zip(page.text.lines()).take_while(|(one, other)| one == other).count();
        breaches.push(Breach::new(MAP, same + 1, "the map is not current: `cargo xtask map --write`"));
    }
    if overview.text.len() > OVERVIEW_BYTES_MAX {
        let advice = format!("more than {OVERVIEW_BYTES_MAX} bytes: move details to docs/ or beside the code");
        breaches.push(Breach::new(OVERVIEW, 1, advice));
    }
    let manifests: Vec<(&str, Manifest<'_>)> = lints::member_manifests(tree)
        .into_iter()
        .filter_map(|file| Some((file.path.strip_suffix("/Cargo.toml")?, Manifest::read(&file.text))))
        .collect();
    let shipped = shipped(&manifests);
    for (folder, manifest) in &manifests {
        let name = manifest.string("package.name").unwrap_or_default();
        if !overview.text.contains(&format!("`{name}`")) {
            let advice = format!("the crate `{name}` ({folder}) is not on the map: say what it is for");
            breaches.push(Breach::new(OVERVIEW, 1, advice));
        }
        let modules = format!("{folder}/src");
        if shipped.contains(&name) && !drawn.folders.contains(&modules) {
            let advice = format!(
                "the modules of `{name}` are not on the map: write `<!-- modules of {modules} -->` and `<!-- end -->`"
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

    const CRATES: &str = "`turno` `turno-engine` `turno-sim`\n";
    const CURRENT: &str = "<!-- modules of crates/turno/src -->\n\
                           | module | purpose |\n|---|---|\n<!-- end -->\n<!-- modules of crates/engine/src -->\n\
                           | module | purpose |\n|---|---|\n| `queue` | A queue |\n<!-- end -->\n";

    fn faults(overview: &str, page: &str) -> Vec<String> {
        places(architecture_map, &[TREE, &[(OVERVIEW, overview), (MAP, page)]].concat())
    }

    #[test]
    fn a_current_map_is_left() {
        assert!(faults(CRATES, CURRENT).is_empty());
    }

    #[test]
    fn what_is_not_on_the_map_or_not_current_is_found() {
        assert_eq!(faults("`turno` `turno-engine` turno-sim\n", CURRENT), ["ARCHITECTURE.md:1"]);
        assert_eq!(faults(CRATES, &CURRENT.replace("A queue", "A backlog")), ["docs/reference/modules.md:8"]);
        assert_eq!(faults(CRATES, ""), ["docs/reference/modules.md:1", "docs/reference/modules.md:1"]);
        assert_eq!(places(architecture_map, TREE), ["ARCHITECTURE.md:1"]);
        let only = [TREE, &[(OVERVIEW, CRATES)]].concat();
        assert_eq!(places(architecture_map, &only), ["docs/reference/modules.md:1"]);
    }

    #[test]
    fn a_long_overview_is_found() {
        assert_eq!(faults(&format!("{CRATES}{}", "x".repeat(15_000)), CURRENT), ["ARCHITECTURE.md:1"]);
    }
}
