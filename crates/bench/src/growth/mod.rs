//! `cargo xtask bench growth`: whether a request costs the same when everything around it is many times larger.
//!
//! Every size is measured beside the smallest of its curve, one right after the other and in random order, so that a
//! noisy minute hits both; what is compared is CPU time from the process table, not the clock on the wall.

pub(crate) mod curve;
pub(crate) mod figures;
mod load;

use anyhow::{Context, Result, bail};
use clap::Args;
use fastrand::Rng;

use self::curve::{Curve, Judged};
use self::figures::{CurveResult, Growth, GrowthSample, Pair, Point};
use self::load::measure;
use crate::options::{ServerOptions, count};
use crate::process;
use crate::report::{self, Head};
use crate::spread::clock_seed;
use crate::system::System;

const ROUNDS: usize = 5;

#[derive(Args, Debug)]
pub(crate) struct GrowthOptions {
    #[arg(value_enum, default_values_t = Curve::ALL)]
    curves: Vec<Curve>,
    /// Rounds of each
    #[arg(long, default_value_t = ROUNDS, value_parser = count)]
    rounds: usize,
    /// Of the order; without it the clock's
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs it; an error names the curves that are not flat.
///
/// Everything stands on one core: on several the number of messages a system call serves depends on who happens to
/// wait for whom, and that moves the cost per request by half from run to run.
pub(crate) fn run(options: &GrowthOptions) -> Result<()> {
    let GrowthOptions { curves, rounds, seed, server: ServerOptions { routers, json } } = options;
    let head = Head::now(*routers)?;
    let seed = seed.map_or_else(clock_seed, Ok)?;
    // The servers inherit both.
    process::stay_on_first_core()?;
    process::raise_file_limit(most_workers(curves))?;
    println!("{head}; order of sizes by seed {seed}");
    let mut dice = Rng::with_seed(seed);
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

fn measure_curve(curve: Curve, rounds: usize, routers: usize, dice: &mut Rng) -> Result<CurveResult> {
    let (smallest, larger) = curve.sizes().split_first().context("a curve has sizes")?;
    let mut samples: Vec<Vec<GrowthSample>> = vec![Vec::new(); larger.len()];
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
    dice: &mut Rng,
) -> Result<GrowthSample> {
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
    Ok(GrowthSample { turno, relay: has_relay.then_some(relay) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_finds_its_place_whatever_the_order() {
        let cost = |system, size| Ok(if system == System::Turno { 100.0 } else { 0.0 } + size as f64);
        for seed in 0..8 {
            let sample = measure_beside(Curve::Workers, 1, 10, cost, &mut Rng::with_seed(seed)).unwrap();
            assert_eq!(sample.turno, Pair { smallest: 101.0, here: 110.0 });
            assert_eq!(sample.relay, Some(Pair { smallest: 1.0, here: 10.0 }));
        }
        let sample = measure_beside(Curve::Queues, 1, 10, cost, &mut Rng::with_seed(1)).unwrap();
        assert_eq!(sample.relay, None);
    }

    #[test]
    fn files_are_needed_for_workers_only() {
        assert_eq!((most_workers(&Curve::ALL), most_workers(&[Curve::Bodies])), (10_000, 10));
    }
}
