//! The works: what is measured, and how one round of one system goes.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::backlog;
use crate::fanout::SUBSCRIBERS;
use crate::load::LoadShape;
use crate::memory::BODY;
use crate::options::WorkOptions;
use crate::parallel::ParallelRun;
use crate::plain_log;
use crate::report::Figures;
use crate::server::{Keeps, Server, program, routers};
use crate::system::System;

/// One measured load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub(crate) enum Work {
    /// Request and reply, one in flight, everything on one core.
    W1,
    /// Request and reply, ten workers of ten slots, a hundred in flight.
    W2,
    /// Volatile queue: send, take, ack; four producers, four consumers.
    W3,
    /// Durable queue: the same, on disk and synced before a send is answered.
    W4,
    /// Events of one publisher to 1, 10 and 100 subscribers.
    W5,
    /// Memory: idle connections, and queued messages of 256 bytes, in memory and on disk.
    W6,
    /// A killed worker's messages at another worker.
    W7,
}

impl Work {
    pub(crate) const ALL: [Self; 7] = [Self::W1, Self::W2, Self::W3, Self::W4, Self::W5, Self::W6, Self::W7];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::W1 => "W1",
            Self::W2 => "W2",
            Self::W3 => "W3",
            Self::W4 => "W4",
            Self::W5 => "W5",
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
            Self::W4 => {
                "durable queue, 256 bytes, synced before the answer: send, take, ack; four producers of 256 in flight, \
                 four consumers; ratios to the relay's W2"
            }
            Self::W5 => {
                "events of 256 bytes, one publisher, 1, 10 and 100 subscribers: deliveries; ratios to Redis' in the same \
                 round"
            }
            Self::W6 => {
                "memory per idle connection (10,000) and per queued message of 256 bytes (400,000); and of durable ones: \
                 memory, restart, disk after a drain"
            }
            Self::W7 => "a worker that holds ten messages is killed: until all are at another; ratio to beanstalkd's",
        }
    }

    /// Whether the relay stands beside each system.
    pub(crate) const fn has_relay(self) -> bool {
        matches!(self, Self::W1 | Self::W2 | Self::W3 | Self::W4)
    }

    /// The peer that Turno is compared with in this work's budget.
    pub(crate) const fn measure_peer(self) -> Option<System> {
        match self {
            Self::W4 | Self::W5 => Some(System::Redis),
            Self::W7 => Some(System::Beanstalkd),
            _ => None,
        }
    }

    /// Whether there is nothing else to compare Turno with.
    pub(crate) const fn needs_peer(self) -> bool {
        matches!(self, Self::W5)
    }

    /// Whether the system can do it: a broker of ROUTER sockets and Redis lose what a dead worker held; and few can
    /// sync before they answer (NATS can from 2.10 on, which Debian does not have yet).
    pub(crate) fn suits(self, system: System) -> bool {
        match self {
            Self::W1 | Self::W2 | Self::W3 => true,
            Self::W4 => matches!(system, System::Turno | System::Redis | System::Beanstalkd | System::RabbitMq),
            Self::W5 => matches!(system, System::Turno | System::Redis),
            Self::W6 => system != System::Relay,
            Self::W7 => !matches!(system, System::Relay | System::Redis | System::Zmq),
        }
    }

    /// Memory hardly differs from round to round, and takes long to fill.
    pub(crate) fn rounds(self, runs: usize) -> usize {
        if self == Self::W6 { 1 } else { runs }
    }

    pub(crate) fn shape(self) -> Option<LoadShape> {
        let plain = LoadShape {
            clients: 1,
            in_flight: 1,
            workers: 1,
            slots: 1,
            body: BODY,
            sends: false,
            durable: false,
            warm_up: 0.3,
            seconds: 1.5,
        };
        let queue = LoadShape { clients: 4, in_flight: 256, workers: 4, slots: 256, sends: true, ..plain };
        match self {
            Self::W1 => Some(plain),
            Self::W2 => Some(LoadShape { clients: 10, in_flight: 10, workers: 10, slots: 10, ..plain }),
            Self::W3 => Some(queue),
            // A log becomes longer first, and goes round in its files later: what counts is later.
            Self::W4 => Some(LoadShape { durable: true, warm_up: 2.5, ..queue }),
            Self::W5 | Self::W6 | Self::W7 => None,
        }
    }
}

