//! Any bytes as a row of things that happen to the engine.

use turno_oracle::{Bytes, Op, Setup, World};

const OPS_MAX: usize = 200;

/// Plays the bytes: how the world ends, how its broker is set, and what happens. The oracle judges every effect, and the invariants of
/// the engine agree after every step.
pub fn engine_ops(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let end: [u8; 1] = bytes.array();
    let setup = Setup::draw(&mut bytes);
    let focus = setup.focus();
    let mut world = World::new(setup, false);
    for _ in 0..OPS_MAX {
        if bytes.is_empty() {
            break;
        }
        world.apply(Op::draw(&mut bytes, focus));
    }
    world.end(&mut Bytes::new(&end));
}
