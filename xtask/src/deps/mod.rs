//! The dependencies: their licences, versions that are there twice, and their origin, as `cargo tree` lists them and
//! deny.toml allows them. What is found is listed in LICENSES-THIRD-PARTY.md.

mod license;
mod packages;
mod policy;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use self::packages::{Package, read};
use self::policy::Policy;
use crate::machine::Machine;

/// The list for people.
const LIST: &str = "LICENSES-THIRD-PARTY.md";

/// The platform that is released; others add crates that nobody here builds.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Linked dependencies: neither those of builds and tests, nor procedural macros.
const LINKED: &str = "normal,no-proc-macro";

/// Checks all dependencies; `true` if nothing is wrong. With `write` the list is written anew.
pub(crate) fn run(root: &Path, write: bool) -> Result<bool> {
    let packages = read(&tree(root, &["--workspace"])?, &tree(root, &["--package", "turno", "--edges", LINKED])?)?;
    let policy = Policy::read(&fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?)?;
    let mut problems = problems(&policy, &packages);
    let (path, list) = (root.join(LIST), list(&packages));
    if write {
        fs::write(&path, &list).with_context(|| format!("cannot write {LIST}"))?;
    } else if fs::read_to_string(&path).unwrap_or_default() != list {
        problems.push(format!("{LIST} is not current: run `cargo xtask deps --write`"));
    }
    for problem in &problems {
        println!("deps: {problem}");
    }
    println!("deps: {} problems, {} dependencies", problems.len(), packages.len());
    Ok(problems.is_empty())
}

fn tree(root: &Path, which: &[&str]) -> Result<String> {
    let words = ["cargo", "tree", "--locked", "--target", PLATFORM, "--prefix", "none", "--format", packages::FORMAT];
    Machine::new(root).ask(&[&words, which].concat()).context("cargo tree failed")
}

fn problems(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, license, source, .. } = package;
        match license {
            None => found.push(format!("{name} {version} names no licence")),
            Some(text) => match license::is_allowed(text, &policy.allow) {
                Some(true) => {}
                Some(false) => {
                    found.push(format!("{name} {version} has the licence {text}, which deny.toml does not allow"))
                }
                None => found.push(format!("{name} {version} has the licence {text}, which is not an SPDX expression")),
            },
        }
        if let Some(source) = source {
            found.push(format!("{name} {version} is from {source}, not from crates.io"));
        }
        if !policy.skips(name, version) {
            versions.entry(name).or_default().push(version);
        }
    }
    for (name, versions) in versions {
        if versions.len() > 1 {
            found.push(format!(
                "{name} is there in the versions {}: use one, or name the other in deny.toml",
                versions.join(", ")
            ));
        }
    }
    for unused in policy.unused(packages) {
        found.push(format!("deny.toml skips {unused}, which is no dependency any more"));
    }
    found
}

fn list(packages: &[Package]) -> String {
    let mut text = String::from(
        "# Licences of dependencies\n\nWritten by `cargo xtask deps --write`; `cargo xtask test` checks it against deny.toml.\n",
    );
    for (title, is_shipped) in [("In the `turno` binary", true), ("Built with it, or for tests only", false)] {
        let _ = write!(text, "\n## {title}\n\n| crate | version | licence |\n|---|---|---|\n");
        for Package { name, version, license, .. } in packages.iter().filter(|package| package.is_shipped == is_shipped)
        {
            let _ = writeln!(text, "| {name} | {version} | {} |", license.as_deref().unwrap_or("none"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: &str) -> Package {
        let (name, version, license) = (name.to_owned(), version.to_owned(), Some(license.to_owned()));
        Package { name, version, license, source: None, is_shipped: true }
    }

    fn policy() -> Policy {
        let text = "[licenses]\nallow = [\"MIT\"]\n[bans]\nskip = [{ crate = \"syn@2\", reason = \"old\" }]\n";
        Policy::read(text).expect("a policy")
    }

    #[test]
    fn what_is_allowed_passes() {
        let packages =
            [package("a", "1.0.0", "MIT OR GPL-3.0"), package("syn", "2.0.1", "MIT"), package("syn", "3.0.0", "MIT")];
        assert_eq!(problems(&policy(), &packages), [""; 0]);
    }

    #[test]
    fn each_breach_is_named() {
        let elsewhere = Package { source: Some("https://example.org/b".to_owned()), ..package("b", "1.0.0", "MIT") };
        let packages = [
            package("a", "1.0.0", "GPL-3.0"),
            package("a", "2.0.0", "MIT"),
            Package { license: None, ..package("c", "1.0.0", "") },
            package("d", "1.0.0", "MIT AND"),
            elsewhere,
        ];
        let found = problems(&policy(), &packages);
        let expected =
            ["does not allow", "names no licence", "not an SPDX", "not from crates.io", "a is there", "skips syn@2"];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn the_list_has_shipped_crates_first() {
        let packages = [Package { is_shipped: false, ..package("a", "1.0.0", "MIT") }, package("b", "2.0.0", "MIT")];
        let text = list(&packages);
        assert!(text.find("| b | 2.0.0 | MIT |") < text.find("| a | 1.0.0 | MIT |"), "{text}");
    }
}
