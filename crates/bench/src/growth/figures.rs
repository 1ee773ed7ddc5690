//! Figures of growth: samples in, medians and verdicts out.

use serde::{Deserialize, Serialize};
use xtask::grouped;

use super::curve::{Curve, Judged};
use crate::report::Head;
use crate::spread::Spread;

/// Cost may grow by so much from the smallest size to the largest.
pub(crate) const FLAT_WITHIN: f64 = 1.25;

/// A run of growth, as it is written with `--json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Growth {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// Rounds of each curve.
    pub(crate) rounds: usize,
    /// Of the order of sizes.
    pub(crate) seed: u64,
    pub(crate) curves: Vec<CurveResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurveResult {
    pub(crate) curve: Curve,
    /// The smallest size first.
    pub(crate) points: Vec<Point>,
}

/// One size of a curve: medians over the rounds. The relay stands beside it where it can do the work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) size: usize,
    /// The server's CPU time per request.
    pub(crate) turno_us: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relay_us: Option<f64>,
    /// Turno's over its own at the smallest size, in the same round.
    pub(crate) ratio: f64,
    /// The relay's over its own at the smallest size, in the same round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relay_ratio: Option<f64>,
    /// The judged figure: `ratio`, or each round's `ratio` over `relay_ratio`.
    pub(crate) judged: Spread,
}

/// One size beside the smallest, in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GrowthSample {
    pub(crate) turno: Pair,
    pub(crate) relay: Option<Pair>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) smallest: f64,
    pub(crate) here: f64,
}

impl Pair {
    fn ratio(self) -> f64 {
        self.here / self.smallest
    }
}

impl Point {
    /// The smallest size itself.
    pub(crate) fn smallest(size: usize, samples: &[GrowthSample]) -> Self {
        let itself = samples.iter().map(|sample| {
            let beside_itself = |pair: Pair| Pair { here: pair.smallest, ..pair };
            GrowthSample { turno: beside_itself(sample.turno), relay: sample.relay.map(beside_itself) }
        });
        Self::of(size, &itself.collect::<Vec<GrowthSample>>(), Judged::Alone)
    }

    pub(crate) fn of(size: usize, samples: &[GrowthSample], judged: Judged) -> Self {
        let median_of = |of: fn(&GrowthSample) -> Option<f64>| {
            let values: Vec<f64> = samples.iter().filter_map(of).collect();
            Spread::of(&values).map(|spread| spread.median)
        };
        let bar = |sample: &GrowthSample| match (judged, sample.relay) {
            (Judged::BesideRelay, Some(relay)) => sample.turno.ratio() / relay.ratio(),
            _ => sample.turno.ratio(),
        };
        let bars: Vec<f64> = samples.iter().map(bar).collect();
        let nothing = Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN };
        Self {
            size,
            turno_us: median_of(|sample| Some(sample.turno.here)).unwrap_or(f64::NAN),
            relay_us: median_of(|sample| Some(sample.relay?.here)),
            ratio: median_of(|sample| Some(sample.turno.ratio())).unwrap_or(f64::NAN),
            relay_ratio: median_of(|sample| Some(sample.relay?.ratio())),
            judged: Spread::of(&bars).unwrap_or(nothing),
        }
    }
}

impl CurveResult {
    /// Costs may fall as far as they like.
    pub(crate) fn is_flat(&self) -> bool {
        self.points.iter().all(|point| point.judged.median <= FLAT_WITHIN)
    }

    /// A table for people: Markdown, which reads well in a terminal too.
    pub(crate) fn table(&self) -> String {
        let bodies = self.curve == Curve::Bodies;
        let beside = self.curve.judged() == Judged::BesideRelay;
        let mut text = format!("| {} | CPU us | beside the smallest |", self.curve.axis());
        let mut rule = "|---:|---:|---:|".to_owned();
        if bodies {
            text += " CPU us per KiB |";
            rule += "---:|";
        }
        if beside {
            text +=
                " relay's CPU us | relay beside its smallest | growth beside the relay's | lowest and highest round |";
            rule += "---:|---:|---:|---:|";
        } else {
            text += " lowest and highest round |";
            rule += "---:|";
        }
        text = format!("{text}\n{rule}\n");
        for point in &self.points {
            text += &format!("| {} | {:.2} | {:.2} |", grouped(point.size as u64), point.turno_us, point.ratio);
            if bodies {
                text += &format!(" {:.2} |", point.turno_us * 1024.0 / point.size as f64);
            }
            if let (true, Some(us), Some(ratio)) = (beside, point.relay_us, point.relay_ratio) {
                text += &format!(" {us:.2} | {ratio:.2} | {:.2} |", point.judged.median);
            }
            text += &format!(" {:.2} to {:.2} |\n", point.judged.min, point.judged.max);
        }
        text
    }

    pub(crate) fn verdict(&self) -> String {
        let worst = self.points.iter().map(|point| point.judged.median).fold(1.0, f64::max);
        let what = match self.curve.judged() {
            Judged::Alone => "cost per request",
            Judged::BesideRelay => "cost per request beside the relay's",
        };
        let word = if self.is_flat() { "flat" } else { "NOT flat" };
        format!("{}: {word}; {what} grows to {worst:.2} at most (bar {FLAT_WITHIN})", self.curve.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(turno: (f64, f64), relay: Option<(f64, f64)>) -> GrowthSample {
        let pair = |(smallest, here)| Pair { smallest, here };
        GrowthSample { turno: pair(turno), relay: relay.map(pair) }
    }

    #[test]
    fn a_point_is_the_median_of_ratios_within_rounds() {
        // The second round ran on a machine that was twice as slow: its ratio is the same.
        let samples = [sample((2.0, 3.0), None), sample((4.0, 6.0), None), sample((2.0, 2.2), None)];
        let point = Point::of(100, &samples, Judged::Alone);
        assert_eq!((point.ratio, point.judged), (1.5, Spread { median: 1.5, min: 1.1, max: 1.5 }));
        assert_eq!((point.turno_us, point.relay_us), (3.0, None));
    }

    #[test]
    fn growth_that_the_relay_shares_is_not_held_against_the_broker() {
        let samples = [sample((2.0, 6.0), Some((1.0, 2.5)))];
        let point = Point::of(100, &samples, Judged::BesideRelay);
        assert_eq!((point.ratio, point.relay_ratio), (3.0, Some(2.5)));
        assert!((point.judged.median - 1.2).abs() < 1e-9);
        let result = CurveResult { curve: Curve::Workers, points: vec![Point::smallest(10, &samples), point] };
        assert!(result.is_flat());
        assert!(result.verdict().starts_with("workers: flat"), "{}", result.verdict());
        assert!(result.table().lines().all(|line| line.matches('|').count() == 8), "{}", result.table());
    }

    #[test]
    fn tables_have_as_many_cells_in_every_line() {
        for curve in Curve::ALL {
            let relay = (curve.judged() == Judged::BesideRelay).then_some((1.0, 1.0));
            let samples = [sample((1.0, 2.0), relay)];
            let points = vec![Point::smallest(1, &samples), Point::of(10, &samples, curve.judged())];
            let result = CurveResult { curve, points };
            assert!(!result.is_flat());
            let table = result.table();
            let cells: Vec<usize> = table.lines().map(|line| line.matches('|').count()).collect();
            assert!(cells.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
        }
    }
}
