//! Rules about who may depend on whom, read from the manifests: the compiler then enforces the rest.

use super::{Breach, crate_folder};
use crate::manifest::{Dependency, Manifest};
use crate::tree::{File, Tree};
use crate::word::find_word;

/// Crates that others compile into their programs, so that errors are closed enums.
const LIBRARIES: [&str; 5] = ["proto", "engine", "store", "client", "broker"];

/// Dependencies that proto must not have: it is bytes in, values out.
const TOO_MUCH_FOR_PROTO: [&str; 3] = ["tokio", "tokio-util", "serde_json"];

const ENGINE_MAY_TAKE: [&str; 1] = ["bytes"];

/// Dependencies that a program that embeds a broker does not want to compile.
const COMMAND_LINE: [&str; 3] = ["clap", "clap_complete", "clap_mangen"];

pub(super) fn direction(tree: &Tree) -> Vec<Breach> {
    let ours: Vec<(&str, String)> = crate_manifests(tree)
        .filter_map(|(folder, _, toml)| Some((folder, toml.string("package.name")?.to_owned())))
        .collect();
    let mut breaches = Vec::new();
    for (folder, file, toml) in crate_manifests(tree) {
        for dependency in toml.dependencies() {
            let found = ours.iter().find(|(_, package)| *package == dependency.name);
            if let Some((other, _)) = found
                && let Some(rule) = forbids(folder, other)
                && !is_for_tests(folder, other, &dependency)
            {
                let advice = format!("{folder} depends on {other}: {rule}");
                breaches.push(Breach::new(&file.path, dependency.line, advice));
            }
        }
    }
    breaches
}

/// The documented examples and tests of client and broker take the other one, and tests take their own crate with its
/// features. Nothing of that is shipped.
fn is_for_tests(from: &str, to: &str, dependency: &Dependency<'_>) -> bool {
    (from == to || matches!((from, to), ("client", "broker") | ("broker", "client"))) && !dependency.is_shipped
}

/// Why `crates/from` must not depend on `crates/to`, if it must not.
fn forbids(from: &str, to: &str) -> Option<&'static str> {
    match (from, to) {
        ("proto", _) => Some("proto depends on none of our crates; move what it needs into proto"),
        ("engine", "proto") | ("client", "proto") => None,
        ("store", _) => Some("store knows bytes, not meaning; it depends on none of our crates"),
        ("engine", _) => Some("engine depends on proto only; pass values in, give effects out"),
        ("client", _) => Some("client depends on proto only; test it against the real binary in e2e"),
        ("broker", "client") => Some("broker serves clients and is none; tests may take the client"),
        (_, "turno") => Some("turno is the command line; a broker to embed is in broker"),
        ("e2e", "engine" | "broker") => Some("e2e drives the real binary; look at it from outside"),
        _ => None,
    }
}

pub(super) fn outside(tree: &Tree) -> Vec<Breach> {
    let names: Vec<String> =
        crate_manifests(tree).filter_map(|(_, _, toml)| Some(toml.string("package.name")?.to_owned())).collect();
    let mut breaches = Vec::new();
    for (folder, file, toml) in crate_manifests(tree) {
        let shipped = toml.dependencies().into_iter().filter(|dependency| dependency.is_shipped);
        for dependency in shipped {
            let name = dependency.name;
            let is_ours = names.iter().any(|ours| ours == name);
            let advice = match folder {
                "proto" if TOO_MUCH_FOR_PROTO.contains(&name) => {
                    format!("proto takes {name}: it must not; bytes in, values out")
                }
                "engine" if !is_ours && !ENGINE_MAY_TAKE.contains(&name) => {
                    format!("engine takes {name}: of others it takes bytes only; write an ADR first")
                }
                "broker" if COMMAND_LINE.contains(&name) => {
                    format!("broker takes {name}: it is for programs of any kind; the command line is in turno")
                }
                _ => continue,
            };
            breaches.push(Breach::new(&file.path, dependency.line, advice));
        }
    }
    breaches
}

pub(super) fn anyhow_in_library(tree: &Tree) -> Vec<Breach> {
    let advice = "anyhow in a library: return a closed, comparable enum (thiserror)";
    let mut breaches = Vec::new();
    for (folder, file, toml) in crate_manifests(tree) {
        let found = toml.dependencies().into_iter().filter(|dependency| dependency.name == "anyhow");
        if LIBRARIES.contains(&folder) {
            breaches.extend(found.map(|dependency| Breach::new(&file.path, dependency.line, advice)));
        }
    }
    let is_library = |file: &File| crate_folder(&file.path).is_some_and(|name| LIBRARIES.contains(&name));
    for (file, source) in tree.sources().filter(|(file, _)| is_library(file)) {
        let named = source.numbered().filter(|(_, line)| find_word(&line.code, "anyhow").is_some());
        breaches.extend(named.map(|(number, _)| Breach::new(&file.path, number, advice)));
    }
    breaches
}

