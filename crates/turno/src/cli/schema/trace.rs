//! The way of a message, as programs read it.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::{Moment, WorkerId};

/// One step of a message's way.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HopBody {
    /// `through` (another broker, before this one), `accepted` (by this broker), `crossed` (to another broker), `at_worker`,
    /// or the word that says why it goes no further.
    pub(crate) hop: String,
    /// When; null where this broker does not know.
    pub(crate) at: Option<Moment>,
    /// The broker's name, or its id where that is not known.
    pub(crate) broker: String,
    /// The id of the worker that has it.
    pub(crate) worker: Option<WorkerId>,
    /// The same in a sentence.
    pub(crate) text: String,
}

/// The way of a message, as far as a broker knows it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TraceDocument {
    /// The message's id, the same at every broker.
    pub(crate) id: String,
    /// Its queue.
    pub(crate) queue: String,
    /// Attempts begun so far.
    pub(crate) attempts: u16,
    /// In order.
    pub(crate) hops: Vec<HopBody>,
}
