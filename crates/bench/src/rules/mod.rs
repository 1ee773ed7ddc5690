//! `cargo xtask bench broadcast|takeover|crossing|cancel|ring|matching|zeromq`: the figures of the rules of queues, links, the
//! ring and topics, and of the gateway.

pub(crate) mod admin;
mod broadcast;
mod cancel;
pub(crate) mod canceller;
mod crossing;
pub(crate) mod figures;
mod matching;
mod ring;
pub(crate) mod standby;
mod zeromq;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use fastrand::Rng;

use self::canceller::CancelWay;
use self::figures::{PartResult, RuleResult, RuleSample};
use self::ring::Pace;
use self::zeromq::ZmqPart;
use crate::options::{ServerOptions, count};
use crate::peers::install;
use crate::process;
use crate::report::{self, Bound, Head};
use crate::spread::clock_seed;
use crate::system::System;

const ROUNDS: usize = 7;

/// One rule of queues that has a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A broadcast without replies to many consumers.
    Broadcast,
    /// An exclusive queue whose holder is killed.
    Takeover,
    /// Requests that cross a link.
    Crossing,
    /// Many waiting messages that are cancelled beside requests.
    Cancel,
    /// Brokers in a circle.
    Ring,
    /// Matching of a topic, among few filters and many.
    Matching,
    /// ZeroMQ programs at the gateway.
    Zeromq,
}

impl Rule {
    #[cfg(test)]
    const ALL: [Self; 7] =
        [Self::Broadcast, Self::Takeover, Self::Crossing, Self::Cancel, Self::Ring, Self::Matching, Self::Zeromq];

