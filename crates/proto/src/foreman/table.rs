//! The tasks of a worker and their processors: the account that both ends keep.

use std::collections::BTreeMap;

use super::{Counts, Running, TaskPair, WireTaskId};

/// Tasks by name, and how many processors may be busy.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    max: u16,
    busy: u16,
    tasks: BTreeMap<WireTaskId, Running>,
}

impl Table {
    pub(super) fn new(max: u16) -> Self {
        Self { max, ..Self::default() }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts::new(self.max, self.busy)
    }

    pub(super) const fn max(&self) -> u16 {
        self.max
    }

    pub(super) const fn set_max(&mut self, max: u16) {
        self.max = max;
    }

    pub(super) fn has(&self, id: WireTaskId) -> bool {
        self.tasks.contains_key(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Running> {
        self.tasks.values()
    }

    /// Puts a task in; one that is there already is replaced, so that nothing is counted twice.
    pub(super) fn put(&mut self, running: Running) {
        self.take(running.id());
        self.busy = self.busy.saturating_add(running.needs());
        self.tasks.insert(running.id(), running);
    }

    pub(super) fn take(&mut self, id: WireTaskId) -> Option<Running> {
        let running = self.tasks.remove(&id)?;
        self.busy = self.busy.saturating_sub(running.needs());
        Some(running)
    }

    /// Takes a task out if it runs in that attempt; 0 is any.
    pub(super) fn take_attempt(&mut self, id: WireTaskId, attempt: u32) -> Option<Running> {
        let has = self.tasks.get(&id)?.attempt;
        if has == attempt || has == 0 || attempt == 0 { self.take(id) } else { None }
    }

    /// The tasks that any of the pairs names, each once.
    pub(super) fn named(&self, pairs: &[TaskPair]) -> Vec<WireTaskId> {
        let mut found: Vec<WireTaskId> = Vec::new();
        for pair in pairs {
            let first = WireTaskId { job: pair.job, task: pair.task.unwrap_or(0) };
            let last = WireTaskId { job: pair.job, task: pair.task.unwrap_or(u32::MAX) };
            found.extend(self.tasks.range(first..=last).map(|(id, _)| *id));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
