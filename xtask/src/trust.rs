//! `trust`: runs fresh seeds, kills, fuzzing or the whole test command, and adds up what passed, per version and commit.
//!
//! `docs/reference/trust.md` is both the report and the store: its table is read, changed and written back.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, iter};

use anyhow::{Context as _, Result, bail};

use crate::command::{TestOptions, Trial};
use crate::machine::Machine;
use crate::{fuzz, suite};
use xtask::grouped;

const FILE: &str = "docs/reference/trust.md";
/// Where the simulator writes how much it ran.
const TALLY: &str = "target/sim-tally.txt";
/// Of that many rounds of the crash loop the last one asks the broker to end; all others kill it.
const IN_ORDER_EVERY: u32 = 10;
const SECONDS_PER_HOUR: f64 = 3_600.0;

const HEAD: &str = "\
# Test record

Successful runs on new input, in addition to the fixed seeds and rounds of `cargo xtask test`. `cargo xtask trust` runs
them and writes this file. A `+` after a commit means uncommitted changes. Seeds are simulated worlds of one to three
brokers, every tenth of them linked; kills are ends of a broker under load by SIGKILL; hours are those of the fuzzer, over
all targets; rounds are complete runs of `cargo xtask test`.

| version | commit | seeds | rings | linked worlds | kills | fuzz hours | test rounds |
|---|---|---:|---:|---:|---:|---:|---:|
";

