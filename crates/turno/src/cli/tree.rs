//! The tree of commands. Each leaf's arguments stand in the file of its command.

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::bench::BenchArgs;
use super::broadcast::BroadcastArgs;
use super::completions::CompletionsArgs;
use super::config::ConfigArgs;
use super::doctor::DoctorArgs;
use super::drain::{DrainArgs, ResumeArgs};
use super::explain::ExplainArgs;
use super::global::Global;
use super::help;
use super::job::JobArgs;
use super::job::submit::SubmitArgs;
use super::link::LinkArgs;
use super::man::ManArgs;
use super::message::MessageArgs;
use super::publish::PubArgs;
use super::queue::QueueArgs;
use super::request::RequestArgs;
use super::ring::RingArgs;
use super::send::SendArgs;
use super::serve::ServeArgs;
use super::status::StatusArgs;
use super::subscribe::SubArgs;
use super::topic::TopicArgs;
use super::version::VersionArgs;
use super::work::WorkArgs;
use super::worker::WorkerArgs;
use super::zmq::ZmqArgs;

/// The first commands of a newcomer.
const START: &str = "To start: `turno serve`, then `turno work hello --echo` and `turno request hello hi`.";

/// One broker for requests, queues, topics and jobs
#[derive(Debug, Parser)]
#[command(
    name = "turno",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    max_term_width = 110,
    after_help = format!("{START}\n\n{}", help::short("")),
    after_long_help = format!("{START}\n\n{}", help::global_options())
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(ServeArgs),
    #[command(visible_aliases = ["req", "call"])]
    Request(RequestArgs),
    Send(SendArgs),
    Broadcast(BroadcastArgs),
    Work(WorkArgs),
    Pub(PubArgs),
    Sub(SubArgs),
    Submit(Box<SubmitArgs>),
    Status(StatusArgs),
    Drain(DrainArgs),
    Resume(ResumeArgs),
    Queue(QueueArgs),
    Worker(WorkerArgs),
    Message(MessageArgs),
    Job(JobArgs),
    Topic(TopicArgs),
    Link(LinkArgs),
    Ring(RingArgs),
    Zmq(ZmqArgs),
    Config(ConfigArgs),
    Doctor(DoctorArgs),
    Explain(ExplainArgs),
    Bench(BenchArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Version(VersionArgs),
}

/// The definition, also for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    Cli::command().mut_subcommands(with_short_end)
}

/// Every command ends its short help with the first examples of its long one. A group of commands, which has none, ends
/// its long help with the global options.
fn with_short_end(command: clap::Command) -> clap::Command {
    let long = command.get_after_long_help().map_or_else(help::global_options, ToString::to_string);
    command.after_help(help::short(&long)).after_long_help(long).mut_subcommands(with_short_end)
}

