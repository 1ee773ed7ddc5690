//! Endpoints for ZeroMQ programs and their peers: columns and listings.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::zmq::EndpointView;

use crate::cli::table::{Column, Row, columns};
use crate::cli::words::one_line;

impl Row for EndpointView {
    const COLUMNS: &'static [Column<Self>] = columns![
        name = |row, _| one_line(&row.name);
        address = |row, _| one_line(&row.address);
        queue;
        role;
        wide mechanism;
        peers_all as "PEERS";
        received;
        sent;
        wide withheld;
        wide topic;
        wide bad_envelope;
        wide bad_topic;
        wide refused;
        wide bad_handshake;
    ];

    fn name(&self) -> String {
        one_line(&self.name)
    }
}

/// Endpoints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ZmqListDocument<'a> {
    /// In the order of the configuration, that of `listen.zmq` first.
    pub(crate) endpoints: &'a [EndpointView],
    /// Always null: there is one page.
    pub(crate) next: Option<String>,
}

/// One endpoint.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ZmqDocument<'a> {
    /// With its peers.
    pub(crate) endpoint: &'a EndpointView,
}
