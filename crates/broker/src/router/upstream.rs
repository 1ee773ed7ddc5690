//! The way from a router to the engine: direct on the same thread, else a mailbox.

use std::fmt::Debug;
use std::sync::Arc;

use turno_engine::{Input, PeerSink};
use turno_proto::model::{Mono, limits};

use crate::connections::{EngineHandle, LocalEngine};
use crate::mailbox::Mailbox;
use crate::storage::Storage as _;
use crate::turn::work_of;

/// An engine handle, as the tasks of a router know it.
pub(crate) trait Upstream: EngineHandle + Debug + 'static {
    /// That many bytes were read: what waits to be handed over holds about as much.
    fn took(&mut self, _bytes: usize) {}

    /// When the engine wants to be woken, if it is here.
    fn next_deadline(&self) -> Option<Mono> {
        None
    }

    /// Whether something waits to be handed over, to the engine or to the disk.
    fn has_unsent(&self) -> bool {
        false
    }

    /// Hands over what waits. Once a tick, after the connections that were ready had their turn.
    fn post(&mut self) {}

    /// Where readers must wait for room.
    fn mailbox(&self) -> Option<&Arc<Mailbox<Input>>> {
        None
    }

    /// Whether the engine, if it is here, said that the drain is over.
    fn is_drained(&self) -> bool {
        false
    }

    /// Whether the node of the ring, if it is here, has something to say to the host of the broker.
    fn has_ring_reports(&self) -> bool {
        false
    }
}

impl Upstream for LocalEngine {
    fn next_deadline(&self) -> Option<Mono> {
        self.engine.next_deadline()
    }

    fn has_unsent(&self) -> bool {
        self.storage.has_unsent()
    }

    fn post(&mut self) {
        self.storage.post();
    }

    fn is_drained(&self) -> bool {
        self.drained().is_some()
    }

    fn has_ring_reports(&self) -> bool {
        Self::has_ring_reports(self)
    }
}

/// Inputs on their way to another thread.
#[derive(Debug)]
pub(super) struct InputBatch {
    inputs: Vec<Input>,
    bytes: usize,
    to: Arc<Mailbox<Input>>,
}

impl InputBatch {
    pub(super) fn new(to: Arc<Mailbox<Input>>) -> Self {
        Self { inputs: Vec::new(), bytes: 0, to }
    }
}

impl EngineHandle for InputBatch {
    fn put(&mut self, _now: Mono, input: Input, _peers: &mut impl PeerSink) {
        // Others wait behind it, however few bytes it has.
        self.bytes += (work_of(&input) as usize - 1) * limits::MAIL_WORK_BYTES;
        self.inputs.push(input);
    }
}

impl Upstream for InputBatch {
    fn took(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    fn has_unsent(&self) -> bool {
        !self.inputs.is_empty()
    }

    fn post(&mut self) {
        self.to.post(&mut self.inputs, std::mem::take(&mut self.bytes));
    }

    fn mailbox(&self) -> Option<&Arc<Mailbox<Input>>> {
        Some(&self.to)
    }
}

#[cfg(test)]
mod tests {
    use turno_engine::Effect;
    use turno_proto::model::ConnId;
    use turno_proto::model::admin::AdminCall;

    use super::*;

    /// A mailbox is full when what it holds takes long, not only when it is long.
    #[test]
    fn calls_weigh_more_than_their_bytes() {
        let mailbox = Arc::new(Mailbox::new());
        let mut mail = InputBatch::new(Arc::clone(&mailbox));
        let conn = ConnId { index: 0, generation: 1 };
        let mut none: Vec<Effect> = Vec::new();
        mail.took(100);
        mail.put(Mono::ZERO, Input::Ready { conn }, &mut none);
        mail.post();
        assert!(mailbox.has_room(100), "a plain frame is what its bytes are");
        mail.took(20);
        mail.put(Mono::ZERO, Input::Admin { conn, seq: 1, call: AdminCall::Status }, &mut none);
        mail.post();
        let more = (limits::TURN_WORK_HEAVY as usize - 1) * limits::MAIL_WORK_BYTES;
        assert!(mailbox.has_room(120 + more) && !mailbox.has_room(120 + more - 1));
    }
}
