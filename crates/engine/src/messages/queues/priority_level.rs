//! One priority level of a backlog: messages in memory, and those that only the store holds.
//!
//! In the order of their turns: the hot ones in memory, the cold tail, and behind that whatever had to stay in memory
//! though it came later. The tail begins when the hot ones have so many bytes that their turns take a while, and only
//! unmarked durable messages are in it. It is loaded from its front, a window ahead, so that no turn has to wait; a turn waits
//! only while there is no memory.

use std::collections::VecDeque;

use turno_proto::model::limits::LOADS_MAX;

use crate::messages::stats::bytes_of;
use crate::messages::table::chain::{Chain, Lane};
use crate::messages::table::message::{Flags, Message, MessageTable};

/// Bytes of memory that a message counts as while only the store holds it.
pub(in crate::messages) const COLD_BYTES: u64 = size_of::<Cold>() as u64;

/// A message that only the store holds. Millions of these may wait, so it is kept small; a test says how small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct Cold {
    /// In halves, which need no padding.
    serial: [u32; 2],
    payload_len: u32,
}

impl Cold {
    pub(in crate::messages) fn new(serial: u64, payload_len: usize) -> Self {
        let payload_len = u32::try_from(payload_len).unwrap_or(u32::MAX);
        Self { serial: [(serial >> 32) as u32, serial as u32], payload_len }
    }

    pub(in crate::messages) const fn serial(&self) -> u64 {
        (self.serial[0] as u64) << 32 | self.serial[1] as u64
    }

    /// Bytes that it counts as in its queue, and in memory when it is loaded.
    pub(in crate::messages) const fn bytes(&self) -> u64 {
        bytes_of(self.payload_len as usize)
    }
}

/// The messages of one priority.
#[derive(Debug, Default)]
pub(in crate::messages) struct PriorityLevel {
    /// All that are in memory.
    chain: Chain,
    /// Bytes of the durable ones before the tail, but for those that were once behind one.
    window: u64,
    tail: Option<Box<Tail>>,
}

/// Never empty.
#[derive(Debug)]
struct Tail {
    cold: VecDeque<Cold>,
    /// They are in the order of their serials. Those that were delayed join the tail when their time comes, out of that order.
    rising: bool,
    /// So many of the first are being loaded.
    loading: usize,
    loading_bytes: u64,
    /// The first message in memory that waits behind the tail.
    behind: Option<u32>,
}

impl PriorityLevel {
    pub(in crate::messages) fn len(&self) -> usize {
        self.chain.len() as usize + self.cold_len()
    }

    pub(in crate::messages) fn is_empty(&self) -> bool {
        self.chain.is_empty() && self.tail.is_none()
    }

    pub(in crate::messages) const fn has_tail(&self) -> bool {
        self.tail.is_some()
    }

    fn cold_len(&self) -> usize {
        self.tail.as_ref().map_or(0, |tail| tail.cold.len())
    }

    fn behind(&self) -> Option<u32> {
        self.tail.as_ref().and_then(|tail| tail.behind)
    }

    /// The message whose turn is next, if it is at hand.
    pub(in crate::messages) fn front(&self) -> Option<u32> {
        let front = self.chain.front();
        if self.tail.is_some() && front == self.behind() { None } else { front }
    }

