//! Memory use of the broker, machine by machine.

use turno_proto::model::view::MemoryView;

use super::Engine;

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
    /// Frames refused for lack of it.
    pub refused: u64,
    /// Connections closed for lack of it.
    pub closed: u64,
}

impl Engine {
    /// Bytes of all that the engine holds itself, as far as it counts them.
    pub fn memory(&self) -> u64 {
        self.messages.bytes() + self.bytes_of_others()
    }

    /// Bytes that the machines beside queues hold.
    fn bytes_of_others(&self) -> u64 {
        let ring = self.ring.as_ref().map_or(0, |ring| ring.kept_bytes());
        self.jobs.bytes() + (self.topics.fetch_bytes() + self.archive.bytes()) as u64 + ring
    }

    /// Bytes that all but queues hold, connections too.
    pub(super) fn bytes_elsewhere(&self) -> u64 {
        let Buffers { incoming, outgoing, kept_free, .. } = self.buffers;
        [incoming, outgoing, kept_free].into_iter().fold(self.bytes_of_others(), u64::saturating_add)
    }

    /// How much connections hold now. Said before each input, or once in a while.
    pub fn set_buffers(&mut self, buffers: Buffers) {
        self.buffers = buffers;
        let held = self.memory().saturating_add(buffers.incoming).saturating_add(buffers.outgoing);
        self.messages.set_pace(held, buffers.kept_free);
    }

    pub(super) fn memory_view(&self) -> MemoryView {
        let Buffers { incoming, outgoing, kept_free, waiting, refused, closed } = self.buffers;
        let (messages, jobs, archive) = (self.messages.bytes(), self.jobs.bytes(), self.archive.bytes() as u64);
        let (events, dead) = (self.memory() - messages - jobs - archive, self.messages.dead_bytes());
        let parts = MemoryView { messages, dead, jobs, events, archive, incoming, outgoing, ..MemoryView::default() };
        MemoryView { kept_free, waiting, refused, closed, ..parts }.summed()
    }
}
