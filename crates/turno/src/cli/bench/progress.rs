//! The progress line of a benchmark.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::load::Load;
use super::report::{figure, short};
use crate::cli::Invocation;
use crate::cli::output::Output;
use crate::cli::progress::{ProgressStyle, style_here};

const PERIOD: Duration = Duration::from_secs(1);

/// Back to the beginning of the line, and nothing on it.
const CLEAR: &str = "\r\x1b[K";

/// The line, if there is somebody to read it.
pub(super) struct Progress<'a> {
    output: &'a Output,
    ticks: Option<Interval>,
    /// Messages answered when it was last told.
    answered: u64,
    told: bool,
}

impl<'a> Progress<'a> {
    pub(super) fn new(invocation: &'a Invocation) -> Self {
        let output = &invocation.output;
        let shown = style_here(invocation.global.progress, output.quiet()) == ProgressStyle::Bars;
        let ticks = shown.then(|| {
            let mut ticks = interval_at(Instant::now() + PERIOD, PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            ticks
        });
        Self { output, ticks, answered: 0, told: false }
    }

    /// Waits until the line is to be told anew; for ever if nobody reads it.
    pub(super) async fn due(&mut self) {
        match &mut self.ticks {
            Some(ticks) => drop(ticks.tick().await),
            None => std::future::pending().await,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate with few digits")]
    pub(super) fn tell(&mut self, load: &Load) {
        let tally = load.tally();
        let rate = (tally.answered - self.answered) as f64 / PERIOD.as_secs_f64();
        let line = format!(
            "{CLEAR}{:.0}s  {}/s  {} failed  p99 so far {}",
            load.seconds(),
            figure(rate),
            tally.failed,
            short(tally.percentile(99.0)),
        );
        self.output.stderr_raw(line.as_bytes());
        self.answered = tally.answered;
        self.told = true;
    }

    /// Takes the line away, so that what comes next begins on a clean one.
    pub(super) fn clear(&mut self) {
        if self.told {
            self.output.stderr_raw(CLEAR.as_bytes());
            self.told = false;
        }
    }
}