    /// The messages before the tail.
    pub(in crate::messages) fn hot<'a>(&self, messages: &'a MessageTable) -> impl Iterator<Item = u32> + use<'a> {
        let behind = self.behind();
        self.chain.iter(messages, Lane::Place).take_while(move |index| Some(*index) != behind)
    }

    pub(in crate::messages) fn push_back(&mut self, messages: &mut MessageTable, index: u32) {
        match &mut self.tail {
            Some(tail) => {
                tail.behind.get_or_insert(index);
            }
            None => self.count(messages, index),
        }
        self.chain.push_back(messages, Lane::Place, index);
    }

    pub(in crate::messages) fn push_front(&mut self, messages: &mut MessageTable, index: u32) {
        self.count(messages, index);
        self.chain.push_front(messages, Lane::Place, index);
    }

    /// To the last place before the tail.
    pub(in crate::messages) fn push_hot(&mut self, messages: &mut MessageTable, index: u32) {
        self.count(messages, index);
        match self.behind() {
            Some(behind) => self.chain.insert_before(messages, Lane::Place, behind, index),
            None => self.chain.push_back(messages, Lane::Place, index),
        }
    }

    pub(in crate::messages) fn remove(&mut self, messages: &mut MessageTable, index: u32) {
        if let Some(tail) = &mut self.tail
            && tail.behind == Some(index)
        {
            tail.behind = Chain::after(messages, Lane::Place, index);
        }
        let message = &mut messages[index];
        if message.flags.has(Flags::COUNTED) {
            message.flags.clear(Flags::COUNTED);
            self.window -= bytes_of(message.bytes.len());
        }
        self.chain.remove(messages, Lane::Place, index);
    }

    fn count(&mut self, messages: &mut MessageTable, index: u32) {
        let message = &mut messages[index];
        if message.flags.has(Flags::DURABLE) {
            message.flags.set(Flags::COUNTED);
            self.window += bytes_of(message.bytes.len());
        }
    }

    /// How many go before this one, counted no further than `most`.
    pub(in crate::messages) fn ahead_of(&self, messages: &MessageTable, index: u32, most: u64) -> u64 {
        let (mut ahead, mut at) = (0, index);
        loop {
            if self.behind() == Some(at) {
                ahead += self.cold_len() as u64;
            }
            match Chain::before(messages, Lane::Place, at) {
                Some(before) if ahead < most => (ahead, at) = (ahead + 1, before),
                _ => return ahead,
            }
        }
    }

    /// The same for one of the tail.
    pub(in crate::messages) fn ahead_of_cold(&self, messages: &MessageTable, serial: u64, most: u64) -> u64 {
        let before = self.position(serial).unwrap_or(0) as u64;
        before + self.hot(messages).zip(before..most).count() as u64
    }
}

/// The cold tail.
impl PriorityLevel {
    /// Whether a new durable message would be the last of the tail.
    pub(in crate::messages) fn goes_cold(&self, hot_bytes: u64) -> bool {
        match &self.tail {
            Some(tail) => tail.behind.is_none(),
            None => self.window >= hot_bytes.max(1),
        }
    }

    pub(in crate::messages) fn push_cold(&mut self, cold: Cold) {
        let tail = self.tail.get_or_insert_with(|| {
            Box::new(Tail { cold: VecDeque::new(), rising: true, loading: 0, loading_bytes: 0, behind: None })
        });
        tail.rising &= tail.cold.back().is_none_or(|last| last.serial() < cold.serial());
        tail.cold.push_back(cold);
    }

    /// The message right behind the tail, if it could as well be the last of it.
    pub(in crate::messages) fn could_be_cold(&self, messages: &MessageTable) -> Option<u32> {
        let last = self.tail.as_ref()?.cold.back()?.serial();
        self.behind().filter(|index| {
            let Message { flags, attempts, serial, .. } = messages[*index];
            flags.has(Flags::DURABLE) && !flags.has(Flags::MARKED) && attempts == 0 && serial > last
        })
    }

    pub(in crate::messages) fn position(&self, serial: u64) -> Option<usize> {
        let Tail { cold, rising, .. } = &**self.tail.as_ref()?;
        if cold.front()?.serial() == serial {
            return Some(0);
        }
        match rising {
            true => cold.binary_search_by_key(&serial, Cold::serial).ok(),
            // Only people ask for one that is not the first.
            false => cold.iter().position(|cold| cold.serial() == serial),
        }
    }

    pub(in crate::messages) fn find(&self, serial: u64) -> Option<Cold> {
        self.tail.as_ref()?.cold.get(self.position(serial)?).copied()
    }

    pub(in crate::messages) fn remove_cold(&mut self, serial: u64) -> Option<Cold> {
        let at = self.position(serial)?;
        let tail = self.tail.as_mut()?;
        let cold = tail.cold.remove(at)?;
        if at < tail.loading {
            tail.loading -= 1;
            tail.loading_bytes -= cold.bytes();
        }
        if tail.cold.is_empty() {
            self.tail = None;
        }
        Some(cold)
    }

