//! `cargo xtask sim`: runs seeds until one shows a violation.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod commit;

use std::num::ParseIntError;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use clap::Parser;
use turno_sim::{
    ENGINE_SEEDS, FailedSeed, LINKED_SEEDS, Outcome, RING_SEEDS, RunOptions, Violation, failed_seeds, run,
};

use crate::commit::commit;

/// Fresh seeds begin here at the earliest, and as many behind that at the latest.
const FRESH_FROM: u64 = 10_000_000;
const FRESH_RANGE: u64 = 900_000_000;

/// Many brokers, clients and workers in bad weather: runs seeds until one shows a violation
///
/// The real engine, codec and client core on one seeded clock and a network that breaks, with an oracle beside them. Stops at
/// the first violation and says how to see it again. The seeds of crates/sim/seeds.txt, which once failed, are run first.
#[derive(Parser)]
#[command(bin_name = "cargo xtask sim")]
struct Wanted {
    /// How many worlds
    #[arg(long, default_value_t = 2_000, value_parser = number)]
    seeds: u64,
    /// How many rings as well, seeds from 2000000000 on; none with --links
    #[arg(long, default_value_t = 1_000, value_parser = number)]
    rings: u64,
    /// How many engines by themselves as well, seeds from 3000000000 on; none with --links
    #[arg(long, default_value_t = 2_000, value_parser = number)]
    engines: u64,
    /// How many worlds in which brokers are linked as well, seeds from 1000000000 on; every tenth ordinary world is one, too
    #[arg(long, default_value_t = 0, value_parser = number)]
    linked: u64,
    /// Only linked worlds, as many as --seeds says
    #[arg(long)]
    links: bool,
    /// The first seed of each kind
    #[arg(long, default_value_t = 1, value_parser = number)]
    from: u64,
    /// Choose the first seed from the commit and the time, and print it
    #[arg(long)]
    fresh: bool,
    /// Events of the storm
    #[arg(long, default_value_t = RunOptions::default().steps, value_parser = number)]
    steps: u64,
    /// Replay one seed with a readable trace
    #[arg(long, value_parser = number)]
    seed: Option<u64>,
    /// First run so many seeds twice and compare their traces
    #[arg(long, default_value_t = 0, value_parser = number)]
    twice: u64,
    /// Leave out the brokers' own checks: only the oracle judges
    #[arg(long)]
    blind: bool,
    /// Write to this file how many seeds of each kind passed
    #[arg(long)]
    tally: Option<String>,
}

fn number(text: &str) -> Result<u64, ParseIntError> {
    text.replace('_', "").parse()
}

fn main() -> ExitCode {
    let wanted = Wanted::parse().settled();
    // A violation is reported once, in words, instead of by each thread's own message.
    std::panic::set_hook(Box::new(|_| {}));
    let verdict = match wanted.seed {
        Some(seed) => run(seed, RunOptions { aloud: true, ..wanted.how() }).map(|outcome| println!("{outcome:?}")),
        None => twice(&wanted).and_then(|()| many(&wanted)),
    };
    match verdict {
        Ok(()) => write_tally(&wanted),
        Err(violation) => {
            report(&violation, wanted.how());
            ExitCode::FAILURE
        }
    }
}

impl Wanted {
    fn how(&self) -> RunOptions {
        RunOptions { steps: self.steps, blind: self.blind, ..RunOptions::default() }
    }

    /// Applies `--links` and `--fresh`.
    fn settled(mut self) -> Self {
        if self.links {
            (self.seeds, self.rings, self.engines, self.linked) = (0, 0, 0, self.linked + self.seeds);
        }
        if self.fresh {
            self.from = fresh_seed();
            let Self { seeds, rings, engines, linked, from, .. } = self;
            println!(
                "fresh seeds from {from} on (commit {}); the same again: \
                 cargo xtask sim --from {from} --seeds {seeds} --rings {rings} --engines {engines} --linked {linked}",
                commit()
            );
        }
        self
    }
}

/// A first seed that no earlier run had, and that can be told to a later one.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // FNV-1a over the commit and the time.
    let bytes = commit().into_bytes().into_iter().chain(now.as_millis().to_le_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    FRESH_FROM + hash % FRESH_RANGE
}

