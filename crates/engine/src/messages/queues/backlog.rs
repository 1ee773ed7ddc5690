//! The backlog of a queue: first in, first out within a priority, 9 before 0.

use turno_proto::model::limits::PRIORITY_MAX;

use crate::messages::queues::priority_level::{Cold, PriorityLevel};
use crate::messages::table::message::MessageTable;

const LINES: usize = PRIORITY_MAX as usize + 1;

#[derive(Debug, Default)]
pub(in crate::messages) struct Backlog {
    by_priority: [PriorityLevel; LINES],
    /// Bit n is set while priority n has messages.
    occupied: u16,
    /// Bit n is set while priority n has messages that only the store holds.
    cold: u16,
    len: u32,
}

impl Backlog {
    pub(in crate::messages) const fn len(&self) -> u32 {
        self.len
    }

    pub(in crate::messages) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the store alone holds some of them.
    pub(in crate::messages) const fn has_cold(&self) -> bool {
        self.cold != 0
    }

    /// The message whose turn it is. None if it is on its way from the store: nothing overtakes it.
    pub(in crate::messages) fn head(&self) -> Option<u32> {
        let highest = self.occupied.checked_ilog2()?;
        self.by_priority[highest as usize].front()
    }

    pub(in crate::messages) fn push_back(&mut self, messages: &mut MessageTable, index: u32) {
        self.entering(messages[index].priority).push_back(messages, index);
    }

    /// Back to the head: it has waited already (S0.31, S2.34).
    pub(in crate::messages) fn push_front(&mut self, messages: &mut MessageTable, index: u32) {
        self.entering(messages[index].priority).push_front(messages, index);
    }

    /// Behind the others in memory, and before all of its priority that only the store holds.
    pub(in crate::messages) fn push_hot(&mut self, messages: &mut MessageTable, index: u32) {
        self.entering(messages[index].priority).push_hot(messages, index);
    }

    pub(in crate::messages) fn remove(&mut self, messages: &mut MessageTable, index: u32) {
        let priority = messages[index].priority;
        let level = &mut self.by_priority[usize::from(priority)];
        level.remove(messages, index);
        self.len -= 1;
        if level.is_empty() {
            self.occupied &= !(1 << priority);
        }
    }

    /// The waiting messages in the order of their turns, as far as they are in memory.
    pub(in crate::messages) fn iter<'a>(&'a self, messages: &'a MessageTable) -> impl Iterator<Item = u32> + 'a {
        let mut cold = false;
        let levels = self.by_priority.iter().rev().take_while(move |level| {
            let at_hand = !cold;
            cold |= level.has_tail();
            at_hand
        });
        levels.flat_map(|level| level.hot(messages))
    }

    /// The first message of each priority that has any at hand.
    pub(in crate::messages) fn heads(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_priority.iter().filter_map(PriorityLevel::front)
    }

    /// How many go before this one, counted no further than `most`.
    pub(in crate::messages) fn ahead_of(&self, messages: &MessageTable, index: u32, most: u64) -> u64 {
        let priority = messages[index].priority;
        let higher = self.above(priority);
        higher + self.level(priority).ahead_of(messages, index, most.saturating_sub(higher))
    }

    /// The same for one that only the store holds.
    pub(in crate::messages) fn ahead_of_cold(
        &self,
        messages: &MessageTable,
        priority: u8,
        serial: u64,
        most: u64,
    ) -> u64 {
        let higher = self.above(priority);
        higher + self.level(priority).ahead_of_cold(messages, serial, most.saturating_sub(higher))
    }

    fn above(&self, priority: u8) -> u64 {
        self.by_priority[usize::from(priority) + 1..].iter().map(|level| level.len() as u64).sum()
    }

    pub(in crate::messages) fn level(&self, priority: u8) -> &PriorityLevel {
        &self.by_priority[usize::from(priority)]
    }

    fn entering(&mut self, priority: u8) -> &mut PriorityLevel {
        self.len += 1;
        self.occupied |= 1 << priority;
        &mut self.by_priority[usize::from(priority)]
    }
}

/// Messages that only the store holds.
impl Backlog {
    /// Whether a new durable message would be the last of its priority's cold tail.
    pub(in crate::messages) fn goes_cold(&self, priority: u8, hot_bytes: u64) -> bool {
        self.level(priority).goes_cold(hot_bytes)
    }

    pub(in crate::messages) fn push_cold(&mut self, priority: u8, cold: Cold) {
        self.entering(priority).push_cold(cold);
        self.cold |= 1 << priority;
    }

    pub(in crate::messages) fn remove_cold(&mut self, priority: u8, serial: u64) -> Option<Cold> {
        let cold = self.by_priority[usize::from(priority)].remove_cold(serial)?;
        self.len -= 1;
        self.note(priority);
        Some(cold)
    }

