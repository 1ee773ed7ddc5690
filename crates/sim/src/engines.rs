//! Worlds with a single engine, its peers, its clock and its disk, moved by the operations of the property tests. Here
//! they come from seeds that nobody had before.

use std::panic::{AssertUnwindSafe, catch_unwind};

use turno_oracle::{Chance, Op, Setup, World};

use crate::rng::Rng;
use crate::trace::Trace;
use crate::{Outcome, RunOptions, Violation, violation};

/// The first seed whose world is one engine.
pub const ENGINE_SEEDS: u64 = 3_000_000_000;

/// An operation does as much as so many events of other worlds.
const EVENTS_PER_OP: u64 = 10;

impl Chance for Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.range(0, end)
    }
}

/// Runs one seed: operations, and one of the ends there are.
pub(crate) fn run(seed: u64, how: RunOptions, mut trace: Trace) -> Result<Outcome, Violation> {
    let mut rng = Rng::new(seed);
    let setup = Setup::draw(&mut rng);
    let focus = setup.focus();
    trace.say(&format!("{setup:?}"));
    let mut steps = 0;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(setup, how.blind);
        while steps < how.steps / EVENTS_PER_OP {
            steps += 1;
            let op = Op::draw(&mut rng, focus);
            trace.note(world.now(), "operation", steps, world.effects());
            trace.say(&format!("{op:?}"));
            world.apply(op);
        }
        world.end(&mut rng);
        trace.note(world.now(), "end", steps, world.effects());
    }));
    match result {
        Ok(()) => Ok(Outcome { hash: trace.hash(), steps, ..Outcome::default() }),
        Err(panic) => Err(violation(seed, steps, &*panic, &trace)),
    }
}
