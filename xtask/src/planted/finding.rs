//! Findings of the simulator and of tests.

use std::fmt;

/// A violation, as the simulator reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimFinding {
    pub(super) seed: u64,
    /// Which check complained, in its own words.
    pub(super) what: String,
}

impl SimFinding {
    /// Reads the report; `None` if it is none.
    pub(super) fn parse(report: &str) -> Option<Self> {
        let (_, report) = report.split_once("violation: ")?;
        let what = report.lines().next()?;
        let what = own_words(what);
        let seed = report.lines().find_map(|line| line.strip_prefix("seed ")?.split(' ').next()?.parse().ok())?;
        Some(Self { seed, what: what.to_owned() })
    }

    /// Whether the oracle saw it, or a peer: they name the invariant first. The broker's own checks do not.
    pub(super) fn is_from_outside(&self) -> bool {
        let number = self.what.strip_prefix('I').and_then(|rest| rest.split_once(": "));
        number.is_some_and(|(digits, _)| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
    }
}

impl fmt::Display for SimFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.what)
    }
}

/// A test that failed, as nextest reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    test: String,
    what: String,
}

impl Failure {
    /// Reads the report of a run in which a test failed.
    pub(super) fn parse(report: &str) -> Self {
        let mut lines = report.lines().map(str::trim);
        let panicked = lines.find_map(|line| {
            let (test, rest) = line.strip_prefix("thread '")?.split_once('\'')?;
            rest.contains(" panicked at ").then_some(test)
        });
        let (test, what) = match panicked {
            Some(test) => (test, lines.next().map_or("", own_words)),
            None => ("a test", "failed without output"),
        };
        Self { test: test.to_owned(), what: what.to_owned() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.test, self.what)
    }
}

/// An assertion of two values begins with words of the compiler; its own stand behind them.
fn own_words(what: &str) -> &str {
    let own = what.strip_prefix("assertion `").and_then(|rest| rest.split_once("` failed: "));
    own.map_or(what, |(_, own)| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let report = "violation: I12: 7 ended twice\nseed 12 at event 34 of commit abc; the last events:\n  0.1 x\n";
        let finding = SimFinding::parse(report).unwrap();
        assert_eq!(finding, SimFinding { seed: 12, what: "I12: 7 ended twice".to_owned() });
        assert_eq!(finding.to_string(), "seed 12: I12: 7 ended twice");
    }

    #[test]
    fn two_values_are_left_out() {
        let report =
            "violation: assertion `left == right` failed: the count of bytes\n  left: 1\n right: 2\nseed 5 at …";
        assert_eq!(SimFinding::parse(report), Some(SimFinding { seed: 5, what: "the count of bytes".to_owned() }));
    }

    #[test]
    fn what_is_no_report_is_not_read() {
        for text in ["", "usage: turno-sim", "violation: x\n", "seed 5 at event 1", "violation: x\nseed y at event"] {
            assert_eq!(SimFinding::parse(text), None, "{text}");
        }
    }

    #[test]
    fn who_saw_it() {
        for (what, outside) in [
            ("I9: 4 of 3 slots in use", true),
            ("I21: not quiet", true),
            ("I: x", false),
            ("Ix: y", false),
            ("the count of bytes", false),
            ("0 ≤ used ≤ slots, always", false),
        ] {
            assert_eq!(SimFinding { seed: 1, what: what.to_owned() }.is_from_outside(), outside, "{what}");
        }
    }

    #[test]
    fn the_first_failed_test_is_named_with_its_words() {
        let report = "  FAIL [ 0.1s] (1/5) turno-store::store crash::cut\n  stderr ───\n\n    thread 'crash::cut' (25) \
                      panicked at crates/x.rs:1:2:\n    assertion `left == right` failed: it must open\n      left: 1\n";
        assert_eq!(Failure::parse(report).to_string(), "crash::cut: it must open");
        assert_eq!(Failure::parse("  TIMEOUT [ 9s] x\n").to_string(), "a test: failed without output");
    }
}
