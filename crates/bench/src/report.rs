//! The report of a run, as it is written with `--json`: charts and documents are drawn from it, so names here are kept.
//! Figures that were not measured are left out.

use std::array;
use std::fmt;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::machine::machine;
use crate::spread::Spread;

/// Changes when a name or a meaning does.
const FORMAT: u32 = 2;

/// The head of every report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) format: u32,
    /// When it began, in UTC.
    pub(crate) when: String,
    pub(crate) machine: Machine,
    /// Of the Turno server.
    pub(crate) routers: usize,
}

/// A run of the works.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// Rounds asked for; memory is looked at once.
    pub(crate) runs: usize,
    /// Of the order of systems.
    pub(crate) seed: u64,
    pub(crate) works: Vec<WorkResult>,
    /// Peers that could not be measured at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<LeftOut>,
    /// Whether the relay is the limit that it is taken for; needs W2 and Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fairness: Option<Fairness>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    pub(crate) system: String,
    pub(crate) reason: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fairness {
    /// The relay's rate over Redis' beside it, in W2.
    pub(crate) relay_over_redis: Spread,
    pub(crate) at_least: f64,
    pub(crate) is_fair: bool,
}

/// One work, by all systems.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkResult {
    /// W1, W2, …
    pub(crate) work: String,
    pub(crate) about: String,
    /// The relay first, if it took part.
    pub(crate) systems: Vec<SystemResult>,
    pub(crate) budgets: Vec<Verdict>,
}

/// One work, by one system.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SystemResult {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Medians of the rounds.
    pub(crate) figures: Figures,
    pub(crate) ratios: Ratios,
    pub(crate) rounds: Vec<Round>,
    /// Why there are fewer rounds than asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// One round of one system, and what stood right beside it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Round {
    /// From 1.
    pub(crate) round: usize,
    pub(crate) figures: Figures,
    /// The relay in the same minute; none beside the relay itself, nor where it has no part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relay: Option<Figures>,
}

/// Measured figures. Units are in the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Figures {
    /// Requests answered, or messages settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_us: Option<f64>,
    /// The server's CPU time per request or message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_us: Option<f64>,
    /// Memory per idle connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connection_bytes: Option<f64>,
    /// Memory per waiting message of 256 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_bytes: Option<f64>,
    /// From the kill of a worker to the last of its messages at another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) takeover_ms: Option<f64>,
    /// The rate of a plain log with batches of Turno's size, beside Turno.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plain_log_per_s: Option<f64>,
    /// The rate of the store alone with such batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store_per_s: Option<f64>,
    /// That size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages_per_sync: Option<f64>,
    /// The rate of requests beside durable sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beside_rate_per_s: Option<f64>,
    /// How many durable sends were stored beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beside_sends_per_s: Option<f64>,
    /// Deliveries of events to 1, 10 and 100 subscribers.
    #[serde(default, skip_serializing_if = "are_none")]
    pub(crate) events_per_s: [Option<f64>; 3],
    /// The server's CPU time for one of them.
    #[serde(default, skip_serializing_if = "are_none")]
    pub(crate) event_cpu_us: [Option<f64>; 3],
    /// Durable messages of 256 bytes that waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<f64>,
    /// Memory per one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) durable_message_bytes: Option<f64>,
    /// From the start of a broker with all of them to the moment it is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restart_s: Option<f64>,
    /// Bytes on the disk beyond twice those of live messages, after a drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disk_spare_bytes: Option<f64>,
}

/// Each round's figure over that of the relay beside it, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ratios {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<Spread>,
    /// Over beanstalkd's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) takeover: Option<Spread>,
    /// The rate over a plain log's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plain_log: Option<Spread>,
    /// The store's rate, without a broker, over a plain log's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<Spread>,
    /// The rate over Redis'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redis: Option<Spread>,
    /// Deliveries of events to 1, 10 and 100 subscribers over Redis'.
    #[serde(default, skip_serializing_if = "are_none")]
    pub(crate) events: [Option<Spread>; 3],
    /// The CPU time for one of them over Redis'.
    #[serde(default, skip_serializing_if = "are_none")]
    pub(crate) event_cpu: [Option<Spread>; 3],
    /// The rate beside durable sends over the rate alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beside: Option<Spread>,
}

/// One line of the budget and whether Turno keeps to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) figure: String,
    /// As in "≤ 1.3".
    pub(crate) bound: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
    /// None if it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) met: Option<bool>,
}

impl Head {
    pub(crate) fn now(routers: usize) -> Result<Self> {
        // To the second.
        let when = Timestamp::from_second(Timestamp::now().as_second())?.to_string();
        Ok(Self { format: FORMAT, when, machine: machine(), routers })
    }
}

impl fmt::Display for Head {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { when, machine: Machine { cpu, cores, kernel }, routers, .. } = self;
        write!(formatter, "{when} on {cores} cores of {cpu}, Linux {kernel}; Turno with ")?;
        match routers {
            1 => formatter.write_str("1 router"),
            routers => write!(formatter, "{routers} routers"),
        }
    }
}

