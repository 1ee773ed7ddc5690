//! Rounds: every system once in each, in an order that changes, with the relay right beside each.

use fastrand::Rng;
use std::array;
use std::io::IsTerminal as _;

use crate::budget;
use crate::options::WorkOptions;
use crate::peers::install;
use crate::report::{Fairness, Figures, Ratios, Round, SystemResult, WorkResult};
use crate::spread::Spread;
use crate::system::System;
use crate::works::{Work, measure};

/// The ratio by which the relay must be ahead of Redis in W2, or it is no limit.
const RELAY_OVER_REDIS: f64 = 2.2;

/// The results of one system so far.
struct Entry {
    system: System,
    rounds: Vec<Round>,
    failure: Option<String>,
}

/// Runs all rounds of one work. A system that fails once is left out from then on, and the reason kept.
pub(crate) fn run(work: Work, systems: &[System], options: &WorkOptions, dice: &mut Rng) -> WorkResult {
    let runs = work.rounds(options.runs);
    let suited = systems.iter().filter(|system| work.suits(**system));
    let mut entries: Vec<Entry> =
        suited.map(|system| Entry { system: *system, rounds: Vec::new(), failure: None }).collect();
    for round in 1..=runs {
        dice.shuffle(&mut entries);
        for entry in entries.iter_mut().filter(|entry| entry.failure.is_none()) {
            progress(&format!("{} round {round} of {runs}: {}", work.name(), entry.system));
            match measure_beside_relay(work, entry.system, options, dice) {
                Ok((figures, relay)) => entry.rounds.push(Round { round, figures, relay }),
                Err(error) => entry.failure = Some(format!("round {round}: {error:#}")),
            }
        }
    }
    progress("");
    entries.sort_by_key(|entry| entry.system);
    let of_peer = entries.iter().filter(|entry| Some(entry.system) == work.measure_peer());
    let peer: Vec<Round> = of_peer.flat_map(|entry| entry.rounds.clone()).collect();
    let mut results: Vec<SystemResult> = relay_result(&entries).into_iter().collect();
    results.extend(entries.into_iter().map(|entry| result(entry, work, &peer)));
    let turno = results.iter().find(|one| one.name == System::Turno.name());
    let budgets = budget::judge(work, turno);
    WorkResult { work: work.name().to_owned(), about: work.about().to_owned(), systems: results, budgets }
}

/// Whether the relay was the limit it is taken for.
pub(crate) fn fairness(works: &[WorkResult]) -> Option<Fairness> {
    let requests = works.iter().find(|one| one.work == Work::W2.name())?;
    let redis = requests.systems.iter().find(|one| one.name == System::Redis.name())?;
    let of = |round: &Round| Some(round.relay?.rate_per_s? / round.figures.rate_per_s?);
    let relay_over_redis = Spread::of(&redis.rounds.iter().filter_map(of).collect::<Vec<f64>>())?;
    let is_fair = relay_over_redis.median >= RELAY_OVER_REDIS;
    Some(Fairness { relay_over_redis, at_least: RELAY_OVER_REDIS, is_fair })
}

/// One line that the next one takes the place of, if somebody is looking.
fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

fn measure_beside_relay(
    work: Work,
    system: System,
    options: &WorkOptions,
    dice: &mut Rng,
) -> anyhow::Result<(Figures, Option<Figures>)> {
    let measure = |system| measure(work, system, options);
    if !work.has_relay() {
        return Ok((measure(system)?, None));
    }
    // Either may be first, so that what the first one leaves behind hits both alike.
    if dice.bool() {
        let relay = measure(System::Relay)?;
        Ok((measure(system)?, Some(relay)))
    } else {
        let figures = measure(system)?;
        Ok((figures, Some(measure(System::Relay)?)))
    }
}

/// The relay's own line: all its rounds, no matter who they stood beside.
fn relay_result(entries: &[Entry]) -> Option<SystemResult> {
    let mut rounds: Vec<Round> = Vec::new();
    for round in entries.iter().flat_map(|entry| &entry.rounds) {
        rounds.extend(round.relay.map(|figures| Round { round: round.round, figures, relay: None }));
    }
    rounds.sort_by_key(|round| round.round);
    (!rounds.is_empty()).then(|| result(Entry { system: System::Relay, rounds, failure: None }, Work::W2, &[]))
}

fn result(entry: Entry, work: Work, peer: &[Round]) -> SystemResult {
    let figures: Vec<Figures> = entry.rounds.iter().map(|round| round.figures).collect();
    let mut ratios = Ratios::of(&entry.rounds);
    match work {
        Work::W4 => ratios.redis = ratio_to_peer(&entry.rounds, peer, |one| one.rate_per_s),
        Work::W5 => {
            ratios.events = array::from_fn(|at| ratio_to_peer(&entry.rounds, peer, |one| one.events_per_s[at]));
            ratios.event_cpu = array::from_fn(|at| ratio_to_peer(&entry.rounds, peer, |one| one.event_cpu_us[at]));
        }
        Work::W7 => ratios.takeover = ratio_to_peer(&entry.rounds, peer, |one| one.takeover_ms),
        _ => {}
    }
    SystemResult {
        name: entry.system.name().to_owned(),
        version: version(entry.system),
        figures: Figures::medians(&figures),
        ratios,
        rounds: entry.rounds,
        failure: entry.failure,
    }
}

/// To the peer in the same round.
fn ratio_to_peer(rounds: &[Round], peer: &[Round], pick: impl Fn(&Figures) -> Option<f64>) -> Option<Spread> {
    let of = |round: &Round| {
        let other = peer.iter().find(|other| other.round == round.round)?;
        Some(pick(&round.figures)? / pick(&other.figures)?)
    };
    Spread::of(&rounds.iter().filter_map(of).collect::<Vec<f64>>())
}

fn version(system: System) -> String {
    match system {
        System::Relay | System::Turno => env!("CARGO_PKG_VERSION").to_owned(),
        peer => install::version(peer).unwrap_or_else(|| "unknown".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(number: usize, millis: f64) -> Round {
        Round { round: number, figures: Figures { takeover_ms: Some(millis), ..Figures::default() }, relay: None }
    }

    #[test]
    fn peers_are_compared_within_a_round() {
        let peer = [round(1, 2.0), round(2, 4.0)];
        let ratio = |rounds: &[Round], peer: &[Round]| ratio_to_peer(rounds, peer, |one| one.takeover_ms);
        let wanted = Some(Spread { median: 1.25, min: 1.0, max: 1.5 });
        assert_eq!(ratio(&[round(2, 4.0), round(1, 3.0), round(3, 100.0)], &peer), wanted);
        assert_eq!(ratio(&[round(1, 3.0)], &[]), None);
    }

    #[test]
    fn the_relay_has_a_line_of_its_own() {
        let figures = |rate| Figures { rate_per_s: Some(rate), ..Figures::default() };
        let one = Round { round: 1, figures: figures(50.0), relay: Some(figures(100.0)) };
        let entry = Entry { system: System::Turno, rounds: vec![one], failure: None };
        let relay = relay_result(&[entry]).unwrap();
        assert_eq!((relay.name.as_str(), relay.figures), ("relay", figures(100.0)));
        assert!(relay_result(&[]).is_none());
    }
}