    const fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Takeover => "takeover",
            Self::Crossing => "crossing",
            Self::Cancel => "cancel",
            Self::Ring => "ring",
            Self::Matching => "matching",
            Self::Zeromq => "zeromq",
        }
    }

    /// The peer that Turno is compared with.
    const fn peer(self) -> Option<System> {
        match self {
            Self::Zeromq => Some(System::Zmq),
            Self::Broadcast | Self::Takeover | Self::Crossing | Self::Cancel | Self::Ring | Self::Matching => None,
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Broadcast => {
                "no-reply broadcasts of 256 bytes to 1,000 consumers, eight in flight; beside the relay's W2 requests"
            }
            Self::Takeover => {
                "the holder of an exclusive queue is killed: until the standby's program runs with the first delivery"
            }
            Self::Crossing => "W2 with its clients at one broker and its workers at another; beside one broker for all",
            Self::Cancel => "100,000 waiting messages are cancelled while W2 runs; p99 of requests beside that without",
            Self::Ring => {
                "a publication round three brokers beside one; a member of five is killed; to the farthest of seven"
            }
            Self::Matching => {
                "an event in the engine, about each of 25,000 topics in turn: among 100,000 filters and among 100"
            }
            Self::Zeromq => {
                "DEALER clients and workers, 256 bytes, at the gateway; beside the same at a libzmq ROUTER broker"
            }
        }
    }

    /// The measurements with a verdict of their own.
    fn parts(self) -> Vec<RulePart> {
        match self {
            Self::Broadcast => vec![RulePart::Broadcast],
            Self::Takeover => vec![RulePart::Takeover],
            Self::Crossing => vec![RulePart::Crossing],
            Self::Cancel => CancelWay::ALL.map(RulePart::Cancel).to_vec(),
            Self::Ring => {
                vec![
                    RulePart::RingCost,
                    RulePart::RingHealing(Pace::Usual),
                    RulePart::RingHealing(Pace::Fast),
                    RulePart::RingHops,
                ]
            }
            Self::Matching => vec![RulePart::Matching],
            Self::Zeromq => ZmqPart::ALL.map(RulePart::Zeromq).to_vec(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RulePart {
    Broadcast,
    Takeover,
    Crossing,
    Cancel(CancelWay),
    RingCost,
    RingHealing(Pace),
    RingHops,
    Matching,
    Zeromq(ZmqPart),
}

impl RulePart {
    const fn name(self) -> &'static str {
        match self {
            Self::Broadcast => Rule::Broadcast.name(),
            Self::Takeover => Rule::Takeover.name(),
            Self::Crossing => Rule::Crossing.name(),
            Self::Cancel(way) => way.name(),
            Self::RingCost => "cost",
            Self::RingHealing(Pace::Usual) => "healing",
            Self::RingHealing(Pace::Fast) => "healing-fast",
            Self::RingHops => "hops",
            Self::Matching => Rule::Matching.name(),
            Self::Zeromq(part) => part.name(),
        }
    }

    /// The bounds of the first figures of a sample.
    fn bounds(self) -> Vec<Bound> {
        let bound = match self {
            Self::Zeromq(part) => return part.bounds(),
            Self::Broadcast => Bound::AtLeast(1.5),
            Self::Takeover => Bound::AtMost(50.0),
            Self::Crossing => Bound::AtMost(2.2),
            Self::Cancel(_) | Self::Matching => Bound::AtMost(2.0),
            Self::RingCost => Bound::AtMost(4.0),
            Self::RingHealing(Pace::Usual) => Bound::AtMost(7_000.0),
            Self::RingHealing(Pace::Fast) => Bound::AtMost(1_000.0),
            Self::RingHops => Bound::AtMost(7.0),
        };
        vec![bound]
    }

    fn measure(self, routers: usize, dice: &mut Rng) -> Result<RuleSample> {
        match self {
            Self::Broadcast => broadcast::measure(routers, dice),
            Self::Takeover => standby::measure(routers),
            Self::Crossing => crossing::measure(routers, dice),
            Self::Cancel(way) => cancel::measure(way, routers),
            Self::RingCost => ring::cost(routers, dice),
            Self::RingHealing(pace) => ring::healing(pace, routers),
            Self::RingHops => ring::hops(routers),
            Self::Matching => Ok(matching::measure(dice)),
            Self::Zeromq(part) => part.measure(routers, dice),
        }
    }
}

/// A rule, and the parts of it that are named, or all.
#[derive(Debug, Subcommand)]
pub(crate) enum RuleCommand {
    /// Deliveries a second of no-reply broadcasts to 1,000 consumers, beside the relay's W2 requests
    Broadcast(RuleOptions),
    /// The holder of an exclusive queue is killed: until the standby's program runs, beside a start of that program alone
    Takeover(RuleOptions),
    /// CPU of two brokers for requests that cross the link between them, beside one broker's
    Crossing(RuleOptions),
    /// An event in the engine among 100,000 filters, beside one among 100
    Matching(RuleOptions),
    /// W2's p99 while 100,000 waiting messages are cancelled, beside that right before
    Cancel {
        #[arg(value_parser = PossibleValuesParser::new(names(Rule::Cancel)))]
        parts: Vec<String>,
        #[command(flatten)]
        options: RuleOptions,
    },
    /// CPU of three members for a publication; until a circle is whole after one is killed; to the farthest of seven
    Ring {
        #[arg(value_parser = PossibleValuesParser::new(names(Rule::Ring)))]
        parts: Vec<String>,
        #[command(flatten)]
        options: RuleOptions,
    },
    /// ZeroMQ programs at the gateway, beside a libzmq ROUTER broker: requests, CURVE, memory of connections; installs libzmq
    Zeromq {
        #[arg(value_parser = PossibleValuesParser::new(names(Rule::Zeromq)))]
        parts: Vec<String>,
        #[command(flatten)]
        options: RuleOptions,
    },
}

#[derive(Args, Debug)]
pub(crate) struct RuleOptions {
    /// Rounds of each
    #[arg(long, default_value_t = ROUNDS, value_parser = count)]
    rounds: usize,
    /// Of the order; without it the clock's
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    server: ServerOptions,
}

fn names(rule: Rule) -> Vec<&'static str> {
    rule.parts().into_iter().map(RulePart::name).collect()
}

/// Runs it; an error names the bars that were missed.
pub(crate) fn run(wanted: &RuleCommand) -> Result<()> {
    let (rule, named, options) = match wanted {
        RuleCommand::Broadcast(options) => (Rule::Broadcast, &[][..], options),
        RuleCommand::Takeover(options) => (Rule::Takeover, &[][..], options),
        RuleCommand::Crossing(options) => (Rule::Crossing, &[][..], options),
        RuleCommand::Matching(options) => (Rule::Matching, &[][..], options),
        RuleCommand::Cancel { parts, options } => (Rule::Cancel, &parts[..], options),
        RuleCommand::Ring { parts, options } => (Rule::Ring, &parts[..], options),
        RuleCommand::Zeromq { parts, options } => (Rule::Zeromq, &parts[..], options),
    };
    let is_wanted = |part: &RulePart| named.is_empty() || named.iter().any(|name| name == part.name());
    let parts: Vec<RulePart> = rule.parts().into_iter().filter(is_wanted).collect();
    let RuleOptions { rounds, seed, server: ServerOptions { routers, json } } = options;
    let head = Head::now(*routers)?;
    let seed = seed.map_or_else(clock_seed, Ok)?;
    process::raise_file_limit(broadcast::CONSUMERS)?;
    rule.peer().map_or(Ok(()), install::ensure)?;
    println!("{head}; order by seed {seed}; load average {}", process::load_average()?);
    let mut dice = Rng::with_seed(seed);
    let mut samples: Vec<Vec<RuleSample>> = vec![Vec::new(); parts.len()];
    for round in 1..=*rounds {
        let mut order: Vec<usize> = (0..parts.len()).collect();
        dice.shuffle(&mut order);
        for at in order {
            let sample = parts[at].measure(*routers, &mut dice)?;
            eprintln!("round {round} of {rounds}, {}: {sample}", parts[at].name());
            samples[at].push(sample);
        }
    }
    let of = |(part, samples): (&RulePart, &Vec<RuleSample>)| PartResult::of(part.name(), samples, &part.bounds());
    let parts: Vec<PartResult> = parts.iter().zip(&samples).map(of).collect();
    let (name, about) = (rule.name().to_owned(), rule.about().to_owned());
    let result = RuleResult { head, rule: name, about, rounds: *rounds, seed, parts };
    report::write(json.as_deref(), &result)?;
    result.tell()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget.
    #[test]
    fn bars() {
        let bars = |rule: Rule| {
            rule.parts().into_iter().flat_map(RulePart::bounds).map(|one| one.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            Rule::ALL[..3].iter().map(|rule| bars(*rule).concat()).collect::<Vec<_>>(),
            ["≥ 1.5", "≤ 50", "≤ 2.2"]
        );
        assert_eq!(bars(Rule::Cancel), vec!["≤ 2"; CancelWay::ALL.len()]);
        assert_eq!(bars(Rule::Ring), ["≤ 4", "≤ 7000", "≤ 1000", "≤ 7"]);
        assert_eq!(bars(Rule::Matching), ["≤ 2"]);
        let zeromq = ["≥ 1.5", "≤ 0.35", "≥ 1.5", "≤ 0.35", "≥ 1.5", "≤ 0.35", "≤ 1", "≥ 0.9", "≥ 0.9", "≤ 6"];
        assert_eq!(bars(Rule::Zeromq), zeromq);
    }
}
