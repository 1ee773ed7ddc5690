//! The queue of calls to the archive's thread, and its answers. The engine's gate bounds what is in here.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use turno_engine::{ArchiveCall, Input};
use turno_proto::model::Code;

use super::worker::Answer;

/// How often the thread wakes by itself, for what time does to uploads.
const LOOK_AFTER: Duration = Duration::from_secs(60);

/// Both ways.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<ArchiveQueueState>,
    asked: Condvar,
    /// There are answers.
    pub(super) news: Arc<Notify>,
}

#[derive(Debug, Default)]
struct ArchiveQueueState {
    calls: Vec<(u64, ArchiveCall)>,
    /// Calls that the thread has taken and not answered.
    taken: BTreeSet<u64>,
    answers: Vec<Input>,
    closing: bool,
    /// The thread is gone.
    broken: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, ArchiveQueueState> {
        // Nobody panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ask(&self, ticket: u64, call: ArchiveCall) {
        let mut state = self.state();
        if state.broken {
            if call.is_answered() {
                state.answers.push(failed(ticket));
                self.news.notify_one();
            }
            return;
        }
        state.calls.push((ticket, call));
        if state.calls.len() == 1 {
            self.asked.notify_one();
        }
    }

    /// The calls there are, once there are some or some time has passed; `None` at the end.
    pub(super) fn wait(&self) -> Option<Vec<(u64, ArchiveCall)>> {
        let state = self.state();
        let idle = |state: &mut ArchiveQueueState| state.calls.is_empty() && !state.closing;
        let (mut state, _) =
            self.asked.wait_timeout_while(state, LOOK_AFTER, idle).unwrap_or_else(PoisonError::into_inner);
        if state.calls.is_empty() && state.closing {
            return None;
        }
        let calls = mem::take(&mut state.calls);
        state.taken = calls.iter().filter(|(_, call)| call.is_answered()).map(|(ticket, _)| *ticket).collect();
        Some(calls)
    }

    pub(super) fn answer(&self, ticket: u64, answer: Option<Answer>) {
        let Some(answer) = answer else { return };
        let mut state = self.state();
        state.taken.remove(&ticket);
        state.answers.push(Input::Archived { ticket, answer });
        drop(state);
        self.news.notify_one();
    }

    pub(super) fn take(&self) -> Vec<Input> {
        mem::take(&mut self.state().answers)
    }

    /// The thread ends once all calls are worked off.
    pub(super) fn close(&self) {
        self.state().closing = true;
        self.asked.notify_one();
    }
}

/// Tells all waiting callers, should the thread panic.
#[derive(Debug)]
pub(super) struct Guard(Arc<Queue>);

impl Guard {
    pub(super) fn new(queue: &Arc<Queue>) -> Self {
        Self(Arc::clone(queue))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.broken = true;
        let waiting = mem::take(&mut state.calls).into_iter().filter(|(_, call)| call.is_answered());
        let left: Vec<u64> = mem::take(&mut state.taken).into_iter().chain(waiting.map(|(ticket, _)| ticket)).collect();
        state.answers.extend(left.into_iter().map(failed));
        drop(state);
        self.0.news.notify_one();
    }
}

const fn failed(ticket: u64) -> Input {
    Input::Archived { ticket, answer: Err(Code::Internal) }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::archive::UploadId;

    use super::*;

    fn get() -> ArchiveCall {
        ArchiveCall::Get { upload: UploadId([0; 32]), at: 0 }
    }

    /// Nobody waits for ever for a thread that is gone.
    #[test]
    fn what_a_failed_thread_leaves_is_answered() {
        let queue = Arc::new(Queue::default());
        queue.ask(1, get());
        queue.ask(2, ArchiveCall::Name { uploads: Vec::new() });
        let thread = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let _guard = Guard::new(&queue);
                assert_eq!(queue.wait().map(|calls| calls.len()), Some(2));
                queue.ask(3, get());
                panic!("told to");
            }
        });
        assert!(thread.join().is_err());
        queue.ask(4, get());
        queue.ask(5, ArchiveCall::Name { uploads: Vec::new() });
        assert_eq!(queue.take(), [failed(1), failed(3), failed(4)]);
    }

    #[test]
    fn what_was_asked_for_is_done_before_the_end() {
        let queue = Queue::default();
        queue.ask(1, get());
        queue.close();
        assert_eq!(queue.wait(), Some(vec![(1, get())]));
        assert_eq!(queue.wait(), None);
    }
}
