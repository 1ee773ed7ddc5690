//! The steps of a run: each with a headed line, its duration, and a place in the table at the end.

use std::time::{Duration, Instant};

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    /// It could not run; the reader must know that it says nothing.
    NotRun(String),
    /// The user asked to leave it out.
    Skipped(String),
}

/// The steps done so far.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    duration: Duration,
}

impl Steps {
    /// Runs a step between a headed line and a closing line; `true` if it passed.
    pub(crate) fn run(&mut self, name: &'static str, what: &str, work: impl FnOnce() -> Outcome) -> bool {
        println!("\n==> {name}: {what}");
        let start = Instant::now();
        let outcome = work();
        let duration = start.elapsed();
        println!("<== {name}: {} ({})", outcome.word(), seconds(duration));
        let passed = outcome == Outcome::Passed;
        self.done.push(Step { name, outcome, duration });
        passed
    }

    /// Notes a step that is not run at all.
    pub(crate) fn leave_out(&mut self, name: &'static str, outcome: Outcome) {
        println!("\n==> {name}: {}", outcome.word());
        self.done.push(Step { name, outcome, duration: Duration::ZERO });
    }

    /// Whether nothing failed. What could not run is told, and is a failure only if the step that
    /// looked for its tool says so.
    pub(crate) fn passed(&self) -> bool {
        !self.done.iter().any(|step| matches!(step.outcome, Outcome::Failed(_)))
    }

    /// The table of all steps, then in the last lines what failed and what could not run.
    pub(crate) fn summary(&self) -> String {
        let mut lines = vec![format!("{:<11} {:<8} {:>9}", "step", "result", "time")];
        for step in &self.done {
            let time = seconds(step.duration);
            lines.push(format!("{:<11} {:<8} {time:>9}", step.name, step.outcome.word()));
        }
        let total: Duration = self.done.iter().map(|step| step.duration).sum();
        let passed = self.done.iter().filter(|step| step.outcome == Outcome::Passed);
        lines.push(format!("\n{} of {} steps passed in {}", passed.count(), self.done.len(), seconds(total)));
        for word in ["skipped", "FAILED", "NOT RUN"] {
            let with_word = self.done.iter().filter(|step| step.outcome.word() == word);
            lines.extend(with_word.map(|step| format!("{word}: {}: {}", step.name, step.outcome.reason())));
        }
        lines.join("\n")
    }
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::NotRun(_) => "NOT RUN",
            Self::Skipped(_) => "skipped",
        }
    }

    fn reason(&self) -> &str {
        match self {
            Self::Passed => "",
            Self::Failed(reason) | Self::NotRun(reason) | Self::Skipped(reason) => reason,
        }
    }
}

fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    match whole {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        _ => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Steps {
        let mut steps = Steps::default();
        steps.run("fmt", "x", || Outcome::Passed);
        steps.run("clippy", "x", || Outcome::Failed("exit status: 101".to_owned()));
        steps.leave_out("nextest", Outcome::NotRun("no tool".to_owned()));
        steps.leave_out("doc tests", Outcome::Skipped("--fast".to_owned()));
        steps
    }

    #[test]
    fn the_last_lines_name_what_failed_and_what_could_not_run() {
        let summary = steps().summary();
        let last: Vec<&str> = summary.lines().rev().take(4).collect();
        assert_eq!(last[0], "NOT RUN: nextest: no tool");
        assert_eq!(last[1], "FAILED: clippy: exit status: 101");
        assert_eq!(last[2], "skipped: doc tests: --fast");
        assert!(last[3].starts_with("1 of 4 steps passed in "), "{}", last[3]);
    }

    #[test]
    fn one_failure_fails_the_run() {
        assert!(!steps().passed());
        let mut steps = Steps::default();
        assert!(steps.run("fmt", "x", || Outcome::Passed));
        steps.leave_out("nextest", Outcome::NotRun("no tool".to_owned()));
        assert!(steps.passed());
    }

    #[test]
    fn durations_are_readable() {
        assert_eq!(seconds(Duration::from_millis(1250)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(125)), "2 min 05 s");
    }
}
