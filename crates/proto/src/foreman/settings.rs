//! Settings of a connection.

use super::Role;
use crate::model::limits;

/// The limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForemanSettings {
    /// Bytes of a body. Longer: closed.
    pub body_bytes_max: usize,
    /// Requests that wait for their turn. More: `overflow`.
    pub held_max: usize,
    /// The highest sequence number there is, at least 5. Tests lower it, so that RESET comes often.
    pub seq_max: u32,
}

impl ForemanSettings {
    /// HELLO is 0, and each end must get one request through before it is RESET's turn.
    const SEQ_MAX_MIN: u32 = 5;

    /// The last number of an end, which only its RESET may have.
    pub(super) fn seq_last(&self, role: Role) -> u32 {
        let max = self.seq_max.max(Self::SEQ_MAX_MIN);
        if max % 2 == role.parity() { max } else { max - 1 }
    }
}

impl Default for ForemanSettings {
    fn default() -> Self {
        Self { body_bytes_max: limits::FOREMAN_BODY_BYTES_MAX, held_max: limits::FOREMAN_HELD_MAX, seq_max: u32::MAX }
    }
}
