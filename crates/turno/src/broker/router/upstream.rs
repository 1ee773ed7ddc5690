//! The way from a router to the engine: none at all if it is on the same thread, else a mailbox.

use std::fmt::Debug;
use std::sync::Arc;

use turno_engine::{Input, Sink};
use turno_proto::model::Mono;

use crate::broker::keeper::Keep as _;
use crate::broker::mailbox::Mailbox;
use crate::broker::switchboard::{Desk, EngineDesk};

/// A desk, as the tasks of a router know it.
pub(in crate::broker) trait Upstream: Desk + Debug + 'static {
    /// That many bytes were read: what waits to be handed over holds about as much.
    fn took(&mut self, _bytes: usize) {}

    /// When the engine wants to be woken, if it is here.
    fn next_deadline(&self) -> Option<Mono> {
        None
    }

    /// Whether something waits to be handed over, to the engine or to the disk.
    fn has_mail(&self) -> bool {
        false
    }

    /// Hands over what waits. Once a tick, after the connections that were ready had their turn.
    fn post(&mut self) {}

    /// Where readers must wait for room.
    fn mailbox(&self) -> Option<&Arc<Mailbox<Input>>> {
        None
    }
}

impl Upstream for EngineDesk {
    fn next_deadline(&self) -> Option<Mono> {
        self.engine.next_deadline()
    }

    fn has_mail(&self) -> bool {
        self.keeper.has_mail()
    }

    fn post(&mut self) {
        self.keeper.post();
    }
}

/// Inputs on their way to another thread.
#[derive(Debug)]
pub(super) struct Mail {
    inputs: Vec<Input>,
    bytes: usize,
    to: Arc<Mailbox<Input>>,
}

impl Mail {
    pub(super) fn new(to: Arc<Mailbox<Input>>) -> Self {
        Self { inputs: Vec::new(), bytes: 0, to }
    }
}

impl Desk for Mail {
    fn put(&mut self, _now: Mono, input: Input, _sink: &mut impl Sink) {
        self.inputs.push(input);
    }
}

impl Upstream for Mail {
    fn took(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    fn has_mail(&self) -> bool {
        !self.inputs.is_empty()
    }

    fn post(&mut self) {
        self.to.post(&mut self.inputs, std::mem::take(&mut self.bytes));
    }

    fn mailbox(&self) -> Option<&Arc<Mailbox<Input>>> {
        Some(&self.to)
    }
}
