//! `cargo xtask sim`: runs seeds until one shows a violation.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod commit;
mod totals;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use turno_sim::{FailedSeed, How, LINKED_SEEDS, RING_SEEDS, Violation, failed_seeds, run};

use crate::commit::commit;
use crate::totals::Totals;

const USAGE: &str =
    "usage: turno-sim [--fresh] [--seeds N] [--rings N] [--linked N] [--from S] [--steps N] [--twice N] [--blind]
       turno-sim --seed S [--steps N] [--blind]

  --seeds N    how many worlds to run (2000)
  --rings N    how many rings as well, seeds from 2_000_000_000 on (1000; none with --links)
  --linked N   how many worlds in which brokers are linked as well, seeds from 1_000_000_000 on (0; every tenth ordinary
               world is one, too)
  --links      only worlds in which brokers are linked, as many as --seeds says
  --from S     the first seed of each kind (1)
  --fresh      choose the first seed from the commit and the time, and print it
  --steps N    events of the storm (2000)
  --seed S     replay one seed with a readable trace
  --twice N    run N seeds twice and compare their traces
  --blind      leave out the brokers' own checks: only the oracle judges
  --tally F    write to the file F how many seeds of each kind passed

The seeds of crates/sim/seeds.txt, which once failed, are run first.";

/// Fresh seeds begin here at the earliest, and as many behind that at the latest.
const FRESH_FROM: u64 = 10_000_000;
const FRESH_RANGE: u64 = 900_000_000;

struct Wanted {
    seeds: u64,
    rings: u64,
    linked: u64,
    from: u64,
    how: How,
    seed: Option<u64>,
    twice: u64,
    tally: Option<String>,
}

fn main() -> ExitCode {
    let Some(wanted) = parse() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // A violation is reported once, in words, instead of by each thread's own message.
    std::panic::set_hook(Box::new(|_| {}));
    let verdict = match wanted.seed {
        Some(seed) => run(seed, How { aloud: true, ..wanted.how }).map(|outcome| println!("{outcome:?}")),
        None => twice(&wanted).and_then(|()| many(&wanted)),
    };
    match verdict {
        Ok(()) => write_tally(&wanted),
        Err(violation) => {
            report(&violation, wanted.how);
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Option<Wanted> {
    let mut wanted = Wanted {
        seeds: 2_000,
        rings: 1_000,
        linked: 0,
        from: 1,
        how: How::default(),
        seed: None,
        twice: 0,
        tally: None,
    };
    let (mut links, mut fresh) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        match flag.as_str() {
            "--blind" => wanted.how.blind = true,
            "--links" => links = true,
            "--fresh" => fresh = true,
            "--tally" => wanted.tally = Some(arguments.next()?),
            _ => {
                let number: u64 = arguments.next()?.replace('_', "").parse().ok()?;
                match flag.as_str() {
                    "--seeds" => wanted.seeds = number,
                    "--rings" => wanted.rings = number,
                    "--linked" => wanted.linked = number,
                    "--from" => wanted.from = number,
                    "--steps" => wanted.how.steps = number,
                    "--seed" => wanted.seed = Some(number),
                    "--twice" => wanted.twice = number,
                    _ => return None,
                }
            }
        }
    }
    if links {
        (wanted.seeds, wanted.rings, wanted.linked) = (0, 0, wanted.linked + wanted.seeds);
    }
    if fresh {
        wanted.from = fresh_seed();
        let Wanted { seeds, rings, linked, from, .. } = wanted;
        println!(
            "fresh seeds from {from} on (commit {}); the same again: \
             cargo xtask sim --from {from} --seeds {seeds} --rings {rings} --linked {linked}",
            commit()
        );
    }
    Some(wanted)
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
    for seed in all.clone().map(first).chain(all.filter(|_| wanted.rings > 0).map(ring_seed)) {
        let (first, second) = (run(seed, wanted.how)?, run(seed, wanted.how)?);
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
    let Wanted { seeds, rings, linked, from, how, .. } = *wanted;
    // Rings before worlds: they are quick.
    let failed: Vec<u64> = failed_seeds().map(|FailedSeed { seed, .. }| seed).collect();
    let replayed = failed.len() as u64;
    let all = (failed.into_iter())
        .chain((from..from + rings).map(ring_seed))
        .chain(from..from + seeds)
        .chain((from..from + linked).map(linked_seed));
    let (next, stop) = (Mutex::new(all), AtomicBool::new(false));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut totals = Totals::default();
        while !stop.load(Ordering::Relaxed) {
            let Some(seed) = next.lock().unwrap_or_else(PoisonError::into_inner).next() else { break };
            match run(seed, how) {
                Ok(outcome) => totals.add(&outcome),
                Err(violation) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(violation);
                }
            }
        }
        Ok(totals)
    };
    let results: Vec<Result<Totals, Violation>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("runs catch their panics")).collect()
    });
    let mut totals = Totals::default();
    let mut violations = Vec::new();
    for result in results {
        match result {
            Ok(some) => totals.join(&some),
            Err(violation) => violations.push(violation),
        }
    }
    if let Some(violation) = violations.into_iter().min_by_key(|violation| violation.seed) {
        return Err(violation);
    }
    let rate = (seeds + rings + linked + replayed) as f64 / begun.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds, {rings} rings, {linked} linked worlds and {replayed} seeds that once failed: no violation; \
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

fn report(violation: &Violation, how: How) {
    eprintln!("violation: {}", violation.what);
    eprintln!("seed {} at event {} of commit {}; the last events:", violation.seed, violation.step, commit());
    eprint!("{}", violation.last);
    let blind = if how.blind { " --blind" } else { "" };
    eprintln!("again, with the whole trace: cargo xtask sim --seed {} --steps {}{blind}", violation.seed, how.steps);
}
