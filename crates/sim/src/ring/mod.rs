//! Worlds of another kind: members of a ring, the wires between them, and one clock.
//!
//! The nodes are the real ones (`turno_engine::ring::Node`). Ours are dialling, greetings, heartbeats, bytes on their way,
//! and what an admin and the machine do to a broker. See ARCHITECTURE.md, "The ring in the simulator".

mod calm;
mod liar;
mod oracle;
mod weather;
mod wires;
mod world;

pub(crate) use self::world::World;

/// The first seed whose world is a ring.
pub const RING_SEEDS: u64 = 2_000_000_000;

impl World {
    /// A storm, and the calm after it.
    pub(crate) fn whole_run(&mut self) {
        self.storm();
        self.calm_down();
        self.heal();
        self.end();
    }

    /// Times that a member was asked for a publication that came round.
    pub(crate) const fn judged(&self) -> u64 {
        self.oracle.judged
    }
}
