//! `cargo xtask bench growth`: whether a request costs the same when everything around it is many times larger.
//!
//! Every size is measured beside the smallest of its curve, one right after the other and in random order, so that a
//! noisy minute hits both; what is compared is CPU time from the process table, not the clock on the wall.

pub(crate) mod curve;
pub(crate) mod figures;
mod load;

use anyhow::{Context, Result, bail};

use self::curve::{Curve, Judged};
use self::figures::{CurveResult, Growth, Pair, Point, Sample};
use self::load::measure;
use crate::options::{all_if_none, count, name, number, routers, text};
use crate::process;
use crate::report::{self, Head};
use crate::spread::{Dice, clock_seed};
use crate::system::System;

const ROUNDS: usize = 5;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    curves: Vec<Curve>,
    rounds: usize,
    seed: Option<u64>,
    routers: usize,
    json: Option<String>,
}

impl Options {
    /// What is wrong is told in a sentence.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self { curves: Vec::new(), rounds: ROUNDS, seed: None, routers: 1, json: None };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--rounds" => options.rounds = count(word, words.next())?,
                "--seed" => options.seed = Some(number(word, words.next())?),
                "--routers" => options.routers = routers(word, words.next())?,
                "--json" => options.json = Some(text(word, words.next())?),
                other => name(&mut options.curves, Curve::parse(other), other)?,
            }
        }
        Ok(Self { curves: all_if_none(options.curves, &Curve::ALL), ..options })
    }
}

/// Runs it; an error names the curves that are not flat.
///
/// Everything stands on one core: on several the number of messages a system call serves depends on who happens to
/// wait for whom, and that moves the cost per request by half from run to run.
pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { curves, rounds, seed, routers, json } = options;
    let head = Head::now(*routers)?;
    let seed = seed.map_or_else(clock_seed, Ok)?;
    // The servers inherit both.
    process::stay_on_first_core()?;
    process::raise_file_limit(most_workers(curves))?;
    println!("{head}; order of sizes by seed {seed}");
    let mut dice = Dice::new(seed);
    let mut growth = Growth { head, rounds: *rounds, seed, curves: Vec::new() };
    for curve in curves {
        let result = measure_curve(*curve, *rounds, *routers, &mut dice)?;
        println!("\n{}\n{}", result.table(), result.verdict());
        growth.curves.push(result);
        // Written after each curve, so that a run that is cut short is not lost.
        report::write(json.as_deref(), &growth)?;
    }
    let steep: Vec<&str> =
        growth.curves.iter().filter(|curve| !curve.is_flat()).map(|curve| curve.curve.name()).collect();
    if !steep.is_empty() {
        bail!("not flat within a quarter: {}", steep.join(", "));
    }
    Ok(())
}

fn most_workers(curves: &[Curve]) -> u64 {
    let sizes = curves.iter().flat_map(|curve| curve.sizes().iter().map(|size| curve.shape(*size).workers));
    sizes.max().unwrap_or(0) as u64
}

fn measure_curve(curve: Curve, rounds: usize, routers: usize, dice: &mut Dice) -> Result<CurveResult> {
    let (smallest, larger) = curve.sizes().split_first().context("a curve has sizes")?;
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); larger.len()];
    for round in 1..=rounds {
        let mut order: Vec<usize> = (0..larger.len()).collect();
        dice.shuffle(&mut order);
        for at in order {
            let cost = |system, size| measure(system, curve.shape(size), routers);
            let sample = measure_beside(curve, *smallest, larger[at], cost, dice)?;
            eprintln!("round {round} of {rounds}, {} {}: {sample:.2?}", larger[at], curve.name());
            samples[at].push(sample);
        }
    }
    let mut points = vec![Point::smallest(*smallest, &samples.concat())];
    points.extend(larger.iter().zip(&samples).map(|(size, samples)| Point::of(*size, samples, curve.judged())));
    Ok(CurveResult { curve, points })
}

/// One size and the smallest, with the relay at both where it can do the work, in any order.
fn measure_beside(
    curve: Curve,
    smallest: usize,
    size: usize,
    cost: impl Fn(System, usize) -> Result<f64>,
    dice: &mut Dice,
) -> Result<Sample> {
    let has_relay = curve.judged() == Judged::BesideRelay;
    let mut runs = vec![(System::Turno, smallest), (System::Turno, size)];
    if has_relay {
        runs.extend([(System::Relay, smallest), (System::Relay, size)]);
    }
    dice.shuffle(&mut runs);
    let empty = Pair { smallest: f64::NAN, here: f64::NAN };
    let (mut turno, mut relay) = (empty, empty);
    for (system, at) in runs {
        let pair = if system == System::Turno { &mut turno } else { &mut relay };
        *(if at == size { &mut pair.here } else { &mut pair.smallest }) = cost(system, at)?;
    }
    Ok(Sample { turno, relay: has_relay.then_some(relay) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().collect::<Vec<&str>>())
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let all = Options { curves: Curve::ALL.to_vec(), rounds: 5, seed: None, routers: 1, json: None };
        assert_eq!(parse(""), Ok(all));
        let json = Some("g.json".to_owned());
        let some = Options { curves: vec![Curve::Bodies], rounds: 2, seed: Some(3), routers: 2, json };
        assert_eq!(parse("--rounds 2 bodies --json g.json --routers 2 --seed 3"), Ok(some));
        for line in ["W1", "--rounds", "--rounds 0", "--json", "--runs 2"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn every_figure_finds_its_place_whatever_the_order() {
        let cost = |system, size| Ok(if system == System::Turno { 100.0 } else { 0.0 } + size as f64);
        for seed in 0..8 {
            let sample = measure_beside(Curve::Workers, 1, 10, cost, &mut Dice::new(seed)).unwrap();
            assert_eq!(sample.turno, Pair { smallest: 101.0, here: 110.0 });
            assert_eq!(sample.relay, Some(Pair { smallest: 1.0, here: 10.0 }));
        }
        let sample = measure_beside(Curve::Queues, 1, 10, cost, &mut Dice::new(1)).unwrap();
        assert_eq!(sample.relay, None);
    }

    #[test]
    fn files_are_needed_for_workers_only() {
        assert_eq!((most_workers(&Curve::ALL), most_workers(&[Curve::Bodies])), (10_000, 10));
    }
}
