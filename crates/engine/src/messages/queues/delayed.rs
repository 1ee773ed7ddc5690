//! Messages that wait for their time: failed sends until their next attempt, and sends that are to be delivered later.
//!
//! A queue keeps them in the order of their times. A failed one stays in memory, as does one without a record on the disk. A new one
//! that is stored leaves the table of messages at once and takes a few bytes here; when its time comes it joins the cold tail of its
//! line, from which it is loaded for its turn as any other (ADR 24). What a message waits for is stored with it, so a restart changes
//! nothing; a clock that was set back makes no wait longer than it was.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::{Mono, limits};

use crate::effect::Sink;
use crate::messages::Messages;
use crate::messages::disk::persist::Wait;
use crate::messages::dispatch::DispatchStep;
use crate::messages::queues::priority_level::Cold;
use crate::messages::stats::bytes_of;
use crate::messages::table::message::{Flags, MessageEnd, MessageStage};

/// When a message is due, and its serial.
pub(in crate::messages) type DueKey = (Mono, u64);

/// Where a delayed message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) enum DelayedPlace {
    /// In the table of messages, there.
    Hot(u32),
    /// In the store alone.
    Cold { payload_len: u32, priority: u8 },
}

/// The delayed messages of a queue.
#[derive(Debug, Default)]
pub(in crate::messages) struct Delayed {
    by_due: BTreeMap<DueKey, DelayedPlace>,
}

impl Delayed {
    pub(in crate::messages) fn len(&self) -> u64 {
        self.by_due.len() as u64
    }

    pub(in crate::messages) fn is_empty(&self) -> bool {
        self.by_due.is_empty()
    }

    /// When the first of them is due.
    pub(in crate::messages) fn next_due(&self) -> Option<Mono> {
        self.first().map(|((at, _), _)| at)
    }

    fn first(&self) -> Option<(DueKey, DelayedPlace)> {
        self.by_due.first_key_value().map(|(key, place)| (*key, *place))
    }

    /// All of them, the next one first.
    pub(in crate::messages) fn iter(&self) -> impl Iterator<Item = (DueKey, DelayedPlace)> {
        self.by_due.iter().map(|(key, place)| (*key, *place))
    }

    /// The one of that serial that only the store holds. Only people ask, so it may take a look at all.
    fn find_cold(&self, serial: u64) -> Option<(DueKey, u8)> {
        self.by_due.iter().find_map(|(key, place)| match place {
            DelayedPlace::Cold { priority, .. } if key.1 == serial => Some((*key, *priority)),
            DelayedPlace::Cold { .. } | DelayedPlace::Hot(_) => None,
        })
    }
}

/// The queues that have delayed messages, by the time of their first.
#[derive(Debug, Default)]
pub(in crate::messages) struct Delays {
    next: BTreeSet<(Mono, u32)>,
    /// No portion before then.
    not_before: Mono,
}

impl Delays {
    pub(in crate::messages) fn next_deadline(&self) -> Option<Mono> {
        self.next.first().map(|(at, _)| (*at).max(self.not_before))
    }
}

impl Messages {
    /// The message, which has no place now, waits in memory for its time.
    pub(in crate::messages) fn delay(&mut self, index: u32, until: Mono) {
        let message = &mut self.messages[index];
        message.state = MessageStage::Delayed { until };
        let (queue, key) = (message.queue, (until, message.serial));
        self.put_delayed(queue, key, DelayedPlace::Hot(index));
        self.arm_deadline(index);
    }

    /// The message, which was just stored, leaves the table and waits for its time.
    pub(in crate::messages) fn delay_cold(&mut self, index: u32, until: Mono) {
        self.disarm(index);
        let message = self.messages.remove(index, None, MessageEnd::Otherwise);
        self.drop_bytes(message.queue, bytes_of(message.bytes.len()));
        self.keep_delayed_cold(message.queue, (until, message.serial), message.priority, message.bytes.len());
    }

    /// A message that only the store holds waits for its time.
    pub(in crate::messages) fn keep_delayed_cold(&mut self, queue: u32, key: DueKey, priority: u8, payload_len: usize) {
        let payload_len = u32::try_from(payload_len).unwrap_or(u32::MAX);
        self.queues.at_mut(queue).bytes += bytes_of(payload_len as usize);
        self.stats.bytes += limits::DELAYED_BYTES;
        self.put_delayed(queue, key, DelayedPlace::Cold { payload_len, priority });
    }