/// Writes a report to the file, if there is to be one.
pub(crate) fn write(file: Option<&str>, report: &impl Serialize) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    std::fs::write(file, serde_json::to_string_pretty(report)? + "\n").with_context(|| format!("cannot write {file}"))
}

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(formatter, "≤ {most}"),
            Self::AtLeast(least) => write!(formatter, "≥ {least}"),
        }
    }
}

impl Verdict {
    pub(crate) fn of(figure: &str, bound: Bound, value: Option<f64>) -> Self {
        let met = value.map(|value| match bound {
            Bound::AtMost(most) => value <= most,
            Bound::AtLeast(least) => value >= least,
        });
        Self { figure: figure.to_owned(), bound: bound.to_string(), value, met }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { figure, bound, value, met } = self;
        match (value, met) {
            (Some(value), Some(true)) => write!(formatter, "{figure} {bound} met ({value:.2})"),
            (Some(value), Some(false)) => write!(formatter, "{figure} {bound} missed ({value:.2})"),
            _ => write!(formatter, "{figure} {bound} not measured"),
        }
    }
}

/// A figure, to be taken out of many.
pub(crate) type Pick = fn(&Figures) -> Option<f64>;

/// A row of figures of which none was measured.
fn are_none<T>(all: &[Option<T>]) -> bool {
    all.iter().all(Option::is_none)
}

impl Figures {
    /// The medians of several rounds, figure by figure.
    pub(crate) fn medians(rounds: &[Self]) -> Self {
        fn median_of(rounds: &[Figures], pick: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
            let values: Vec<f64> = rounds.iter().filter_map(pick).collect();
            Spread::of(&values).map(|spread| spread.median)
        }
        let median = |pick: Pick| median_of(rounds, pick);
        Self {
            rate_per_s: median(|one| one.rate_per_s),
            p50_us: median(|one| one.p50_us),
            p99_us: median(|one| one.p99_us),
            cpu_us: median(|one| one.cpu_us),
            connection_bytes: median(|one| one.connection_bytes),
            message_bytes: median(|one| one.message_bytes),
            takeover_ms: median(|one| one.takeover_ms),
            plain_log_per_s: median(|one| one.plain_log_per_s),
            store_per_s: median(|one| one.store_per_s),
            messages_per_sync: median(|one| one.messages_per_sync),
            beside_rate_per_s: median(|one| one.beside_rate_per_s),
            beside_sends_per_s: median(|one| one.beside_sends_per_s),
            events_per_s: array::from_fn(|at| median_of(rounds, |one| one.events_per_s[at])),
            event_cpu_us: array::from_fn(|at| median_of(rounds, |one| one.event_cpu_us[at])),
            pending: median(|one| one.pending),
            durable_message_bytes: median(|one| one.durable_message_bytes),
            restart_s: median(|one| one.restart_s),
            disk_spare_bytes: median(|one| one.disk_spare_bytes),
        }
    }
}

impl Ratios {
    /// Of rounds with the relay beside each. Those to a peer need the peer's rounds, and are not here.
    pub(crate) fn of(rounds: &[Round]) -> Self {
        let spread = |of: &dyn Fn(&Round) -> Option<f64>| {
            Spread::of(&rounds.iter().filter_map(of).filter(|ratio| ratio.is_finite()).collect::<Vec<f64>>())
        };
        let ratio = |pick: Pick| spread(&|round| Some(pick(&round.figures)? / pick(&round.relay?)?));
        let own = |over: Pick, under: Pick| spread(&|round| Some(over(&round.figures)? / under(&round.figures)?));
        Self {
            rate: ratio(|one| one.rate_per_s),
            p50: ratio(|one| one.p50_us),
            p99: ratio(|one| one.p99_us),
            cpu: ratio(|one| one.cpu_us),
            takeover: None,
            plain_log: own(|one| one.rate_per_s, |one| one.plain_log_per_s),
            store: own(|one| one.store_per_s, |one| one.plain_log_per_s),
            redis: None,
            events: [None; 3],
            event_cpu: [None; 3],
            beside: own(|one| one.beside_rate_per_s, |one| one.rate_per_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rate: f64) -> Figures {
        Figures { rate_per_s: Some(rate), ..Figures::default() }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let round = |number, rate, relay| Round { round: number, figures: figures(rate), relay: Some(figures(relay)) };
        let ratios = Ratios::of(&[round(1, 50.0, 100.0), round(2, 90.0, 100.0), round(3, 80.0, 100.0)]);
        assert_eq!(ratios.rate, Some(Spread { median: 0.8, min: 0.5, max: 0.9 }));
        assert_eq!(ratios.p50, None);
    }

    #[test]
    fn what_was_not_measured_is_not_written() {
        let text = serde_json::to_string(&figures(2.0)).unwrap();
        assert_eq!(text, r#"{"rate_per_s":2.0}"#);
        assert_eq!(serde_json::from_str::<Figures>(&text).unwrap(), figures(2.0));
        assert_eq!(Figures::medians(&[figures(1.0), figures(3.0)]), figures(2.0));
    }
}
