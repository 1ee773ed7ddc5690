//! The progress of jobs: counts, how fast tasks end, and how long the rest will take. Views of jobs go in with their time,
//! and nothing here reads a clock.

use std::collections::VecDeque;
use std::time::Duration;

use turno_proto::model::job::{JobState, JobView};

use crate::cli::time::short;

/// The rate is that of the latest so long: tasks of a job differ, and workers come and go.
const WINDOW: Duration = Duration::from_secs(60);
/// Before so long nothing is said of a rate.
const SHORTEST: Duration = Duration::from_secs(1);

/// How many jobs are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JobCounts {
    pub(super) waiting: u64,
    pub(super) running: u64,
    pub(super) held: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
}

impl JobCounts {
    pub(super) const fn ended(&self) -> u64 {
        self.finished + self.failed + self.cancelled
    }

    pub(super) const fn all(&self) -> u64 {
        self.waiting + self.running + self.held + self.ended()
    }
}

/// How many tasks of all of them are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskSums {
    pub(super) waiting: u64,
    pub(super) running: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
}

impl TaskSums {
    pub(super) const fn ended(&self) -> u64 {
        self.finished + self.failed + self.cancelled
    }

    pub(super) const fn left(&self) -> u64 {
        self.waiting + self.running
    }

    pub(super) const fn all(&self) -> u64 {
        self.ended() + self.left()
    }
}

/// Tasks that had ended at a moment.
#[derive(Clone, Copy, Debug)]
struct MeterSample {
    at: Duration,
    ended: u64,
}

/// The jobs at the latest look, and enough of those before.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) jobs: JobCounts,
    pub(super) tasks: TaskSums,
    /// Why nothing runs; nothing if something does.
    pub(super) because: Option<String>,
    first: Option<MeterSample>,
    /// The latest of them, the first being as long ago as the window or a little longer.
    looks: VecDeque<MeterSample>,
}

impl Meter {
    /// The jobs at a moment since this began; all of them, every time.
    pub(super) fn look(&mut self, at: Duration, views: &[JobView]) {
        self.jobs = JobCounts::default();
        self.tasks = TaskSums::default();
        for view in views {
            let count = match view.state {
                JobState::Waiting => &mut self.jobs.waiting,
                JobState::Running => &mut self.jobs.running,
                JobState::Held => &mut self.jobs.held,
                JobState::Finished => &mut self.jobs.finished,
                JobState::Failed => &mut self.jobs.failed,
                JobState::Cancelled => &mut self.jobs.cancelled,
            };
            *count += 1;
            self.tasks.waiting += u64::from(view.counts.waiting);
            self.tasks.running += u64::from(view.counts.running);
            self.tasks.finished += u64::from(view.counts.finished);
            self.tasks.failed += u64::from(view.counts.failed);
            self.tasks.cancelled += u64::from(view.counts.cancelled);
        }
        self.because = if self.tasks.running == 0 { because(views) } else { None };
        self.remember(MeterSample { at, ended: self.tasks.ended() });
    }

    fn remember(&mut self, look: MeterSample) {
        // Tasks that are tried again have not ended any more: what was before tells nothing of the rate.
        if self.looks.back().is_some_and(|last| look.ended < last.ended) {
            self.looks.clear();
            self.first = None;
        }
        self.first.get_or_insert(look);
        self.looks.push_back(look);
        while self.looks.get(1).is_some_and(|second| look.at.saturating_sub(second.at) >= WINDOW) {
            self.looks.pop_front();
        }
    }

    /// Tasks that end in a second. If none did of late, since this began: tasks may be longer than the window.
    pub(super) fn rate(&self) -> Option<f64> {
        let last = self.looks.back()?;
        let since = |then: &MeterSample| {
            let span = last.at.saturating_sub(then.at);
            #[expect(clippy::cast_precision_loss, reason = "a rate with few digits")]
            let ended = (last.ended - then.ended) as f64;
            (span >= SHORTEST && ended > 0.0).then(|| ended / span.as_secs_f64())
        };
        since(self.looks.front()?).or_else(|| since(self.first.as_ref()?))
    }

