//! The place and time of progress output. It draws on stderr and nowhere else.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use turno_proto::model::job::JobView;

use super::bars;
use super::meter::Meter;
use super::{ProgressStyle, style_here};
use crate::cli::Invocation;
use crate::cli::output::Output;
use crate::cli::width;

/// From one look at the jobs to the next, drawn as bars and told in lines.
const DRAWN_EVERY: Duration = Duration::from_millis(500);
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// To the beginning of this line with nothing on it, and the same one line higher.
const CLEAR: &str = "\r\x1b[K";
const CLEAR_ABOVE: &str = "\x1b[1A\x1b[K";

/// Shows the progress of jobs.
pub(crate) struct Screen<'a> {
    output: &'a Output,
    style: ProgressStyle,
    began: Instant,
    ticks: Option<Interval>,
    meter: Meter,
    /// Lines that are drawn now.
    drawn: usize,
}

impl<'a> Screen<'a> {
    pub(crate) fn new(invocation: &'a Invocation) -> Self {
        let style = style_here(invocation.global.progress, invocation.output.quiet());
        let began = Instant::now();
        let ticks = match style {
            ProgressStyle::Bars => Some(interval_at(began, DRAWN_EVERY)),
            ProgressStyle::Lines => Some(interval_at(began + TOLD_EVERY, TOLD_EVERY)),
            ProgressStyle::Nothing => None,
        };
        let ticks = ticks.map(|mut ticks| {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            ticks
        });
        Self { output: &invocation.output, style, began, ticks, meter: Meter::default(), drawn: 0 }
    }

    /// Waits until it is time to look at the jobs; for ever if nothing is told.
    pub(crate) async fn due(&mut self) {
        match &mut self.ticks {
            Some(ticks) => drop(ticks.tick().await),
            None => pending().await,
        }
    }

    /// Tells of all jobs as they are now.
    pub(crate) fn tell(&mut self, views: &[JobView]) {
        self.meter.look(self.began.elapsed(), views);
        match self.style {
            ProgressStyle::Nothing => {}
            ProgressStyle::Lines => self.output.stderr(self.meter.line()),
            ProgressStyle::Bars => {
                let lines = bars::lines(&self.meter, width::terminal(std::io::stderr()), self.output.paint());
                let text = self.wiped() + &lines.join("\n");
                self.output.stderr_raw(text.as_bytes());
                self.drawn = lines.len();
            }
        }
    }

    /// Takes away what is drawn, so that what comes next begins on a clean line.
    pub(crate) fn clear(&mut self) {
        let wiped = self.wiped();
        if !wiped.is_empty() {
            self.output.stderr_raw(wiped.as_bytes());
        }
        self.drawn = 0;
    }

    fn wiped(&self) -> String {
        match self.drawn {
            0 => String::new(),
            lines => CLEAR.to_owned() + &CLEAR_ABOVE.repeat(lines - 1),
        }
    }
}
