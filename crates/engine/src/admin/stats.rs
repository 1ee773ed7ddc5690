//! Counting: what there is now, and what happened so far.

use turno_proto::model::limits;
use turno_proto::model::view::{Counters, MemoryView};

use crate::engine::Engine;
use crate::message::Stray;
use crate::queues::Queues;

/// The memory of connections, which the engine does not see: it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes of frames that are not complete.
    pub incoming: u64,
    /// Bytes that peers have not read.
    pub outgoing: u64,
    /// Bytes that are kept free for frames of which the engine knows nothing yet.
    pub kept_free: u64,
    /// Connections that wait for memory.
    pub waiting: u64,
    /// Frames refused for want of it.
    pub refused: u64,
    /// Connections closed for want of it.
    pub closed: u64,
}

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

impl Queues {
    /// Adds one to a counter, for the broker and for the queue.
    pub(crate) fn count(&mut self, queue: u32, counter: impl Fn(&mut Counters) -> &mut u64) {
        *counter(&mut self.stats.counters) += 1;
        *counter(&mut self.table.at_mut(queue).counters) += 1;
    }

    pub(crate) fn count_stray(&mut self, stray: Stray) {
        let counters = &mut self.stats.counters;
        match stray {
            Stray::Late => counters.late += 1,
            Stray::Doubled => counters.doubled += 1,
            Stray::Forged => counters.forged += 1,
        }
    }

    /// Whether there is room for so many bytes more, beside all that is held.
    pub(crate) fn has_memory(&self, bytes: u64) -> bool {
        bytes <= self.memory_free()
    }

    /// Bytes that may be held beside all that is.
    pub(crate) fn memory_free(&self) -> u64 {
        let held = self.stats.bytes.saturating_add(self.bytes_elsewhere);
        self.settings.limits.memory_bytes_max.saturating_sub(held)
    }

    pub(crate) fn add_bytes(&mut self, queue: u32, bytes: u64) {
        self.stats.bytes += bytes;
        self.table.at_mut(queue).bytes += bytes;
    }

    pub(crate) fn drop_bytes(&mut self, queue: u32, bytes: u64) {
        self.stats.bytes -= bytes;
        self.table.at_mut(queue).bytes -= bytes;
    }
}

impl Engine {
    /// Bytes of all that the engine holds itself, as far as it counts them.
    pub fn memory(&self) -> u64 {
        self.queues.bytes() + self.bytes_of_others()
    }

    /// Bytes that the machines beside queues hold.
    fn bytes_of_others(&self) -> u64 {
        let ring = self.ring.as_ref().map_or(0, |ring| ring.kept_bytes());
        self.jobs.bytes() + (self.topics.fetch_bytes() + self.archive.bytes()) as u64 + ring
    }

    /// Bytes that all but queues hold, connections too.
    pub(crate) fn bytes_elsewhere(&self) -> u64 {
        let Buffers { incoming, outgoing, kept_free, .. } = self.buffers;
        [incoming, outgoing, kept_free].into_iter().fold(self.bytes_of_others(), u64::saturating_add)
    }

    /// How much connections hold now. Said before each input, or once in a while.
    pub const fn set_buffers(&mut self, buffers: Buffers) {
        self.buffers = buffers;
    }

    pub(crate) fn memory_view(&self) -> MemoryView {
        let Buffers { incoming, outgoing, waiting, refused, closed, .. } = self.buffers;
        let (messages, jobs, archive) = (self.queues.bytes(), self.jobs.bytes(), self.archive.bytes() as u64);
        let events = self.memory() - messages - jobs - archive;
        MemoryView { messages, jobs, events, archive, incoming, outgoing, waiting, refused, closed }
    }
}

/// What a message of that payload counts for.
pub(crate) const fn bytes_of(payload_len: usize) -> u64 {
    (payload_len + limits::MESSAGE_OVERHEAD_BYTES) as u64
}
