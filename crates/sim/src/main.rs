//! `cargo xtask sim`: runs seeds until one shows a violation.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use turno_sim::{How, LINKED_SEEDS, RING_SEEDS, Violation, run};

const USAGE: &str =
    "usage: turno-sim [--seeds N] [--seed S] [--steps N] [--from S] [--twice N] [--rings N] [--links] [--blind]

  --seeds N   how many seeds to run (2000)
  --from S    the first of them (1)
  --steps N   events of the storm (2000)
  --seed S    replay one seed with a readable trace
  --twice N   run N seeds twice and compare their traces
  --rings N   how many seeds of rings to run as well, from 2_000_000_000 on (1000)
  --links     only worlds in which brokers are linked: seeds from 1_000_000_000 on; else every sixth is one
  --blind     leave out the brokers' own checks: only the oracle judges";

struct Wanted {
    seeds: u64,
    from: u64,
    how: How,
    seed: Option<u64>,
    twice: u64,
    rings: u64,
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
        Ok(()) => ExitCode::SUCCESS,
        Err(violation) => {
            report(&violation, wanted.how);
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Option<Wanted> {
    let mut wanted = Wanted { seeds: 2_000, from: 1, how: How::default(), seed: None, twice: 0, rings: 1_000 };
    let mut links = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        if flag == "--blind" {
            wanted.how.blind = true;
            continue;
        }
        if flag == "--links" {
            links = true;
            continue;
        }
        let number: u64 = arguments.next()?.replace('_', "").parse().ok()?;
        match flag.as_str() {
            "--seeds" => wanted.seeds = number,
            "--from" => wanted.from = number,
            "--steps" => wanted.how.steps = number,
            "--seed" => wanted.seed = Some(number),
            "--twice" => wanted.twice = number,
            "--rings" => wanted.rings = number,
            _ => return None,
        }
    }
    if links {
        wanted.from += LINKED_SEEDS;
    }
    Some(wanted)
}

/// I22: the same seed gives the same run.
fn twice(wanted: &Wanted) -> Result<(), Violation> {
    let all = wanted.from..wanted.from + wanted.twice;
    for seed in all.clone().chain(all.filter(|_| wanted.rings > 0).map(|seed| RING_SEEDS + seed % LINKED_SEEDS)) {
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
    let next = AtomicU64::new(wanted.from);
    let stop = AtomicBool::new(false);
    let [steps, answered, tokens, fenced_off, tasks, events, dropped, crossed, came_round] =
        [const { AtomicU64::new(0) }; 9];
    // Rings first: they are quick.
    let (rings, end) = (wanted.from + wanted.rings, wanted.from + wanted.rings + wanted.seeds);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let violations: Vec<Violation> = std::thread::scope(|scope| {
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    break;
                }
                let seed = if seed < rings { RING_SEEDS + seed % LINKED_SEEDS } else { seed - wanted.rings };
                match run(seed, wanted.how) {
                    Ok(outcome) => {
                        steps.fetch_add(outcome.steps, Ordering::Relaxed);
                        answered.fetch_add(outcome.answered, Ordering::Relaxed);
                        tokens.fetch_add(outcome.tokens, Ordering::Relaxed);
                        fenced_off.fetch_add(outcome.fenced_off, Ordering::Relaxed);
                        tasks.fetch_add(outcome.tasks, Ordering::Relaxed);
                        events.fetch_add(outcome.events, Ordering::Relaxed);
                        dropped.fetch_add(outcome.dropped, Ordering::Relaxed);
                        crossed.fetch_add(outcome.crossed, Ordering::Relaxed);
                        came_round.fetch_add(outcome.came_round, Ordering::Relaxed);
                    }
                    Err(violation) => {
                        stop.store(true, Ordering::Relaxed);
                        return Some(violation);
                    }
                }
            }
            None
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("runs catch their panics")).collect()
    });
    if let Some(violation) = violations.into_iter().min_by_key(|violation| violation.seed) {
        return Err(violation);
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} seeds, {} events, {} answers, {} tokens ({} replies under old ones), {} tasks, {} events told \
         ({} left out), {} crossings, {} rings with {} publications that came round, no violation; \
         {:.0} seeds/s on {cores} cores",
        wanted.seeds,
        steps.load(Ordering::Relaxed),
        answered.load(Ordering::Relaxed),
        tokens.load(Ordering::Relaxed),
        fenced_off.load(Ordering::Relaxed),
        tasks.load(Ordering::Relaxed),
        events.load(Ordering::Relaxed),
        dropped.load(Ordering::Relaxed),
        crossed.load(Ordering::Relaxed),
        wanted.rings,
        came_round.load(Ordering::Relaxed),
        (wanted.seeds + wanted.rings) as f64 / seconds,
    );
    Ok(())
}

fn report(violation: &Violation, how: How) {
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let commit = commit.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let commit = commit.filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned());
    eprintln!("violation: {}", violation.what);
    eprintln!("seed {} at event {} of commit {commit}; the last events:", violation.seed, violation.step);
    eprint!("{}", violation.last);
    let blind = if how.blind { " --blind" } else { "" };
    eprintln!("again, with the whole trace: cargo xtask sim --seed {} --steps {}{blind}", violation.seed, how.steps);
}
