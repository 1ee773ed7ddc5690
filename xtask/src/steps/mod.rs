//! `cargo xtask steps`: how many instructions one step of the codec, of the engine and of the broker takes, beside the committed
//! figures. Counted by valgrind, so that neither a busy machine nor a fast one can hide a slow creep.

mod figures;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use self::figures::{Figures, compare};
use crate::machine::Machine;
use crate::step::Outcome;
use crate::suite::World as _;

const COMMITTED: &str = "crates/bench/steps.txt";
const BUILD: &[&str] =
    &["build", "--release", "--package", "turno-bench", "--bin", "turno-steps", "--locked", "--quiet"];

/// A step is done this often, then twice as often: the difference is free of starting and warming up.
const COUNT: u64 = 2_000;

/// The C library chooses its copying by the processor it finds. Without these it finds the same everywhere.
const PLAIN_PROCESSOR: &str = "glibc.cpu.hwcaps=-AVX2,-AVX_Fast_Unaligned_Load,-AVX512F,-AVX512VL,-AVX512BW,\
                               -SSSE3,-ERMS,-FSRM,-Prefer_ERMS,-Prefer_FSRM";

/// Measures, compares, and with `bless` writes the figures; `false` if a step became too dear.
pub(crate) fn run(root: &Path, bless: bool) -> Result<bool> {
    let path = root.join(COMMITTED);
    let committed = match fs::read_to_string(&path) {
        Ok(text) => Figures::parse(&text).with_context(|| COMMITTED.to_owned())?,
        Err(_) => Figures::default(),
    };
    let measured = measure(root)?;
    let comparison = compare(&committed, &measured);
    print!("{}", comparison.table);
    if bless {
        fs::write(&path, committed.blessed(&measured).render())?;
        println!("{COMMITTED} is written; say in the commit why it changed");
        return Ok(true);
    }
    if !comparison.better.is_empty() {
        println!("cheaper than committed, lower with `cargo xtask steps --bless`: {}", comparison.better.join(", "));
    }
    for fault in &comparison.faults {
        println!("{fault}");
    }
    if !comparison.faults.is_empty() {
        println!("find the waste (valgrind --tool=callgrind target/release/turno-steps NAME 2000), or");
        println!("`cargo xtask steps --bless` and say in the commit what the instructions are spent on");
    }
    Ok(comparison.faults.is_empty())
}

/// The same as a step of the test run.
pub(crate) fn step(root: &Path) -> Outcome {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Outcome::NotRun("the committed figures are of x86_64 Linux".to_owned());
    }
    match run(root, false) {
        Ok(true) => Outcome::Passed,
        Ok(false) => Outcome::Failed("a step of the hot path became too dear".to_owned()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn measure(root: &Path) -> Result<Figures> {
    let mut machine = Machine::new(root);
    if machine.cargo(BUILD) != Outcome::Passed {
        bail!("turno-steps does not build");
    }
    let folder = target_folder(&machine)?.join("release");
    let listed = Command::new(folder.join("turno-steps")).output().context("turno-steps")?;
    let names = String::from_utf8(listed.stdout)?;
    let names: Vec<&str> = names.lines().collect();
    let lanes = thread::available_parallelism().map_or(1, usize::from);
    let share = names.len().div_ceil(lanes).max(1);
    let measured: Vec<Result<Vec<(String, u64)>>> = thread::scope(|scope| {
        let lane = |names| {
            let folder = &folder;
            scope.spawn(move || one_after_the_other(folder, names))
        };
        let running: Vec<_> = names.chunks(share).map(lane).collect();
        let end = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|_| bail!("a thread died"));
        running.into_iter().map(end).collect()
    });
    let measured: Vec<_> = measured.into_iter().collect::<Result<_>>()?;
    Ok(Figures(measured.into_iter().flatten().collect()))
}

fn one_after_the_other(folder: &Path, names: &[&str]) -> Result<Vec<(String, u64)>> {
    let one = |name: &&str| {
        let (few, many) = (instructions(folder, name, COUNT)?, instructions(folder, name, 2 * COUNT)?);
        let extra = many.checked_sub(few).with_context(|| format!("{name} costs nothing"))?;
        Ok(((*name).to_owned(), (extra + COUNT / 2) / COUNT))
    };
    names.iter().map(one).collect()
}

/// Instructions of a whole run. Environment and names are as long on every machine, since they move the stack.
fn instructions(folder: &Path, name: &str, count: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "./turno-steps", name, &count.to_string()])
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GLIBC_TUNABLES", PLAIN_PROCESSOR)
        .stdin(Stdio::null())
        .output()
        .context("valgrind does not start")?;
    let said = String::from_utf8_lossy(&output.stderr);
    collected(&said).filter(|_| output.status.success()).with_context(|| format!("{name}: {said}"))
}

/// The count that callgrind prints at its end.
fn collected(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

/// Where cargo puts what it builds, which a user may have moved.
fn target_folder(machine: &Machine) -> Result<PathBuf> {
    let output = machine.command(&["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let (_, rest) = text.split_once("\"target_directory\":\"").context("cargo names no target folder")?;
    Ok(PathBuf::from(rest.split_once('"').context("cargo names no target folder")?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 1039512\n==7== \n==7== I   refs:      1,039,512\n";
        assert_eq!(collected(said), Some(1_039_512));
        assert_eq!(collected("==7== no such program"), None);
    }
}
