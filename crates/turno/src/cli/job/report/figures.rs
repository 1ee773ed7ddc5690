//! The figures of the report, counted task by task.

use std::collections::BTreeMap;

use turno_proto::model::Moment;
use turno_proto::model::job::{JobView, TaskNumbers, TaskState, TaskView};

use super::lanes::{LanePiece, TimeSpan, lanes};
use crate::cli::job::failures::Grouping;
use crate::cli::schema::failures::FailuresBody;

/// The states in the order in which they are told and stacked.
pub(super) const STATES: [TaskState; 5] =
    [TaskState::Finished, TaskState::Failed, TaskState::Cancelled, TaskState::Running, TaskState::Waiting];

/// Columns of the strip of states, of the histogram, and of the chart of throughput.
const STRIP_MAX: u32 = 250;
const BINS: usize = 24;
const STEPS: usize = 60;
/// Tasks that must have ended for a histogram: of fewer, the list tells more.
const ENDED_MIN: usize = 3;
/// How much longer than the median the longest task must be for a scale of powers.
const SKEWED: f64 = 20.0;

/// So many of each state, in the order of [`STATES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(pub(super) [u64; 5]);

impl Counts {
    pub(super) fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn of(&self, state: TaskState) -> u64 {
        self.0[place_of(state)]
    }

    fn add(&mut self, state: TaskState) {
        self.0[place_of(state)] += 1;
    }
}

const fn place_of(state: TaskState) -> usize {
    match state {
        TaskState::Finished => 0,
        TaskState::Failed => 1,
        TaskState::Cancelled => 2,
        TaskState::Running => 3,
        TaskState::Waiting => 4,
    }
}

/// Takes the tasks in.
pub(super) struct TaskReader {
    numbers: TaskNumbers,
    now: u64,
    strip: Vec<Counts>,
    pieces: Vec<LanePiece>,
    workers: BTreeMap<String, u32>,
    failures: Grouping,
}

impl TaskReader {
    /// `now` is when running tasks are looked at.
    pub(super) fn new(view: &JobView, now: u64) -> Self {
        let columns = view.tasks.clamp(1, STRIP_MAX) as usize;
        Self {
            numbers: view.array.clone(),
            now,
            strip: vec![Counts::default(); columns],
            pieces: Vec::new(),
            workers: BTreeMap::new(),
            failures: Grouping::new(view),
        }
    }

    pub(super) fn add(&mut self, task: &TaskView) {
        let numbers = self.numbers.numbers();
        let Some(place) = numbers.place_of(task.task) else { return };
        let column = u64::from(place) * self.strip.len() as u64 / u64::from(numbers.array.count);
        if let Some(counts) = usize::try_from(column).ok().and_then(|column| self.strip.get_mut(column)) {
            counts.add(task.state);
        }
        if task.state == TaskState::Failed {
            self.failures.add(task);
        }
        let end = if task.state == TaskState::Running { Some(self.now) } else { task.ended_at.map(Moment::unix_ms) };
        if let (Some(start), Some(end)) = (task.started_at.map(Moment::unix_ms), end) {
            let next = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
            let worker = task.worker.as_deref().unwrap_or("unknown worker");
            let worker = match self.workers.get(worker) {
                Some(worker) => *worker,
                None => *self.workers.entry(worker.to_owned()).or_insert(next),
            };
            self.pieces.push(LanePiece { task: task.task, state: task.state, worker, start, end: end.max(start) });
        }
    }

    pub(super) fn finish(self) -> Figures {
        let mut counts = Counts::default();
        for column in &self.strip {
            counts.0.iter_mut().zip(column.0).for_each(|(sum, count)| *sum += count);
        }
        let from = self.pieces.iter().map(|piece| piece.start).min();
        let to = self.pieces.iter().map(|piece| piece.end).max();
        let span = from.zip(to).map(|(from, to)| TimeSpan { from, to });
        let timelines = timelines(&self.workers, &self.pieces);
        let mut took: Vec<u64> =
            self.pieces.iter().filter(|piece| has_ended(piece.state)).map(LanePiece::took).collect();
        took.sort_unstable();
        Figures {
            failures: self.failures.finish(counts.of(TaskState::Failed)),
            strip: self.strip,
            counts,
            span,
            throughput: span.map(|span| throughput(&self.pieces, span)).unwrap_or_default(),
            durations: Durations::new(&took),
            timelines,
            pieces: self.pieces,
            workers: names(self.workers),
        }
    }
}

