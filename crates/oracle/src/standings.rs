//! Standings of a worker, by queue: S2.29 to S2.32, exactly as far as a broker knows them.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::Delivery;

#[derive(Clone, Debug, Default)]
pub(crate) struct Standings {
    expired: BTreeMap<usize, u16>,
    /// It must be told at once.
    due: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
    /// With the last delivery it got since.
    probing: BTreeMap<usize, Option<Delivery>>,
}

impl Standings {
    /// A delivery expired. `after`: so many in a row are too many; 0: none are.
    pub(crate) fn expire(&mut self, queue: usize, delivery: Delivery, after: u16) {
        if after == 0 {
            return;
        }
        if let Some(probe) = self.probing.get(&queue) {
            if *probe == Some(delivery) {
                self.due.insert(queue);
            }
            return;
        }
        let expired = self.expired.entry(queue).or_default();
        *expired += 1;
        if *expired >= after {
            self.due.insert(queue);
        }
    }

    pub(crate) fn drop_from(&mut self, queue: usize) {
        assert!(self.due.remove(&queue), "S2.30: a worker is dropped for what expired, and once");
        self.expired.remove(&queue);
        self.probing.remove(&queue);
        self.dropped.insert(queue);
    }

    pub(crate) fn settle(&mut self, queue: usize, delivery: Delivery) {
        self.expired.remove(&queue);
        if self.probing.get(&queue) == Some(&Some(delivery)) {
            self.probing.remove(&queue);
        }
    }

    pub(crate) fn consume(&mut self, queue: usize, after: u16) {
        if self.dropped.remove(&queue) && after > 0 {
            self.probing.insert(queue, None);
        }
    }

    pub(crate) fn leave(&mut self, queue: usize) {
        self.expired.remove(&queue);
        if self.probing.remove(&queue).is_some() {
            self.dropped.insert(queue);
        }
    }

    /// It has no handle of the queue any more.
    pub(crate) fn forget(&mut self, queue: usize) {
        self.dropped.remove(&queue);
    }

    /// The last delivery of one that gets one at a time, to be replaced by the next.
    pub(crate) fn probe(&mut self, queue: usize) -> Option<&mut Option<Delivery>> {
        self.probing.get_mut(&queue)
    }

    /// All that had to be said was.
    pub(crate) fn is_told(&self) -> bool {
        self.due.is_empty()
    }
}