/// The engine that is run beside a world.
const fn engine_seed(seed: u64) -> u64 {
    ENGINE_SEEDS + seed % LINKED_SEEDS
}

/// The ring that is run beside a world.
const fn ring_seed(seed: u64) -> u64 {
    RING_SEEDS + seed % LINKED_SEEDS
}

/// The linked world that is run beside a world.
const fn linked_seed(seed: u64) -> u64 {
    LINKED_SEEDS + seed % LINKED_SEEDS
}

/// I22: the same seed gives the same run.
fn twice(wanted: &Wanted) -> Result<(), Violation> {
    let all = wanted.from..wanted.from + wanted.twice;
    let first = if wanted.seeds == 0 { linked_seed } else { |seed| seed };
    let beside = all.clone().flat_map(|seed| {
        let ring = (wanted.rings > 0).then(|| ring_seed(seed));
        ring.into_iter().chain((wanted.engines > 0).then(|| engine_seed(seed)))
    });
    for seed in all.map(first).chain(beside) {
        let (first, second) = (run(seed, wanted.how())?, run(seed, wanted.how())?);
        if first != second {
            let what = format!("I22: two runs of one seed differ: {first:?} {second:?}");
            return Err(Violation { seed, step: 0, what, last: String::new() });
        }
    }
    if wanted.twice > 0 {
        println!("{} seeds gave the same trace twice, and as many of rings", wanted.twice);
    }
    Ok(())
}

fn many(wanted: &Wanted) -> Result<(), Violation> {
    let begun = Instant::now();
    let Wanted { seeds, rings, engines, linked, from, .. } = *wanted;
    let how = wanted.how();
    // Engines and rings before worlds: they are quick.
    let failed: Vec<u64> = failed_seeds().map(|FailedSeed { seed, .. }| seed).collect();
    let replayed = failed.len() as u64;
    let all = (failed.into_iter())
        .chain((from..from + engines).map(engine_seed))
        .chain((from..from + rings).map(ring_seed))
        .chain(from..from + seeds)
        .chain((from..from + linked).map(linked_seed));
    let (next, stop) = (Mutex::new(all), AtomicBool::new(false));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut totals = Outcome::default();
        while !stop.load(Ordering::Relaxed) {
            let Some(seed) = next.lock().unwrap_or_else(PoisonError::into_inner).next() else { break };
            match run(seed, how) {
                Ok(outcome) => totals += outcome,
                Err(violation) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(violation);
                }
            }
        }
        Ok(totals)
    };
    let results: Vec<Result<Outcome, Violation>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("runs catch their panics")).collect()
    });
    let mut totals = Outcome::default();
    let mut violations = Vec::new();
    for result in results {
        match result {
            Ok(some) => totals += some,
            Err(violation) => violations.push(violation),
        }
    }
    if let Some(violation) = violations.into_iter().min_by_key(|violation| violation.seed) {
        return Err(violation);
    }
    let rate = (seeds + rings + engines + linked + replayed) as f64 / begun.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds, {rings} rings, {engines} engines, {linked} linked worlds and {replayed} seeds that once failed: no \
         violation; \
         {totals}; {rate:.0} seeds/s on {cores} cores"
    );
    Ok(())
}

fn write_tally(Wanted { seeds, rings, linked, seed, tally, .. }: &Wanted) -> ExitCode {
    let Some(path) = tally.as_ref().filter(|_| seed.is_none()) else { return ExitCode::SUCCESS };
    match fs::write(path, format!("seeds {seeds}\nrings {rings}\nlinked {linked}\n")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("turno-sim: writing {path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(violation: &Violation, how: RunOptions) {
    eprintln!("violation: {}", violation.what);
    eprintln!("seed {} at event {} of commit {}; the last events:", violation.seed, violation.step, commit());
    eprint!("{}", violation.last);
    let blind = if how.blind { " --blind" } else { "" };
    eprintln!("again, with the whole trace: cargo xtask sim --seed {} --steps {}{blind}", violation.seed, how.steps);
}
