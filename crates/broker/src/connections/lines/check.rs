//! Invariants of connections. Tests and the simulator call this after every step; a broker does not.

use super::super::{Connections, LocalEngine};
use super::Line;
use crate::keeper::Keep;

impl Line {
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

impl<K: Keep> Connections<LocalEngine<K>> {
    /// Asserts every invariant of the connections and of the engine.
    pub fn sanity_check(&self) {
        self.lines.iter().for_each(Line::check);
        self.engine().sanity_check();
    }
}
