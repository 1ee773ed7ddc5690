//! The queue between the dispatcher and the committer's thread: gathered batches one way, answers the other.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::{Done, Ticket};
use crate::batch::Batch;
use crate::error::CommitError;
use crate::limits::{GATHER_BYTES, WAITING_BYTES_MAX};
use crate::store::RecordNo;

/// One group within a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) ticket: Ticket,
    /// Where it ends in the batch.
    pub(super) end: usize,
    pub(super) has_puts: bool,
    /// It was too large, and nothing of it is in the batch: that is told already.
    pub(super) is_refused: bool,
}

/// The groups of one commit, and the records to read after it.
#[derive(Debug, Default)]
pub(super) struct CommitRequest {
    pub(super) batch: Batch,
    pub(super) groups: Vec<Group>,
    pub(super) refused: Vec<(Ticket, CommitError)>,
    pub(super) loads: Vec<RecordNo>,
}

impl CommitRequest {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.loads.is_empty()
    }

    fn append(&mut self, other: &mut Self) {
        let before = self.batch.len();
        self.batch.append(&other.batch);
        self.groups.extend(other.groups.iter().map(|group| Group { end: group.end + before, ..*group }));
        self.refused.append(&mut other.refused);
        self.loads.append(&mut other.loads);
        other.clear();
    }

    fn clear(&mut self) {
        // A buffer that grew far beyond a usual batch is not kept.
        if self.batch.len() > GATHER_BYTES {
            self.batch = Batch::new();
        }
        self.batch.clear();
        self.groups.clear();
        self.refused.clear();
        self.loads.clear();
    }
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<CommitQueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CommitQueueState {
    waiting: VecDeque<CommitRequest>,
    waiting_bytes: usize,
    /// A used buffer, to be filled again.
    used: Option<CommitRequest>,
    done: Vec<Done>,
    is_asleep: bool,
    is_closing: bool,
    /// The thread is gone: what comes is thrown away.
    is_dead: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, CommitQueueState> {
        self.state.lock().expect("nobody panics while holding the queue")
    }

    /// Takes what was gathered and leaves an empty buffer. Whether more waits than should.
    pub(super) fn submit(&self, gathered: &mut CommitRequest, gather_max: usize) -> bool {
        let mut state = self.state();
        if state.is_dead {
            gathered.clear();
            return false;
        }
        state.waiting_bytes += gathered.batch.len();
        match state.waiting.back_mut() {
            Some(last) if last.batch.len() + gathered.batch.len() <= gather_max => last.append(gathered),
            _ => {
                let empty = state.used.take().unwrap_or_default();
                state.waiting.push_back(std::mem::replace(gathered, empty));
            }
        }
        let is_behind = state.waiting_bytes > WAITING_BYTES_MAX;
        let wakes = std::mem::take(&mut state.is_asleep);
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
        is_behind
    }

    pub(super) fn take_done(&self, into: &mut Vec<Done>) -> bool {
        let mut state = self.state();
        into.append(&mut state.done);
        state.waiting_bytes > WAITING_BYTES_MAX
    }

    pub(super) fn close(&self) {
        self.state().is_closing = true;
        self.changed.notify_one();
    }

    /// The next batch, if one is there.
    pub(super) fn next(&self) -> Option<CommitRequest> {
        let mut state = self.state();
        let next = state.waiting.pop_front()?;
        state.waiting_bytes -= next.batch.len();
        Some(next)
    }

    /// Sleeps until there is a next batch, or for ever nothing more.
    pub(super) fn wait(&self) -> Option<CommitRequest> {
        let mut state = self.state();
        loop {
            if let Some(next) = state.waiting.pop_front() {
                state.is_asleep = false;
                state.waiting_bytes -= next.batch.len();
                return Some(next);
            }
            if state.is_closing {
                return None;
            }
            state.is_asleep = true;
            state = self.changed.wait(state).expect("nobody panics while holding the queue");
        }
    }

    /// Lets time pass. Whether there is any use in going on.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let state = self.state();
        if state.is_closing {
            return false;
        }
        let (state, _) = self.changed.wait_timeout(state, time).expect("nobody panics while holding the queue");
        !state.is_closing
    }

    /// Gives answers out, and a buffer back.
    pub(super) fn answer(&self, done: &mut Vec<Done>, mut used: CommitRequest) {
        used.clear();
        let mut state = self.state();
        state.done.append(done);
        state.used = Some(used);
    }

    /// The end: nothing more is taken.
    pub(super) fn die(&self, why: Option<CommitError>) {
        // After a panic elsewhere the last report still has to be made.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.is_dead = true;
        state.waiting.clear();
        state.waiting_bytes = 0;
        state.done.extend(why.map(Done::Fatal));
    }
}
