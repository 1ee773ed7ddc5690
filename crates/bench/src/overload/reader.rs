//! Someone stops reading: what it costs the others.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use turno_proto::native::{Frame, Raw, RawOutgoing, encode};

use super::clients::ClientGroup;
use super::figures::ReaderResult;
use super::workers::QueueWorkers;
use crate::link::{Link, Scratch, queue_name};
use crate::report::{Bound, Verdict};
use crate::server::{Keeps, Server, routers};
use crate::spread::Spread;
use crate::system::System;
use crate::tasks::block_on;

const ROUNDS: usize = 12;
const UNANSWERED: usize = 10;
const WINDOW_SECONDS: f64 = 0.6;
const SETTLE_SECONDS: f64 = 0.2;
const KEPT_MIN: f64 = 0.95;
const DEADLINE_MS: u32 = 30_000;
const SLOTS: u32 = 10;
/// With its ten slots full of these a worker has more waiting for it than any socket holds.
const LARGE_BODY: usize = 2 << 20;
const MIDDLE_BODY: usize = 16 << 10;
/// So many replies are more than any socket holds.
const MIDDLE_COUNT: u32 = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stuck {
    Worker,
    Client,
}

pub(super) fn run(count: usize) -> Result<Vec<ReaderResult>> {
    println!("\nreader: ten clients and ten workers beside one that stops reading");
    let mut results = Vec::new();
    for stuck in [Stuck::Worker, Stuck::Client] {
        let server = Server::start(System::Turno, false, Keeps::ByDefault, &[routers(count)])?;
        let _workers = QueueWorkers::hire(server.address, Duration::ZERO)?;
        let kept = block_on(compare(server.address, stuck))?;
        let stuck = format!("{stuck:?}").to_lowercase();
        let figure = format!("rate of the others beside a {stuck} that stops reading / without it");
        let bar = Verdict::of(&figure, Bound::AtLeast(KEPT_MIN), Some(kept.median));
        println!("  {bar}");
        results.push(ReaderResult { stuck, kept, bars: vec![bar] });
    }
    Ok(results)
}

/// The others' rate with the stuck one, divided by that without: of pairs measured one after the other.
async fn compare(address: SocketAddr, stuck: Stuck) -> Result<Spread> {
    let clients = ClientGroup::gather(address, DEADLINE_MS).await?;
    clients.keep_asking(UNANSWERED);
    clients.watch(0.5).await?;
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let without_first = round % 2 == 0;
        let mut without = 0.0;
        if without_first {
            without = clients.watch(WINDOW_SECONDS).await?.rate();
        }
        let stuck = match stuck {
            Stuck::Worker => stuck_worker(address, &clients.scratch).await?,
            Stuck::Client => stuck_client(address, &clients.scratch).await?,
        };
        clients.watch(SETTLE_SECONDS).await?;
        let with = clients.watch(WINDOW_SECONDS).await?.rate();
        drop(stuck);
        clients.watch(SETTLE_SECONDS).await?;
        if !without_first {
            without = clients.watch(WINDOW_SECONDS).await?.rate();
        }
        ratios.push(with / without);
    }
    Spread::of(&ratios).context("there are rounds")
}

/// Its slots are filled from a queue of its own; then it joins the others' queue, and reads nothing any more.
async fn stuck_worker(address: SocketAddr, scratch: &Scratch) -> Result<Vec<Link>> {
    let mut worker = Link::worker(System::Turno, address, scratch, 1..2, SLOTS).await?;
    let mut feeder = Link::client(System::Turno, address, scratch, 1..2).await?;
    let body = vec![7; LARGE_BODY];
    for seq in 0..SLOTS {
        let message = RawOutgoing::new(seq, 0, Raw { headers: false, bytes: &body });
        encode(&Frame::Request(message), &mut feeder.out);
    }
    feeder.settled().await?;
    encode(&Frame::Open { seq: 6, handle: 1, name: queue_name(0).as_bytes() }, &mut worker.out);
    encode(&Frame::Consume { seq: 7, handle: 1, exclusive: false }, &mut worker.out);
    worker.flush().await?;
    Ok(vec![worker, feeder])
}

/// It asks for as long as the broker takes anything, and reads none of the replies.
async fn stuck_client(address: SocketAddr, scratch: &Scratch) -> Result<Vec<Link>> {
    let client = Link::client(System::Turno, address, scratch, 0..1).await?;
    let body = vec![7; MIDDLE_BODY];
    let mut out = Vec::new();
    for seq in 0..MIDDLE_COUNT {
        encode(&Frame::Request(RawOutgoing::new(seq, 0, Raw { headers: false, bytes: &body })), &mut out);
    }
    let stream = client.stream();
    let mut written = 0;
    while written < out.len() {
        match stream.try_write(&out[written..]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let patience = Duration::from_millis(300);
                if tokio::time::timeout(patience, stream.writable()).await.is_err() {
                    break;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(vec![client])
}
