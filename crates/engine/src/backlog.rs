//! A queue's messages that wait for a slot: first come, first served within a priority, 9 before 0.

use turno_proto::model::limits::PRIORITY_MAX;

use crate::chain::{Chain, Lane};
use crate::message::Messages;

const LANES: usize = PRIORITY_MAX as usize + 1;

#[derive(Debug, Default)]
pub(crate) struct Backlog {
    by_priority: [Chain; LANES],
    /// Bit n is set while priority n has messages.
    occupied: u16,
    len: u32,
}

impl Backlog {
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The message whose turn it is.
    pub(crate) fn head(&self) -> Option<u32> {
        let highest = self.occupied.checked_ilog2()?;
        self.by_priority[highest as usize].front()
    }

    pub(crate) fn push_back(&mut self, messages: &mut Messages, index: u32) {
        self.entering(messages, index).push_back(messages, Lane::Place, index);
    }

    /// Back to the head: it has waited already (S0.31, S2.34).
    pub(crate) fn push_front(&mut self, messages: &mut Messages, index: u32) {
        self.entering(messages, index).push_front(messages, Lane::Place, index);
    }

    pub(crate) fn remove(&mut self, messages: &mut Messages, index: u32) {
        let priority = messages[index].priority;
        let chain = &mut self.by_priority[usize::from(priority)];
        chain.remove(messages, Lane::Place, index);
        self.len -= 1;
        if chain.is_empty() {
            self.occupied &= !(1 << priority);
        }
    }

    /// Every waiting message in the order of its turn.
    pub(crate) fn iter<'a>(&'a self, messages: &'a Messages) -> impl Iterator<Item = u32> + 'a {
        self.by_priority.iter().rev().flat_map(|chain| chain.iter(messages, Lane::Place))
    }

    /// The first message of each priority that has any.
    pub(crate) fn heads(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_priority.iter().filter_map(Chain::front)
    }

    /// How many go before this one, counted no further than `most`.
    pub(crate) fn ahead_of(&self, messages: &Messages, index: u32, most: u64) -> u64 {
        let priority = usize::from(messages[index].priority);
        let higher: u64 = self.by_priority[priority + 1..].iter().map(|chain| u64::from(chain.len())).sum();
        let mut ahead = higher;
        let mut at = index;
        while ahead < most
            && let Some(before) = Chain::before(messages, Lane::Place, at)
        {
            ahead += 1;
            at = before;
        }
        ahead
    }

    fn entering(&mut self, messages: &Messages, index: u32) -> &mut Chain {
        let priority = messages[index].priority;
        self.len += 1;
        self.occupied |= 1 << priority;
        &mut self.by_priority[usize::from(priority)]
    }

    /// Asserts that lanes, bits and length agree.
    pub(crate) fn check(&self, messages: &Messages) {
        let mut total = 0;
        for (priority, chain) in self.by_priority.iter().enumerate() {
            let counted = chain.iter(messages, Lane::Place).count();
            assert_eq!(counted, chain.len() as usize, "a lane's length is the number of its messages");
            assert_eq!(self.occupied & (1 << priority) != 0, counted > 0, "a lane's bit tells whether it is used");
            total += counted;
        }
        assert_eq!(total, self.len as usize, "the backlog's length is that of its lanes");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{End, Message};

    /// The same backlog as a plain list, sorted on every look.
    #[derive(Default)]
    struct Naive {
        /// Priority, place in the order of arrival, message.
        waiting: Vec<(u8, i64, u32)>,
        order: i64,
    }

    impl Naive {
        fn turns(&self) -> Vec<u32> {
            let mut sorted = self.waiting.clone();
            sorted.sort_by_key(|(priority, order, _)| (std::cmp::Reverse(*priority), *order));
            sorted.into_iter().map(|(_, _, index)| index).collect()
        }
    }

    proptest! {
        /// Proves S0.28, S0.31 and S2.34 against a naive model: in turn within a priority, 9 before 0, and what
        /// comes back goes before everything of its own priority.
        #[test]
        fn a_backlog_is_a_sorted_list(
            steps in proptest::collection::vec((0..4_u8, 0..=PRIORITY_MAX, any::<proptest::sample::Index>()), 1..200),
        ) {
            let (mut backlog, mut naive, mut messages) = (Backlog::default(), Naive::default(), Messages::default());
            for (step, priority, which) in steps {
                naive.order += 1;
                match step {
                    0 | 1 => {
                        let index = messages.insert(Message::waiting(priority));
                        let front = step == 1;
                        if front {
                            backlog.push_front(&mut messages, index);
                        } else {
                            backlog.push_back(&mut messages, index);
                        }
                        naive.waiting.push((priority, if front { -naive.order } else { naive.order }, index));
                    }
                    2 => {
                        let head = naive.turns().first().copied();
                        prop_assert_eq!(backlog.head(), head);
                        if let Some(head) = head {
                            backlog.remove(&mut messages, head);
                            messages.remove(head, None, End::Otherwise);
                            naive.waiting.retain(|(_, _, index)| *index != head);
                        }
                    }
                    _ if naive.waiting.is_empty() => {}
                    _ => {
                        let (_, _, gone) = naive.waiting.remove(which.index(naive.waiting.len()));
                        backlog.remove(&mut messages, gone);
                        messages.remove(gone, None, End::Otherwise);
                    }
                }
                backlog.check(&messages);
                let turns = naive.turns();
                prop_assert_eq!(backlog.iter(&messages).collect::<Vec<_>>(), turns.clone());
                for (ahead, index) in (0..).zip(turns) {
                    prop_assert_eq!(backlog.ahead_of(&messages, index, u64::MAX), ahead);
                }
            }
        }
    }
}
