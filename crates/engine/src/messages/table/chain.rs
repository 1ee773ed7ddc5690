//! Lists of messages, linked through the messages themselves. Joining, leaving and moving cost one step, and nothing
//! dead stays behind.

use crate::messages::table::message::MessageTable;

/// No message.
pub(crate) const NIL: u32 = u32::MAX;

/// A message's neighbours in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct ChainLinks {
    prev: u32,
    next: u32,
}

impl Default for ChainLinks {
    fn default() -> Self {
        Self { prev: NIL, next: NIL }
    }
}

/// Which of a message's two chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) enum Lane {
    /// Where it is: a backlog, a worker's hands, the dead letters.
    Place,
    /// The unanswered requests of one connection.
    Owned,
}

/// A chain's ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::messages) struct Chain {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self { head: NIL, tail: NIL, len: 0 }
    }
}

impl Chain {
    pub(in crate::messages) const fn len(&self) -> u32 {
        self.len
    }

    pub(in crate::messages) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(in crate::messages) fn front(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    pub(in crate::messages) fn back(&self) -> Option<u32> {
        (self.tail != NIL).then_some(self.tail)
    }

    pub(in crate::messages) fn push_back(&mut self, messages: &mut MessageTable, lane: Lane, index: u32) {
        *messages.links(lane, index) = ChainLinks { prev: self.tail, next: NIL };
        match self.back() {
            Some(tail) => messages.links(lane, tail).next = index,
            None => self.head = index,
        }
        self.tail = index;
        self.len += 1;
    }

    pub(in crate::messages) fn push_front(&mut self, messages: &mut MessageTable, lane: Lane, index: u32) {
        *messages.links(lane, index) = ChainLinks { prev: NIL, next: self.head };
        match self.front() {
            Some(head) => messages.links(lane, head).prev = index,
            None => self.tail = index,
        }
        self.head = index;
        self.len += 1;
    }

    /// Joins before one that is in the chain.
    pub(in crate::messages) fn insert_before(&mut self, messages: &mut MessageTable, lane: Lane, at: u32, index: u32) {
        let prev = messages.links(lane, at).prev;
        if prev == NIL {
            return self.push_front(messages, lane, index);
        }
        *messages.links(lane, index) = ChainLinks { prev, next: at };
        messages.links(lane, prev).next = index;
        messages.links(lane, at).prev = index;
        self.len += 1;
    }

    pub(in crate::messages) fn remove(&mut self, messages: &mut MessageTable, lane: Lane, index: u32) {
        let ChainLinks { prev, next } = std::mem::take(messages.links(lane, index));
        if prev == NIL {
            assert_eq!(self.head, index, "a message leaves the chain it is in");
            self.head = next;
        } else {
            messages.links(lane, prev).next = next;
        }
        if next == NIL {
            assert_eq!(self.tail, index, "a message leaves the chain it is in");
            self.tail = prev;
        } else {
            messages.links(lane, next).prev = prev;
        }
        self.len -= 1;
    }

    /// The messages from head to tail.
    pub(in crate::messages) fn iter<'a>(
        &self,
        messages: &'a MessageTable,
        lane: Lane,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            if at == NIL {
                return None;
            }
            let here = at;
            at = match lane {
                Lane::Place => messages[here].place.next,
                Lane::Owned => messages[here].owned.next,
            };
            Some(here)
        })
    }

    /// The message after this one.
    pub(in crate::messages) fn after(messages: &MessageTable, lane: Lane, index: u32) -> Option<u32> {
        let next = match lane {
            Lane::Place => messages[index].place.next,
            Lane::Owned => messages[index].owned.next,
        };
        (next != NIL).then_some(next)
    }

    /// The message before this one.
    pub(in crate::messages) fn before(messages: &MessageTable, lane: Lane, index: u32) -> Option<u32> {
        let prev = match lane {
            Lane::Place => messages[index].place.prev,
            Lane::Owned => messages[index].owned.prev,
        };
        (prev != NIL).then_some(prev)
    }
}
