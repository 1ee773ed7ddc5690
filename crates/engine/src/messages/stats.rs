//! Statistics: current totals and counters.

use turno_proto::model::limits;
use turno_proto::model::view::Counters;

use crate::messages::Messages;
use crate::messages::table::message::Stray;

/// Totals over all queues. `check` recounts them.
#[derive(Debug, Default)]
pub(super) struct Stats {
    pub(crate) ready: u64,
    pub(super) delayed: u64,
    pub(super) in_flight: u64,
    /// Those of them that are answered, and whose workers still use the slots.
    pub(super) answered: u64,
    pub(super) dead: u64,
    /// Bytes of dead letters.
    pub(super) dead_bytes: u64,
    /// Bytes in memory.
    pub(super) bytes: u64,
    pub(super) counters: Counters,
}

impl Messages {
    /// Adds one to a counter, for the broker and for the queue.
    pub(super) fn count(&mut self, queue: u32, counter: impl Fn(&mut Counters) -> &mut u64) {
        *counter(&mut self.stats.counters) += 1;
        *counter(&mut self.queues.at_mut(queue).counters) += 1;
    }

    pub(super) fn count_stray(&mut self, stray: Stray) {
        let counters = &mut self.stats.counters;
        match stray {
            Stray::Late => counters.late += 1,
            Stray::Doubled => counters.doubled += 1,
            Stray::Forged => counters.forged += 1,
        }
    }

    /// Whether there is room for so many bytes more, beside all that is held.
    pub(super) fn has_memory(&self, bytes: u64) -> bool {
        bytes <= self.memory_free()
    }

    /// Bytes that may be held beside all that is.
    pub(super) fn memory_free(&self) -> u64 {
        let held = self.stats.bytes.saturating_add(self.bytes_elsewhere);
        self.settings.limits.memory_bytes_max.saturating_sub(held)
    }

    pub(super) fn add_bytes(&mut self, queue: u32, bytes: u64) {
        self.stats.bytes += bytes;
        self.queues.at_mut(queue).bytes += bytes;
    }

    pub(super) fn drop_bytes(&mut self, queue: u32, bytes: u64) {
        self.stats.bytes -= bytes;
        self.queues.at_mut(queue).bytes -= bytes;
    }
}

/// Bytes that a message with that payload counts as.
pub(super) const fn bytes_of(payload_len: usize) -> u64 {
    (payload_len + limits::MESSAGE_OVERHEAD_BYTES) as u64
}
