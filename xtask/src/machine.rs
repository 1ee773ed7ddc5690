//! The machine the commands run on: starts programs in the project's root and says how they ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, thread};

use anyhow::Result;
use xtask::packages;

use crate::api;
use crate::deps;
use crate::ledger::{Ledger, report};
use crate::release;
use crate::step::Outcome;
use crate::steps;
use crate::suite::World;
use crate::tidy;
use crate::toolchain::Toolchain;
use crate::tree::Tree;

/// More jobs than this make a small machine swap while it links.
const JOBS_MAX: usize = 2;

const JOBS_VARIABLE: &str = "CARGO_BUILD_JOBS";

pub(crate) struct Machine {
    root: PathBuf,
}

impl Machine {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let (program, args) = words.split_first().unwrap_or((&"", &[]));
        // Cargo tells its children where it is, so that the same cargo does all the work.
        let program = match *program {
            "cargo" => env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")),
            other => OsString::from(other),
        };
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.root);
        if env::var_os(JOBS_VARIABLE).is_none() {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            command.env(JOBS_VARIABLE, cores.min(JOBS_MAX).to_string());
        }
        command
    }

    /// Runs a program and gives back what it printed, or nothing if it failed or is not there.
    pub(crate) fn ask(&self, words: &[&str]) -> Option<String> {
        let mut command = self.command(words);
        // An install takes minutes and explains itself; a failed question is answered by us.
        let is_install = words.iter().any(|word| matches!(*word, "install" | "add"));
        let errors = if is_install { Stdio::inherit() } else { Stdio::null() };
        let output = command.stdin(Stdio::null()).stderr(errors).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }

    fn run(&self, words: &[&str]) -> Outcome {
        match self.command(words).status() {
            Ok(status) if status.success() => Outcome::Passed,
            Ok(status) => Outcome::Failed(status.to_string()),
            Err(error) => Outcome::NotRun(format!("{} does not start: {error}", words.join(" "))),
        }
    }

    fn with_tree(&self, work: impl FnOnce(&Tree) -> Outcome) -> Outcome {
        match Tree::load(&self.root) {
            Ok(tree) => work(&tree),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }
}

impl World for Machine {
    fn survey(&mut self) -> Toolchain {
        let wanted = std::fs::read_to_string(self.root.join("rust-toolchain.toml"));
        let mut install = |package: &str| match packages::install(package) {
            Ok(()) => true,
            Err(why) => {
                println!("{package} cannot be installed: {why}");
                false
            }
        };
        Toolchain::survey(&wanted.unwrap_or_default(), &mut |words| self.ask(words), &mut install)
    }

    fn cargo(&mut self, args: &[&str]) -> Outcome {
        self.run(&[&["cargo"], args].concat())
    }

    fn tidy(&mut self) -> Outcome {
        self.with_tree(|tree| match tidy::run(tree) {
            true => Outcome::Passed,
            false => Outcome::Failed("see the findings above".to_owned()),
        })
    }

    fn steps(&mut self) -> Outcome {
        steps::step(&self.root)
    }

    fn book(&mut self) -> Outcome {
        self.run(&["mdbook", "build"])
    }

    fn deps(&mut self) -> Outcome {
        found(deps::run(&self.root, false), "see the problems above")
    }

    fn release(&mut self) -> Outcome {
        found(release::run(&self.root), "see the problems above")
    }

    fn api(&mut self) -> Outcome {
        found(api::run(&self.root, false), "the list of public names is not current")
    }

    fn ledger(&mut self) -> Outcome {
        self.with_tree(|tree| match Ledger::read(tree) {
            Ok(ledger) => {
                println!("{}", report::count(&ledger, None));
                match ledger.print_faults() {
                    true => Outcome::Passed,
                    false => Outcome::Failed("a test names what the ledger does not have".to_owned()),
                }
            }
            Err(error) => Outcome::Failed(format!("{error:#}")),
        })
    }
}

/// The outcome of a check that found nothing wrong, or something.
fn found(nothing_wrong: Result<bool>, otherwise: &str) -> Outcome {
    match nothing_wrong {
        Ok(true) => Outcome::Passed,
        Ok(false) => Outcome::Failed(otherwise.to_owned()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_answered_or_not() {
        let machine = Machine::new(Path::new("."));
        assert!(machine.ask(&["rustc", "--version"]).unwrap().starts_with("rustc "));
        assert_eq!(machine.ask(&["rustc", "--no-such-flag"]), None);
        assert_eq!(machine.ask(&["no-such-program-at-all"]), None);
    }
}
