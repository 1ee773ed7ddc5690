//! The public API of the published client, as one line per item in crates/client/api.txt. Every change of a public name shows
//! in review, without a published release to compare with.
//!
//! rustdoc's JSON, from which the lines come, is not stable. [`rustdoc`] is therefore the only place that asks for it, and
//! the version of `public-api` belongs to the compiler of rust-toolchain.toml.

mod reexports;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::machine::Machine;

/// The list for people.
const LIST: &str = "crates/client/api.txt";

/// The published crate, and the one whose types it shows as its own.
const CLIENT: &str = "turno-client";
const PROTO: &str = "turno-proto";

/// Tells this program to be rustdoc.
const AS_RUSTDOC: &str = "TURNO_XTASK_AS_RUSTDOC";

/// Compares the list with the code; `true` if they are equal. With `write` the list is written anew.
pub(crate) fn run(root: &Path, write: bool) -> Result<bool> {
    let (client, proto) = (document(root, CLIENT)?, document(root, PROTO)?);
    let shown = reexports::of(&fs::read_to_string(&client)?)?;
    let mut lines = items(&client)?;
    lines.extend(items(&proto)?.into_iter().filter(|line| reexports::is_part(line, &shown)));
    let list = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let path = root.join(LIST);
    if write {
        fs::write(&path, &list).with_context(|| format!("cannot write {LIST}"))?;
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    let (gone, new) = differences(&published, &list);
    for line in &gone {
        println!("api: - {line}");
    }
    for line in &new {
        println!("api: + {line}");
    }
    println!("api: {} items, {} gone, {} new", lines.len(), gone.len(), new.len());
    if !gone.is_empty() || !new.is_empty() {
        println!(
            "api: the public API of {CLIENT} has changed: `cargo xtask api --write`; a removal is a breaking change"
        );
    }
    Ok(published == list)
}

/// Lines of the first that the second lacks, and the other way round.
fn differences<'a>(published: &'a str, list: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) = (published.lines().collect(), list.lines().collect());
    (before.difference(&after).copied().collect(), after.difference(&before).copied().collect())
}

/// Writes rustdoc's JSON of a crate, with its default features; the path of the file.
fn document(root: &Path, package: &str) -> Result<PathBuf> {
    let words = ["cargo", "rustdoc", "--package", package, "--lib", "--locked", "--quiet", "--"];
    let json = ["-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"];
    let mut command = Machine::new(root).command(&[&words[..], &json].concat());
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
    fn methods_of_derived_traits_are_left_out() {
        assert!(is_implied("pub fn a::B::clone(&self) -> a::B"));
        assert!(is_implied("pub fn a::B::hash<H: core::hash::Hasher>(&self, state: &mut H)"));
        assert!(is_implied("impl core::marker::StructuralPartialEq for a::B"));
        for line in ["pub fn a::B::clone_all(&self)", "impl core::clone::Clone for a::B", "pub a::B::default: bool"] {
            assert!(!is_implied(line), "{line}");
        }
    }
}
