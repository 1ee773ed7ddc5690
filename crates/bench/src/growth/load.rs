//! The load of one point: the same hundred in flight, whatever grows.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use turno_proto::native::{Frame, Kind, Raw, RawOutgoing, encode};

use crate::link::{Link, Scratch, name_of, scratch};
use crate::native::echo;
use crate::process;
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::tasks::{Failure, block_on};

const CLIENTS: usize = 10;
/// Slots of a worker, and what each client keeps with workers.
const SLOTS: u32 = 10;
const IN_FLIGHT: usize = 100;
/// So long that none ends by itself.
const DEADLINE_MS: u32 = 3_600_000;
/// Requests a client asks in its turn while the backlog is filled.
const TURN: usize = 20;
const WARM_UP: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_millis(100);
/// The process table counts in hundredths: with this much a step of it is below two per cent.
const CPU_SECONDS_MIN: f64 = 0.6;
/// A point that is so slow is measured with what it has.
const PATIENCE: Duration = Duration::from_secs(20);
/// More than any point needs.
const LIMITS: [(&str, u32); 2] = [("TURNO_LIMITS__CONNECTIONS", 20_000), ("TURNO_LIMITS__IN_FLIGHT", 1_000_000)];

/// The sizes of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrowthShape {
    pub(crate) workers: usize,
    pub(crate) queues: usize,
    /// Requests that wait in the broker all the time.
    pub(crate) waiting: usize,
    pub(crate) body: usize,
}

#[derive(Default)]
struct GrowthTally {
    done: Cell<u64>,
    failure: Failure,
}

/// The server's CPU microseconds per request.
pub(crate) fn measure(system: System, shape: GrowthShape, count: usize) -> Result<f64> {
    let mut settings = vec![routers(count)];
    settings.extend(LIMITS.map(|(name, value)| (name, value.to_string())));
    let server = Server::start(system, false, Keeps::ByDefault, &settings)?;
    block_on(drive(system, &server, shape)).with_context(|| format!("{system} with {shape:?}"))
}

async fn drive(system: System, server: &Server, shape: GrowthShape) -> Result<f64> {
    let tally = Rc::new(GrowthTally::default());
    let scratch = scratch();
    let mut workers = Vec::new();
    if shape.waiting == 0 {
        workers = connect_workers(system, server.address, shape, &scratch).await?;
    }
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let client = Link::client(system, server.address, &scratch, 0..shape.queues).await?;
        clients.push((client, Asker::new(shape, number)));
    }
    fill(&mut clients, shape).await?;
    if shape.waiting > 0 {
        workers = connect_workers(system, server.address, shape, &scratch).await?;
    }
    for worker in workers {
        let tally = Rc::clone(&tally);
        tokio::task::spawn_local(async move { tally.failure.keep(work(worker).await) });
    }
    for (client, asker) in clients {
        let tally = Rc::clone(&tally);
        tokio::task::spawn_local(async move { tally.failure.keep(ask_again(client, asker, &tally).await) });
    }
    tokio::time::sleep(WARM_UP).await;
    let pids = server.pids();
    let (cpu_before, done_before, begun) = (process::cpu_seconds(&pids), tally.done.get(), Instant::now());
    loop {
        tokio::time::sleep(STEP).await;
        tally.failure.check()?;
        let cpu = process::cpu_seconds(&pids) - cpu_before;
        let done = tally.done.get() - done_before;
        if cpu >= CPU_SECONDS_MIN && done > 0 || begun.elapsed() > PATIENCE {
            if done == 0 {
                bail!("nothing was answered");
            }
            return Ok(cpu * 1e6 / done as f64);
        }
    }
}

/// Asks for the first time: all clients by turns, so that what waits is mixed as it will be later.
async fn fill(clients: &mut [(Link, Asker)], shape: GrowthShape) -> Result<()> {
    let shares: Vec<u32> =
        (0..CLIENTS).map(|number| u32::try_from(share(IN_FLIGHT + shape.waiting, number))).collect::<Result<_, _>>()?;
    let most = shares.iter().copied().max().unwrap_or(0);
    for from in (0..most).step_by(TURN) {
        for ((client, asker), share) in clients.iter_mut().zip(&shares) {
            for seq in from..(from + TURN as u32).min(*share) {
                asker.ask(seq, &mut client.out);
            }
            // Without workers nothing is answered, and the first answers come when everything is asked.
            if shape.waiting > 0 {
                client.settled().await?;
            }
        }
    }
    Ok(())
}

async fn connect_workers(
    system: System,
    address: SocketAddr,
    shape: GrowthShape,
    scratch: &Scratch,
) -> Result<Vec<Link>> {
    let mut workers = Vec::with_capacity(shape.workers);
    for _ in 0..shape.workers {
        workers.push(Link::worker(system, address, scratch, 0..shape.queues, SLOTS).await?);
    }
    Ok(workers)
}

/// The part of client `number` when all have as much as can be.
fn share(total: usize, number: usize) -> usize {
    total / CLIENTS + usize::from(number < total % CLIENTS)
}

async fn work(mut worker: Link) -> Result<()> {
    loop {
        worker.flush().await?;
        worker
            .receive(|header, rest, out| {
                if let Some(Kind::Deliver | Kind::Request) = Kind::from_number(header.kind) {
                    echo(&header, rest, out);
                }
            })
            .await?;
    }
}

/// Writes requests to all queues in turn.
struct Asker {
    body: Vec<u8>,
    queues: u32,
    turn: u32,
}

impl Asker {
    fn new(shape: GrowthShape, number: usize) -> Self {
        let queues = u32::try_from(shape.queues).unwrap_or(u32::MAX);
        let turn = u32::try_from(number * shape.queues / CLIENTS).unwrap_or(0);
        Self { body: vec![7; shape.body], queues, turn }
    }

    fn ask(&mut self, seq: u32, out: &mut Vec<u8>) {
        self.turn = (self.turn + 1) % self.queues;
        let raw = Raw { headers: false, bytes: &self.body };
        let message = RawOutgoing { deadline_ms: Some(DEADLINE_MS), ..RawOutgoing::new(seq, self.turn, raw) };
        encode(&Frame::Request(message), out);
    }
}

async fn ask_again(mut client: Link, mut asker: Asker, tally: &GrowthTally) -> Result<()> {
    loop {
        client.flush().await?;
        let refused = Cell::new(None);
        client
            .receive(|header, _, out| match Kind::from_number(header.kind) {
                Some(Kind::Reply) => {
                    tally.done.set(tally.done.get() + 1);
                    asker.ask(header.seq, out);
                }
                _ => refused.set(Some(header.word)),
            })
            .await?;
        if let Some(number) = refused.get() {
            bail!("a request ended with {}", name_of(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for total in [1, 9, 10, 101, 1_000_100] {
            assert_eq!((0..CLIENTS).map(|number| share(total, number)).sum::<usize>(), total);
        }
    }
}