    /// How long it takes until all tasks have ended, if they go on ending like this.
    pub(super) fn eta(&self) -> Option<Duration> {
        if self.tasks.left() == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a guess with few digits")]
        let seconds = self.tasks.left() as f64 / self.rate()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// All of it in one line, for where nothing can be drawn.
    pub(super) fn line(&self) -> String {
        let TaskSums { waiting, running, finished, failed, cancelled } = self.tasks;
        let counts: Vec<String> = [
            (waiting, "waiting"),
            (running, "running"),
            (finished, "finished"),
            (failed, "failed"),
            (cancelled, "cancelled"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
        let mut line = format!(
            "{} of {} jobs ended; {} of {} tasks ended ({}%)",
            self.jobs.ended(),
            self.jobs.all(),
            self.tasks.ended(),
            self.tasks.all(),
            percent(self.tasks.ended(), self.tasks.all()),
        );
        if !counts.is_empty() {
            line += &format!(": {}", counts.join(", "));
        }
        let speed: Vec<String> = [self.rate().map(rate_text), self.eta().map(eta_text)].into_iter().flatten().collect();
        if !speed.is_empty() {
            line += &format!("; {}", speed.join(", "));
        }
        if let Some(because) = &self.because {
            line += &format!("; {because}");
        }
        line
    }
}

/// Why the first of those that could go on does not.
fn because(views: &[JobView]) -> Option<String> {
    let (view, reason) = views.iter().find_map(|view| Some((view, view.because.as_deref()?)))?;
    Some(format!("job {} waits: {reason}", view.id))
}

/// Rounded down, so that 100 means all.
pub(super) const fn percent(part: u64, all: u64) -> u64 {
    if all == 0 { 100 } else { (part as u128 * 100 / all as u128) as u64 }
}

/// So many a second, or in whatever time makes it a number of one or more.
pub(crate) fn rate_text(per_second: f64) -> String {
    let (number, unit) = match per_second {
        rate if rate >= 1.0 => (rate, "s"),
        rate if rate * 60.0 >= 1.0 => (rate * 60.0, "min"),
        rate => (rate * 3_600.0, "h"),
    };
    if number >= 10.0 { format!("{number:.0}/{unit}") } else { format!("{number:.1}/{unit}") }
}

/// How long it takes yet, in whole seconds: it is a guess.
pub(super) fn eta_text(eta: Duration) -> String {
    let whole = Duration::from_secs(eta.as_secs() + u64::from(eta.subsec_nanos() > 0));
    format!("ETA {}", short(whole).replace(".0s", "s"))
}

#[cfg(test)]
pub(super) mod tests {
    use turno_proto::model::job::{JobId, JobReason, TaskCounts};
    use turno_proto::model::view::Because;

    use super::*;

    /// A job with so many tasks waiting, running, finished and failed.
    pub(in crate::cli::progress) fn job(id: u64, state: JobState, counts: [u32; 4]) -> JobView {
        let [waiting, running, finished, failed] = counts;
        JobView {
            id: JobId(id),
            name: "sim".to_owned(),
            state,
            tasks: counts.iter().sum(),
            counts: TaskCounts { waiting, running, finished, failed, cancelled: 0 },
            ..JobView::default()
        }
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The job after so many of its 1,000 tasks, by seconds.
    fn measured(looks: &[(u64, u32)]) -> Meter {
        let mut meter = Meter::default();
        for (seconds, ended) in looks {
            meter.look(at(*seconds), &[job(7, JobState::Running, [990 - ended, 10, *ended, 0])]);
        }
        meter
    }

    #[test]
    fn the_rate_is_that_of_the_latest_minute() {
        let rate = |looks: &[(u64, u32)]| measured(looks).rate();
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[(0, 100)]), None, "what ended before tells nothing");
        assert_eq!(rate(&[(0, 100), (0, 150)]), None, "too short a time");
        assert_eq!(rate(&[(0, 100), (10, 150)]), Some(5.0));
        assert_eq!(rate(&[(0, 0), (60, 600), (120, 660)]), Some(1.0));
        assert_eq!(rate(&[(0, 0), (50, 100), (60, 200), (90, 200), (110, 250)]), Some(2.5), "from 50 to 110");
        assert_eq!(rate(&[(0, 0), (10, 100), (70, 100), (200, 100)]), Some(0.5), "none of late: since it began");
        assert_eq!(rate(&[(0, 500), (10, 600), (20, 0), (30, 20)]), Some(2.0), "tasks are tried again");
        assert_eq!(rate(&[(0, 5), (300, 5)]), None);
    }

    #[test]
    fn the_rest_takes_as_long_as_it_does_at_this_rate() {
        assert_eq!(measured(&[(0, 100), (10, 150)]).eta(), Some(at(170)));
        assert_eq!(measured(&[(0, 100), (10, 100)]).eta(), None);
        let mut meter = measured(&[(0, 100), (10, 150)]);
        meter.look(at(20), &[job(7, JobState::Finished, [0, 0, 1_000, 0])]);
        assert_eq!((meter.rate(), meter.eta()), (Some(45.0), None), "nothing is left");
    }

    #[test]
    fn looks_are_forgotten() {
        let looks: Vec<(u64, u32)> = (0..900).map(|n| (u64::from(n), n)).collect();
        let meter = measured(&looks);
        assert_eq!((meter.looks.len(), meter.rate()), (61, Some(1.0)));
    }

    #[test]
    fn numbers_as_people_read_them() {
        let rates = [1_234.4, 10.0, 9.96, 1.0, 0.5, 0.1, 0.001].map(rate_text);
        assert_eq!(rates, ["1234/s", "10/s", "10.0/s", "1.0/s", "30/min", "6.0/min", "3.6/h"]);
        let etas = [1, 999, 1_001, 44_000, 200_000, 90_000_000].map(|ms| eta_text(Duration::from_millis(ms)));
        assert_eq!(etas, ["ETA 1s", "ETA 1s", "ETA 2s", "ETA 44s", "ETA 3m20s", "ETA 1d1h"]);
        let percents = [(0, 0), (0, 7), (1, 3), (9_999, 10_000), (7, 7), (u64::MAX, u64::MAX)];
        assert_eq!(percents.map(|(part, all)| percent(part, all)), [100, 0, 33, 99, 100, 100]);
    }

    /// U8, U28: one plain line, right for several jobs.
    #[test]
    fn one_line_for_where_nothing_can_be_drawn() {
        let finished = job(5, JobState::Finished, [0, 0, 40, 0]);
        let held = job(6, JobState::Held, [10, 0, 0, 0]);
        let running = |ended| job(7, JobState::Running, [9_900 - ended, 24, ended, 12]);
        let mut meter = Meter::default();
        meter.look(at(0), &[finished.clone(), held.clone(), running(4_000)]);
        assert_eq!(
            meter.line(),
            "1 of 3 jobs ended; 4052 of 9986 tasks ended (40%): 5910 waiting, 24 running, 4040 finished, 12 failed"
        );
        meter.look(at(10), &[finished.clone(), held, running(5_310)]);
        assert_eq!(
            meter.line(),
            "1 of 3 jobs ended; 5362 of 9986 tasks ended (53%): 4600 waiting, 24 running, 5350 finished, 12 failed; \
             131/s, ETA 36s"
        );
        meter.look(at(20), &[finished.clone(), job(7, JobState::Failed, [0, 0, 9_924, 12])]);
        assert_eq!(meter.line(), "2 of 2 jobs ended; 9976 of 9976 tasks ended (100%): 9964 finished, 12 failed; 296/s");
        let waiting =
            JobView { because: Some(Because(JobReason::NoWorker)), ..job(8, JobState::Waiting, [3, 0, 0, 0]) };
        let mut meter = Meter::default();
        meter.look(at(0), &[finished, waiting]);
        assert_eq!(
            meter.line(),
            "1 of 2 jobs ended; 40 of 43 tasks ended (93%): 3 waiting, 40 finished; job 8 waits: no job worker is \
                 connected"
        );
        let mut meter = Meter::default();
        meter.look(at(0), &[]);
        assert_eq!(meter.line(), "0 of 0 jobs ended; 0 of 0 tasks ended (100%)");
    }
}
