//! Rows of the Gantt chart: tasks that used the same slot of a worker, as far as their times show.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use turno_proto::model::job::TaskState;

/// Units from the left to the right of the chart.
pub(super) const WIDTH: f64 = 1_000.0;
/// Pieces narrower than this are drawn as one with neighbours of their kind …
const NARROW: f64 = 3.0;
/// … that are nearer than this. Together they bound what one row can take in the file.
const NEAR: f64 = 1.5;

/// The time of one task's latest attempt at a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LanePiece {
    pub(super) task: u32,
    pub(super) state: TaskState,
    /// The place of its worker among all of them.
    pub(super) worker: u32,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl LanePiece {
    pub(super) const fn took(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Puts the tasks of one worker into as few rows as their times allow: each into the first that is free when it starts.
pub(super) fn lanes(mut pieces: Vec<LanePiece>) -> Vec<Vec<LanePiece>> {
    pieces.sort_unstable_by_key(|piece| (piece.start, piece.end, piece.task));
    let mut lanes: Vec<Vec<LanePiece>> = Vec::new();
    let mut free: BTreeSet<usize> = BTreeSet::new();
    let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for piece in pieces {
        while let Some(Reverse((end, lane))) = busy.peek().copied()
            && end <= piece.start
        {
            busy.pop();
            free.insert(lane);
        }
        let lane = free.pop_first().unwrap_or_else(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        busy.push(Reverse((piece.end, lane)));
        lanes[lane].push(piece);
    }
    lanes
}

/// A stretch of a row: one task, or several of a kind that are too narrow to be told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) x: f64,
    pub(super) width: f64,
}

/// The moments that the chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeSpan {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl TimeSpan {
    pub(super) const fn length(&self) -> u64 {
        if self.to > self.from { self.to - self.from } else { 1 }
    }

    #[expect(clippy::cast_precision_loss, reason = "places of a drawing")]
    pub(super) fn place(&self, moment: u64) -> f64 {
        let since = moment.saturating_sub(self.from).min(self.length());
        since as f64 * WIDTH / self.length() as f64
    }
}

/// Those pieces of a row that are of a kind, what is below a pixel merged.
pub(super) fn stretches(lane: &[LanePiece], span: TimeSpan, kind: TaskState) -> Vec<Stretch> {
    let mut merged: Vec<Stretch> = Vec::new();
    for piece in lane.iter().filter(|piece| piece.state == kind) {
        let (x, end) = (span.place(piece.start), span.place(piece.end));
        match merged.last_mut() {
            Some(last) if x - (last.x + last.width) < NEAR && (last.width < NARROW || end - x < NARROW) => {
                last.width = last.width.max(end - last.x);
            }
            _ => merged.push(Stretch { x, width: end - x }),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(task: u32, start: u64, end: u64) -> LanePiece {
        LanePiece { task, state: TaskState::Finished, worker: 0, start, end }
    }

    fn numbers(pieces: &[(u32, u64, u64)]) -> Vec<Vec<u32>> {
        let rows = lanes(pieces.iter().map(|(task, start, end)| piece(*task, *start, *end)).collect());
        rows.iter().map(|row| row.iter().map(|piece| piece.task).collect()).collect()
    }

    #[test]
    fn tasks_share_a_row_if_they_follow_each_other() {
        assert_eq!(numbers(&[]), Vec::<Vec<u32>>::new());
        assert_eq!(numbers(&[(1, 0, 10), (2, 10, 20), (3, 20, 30)]), [[1, 2, 3]]);
        assert_eq!(numbers(&[(1, 0, 10), (2, 5, 20), (3, 12, 30)]), [vec![1, 3], vec![2]]);
        assert_eq!(numbers(&[(3, 12, 30), (2, 5, 20), (1, 0, 10)]), [vec![1, 3], vec![2]], "in whatever order");
        assert_eq!(numbers(&[(1, 0, 9), (2, 0, 5), (3, 0, 7), (4, 9, 12)]), [vec![2, 4], vec![3], vec![1]]);
        assert_eq!(numbers(&[(1, 3, 5), (2, 5, 5), (3, 5, 9)]), [[1, 2, 3]], "what takes no time follows, too");
    }

    #[test]
    fn as_many_rows_as_tasks_ran_at_a_time() {
        // 8 slots, each with tasks of its own length, one after the other.
        let mut pieces = Vec::new();
        for slot in 0..8_u64 {
            pieces.extend((0..50).map(|n| piece(0, n * (10 + slot), (n + 1) * (10 + slot))));
        }
        let rows = lanes(pieces);
        assert_eq!(rows.len(), 8);
        assert!(rows.iter().all(|row| row.windows(2).all(|two| two[0].end <= two[1].start)), "none overlap");
    }

    #[test]
    fn what_is_below_a_pixel_is_merged() {
        let span = TimeSpan { from: 0, to: 1_000_000 };
        let tiny: Vec<LanePiece> = (0..100_000).map(|n| piece(n, u64::from(n) * 10, u64::from(n) * 10 + 9)).collect();
        assert_eq!(stretches(&tiny, span, TaskState::Finished), [Stretch { x: 0.0, width: 999.999 }]);
        assert!(stretches(&tiny, span, TaskState::Failed).is_empty());
        let wide = [piece(1, 0, 10_000), piece(2, 10_000, 20_000)];
        assert_eq!(stretches(&wide, span, TaskState::Finished).len(), 2, "what can be told apart is");
        // Narrow ones with gaps that can just be seen are the most there can be.
        let worst: Vec<LanePiece> = (0..1_000_000 / 1_501).map(|n| piece(0, n * 1_501, n * 1_501 + 1)).collect();
        assert!(stretches(&worst, span, TaskState::Finished).len() < 670);
    }

    #[test]
    fn a_span_of_nothing_is_no_panic() {
        let span = TimeSpan { from: 5, to: 5 };
        assert_eq!((span.place(0), span.place(5), span.place(u64::MAX)), (0.0, 0.0, WIDTH));
    }
}
