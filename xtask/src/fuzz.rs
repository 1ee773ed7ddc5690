//! `fuzz`: runs the targets of `fuzz/` for a while each, with the nightly toolchain that libFuzzer needs.
//!
//! New inputs go into `fuzz/target/corpus`, never into the committed corpora.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::command::FuzzOptions;

/// Programs of the fuzzer, one per target.
const PROGRAMS: &str = "fuzz/fuzz_targets";
const ARTIFACTS: &str = "fuzz/artifacts";

/// One allocation beyond this was made by an input's claim: no input is longer than a few KiB.
const MALLOC_LIMIT: &str = "-malloc_limit_mb=64";
const INPUT_LIMIT: &str = "-max_len=4096";
/// Seconds after which one input counts as a hang.
const HANG_LIMIT: &str = "-timeout=20";

/// Runs every wanted target; `true` if none found anything.
pub(crate) fn run(root: &Path, options: &FuzzOptions) -> Result<bool> {
    let targets = wanted(&programs(root)?, &options.targets)?;
    let nightly = find_nightly()?;
    let fuzzer = Fuzzer { root, nightly };
    fuzzer.set_up()?;
    let mut lines = Vec::new();
    let mut passed = true;
    for target in &targets {
        println!("\n==> {target}: {} s", options.seconds);
        let report = fuzzer.fuzz(target, options.seconds)?;
        passed &= report.crash.is_none();
        lines.push(report.line(target));
        println!("<== {}", report.line(target));
    }
    println!("\n{}", lines.join("\n"));
    Ok(passed)
}

/// How many targets a run would fuzz.
pub(crate) fn count(root: &Path, options: &FuzzOptions) -> Result<u64> {
    Ok(wanted(&programs(root)?, &options.targets)?.len() as u64)
}

/// The targets there are, in order of name.
fn programs(root: &Path) -> Result<Vec<String>> {
    let folder = root.join(PROGRAMS);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

/// Those the user named, or all.
fn wanted(known: &[String], named: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = named.iter().find(|name| !known.contains(name)) {
        bail!("there is no target `{unknown}`; there are {}", known.join(", "));
    }
    Ok(if named.is_empty() { known.to_vec() } else { named.to_vec() })
}

fn find_nightly() -> Result<String> {
    let listed = Command::new("rustup").args(["toolchain", "list"]).stdin(Stdio::null()).output();
    let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    nightly_among(&text).map(str::to_owned).context(
        "NOTHING WAS FUZZED: libFuzzer needs a nightly toolchain and there is none; \
         `rustup toolchain install nightly --profile minimal` gets one",
    )
}

/// The first nightly toolchain of rustup's list.
fn nightly_among(list: &str) -> Option<&str> {
    list.lines().filter_map(|line| line.split_whitespace().next()).find(|name| name.starts_with("nightly"))
}

struct Fuzzer<'a> {
    root: &'a Path,
    nightly: String,
}

impl Fuzzer<'_> {
    /// Cargo of the nightly toolchain, by way of rustup: the cargo that started us is another one.
    fn cargo(&self, args: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command.args(args).current_dir(self.root).env("RUSTUP_TOOLCHAIN", &self.nightly).env_remove("CARGO");
        command
    }

    fn set_up(&self) -> Result<()> {
        println!("fuzzing with {}", self.nightly);
        let asked = self.cargo(&["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !asked.is_ok_and(|status| status.success()) {
            println!("cargo-fuzz is missing, installing it (once; takes some minutes)");
            let installed = self.cargo(&["install", "cargo-fuzz", "--locked"]).status().context("cannot run cargo")?;
            if !installed.success() {
                bail!("NOTHING WAS FUZZED: `cargo install cargo-fuzz --locked` failed: {installed}");
            }
        }
        let built = self.cargo(&["fuzz", "build", "--fuzz-dir", "fuzz"]).status().context("cannot run cargo")?;
        if !built.success() {
            bail!("NOTHING WAS FUZZED: the targets do not build: {built}");
        }
        Ok(())
    }

    fn fuzz(&self, target: &str, seconds: u32) -> Result<Report> {
        let fresh = format!("fuzz/target/corpus/{target}");
        let kept = format!("fuzz/corpus/{target}");
        fs::create_dir_all(self.root.join(&fresh)).with_context(|| format!("cannot make {fresh}"))?;
        let time = format!("-max_total_time={seconds}");
        let args = ["fuzz", "run", "--fuzz-dir", "fuzz", target, &fresh, &kept, "--"];
        let limits = [&time, MALLOC_LIMIT, INPUT_LIMIT, HANG_LIMIT, "-print_final_stats=1"];
        let mut command = self.cargo(&[args.as_slice(), limits.as_slice()].concat());
        let output = command.stdin(Stdio::null()).output().context("cannot run cargo fuzz")?;
        let text = String::from_utf8_lossy(&output.stderr);
        let report = Report::read(&text, output.status.success());
        if let Some(crash) = &report.crash {
            println!("{text}");
            println!("{}", crash.advice(target, &self.nightly));
        }
        Ok(report)
    }
}

