//! The committer in single steps, for simulations without threads and clock.

use std::fmt;

use super::thread::{Work, Worker};
use crate::store::Store;

/// Does what the committer's thread would do, when it is told to.
pub struct Stepper<S>(Worker<S>);

/// The result of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is something to say: ask [`Committer::take_done`](super::Committer::take_done).
    Said {
        /// Milliseconds that a thread would have slept because the store was away.
        waited_ms: u64,
    },
    /// Housekeeping, and there may be more of it.
    Kept,
    /// There was nothing to do.
    Idle,
}

impl<S> fmt::Debug for Stepper<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stepper")
    }
}

impl<S: Store> Stepper<S> {
    pub(super) const fn new(worker: Worker<S>) -> Self {
        Self(worker)
    }

    /// Commits the next batch, or tidies up if there is none. After an error that is told as fatal there is no other.
    pub fn turn(&mut self) -> Turn {
        match self.0.turn() {
            Ok(Work::Commit) => Turn::Said { waited_ms: self.0.take_waited_ms() },
            Ok(Work::Housekeeping) => Turn::Kept,
            Ok(Work::Nothing) => Turn::Idle,
            Err(why) => {
                self.0.queue().die(Some(why));
                Turn::Said { waited_ms: self.0.take_waited_ms() }
            }
        }
    }
}
