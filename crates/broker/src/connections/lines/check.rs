//! What connections promise of themselves. Tests and the simulator call this after every step; a broker does not.

use super::super::{Connections, LocalEngine};
use super::Line;
use crate::keeper::Keep;

impl Line {
    /// What may wait beyond the limit is part of what waits.
    pub(super) fn check(&self) {
        let (owed, longest, waiting) = (self.owed, self.longest, self.waiting());
        assert!(owed <= waiting, "connection {:?}: {owed} bytes are owed, and {waiting} wait", self.id);
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
