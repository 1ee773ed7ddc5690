//! The command line. Here users are talked to: stdout carries data, stderr everything else, and every way to
//! fail has a code and an exit status. Nothing here knows how a broker works inside.

mod bench;
mod broadcast;
mod completions;
mod compose;
mod config;
mod confirm;
mod connect;
mod doctor;
mod drain;
mod error;
mod event;
mod explain;
mod exposure;
mod global;
mod help;
mod job;
mod lines;
mod link;
mod logging;
mod man;
mod message;
mod output;
mod paint;
mod progress;
mod publish;
mod queue;
mod request;
mod ring;
pub mod schema;
mod send;
mod serve;
mod shell;
mod shown;
mod signals;
mod size;
mod status;
mod subscribe;
mod table;
mod time;
mod topic;
mod tree;
mod usage;
mod version;
mod width;
mod window;
mod words;
mod work;
mod worker;
mod zmq;

use std::ffi::OsString;
use std::process::ExitCode;

use turno_broker::config::{Config, Environment, Flag, RawValue};

use crate::job_worker::guard;

use self::error::Failure;
use self::global::Global;
use self::logging::Logging;
use self::output::Output;
use self::tree::{Cli, Command};

/// Runs the command that was typed.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // A worker's watcher: no command that anybody types.
    if let Some((_, [word, rest @ ..])) = words.split_first()
        && word == guard::WORD
    {
        return guard::watch(rest);
    }
    match tree::parse(&words) {
        Ok(cli) => ExitCode::from(run(cli, words)),
        Err(error) => ExitCode::from(usage::tell(&error, &words)),
    }
}

fn run(cli: Cli, words: Vec<OsString>) -> u8 {
    let invocation = Invocation { output: Output::new(&cli.global), global: cli.global, words };
    match logged(&cli.command, &invocation) {
        Ok(exit) => exit,
        Err(failure) => {
            invocation.output.failure(&failure);
            failure.exit()
        }
    }
}

/// A broker's log is part of its configuration; every other command has one only if asked, or warnings if it goes on
/// for long.
fn logged(command: &Command, invocation: &Invocation) -> Result<u8, Failure> {
    if matches!(command, Command::Serve(_)) {
        return dispatch(command, invocation);
    }
    let goes_on = matches!(command, Command::Worker(args) if args.goes_on());
    let logging = Logging::for_command(&invocation.global, goes_on)?;
    let end = dispatch(command, invocation);
    logging.finish(&invocation.output);
    end
}

fn dispatch(command: &Command, invocation: &Invocation) -> Result<u8, Failure> {
    match command {
        Command::Serve(args) => serve::run(args, invocation),
        Command::Request(args) => request::run(args, invocation),
        Command::Send(args) => send::run(args, invocation),
        Command::Broadcast(args) => broadcast::run(args, invocation),
        Command::Work(args) => work::run(args, invocation),
        Command::Pub(args) => publish::run(args, invocation),
        Command::Sub(args) => subscribe::run(args, invocation),
        Command::Submit(args) => job::submit::run(args, invocation),
        Command::Status(_) => status::run(invocation),
        Command::Drain(_) => drain::drain(invocation),
        Command::Resume(_) => drain::resume(invocation),
        Command::Queue(args) => queue::run(args, invocation),
        Command::Worker(args) => worker::run(args, invocation),
        Command::Message(args) => message::run(args, invocation),
        Command::Job(args) => job::run(args, invocation),
        Command::Topic(args) => topic::run(args, invocation),
        Command::Link(args) => link::run(args, invocation),
        Command::Ring(args) => ring::run(args, invocation),
        Command::Zmq(args) => zmq::run(args, invocation),
        Command::Config(args) => config::run(args, invocation),
        Command::Doctor(args) => doctor::run(args, invocation),
        Command::Explain(args) => explain::run(args, invocation),
        Command::Bench(args) => bench::run(args, invocation),
        Command::Completions(args) => completions::run(args, invocation),
        Command::Man(args) => man::run(args, invocation),
        Command::Version(_) => version::run(invocation),
    }
}

/// One call of the program.
pub(crate) struct Invocation {
    pub(crate) global: Global,
    pub(crate) output: Output,
    /// The command line, word for word.
    pub(crate) words: Vec<OsString>,
}

impl Invocation {
    /// The configuration, with the flags of the command and those of every command.
    pub(crate) fn config(&self, flags: &[Flag]) -> Result<Config, Failure> {
        let mut flags = flags.to_vec();
        if !self.global.url.is_empty() {
            flags.push(Flag { flag: "--url", key: "url", raw: RawValue::List(self.global.url.clone()) });
        }
        Ok(Config::load(&Environment::here(), self.global.config.as_deref(), &flags)?)
    }
}
