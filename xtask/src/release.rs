//! The packages that `cargo publish` would send: which crates, with which files and facts. They are packed, but not built, and
//! nothing is sent.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::machine::Machine;

/// The published crates, each after those that it depends on. RELEASING.md names them in this order.
const PUBLISHED: [&str; 6] = ["turno-proto", "turno-store", "turno-engine", "turno-client", "turno-broker", "turno"];

/// Files without which no crate is published.
const FILES: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Folders that only the repository needs.
const NOT_SENT: [&str; 3] = ["tests/", "examples/", "fixtures/"];

const STEPS: &str = "RELEASING.md";

/// Checks all crates; `true` if nothing is wrong.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let machine = Machine::new(root);
    let words = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"];
    let text = machine.ask(&words).context("cargo metadata failed")?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata printed no JSON")?;
    let mut problems = facts(&metadata);
    for name in PUBLISHED {
        let words = ["cargo", "package", "--package", name, "--list", "--allow-dirty", "--offline"];
        let list = machine.ask(&words).with_context(|| format!("cargo package --list of {name} failed"))?;
        problems.extend(files(name, &list));
    }
    match pack(&machine) {
        Ok(said) => problems.extend(yanked(&said)),
        Err(error) => problems.push(format!("the crates cannot be packed: {error:#}")),
    }
    let steps = std::fs::read_to_string(root.join(STEPS)).with_context(|| format!("cannot read {STEPS}"))?;
    if !names_all_in_order(&steps) {
        problems.push(format!("{STEPS} does not name the published crates in this order: {}", PUBLISHED.join(", ")));
    }
    for problem in &problems {
        println!("release: {problem}");
    }
    println!("release: {} problems, {} crates would be published", problems.len(), PUBLISHED.len());
    Ok(problems.is_empty())
}

/// Packs all crates as they would be sent, each against those that it depends on: their manifests can be written. Gives what
/// cargo said.
fn pack(machine: &Machine) -> Result<String> {
    let packages = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    let options = ["--no-verify", "--allow-dirty", "--offline", "--color", "never"];
    let words: Vec<&str> = ["cargo", "package"].into_iter().chain(packages).chain(options).collect();
    let output = machine.command(&words).output().context("cargo does not start")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{}", said.trim());
    }
    Ok(said)
}

/// Dependencies that crates.io had withdrawn when cargo read its index last: packing warns of them.
fn yanked(said: &str) -> Vec<String> {
    let mut found: Vec<String> =
        said.lines().filter(|line| line.contains(" is yanked in registry ")).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

/// Facts that the manifests lack.
fn facts(metadata: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        // Null means any registry, an empty list none.
        let may_be_sent = !package["publish"].as_array().is_some_and(Vec::is_empty);
        match (PUBLISHED.contains(&name), may_be_sent) {
            (true, true) => problems.extend(lacks(name, package)),
            (false, false) => {}
            (true, false) => problems.push(format!("{name} has publish = false: remove it")),
            (false, true) => {
                problems.push(format!("{name} is not among the published crates: add publish.workspace = true"))
            }
        }
    }
    problems
}

fn lacks(name: &str, package: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for key in ["description", "license", "readme", "rust_version"] {
        if package[key].as_str().is_none_or(str::is_empty) {
            problems.push(format!("{name} has no {}", key.replace('_', "-")));
        }
    }
    if name != "turno" && package["metadata"]["docs"]["rs"].as_object().is_none() {
        problems.push(format!("{name} says nothing to docs.rs: add [package.metadata.docs.rs]"));
    }
    let before = PUBLISHED.iter().take_while(|published| **published != name);
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let (Some(of), Some(_)) = (dependency["name"].as_str(), dependency["path"].as_str()) else { continue };
        let has_version = dependency["req"] != "*";
        match dependency["kind"].as_str() {
            // A dependency of tests without a version is left out of the published manifest.
            Some("dev") if has_version => {
                problems.push(format!("{name} tests with {of}, which has a version: give it a path only"));
            }
            Some("dev") => {}
            _ if !has_version => problems.push(format!("{name} depends on {of} by its path only: add a version")),
            _ if !before.clone().any(|published| *published == of) => {
                problems.push(format!("{name} depends on {of}, which is not published before it"));
            }
            _ => {}
        }
    }
    problems
}