/// By place.
fn names(workers: BTreeMap<String, u32>) -> Vec<String> {
    let mut names: Vec<(u32, String)> = workers.into_iter().map(|(name, place)| (place, name)).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name).collect()
}

const fn has_ended(state: TaskState) -> bool {
    matches!(state, TaskState::Finished | TaskState::Failed | TaskState::Cancelled)
}

/// All that the report draws.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) counts: Counts,
    /// The tasks in the order of their numbers, so many a column.
    pub(super) strip: Vec<Counts>,
    /// From the first start to the last end; nothing if nothing started.
    pub(super) span: Option<TimeSpan>,
    /// By name.
    pub(super) timelines: Vec<Timeline>,
    pub(super) durations: Option<Durations>,
    /// Tasks that ended in each step of the span: those that finished, and the others.
    pub(super) throughput: Vec<(u64, u64)>,
    pub(super) failures: FailuresBody,
    /// In the order of their numbers.
    pub(super) pieces: Vec<LanePiece>,
    /// Names of workers, by their place.
    pub(super) workers: Vec<String>,
}

impl Figures {
    /// The states of those that have started.
    pub(super) fn counts_of_started(&self) -> Counts {
        let mut counts = Counts::default();
        self.pieces.iter().for_each(|piece| counts.add(piece.state));
        counts
    }
}

/// A worker and what it did.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) name: String,
    /// One row for each of its slots that had a task.
    pub(super) lanes: Vec<Vec<LanePiece>>,
    pub(super) counts: Counts,
    /// Milliseconds that its tasks took together.
    pub(super) busy: u64,
}

impl Timeline {
    /// How much of the time its slots had a task, in percent.
    #[expect(clippy::cast_precision_loss, reason = "a share with few digits")]
    pub(super) fn share(&self, span: TimeSpan) -> f64 {
        self.busy as f64 * 100.0 / (self.lanes.len().max(1) as f64 * span.length() as f64)
    }
}

fn timelines(workers: &BTreeMap<String, u32>, pieces: &[LanePiece]) -> Vec<Timeline> {
    let mut theirs: Vec<Vec<LanePiece>> = vec![Vec::new(); workers.len()];
    for piece in pieces {
        theirs[piece.worker as usize].push(*piece);
    }
    let timeline = |(name, place): (&String, &u32)| {
        let pieces = std::mem::take(&mut theirs[*place as usize]);
        let mut counts = Counts::default();
        pieces.iter().for_each(|piece| counts.add(piece.state));
        let busy = pieces.iter().map(LanePiece::took).fold(0, u64::saturating_add);
        Timeline { name: name.clone(), counts, busy, lanes: lanes(pieces) }
    };
    workers.iter().map(timeline).collect()
}

fn throughput(pieces: &[LanePiece], span: TimeSpan) -> Vec<(u64, u64)> {
    let mut steps = vec![(0, 0); STEPS];
    for piece in pieces.iter().filter(|piece| has_ended(piece.state)) {
        let step = u128::from(piece.end - span.from) * STEPS as u128 / u128::from(span.length());
        let step = usize::try_from(step).unwrap_or(STEPS).min(STEPS - 1);
        match piece.state {
            TaskState::Finished => steps[step].0 += 1,
            _ => steps[step].1 += 1,
        }
    }
    steps
}

/// How long tasks took, in milliseconds.
#[derive(Debug, PartialEq)]
pub(super) struct Durations {
    pub(super) least: u64,
    pub(super) p50: u64,
    pub(super) p90: u64,
    pub(super) most: u64,
    /// Whether each column is so many times as wide as the one before, and not as wide.
    pub(super) powers: bool,
    /// Where columns end, and how many tasks are in them.
    pub(super) bins: Vec<(f64, u64)>,
    pub(super) low: f64,
}

