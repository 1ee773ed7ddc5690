//! The report for people: a line per system, and a line per budget.

use std::fmt::Write as _;

use crate::report::{Fairness, SystemResult, WorkResult};
use crate::spread::MIB;
use crate::system::System;

/// Title of a column and what stands in it; a column in which nothing stands is left out.
type Column = (&'static str, fn(&SystemResult) -> Option<String>);

const COLUMNS: &[Column] = &[
    ("rate", |one| Some(one.ratios.rate?.to_string())),
    ("p50", |one| Some(one.ratios.p50?.to_string())),
    ("p99", |one| Some(one.ratios.p99?.to_string())),
    ("CPU", |one| Some(one.ratios.cpu?.to_string())),
    ("takeover", |one| Some(one.ratios.takeover?.to_string())),
    ("/ plain log", |one| Some(one.ratios.plain_log?.to_string())),
    ("store / plain log", |one| Some(one.ratios.store?.to_string())),
    ("/ redis", |one| Some(one.ratios.redis?.to_string())),
    ("1 / redis", |one| Some(one.ratios.events[0]?.to_string())),
    ("10 / redis", |one| Some(one.ratios.events[1]?.to_string())),
    ("100 / redis", |one| Some(one.ratios.events[2]?.to_string())),
    ("CPU of 1", |one| Some(one.ratios.event_cpu[0]?.to_string())),
    ("of 10", |one| Some(one.ratios.event_cpu[1]?.to_string())),
    ("of 100", |one| Some(one.ratios.event_cpu[2]?.to_string())),
    ("beside sends", |one| Some(one.ratios.beside?.to_string())),
    ("| /s", |one| Some(format!("{:.0}", one.figures.rate_per_s?))),
    ("| 1 /s", |one| Some(format!("{:.0}", one.figures.events_per_s[0]?))),
    ("10 /s", |one| Some(format!("{:.0}", one.figures.events_per_s[1]?))),
    ("100 /s", |one| Some(format!("{:.0}", one.figures.events_per_s[2]?))),
    ("CPU us", |one| Some(format!("{:.2}", one.figures.event_cpu_us[0]?))),
    ("10: us", |one| Some(format!("{:.2}", one.figures.event_cpu_us[1]?))),
    ("100: us", |one| Some(format!("{:.2}", one.figures.event_cpu_us[2]?))),
    ("p50 us", |one| Some(format!("{:.0}", one.figures.p50_us?))),
    ("p99 us", |one| Some(format!("{:.0}", one.figures.p99_us?))),
    ("CPU us", |one| Some(format!("{:.2}", one.figures.cpu_us?))),
    ("KiB/connection", |one| Some(format!("{:.2}", one.figures.connection_bytes? / 1024.0))),
    ("bytes/message", |one| Some(format!("{:.0}", one.figures.message_bytes?))),
    ("ms", |one| Some(format!("{:.2}", one.figures.takeover_ms?))),
    ("messages/sync", |one| Some(format!("{:.0}", one.figures.messages_per_sync?))),
    ("sends/s beside", |one| Some(format!("{:.0}", one.figures.beside_sends_per_s?))),
    ("durable", |one| Some(format!("{:.0}", one.figures.pending?))),
    ("bytes/durable message", |one| Some(format!("{:.0}", one.figures.durable_message_bytes?))),
    ("restart s", |one| Some(format!("{:.2}", one.figures.restart_s?))),
    ("spare disk MiB", |one| Some(format!("{:.0}", one.figures.disk_spare_bytes? / MIB))),
];

/// One work as a table.
pub(crate) fn work(result: &WorkResult) -> String {
    // The relay has a round beside each of the others.
    let others = result.systems.iter().filter(|one| one.name != System::Relay.name());
    let rounds = match others.map(|one| one.rounds.len()).max().unwrap_or(0) {
        1 => "1 round".to_owned(),
        count => format!("{count} rounds: median (lowest to highest)"),
    };
    let mut text = format!("\n{}  {}; {rounds}\n", result.work, result.about);
    let measured: Vec<&SystemResult> = result.systems.iter().filter(|one| !one.rounds.is_empty()).collect();
    let is_used = |(_, of): &&Column| measured.iter().any(|one| one.name != System::Relay.name() && of(one).is_some());
    let used: Vec<&Column> = COLUMNS.iter().filter(is_used).collect();
    let mut rows: Vec<Vec<String>> = vec![vec!["system".to_owned(), "version".to_owned()]];
    rows[0].extend(used.iter().map(|(title, _)| (*title).to_owned()));
    for one in measured {
        let mut row = vec![one.name.clone(), one.version.clone()];
        row.extend(used.iter().map(|(_, of)| of(one).unwrap_or_else(|| "–".to_owned())));
        rows.push(row);
    }
    text.push_str(&aligned(&rows));
    for one in &result.systems {
        if let Some(failure) = &one.failure {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {} broke off in {failure}", one.name);
        }
    }
    for verdict in &result.budgets {
        let _ = writeln!(text, "  turno: {verdict}");
    }
    text
}

pub(crate) fn fairness(fairness: &Fairness) -> String {
    let Fairness { relay_over_redis, at_least, is_fair } = fairness;
    let words = if *is_fair { "the relay is fair" } else { "the relay is the one to fix" };
    format!("relay's W2 rate / Redis' {relay_over_redis}, wanted ≥ {at_least}: {words}")
}

/// Words to the left, figures to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let _ = if column < 2 { write!(line, "  {cell:width$}") } else { write!(line, "  {cell:>width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Figures, Ratios, Round, Verdict};
    use crate::spread::Spread;

    fn result(name: &str, rate: f64, ratio: Option<f64>) -> SystemResult {
        let figures = Figures { rate_per_s: Some(rate), ..Figures::default() };
        let spread = |value| Spread { median: value, min: value / 2.0, max: value };
        SystemResult {
            name: name.into(),
            version: "1".into(),
            figures,
            ratios: Ratios { rate: ratio.map(spread), ..Ratios::default() },
            rounds: vec![Round { round: 1, figures, relay: None }; 2],
            failure: (name == "redis").then(|| "round 3: it hurts".to_owned()),
        }
    }

    #[test]
    fn only_what_is_measured_is_shown() {
        let verdict = |met| Verdict { figure: "rate".into(), bound: "≥ 0.7".into(), value: Some(0.75), met };
        let text = work(&WorkResult {
            work: "W2".into(),
            about: "requests".into(),
            systems: vec![result("relay", 1000.0, None), result("redis", 50.0, Some(0.05))],
            budgets: vec![verdict(Some(true)), verdict(Some(false)), verdict(None)],
        });
        let wanted = "
W2  requests; 2 rounds: median (lowest to highest)
  system  version                    rate  | /s
  relay   1                             –  1000
  redis   1        0.050 (0.025 to 0.050)    50
  redis broke off in round 3: it hurts
  turno: rate ≥ 0.7 met (0.75)
  turno: rate ≥ 0.7 missed (0.75)
  turno: rate ≥ 0.7 not measured
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn the_relay_is_judged() {
        let fair = |median| {
            let relay_over_redis = Spread { median, min: median, max: median };
            fairness(&Fairness { relay_over_redis, at_least: 2.2, is_fair: median >= 2.2 })
        };
        assert_eq!(fair(2.5), "relay's W2 rate / Redis' 2.50, wanted ≥ 2.2: the relay is fair");
        assert!(fair(2.0).ends_with("the relay is the one to fix"));
    }
}