/// Files that the package of a crate lacks, and those that should not be in it.
fn files(name: &str, list: &str) -> Vec<String> {
    let lacks = FILES.iter().filter(|file| !list.lines().any(|line| line == **file));
    let lacks = lacks.map(|file| format!("the package of {name} has no {file}"));
    let extra = NOT_SENT.iter().filter(|folder| list.lines().any(|line| line.starts_with(**folder)));
    lacks.chain(extra.map(|folder| format!("the package of {name} has {folder}: add it to `exclude`"))).collect()
}

fn names_all_in_order(steps: &str) -> bool {
    let mut rest = steps;
    PUBLISHED.iter().all(|name| match rest.split_once(&format!("`{name}`")) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut package = json!({
            "name": "turno-client", "publish": null, "description": "d", "license": "MIT", "readme": "README.md",
            "rust_version": "1.95", "metadata": { "docs": { "rs": {} } },
            "dependencies": [
                { "name": "turno-proto", "path": "/p", "req": "^0.1.0", "kind": null },
                { "name": "turno-broker", "path": "/b", "req": "*", "kind": "dev" },
                { "name": "tokio", "req": "^1", "kind": null },
            ],
        });
        change(&mut package);
        facts(&json!({ "packages": [package] }))
    }

    #[test]
    fn a_complete_manifest_is_left() {
        assert!(client(|_| ()).is_empty());
    }

    #[test]
    fn what_a_manifest_lacks_is_named() {
        let path_only = client(|package| package["dependencies"][0]["req"] = "*".into());
        assert_eq!(path_only, ["turno-client depends on turno-proto by its path only: add a version"]);
        let later = client(|package| package["dependencies"][0]["name"] = "turno-broker".into());
        assert_eq!(later, ["turno-client depends on turno-broker, which is not published before it"]);
        let tested = client(|package| package["dependencies"][1]["req"] = "^0.1.0".into());
        assert_eq!(tested, ["turno-client tests with turno-broker, which has a version: give it a path only"]);
        assert_eq!(client(|package| package["readme"] = Value::Null), ["turno-client has no readme"]);
        assert_eq!(client(|package| package["publish"] = json!([])), ["turno-client has publish = false: remove it"]);
        let other = client(|package| package["name"] = "turno-sim".into());
        assert_eq!(other, ["turno-sim is not among the published crates: add publish.workspace = true"]);
        assert_eq!(client(|package| package["metadata"] = Value::Null).len(), 1);
    }

    #[test]
    fn files_that_are_missing_or_too_many_are_named() {
        let whole = "Cargo.toml\nLICENSE-APACHE\nLICENSE-MIT\nREADME.md\nsrc/lib.rs\n";
        assert!(files("turno-proto", whole).is_empty());
        let other = format!("{}tests/a.rs\n", whole.replace("LICENSE-MIT\n", ""));
        let expected = [
            "the package of turno-proto has no LICENSE-MIT",
            "the package of turno-proto has tests/: add it to `exclude`",
        ];
        assert_eq!(files("turno-proto", &other), expected);
    }

    #[test]
    fn withdrawn_dependencies_are_found_once() {
        let warning =
            "warning: package `spin v0.10.0` in Cargo.lock is yanked in registry `crates-io`, consider updating";
        let said = format!("   Packaging turno v0.1.0\n{warning}\n    Packaged 9 files\n{warning}\n");
        assert_eq!(yanked(&said), [warning]);
        assert!(yanked("   Packaging turno v0.1.0\n").is_empty());
    }

    #[test]
    fn the_order_of_publishing_is_that_of_the_dependencies() {
        let all = PUBLISHED.map(|name| format!("`{name}`"));
        assert!(names_all_in_order(&all.join(", ")));
        let mut turned = all;
        turned.reverse();
        assert!(!names_all_in_order(&turned.join(", ")));
    }
}
