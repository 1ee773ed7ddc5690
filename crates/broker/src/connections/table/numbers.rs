//! Numbers of connections, and their places in the table.

use std::sync::atomic::Ordering;

use turno_proto::model::ConnId;

use super::ConnectionTable;

impl ConnectionTable {
    /// A number for which there is no connection.
    pub(in super::super) fn reserve(&mut self) -> ConnId {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.by_place.push(None);
            u32::try_from(self.by_place.len() - 1).expect("limits keep connections far below 2^32")
        });
        let generation = self.numbers.accepted.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        ConnId { index: place << self.numbers.bits | self.numbers.router, generation }
    }

    /// The number may be used again.
    pub(in super::super) fn vacate(&mut self, id: ConnId) {
        self.vacant.push(id.index >> self.numbers.bits);
    }

    pub(in super::super) const fn place(&self, id: ConnId) -> usize {
        (id.index >> self.numbers.bits) as usize
    }
}
