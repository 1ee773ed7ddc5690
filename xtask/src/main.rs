//! The project's own commands: `cargo xtask --help` lists them.
//!
//! They need nothing but the toolchain (`test` fetches nextest by itself and does without it if it
//! must), and the automatic check runs the very same command as a developer does.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod api;
mod command;
mod deps;
mod fuzz;
mod ledger;
mod machine;
mod manifest;
mod map;
mod planted;
mod release;
mod source;
mod step;
mod steps;
mod suite;
mod tidy;
mod toolchain;
mod tree;
mod trust;
mod word;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser as _;

use crate::command::{Command, LedgerOptions};
use crate::ledger::Ledger;
use crate::tree::Tree;

fn main() -> ExitCode {
    match api::as_rustdoc().unwrap_or_else(|| run(&Command::parse())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command; `false` means that it ran and found something wrong.
fn run(command: &Command) -> Result<bool> {
    match command {
        Command::Test(options) => suite::test(&tree::find_root()?, options),
        Command::Check => suite::check(&tree::find_root()?),
        Command::Tidy => Ok(tidy::run(&Tree::load(&tree::find_root()?)?)),
        Command::Map { write } => map::run(&tree::find_root()?, *write),
        Command::Ledger(options) => show_ledger(options),
        Command::Deps { write } => deps::run(&tree::find_root()?, *write),
        Command::Release => release::run(&tree::find_root()?),
        Command::Api { write } => api::run(&tree::find_root()?, *write),
        Command::Sim(passed) => suite::sim(&tree::find_root()?, &passed.words),
        Command::Bench(passed) => suite::bench(&tree::find_root()?, &passed.words),
        Command::Steps { bless } => steps::run(&tree::find_root()?, *bless),
        Command::Planted { names } => planted::run(&tree::find_root()?, names),
        Command::Fuzz(options) => fuzz::run(&tree::find_root()?, options),
        Command::Trust { trial } => trust::run(&tree::find_root()?, trial.as_ref()),
    }
}

fn show_ledger(options: &LedgerOptions) -> Result<bool> {
    let ledger = Ledger::read(&Tree::load(&tree::find_root()?)?)?;
    if let Some(group) = options.group
        && !ledger.has_group(group)
    {
        bail!("no requirement belongs to the group {group}");
    }
    if options.json {
        println!("{}", ledger::report::json(&ledger, options.group));
    } else {
        println!("{}", ledger::report::text(&ledger, options.group, options.all));
    }
    Ok(ledger.print_faults())
}
