//! Arguments, turned into options. Nothing here runs anything.

use clap::{Args, Parser, Subcommand};
use turno_proto::model::limits::ROUTERS_MAX;

use crate::works::Work;
use crate::{chart, farm, growth, log, overload, rules};

/// Turno beside the limit, as ratios in one run
///
/// Measures works of docs/reference/requirements.md: Turno beside a raw two-hop relay of our own, each in its own process, and prints
/// the ratios with their spread and what the budget says. Each round takes the systems in another order, each with the relay
/// right beside it. Timings belong here and never into tests.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench", args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) works: WorkOptions,
    #[command(subcommand)]
    pub(crate) other: Option<Other>,
}

/// Measurements that run only when they are named.
#[derive(Debug, Subcommand)]
pub(crate) enum Other {
    /// No-op tasks of job arrays, durable, by 64 protocol workers without processes; fails at a missed bar
    #[command(name = "W9")]
    Farm(farm::FarmOptions),
    /// CPU per request when workers, queues, waiting requests or bodies become many times more; fails if one grows by more
    /// than a quarter
    Growth(growth::GrowthOptions),
    /// Three times the sustainable rate, and peers that stop reading; fails at a missed bar
    Overload(overload::OverloadOptions),
    #[command(flatten)]
    Rule(rules::RuleCommand),
    /// The store and its group committer beside a plain loop of write and fdatasync with the same bytes
    Log(log::LogOptions),
    /// Writes drawings and tables of docs/explanation/performance.md from reports
    Chart(chart::ChartOptions),
}

#[derive(Args, Debug, PartialEq, Eq)]
pub(crate) struct WorkOptions {
    #[arg(value_enum, default_values_t = Work::ALL)]
    pub(crate) works: Vec<Work>,
    /// Beside NATS, libzmq, Redis, Gearman, beanstalkd and RabbitMQ too; installs their Debian packages if they are missing
    #[arg(long)]
    pub(crate) peers: bool,
    /// Rounds of each work
    #[arg(long, default_value_t = 7, value_parser = count)]
    pub(crate) runs: usize,
    /// Durable messages of W6; each takes about 300 bytes of disk. With fewer than 1000 a figure per message says nothing
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    pub(crate) pending: u32,
    /// Of the order of systems; without it the clock's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

/// How the Turno server runs, and where its figures go.
#[derive(Args, Debug, PartialEq, Eq)]
pub(crate) struct ServerOptions {
    /// Of the Turno server
    #[arg(long, default_value_t = 1, value_parser = routers)]
    pub(crate) routers: usize,
    /// Write the report there too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
}

/// At least one.
pub(crate) fn count(word: &str) -> Result<usize, &'static str> {
    word.parse().ok().filter(|count| *count > 0).ok_or("a whole number from 1")
}

fn routers(word: &str) -> Result<usize, String> {
    let found = count(word).ok().filter(|routers| *routers <= ROUTERS_MAX);
    found.ok_or_else(|| format!("a whole number from 1 to {ROUTERS_MAX}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Option<Arguments> {
        Arguments::try_parse_from(["bench"].into_iter().chain(line.split_whitespace())).ok()
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn nothing_means_all_works_seven_times() {
        let server = ServerOptions { routers: 1, json: None };
        let works = Work::ALL.to_vec();
        let all = WorkOptions { works, peers: false, runs: 7, pending: 1_000_000, seed: None, server };
        assert_eq!(parse("").unwrap().works, all);
        assert_eq!(parse("--peers W2 --routers 2 W7").unwrap().works.works, [Work::W2, Work::W7]);
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "W8",
            "w1",
            "--runs 0",
            "--pending 999",
            "--seed -1",
            "--routers 65",
            "growth W1",
            "growth --rounds 0",
            "broadcast purge",
            "cancel cost",
            "zeromq W2",
            "W9 --jobs 0",
            "W9 --tasks 1000001",
            "chart",
            "log --peers",
        ] {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}
