//! Two ends, any interleaving, numbers that run out all the time.

use proptest::prelude::*;
use turno_proto::foreman::{ErrorCode, ForemanAnswer, ForemanSettings, Role, TaskPair};

use crate::world::World;

/// One thing that happens, with a number that says how much of it or which.
fn step(world: &mut World, what: u8, how: u8) {
    let much = usize::from(how);
    match what % 16 {
        0..=2 => {
            _ = world.deliver(Role::Worker, much % 80);
        }
        3..=5 => {
            _ = world.deliver(Role::Foreman, much % 80);
        }
        6 | 7 => {
            _ = world.answer(ForemanAnswer::Ok);
        }
        8 if how < 40 => {
            _ = world.ask_hello();
        }
        8 => {
            _ = world.answer(if how < 200 { ForemanAnswer::Ok } else { ForemanAnswer::Refuse(ErrorCode::Overflow) });
        }
        // Also where there is no room, or nobody said that there is.
        9 => {
            _ = world.offer(much % 4);
        }
        10 | 11 => {
            _ = world.end_task(much);
        }
        12 => {
            let pair = world.places.keys().nth(much % world.places.len()).copied();
            let pairs = pair.map(|id| TaskPair { job: id.job, task: (how < 128).then_some(id.task) });
            world.cancel(pairs.into_iter().collect());
        }
        13 => world.pass(u64::from(how)),
        14 if how < 40 => world.reset(if how.is_multiple_of(2) { Role::Worker } else { Role::Foreman }),
        14 if how < 60 => world.reconnect(),
        15 if how < 20 => world.stop_one(),
        _ => {
            _ = world.deliver(Role::Worker, 200) + world.deliver(Role::Foreman, 200);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// However the two are interleaved: nothing waits for ever, each request is answered once, each task runs once and
    /// its end is recorded, also when RESETs cross, requests overflow and connections break. Proves S4.9, S4.12, S4.14,
    /// S4.16, S4.17, S4.19, S4.20, S4.24, S4.25, S4.26, S4.27, S4.28, S4.29, S4.31, S4.32, S4.33, S4.35, S4.59, S4.63
    /// and S4.68.
    #[test]
    fn nothing_is_lost_or_done_twice(
        seq_max in 5..14_u32,
        held_max in 0..3_usize,
        procs in 3..7_u16,
        tasks in 1..25_u32,
        steps in prop::collection::vec(any::<(u8, u8)>(), 0..300),
    ) {
        let settings = ForemanSettings { seq_max, held_max, ..ForemanSettings::default() };
        let mut world = World::new(settings, procs, tasks);
        for (what, how) in steps {
            step(&mut world, what, how);
        }
        world.settle();
        world.judge();
    }
}

/// The test above means something only if what it is about happens.
#[test]
fn resets_and_overflows_happen() {
    let settings = ForemanSettings { seq_max: 7, held_max: 0, ..ForemanSettings::default() };
    let mut world = World::new(settings, 4, 200);
    let mut dice = 1_u32;
    for _ in 0..3_000 {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, _, how, what] = dice.to_le_bytes();
        if what % 16 < 14 {
            step(&mut world, what, how);
        }
    }
    world.settle();
    world.judge();
    assert!(world.tap.resets > 50, "{} resets", world.tap.resets);
    assert!(world.tap.overflows > 10, "{} overflows", world.tap.overflows);
}
