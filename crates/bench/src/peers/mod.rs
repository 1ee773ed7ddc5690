//! The peers: Debian packages, installed when asked for, started on loopback by us, and spoken to in their own words.

mod amqp;
pub(crate) mod beanstalkd;
pub(crate) mod gearman;
pub(crate) mod install;
pub(crate) mod nats;
pub(crate) mod rabbitmq;
pub(crate) mod redis;
pub(crate) mod zmq;

use std::path::PathBuf;
use std::process::Command;

use crate::server::program;
use crate::system::System;

/// Where and how a peer's server is to run.
pub(crate) struct Launch {
    pub(crate) port: u16,
    /// For those that need more than one.
    pub(crate) more_ports: [u16; 2],
    /// A folder of its own, gone afterwards.
    pub(crate) data: PathBuf,
    pub(crate) pinned: bool,
    /// It syncs messages before it answers, with whatever setting it has for that.
    pub(crate) durable: bool,
}

impl Launch {
    /// A program by its name; if it is nowhere, starting it says so.
    fn program(&self, name: &str) -> Command {
        program(install::find(name).unwrap_or_else(|| PathBuf::from(name)), self.pinned)
    }
}

/// The commands to start, the server last.
pub(crate) fn commands(system: System, launch: &Launch) -> Vec<Command> {
    match system {
        System::Relay | System::Turno => Vec::new(),
        System::Nats => nats::commands(launch),
        System::Zmq => zmq::commands(launch),
        System::Redis => redis::commands(launch),
        System::Gearman => gearman::commands(launch),
        System::Beanstalkd => beanstalkd::commands(launch),
        System::RabbitMq => rabbitmq::commands(launch),
    }
}
