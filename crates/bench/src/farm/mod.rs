//! `cargo xtask bench W9`: no-op tasks of job arrays through the farm, durable, by workers without processes.

mod burst;
pub(crate) mod crew;
mod lives;
mod programs;
mod submit;

use anyhow::Result;

use self::crew::Crew;
use crate::options::{all_if_none, count, name, number, routers, text};
use crate::process;
use crate::report::{self, Bound, Head};
use crate::rules::figures::{PartResult, RuleResult, Sample};

const ROUNDS: usize = 3;
/// Tasks of the array that is worked off.
const ARRAY: u32 = 200_000;
/// What is finished before the broker starts again.
const FINISHED: Finished = Finished { jobs: 10, tasks: 100_000 };
/// The same, as the bar has it.
const FULL: Finished = Finished { jobs: 100, tasks: 100_000 };

/// What is measured apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// An array is worked off.
    Rate,
    /// A long array is submitted.
    Submit,
    /// The broker starts again with what is finished.
    Restart,
    /// Tasks are programs.
    Programs,
    /// Tasks take a second each.
    Busy,
}

impl Part {
    const ALL: [Self; 5] = [Self::Rate, Self::Submit, Self::Restart, Self::Programs, Self::Busy];

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == word)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Submit => "submit",
            Self::Restart => "restart",
            Self::Programs => "programs",
            Self::Busy => "busy",
        }
    }

    /// What has a verdict of its own, with what its first figure must keep to.
    const fn bars(self) -> &'static [(&'static str, Bound)] {
        match self {
            Self::Rate => &[("rate", Bound::AtLeast(20_000.0))],
            Self::Submit => &[("submit", Bound::AtMost(1.0)), ("memory", Bound::AtMost(100.0))],
            Self::Restart => &[("restart", Bound::AtMost(10.0))],
            Self::Programs => {
                &[("programs", Bound::AtMost(15.0)), ("files", Bound::AtMost(49.0)), ("explain", Bound::AtMost(50.0))]
            }
            Self::Busy => &[("busy", Bound::AtLeast(95.0))],
        }
    }

    /// All rounds of it: for each bar the samples.
    fn measure(self, options: &Options) -> Result<Vec<Vec<Sample>>> {
        let rounds = options.rounds;
        let each = |mut measure: Box<dyn FnMut() -> Result<Vec<Sample>>>| {
            let mut bars = vec![Vec::new(); self.bars().len()];
            for round in 1..=rounds {
                for ((bar, _), (sample, samples)) in self.bars().iter().zip(measure()?.into_iter().zip(&mut bars)) {
                    eprintln!("round {round} of {rounds}, {bar}: {sample}");
                    samples.push(sample);
                }
            }
            Ok(bars)
        };
        let (array, finished, routers) = (options.array, options.finished, options.routers);
        match self {
            Self::Rate => each(Box::new(move || Ok(vec![burst::measure(array, routers)?]))),
            Self::Submit => each(Box::new(move || Ok(submit::measure(routers)?.into()))),
            Self::Programs => each(Box::new(move || Ok(programs::measure(routers)?.into()))),
            Self::Busy => each(Box::new(move || Ok(vec![programs::busy(routers)?]))),
            Self::Restart => {
                let mut server = lives::fill(finished, routers)?;
                each(Box::new(move || Ok(vec![lives::measure(&mut server, finished, routers)?])))
            }
        }
    }
}

/// Jobs that have ended, each with so many tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finished {
    jobs: u32,
    tasks: u32,
}

impl Finished {
    fn all(self) -> f64 {
        f64::from(self.jobs) * f64::from(self.tasks)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// None named: all.
    parts: Vec<Part>,
    rounds: usize,
    array: u32,
    finished: Finished,
    routers: usize,
    json: Option<String>,
}

impl Options {
    /// What is wrong is told in a sentence.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let parts = Vec::new();
        let mut options = Self { parts, rounds: ROUNDS, array: ARRAY, finished: FINISHED, routers: 1, json: None };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--rounds" => options.rounds = count(word, words.next())?,
                "--array" => options.array = some(word, words.next())?,
                "--jobs" => options.finished.jobs = some(word, words.next())?,
                "--tasks" => options.finished.tasks = some(word, words.next())?,
                "--full" => options.finished = FULL,
                "--routers" => options.routers = routers(word, words.next())?,
                "--json" => options.json = Some(text(word, words.next())?),
                other => name(&mut options.parts, Part::parse(other), other)?,
            }
        }
        Ok(Self { parts: all_if_none(options.parts, &Part::ALL), ..options })
    }
}

fn some(option: &str, word: Option<&str>) -> Result<u32, String> {
    match number(option, word) {
        Ok(count @ 1..=1_000_000) => Ok(count),
        _ => Err(format!("{option} wants a whole number from 1 to 1000000")),
    }
}

/// Runs it; an error names the bars that were missed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let head = Head::now(options.routers)?;
    process::raise_file_limit(u64::from(lives::WORKERS.max(Crew::WORKERS)))?;
    println!("{head}; load average {}", process::load_average()?);
    let about =
        format!("no-op tasks, durable, {} protocol workers of {} slots without processes", Crew::WORKERS, Crew::SLOTS);
    let (rule, rounds) = ("W9".to_owned(), options.rounds);
    // There is no order of parts to draw: each is its own broker, beside nothing.
    let mut result = RuleResult { head, rule, about, rounds, seed: 0, parts: Vec::new() };
    for part in &options.parts {
        let samples = part.measure(options)?;
        let bars = part.bars().iter().zip(&samples);
        result.parts.extend(bars.map(|((bar, bound), samples)| PartResult::of(bar, samples, *bound)));
        // Written after each part, so that a run that is cut short is not lost.
        report::write(options.json.as_deref(), &result)?;
    }
    result.tell()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().collect::<Vec<&str>>())
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let all = Options {
            parts: Part::ALL.to_vec(),
            rounds: 3,
            array: 200_000,
            finished: FINISHED,
            routers: 1,
            json: None,
        };
        assert_eq!(parse(""), Ok(all));
        let some = Options {
            parts: vec![Part::Restart, Part::Rate],
            rounds: 2,
            array: 1_000,
            finished: Finished { jobs: 3, tasks: 500 },
            routers: 2,
            json: Some("w.json".to_owned()),
        };
        let line = "--jobs 3 restart --tasks 500 rate --array 1000 --rounds 2 --json w.json --routers 2 restart";
        assert_eq!(parse(line), Ok(some));
        assert_eq!(parse("--full").unwrap().finished, FULL);
        for line in ["W1", "--rounds 0", "--jobs", "--jobs 0", "--tasks 1000001", "--array x", "--json", "--peers"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn parts_have_names() {
        for part in Part::ALL {
            assert_eq!(Part::parse(part.name()), Some(part));
        }
        assert_eq!(Part::parse("memory"), None);
    }

    /// The budget.
    #[test]
    fn bars() {
        let bars = Part::ALL.iter().flat_map(|part| part.bars());
        let bars: Vec<String> = bars.map(|(name, bound)| format!("{name} {bound}")).collect();
        assert_eq!(
            bars,
            [
                "rate ≥ 20000",
                "submit ≤ 1",
                "memory ≤ 100",
                "restart ≤ 10",
                "programs ≤ 15",
                "files ≤ 49",
                "explain ≤ 50",
                "busy ≥ 95"
            ]
        );
        assert_eq!(FULL.all(), 1e7);
    }
}
