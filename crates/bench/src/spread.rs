//! Numbers of several rounds: their median and how far they lie apart; and the order of rounds.

use std::fmt;
use std::time::SystemTime;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// Bytes of one.
pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// Median, lowest and highest of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of a figure that was taken once.
    pub(crate) const fn flat(value: f64) -> Self {
        Self { median: value, min: value, max: value }
    }

    /// `None` if nothing was measured.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let min = values.iter().copied().min_by(f64::total_cmp)?;
        let max = values.iter().copied().max_by(f64::total_cmp)?;
        Some(Self { median: median(values), min, max })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max } = *self;
        formatter.write_str(&digits(median))?;
        if min < max { write!(formatter, " ({} to {})", digits(min), digits(max)) } else { Ok(()) }
    }
}

/// Two figures that matter.
pub(crate) fn digits(value: f64) -> String {
    if value >= 9.95 {
        format!("{value:.0}")
    } else if value >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.as_slice() {
        [] => f64::NAN,
        sorted if sorted.len() % 2 == 1 => sorted[middle],
        sorted => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The one that so many in a hundred are not above; of sorted ones.
pub(crate) fn percentile(sorted: &[u32], percent: usize) -> Option<f64> {
    sorted.get(sorted.len() * percent / 100).copied().map(f64::from)
}

/// A seed that nobody chose.
pub(crate) fn clock_seed() -> Result<u64> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn percentiles() {
        let sorted: Vec<u32> = (1..=1_000).collect();
        assert_eq!((percentile(&sorted, 50), percentile(&sorted, 99)), (Some(501.0), Some(991.0)));
        assert_eq!((percentile(&[5], 99), percentile(&[], 99)), (Some(5.0), None));
    }

    #[test]
    fn spreads() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[2.0, 1.0, 9.0]), Some(Spread { median: 2.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn small_figures_keep_their_digits() {
        assert_eq!([0.02, 0.38, 1.9, 15.5].map(digits), ["0.020", "0.38", "1.90", "16"]);
        assert_eq!(Spread::flat(2.0).to_string(), "2.00");
        assert_eq!(Spread { median: 2.0, min: 0.05, max: 12.0 }.to_string(), "2.00 (0.050 to 12)");
    }
}
