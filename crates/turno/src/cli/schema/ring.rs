//! The ring: columns of its members.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::ring::view::{MemberView, RingView};

use crate::cli::table::{Column, Row, columns};
use crate::cli::words::one_line;

impl Row for MemberView {
    const COLUMNS: &'static [Column<Self>] = columns![
        sid;
        role;
        incarnation;
        address = |row, _| one_line(&row.address);
        native = |row, _| row.native.as_deref().map(one_line).unwrap_or_default();
    ];

    fn name(&self) -> String {
        self.sid.to_string()
    }
}

/// The answer of `turno ring`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RingDocument<'a> {
    /// As it is now.
    pub(crate) ring: &'a RingView,
}
