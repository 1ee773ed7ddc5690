//! The cost of an event in the engine among 100,000 filters, beside its cost among 100. Time of this thread, in which
//! nothing but publications runs: instructions, which `turno-steps` counts, say nothing of waiting for memory.

use fastrand::Rng;
use rustix::time::{ClockId, Timespec, clock_gettime};
use turno_bench::publications::{FEW, MANY, Stage, TOPICS};

use super::figures::RuleSample;
use crate::spread::median;

/// Turns of each in a round. In one, every topic is published about once.
const TURNS: usize = 20;

/// Both are there at once and take turns in an order that changes, so that what else the machine does hits both alike.
pub(super) fn measure(dice: &mut Rng) -> RuleSample {
    let mut stages = [FEW, MANY].map(Stage::among);
    for stage in &mut stages {
        stage.publish(TOPICS);
    }
    let mut nanos: [Vec<f64>; 2] = Default::default();
    let mut order = [0, 1].repeat(TURNS);
    dice.shuffle(&mut order);
    for at in order {
        let before = own_nanos();
        stages[at].publish(TOPICS);
        nanos[at].push((own_nanos() - before) / f64::from(TOPICS));
    }
    let [few, many] = nanos.map(|nanos| median(&nanos));
    RuleSample(vec![("CPU among 100,000 / among 100", many / few), ("ns among 100", few), ("ns among 100,000", many)])
}

/// The CPU time of this thread so far.
fn own_nanos() -> f64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    tv_sec as f64 * 1e9 + tv_nsec as f64
}