/// The manifests of `crates/*`, each with the name of its folder.
fn crate_manifests(tree: &Tree) -> impl Iterator<Item = (&str, &File, Manifest<'_>)> {
    tree.files().filter_map(|file| {
        let folder = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        (!folder.contains('/')).then(|| (folder, file, Manifest::read(&file.text)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    /// A manifest whose first dependency stands in line 4.
    fn manifest(name: &str, dependencies: &str) -> String {
        format!("[package]\nname = \"{name}\"\n[dependencies]\n{dependencies}")
    }

    /// Where a rule finds fault when `crates/<folder>` has these dependencies.
    fn faults(check: fn(&Tree) -> Vec<Breach>, folder: &str, dependencies: &str) -> Vec<String> {
        let folders = ["broker", "client", "e2e", "engine", "proto", "sim", "store", "turno"];
        let files: Vec<(String, String)> = folders
            .iter()
            .map(|one| {
                let mine = if *one == folder { dependencies } else { "" };
                let path = format!("crates/{one}/Cargo.toml");
                (path, manifest(&format!("turno-{one}").replace("turno-turno", "turno"), mine))
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        places(check, &files)
    }

    #[test]
    fn examples_of_client_and_broker_may_take_the_other_one() {
        for (folder, other) in [("client", "broker"), ("broker", "client")] {
            let shipped = format!("turno-{other}.workspace = true\n");
            let for_examples = format!("bytes = \"1\"\n[dev-dependencies]\n{shipped}");
            assert!(faults(direction, folder, &for_examples).is_empty());
            assert!(!faults(direction, folder, &shipped).is_empty());
            assert!(!faults(direction, "proto", &for_examples).is_empty());
        }
        assert!(faults(direction, "proto", "[dev-dependencies]\nturno-proto = { path = \".\" }\n").is_empty());
    }

    #[test]
    fn wrong_directions_are_found() {
        for (folder, bad) in [
            ("proto", "turno-client = { path = \"../client\" }\n"),
            ("engine", "turno-client.workspace = true\n"),
            ("client", "turno-engine.workspace = true\n"),
            ("client", "turno.workspace = true\n"),
            ("store", "turno-proto.workspace = true\n"),
            ("broker", "turno.workspace = true\n"),
            ("sim", "turno.workspace = true\n"),
            ("e2e", "brain = { package = \"turno-engine\", path = \"../engine\" }\n"),
        ] {
            let wanted = format!("crates/{folder}/Cargo.toml:4");
            assert_eq!(faults(direction, folder, bad), [wanted], "{folder} {bad}");
        }
        let in_tests = "bytes = \"1\"\n[dev-dependencies]\nturno-engine.workspace = true\n";
        assert_eq!(faults(direction, "client", in_tests), ["crates/client/Cargo.toml:6"]);
        let table = "[dependencies.turno-engine]\nworkspace = true\n";
        assert_eq!(faults(direction, "e2e", table), ["crates/e2e/Cargo.toml:4"]);
    }

    #[test]
    fn right_directions_are_left() {
        for (folder, good) in [
            ("proto", "bytes.workspace = true\n"),
            ("engine", "turno-proto.workspace = true\n"),
            ("client", "turno-proto.workspace = true\n"),
            ("broker", "turno-proto.workspace = true\nturno-engine.workspace = true\nturno-store.workspace = true\n"),
            ("turno", "turno-proto.workspace = true\nturno-broker.workspace = true\nturno-client.workspace = true\n"),
            ("sim", "turno-broker.workspace = true\n"),
            ("e2e", "turno-client.workspace = true\n"),
        ] {
            assert!(faults(direction, folder, good).is_empty(), "{folder} {good}");
        }
    }

    #[test]
    fn outside_dependencies_are_found() {
        for (folder, bad) in [
            ("proto", "tokio = { workspace = true, features = [\n  \"net\",\n] }\n"),
            ("proto", "tokio-util = \"1\"\n"),
            ("proto", "serde_json.workspace = true\n"),
            ("engine", "serde.workspace = true\n"),
            ("broker", "clap.workspace = true\n"),
        ] {
            let wanted = format!("crates/{folder}/Cargo.toml:4");
            assert_eq!(faults(outside, folder, bad), [wanted], "{folder} {bad}");
        }
        let target = "[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n";
        assert_eq!(faults(outside, "engine", target), ["crates/engine/Cargo.toml:5"]);
    }

    #[test]
    fn allowed_outside_dependencies_are_left() {
        let engine = "bytes.workspace = true\nturno-proto.workspace = true\n[dev-dependencies]\nproptest = \"1\"\n";
        assert!(faults(outside, "engine", engine).is_empty());
        assert!(faults(outside, "proto", "serde.workspace = true\n").is_empty());
        assert!(faults(outside, "broker", "tokio.workspace = true\n").is_empty());
        assert!(faults(outside, "turno", "clap.workspace = true\n").is_empty());
    }

    #[test]
    fn anyhow_is_found_in_libraries() {
        assert_eq!(faults(anyhow_in_library, "client", "anyhow = \"1\"\n"), ["crates/client/Cargo.toml:4"]);
        assert!(faults(anyhow_in_library, "turno", "anyhow = \"1\"\n").is_empty());
        let code = "use anyhow::Result;\n";
        let files = [("crates/engine/src/a.rs", code), ("crates/turno/src/a.rs", code)];
        assert_eq!(places(anyhow_in_library, &files), ["crates/engine/src/a.rs:1"]);
        assert!(places(anyhow_in_library, &[("crates/proto/src/a.rs", "// anyhow\n")]).is_empty());
    }
}