    fn put_delayed(&mut self, queue: u32, key: DueKey, place: DelayedPlace) {
        let before = self.queues.at(queue).delayed.next_due();
        self.queues.at_mut(queue).delayed.by_due.insert(key, place);
        self.stats.delayed += 1;
        self.note_delayed(queue, before);
    }

    /// Takes a delayed message out of its place, for whatever comes next.
    pub(in crate::messages) fn take_delayed(&mut self, queue: u32, key: DueKey) -> DelayedPlace {
        let before = self.queues.at(queue).delayed.next_due();
        let place = self.queues.at_mut(queue).delayed.by_due.remove(&key).expect("looked up a moment ago");
        self.stats.delayed -= 1;
        if let DelayedPlace::Cold { payload_len, .. } = place {
            self.queues.at_mut(queue).bytes -= bytes_of(payload_len as usize);
            self.stats.bytes -= limits::DELAYED_BYTES;
        }
        self.note_delayed(queue, before);
        place
    }

    /// The first delayed message of the queue may be another than the one that was due at `before`.
    fn note_delayed(&mut self, queue: u32, before: Option<Mono>) {
        let now = self.queues.at(queue).delayed.next_due();
        if now == before {
            return;
        }
        if let Some(before) = before {
            self.delays.next.remove(&(before, queue));
        }
        if let Some(now) = now {
            self.delays.next.insert((now, queue));
        }
    }

    /// A delayed message in memory has no place any more.
    pub(in crate::messages) fn undelay(&mut self, index: u32) {
        let message = &self.messages[index];
        let MessageStage::Delayed { until } = message.state else { panic!("only a delayed message has that place") };
        let (queue, key) = (message.queue, (until, message.serial));
        self.take_delayed(queue, key);
    }

    /// A portion of those whose time has come.
    pub(in crate::messages) fn tick_delayed(&mut self, out: &mut impl Sink) {
        if self.delays.next_deadline().is_none_or(|at| at > self.now) {
            return;
        }
        for _ in 0..self.settings.portion.get() {
            let Some(&(at, queue)) = self.delays.next.first() else { return };
            if at > self.now {
                return;
            }
            let (key, place) = self.queues.at(queue).delayed.first().expect("a queue is noted with its first");
            self.come_due(queue, key, place, out);
        }
        self.delays.not_before = self.now.plus_millis(limits::PORTION_PAUSE_MS);
    }

    fn come_due(&mut self, queue: u32, key: DueKey, place: DelayedPlace, out: &mut impl Sink) {
        self.take_delayed(queue, key);
        match place {
            DelayedPlace::Hot(index) => self.wait_now(index, out),
            DelayedPlace::Cold { payload_len, priority } => {
                self.keep_cold(queue, priority, Cold::new(key.1, payload_len as usize));
                self.stats.ready += 1;
                self.note_waiting(queue);
                self.loads.look_at(queue);
                // It may be of a higher priority than the head for which a worker is kept free.
                if self.queues.at(queue).backlog.head().is_none() {
                    self.release_reservation(queue);
                }
                self.agenda.push_back(DispatchStep::Queue(queue));
            }
        }
    }

    /// A message that was delayed takes its place in the backlog: one that failed before is at the head, a new one the last.
    pub(in crate::messages) fn wait_now(&mut self, index: u32, out: &mut impl Sink) {
        self.messages[index].state = MessageStage::Waiting;
        if self.messages[index].flags.has(Flags::MARKED) || self.messages[index].attempts > 0 {
            return self.place_again(index);
        }
        self.arm_deadline(index);
        self.place_new(index, out);
    }

    /// It goes on at once, and a restart does not bring its wait back.
    pub(in crate::messages) fn skip_wait(&mut self, index: u32, out: &mut impl Sink) {
        self.undelay(index);
        self.note_no_wait(index);
        self.wait_now(index, out);
    }

