//! `cargo xtask bench`: Turno beside the limit and the peers, in the same minute, as ratios.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod backlog;
mod budget;
mod chart;
mod fanout;
mod farm;
mod gateway;
mod growth;
mod line;
mod link;
mod load;
mod log;
mod machine;
mod memory;
mod native;
mod options;
mod overload;
mod parallel;
mod peers;
mod plain_log;
mod process;
mod protocol;
mod relay;
mod report;
mod rounds;
mod rules;
mod server;
mod spread;
mod system;
mod table;
mod takeover;
mod tasks;
mod works;
mod zmtp;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser as _, ValueEnum as _};
use fastrand::Rng;

use crate::options::{Arguments, Other, WorkOptions};
use crate::overload::workers;
use crate::peers::install;
use crate::report::{Head, LeftOut, Report};
use crate::rules::canceller::CancelWay;
use crate::spread::clock_seed;
use crate::system::System;
use crate::works::Work;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("turno-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The first word may name a part that runs as a process of its own; those are not for people.
fn run(words: &[String]) -> Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let figures = match words[..] {
        ["relay"] => return relay::run(),
        ["overload-workers", address, micros] => return workers::run(address.parse()?, micros.parse()?),
        ["hold", system, address] => return takeover::hold(named(system)?, address.parse()?),
        ["farm-workers", foreman, workers] => return farm::workers::run(foreman.parse()?, workers.parse()?),
        ["stamp"] => return rules::standby::stamp(),
        ["canceller", way, address] => {
            return rules::canceller::run(
                CancelWay::from_str(way, false).ok().context("no such way")?,
                address.parse()?,
            );
        }
        ["killed", system, address, _] => takeover::run(named(system)?, address.parse()?)?,
        ["connections", system, address, pids] => {
            memory::connections(named(system)?, address.parse()?, &numbers(pids)?)?
        }
        ["messages", system, address, pids] => memory::messages(named(system)?, address.parse()?, &numbers(pids)?)?,
        ["pending", _, address, pids, count] => backlog::pending(address.parse()?, &numbers(pids)?, count.parse()?)?,
        ["drain", _, address, _, count] => backlog::drain(address.parse()?, count.parse()?)?,
        ["beside", address] => parallel::run(address.parse()?)?,
        ["events", system, address, pids, subscribers] => {
            fanout::run(named(system)?, address.parse()?, &numbers(pids)?, subscribers.parse()?)?
        }
        ["load", system, address, pids, shape] => {
            load::run(named(system)?, address.parse()?, &numbers(pids)?, serde_json::from_str(shape)?)?
        }
        _ => return measure(Arguments::parse()),
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

fn named(system: &str) -> Result<System> {
    System::parse(system).with_context(|| format!("no system is called {system}"))
}

fn numbers(pids: &str) -> Result<Vec<u32>> {
    pids.split(',').map(|pid| Ok(pid.parse()?)).collect()
}

fn measure(wanted: Arguments) -> Result<()> {
    match wanted.other {
        None => bench(&wanted.works),
        Some(Other::Farm(options)) => farm::run(&options),
        Some(Other::Growth(options)) => growth::run(&options),
        Some(Other::Overload(options)) => overload::run(&options),
        Some(Other::Rule(rule)) => rules::run(&rule),
        Some(Other::Log(options)) => log::run(&options),
        Some(Other::Chart(options)) => chart::run(&options),
    }
}

fn bench(options: &WorkOptions) -> Result<()> {
    let head = Head::now(options.server.routers)?;
    let seed = options.seed.map_or_else(clock_seed, Ok)?;
    // Servers inherit it; connections by the thousand need it.
    process::raise_file_limit(0)?;
    println!("{head}; order of systems by seed {seed}");
    let works = Vec::new();
    let mut report = Report { head, runs: options.runs, seed, works, left_out: Vec::new(), fairness: None };
    let systems = systems(options, &mut report.left_out);
    let mut dice = Rng::with_seed(seed);
    for work in &options.works {
        let systems = systems_of(*work, &systems, &mut report.left_out);
        let result = rounds::run(*work, &systems, options, &mut dice);
        println!("{}", table::work(&result).trim_end());
        report.works.push(result);
        // Written after each work, so that a run that is cut short is not lost.
        report.fairness = rounds::fairness(&report.works);
        report::write(options.server.json.as_deref(), &report)?;
    }
    if let Some(fairness) = &report.fairness {
        println!("\n{}", table::fairness(fairness));
    }
    for LeftOut { system, reason } in &report.left_out {
        println!("{system} is left out: {reason}");
    }
    check_turno(&report)
}

/// Turno, and the peers if they are asked for; of those only the ones that can be had.
fn systems(options: &WorkOptions, left_out: &mut Vec<LeftOut>) -> Vec<System> {
    let mut systems = vec![System::Turno];
    if options.peers {
        for peer in System::PEERS {
            if can_be_had(peer, left_out) {
                systems.push(peer);
            }
        }
    }
    systems
}

/// Whether it is installed, now. Why not is kept.
fn can_be_had(peer: System, left_out: &mut Vec<LeftOut>) -> bool {
    let Err(error) = install::ensure(peer) else { return true };
    let reason = format!("{error:#}");
    println!("{peer} is left out: {reason}");
    left_out.push(LeftOut { system: peer.name().to_owned(), reason });
    false
}

/// A peer that is the measure of a work stands beside Turno there whenever it can be had for nothing, and if it is the
/// only one, in any case.
fn systems_of(work: Work, systems: &[System], left_out: &mut Vec<LeftOut>) -> Vec<System> {
    let mut systems = systems.to_vec();
    let known = |peer: &System| systems.contains(peer) || left_out.iter().any(|out| out.system == peer.name());
    if let Some(peer) = work.measure_peer().filter(|peer| !known(peer))
        && (install::is_there(peer) || work.needs_peer() && can_be_had(peer, left_out))
    {
        systems.push(peer);
    }
    systems
}

/// A peer may fail; Turno may not.
fn check_turno(report: &Report) -> Result<()> {
    for work in &report.works {
        let turno = work.systems.iter().find(|one| one.name == System::Turno.name());
        if let Some(failure) = turno.and_then(|one| one.failure.as_ref()) {
            bail!("turno failed in {}, {failure}", work.work);
        }
    }
    Ok(())
}
