//! Invariants that concern several machines. Tests, fuzzing and the simulator call this after every step; a broker does
//! not.

use super::Engine;

impl Engine {
    /// Asserts every invariant that one broker's state can show.
    pub fn sanity_check(&self) {
        self.messages.check(&self.jobs);
        let (settings, peers, draining) = self.messages.lend_to_check();
        self.jobs.check(settings, peers, draining);
        self.topics.check();
        self.archive.check(&self.jobs);
        if let Some(host) = &self.ring {
            host.check();
        }
    }
}
