//! A copy of the tree to plant bugs in. It stays between runs with what was built from it, and only what differs is
//! written, so that a bug costs the building of the crates it touches.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

use super::check::Check;
use super::finding::{Failure, SimFinding};
use super::first_line_with;
use crate::machine::Machine;
use crate::tree;

/// Seeds within which a bug must show.
pub(super) const SEEDS: &str = "2000";

const BUILD: &[&str] = &["cargo", "build", "--profile", "planted", "--package", "turno-sim", "--locked", "--quiet"];

/// How nextest ends when tests ran and some failed.
const TESTS_FAILED: i32 = 100;

pub(super) struct Copy {
    root: PathBuf,
    pub(super) tree: PathBuf,
    build: PathBuf,
}

impl Copy {
    pub(super) fn new(root: &Path) -> Self {
        let place = root.join("target/planted");
        Self { root: root.to_owned(), tree: place.join("tree"), build: place.join("build") }
    }

    /// Makes the copy what the tree is, whatever was planted in it before.
    pub(super) fn refresh(&self) -> Result<()> {
        let paths = tree::list(&self.root)?;
        refresh(&self.root, &self.tree, &paths)
    }

    /// Builds the simulator, or says why it cannot be.
    pub(super) fn build(&self) -> Result<Result<(), String>> {
        let (status, report) = self.cargo(BUILD)?;
        Ok(if status.success() { Ok(()) } else { Err(first_line_with("error", &report)) })
    }

    /// Runs tests: the first that failed, if one did, or why they cannot be run.
    pub(super) fn test(&self, check: &Check) -> Result<Result<Option<Failure>, String>> {
        let words: Vec<&str> = check.words().collect();
        let (status, report) = self.cargo(&words)?;
        Ok(match status.code() {
            Some(0) => Ok(None),
            Some(TESTS_FAILED) => Ok(Some(Failure::parse(&report))),
            _ => Err(first_line_with("error", &report)),
        })
    }

    /// How cargo ended, and what it said.
    fn cargo(&self, words: &[&str]) -> Result<(ExitStatus, String)> {
        let mut command = Machine::new(&self.tree).command(words);
        // One bug after the other changes a few lines of a few crates: incremental, also optimised.
        command.env("CARGO_TARGET_DIR", &self.build).env("CARGO_INCREMENTAL", "1");
        let output = command.stdin(Stdio::null()).output().context("cargo does not start")?;
        Ok((output.status, String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// Runs the seeds, with the broker's own checks or blind to them.
    pub(super) fn simulate(&self, blind: bool) -> Result<Option<SimFinding>> {
        let mut command = Command::new(self.build.join("planted/turno-sim"));
        command.args(["--seeds", SEEDS]).args(blind.then_some("--blind")).current_dir(&self.tree);
        let output = command.stdin(Stdio::null()).output().context("the simulator does not start")?;
        if output.status.success() {
            return Ok(None);
        }
        let report = String::from_utf8_lossy(&output.stderr);
        match SimFinding::parse(&report) {
            Some(finding) => Ok(Some(finding)),
            None => bail!("the simulator ended with {} and no violation: {}", output.status, report.trim()),
        }
    }
}

/// Writes what differs, and removes what is not listed.
fn refresh(from: &Path, to: &Path, paths: &[String]) -> Result<()> {
    let mut present = BTreeSet::new();
    for path in paths {
        let bytes = match fs::read(from.join(path)) {
            Ok(bytes) => bytes,
            // Deleted but still tracked.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("reading {path}")),
        };
        present.insert(path.as_str());
        let target = to.join(path);
        if fs::read(&target).is_ok_and(|there| there == bytes) {
            continue;
        }
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(&target, bytes).with_context(|| format!("writing {}", target.display()))?;
    }
    let mut found = Vec::new();
    tree::walk(to, "", &mut found)?;
    for path in found.iter().filter(|path| !present.contains(path.as_str())) {
        fs::remove_file(to.join(path)).with_context(|| format!("removing {path} from the copy"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test's own, empty.
    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-planted-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("from/a")).unwrap();
        folder
    }

    #[test]
    fn a_copy_becomes_what_the_tree_is_and_no_more_is_written() {
        let folder = folder();
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::write(from.join("a/x.rs"), "x").unwrap();
        fs::write(from.join("y.rs"), "y").unwrap();
        let paths = ["a/x.rs", "gone.rs", "y.rs"].map(str::to_owned);
        refresh(&from, &to, &paths).unwrap();
        let written = |path: &str| fs::metadata(to.join(path)).unwrap().modified().unwrap();
        let before = written("y.rs");
        fs::write(to.join("a/x.rs"), "planted").unwrap();
        fs::write(to.join("left.rs"), "left by a patch").unwrap();
        refresh(&from, &to, &paths).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/x.rs")).unwrap(), "x");
        assert_eq!(written("y.rs"), before, "what is the same is left alone");
        assert!(!to.join("left.rs").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
