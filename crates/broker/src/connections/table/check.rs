//! Invariants of connections. Tests and the simulator call this after every step; a broker does not.

use super::super::{Connections, LocalEngine};
use super::Connection;
use crate::storage::Storage;

impl Connection {
    /// Bytes that may wait beyond the limit are part of the waiting bytes.
    pub(super) fn check(&self) {
        let (slot_limited, longest, waiting) = (self.slot_limited, self.longest, self.waiting());
        assert!(
            slot_limited <= waiting,
            "connection {:?}: {slot_limited} bytes are limited by slots, and only {waiting} wait",
            self.id
        );
        assert!(longest <= waiting, "connection {:?}: a frame of {longest} bytes, and {waiting} wait", self.id);
    }
}

impl<K: Storage> Connections<LocalEngine<K>> {
    /// Asserts every invariant of the connections and of the engine.
    pub fn sanity_check(&self) {
        self.table.iter().for_each(Connection::check);
        self.engine().sanity_check();
    }
}
