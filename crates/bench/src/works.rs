//! The works: what is measured, and how one round of one system goes.

use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::load::Shape;
use crate::report::Figures;
use crate::server::{Server, program, routers};
use crate::system::System;

/// One measured load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Request and reply, one in flight, everything on one core.
    W1,
    /// Request and reply, ten workers of ten slots, a hundred in flight.
    W2,
    /// Volatile queue: send, take, ack; four producers, four consumers.
    W3,
    /// Memory: idle connections, and queued messages of 256 bytes.
    W6,
    /// A killed worker's messages at another worker.
    W7,
}

impl Work {
    pub(crate) const ALL: [Self; 5] = [Self::W1, Self::W2, Self::W3, Self::W6, Self::W7];

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|work| work.name() == word)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::W1 => "W1",
            Self::W2 => "W2",
            Self::W3 => "W3",
            Self::W6 => "W6",
            Self::W7 => "W7",
        }
    }

    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::W1 => "request and reply, 256 bytes, one in flight, everything on one core; ratios to the relay's",
            Self::W2 => {
                "request and reply, 256 bytes, ten workers of ten slots, a hundred in flight; ratios to the relay's"
            }
            Self::W3 => {
                "volatile queue, 256 bytes: send, take, ack; four producers, four consumers; ratios to the relay's W2"
            }
            Self::W6 => "memory per idle connection (10,000) and per queued message of 256 bytes (400,000)",
            Self::W7 => "a worker that holds ten messages is killed: until all are at another; ratio to beanstalkd's",
        }
    }

    /// Whether the relay stands beside each system.
    pub(crate) const fn has_relay(self) -> bool {
        matches!(self, Self::W1 | Self::W2 | Self::W3)
    }

    /// Whether the system can do it: a broker of ROUTER sockets and Redis lose what a dead worker held.
    pub(crate) fn suits(self, system: System) -> bool {
        match self {
            Self::W1 | Self::W2 | Self::W3 => true,
            Self::W6 => system != System::Relay,
            Self::W7 => !matches!(system, System::Relay | System::Redis | System::Zmq),
        }
    }

    /// Memory hardly differs from round to round, and takes long to fill.
    pub(crate) fn rounds(self, runs: usize) -> usize {
        if self == Self::W6 { 1 } else { runs }
    }

    fn shape(self) -> Option<Shape> {
        let plain = Shape { clients: 1, in_flight: 1, workers: 1, slots: 1, body: 256, sends: false, seconds: 1.5 };
        match self {
            Self::W1 => Some(plain),
            Self::W2 => Some(Shape { clients: 10, in_flight: 10, workers: 10, slots: 10, ..plain }),
            Self::W3 => Some(Shape { clients: 4, in_flight: 256, workers: 4, slots: 256, sends: true, ..plain }),
            Self::W6 | Self::W7 => None,
        }
    }
}

/// One round of one system. For a rate of queues the relay stands with what it can do, which is requests.
pub(crate) fn measure(work: Work, system: System, routers: usize) -> Result<Figures> {
    let load = |kind, pinned, shape| load(kind, system, pinned, routers, shape);
    match work {
        Work::W1 | Work::W2 => load("load", work == Work::W1, work.shape()),
        Work::W3 if system == System::Relay => measure(Work::W2, system, routers),
        Work::W3 => load("load", false, work.shape()),
        Work::W6 => {
            let figures = load("connections", false, None)?;
            // The queue of the broker over libzmq is our own code: its memory would say nothing about libzmq.
            let message_bytes = match system {
                System::Zmq => None,
                _ => load("messages", false, None)?.message_bytes,
            };
            Ok(Figures { message_bytes, ..figures })
        }
        Work::W7 => load("takeover", false, None),
    }
}

/// A fresh server, and the load in a process of its own.
fn load(kind: &str, system: System, pinned: bool, count: usize, shape: Option<Shape>) -> Result<Figures> {
    let server = Server::start(system, pinned, &[routers(count)])?;
    let pids = server.pids().iter().map(u32::to_string).collect::<Vec<String>>().join(",");
    let mut command = program(std::env::current_exe()?, pinned);
    command.args([kind, system.name(), &server.address.to_string(), &pids]);
    if let Some(shape) = shape {
        command.arg(serde_json::to_string(&shape)?);
    }
    let output =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{}", text.lines().last().unwrap_or("the load failed without a word"));
    }
    serde_json::from_slice(&output.stdout).context("the load's figures")
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn works_have_names() {
        for work in Work::ALL {
            assert_eq!(Work::parse(work.name()), Some(work));
        }
        assert_eq!(Work::parse("W8"), None);
    }
}
