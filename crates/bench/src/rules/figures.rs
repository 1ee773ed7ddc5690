//! Figures of a rule: samples in, medians and verdicts out.

use std::fmt;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::report::{Bound, Head, Verdict};
use crate::spread::{Spread, digits};

/// A run of one rule, as it is written with `--json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RuleResult {
    #[serde(flatten)]
    pub(crate) head: Head,
    pub(crate) rule: String,
    pub(crate) about: String,
    pub(crate) rounds: usize,
    /// Of the order within a round.
    pub(crate) seed: u64,
    pub(crate) parts: Vec<PartResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartResult {
    pub(crate) part: String,
    /// Those that are judged first.
    pub(crate) figures: Vec<Figure>,
    pub(crate) bars: Vec<Verdict>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) spread: Spread,
}

/// One round: names and values, those that are judged first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleSample(pub(crate) Vec<(&'static str, f64)>);

impl fmt::Display for RuleSample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(formatter, "{comma}{name} {}", digits(*value))?;
        }
        Ok(())
    }
}

impl PartResult {
    /// Medians over the rounds; those of the first figures are judged, each by its bound.
    pub(crate) fn of(part: &str, samples: &[RuleSample], bounds: &[Bound]) -> Self {
        let names: Vec<&str> =
            samples.first().map(|sample| sample.0.iter().map(|(name, _)| *name).collect()).unwrap_or_default();
        let figure = |name: &&str| {
            let values = samples.iter().flat_map(|sample| &sample.0).filter(|(of, _)| of == name);
            let values: Vec<f64> = values.map(|(_, value)| *value).filter(|value| value.is_finite()).collect();
            Some(Figure { name: (*name).to_owned(), spread: Spread::of(&values)? })
        };
        let figures: Vec<Figure> = names.iter().filter_map(figure).collect();
        let judge = |(at, bound): (usize, &Bound)| {
            let judged = names.get(at).copied().unwrap_or(part);
            let value = figures.iter().find(|figure| figure.name == judged).map(|figure| figure.spread.median);
            Verdict::of(judged, *bound, value)
        };
        Self { part: part.to_owned(), bars: bounds.iter().enumerate().map(judge).collect(), figures }
    }
}

impl RuleResult {
    /// The bars that were missed, or have nothing to be judged by, each with its part.
    fn missed(&self) -> Vec<String> {
        let bars = self.parts.iter().flat_map(|part| part.bars.iter().map(move |bar| (part, bar)));
        let missed = bars.filter(|(_, bar)| bar.met != Some(true));
        missed.map(|(part, bar)| format!("{}: {bar}", part.part)).collect()
    }

    /// Prints it; an error names the bars that were missed.
    pub(crate) fn tell(&self) -> Result<()> {
        println!("\n{}", self.table().trim_end());
        match self.missed() {
            missed if missed.is_empty() => Ok(()),
            missed => bail!("missed: {}", missed.join("; ")),
        }
    }

    /// For people.
    fn table(&self) -> String {
        let mut text = format!("{}  {}; {} rounds: median (lowest to highest)\n", self.rule, self.about, self.rounds);
        for PartResult { part, figures, bars } in &self.parts {
            for Figure { name, spread } in figures {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  {part}: {name} {spread}");
            }
            for bar in bars {
                let _ = writeln!(text, "  turno: {part}: {bar}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ratio: f64, rate: f64) -> RuleSample {
        RuleSample(vec![("deliveries / requests", ratio), ("deliveries/s", rate)])
    }

    fn result(parts: Vec<PartResult>) -> RuleResult {
        let (rule, about) = ("broadcast".to_owned(), "to all".to_owned());
        RuleResult { head: Head::now(1).unwrap(), rule, about, rounds: 3, seed: 1, parts }
    }

    #[test]
    fn the_medians_of_the_first_figures_are_judged() {
        let samples = [sample(1.4, 300.0), sample(1.6, 100.0), sample(9.0, 200.0)];
        let part = PartResult::of("broadcast", &samples, &[Bound::AtLeast(1.5), Bound::AtLeast(201.0)]);
        assert_eq!([part.bars[0].met, part.bars[1].met], [Some(true), Some(false)]);
        assert_eq!(part.figures[0].spread, Spread { median: 1.6, min: 1.4, max: 9.0 });
        assert_eq!(part.figures[1].spread.median, 200.0);
        let wanted = "broadcast  to all; 3 rounds: median (lowest to highest)
  broadcast: deliveries / requests 1.60 (1.40 to 9.00)
  broadcast: deliveries/s 200 (100 to 300)
  turno: broadcast: deliveries / requests ≥ 1.5 met (1.60)
  turno: broadcast: deliveries/s ≥ 201 missed (200.00)
";
        assert_eq!(result(vec![part]).table(), wanted);
    }

    #[test]
    fn what_is_missed_or_not_measured_is_named() {
        let met = PartResult::of("purge", &[sample(1.9, 1.0)], &[Bound::AtMost(2.0)]);
        let missed = PartResult::of("gone", &[sample(2.5, 1.0)], &[Bound::AtMost(2.0)]);
        let nothing = PartResult::of("ids", &[sample(f64::NAN, 1.0)], &[Bound::AtMost(2.0)]);
        assert_eq!(nothing.bars[0].met, None);
        let result = result(vec![met, missed, nothing]);
        let wanted = ["gone: deliveries / requests ≤ 2 missed (2.50)", "ids: deliveries / requests ≤ 2 not measured"];
        assert_eq!(result.missed(), wanted);
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<RuleResult>(&text).unwrap(), result);
    }

    #[test]
    fn a_sample_reads_as_a_line() {
        assert_eq!(sample(1.5, 250.4).to_string(), "deliveries / requests 1.50, deliveries/s 250");
    }
}