/// Parses the command line.
pub(crate) fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut matches = command().try_get_matches_from(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::width;

    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        let mut subs = command.get_subcommands().filter(|sub| sub.get_name() != "help").peekable();
        if subs.peek().is_none() {
            found.push((path.to_owned(), command.clone()));
        }
        for sub in subs {
            leaves(sub, &format!("{path} {}", sub.get_name()), found);
        }
    }

    fn all_leaves() -> Vec<(String, clap::Command)> {
        let mut root = command();
        root.build();
        let mut found = Vec::new();
        leaves(&root, "turno", &mut found);
        found
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    /// Every leaf, in the order of the tree.
    const LEAVES: [&str; 71] = [
        "serve",
        "request",
        "send",
        "broadcast",
        "work",
        "pub",
        "sub",
        "submit",
        "status",
        "drain",
        "resume",
        "queue ls",
        "queue show",
        "queue consumers",
        "queue set",
        "queue purge",
        "queue dead ls",
        "queue dead show",
        "queue dead retry",
        "queue dead purge",
        "worker start",
        "worker deploy",
        "worker ls",
        "worker show",
        "worker resize",
        "worker drain",
        "worker resume",
        "worker stop",
        "message explain",
        "message trace",
        "message retry",
        "message cancel",
        "job submit",
        "job ls",
        "job show",
        "job tasks",
        "job logs",
        "job result",
        "job explain",
        "job cancel",
        "job retry",
        "job hold",
        "job release",
        "job wait",
        "job progress",
        "job report",
        "job rm",
        "topic ls",
        "topic subscribers",
        "topic create",
        "topic recv",
        "topic destroy",
        "link ls",
        "link add",
        "link rm",
        "link graph",
        "ring show",
        "ring join",
        "ring leave",
        "ring shutdown",
        "zmq ls",
        "zmq show",
        "config show",
        "config check",
        "doctor",
        "explain",
        "bench request",
        "bench send",
        "completions",
        "man",
        "version",
    ];

    #[test]
    fn the_commands_of_this_stage_are_there_and_no_others() {
        let names: Vec<String> = all_leaves().into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, LEAVES.map(|name| format!("turno {name}")));
    }

    #[test]
    fn every_leaf_says_what_it_does_shows_an_example_and_lists_its_exit_codes() {
        for (path, leaf) in all_leaves() {
            let about = leaf.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.ends_with('.'), "{path}: {about:?}");
            let help = leaf.clone().render_long_help().to_string();
            let (_, notes) = help.split_once(help::EXAMPLES).unwrap_or_else(|| panic!("{path} has no example"));
            let (examples, exits) = notes.split_once(help::EXIT_STATUS).unwrap();
            assert!(examples.lines().any(|line| line.trim().starts_with(&path)), "{path}: {examples}");
            assert!(exits.contains("0   done") && exits.contains("2   invalid usage"), "{path}: {exits}");
            for argument in leaf.get_arguments().filter(|argument| !argument.is_hide_set()) {
                assert!(argument.get_help().is_some(), "{path} {} has no help", argument.get_id());
            }
        }
    }

    /// Every command with its path, groups too.
    fn all(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        found.push((path.to_owned(), command.clone()));
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            all(sub, &format!("{path} {}", sub.get_name()), found);
        }
    }

    /// A short help is one screen: examples before the global options, and those by name only. The long one has everything.
    #[test]
    fn every_short_help_fits_one_screen_and_every_long_one_is_complete() {
        const SCREEN: (usize, usize) = (80, 50);
        let mut root = command().term_width(SCREEN.0);
        root.build();
        let mut commands = Vec::new();
        all(&root, "turno", &mut commands);
        assert!(commands.len() > LEAVES.len());
        for (path, mut command) in commands {
            let short = command.render_help().to_string();
            let lines = short.lines().count();
            assert!(lines <= SCREEN.1, "{path} -h has {lines} lines:\n{short}");
            let wide = short.lines().find(|line| width::of(line) > SCREEN.0);
            assert_eq!(wide, None, "{path} -h");
            let (before, globals) = short.split_once(help::GLOBAL_OPTIONS).expect("the global options");
            assert!(globals.lines().count() <= 6 && globals.contains("--help"), "{path}: {globals}");
            let is_leaf = command.get_subcommands().next().is_none();
            assert_eq!(before.contains(&format!("{}\n  ", help::EXAMPLES)), is_leaf, "{path}: {short}");
            let long = command.render_long_help().to_string();
            let flags = command.get_arguments().filter_map(|argument| argument.get_long());
            for flag in flags.filter(|flag| *flag != "version") {
                assert!(long.contains(&format!("--{flag}")), "{path} --help has no --{flag}");
            }
            assert!(long.contains(&format!("{}\n  ", help::GLOBAL_OPTIONS)), "{path}: {long}");
        }
    }

    #[test]
    fn every_leaf_takes_the_global_flags_before_and_after_its_name() {
        for (path, leaf) in all_leaves() {
            let ids: Vec<&str> = leaf.get_arguments().map(|argument| argument.get_id().as_str()).collect();
            for flag in ["json", "output", "columns", "url", "timeout", "quiet"] {
                assert!(ids.contains(&flag), "{path} does not take --{flag}");
            }
        }
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in ["turno --json queue ls", "turno queue --json ls", "turno queue ls --json"] {
            assert!(parse(&words(line)).unwrap().global.json, "{line}");
        }
    }

    #[test]
    fn every_example_can_be_parsed() {
        for (path, leaf) in all_leaves() {
            let help = leaf.clone().render_long_help().to_string();
            let notes = help.split_once(help::EXAMPLES).unwrap().1.split_once(help::EXIT_STATUS).unwrap().0;
            for line in notes.lines().map(str::trim).filter(|line| line.starts_with("turno ")) {
                let typed = line.split(" | ").next().unwrap().split(" > ").next().unwrap().split(" < ").next().unwrap();
                let words: Vec<OsString> = typed.split(' ').map(|word| word.trim_matches('\'').into()).collect();
                if let Err(error) = parse(&words) {
                    panic!("{path}: {line}: {error}");
                }
            }
        }
    }

    #[test]
    fn old_names_of_commands_work() {
        for line in ["turno queue list", "turno queue get q", "turno queue info q", "turno req q", "turno call q"] {
            parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).unwrap();
        }
        // A prefix is no name: a new command must not change what an old script means.
        assert!(parse(&["turno".into(), "stat".into()]).is_err());
    }
}
