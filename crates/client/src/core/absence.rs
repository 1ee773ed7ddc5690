//! Queues that the broker dropped this worker from, with the time of the next attempt.
//!
//! Deliveries expired here, so more of them at once would do no better: the pause grows with every drop until a delivery
//! of that queue, handed out since, was settled in time.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::{Code, Delivery, Mono};
use turno_proto::native::Frame;

use super::event::{Claim, CoreEvent};
use super::link::Pending;
use super::{Core, State};

/// The first pause; each further one is twice as long.
const PAUSE_MS: u64 = 1_000;
/// The longest pause.
const PAUSE_MS_MAX: u64 = 30_000;

/// The queues that this connection's worker was dropped from, by handle.
#[derive(Debug, Default)]
pub(super) struct Absences {
    by_handle: BTreeMap<u32, Absence>,
    /// Deliveries from them since, with the handle.
    probes: BTreeMap<Delivery, u32>,
    /// Those that are not asked for again.
    for_good: BTreeSet<u32>,
}

#[derive(Debug)]
struct Absence {
    /// When to ask for it; `None` once it was asked for.
    again: Option<Mono>,
    pause_ms: u64,
}

impl Absences {
    /// When a queue is to be asked for.
    pub(super) fn next(&self) -> Option<Mono> {
        self.by_handle.values().filter_map(|absence| absence.again).min()
    }

    pub(super) fn handed(&mut self, handle: u32, delivery: Delivery) {
        if self.by_handle.contains_key(&handle) {
            self.probes.insert(delivery, handle);
        }
    }

    /// The broker wants it no more: whatever is said now is late.
    pub(super) fn cancelled(&mut self, delivery: Delivery) {
        self.probes.remove(&delivery);
    }

    /// It is settled. In time, unless the broker has said otherwise: then all is well with its queue.
    pub(super) fn settled(&mut self, delivery: Delivery) {
        if let Some(handle) = self.probes.remove(&delivery) {
            self.by_handle.remove(&handle);
            self.probes.retain(|_, other| *other != handle);
        }
    }

    /// Leaves the queue alone for a while: longer than the last time.
    fn pause(&mut self, handle: u32, now: Mono) -> u64 {
        let before = self.by_handle.get(&handle).map(|absence| absence.pause_ms);
        let pause_ms = before.map_or(PAUSE_MS, |before| (2 * before).min(PAUSE_MS_MAX));
        self.by_handle.insert(handle, Absence { again: Some(now.plus_millis(pause_ms)), pause_ms });
        pause_ms
    }

    fn is_away(&self, handle: u32) -> bool {
        let pausing = self.by_handle.get(&handle).is_some_and(|absence| absence.again.is_some());
        pausing || self.for_good.contains(&handle)
    }

    /// The queues to ask for now.
    fn due(&mut self, now: Mono) -> Vec<u32> {
        let due = self.by_handle.iter_mut().filter(|(_, absence)| absence.again.is_some_and(|again| again <= now));
        due.map(|(handle, absence)| {
            absence.again = None;
            *handle
        })
        .collect()
    }
}

impl Core {
    /// CANCEL_QUEUE: the worker gets nothing more from a queue until it asks for it.
    pub(super) fn handle_dropped(&mut self, now: Mono, handle: u32, reason: Code) {
        let Some(queue) = self.link.handles.consumed(handle).cloned() else {
            return self.lose(now, "the broker dropped this worker from a queue it never consumed".to_owned());
        };
        if self.link.absences.is_away(handle) || !self.consumes(&queue) {
            return;
        }
        // Another broker's worker has it under a higher token: no fault of this one, which asks as if it had just come.
        match (reason, self.claim()) {
            (Code::QueueFull, Claim::Standby) => return self.write_consume(&queue, false),
            (Code::QueueFull, Claim::Exclusive) => return self.replaced(now, queue),
            _ => {}
        }
        let again_ms = self.settings.come_back.then(|| self.link.absences.pause(handle, now));
        if again_ms.is_none() {
            self.link.absences.for_good.insert(handle);
        }
        self.events.push_back(CoreEvent::Dropped { queue, reason, again_ms });
    }

    /// Asks for the queues whose pause is over.
    pub(super) fn ask_again(&mut self, now: Mono) {
        if self.state != State::Open {
            return;
        }
        let exclusive = self.claim() != Claim::Shared;
        for handle in self.link.absences.due(now) {
            let seq = self.link.expect(Pending::Again(handle));
            self.link.write(&Frame::Consume { seq, handle, exclusive });
        }
    }

    /// The broker takes the worker again, for a probe; with a new token if the queue is this worker's alone.
    pub(super) fn came_back(&mut self, handle: u32, token: Option<u64>) {
        if let Some(queue) = self.link.handles.consumed(handle).cloned() {
            self.events.push_back(CoreEvent::Returned { queue: queue.clone() });
            if let Some(token) = token {
                self.events.push_back(CoreEvent::Active { queue, token });
            }
        }
    }

    /// It does not; perhaps later.
    pub(super) fn not_back(&mut self, now: Mono, handle: u32, code: Code) {
        // If it never left, there is nothing to ask for.
        if code != Code::AlreadyConsuming {
            self.link.absences.pause(handle, now);
        }
    }
}