    /// The stored wait of a message is void.
    pub(in crate::messages) fn note_no_wait(&mut self, index: u32) {
        let message = &mut self.messages[index];
        if message.flags.has(Flags::DURABLE) {
            message.flags.set(Flags::MARKED);
            let (serial, attempts) = (message.serial, message.attempts);
            self.durable.note_attempts(serial, attempts, None);
        }
    }

    /// A wait as it is stored; nothing if it is over.
    pub(in crate::messages) fn wait_until(&self, until: Mono) -> Option<Wait> {
        let all_ms = until.millis_left(self.now);
        (all_ms > 0).then(|| Wait {
            until_unix_ms: self.settings.unix_ms(until),
            all_ms: u32::try_from(all_ms).unwrap_or(u32::MAX),
        })
    }
}

/// Messages that only the store holds.
impl Messages {
    /// Where the one of that serial is: its queue, its key and its priority.
    pub(in crate::messages) fn place_of_delayed(&self, serial: u64) -> Option<(u32, DueKey, u8)> {
        self.queues.after(None).find_map(|(number, queue)| {
            let (key, priority) = queue.delayed.find_cold(serial)?;
            Some((number, key, priority))
        })
    }

    /// It is over.
    pub(in crate::messages) fn cancel_delayed_cold(&mut self, queue: u32, key: DueKey) {
        self.count(queue, |counters| &mut counters.cancelled);
        self.durable.end_cold(key.1);
        self.forget_delayed_cold(queue, key);
    }

    /// It is not here any more.
    pub(in crate::messages) fn forget_delayed_cold(&mut self, queue: u32, key: DueKey) {
        self.take_delayed(queue, key);
        self.queues.forget_if_idle(queue);
    }

    /// Ends the delayed message of a queue that is due next; false if there is none.
    pub(in crate::messages) fn purge_delayed(&mut self, number: u32, out: &mut impl Sink) -> bool {
        let first = self.queues.get(number).and_then(|queue| queue.delayed.first());
        match first {
            None => return false,
            Some((_, DelayedPlace::Hot(index))) => self.cancel(index, out),
            Some((key, DelayedPlace::Cold { .. })) => self.cancel_delayed_cold(number, key),
        }
        true
    }
}

/// Access for `check`.
impl Messages {
    /// Asserts that counts, times and places of a queue's delayed messages are right. Returns those in memory, and the bytes of the
    /// others.
    pub(in crate::messages) fn check_delayed(&self, number: u32) -> (u64, u64) {
        let delayed = &self.queues.at(number).delayed;
        let noted = delayed.next_due().is_none_or(|at| self.delays.next.contains(&(at, number)));
        assert!(noted, "a queue is noted with its first delayed message");
        let (mut hot, mut cold_bytes) = (0, 0);
        for ((until, serial), place) in delayed.iter() {
            match place {
                DelayedPlace::Hot(index) => {
                    let message = &self.messages[index];
                    assert_eq!(message.state, MessageStage::Delayed { until }, "a delayed message knows its time");
                    assert_eq!((message.queue, message.serial), (number, serial), "a delayed message is its queue's");
                    hot += 1;
                }
                DelayedPlace::Cold { payload_len, .. } => cold_bytes += bytes_of(payload_len as usize),
            }
        }
        (hot, cold_bytes)
    }

    /// The same of all queues together. Returns how many only the store holds.
    pub(in crate::messages) fn check_delays(&self) -> u64 {
        let queues = || self.queues.after(None).map(|(_, queue)| &queue.delayed);
        assert_eq!(queues().map(Delayed::len).sum::<u64>(), self.stats.delayed, "the count of delayed messages");
        let noted = queues().filter(|delayed| !delayed.is_empty()).count();
        assert_eq!(noted, self.delays.next.len(), "only queues with delayed messages are noted");
        let cold = queues().flat_map(Delayed::iter).filter(|(_, place)| matches!(place, DelayedPlace::Cold { .. }));
        cold.count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget is 120 bytes for a stored message that is delayed, with all that the store knows of it. A node of the map that is
    /// half full, as after messages in the order of their times, has room for eleven.
    #[test]
    fn a_delayed_message_stays_small() {
        let entry = size_of::<DueKey>() + size_of::<DelayedPlace>();
        assert!(entry <= 24, "{entry}");
        assert!(2 * entry as u64 <= limits::DELAYED_BYTES);
    }
}