/// One round of one system. For a rate of queues the relay stands with what it can do, which is requests.
pub(crate) fn measure(work: Work, system: System, options: &WorkOptions) -> Result<Figures> {
    let settings = [routers(options.server.routers)];
    let start = |keeps| Server::start(system, work == Work::W1, keeps, &settings);
    let load = |kind, keeps| load_on(&start(keeps)?, kind, system, false, None);
    match work {
        Work::W1 => shaped_load(&start(Keeps::ByDefault)?, work, system),
        Work::W2 if system == System::Turno => {
            let figures = shaped_load(&start(Keeps::ByDefault)?, work, system)?;
            measure_beside(&start(Keeps::Disk)?, figures)
        }
        Work::W2 => shaped_load(&start(Keeps::ByDefault)?, work, system),
        Work::W3 | Work::W4 if system == System::Relay => measure(Work::W2, system, options),
        Work::W3 => shaped_load(&start(Keeps::Memory)?, work, system),
        Work::W4 => {
            let mut server = start(Keeps::Disk)?;
            let figures = shaped_load(&server, work, system)?;
            if system == System::Turno { add_plain_log(&mut server, figures) } else { Ok(figures) }
        }
        Work::W5 => {
            let mut figures = Figures::default();
            for (at, subscribers) in SUBSCRIBERS.iter().enumerate() {
                let server = start(Keeps::Memory)?;
                let one = load_on(&server, "events", system, false, Some(&subscribers.to_string()))?;
                figures.events_per_s[at] = one.rate_per_s;
                figures.event_cpu_us[at] = one.cpu_us;
            }
            Ok(figures)
        }
        Work::W6 => {
            let figures = load("connections", Keeps::ByDefault)?;
            // The queue of the broker over libzmq is our own code: its memory would say nothing about libzmq.
            let message_bytes = match system {
                System::Zmq => None,
                _ => load("messages", Keeps::Memory)?.message_bytes,
            };
            let durable = match system {
                System::Turno => backlog::measure(options.pending, options.server.routers)?,
                _ => Figures::default(),
            };
            Ok(Figures { connection_bytes: figures.connection_bytes, message_bytes, ..durable })
        }
        Work::W7 => load("killed", Keeps::Memory),
    }
}

/// The rate of the raw relay: the measure of all works without requests.
pub(crate) fn relay_requests() -> Result<Figures> {
    shaped_load(&Server::start(System::Relay, false, Keeps::ByDefault, &[])?, Work::W2, System::Relay)
}

/// Requests again, beside durable sends.
fn measure_beside(server: &Server, figures: Figures) -> Result<Figures> {
    let beside = ParallelRun::start(server.address)?;
    let with = shaped_load(server, Work::W2, System::Turno)?;
    Ok(Figures { beside_rate_per_s: with.rate_per_s, beside_sends_per_s: Some(beside.end()?), ..figures })
}

/// The plain log, and the store alone, in batches of the size that the broker, which ends here, really wrote.
fn add_plain_log(server: &mut Server, figures: Figures) -> Result<Figures> {
    server.stop();
    let messages_per_sync = plain_log::messages_per_sync(&server.data.join("store"))?;
    let plain_log = plain_log::rate(&server.data, plain_log::message_bytes(BODY), messages_per_sync)?;
    let store = plain_log::store_rate(&server.data, BODY, messages_per_sync)?;
    Ok(Figures {
        messages_per_sync: Some(messages_per_sync),
        plain_log_per_s: Some(plain_log),
        store_per_s: Some(store),
        ..figures
    })
}

fn shaped_load(server: &Server, work: Work, system: System) -> Result<Figures> {
    let shape = work.shape().context("a load of a shape")?;
    load_on(server, "load", system, work == Work::W1, Some(&serde_json::to_string(&shape)?))
}

/// The load in a process of its own.
pub(crate) fn load_on(
    server: &Server,
    kind: &str,
    system: System,
    pinned: bool,
    more: Option<&str>,
) -> Result<Figures> {
    let pids = server.pids().iter().map(u32::to_string).collect::<Vec<String>>().join(",");
    let mut command = program(std::env::current_exe()?, pinned);
    command.args([kind, system.name(), &server.address.to_string(), &pids]).args(more);
    let output =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{}", text.lines().last().unwrap_or("the load failed without output"));
    }
    serde_json::from_slice(&output.stdout).context("the load's figures")
}