    /// The one whose turn it would be, if only the store holds it.
    pub(in crate::messages) fn first_cold(&self) -> Option<(u8, u64)> {
        let highest = u8::try_from(self.occupied.checked_ilog2()?).ok()?;
        self.level(highest).cold().next().map(|cold| (highest, cold.serial()))
    }

    /// The priority under which the store alone holds that one.
    pub(in crate::messages) fn find_cold(&self, serial: u64) -> Option<u8> {
        self.priorities_with_cold().find(|priority| self.level(*priority).position(serial).is_some())
    }

    pub(in crate::messages) fn priorities_with_cold(&self) -> impl Iterator<Item = u8> + use<> {
        let cold = self.cold;
        (0..=PRIORITY_MAX).rev().filter(move |priority| cold & (1 << priority) != 0)
    }

    /// Tells which ones of a priority are to be loaded now, as long as there is room. Returns whether it is not for all of them.
    pub(in crate::messages) fn load(
        &mut self,
        priority: u8,
        hot_bytes: u64,
        has_room: impl FnMut(&Cold) -> bool,
    ) -> bool {
        self.by_priority[usize::from(priority)].load(hot_bytes, has_room)
    }

    /// Whether the message whose turn it is is one that only the store holds, and nothing of it is on its way.
    pub(in crate::messages) fn waits_for_cold(&self) -> bool {
        self.occupied.checked_ilog2().is_some_and(|highest| self.by_priority[highest as usize].waits_for_tail())
    }

    fn note(&mut self, priority: u8) {
        let level = &self.by_priority[usize::from(priority)];
        if level.is_empty() {
            self.occupied &= !(1 << priority);
        }
        if !level.has_tail() {
            self.cold &= !(1 << priority);
        }
    }

    pub(in crate::messages) fn cold_len(&self) -> u64 {
        self.by_priority.iter().map(|level| level.cold().count() as u64).sum()
    }

    /// Asserts that lines, bits and length agree. `hot_bytes`: and that what should be loaded is.
    pub(crate) fn check(&self, messages: &MessageTable, hot_bytes: Option<u64>) {
        let mut total = 0;
        for (priority, level) in self.by_priority.iter().enumerate() {
            level.check(messages, hot_bytes);
            assert_eq!(
                self.occupied & (1 << priority) != 0,
                !level.is_empty(),
                "a line's bit tells whether it is used"
            );
            assert_eq!(self.cold & (1 << priority) != 0, level.has_tail(), "a line's bit tells whether it has a tail");
            total += level.len();
        }
        assert_eq!(total, self.len as usize, "the backlog's length is that of its lines");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::messages::table::message::{Message, MessageEnd};

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
            let (mut backlog, mut naive, mut messages) = (Backlog::default(), Naive::default(), MessageTable::default());
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
                            messages.remove(head, None, MessageEnd::Otherwise);
                            naive.waiting.retain(|(_, _, index)| *index != head);
                        }
                    }
                    _ if naive.waiting.is_empty() => {}
                    _ => {
                        let (_, _, gone) = naive.waiting.remove(which.index(naive.waiting.len()));
                        backlog.remove(&mut messages, gone);
                        messages.remove(gone, None, MessageEnd::Otherwise);
                    }
                }
                backlog.check(&messages, None);
                let turns = naive.turns();
                prop_assert_eq!(backlog.iter(&messages).collect::<Vec<_>>(), turns.clone());
                for (ahead, index) in (0..).zip(turns) {
                    prop_assert_eq!(backlog.ahead_of(&messages, index, u64::MAX), ahead);
                }
            }
        }
    }

    /// Where nothing is at hand, the first of the highest tail is next; what is behind it follows.
    #[test]
    fn a_tail_goes_before_what_is_behind_it() {
        let (mut backlog, mut messages) = (Backlog::default(), MessageTable::default());
        [1, 2].into_iter().for_each(|serial| backlog.push_cold(4, Cold::new(serial, 0)));
        let [behind, lower] = [4, 3].map(|priority| messages.insert(Message::waiting(priority)));
        backlog.push_back(&mut messages, behind);
        backlog.push_back(&mut messages, lower);
        assert_eq!((backlog.head(), backlog.len(), backlog.iter(&messages).count()), (None, 4, 0));
        for serial in [1, 2] {
            assert_eq!(backlog.first_cold(), Some((4, serial)));
            assert_eq!(backlog.remove_cold(4, serial), Some(Cold::new(serial, 0)));
        }
        backlog.check(&messages, Some(1));
        assert_eq!((backlog.head(), backlog.first_cold(), backlog.len()), (Some(behind), None, 2));
    }
}
