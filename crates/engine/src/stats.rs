//! Counting: what there is now, and what happened so far.

use turno_proto::model::limits;
use turno_proto::model::view::Counters;

use crate::engine::Engine;
use crate::message::Stray;

/// Totals over all queues. `check` recounts them.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) ready: u64,
    pub(crate) in_flight: u64,
    pub(crate) dead: u64,
    /// Bytes in memory.
    pub(crate) bytes: u64,
    pub(crate) counters: Counters,
}

impl Engine {
    /// Adds one to a counter, for the broker and for the queue.
    pub(crate) fn count(&mut self, queue: u32, counter: impl Fn(&mut Counters) -> &mut u64) {
        *counter(&mut self.stats.counters) += 1;
        *counter(&mut self.queues.at_mut(queue).counters) += 1;
    }

    pub(crate) fn count_stray(&mut self, stray: Stray) {
        let counters = &mut self.stats.counters;
        match stray {
            Stray::Late => counters.late += 1,
            Stray::Doubled => counters.doubled += 1,
            Stray::Forged => counters.forged += 1,
        }
    }

    pub(crate) fn add_bytes(&mut self, queue: u32, bytes: u64) {
        self.stats.bytes += bytes;
        self.queues.at_mut(queue).bytes += bytes;
    }

    pub(crate) fn drop_bytes(&mut self, queue: u32, bytes: u64) {
        self.stats.bytes -= bytes;
        self.queues.at_mut(queue).bytes -= bytes;
    }
}

/// What a message of that payload counts for.
pub(crate) const fn bytes_of(payload_len: usize) -> u64 {
    (payload_len + limits::MESSAGE_OVERHEAD_BYTES) as u64
}
