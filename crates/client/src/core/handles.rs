//! Queue handles of one connection, chosen by the client and sent with OPEN.

use std::collections::{HashMap, VecDeque};

use turno_proto::model::{Code, QueueName, limits};

/// Refusals of OPEN that are remembered, to tell those who asked on the handle why.
const REFUSALS_MAX: usize = 64;

/// Which handle stands for which queue. When all are given out the oldest is given to another queue, except
/// those a worker consumes with: deliveries name them.
#[derive(Debug, Default)]
pub(super) struct Handles {
    by_name: HashMap<QueueName, u32>,
    names: Vec<Option<QueueName>>,
    /// Handles below are consumed with and stay.
    kept: u32,
    /// The next to be taken from another queue once all are given out.
    turn: u32,
    /// Handles whose OPEN was refused: given out again first, so that numbers stay dense.
    vacant: Vec<u32>,
    refusals: VecDeque<(QueueName, Code)>,
}

impl Handles {
    /// The queue's handle, and whether OPEN must go out first.
    pub(super) fn take(&mut self, queue: &QueueName) -> (u32, bool) {
        if let Some(handle) = self.by_name.get(queue) {
            return (*handle, false);
        }
        let handle = self.next_handle();
        self.by_name.insert(queue.clone(), handle);
        match self.names.get_mut(handle as usize) {
            Some(place) => {
                if let Some(old) = place.replace(queue.clone()) {
                    self.by_name.remove(&old);
                }
            }
            None => self.names.push(Some(queue.clone())),
        }
        (handle, true)
    }

    /// From now on the handles given out so far stay with their queues.
    pub(super) fn keep(&mut self) {
        self.kept = u32::try_from(self.names.len()).unwrap_or(limits::HANDLES_MAX);
    }

    /// The queue of a handle that is consumed with.
    pub(super) fn consumed(&self, handle: u32) -> Option<&QueueName> {
        if handle < self.kept { self.names.get(handle as usize)?.as_ref() } else { None }
    }

    /// OPEN was refused: should the queue be wanted again, OPEN must go out again.
    pub(super) fn refused(&mut self, queue: QueueName, code: Code) {
        if let Some(handle) = self.by_name.remove(&queue)
            && let Some(place) = self.names.get_mut(handle as usize)
        {
            *place = None;
            self.vacant.push(handle);
        }
        if self.refusals.len() == REFUSALS_MAX {
            self.refusals.pop_front();
        }
        self.refusals.push_back((queue, code));
    }

    /// Why the queue could not be opened, if it was refused lately.
    pub(super) fn refusal(&self, queue: &QueueName) -> Option<Code> {
        self.refusals.iter().rev().find(|(refused, _)| refused == queue).map(|(_, code)| *code)
    }

    fn next_handle(&mut self) -> u32 {
        if let Some(handle) = self.vacant.pop() {
            return handle;
        }
        let given = u32::try_from(self.names.len()).unwrap_or(limits::HANDLES_MAX);
        if given < limits::HANDLES_MAX {
            return given;
        }
        // A worker consumes fewer queues than there are handles: see `Core::register`.
        self.turn = if self.turn < self.kept || self.turn + 1 >= given { self.kept } else { self.turn + 1 };
        self.turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(n: u32) -> QueueName {
        format!("q{n}").parse().expect("a good name")
    }

    #[test]
    fn a_queue_is_opened_once_until_it_is_refused() {
        let mut handles = Handles::default();
        assert_eq!(handles.take(&queue(1)), (0, true));
        assert_eq!(handles.take(&queue(2)), (1, true));
        assert_eq!(handles.take(&queue(1)), (0, false));
        handles.refused(queue(1), Code::TooManyQueues);
        assert_eq!(handles.refusal(&queue(1)), Some(Code::TooManyQueues));
        assert_eq!(handles.refusal(&queue(2)), None);
        assert_eq!(handles.take(&queue(3)), (0, true), "numbers stay dense");
        assert_eq!(handles.take(&queue(1)), (2, true));
    }

    #[test]
    fn handles_are_bounded_and_consumed_ones_stay() {
        let mut handles = Handles::default();
        handles.take(&queue(0));
        handles.keep();
        for n in 1..=limits::HANDLES_MAX + 10 {
            let (handle, open) = handles.take(&queue(n));
            assert!(open && handle > 0 && handle < limits::HANDLES_MAX);
            assert_eq!(handles.take(&queue(n)), (handle, false));
        }
        assert_eq!(handles.consumed(0), Some(&queue(0)));
        assert_eq!(handles.consumed(1), None);
        assert_eq!(handles.by_name.len(), limits::HANDLES_MAX as usize);
        assert!(handles.take(&queue(1)).1, "the oldest lost its handle");
    }
}
