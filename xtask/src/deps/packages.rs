//! The packages that are not ours, as `cargo tree` lists them, and which of them are in the `turno` binary.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};

/// How `cargo tree` is asked: package and licence, separated by a tab.
pub(super) const FORMAT: &str = "{p}\t{l}";

/// A dependency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    /// The address of a repository; none: crates.io.
    pub(super) source: Option<String>,
    /// It is linked into the `turno` binary.
    pub(super) is_shipped: bool,
}

/// From two lists: of everything that is built, and of what is linked into the binary. By name and version.
pub(super) fn read(all: &str, shipped: &str) -> Result<Vec<Package>> {
    let shipped: BTreeSet<Package> = parse(shipped)?;
    let mark = |package: Package| Package { is_shipped: shipped.contains(&package), ..package };
    Ok(parse(all)?.into_iter().map(mark).collect())
}

fn parse(list: &str) -> Result<BTreeSet<Package>> {
    let mut packages = BTreeSet::new();
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        let (package, license) = line.split_once('\t').with_context(|| format!("no licence in {line:?}"))?;
        // A package that was listed before is marked so.
        let license = license.trim().trim_end_matches("(*)").trim_end();
        let mut words = package.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let version = version.with_context(|| format!("no version in {line:?}"))?.to_owned();
        let place = words.map(|word| word.trim_matches(['(', ')'])).find(|word| *word != "proc-macro");
        // Ours are the ones in a directory.
        if place.is_some_and(|place| place.starts_with('/')) {
            continue;
        }
        let license = (!license.is_empty()).then(|| license.to_owned());
        packages.insert(Package { name, version, license, source: place.map(str::to_owned), is_shipped: false });
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_packages() {
        let all = "turno v0.1.0 (/src/turno)\tMIT OR Apache-2.0\nb v2.0.0\tMIT\n\na v1.0.0 (proc-macro)\tMIT (*)\n\
                   c v3.0.0 (https://example.org/c?rev=1)\t\n";
        let found = read(all, "b v2.0.0\tMIT\n").expect("lists");
        let row = |package: &Package| (package.name.clone(), package.license.is_some(), package.is_shipped);
        let rows: Vec<_> = found.iter().map(row).collect();
        let expected = [("a", true, false), ("b", true, true), ("c", false, false)];
        assert_eq!(rows, expected.map(|(name, licensed, shipped)| (name.to_owned(), licensed, shipped)));
        assert_eq!(found[2].source.as_deref(), Some("https://example.org/c?rev=1"));
        for bad in ["a v1.0.0", "a\tMIT", "a 1.0.0\tMIT"] {
            assert!(read(bad, "").is_err(), "{bad}");
        }
    }
}
