//! The load: clients and workers on one thread, for a stated time, after a short warming up.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use turno_proto::native::{Frame, Kind, Outgoing, Raw, encode};

use crate::peer::{Peer, System};

const WARM_UP: Duration = Duration::from_millis(300);

/// What a load looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) clients: usize,
    /// Unanswered messages of one client.
    pub(crate) in_flight: usize,
    pub(crate) workers: usize,
    pub(crate) slots: u32,
    pub(crate) body: usize,
    /// Sends, settled by ack, instead of requests.
    pub(crate) sends: bool,
    pub(crate) seconds: f64,
}

#[derive(Default)]
struct Tally {
    /// Counting began.
    on: Cell<bool>,
    done: Cell<u64>,
    micros: RefCell<Vec<u32>>,
}

/// Runs the load and says how many messages were done in how long, and how long each took.
pub(crate) fn run(system: System, address: SocketAddr, shape: Shape) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default())?;
    runtime.block_on(async {
        let tally = Rc::new(Tally::default());
        for _ in 0..shape.workers {
            let worker = Peer::worker(system, address, shape.slots).await?;
            tokio::task::spawn_local(work(worker, shape.sends, Rc::clone(&tally)));
        }
        for _ in 0..shape.clients {
            let client = Peer::client(system, address).await?;
            tokio::task::spawn_local(ask(client, shape, Rc::clone(&tally)));
        }
        tokio::time::sleep(WARM_UP).await;
        tally.on.set(true);
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_secs_f64(shape.seconds)).await;
        tally.on.set(false);
        let seconds = begun.elapsed().as_secs_f64();
        let mut micros = tally.micros.take();
        micros.sort_unstable();
        let at = |part: f64| micros.get(((micros.len() as f64 * part) as usize).min(micros.len().saturating_sub(1)));
        Ok(json!({
            "done": tally.done.get(),
            "seconds": seconds,
            "rate": tally.done.get() as f64 / seconds,
            "p50_us": at(0.5),
            "p99_us": at(0.99),
        }))
    })
}

async fn work(mut worker: Peer, sends: bool, tally: Rc<Tally>) -> Result<()> {
    loop {
        while let Some((header, range)) = worker.next() {
            match Kind::from_number(header.kind) {
                Some(Kind::Deliver) if sends => {
                    worker.ack(&header);
                    if tally.on.get() {
                        tally.done.set(tally.done.get() + 1);
                    }
                }
                Some(Kind::Deliver | Kind::Request) => worker.echo(&header, range),
                _ => {}
            }
        }
        worker.flush().await?;
        worker.read().await?;
    }
}

async fn ask(mut client: Peer, shape: Shape, tally: Rc<Tally>) -> Result<()> {
    let body = vec![7; shape.body];
    let raw = Raw { headers: false, bytes: &body };
    let mut asked: Vec<Instant> = vec![Instant::now(); shape.in_flight];
    let mut free: Vec<u32> = (0..u32::try_from(shape.in_flight)?).collect();
    loop {
        while let Some(seq) = free.pop() {
            asked[seq as usize] = Instant::now();
            let message = Outgoing::new(seq, 0, raw);
            let frame = if shape.sends { Frame::Send(message) } else { Frame::Request(message) };
            encode(&frame, &mut client.out);
        }
        client.flush().await?;
        client.read().await?;
        while let Some((header, _)) = client.next() {
            if !matches!(Kind::from_number(header.kind), Some(Kind::Reply | Kind::Stored | Kind::Undelivered)) {
                continue;
            }
            if tally.on.get() && !shape.sends {
                tally.done.set(tally.done.get() + 1);
                let micros = asked[header.seq as usize].elapsed().as_micros();
                tally.micros.borrow_mut().push(u32::try_from(micros).unwrap_or(u32::MAX));
            }
            free.push(header.seq);
        }
    }
}
