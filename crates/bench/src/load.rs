//! The load: clients and workers on one thread, for a stated time, after a short warming up.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::line::Connection;
use crate::process;
use crate::protocol::{ConnectionEnd, Role, Seen, SystemProtocols, talk};
use crate::report::Figures;
use crate::spread::percentile;
use crate::system::System;
use crate::tasks::{Failure, block_on};

/// The shape of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadShape {
    pub(crate) clients: u32,
    /// Unanswered messages of one client.
    pub(crate) in_flight: u32,
    pub(crate) workers: u32,
    pub(crate) slots: u32,
    pub(crate) body: usize,
    /// Sends, settled by ack, instead of requests.
    pub(crate) sends: bool,
    /// They are on disk before they are answered.
    pub(crate) durable: bool,
    /// Seconds before counting begins.
    pub(crate) warm_up: f64,
    pub(crate) seconds: f64,
}

#[derive(Default)]
struct LoadTally {
    /// Counting began.
    on: Cell<bool>,
    done: Cell<u64>,
    micros: RefCell<Vec<u32>>,
    failure: Failure,
}

impl LoadTally {
    fn count(&self) {
        self.done.set(self.done.get() + u64::from(self.on.get()));
    }
}

/// Runs the load; `pids` are the server's, for its CPU time.
pub(crate) fn run(system: System, address: SocketAddr, pids: &[u32], shape: LoadShape) -> Result<Figures> {
    run_apart(&|seat| talk(system, seat), (address, address), pids, shape).with_context(|| system.to_string())
}

/// Clients at the first address, workers at the second.
pub(crate) fn run_apart(
    talks: SystemProtocols<'_>,
    (asks_at, works_at): (SocketAddr, SocketAddr),
    pids: &[u32],
    shape: LoadShape,
) -> Result<Figures> {
    block_on(async {
        let tally = Rc::new(LoadTally::default());
        let (asks, works) = if shape.sends { (Role::Producer, Role::Consumer) } else { (Role::Client, Role::Worker) };
        let seat = |role, number, slots| ConnectionEnd { role, number, slots, durable: shape.durable };
        for number in 0..shape.workers {
            let line = Connection::open_by(talks, works_at, seat(works, number, shape.slots)).await?;
            let tally = Rc::clone(&tally);
            tokio::task::spawn_local(async move { tally.failure.keep(work(line, shape.sends, &tally).await) });
        }
        for number in 0..shape.clients {
            let line = Connection::open_by(talks, asks_at, seat(asks, number, shape.in_flight)).await?;
            let tally = Rc::clone(&tally);
            tokio::task::spawn_local(async move { tally.failure.keep(ask(line, shape, &tally).await) });
        }
        tokio::time::sleep(Duration::from_secs_f64(shape.warm_up)).await;
        tally.on.set(true);
        let cpu = process::cpu_seconds(pids);
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_secs_f64(shape.seconds)).await;
        tally.on.set(false);
        let seconds = begun.elapsed().as_secs_f64();
        let cpu = process::cpu_seconds(pids) - cpu;
        tally.failure.check().context("the load broke off")?;
        figures(&tally, seconds, cpu)
    })
}

fn figures(tally: &LoadTally, seconds: f64, cpu: f64) -> Result<Figures> {
    let done = tally.done.get() as f64;
    if done == 0.0 {
        bail!("nothing was done in {seconds:.1} s");
    }
    let mut micros = tally.micros.take();
    micros.sort_unstable();
    Ok(Figures {
        rate_per_s: Some(done / seconds),
        p50_us: percentile(&micros, 50),
        p99_us: percentile(&micros, 99),
        cpu_us: Some(cpu * 1e6 / done),
        ..Figures::default()
    })
}

async fn work(mut line: Connection, sends: bool, tally: &LoadTally) -> Result<()> {
    loop {
        for seen in line.seen.drain(..) {
            // Sends are done when they are settled, requests when their reply is there.
            if seen == Seen::Taken && sends {
                tally.count();
            }
        }
        line.turn().await?;
    }
}

async fn ask(mut line: Connection, shape: LoadShape, tally: &LoadTally) -> Result<()> {
    let body = vec![7; shape.body];
    let mut asked: Vec<Instant> = vec![Instant::now(); shape.in_flight as usize];
    let mut free: Vec<u32> = (0..shape.in_flight).collect();
    loop {
        while let Some(tag) = free.pop() {
            asked[tag as usize] = Instant::now();
            line.put(tag, &body);
        }
        line.turn().await?;
        for seen in line.seen.drain(..) {
            let tag = match seen {
                Seen::Done(tag) => tag,
                Seen::Refused(tag) if shape.sends => tag,
                Seen::Refused(_) => bail!("a request was refused"),
                Seen::Ready | Seen::Taken => continue,
            };
            let since = asked.get(tag as usize).context("an answer to nothing")?;
            if !shape.sends && tally.on.get() {
                tally.count();
                let micros = since.elapsed().as_micros();
                tally.micros.borrow_mut().push(u32::try_from(micros).unwrap_or(u32::MAX));
            }
            free.push(tag);
        }
    }
}
