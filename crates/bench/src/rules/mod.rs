//! `cargo xtask bench broadcast|takeover|crossing|cancel|ring|matching`: the figures of the rules of queues, links, the ring
//! and topics.

pub(crate) mod admin;
mod broadcast;
mod cancel;
pub(crate) mod canceller;
mod crossing;
pub(crate) mod figures;
mod matching;
mod ring;
pub(crate) mod standby;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use fastrand::Rng;

use self::canceller::Way;
use self::figures::{PartResult, RuleResult, Sample};
use self::ring::Pace;
use crate::options::{Server, count};
use crate::process;
use crate::report::{self, Bound, Head};
use crate::spread::clock_seed;

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
    /// Who listens to a topic, among few filters and many.
    Matching,
}

impl Rule {
    #[cfg(test)]
    const ALL: [Self; 6] = [Self::Broadcast, Self::Takeover, Self::Crossing, Self::Cancel, Self::Ring, Self::Matching];

    const fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Takeover => "takeover",
            Self::Crossing => "crossing",
            Self::Cancel => "cancel",
            Self::Ring => "ring",
            Self::Matching => "matching",
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
        }
    }

    /// What is measured apart, and has a verdict of its own.
    fn parts(self) -> Vec<Part> {
        match self {
            Self::Broadcast => vec![Part::Broadcast],
            Self::Takeover => vec![Part::Takeover],
            Self::Crossing => vec![Part::Crossing],
            Self::Cancel => Way::ALL.map(Part::Cancel).to_vec(),
            Self::Ring => {
                vec![Part::RingCost, Part::RingHealing(Pace::Usual), Part::RingHealing(Pace::Fast), Part::RingHops]
            }
            Self::Matching => vec![Part::Matching],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Broadcast,
    Takeover,
    Crossing,
    Cancel(Way),
    RingCost,
    RingHealing(Pace),
    RingHops,
    Matching,
}

impl Part {
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
        }
    }

    /// What the first figure of a sample must keep to.
    const fn bound(self) -> Bound {
        match self {
            Self::Broadcast => Bound::AtLeast(1.5),
            Self::Takeover => Bound::AtMost(50.0),
            Self::Crossing => Bound::AtMost(2.2),
            Self::Cancel(_) | Self::Matching => Bound::AtMost(2.0),
            Self::RingCost => Bound::AtMost(4.0),
            Self::RingHealing(Pace::Usual) => Bound::AtMost(7_000.0),
            Self::RingHealing(Pace::Fast) => Bound::AtMost(1_000.0),
            Self::RingHops => Bound::AtMost(7.0),
        }
    }

    fn measure(self, routers: usize, dice: &mut Rng) -> Result<Sample> {
        match self {
            Self::Broadcast => broadcast::measure(routers, dice),
            Self::Takeover => standby::measure(routers),
            Self::Crossing => crossing::measure(routers, dice),
            Self::Cancel(way) => cancel::measure(way, routers),
            Self::RingCost => ring::cost(routers, dice),
            Self::RingHealing(pace) => ring::healing(pace, routers),
            Self::RingHops => ring::hops(routers),
            Self::Matching => Ok(matching::measure(dice)),
        }
    }
}

/// A rule, and the parts of it that are named, or all.
#[derive(Debug, Subcommand)]
pub(crate) enum Wanted {
    /// Deliveries a second of no-reply broadcasts to 1,000 consumers, beside the relay's W2 requests
    Broadcast(Options),
    /// The holder of an exclusive queue is killed: until the standby's program runs, beside a start of that program alone
    Takeover(Options),
    /// CPU of two brokers for requests that cross the link between them, beside one broker's
    Crossing(Options),
    /// An event in the engine among 100,000 filters, beside one among 100
    Matching(Options),
    /// W2's p99 while 100,000 waiting messages are cancelled, beside that right before
    Cancel {
        #[arg(value_parser = PossibleValuesParser::new(names(Rule::Cancel)))]
        parts: Vec<String>,
        #[command(flatten)]
        options: Options,
    },
    /// CPU of three members for a publication; until a circle is whole after one is killed; to the farthest of seven
    Ring {
        #[arg(value_parser = PossibleValuesParser::new(names(Rule::Ring)))]
        parts: Vec<String>,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Rounds of each
    #[arg(long, default_value_t = ROUNDS, value_parser = count)]
    rounds: usize,
    /// Of the order; without it the clock's
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    server: Server,
}

fn names(rule: Rule) -> Vec<&'static str> {
    rule.parts().into_iter().map(Part::name).collect()
}

/// Runs it; an error names the bars that were missed.
pub(crate) fn run(wanted: &Wanted) -> Result<()> {
    let (rule, named, options) = match wanted {
        Wanted::Broadcast(options) => (Rule::Broadcast, &[][..], options),
        Wanted::Takeover(options) => (Rule::Takeover, &[][..], options),
        Wanted::Crossing(options) => (Rule::Crossing, &[][..], options),
        Wanted::Matching(options) => (Rule::Matching, &[][..], options),
        Wanted::Cancel { parts, options } => (Rule::Cancel, &parts[..], options),
        Wanted::Ring { parts, options } => (Rule::Ring, &parts[..], options),
    };
    let is_wanted = |part: &Part| named.is_empty() || named.iter().any(|name| name == part.name());
    let parts: Vec<Part> = rule.parts().into_iter().filter(is_wanted).collect();
    let Options { rounds, seed, server: Server { routers, json } } = options;
    let head = Head::now(*routers)?;
    let seed = seed.map_or_else(clock_seed, Ok)?;
    process::raise_file_limit(broadcast::CONSUMERS)?;
    println!("{head}; order by seed {seed}");
    let mut dice = Rng::with_seed(seed);
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); parts.len()];
    for round in 1..=*rounds {
        let mut order: Vec<usize> = (0..parts.len()).collect();
        dice.shuffle(&mut order);
        for at in order {
            let sample = parts[at].measure(*routers, &mut dice)?;
            eprintln!("round {round} of {rounds}, {}: {sample}", parts[at].name());
            samples[at].push(sample);
        }
    }
    let of = |(part, samples): (&Part, &Vec<Sample>)| PartResult::of(part.name(), samples, part.bound());
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
        let bars = |rule: Rule| rule.parts().into_iter().map(|part| part.bound().to_string()).collect::<Vec<_>>();
        assert_eq!(
            Rule::ALL[..3].iter().map(|rule| bars(*rule).concat()).collect::<Vec<_>>(),
            ["≥ 1.5", "≤ 50", "≤ 2.2"]
        );
        assert_eq!(bars(Rule::Cancel), vec!["≤ 2"; Way::ALL.len()]);
        assert_eq!(bars(Rule::Ring), ["≤ 4", "≤ 7000", "≤ 1000", "≤ 7"]);
        assert_eq!(bars(Rule::Matching), ["≤ 2"]);
    }
}
