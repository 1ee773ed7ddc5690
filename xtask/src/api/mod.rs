//! The public API of the crates for other programs, as one line per item in their api.txt. Every change of a public name shows
//! in review, without a published release to compare with; a change that breaks programs needs a version that says so.
//!
//! rustdoc's JSON, from which the lines come, is not stable. [`document`] is therefore the only place that asks for it, and
//! the version of `public-api` belongs to the compiler of rust-toolchain.toml.

mod reexports;
mod released;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::machine::Machine;

/// A crate with a public API, and its list for people.
struct Crate {
    name: &'static str,
    list: &'static str,
}

const CRATES: [Crate; 2] = [
    Crate { name: "turno-client", list: "crates/client/api.txt" },
    Crate { name: "turno-broker", list: "crates/broker/api.txt" },
];

/// The crates whose types these show as their own, each with the features that such types need.
const OTHERS: [(&str, &[&str]); 3] =
    [("turno-proto", &["--features", "zmtp"]), ("turno-engine", &[]), ("turno-store", &[])];

/// Tells this program to be rustdoc.
const AS_RUSTDOC: &str = "TURNO_XTASK_AS_RUSTDOC";

/// Compares the lists with the code; `true` if they are equal and complete. With `write` the lists are written anew.
pub(crate) fn run(root: &Path, write: bool) -> Result<bool> {
    let others = OTHERS.iter().map(|(name, features)| items(&document(root, name, features)?));
    let others: Vec<String> = others.collect::<Result<Vec<_>>>()?.concat();
    let mut is_good = true;
    for published in &CRATES {
        is_good &= compare(root, published, &others, write)?;
    }
    Ok(is_good)
}

fn compare(root: &Path, published: &Crate, others: &[String], write: bool) -> Result<bool> {
    let Crate { name, list: file } = published;
    let json = document(root, name, &[])?;
    let shown = reexports::of(&fs::read_to_string(&json)?)?;
    let mut lines = items(&json)?;
    lines.extend(others.iter().filter(|line| reexports::is_part(line, &shown)).cloned());
    let list = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let path = root.join(file);
    if write {
        fs::write(&path, &list).with_context(|| format!("cannot write {file}"))?;
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    let (gone, new) = differences(&before, &list);
    for line in &gone {
        println!("api: - {line}");
    }
    for line in &new {
        println!("api: + {line}");
    }
    println!("api: {name}: {} items, {} gone, {} new", lines.len(), gone.len(), new.len());
    if before != list {
        println!(
            "api: the public API of {name} has changed: `cargo xtask api --write`; a removal is a breaking change"
        );
    }
    let missing = missing(&lines, &shown);
    for (item, line) in &missing {
        println!("api: {name} does not re-export {item}, which it shows: {line}");
    }
    let broken = released::broken(root, file, &list)?;
    for problem in &broken {
        println!("api: {problem}");
    }
    Ok(before == list && missing.is_empty() && broken.is_empty())
}

/// Types of other crates that a program can meet and cannot name, each with a line that shows it.
fn missing<'a>(lines: &'a [String], shown: &[String]) -> BTreeMap<String, &'a str> {
    let crates = OTHERS.map(|(name, _)| name.replace('-', "_"));
    let mut missing = BTreeMap::new();
    // An implementation shows its types only to those who have them already.
    let is_impl = |line: &str| line.starts_with("impl") || line.starts_with("pub fn core::");
    for line in lines.iter().filter(|line| !is_impl(line)) {
        for item in reexports::types(line, &crates) {
            if !shown.iter().any(|path| reexports::is_same(path, &item)) {
                missing.entry(item).or_insert(line.as_str());
            }
        }
    }
    missing
}

/// Lines of the first that the second lacks, and the other way round.
fn differences<'a>(published: &'a str, list: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) = (published.lines().collect(), list.lines().collect());
    (before.difference(&after).copied().collect(), after.difference(&before).copied().collect())
}

/// Writes rustdoc's JSON of a crate, with its default features and these; the path of the file.
fn document(root: &Path, package: &str, features: &[&str]) -> Result<PathBuf> {
    let words = ["cargo", "rustdoc", "--package", package, "--lib", "--locked", "--quiet"];
    let json = ["--", "-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"];
    let mut command = Machine::new(root).command(&[&words[..], features, &json].concat());
    let here = env::current_exe().context("this program's own path")?;
    let status = command.env("RUSTDOC", here).env(AS_RUSTDOC, "1").status().context("cargo does not start")?;
    if !status.success() {
        bail!("cargo rustdoc of {package} failed: {status}");
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("doc").join(format!("{}.json", package.replace('-', "_"))))
}

/// The real rustdoc with unstable options, if this program was started in its place by [`document`]. Only rustdoc gets them:
/// in the environment of cargo they would make it build every dependency again.
pub(crate) fn as_rustdoc() -> Option<Result<bool>> {
    env::var_os(AS_RUSTDOC)?;
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").env_remove(AS_RUSTDOC);
    Some(rustdoc.status().context("rustdoc does not start").map(|status| status.success()))
}

/// Methods of the standard library's traits and serde's: their `impl` lines say as much.
const OF_TRAITS: &[&str] = &[
    "clone",
    "cmp",
    "default",
    "deref",
    "deserialize",
    "drop",
    "eq",
    "fmt",
    "from",
    "from_str",
    "hash",
    "into_future",
    "partial_cmp",
    "poll_next",
    "serialize",
    "source",
    "try_from",
];

/// Whether a line follows from another one.
fn is_implied(line: &str) -> bool {
    let name = line.split(['(', '<']).next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
    let is_method = line.contains("fn ") && OF_TRAITS.contains(&name);
    is_method || line.starts_with("impl core::marker::StructuralPartialEq")
}

/// The items of a crate, in order. Blanket and automatic implementations are left out: they follow from the others.
fn items(json: &Path) -> Result<Vec<String>> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()
        .with_context(|| format!("cannot read {}: public-api must fit the compiler", json.display()))?;
    let mut lines: Vec<String> = api.items().map(ToString::to_string).filter(|line| !is_implied(line)).collect();
    lines.sort();
    lines.dedup();
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_named() {
        let (gone, new) = differences("pub fn a()\npub fn b()\n", "pub fn b()\npub fn c()\n");
        assert_eq!((gone, new), (vec!["pub fn a()"], vec!["pub fn c()"]));
        assert_eq!(differences("a\n", "a\n"), (vec![], vec![]));
    }

    #[test]
    fn types_that_cannot_be_named_are_told_with_a_line() {
        let lines =
            ["pub fn client::ask() -> turno_proto::model::Answer", "pub client::View::at: turno_proto::model::Moment"];
        let lines = lines.map(str::to_owned);
        let shown = ["turno_proto::model::Moment".to_owned()];
        let missing = missing(&lines, &shown);
        assert_eq!(missing, BTreeMap::from([("turno_proto::model::Answer".to_owned(), lines[0].as_str())]));
    }

    #[test]
    fn methods_of_derived_traits_are_left_out() {
        assert!(is_implied("pub fn a::B::clone(&self) -> a::B"));
        assert!(is_implied("pub fn a::B::hash<H: core::hash::Hasher>(&self, state: &mut H)"));
        assert!(is_implied("impl core::marker::StructuralPartialEq for a::B"));
        for line in ["pub fn a::B::clone_all(&self)", "impl core::clone::Clone for a::B", "pub a::B::default: bool"] {
            assert!(!is_implied(line), "{line}");
        }
    }
}