/// libFuzzer's report about one run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    executions: u64,
    /// Covered places before the first mutation, and at the end.
    coverage: Option<(u64, u64)>,
    /// Inputs kept because they reached something new.
    new_inputs: u64,
    crash: Option<Crash>,
}

/// A run that ended badly, and the input that did it if libFuzzer could write it.
#[derive(Debug, PartialEq, Eq)]
struct Crash {
    artifact: Option<String>,
}

impl Report {
    fn read(text: &str, success: bool) -> Self {
        let stat = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().parse().ok()
        };
        let covered: Vec<u64> = text.lines().filter_map(coverage_of).collect();
        let artifact = text.split("Test unit written to ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let artifact = artifact.map(|path| match path.find(ARTIFACTS) {
            Some(at) => path[at..].to_owned(),
            None => path.to_owned(),
        });
        Self {
            executions: stat("stat::number_of_executed_units").unwrap_or(0),
            coverage: covered.first().copied().zip(covered.last().copied()),
            new_inputs: stat("stat::new_units_added").unwrap_or(0),
            crash: (!success).then_some(Crash { artifact }),
        }
    }

    fn line(&self, target: &str) -> String {
        let (before, after) = self.coverage.unwrap_or_default();
        let word = if self.crash.is_some() { "CRASHED" } else { "nothing found" };
        let gained = after.saturating_sub(before);
        let (executions, inputs) = (self.executions, self.new_inputs);
        format!("{target:<13} {word}: {executions} executions, {gained} new places covered, {inputs} new inputs")
    }
}

impl Crash {
    fn advice(&self, target: &str, nightly: &str) -> String {
        match &self.artifact {
            Some(path) => format!(
                "CRASH of {target}: the input is {path}\n\
                 again: cargo +{nightly} fuzz run --fuzz-dir fuzz {target} {path}\n\
                 smaller: cargo +{nightly} fuzz tmin --fuzz-dir fuzz {target} {path}\n\
                 then fix it, write the plain test that would have found it, and copy the input to fuzz/corpus/{target}/"
            ),
            None => format!("CRASH of {target}: it wrote no input; what it said is above"),
        }
    }
}

/// The count in a line like `#1024 pulse cov: 77 ft: 91`, of lines after the corpus was read.
fn coverage_of(line: &str) -> Option<u64> {
    let rest = line.strip_prefix('#')?;
    let (_, rest) = rest.split_once("cov: ").filter(|(event, _)| !event.contains("READ"))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: &str = "INFO: seed corpus: files: 2\n\
        #3\tINITED cov: 70 ft: 80 corp: 2/9b exec/s: 0 rss: 40Mb\n\
        #900\tNEW    cov: 77 ft: 91 corp: 3/12b lim: 4 exec/s: 0 rss: 40Mb L: 3/4 MS: 1 CopyPart-\n\
        #1024\tDONE   cov: 77 ft: 91 corp: 3/12b lim: 4 exec/s: 0 rss: 40Mb\n\
        stat::number_of_executed_units: 1024\nstat::average_exec_per_sec:     0\nstat::new_units_added:          1\n";

    #[test]
    fn a_calm_run_is_counted() {
        let report = Report::read(CALM, true);
        assert_eq!(report, Report { executions: 1024, coverage: Some((70, 77)), new_inputs: 1, crash: None });
        assert!(report.line("names").contains("nothing found: 1024 executions, 7 new places covered, 1 new inputs"));
        assert!(Report::read("", true).line("names").contains("0 executions"));
    }

    #[test]
    fn a_crash_names_its_input_and_how_to_see_it_again() {
        let text = "thread panicked\nartifact_prefix='/x/fuzz/artifacts/names/'; Test unit written to \
                    /x/fuzz/artifacts/names/crash-1f\nBase64: AA==\n";
        let crash = Report::read(text, false).crash.unwrap();
        assert_eq!(crash.artifact.as_deref(), Some("fuzz/artifacts/names/crash-1f"));
        let advice = crash.advice("names", "nightly");
        assert!(advice.contains("again: cargo +nightly fuzz run --fuzz-dir fuzz names fuzz/artifacts/names/crash-1f"));
        let mute = Report::read("killed", false);
        assert_eq!(mute.crash, Some(Crash { artifact: None }));
        assert!(mute.line("names").contains("CRASHED"));
    }

    #[test]
    fn a_nightly_is_found_among_others() {
        let list = "stable-x86_64 (default)\nnightly-2026-01-01-x86_64\n1.95.0-x86_64 (active)\n";
        assert_eq!(nightly_among(list), Some("nightly-2026-01-01-x86_64"));
        assert_eq!(nightly_among("stable-x86_64 (default)\n"), None);
        assert_eq!(nightly_among("no installed toolchains"), None);
    }

    #[test]
    fn only_known_targets_are_taken() {
        let known = ["names".to_owned(), "session".to_owned()];
        assert_eq!(wanted(&known, &[]).unwrap(), known);
        assert_eq!(wanted(&known, &["session".to_owned()]).unwrap(), ["session"]);
        let error = wanted(&known, &["sessions".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "there is no target `sessions`; there are names, session");
    }
}
