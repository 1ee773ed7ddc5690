//! `cargo xtask bench`: Turno beside the limit, in the same minute, as ratios.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod load;
mod peer;
mod relay;
mod server;
mod works;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::load::Shape;
use crate::peer::System;
use crate::works::{Figures, Work, measure, memory};

const USAGE: &str = "usage: turno-bench [W1 W2 W3 W6] [--runs N] [--json FILE]";

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

fn run(words: &[String]) -> Result<()> {
    match words.first().map(String::as_str) {
        Some("relay") => relay::run(),
        Some("load") => {
            let [_, system, address, shape] = words else { bail!("{USAGE}") };
            let system = if system == "Relay" { System::Relay } else { System::Turno };
            println!("{}", load::run(system, address.parse()?, shape_of(shape)?)?);
            Ok(())
        }
        _ => bench(words),
    }
}

fn shape_of(text: &str) -> Result<Shape> {
    let parts: Vec<&str> = text.split(',').collect();
    let [clients, in_flight, workers, slots, body, sends, seconds] = parts[..] else { bail!("{USAGE}") };
    Ok(Shape {
        clients: clients.parse()?,
        in_flight: in_flight.parse()?,
        workers: workers.parse()?,
        slots: slots.parse()?,
        body: body.parse()?,
        sends: sends == "1",
        seconds: seconds.parse()?,
    })
}

fn bench(words: &[String]) -> Result<()> {
    let (mut works, mut runs, mut file) = (Vec::new(), 7, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--runs" => runs = words.next().context(USAGE)?.parse()?,
            "--json" => file = Some(words.next().context(USAGE)?),
            other => works.push(Work::parse(other).context(USAGE)?),
        }
    }
    if works.is_empty() {
        works = Work::ALL.to_vec();
    }
    let mut results = serde_json::Map::new();
    for work in works {
        let result = if work == Work::W6 { memory_work()? } else { ratio_work(work, runs)? };
        results.insert(format!("{work:?}"), result);
    }
    if let Some(file) = file {
        std::fs::write(file, serde_json::to_string_pretty(&results)?)?;
    }
    Ok(())
}

/// Relay and Turno by turns, so that a noisy minute hits both; the ratio of each round, then their median.
fn ratio_work(work: Work, runs: usize) -> Result<serde_json::Value> {
    let mut rounds = Vec::new();
    for round in 0..runs {
        let order = if round % 2 == 0 { [System::Relay, System::Turno] } else { [System::Turno, System::Relay] };
        let (mut relay, mut turno) = (Figures::default(), Figures::default());
        for system in order {
            let figures = measure(work, system)?;
            match system {
                System::Relay => relay = figures,
                System::Turno => turno = figures,
            }
        }
        rounds.push((relay, turno));
    }
    let ratio = |of: fn(&Figures) -> f64| spread(rounds.iter().map(|(relay, turno)| of(turno) / of(relay)).collect());
    let (rate, p50, p99, cpu) = (ratio(|f| f.rate), ratio(|f| f.p50_us), ratio(|f| f.p99_us), ratio(|f| f.cpu_us));
    println!("{work:?}  rate / relay's {rate}  p50 / relay's {p50}  p99 / relay's {p99}  CPU / relay's {cpu}");
    for (name, figures) in
        [("relay", rounds.last().map(|round| round.0)), ("turno", rounds.last().map(|round| round.1))]
    {
        if let Some(Figures { rate, p50_us, p99_us, cpu_us }) = figures {
            println!(
                "    last round of {name}: {rate:.0}/s, p50 {p50_us} us, p99 {p99_us} us, CPU {cpu_us:.2} us each"
            );
        }
    }
    Ok(json!({"runs": runs, "rate": rate, "p50": p50, "p99": p99, "cpu": cpu}))
}

fn memory_work() -> Result<serde_json::Value> {
    let (connection, message) = memory()?;
    println!("W6  {:.2} KiB per idle connection  {message:.0} bytes per queued message of 256", connection / 1024.0);
    Ok(json!({"connection_bytes": connection, "message_bytes": message}))
}

/// Median, and the lowest and highest beside it.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    format!("{:.2} ({:.2} to {:.2})", at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}
