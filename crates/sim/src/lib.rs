//! Many clients, workers and brokers on one seeded clock, with faults.
//!
//! Everything that decides is the real thing: the engine, the broker's `Connections` with codec and sessions, the core of
//! the client, the store with its committer. Only sockets, disks, clocks and chance are ours. A run is a storm, with faults of every kind, and then a
//! calm in which everything must come to its end. An oracle beside the system knows what was asked and complains
//! at the first thing that cannot be. The same seed always gives the same run.

mod archive;
mod asking;
mod body;
mod broadcasts;
mod calm;
mod cancels;
mod client;
mod clocks;
mod crossings;
mod disk;
mod draining;
mod drops;
mod engines;
mod exclusive;
mod failed;
mod farm;
mod fences;
mod frames;
mod habits;
mod hearing;
mod job_workers;
mod keeping;
mod later;
mod leaving;
mod letters;
mod liar;
mod links;
mod listener;
mod net;
mod oracle;
mod order;
mod output;
mod pump;
mod queue_settings;
mod retries;
mod ring;
mod rng;
mod rogue;
mod stale_holder;
mod submitter;
mod tasks;
mod topics;
mod trace;
mod visit;
mod weather;
mod worker;
mod world;
mod zmq;

pub use engines::ENGINE_SEEDS;
pub use failed::{FailedSeed, failed_seeds};
pub use links::LINKED_SEEDS;
pub use ring::RING_SEEDS;

use std::any::Any;
use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::trace::Trace;
use crate::world::World;

/// How a run went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// One number for all that happened.
    pub hash: u64,
    /// Events of the whole run.
    pub steps: u64,
    /// Questions that got their answer.
    pub answered: u64,
    /// Questions that ended otherwise.
    pub failed: u64,
    /// Exclusive queues that were given to somebody.
    pub tokens: u64,
    /// Replies that came under an older token.
    pub fenced_off: u64,
    /// Tasks of jobs that a worker started.
    pub tasks: u64,
    /// Events that brokers told those who listen.
    pub events: u64,
    /// Events that they left out, and said so.
    pub dropped: u64,
    /// Messages that crossed a link between brokers.
    pub crossed: u64,
    /// Publications that came round a ring.
    pub came_round: u64,
    /// Messages that brokers said to ZeroMQ peers.
    pub zmq: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        let Self {
            hash,
            steps,
            answered,
            failed,
            tokens,
            fenced_off,
            tasks,
            events,
            dropped,
            crossed,
            came_round,
            zmq,
        } = other;
        self.hash ^= hash;
        self.steps += steps;
        self.answered += answered;
        self.failed += failed;
        self.tokens += tokens;
        self.fenced_off += fenced_off;
        self.tasks += tasks;
        self.events += events;
        self.dropped += dropped;
        self.crossed += crossed;
        self.came_round += came_round;
        self.zmq += zmq;
    }
}

/// The summary of many runs.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, answered, tokens, fenced_off, tasks, events, dropped, crossed, came_round, zmq, .. } = self;
        write!(
            f,
            "{steps} events, {answered} answers, {tokens} tokens ({fenced_off} replies under old ones), {tasks} tasks, \
             {events} events told ({dropped} left out), {crossed} crossings, {came_round} publications that came round, {zmq} messages to ZeroMQ peers"
        )
    }
}

/// The violation of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The seed that shows it again.
    pub seed: u64,
    /// The event it showed at.
    pub step: u64,
    /// The broken rule.
    pub what: String,
    /// The last events before it.
    pub last: String,
}

/// How a seed is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Events of the storm.
    pub steps: u64,
    /// Every event is printed.
    pub aloud: bool,
    /// The brokers' own `sanity_check` is left out: only what shows from outside counts.
    pub blind: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { steps: 2_000, aloud: false, blind: false }
    }
}

/// Runs one seed.
pub fn run(seed: u64, how: RunOptions) -> Result<Outcome, Violation> {
    let trace = if how.aloud { Trace::aloud() } else { Trace::default() };
    if seed >= ENGINE_SEEDS {
        return engines::run(seed, how, trace);
    }
    if seed >= RING_SEEDS {
        return ring::run(seed, how, trace);
    }
    let mut world = World::new(seed, trace);
    world.blind = how.blind;
    let result = catch_unwind(AssertUnwindSafe(|| {
        world.storm(world.storm_steps(how.steps));
        world.calm_down();
        world.settle();
        world.go_round();
        world.publish_to_all();
        world.zmq_goes_round();
        world.crowd_out();
        world.look_after_queues();
        world.send_again_later();
        world.receive_visitors();
    }));
    match result {
        Ok(()) => Ok(Outcome {
            hash: world.trace.hash(),
            steps: world.steps,
            answered: world.oracle.answered,
            failed: world.oracle.failed,
            tokens: world.oracle.fences.granted,
            fenced_off: world.oracle.fences.fenced_off,
            tasks: world.oracle.tasks.started,
            events: world.oracle.topics.events,
            dropped: world.oracle.topics.dropped,
            crossed: world.oracle.crossings.count,
            came_round: 0,
            zmq: world.oracle.zmq.count,
        }),
        Err(panic) => Err(violation(seed, world.steps, &*panic, &world.trace)),
    }
}

/// Makes a violation of a panic.
fn violation(seed: u64, step: u64, panic: &(dyn Any + Send), trace: &Trace) -> Violation {
    let text = panic.downcast_ref::<String>().cloned();
    let what = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let what = what.unwrap_or_else(|| "a panic without words".to_owned());
    Violation { seed, step, what, last: trace.last() }
}
