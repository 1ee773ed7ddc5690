//! The works: what is measured, and how one round of it goes.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::load::Shape;
use crate::peer::{Peer, System};
use crate::server::{Server, program};

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
}

impl Work {
    pub(crate) const ALL: [Self; 4] = [Self::W1, Self::W2, Self::W3, Self::W6];

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|work| format!("{work:?}") == word)
    }

    fn shape(self) -> Shape {
        let plain = Shape { clients: 1, in_flight: 1, workers: 1, slots: 1, body: 256, sends: false, seconds: 1.5 };
        match self {
            Self::W1 => plain,
            Self::W2 => Shape { clients: 10, in_flight: 10, workers: 10, slots: 10, ..plain },
            Self::W3 => Shape { clients: 4, in_flight: 256, workers: 4, slots: 256, sends: true, ..plain },
            Self::W6 => Shape { seconds: 0.0, ..plain },
        }
    }
}

/// What one round of one system gave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// The server's CPU microseconds per message.
    pub(crate) cpu_us: f64,
}

/// Runs one round; the relay always does requests as in [`Work::W2`] when it stands for the limit of a rate.
pub(crate) fn measure(work: Work, system: System) -> Result<Figures> {
    let pinned = work == Work::W1;
    let shape = match (work, system) {
        (Work::W3, System::Relay) => Work::W2.shape(),
        _ => work.shape(),
    };
    let server = Server::start(system, pinned)?;
    let before = server.cpu_seconds()?;
    let result = load(system, &server, shape, pinned)?;
    let cpu = server.cpu_seconds()? - before;
    let number = |key: &str| result[key].as_f64().unwrap_or(0.0);
    let all = number("rate") * (number("seconds") + 0.3);
    Ok(Figures { rate: number("rate"), p50_us: number("p50_us"), p99_us: number("p99_us"), cpu_us: cpu * 1e6 / all })
}

/// The load runs as its own process.
fn load(system: System, server: &Server, shape: Shape, pinned: bool) -> Result<Value> {
    let mut command = program(std::env::current_exe()?, pinned);
    let shape =
        [shape.clients, shape.in_flight, shape.workers, shape.slots as usize, shape.body, usize::from(shape.sends)]
            .map(|number| number.to_string())
            .join(",")
            + &format!(",{}", shape.seconds);
    let output = command
        .args(["load", &format!("{system:?}"), &server.address.to_string(), &shape])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("the load failed");
    }
    serde_json::from_slice(&output.stdout).context("the load's figures")
}

/// Bytes per idle connection and per queued message.
pub(crate) fn memory() -> Result<(f64, f64)> {
    const CONNECTIONS: usize = 5_000;
    const MESSAGES: usize = 400_000;
    let server = Server::start(System::Turno, false)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let before = server.memory_bytes()?;
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut peer = Peer::connect(server.address).await?;
            peer.greet().await?;
            idle.push(peer);
        }
        let with_idle = server.memory_bytes()?;
        let mut sender = Peer::client(System::Turno, server.address).await?;
        let before_messages = server.memory_bytes()?;
        sender.send_many(MESSAGES, 256).await?;
        let after = server.memory_bytes()?;
        let per = |more: u64, less: u64, count: usize| more.saturating_sub(less) as f64 / count as f64;
        Ok((per(with_idle, before, CONNECTIONS), per(after, before_messages, MESSAGES)))
    })
}
