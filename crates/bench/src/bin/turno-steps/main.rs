//! `turno-steps NAME COUNT` does one small step of the hot path COUNT times and says nothing; `turno-steps` alone
//! lists the names. `cargo xtask steps` runs it below valgrind twice and takes the difference, so that starting
//! and warming up do not count.
//!
//! Nothing but NAME and COUNT may decide what is executed: no clock, no chance, no hashing, no environment.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod broker;
mod codec;
mod engine;
mod topics;

use std::process::ExitCode;

/// Does a step so many times.
type Run = fn(u32);

/// Steps done before counting means anything: tables have their size, lists have their members.
const WARM_UP: u32 = 1_000;

fn steps() -> impl Iterator<Item = (&'static str, Run)> {
    codec::STEPS.iter().chain(engine::STEPS).chain(topics::STEPS).chain(broker::STEPS).copied()
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            for (name, _) in steps() {
                println!("{name}");
            }
            ExitCode::SUCCESS
        }
        [name, count] => {
            let run = steps().find(|(known, _)| *known == name).map(|(_, run)| run);
            let (Some(run), Ok(count)) = (run, count.parse::<u32>()) else { return usage() };
            run(WARM_UP.saturating_add(count));
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: turno-steps [NAME COUNT]");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_runs_and_has_a_name_of_its_own() {
        let mut names: Vec<&str> = steps().map(|(name, _)| name).collect();
        for (_, run) in steps() {
            run(10);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), steps().count());
    }
}