impl Durations {
    /// Of tasks in order; nothing if there are few.
    #[expect(clippy::cast_precision_loss, reason = "lengths of time in a drawing")]
    fn new(took: &[u64]) -> Option<Self> {
        let (least, most) = (*took.first()?, *took.last()?);
        if took.len() < ENDED_MIN {
            return None;
        }
        let at = |percent: usize| took[((took.len() * percent).div_ceil(100)).clamp(1, took.len()) - 1];
        let (p50, p90) = (at(50), at(90));
        let powers = most as f64 > SKEWED * p50.max(1) as f64;
        let (low, high) = if powers {
            (least.max(1) as f64, most.max(2) as f64)
        } else {
            // From nothing, unless that would put all that differs into few columns; and not if nothing much differs.
            let far = least > most / 2 && most - least > most / 10;
            (if far { least as f64 } else { 0.0 }, most.max(1) as f64)
        };
        let edge = |n: usize| {
            let part = n as f64 / BINS as f64;
            if powers { low * (high / low).powf(part) } else { low + (high - low) * part }
        };
        let mut bins: Vec<(f64, u64)> = (1..=BINS).map(|n| (edge(n), 0)).collect();
        for took in took {
            // The last column takes what rounding left over.
            let bin = bins.partition_point(|(end, _)| *end <= *took as f64).min(BINS - 1);
            bins[bin].1 += 1;
        }
        Some(Self { least, p50, p90, most, powers, bins, low })
    }

    /// Where a duration stands, from 0 at the left to 1.
    #[expect(clippy::cast_precision_loss, reason = "a place in a drawing")]
    pub(super) fn place(&self, ms: u64) -> f64 {
        let high = self.bins.last().map_or(1.0, |(end, _)| *end);
        let ms = (ms as f64).clamp(self.low, high);
        match self.powers {
            true => (ms / self.low).ln() / (high / self.low).ln(),
            false => (ms - self.low) / (high - self.low),
        }
    }

    /// Where columns begin and end.
    pub(super) fn edges(&self, bin: usize) -> (f64, f64) {
        let from = bin.checked_sub(1).and_then(|before| self.bins.get(before)).map_or(self.low, |(end, _)| *end);
        (from, self.bins.get(bin).map_or(from, |(end, _)| *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_durations_that_were() {
        let durations = Durations::new(&(1..=100).collect::<Vec<u64>>()).unwrap();
        let Durations { least, p50, p90, most, powers, .. } = durations;
        assert_eq!((least, p50, p90, most, powers), (1, 50, 90, 100, false));
        assert_eq!(Durations::new(&[]), None);
        assert_eq!(Durations::new(&[7, 8]), None);
        let alike = Durations::new(&[7, 7, 7]).unwrap();
        assert_eq!((alike.least, alike.p50, alike.p90, alike.most), (7, 7, 7, 7));
        let low = |took: &[u64]| Durations::new(took).unwrap().low;
        assert_eq!([low(&[10, 50, 90]), low(&[60, 80, 90]), low(&[89, 90, 90])], [0.0, 60.0, 0.0]);
    }

    #[test]
    fn every_task_is_in_one_column_on_either_scale() {
        let tables: [Vec<u64>; 5] =
            [vec![0; 9], (0..1_000).collect(), vec![0, 0, 0, 1_000_000], vec![3; 40], vec![0, u64::MAX, u64::MAX]];
        for took in tables {
            let durations = Durations::new(&took).unwrap();
            let sum: u64 = durations.bins.iter().map(|(_, count)| count).sum();
            assert_eq!(sum, took.len() as u64, "{:?}", durations.bins);
            for ms in [durations.least, durations.p50, durations.most] {
                let place = durations.place(ms);
                assert!((0.0..=1.0).contains(&place), "{ms} at {place}");
            }
        }
        let skewed = Durations::new(&[10, 10, 10, 10_000]).unwrap();
        assert!(skewed.powers && (skewed.place(316) - 0.5).abs() < 0.01, "{}", skewed.place(316));
    }
}
