//! Arguments, turned into one command. Nothing here runs anything.

use clap::{Args, Parser, Subcommand};

use crate::ledger::number::Group;
use crate::tidy;

/// The project's own commands.
#[derive(Debug, Parser, PartialEq, Eq)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
pub(crate) enum Command {
    /// Everything: set-up, fmt, clippy, tidy, ledger, deps, release, build, all tests
    ///
    /// Sets up what it needs, runs every check and every test, and names at the end what failed and what could not run.
    Test(TestOptions),
    /// The quick half: fmt, clippy, tidy, ledger, deps, release
    Check,
    /// Check rules that the compiler does not know
    ///
    /// Reports each breach as `file:line: rule: what to do instead`, in tracked files and in new ones that are not ignored.
    #[command(after_long_help = format!("Rules:\n{}", tidy::describe_rules()))]
    Tidy,
    /// Check or write the generated tables of docs/reference/modules.md
    ///
    /// Modules come from the first sentence of each module's head, places from where an item is defined. Fails when the page
    /// is not current.
    Map {
        /// Write the tables anew
        #[arg(long)]
        write: bool,
    },
    /// Show which requirements have a test that proves them
    ///
    /// Compares docs/reference/requirements.md with the numbers named in the doc comments of tests. Fails when a test names a number
    /// that does not exist, or a range.
    Ledger(LedgerOptions),
    /// Check licences, duplicate versions and origin of all dependencies
    ///
    /// Compares what `cargo tree` lists with deny.toml, and LICENSES-THIRD-PARTY.md with what is there.
    Deps {
        /// Write LICENSES-THIRD-PARTY.md anew
        #[arg(long)]
        write: bool,
    },
    /// Check what would be published: crates, files and manifests
    ///
    /// Checks the manifests of the published crates and the files of their packages, and packs them. Builds nothing and sends
    /// nothing.
    Release,
    /// Compare the public APIs of client and embedded broker with the committed lists
    ///
    /// Compares every public item of turno-client and turno-broker with api.txt in their directories, also items that they
    /// re-export. Fails when they differ, when a type that an item shows is not re-exported, and when an item of the last
    /// release is gone while the version promises that it is there.
    Api {
        /// Write both lists anew
        #[arg(long)]
        write: bool,
    },
    /// Simulate brokers, clients and workers with faults
    #[command(disable_help_flag = true)]
    Sim(PassedOn),
    /// Measure Turno in comparison with a raw relay and other systems
    #[command(disable_help_flag = true)]
    Bench(PassedOn),
    /// Compare instruction counts of the hot path with the committed figures
    ///
    /// Counts with valgrind how many instructions one step of codec, engine and broker takes, and compares with
    /// crates/bench/steps.txt. Fails when a step takes over 10 % more, and asks for a lower figure when it takes over 10 %
    /// less.
    Steps {
        /// Write the figures: every fall, and each rise beyond 10 %
        #[arg(long)]
        bless: bool,
    },
    /// Check that simulator and tests find planted bugs
    ///
    /// Applies each patch of planted/ to a copy of the tree in target/planted, builds the simulator there and runs 2000
    /// seeds, or runs the tests that the patch names (`Check: nextest run …`). Says which check caught the bug, and what
    /// shows without the broker's own checks (blind). Fails when a bug survives, or when a patch does not apply or does not
    /// build.
    Planted {
        /// Only these, by file name without extension, or by number
        names: Vec<String>,
    },
    /// Fuzz codec, session, engine, store, configuration and names
    ///
    /// Runs each target for a while with libFuzzer, which needs a nightly toolchain, and says how many inputs it tried and
    /// what they reached that was new. Fails at a crash and says how to see it again. `cargo xtask test` needs none of this:
    /// it replays the committed corpora in fuzz/corpus.
    Fuzz(FuzzOptions),
    /// Run more trials on new input and record them in docs/reference/trust.md
    ///
    /// What passes is added to the row of this version and commit. Without an argument it shows the file.
    Trust {
        #[command(subcommand)]
        trial: Option<Trial>,
    },
}

/// Options of `test`.
#[derive(Args, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOptions {
    /// Leave out clippy, the simulator, the steps and the doc tests
    #[arg(long)]
    pub(crate) fast: bool,
    /// For nextest, untouched
    #[arg(last = true)]
    pub(crate) nextest_args: Vec<String>,
}

/// Options of `ledger`.
#[derive(Args, Debug, Default, PartialEq, Eq)]
pub(crate) struct LedgerOptions {
    /// List the proven ones too, with their tests
    #[arg(long)]
    pub(crate) all: bool,
    /// Only S0, S1, ..., I or W
    #[arg(long, value_parser = |name: &str| Group::parse(name).ok_or("S0, S1, ..., I or W"))]
    pub(crate) group: Option<Group>,
    /// For programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of another program, which knows them, and `--help` too.
#[derive(Args, Debug, PartialEq, Eq)]
pub(crate) struct PassedOn {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// Options of `fuzz`.
#[derive(Args, Debug, PartialEq, Eq)]
pub(crate) struct FuzzOptions {
    /// For each target. Zero would mean "for ever" to libFuzzer
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Only these: the files of fuzz/fuzz_targets
    pub(crate) targets: Vec<String>,
}

/// The runs that `trust` records.
#[derive(Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Trial {
    /// The simulator with --fresh; counts worlds, rings and linked worlds
    #[command(disable_help_flag = true)]
    Sim(PassedOn),
    /// Rounds of the crash loop with a fresh seed; counts the kills
    Kills {
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
    },
    /// The fuzzer; counts hours over all targets
    Fuzz(FuzzOptions),
    /// The whole test command; counts one round
    Test,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Option<Command> {
        Command::try_parse_from(["xtask"].into_iter().chain(line.split_whitespace())).ok()
    }

    #[test]
    fn the_definition_is_sound() {
        Command::command().debug_assert();
    }

    #[test]
    fn words_of_other_programs_are_handed_on_untouched() {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let words = owned(&["--seed", "7", "--help"]);
        assert_eq!(parse("sim --seed 7 --help"), Some(Command::Sim(PassedOn { words: words.clone() })));
        assert_eq!(
            parse("trust sim --seed 7 --help"),
            Some(Command::Trust { trial: Some(Trial::Sim(PassedOn { words })) })
        );
        let options = TestOptions { fast: true, nextest_args: owned(&["-E", "all()", "--help"]) };
        assert_eq!(parse("test --fast -- -E all() --help"), Some(Command::Test(options)));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "",
            "frobnicate",
            "test queue",
            "check -- x",
            "ledger --group Q",
            "planted -x",
            "fuzz --seconds 0",
            "trust kills 0",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
