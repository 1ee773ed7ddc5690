//! Anything may happen in any order: operations at random, watched by an oracle that keeps an account of its own.

use proptest::prelude::*;
use turno_oracle::{Bytes, Op, Setup, World};

proptest! {
    // Seeded: the same cases in every run, so that a failure is a change's and not the day's.
    #![proptest_config(ProptestConfig {
        cases: 400,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x7075_6e74),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    })]

    /// Proves I1, I3, I4, I5, I6, I8, I9, I11, I12, I13, S0.26, S0.28, S0.29, S1.30, S2.9, S2.12, S2.13, S2.14,
    /// S2.15, S2.21, S2.24, S2.35, S2.37, S2.40, S2.41 and S2.42 for any order of events:
    /// each request ends exactly once, in time, and never after its caller left; nothing goes out after its deadline,
    /// before its time or to a worker without room; first deliveries keep their order; no stored send is lost, whether it waits
    /// in memory or on disk, and whether the broker dies, and the disk is behind or refuses; one dedup id is one message within the
    /// hour; a broadcast goes to everyone once, and what its end tells is what happened; tokens rise, and an exclusive queue has
    /// one holder and a line that nobody overtakes; an event reaches who wants it; and when the faults stop, everything drains.
    #[test]
    fn whatever_happens(
        setup in any::<[u8; 16]>(),
        // Each operation has bytes of its own, so that a failing case shrinks by whole operations.
        ops in prop::collection::vec(any::<[u8; 20]>(), 100..200),
        end in any::<[u8; 1]>(),
    ) {
        let setup = Setup::draw(&mut Bytes::new(&setup));
        let focus = setup.focus();
        let mut world = World::new(setup, false);
        for op in ops {
            world.apply(Op::draw(&mut Bytes::new(&op), focus));
        }
        world.end(&mut Bytes::new(&end));
    }
}