/// The counts of runs: the columns of the table behind version and commit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    seeds: u64,
    rings: u64,
    linked: u64,
    kills: u64,
    fuzz_hours: f64,
    rounds: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.rings += other.rings;
        self.linked += other.linked;
        self.kills += other.kills;
        self.fuzz_hours += other.fuzz_hours;
        self.rounds += other.rounds;
    }

    fn parse(cells: &[&str]) -> Option<Self> {
        let &[seeds, rings, linked, kills, fuzz_hours, rounds] = cells else { return None };
        let whole = |cell: &str| cell.replace(',', "").parse().ok();
        Some(Self {
            seeds: whole(seeds)?,
            rings: whole(rings)?,
            linked: whole(linked)?,
            kills: whole(kills)?,
            fuzz_hours: fuzz_hours.replace(',', "").parse().ok()?,
            rounds: whole(rounds)?,
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    version: String,
    commit: String,
    counts: Counts,
}

impl Row {
    fn line(&self) -> String {
        let Counts { seeds, rings, linked, kills, fuzz_hours, rounds } = self.counts;
        let cells = [seeds, rings, linked, kills].map(grouped).join(" | ");
        format!("| {} | {} | {cells} | {fuzz_hours:.2} | {} |", self.version, self.commit, grouped(rounds))
    }
}

/// Runs the trial and records it if it passed.
pub(crate) fn run(root: &Path, trial: Option<&Trial>) -> Result<bool> {
    let machine = Machine::new(root);
    let counts = match trial {
        None => {
            println!("{}", fs::read_to_string(root.join(FILE)).with_context(|| format!("reading {FILE}"))?);
            return Ok(true);
        }
        Some(Trial::Sim(passed)) => simulate(root, &passed.words)?,
        Some(Trial::Kills { rounds }) => kill(&machine, *rounds)?,
        Some(Trial::Fuzz(options)) => {
            let seconds = u64::from(options.seconds) * fuzz::count(root, options)?;
            let hours = seconds as f64 / SECONDS_PER_HOUR;
            fuzz::run(root, options)?.then_some(Counts { fuzz_hours: hours, ..Counts::default() })
        }
        Some(Trial::Test) => {
            suite::test(root, &TestOptions::default())?.then_some(Counts { rounds: 1, ..Counts::default() })
        }
    };
    let Some(counts) = counts else {
        println!("it failed: nothing is added to {FILE}");
        return Ok(false);
    };
    record(root, commit(&machine)?, counts)?;
    Ok(true)
}

/// Fresh seeds, and how many of each kind they were.
fn simulate(root: &Path, words: &[String]) -> Result<Option<Counts>> {
    let ours = ["--fresh", "--tally", TALLY].map(str::to_owned);
    let words: Vec<String> = ours.into_iter().chain(words.iter().cloned()).collect();
    if !suite::sim(root, &words)? {
        return Ok(None);
    }
    let text = fs::read_to_string(root.join(TALLY)).with_context(|| format!("reading {TALLY}"))?;
    parse_tally(&text).map(Some).with_context(|| format!("{TALLY} is not what the simulator writes: {text:?}"))
}

fn parse_tally(text: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    for line in text.lines() {
        let (kind, number) = line.split_once(' ')?;
        let number = number.parse().ok()?;
        match kind {
            "seeds" => counts.seeds = number,
            "rings" => counts.rings = number,
            "linked" => counts.linked = number,
            _ => return None,
        }
    }
    Some(counts)
}

/// The crash loop under cargo's own runner: nextest ends a test that takes minutes.
fn kill(machine: &Machine, rounds: u32) -> Result<Option<Counts>> {
    let built = machine.command(&["cargo", "build", "--package", "turno", "--locked"]).status();
    if !built.context("cargo does not start")?.success() {
        return Ok(None);
    }
    let words =
        ["cargo", "test", "--package", "turno-e2e", "--locked", "--test", "crash_loop", "what_was_stored", "--"];
    let mut command = machine.command(&[&words[..], &["--nocapture"]].concat());
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock")?.as_secs();
    command.env("TURNO_TEST_CRASHES", rounds.to_string()).env("TURNO_TEST_SEED", seed.to_string());
    let status = command.status().context("cargo does not start")?;
    let kills = u64::from(rounds - rounds / IN_ORDER_EVERY);
    Ok(status.success().then_some(Counts { kills, ..Counts::default() }))
}

/// The commit, with a `+` if anything but the ledger differs from it.
fn commit(machine: &Machine) -> Result<String> {
    let Some(commit) = machine.ask(&["git", "rev-parse", "--short=9", "HEAD"]) else {
        bail!("what is recorded belongs to a commit, and git knows none here");
    };
    let changes =
        machine.ask(&["git", "status", "--porcelain", "--", ".", ":!docs/reference/trust.md"]).unwrap_or_default();
    let mark = if changes.trim().is_empty() { "" } else { "+" };
    Ok(format!("{}{mark}", commit.trim()))
}

fn record(root: &Path, commit: String, counts: Counts) -> Result<()> {
    let path = root.join(FILE);
    let before = fs::read_to_string(&path).unwrap_or_default();
    let row = Row { version: env!("CARGO_PKG_VERSION").to_owned(), commit, counts };
    println!("{FILE}: {}", row.line());
    fs::write(&path, with(&before, row)?).with_context(|| format!("writing {FILE}"))
}

/// The file with one more trial in it.
fn with(text: &str, new: Row) -> Result<String> {
    let mut rows = rows(text)?;
    match rows.iter_mut().find(|row| (&row.version, &row.commit) == (&new.version, &new.commit)) {
        Some(row) => row.counts.add(&new.counts),
        None => rows.push(new),
    }
    let mut versions: Vec<String> = rows.iter().map(|row| row.version.clone()).collect();
    versions.dedup();
    let mut text = HEAD.to_owned();
    for version in versions {
        let of_version: Vec<&Row> = rows.iter().filter(|row| row.version == version).collect();
        let mut sum = Row { version, commit: SUM.to_owned(), counts: Counts::default() };
        of_version.iter().for_each(|row| sum.counts.add(&row.counts));
        for row in of_version.into_iter().chain(iter::once(&sum)) {
            writeln!(text, "{}", row.line())?;
        }
    }
    Ok(text)
}

/// The row that adds up a version.
const SUM: &str = "**all**";

/// The table's rows without their sums.
fn rows(text: &str) -> Result<Vec<Row>> {
    let lines = text.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut rows = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [version, commit, numbers @ ..] = cells.as_slice() else { bail!("{FILE}: not a row: {line}") };
        let Some(counts) = Counts::parse(numbers) else { bail!("{FILE}: not a row: {line}") };
        if *commit != SUM {
            rows.push(Row { version: (*version).to_owned(), commit: (*commit).to_owned(), counts });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: &str, commit: &str, counts: Counts) -> Row {
        Row { version: version.to_owned(), commit: commit.to_owned(), counts }
    }

    #[test]
    fn trials_of_one_commit_are_added_up_and_versions_have_a_sum() {
        let seeds = Counts { seeds: 50_000, rings: 1_000, linked: 10, ..Counts::default() };
        let others = Counts { kills: 1_234_567, fuzz_hours: 0.25, rounds: 1, ..Counts::default() };
        let mut text = with("", row("0.1.0", "abc", seeds)).unwrap();
        text = with(&text, row("0.1.0", "abc", others)).unwrap();
        text = with(&text, row("0.1.0", "def+", others)).unwrap();
        text = with(&text, row("0.2.0", "123", seeds)).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("| 0")).collect();
        assert_eq!(
            lines,
            [
                "| 0.1.0 | abc | 50,000 | 1,000 | 10 | 1,234,567 | 0.25 | 1 |",
                "| 0.1.0 | def+ | 0 | 0 | 0 | 1,234,567 | 0.25 | 1 |",
                "| 0.1.0 | **all** | 50,000 | 1,000 | 10 | 2,469,134 | 0.50 | 2 |",
                "| 0.2.0 | 123 | 50,000 | 1,000 | 10 | 0 | 0.00 | 0 |",
                "| 0.2.0 | **all** | 50,000 | 1,000 | 10 | 0 | 0.00 | 0 |",
            ]
        );
        assert!(text.starts_with(HEAD));
    }

    #[test]
    fn a_table_that_cannot_be_read_is_not_overwritten() {
        let text = format!("{HEAD}| 0.1.0 | abc | many | 0 | 0 | 0 | 0.00 | 0 |\n");
        let error = with(&text, row("0.1.0", "abc", Counts::default())).unwrap_err();
        assert!(error.to_string().contains("not a row: | 0.1.0 | abc | many"), "{error}");
    }

    #[test]
    fn what_the_simulator_writes_is_read() {
        let counts = parse_tally("seeds 50000\nrings 10\nlinked 3\n").unwrap();
        assert_eq!(counts, Counts { seeds: 50_000, rings: 10, linked: 3, ..Counts::default() });
        assert_eq!(parse_tally("worlds 3\n"), None);
        assert_eq!(parse_tally("seeds\n"), None);
    }
}