    /// Fills the window up once less than half of it is left: tells which ones are to be loaded now. Stops at one for which
    /// `has_room` is false, and returns whether there was such a one.
    pub(in crate::messages) fn load(&mut self, hot_bytes: u64, mut has_room: impl FnMut(&Cold) -> bool) -> bool {
        if !self.is_short(hot_bytes) {
            return false;
        }
        let Some(tail) = &mut self.tail else { return false };
        while tail.loading < LOADS_MAX
            && self.window + tail.loading_bytes < hot_bytes.max(1)
            && let Some(cold) = tail.cold.get(tail.loading)
        {
            if !has_room(cold) {
                return true;
            }
            tail.loading += 1;
            tail.loading_bytes += cold.bytes();
        }
        false
    }

    /// Whether the next turn is that of one of the tail, and none is on its way.
    pub(in crate::messages) fn waits_for_tail(&self) -> bool {
        self.front().is_none() && self.tail.as_ref().is_some_and(|tail| tail.loading == 0)
    }

    fn is_short(&self, hot_bytes: u64) -> bool {
        self.tail.as_ref().is_some_and(|tail| {
            let more = tail.loading < tail.cold.len().min(LOADS_MAX);
            more && (self.window + tail.loading_bytes) * 2 < hot_bytes.max(1)
        })
    }
}

/// Access for `check`.
impl PriorityLevel {
    /// All of the tail, in order.
    pub(in crate::messages) fn cold(&self) -> impl Iterator<Item = &Cold> {
        self.tail.iter().flat_map(|tail| &tail.cold)
    }

    /// Those of them that are being loaded.
    pub(in crate::messages) fn loading(&self) -> impl Iterator<Item = &Cold> {
        self.cold().take(self.tail.as_ref().map_or(0, |tail| tail.loading))
    }

    /// Asserts that counts and order are right, and that nothing at hand is short while it could be loaded.
    pub(crate) fn check(&self, messages: &MessageTable, hot_bytes: Option<u64>) {
        let all: Vec<u32> = self.chain.iter(messages, Lane::Place).collect();
        let hot: Vec<u32> = self.hot(messages).collect();
        assert_eq!(all.len(), self.chain.len() as usize, "a line's length is the number of its messages");
        let counted = |index: &&u32| messages[**index].flags.has(Flags::COUNTED);
        let window: u64 = hot.iter().filter(counted).map(|index| bytes_of(messages[*index].bytes.len())).sum();
        assert_eq!(window, self.window, "a line knows the bytes of its window");
        assert_eq!(all[hot.len()..].iter().find(counted), None, "nothing behind the tail is in the window");
        assert_eq!(all.get(hot.len()).copied(), self.behind(), "a line knows what is behind its tail");
        let Some(tail) = &self.tail else { return };
        assert!(!tail.cold.is_empty(), "a tail is not empty");
        let sorted = tail.cold.iter().is_sorted_by(|one, next| one.serial() < next.serial());
        assert!(sorted || !tail.rising, "serials rise in a tail that says so");
        assert!(tail.loading <= tail.cold.len(), "only what is there is loaded");
        let loading: u64 = self.loading().map(Cold::bytes).sum();
        assert_eq!(loading, tail.loading_bytes, "a line knows the bytes that are being loaded");
        if let Some(hot_bytes) = hot_bytes {
            assert!(!self.is_short(hot_bytes), "what will be needed soon is loaded in time");
            assert!(!hot.is_empty() || tail.loading > 0, "a tail whose turn it is is loaded");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget is 120 bytes for a stored message that waits, with all that the store knows of it; a queue of them
    /// that has just grown is half empty.
    #[test]
    fn a_cold_message_stays_small() {
        assert_eq!(size_of::<Cold>(), 12);
        assert_eq!(COLD_BYTES, 12);
        let mut line = PriorityLevel::default();
        (1..=100_000).for_each(|serial| line.push_cold(Cold::new(serial, 256)));
        let capacity = line.tail.as_ref().map_or(0, |tail| tail.cold.capacity());
        assert!(capacity * size_of::<Cold>() <= 24 * 100_000, "{capacity}");
        assert!(size_of::<PriorityLevel>() <= 32, "{}", size_of::<PriorityLevel>());
    }

    /// Serials and lengths come out as they went in, up to the largest.
    #[test]
    fn a_cold_message_keeps_its_serial() {
        for serial in [0, 1, u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX] {
            assert_eq!(Cold::new(serial, 7).serial(), serial);
        }
        assert_eq!(Cold::new(1, 256).bytes(), bytes_of(256));
    }
}
