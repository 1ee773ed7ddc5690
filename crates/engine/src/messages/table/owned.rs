//! The unanswered requests of one connection, in order and by the caller's numbers.

use std::collections::BTreeMap;

use crate::messages::table::chain::{Chain, Lane};
use crate::messages::table::message::{Message, MessageTable};

/// The requests of one caller that have not ended.
#[derive(Debug, Default)]
pub(in crate::messages) struct Owned {
    chain: Chain,
    /// Most callers never cancel, so it is made at the first CANCEL and kept until none is left.
    numbers: Option<CallerNumbers>,
}

/// The older requests of a caller by its numbers.
#[derive(Debug)]
struct CallerNumbers {
    /// By number and serial: callers may use a number twice, and then the older request is meant. Each request is
    /// entered once at most, and not before one is wanted that is not older: many take milliseconds.
    by_seq: BTreeMap<(u32, u64), u32>,
    /// The oldest that is not entered.
    next: Option<u32>,
}

impl CallerNumbers {
    fn find(&self, seq: u32) -> Option<u32> {
        self.by_seq.range((seq, 0)..=(seq, u64::MAX)).next().map(|(_, index)| *index)
    }

    /// Enters requests until one with that number is among them.
    fn enter_until(&mut self, messages: &MessageTable, seq: u32) -> Option<u32> {
        while let Some(index) = self.next {
            let key = key(&messages[index]);
            self.by_seq.extend(key.map(|key| (key, index)));
            self.next = Chain::after(messages, Lane::Owned, index);
            if key.is_some_and(|(number, _)| number == seq) {
                return Some(index);
            }
        }
        None
    }
}

impl Owned {
    pub(in crate::messages) const fn len(&self) -> u32 {
        self.chain.len()
    }

    /// The oldest request.
    pub(in crate::messages) fn front(&self) -> Option<u32> {
        self.chain.front()
    }

    pub(in crate::messages) fn iter<'a>(&self, messages: &'a MessageTable) -> impl Iterator<Item = u32> + use<'a> {
        self.chain.iter(messages, Lane::Owned)
    }

    /// Takes in a request that has its origin.
    pub(in crate::messages) fn add(&mut self, messages: &mut MessageTable, index: u32) {
        self.chain.push_back(messages, Lane::Owned, index);
        if let Some(numbers) = &mut self.numbers {
            numbers.next.get_or_insert(index);
        }
    }

    /// Lets a request go that still has its origin.
    pub(in crate::messages) fn remove(&mut self, messages: &mut MessageTable, index: u32) {
        let next = self.numbers.as_ref().and_then(|_| Chain::after(messages, Lane::Owned, index));
        self.chain.remove(messages, Lane::Owned, index);
        if self.chain.is_empty() {
            self.numbers = None;
        } else if let (Some(numbers), Some(key)) = (&mut self.numbers, key(&messages[index])) {
            if numbers.next == Some(index) {
                numbers.next = next;
            } else {
                numbers.by_seq.remove(&key);
            }
        }
    }

    /// The request that its caller gave that number.
    pub(in crate::messages) fn find(&mut self, messages: &MessageTable, seq: u32) -> Option<u32> {
        if self.chain.is_empty() {
            return None;
        }
        let next = self.chain.front();
        let numbers = self.numbers.get_or_insert_with(|| CallerNumbers { by_seq: BTreeMap::new(), next });
        numbers.find(seq).or_else(|| numbers.enter_until(messages, seq))
    }

    /// The numbers lead to the older requests, and to nothing else.
    pub(crate) fn check(&self, messages: &MessageTable) {
        let Some(CallerNumbers { by_seq, next }) = &self.numbers else { return };
        let mut older = 0;
        for index in self.iter(messages).take_while(|index| Some(*index) != *next) {
            let found = key(&messages[index]).and_then(|key| by_seq.get(&key));
            assert_eq!(found, Some(&index), "an older request is found by its number");
            older += 1;
        }
        assert_eq!(by_seq.len(), older, "nothing else is found");
        let known = next.is_none_or(|next| self.iter(messages).any(|index| index == next));
        assert!(known, "the first that is not entered is there");
    }
}

fn key(message: &Message) -> Option<(u32, u64)> {
    message.origin.map(|origin| (origin.seq, message.serial))
}
