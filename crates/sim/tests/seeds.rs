//! A few seeds with debug assertions on; `cargo xtask test` runs two thousand optimised ones as well.

use turno_sim::{FailedSeed, RING_SEEDS, RunOptions, failed_seeds, run};

const SHORT: RunOptions = RunOptions { steps: 1_000, aloud: false, blind: false };

/// Proves I1, I2, I3, I4, I5, I9, I10, I11, I12, I13, I15 and I21, and S1.35, S2.9, S2.10, S2.11, S2.13, S2.17, S2.18,
/// S2.30, S2.31 and S2.32 for these seeds: the oracle complains about none of them.
#[test]
fn some_seeds_in_bad_weather() {
    let mut answered = 0;
    for seed in 1..=40 {
        match run(seed, SHORT) {
            Ok(outcome) => answered += outcome.answered,
            Err(violation) => panic!("seed {seed}: {}\n{}", violation.what, violation.last),
        }
    }
    assert!(answered > 1_000, "a storm in which hardly anyone gets an answer proves little: {answered}");
}

/// Proves I8 for these seeds, and S2.19, S2.22, S2.24 and S2.26: exclusive queues change hands. Replies under old tokens are
/// rare, some fifty in a thousand seeds of full length; `cargo xtask sim` tells how many it saw.
#[test]
fn exclusive_queues_change_hands() {
    let mut tokens = 0;
    for seed in 41..=90 {
        match run(seed, SHORT) {
            Ok(outcome) => tokens += outcome.tokens,
            Err(violation) => panic!("seed {seed}: {}\n{}", violation.what, violation.last),
        }
    }
    assert!(tokens > 100, "{tokens} holders prove little");
}

/// Proves I19 and I20 for these seeds, and S4.73, S4.74, S4.75, S4.76, S4.77, S4.79 and S4.82: tasks run at workers that
/// crash, reconnect and lie, under a foreman that is restarted.
#[test]
fn jobs_in_bad_weather() {
    let mut tasks = 0;
    for seed in 71..=110 {
        match run(seed, SHORT) {
            Ok(outcome) => tasks += outcome.tasks,
            Err(violation) => panic!("seed {seed}: {}\n{}", violation.what, violation.last),
        }
    }
    assert!(tasks > 200, "{tasks} tasks prove little");
}

/// Proves I16, I17 and I18 for these seeds, and S3.1, S3.4, S3.14, S3.24, S3.29, S3.36 and S3.43: members of a ring join, leave and
/// fall, and what they publish reaches all that stay, once and in order.
#[test]
fn rings_in_bad_weather() {
    let mut came_round = 0;
    for seed in 1..=60 {
        match run(RING_SEEDS + seed, SHORT) {
            Ok(outcome) => came_round += outcome.came_round,
            Err(violation) => panic!("seed {}: {}\n{}", violation.seed, violation.what, violation.last),
        }
    }
    assert!(came_round > 10_000, "{came_round} publications that came round prove little");
    let once = run(RING_SEEDS + 7, SHORT).expect("no violation");
    assert_eq!(run(RING_SEEDS + 7, SHORT).expect("no violation"), once);
}

/// Proves I2, I4, I9, I12, I13 and I21 for ZeroMQ peers of these seeds: they ask, work, push, pull, publish and subscribe among
/// native peers.
#[test]
fn zeromq_peers_in_bad_weather() {
    let mut messages = 0;
    for seed in (93..=180).step_by(3) {
        match run(seed, SHORT) {
            Ok(outcome) => messages += outcome.zmq,
            Err(violation) => panic!("seed {seed}: {}\n{}", violation.what, violation.last),
        }
    }
    assert!(messages > 2_000, "{messages} messages to ZeroMQ peers prove little");
}

/// Proves I22: the same seed gives the same run, and another seed another one.
#[test]
fn a_seed_is_a_run() {
    let once = run(7, SHORT).expect("no violation");
    assert_eq!(run(7, SHORT).expect("no violation"), once);
    assert_ne!(run(8, SHORT).expect("no violation").hash, once.hash);
}

/// The seeds of `seeds.txt`. What they run through changes with the simulator; the tables of the engine hold the cases themselves.
#[test]
fn seeds_that_once_failed() {
    for FailedSeed { seed, why } in failed_seeds() {
        assert!(!why.is_empty(), "seed {seed}: the list says what was wrong");
        if let Err(violation) = run(seed, RunOptions { steps: 2_000, ..SHORT }) {
            panic!("seed {seed}: {}\n{}", violation.what, violation.last);
        }
    }
}
