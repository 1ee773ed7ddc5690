//! Documents about the broker: its readiness and its state.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::view::BrokerView;

/// Printed once when a broker is ready. A gateway that is off is null.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ready {
    /// The first native address really bound.
    pub(crate) native: Option<String>,
    /// Every native address really bound.
    pub(crate) listen: Vec<String>,
    /// The path of the Unix socket.
    pub(crate) unix: Option<String>,
    /// The foreman's address.
    pub(crate) foreman: Option<String>,
    /// Every address for ZeroMQ programs really bound, but those for LMQ programs.
    pub(crate) zmq: Vec<String>,
    /// Every address for LMQ programs really bound.
    pub(crate) lmq: Vec<String>,
    /// The ring's address.
    pub(crate) ring: Option<String>,
}

/// The answer of `turno status`, `turno drain` and `turno resume`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusDocument<'a> {
    pub(crate) broker: &'a BrokerView,
}
