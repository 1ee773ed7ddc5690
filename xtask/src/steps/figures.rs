//! The committed figures, and what a measurement says about them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// A figure may rise by this much before the run fails, and fall by this much before it is asked to follow.
const PERCENT_MAX: u64 = 10;

const HEAD: &str = "\
# Instructions of one step of the hot path, on x86_64 Linux with the pinned compiler.
# Compared by `cargo xtask test`, measured and written by `cargo xtask steps --bless`.
";

/// Instructions by name of the step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures(pub(crate) BTreeMap<String, u64>);

impl Figures {
    /// Lines `name instructions`; a line that begins with # is for people.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
        let figure = |(number, line): (usize, &str)| {
            let (name, instructions) = line.split_once(' ').with_context(|| format!("line {}", number + 1))?;
            let instructions = instructions.trim().parse().with_context(|| format!("line {}", number + 1))?;
            Ok((name.to_owned(), instructions))
        };
        lines.map(figure).collect::<Result<_>>().map(Self)
    }

    pub(crate) fn render(&self) -> String {
        let width = self.width();
        let line = |(name, instructions): (&String, &u64)| format!("{name:<width$} {instructions:>6}\n");
        format!("{HEAD}{}", self.0.iter().map(line).collect::<String>())
    }

    fn width(&self) -> usize {
        self.0.keys().map(String::len).max().unwrap_or(0)
    }

    /// The figures to commit after `measured`: every fall, but of the rises only those beyond the limit. The small ones
    /// add up against the old figure until they are seen.
    pub(crate) fn blessed(&self, measured: &Self) -> Self {
        let keep = |(name, now): (&String, &u64)| match self.0.get(name) {
            Some(was) if now > was && StepVerdict::of(*was, *now) == StepVerdict::Same => (name.clone(), *was),
            _ => (name.clone(), *now),
        };
        Self(measured.0.iter().map(keep).collect())
    }
}

/// The verdict about a step's measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepVerdict {
    Same,
    Worse,
    Better,
}

impl StepVerdict {
    fn of(was: u64, now: u64) -> Self {
        let (was, now) = (was * 100, now * 100);
        let margin = was / 100 * PERCENT_MAX;
        match now {
            now if now > was + margin => Self::Worse,
            now if now < was - margin => Self::Better,
            _ => Self::Same,
        }
    }
}

fn change(was: u64, now: u64) -> f64 {
    (now as f64 / was.max(1) as f64 - 1.0) * 100.0
}

/// Committed and measured side by side.
pub(crate) struct Comparison {
    /// One line for each step, with a heading.
    pub(crate) table: String,
    /// Why the check fails, one sentence each.
    pub(crate) faults: Vec<String>,
    /// Steps that became so much cheaper that their figure should follow.
    pub(crate) better: Vec<String>,
}

pub(crate) fn compare(committed: &Figures, measured: &Figures) -> Comparison {
    let width = measured.width().max(committed.width()).max("step".len());
    let mut table = format!("{:<width$} {:>9} {:>9} {:>8}\n", "step", "committed", "measured", "change");
    let (mut faults, mut better) = (Vec::new(), Vec::new());
    for (name, now) in &measured.0 {
        let Some(was) = committed.0.get(name) else {
            table += &format!("{name:<width$} {:>9} {now:>9} {:>8}\n", "-", "-");
            faults.push(format!("{name} has no committed figure"));
            continue;
        };
        let percent = change(*was, *now);
        let mark = match StepVerdict::of(*was, *now) {
            StepVerdict::Same => "",
            StepVerdict::Worse => {
                faults.push(format!("{name} takes {now} instructions instead of {was} ({percent:+.1} %)"));
                "  TOO MANY"
            }
            StepVerdict::Better => {
                better.push(name.clone());
                "  lower the figure"
            }
        };
        table += &format!("{name:<width$} {was:>9} {now:>9} {percent:>+6.1} %{mark}\n");
    }
    for name in committed.0.keys().filter(|name| !measured.0.contains_key(*name)) {
        faults.push(format!("{name} has a committed figure but is no step"));
    }
    Comparison { table, faults, better }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(pairs: &[(&str, u64)]) -> Figures {
        Figures(pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
    }

    #[test]
    fn figures_survive_being_written() {
        let some = figures(&[("decode-ack", 29), ("engine-request-backlog", 2_909)]);
        assert_eq!(Figures::parse(&some.render()).unwrap(), some);
        assert!(some.render().ends_with("\ndecode-ack                 29\nengine-request-backlog   2909\n"));
        for bad in ["name", "name many", "name 1 2"] {
            assert!(Figures::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rise_beyond_a_tenth_fails() {
        let committed = figures(&[("a", 1_000)]);
        for (now, faults) in [(1_000, 0), (1_100, 0), (1_101, 1), (5_000, 1), (900, 0), (10, 0)] {
            assert_eq!(compare(&committed, &figures(&[("a", now)])).faults.len(), faults, "{now}");
        }
        let comparison = compare(&committed, &figures(&[("a", 1_101)]));
        assert_eq!(comparison.faults, ["a takes 1101 instructions instead of 1000 (+10.1 %)"]);
        assert!(comparison.table.ends_with("a         1000      1101  +10.1 %  TOO MANY\n"), "{}", comparison.table);
    }

    #[test]
    fn a_fall_beyond_a_tenth_asks_for_a_lower_figure() {
        let committed = figures(&[("a", 1_000), ("b", 1_000)]);
        let comparison = compare(&committed, &figures(&[("a", 899), ("b", 900)]));
        assert_eq!((comparison.better, comparison.faults), (vec!["a".to_owned()], Vec::new()));
    }

    #[test]
    fn a_step_and_its_figure_need_each_other() {
        let comparison = compare(&figures(&[("old", 5)]), &figures(&[("new", 5)]));
        assert_eq!(comparison.faults, ["new has no committed figure", "old has a committed figure but is no step"]);
    }

    #[test]
    fn blessing_takes_falls_but_lets_small_rises_add_up() {
        let committed = figures(&[("fell", 1_000), ("gone", 7), ("rose", 1_000), ("leapt", 1_000)]);
        let measured = figures(&[("fell", 999), ("new", 5), ("rose", 1_090), ("leapt", 1_200)]);
        let expected = figures(&[("fell", 999), ("new", 5), ("rose", 1_000), ("leapt", 1_200)]);
        assert_eq!(committed.blessed(&measured), expected);
        assert!(compare(&expected, &measured).faults.is_empty());
    }
}
