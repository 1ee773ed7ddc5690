//! The public API of the last release: without its lines the version must be one that may break programs.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::machine::Machine;
use crate::manifest::Manifest;

/// Problems of a list beside that of the last release, whose tag is `vX.Y.Z`; none if there is no release yet.
pub(super) fn broken(root: &Path, file: &str, list: &str) -> Result<Vec<String>> {
    let machine = Machine::new(root);
    let Some(tag) = machine.ask(&["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]) else {
        println!("api: there is no release to compare {file} with");
        return Ok(Vec::new());
    };
    let tag = tag.trim();
    // A crate that the last release did not list has nothing to break.
    let before = machine.ask(&["git", "show", &format!("{tag}:{file}")]).unwrap_or_default();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    let manifest = Manifest::read(&manifest);
    let version = manifest.string("workspace.package.version").context("the workspace has no version")?;
    Ok(problems(tag, &before, version, list))
}

fn problems(tag: &str, before: &str, version: &str, list: &str) -> Vec<String> {
    let now: BTreeSet<&str> = list.lines().collect();
    let gone: Vec<&str> = before.lines().filter(|line| !now.contains(line)).collect();
    let may_break = match (numbers(tag.trim_start_matches('v')), numbers(version)) {
        (Some([0, minor, _]), Some([0, now, _])) => now > minor,
        (Some([major, ..]), Some([now, ..])) => now > major,
        _ => return vec![format!("{tag} or {version} is no version")],
    };
    if may_break {
        return Vec::new();
    }
    gone.iter().map(|line| format!("{tag} had: {line}: {version} must not remove it; raise the version")).collect()
}

fn numbers(version: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = version.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_needs_a_version_that_may_break_programs() {
        let (before, fewer, more) = ("a\nb\n", "b\n", "a\nb\nc\n");
        for (tag, version, list, expected) in [
            ("v0.1.0", "0.1.0", fewer, 1),
            ("v0.1.0", "0.1.1", fewer, 1),
            ("v0.1.0", "0.2.0", fewer, 0),
            ("v0.9.0", "1.0.0", fewer, 0),
            ("v1.0.0", "1.1.0", fewer, 1),
            ("v1.0.0", "2.0.0", fewer, 0),
            ("v1.0.0", "1.0.1", more, 0),
            ("v1.0.0", "one", before, 1),
        ] {
            assert_eq!(problems(tag, before, version, list).len(), expected, "{tag} {version}");
        }
    }
}
