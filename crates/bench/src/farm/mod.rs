//! `cargo xtask bench W9`: no-op tasks of job arrays through the farm, durable, by workers without processes.

mod burst;
mod lives;
mod programs;
mod submit;
pub(crate) mod workers;

use anyhow::Result;
use clap::{Args, ValueEnum, value_parser};

use self::workers::WorkersProcess;
use crate::options::{ServerOptions, count};
use crate::process;
use crate::report::{self, Bound, Head};
use crate::rules::figures::{PartResult, RuleResult, RuleSample};

const ROUNDS: usize = 3;
/// Finished jobs and tasks before the broker starts again, as the bar has it.
const FULL: Finished = Finished { jobs: 100, tasks: 100_000 };

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FarmPart {
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

impl FarmPart {
    const ALL: [Self; 5] = [Self::Rate, Self::Submit, Self::Restart, Self::Programs, Self::Busy];

    /// Measurements with a verdict of their own, and the bound of their first figure.
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
    fn measure(self, options: &FarmOptions) -> Result<Vec<Vec<RuleSample>>> {
        let rounds = options.rounds;
        let each = |mut measure: Box<dyn FnMut() -> Result<Vec<RuleSample>>>| {
            let mut bars = vec![Vec::new(); self.bars().len()];
            for round in 1..=rounds {
                for ((bar, _), (sample, samples)) in self.bars().iter().zip(measure()?.into_iter().zip(&mut bars)) {
                    eprintln!("round {round} of {rounds}, {bar}: {sample}");
                    samples.push(sample);
                }
            }
            Ok(bars)
        };
        let (array, routers) = (options.array, options.server.routers);
        let finished = if options.full { FULL } else { options.finished };
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
#[derive(Args, Clone, Copy, Debug)]
struct Finished {
    /// Finished jobs at the restart
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=1_000_000))]
    jobs: u32,
    /// Tasks of each of those; what fewer than 10,000,000 take is taken times as much
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    tasks: u32,
}

impl Finished {
    fn all(self) -> f64 {
        f64::from(self.jobs) * f64::from(self.tasks)
    }
}

#[derive(Args, Debug)]
pub(crate) struct FarmOptions {
    #[arg(value_enum, default_values_t = FarmPart::ALL)]
    parts: Vec<FarmPart>,
    /// Rounds of each
    #[arg(long, default_value_t = ROUNDS, value_parser = count)]
    rounds: usize,
    /// Tasks of the array that is worked off
    #[arg(long, default_value_t = 200_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    array: u32,
    #[command(flatten)]
    finished: Finished,
    /// 100 jobs of 100,000 tasks at the restart, as the bar has it: takes minutes
    #[arg(long, conflicts_with_all = ["jobs", "tasks"])]
    full: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs it; an error names the bars that were missed.
pub(crate) fn run(options: &FarmOptions) -> Result<()> {
    let head = Head::now(options.server.routers)?;
    process::raise_file_limit(u64::from(lives::WORKERS.max(WorkersProcess::WORKERS)))?;
    println!("{head}; load average {}", process::load_average()?);
    let about = format!(
        "no-op tasks, durable, {} protocol workers of {} slots without processes",
        WorkersProcess::WORKERS,
        WorkersProcess::SLOTS
    );
    let (rule, rounds) = ("W9".to_owned(), options.rounds);
    // There is no order of parts to draw: each is its own broker, beside nothing.
    let mut result = RuleResult { head, rule, about, rounds, seed: 0, parts: Vec::new() };
    for part in &options.parts {
        let samples = part.measure(options)?;
        let bars = part.bars().iter().zip(&samples);
        result.parts.extend(bars.map(|((bar, bound), samples)| PartResult::of(bar, samples, &[*bound])));
        // Written after each part, so that a run that is cut short is not lost.
        report::write(options.server.json.as_deref(), &result)?;
    }
    result.tell()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget.
    #[test]
    fn bars() {
        let bars = FarmPart::ALL.iter().flat_map(|part| part.bars());
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
