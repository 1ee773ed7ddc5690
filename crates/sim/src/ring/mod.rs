//! Worlds of a ring: members, the connections between them, and one clock.
//!
//! The nodes are the real ones (`turno_engine::ring::RingNode`). Ours are dialling, greetings, heartbeats, bytes on their way,
//! and what an admin and the machine do to a broker. See "The ring" in the README of this crate.

mod calm;
mod effects;
mod liar;
mod oracle;
mod stranger;
mod weather;
mod wires;
mod world;
mod world_settings;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::world::RingWorld;
use crate::trace::Trace;
use crate::{Outcome, RunOptions, Violation, violation};

/// The first seed whose world is a ring.
pub const RING_SEEDS: u64 = 2_000_000_000;

/// Runs one seed: a storm, and the calm after it.
pub(crate) fn run(seed: u64, how: RunOptions, trace: Trace) -> Result<Outcome, Violation> {
    let mut world = RingWorld::new(seed, trace);
    world.blind = how.blind;
    let result = catch_unwind(AssertUnwindSafe(|| {
        world.storm();
        world.calm_down();
        world.heal();
        world.end();
    }));
    match result {
        Ok(()) => Ok(Outcome {
            hash: world.trace.hash(),
            steps: world.steps,
            events: world.oracle.delivered,
            came_round: world.oracle.came_round,
            ..Outcome::default()
        }),
        Err(panic) => Err(violation(seed, world.steps, &*panic, &world.trace)),
    }
}
