//! The order of jobs: the highest priority, then those that have begun, then the lowest number.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::job::JobId;

/// A job's place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    priority: Reverse<u8>,
    fresh: bool,
    pub(super) job: JobId,
}

impl Turn {
    pub(super) const fn new(priority: u8, started: bool, job: JobId) -> Self {
        Self { priority: Reverse(priority), fresh: !started, job }
    }
}

/// The jobs that something can be started of, by the slots that a task of them takes: so that a job whose tasks fit
/// nowhere now costs nothing to those behind it.
#[derive(Debug, Default)]
pub(super) struct Order {
    by_width: BTreeMap<u16, BTreeSet<Turn>>,
}

impl Order {
    pub(super) fn insert(&mut self, width: u16, turn: Turn) {
        self.by_width.entry(width).or_default().insert(turn);
    }

    pub(super) fn remove(&mut self, width: u16, turn: Turn) {
        let turns = self.by_width.get_mut(&width).expect("a job is where it was put");
        assert!(turns.remove(&turn), "a job is where it was put");
        if turns.is_empty() {
            self.by_width.remove(&width);
        }
    }

    /// The first whose tasks take that many slots at most, and how many they take.
    pub(super) fn first(&self, widest: u32) -> Option<(Turn, u16)> {
        let widest = u16::try_from(widest).unwrap_or(u16::MAX);
        let firsts = self.by_width.range(..=widest).filter_map(|(width, turns)| Some((*turns.first()?, *width)));
        firsts.min()
    }

    /// The slots of their widest task.
    pub(super) fn widest(&self) -> Option<u32> {
        self.by_width.last_key_value().map(|(width, _)| u32::from(*width))
    }

    /// All of them whose tasks take that many slots at most.
    pub(super) fn turns(&self, widest: u32) -> impl Iterator<Item = Turn> {
        let widest = u16::try_from(widest).unwrap_or(u16::MAX);
        self.by_width.range(..=widest).flat_map(|(_, turns)| turns).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_width.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_width.values().map(BTreeSet::len).sum()
    }
}
