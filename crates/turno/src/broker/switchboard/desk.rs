//! Where the inputs of a switchboard go: to the engine beside it, or into a batch on its way to the engine's thread.

use turno_engine::{Engine, Input, Sink};
use turno_proto::model::Mono;

/// Takes inputs.
pub trait Desk {
    /// One input. What the engine makes of it at once goes to the sink.
    fn put(&mut self, now: Mono, input: Input, sink: &mut impl Sink);
}

impl Desk for Engine {
    fn put(&mut self, now: Mono, input: Input, sink: &mut impl Sink) {
        self.handle(now, input, sink);
    }
}
