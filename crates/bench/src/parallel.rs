//! Durable sends beside another load: so many a second whatever comes back, to a queue of their own that is consumed.
//! In a process of its own, so that it cannot slow down the load that is measured.

use std::cell::Cell;
use std::io::{BufRead, BufReader, ErrorKind, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use turno_proto::model::Delivery;
use turno_proto::native::{Frame, Kind, Raw, RawOutgoing, encode};

use crate::link::{Link, name_of, scratch};
use crate::memory::BODY;
use crate::report::Figures;
use crate::system::System;
use crate::tasks::{Failure, block_on};

/// Sends a second.
pub(crate) const PER_SECOND: f64 = 10_000.0;
const CONSUMERS: usize = 4;
const SLOTS: u32 = 256;
const TICK: Duration = Duration::from_millis(2);

/// The sends, until this is ended or dropped.
pub(crate) struct ParallelRun {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl ParallelRun {
    /// Starts them and waits until they run.
    pub(crate) fn start(address: SocketAddr) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["beside", &address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the durable sends")?;
        let said = BufReader::new(child.stdout.take().context("piped")?);
        let mut beside = Self { child, said };
        beside.line().context("the durable sends did not begin")?;
        Ok(beside)
    }

    /// How many were stored a second.
    pub(crate) fn end(mut self) -> Result<f64> {
        drop(self.child.stdin.take());
        let figures: Figures = serde_json::from_str(&self.line().context("the durable sends broke off")?)?;
        figures.beside_sends_per_s.context("a rate of the durable sends")
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.said.read_line(&mut line)? {
            0 => bail!("it said nothing"),
            _ => Ok(line),
        }
    }
}

impl Drop for ParallelRun {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to be done about either.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Default)]
struct StoredTally {
    stored: Cell<u64>,
    failure: Failure,
}

/// Is the sends, until the standard input ends.
pub(crate) fn run(address: SocketAddr) -> Result<Figures> {
    block_on(async {
        let tally = Rc::new(StoredTally::default());
        let scratch = scratch();
        for _ in 0..CONSUMERS {
            let consumer = Link::worker(System::Turno, address, &scratch, 1..2, SLOTS).await?;
            let tally = Rc::clone(&tally);
            tokio::task::spawn_local(async move { tally.failure.keep(consume(consumer).await) });
        }
        let producer = Link::client(System::Turno, address, &scratch, 1..2).await?;
        let stream = producer.stream();
        let begun = Instant::now();
        let (sender, counter) = (Rc::clone(&tally), Rc::clone(&tally));
        tokio::task::spawn_local(async move { sender.failure.keep(send(&stream, begun).await) });
        tokio::task::spawn_local(async move { counter.failure.keep(count(producer, &counter.stored).await) });
        println!("ready");
        input_ended().await?;
        tally.failure.check()?;
        let rate = tally.stored.get() as f64 / begun.elapsed().as_secs_f64();
        Ok(Figures { beside_sends_per_s: Some(rate), ..Figures::default() })
    })
}

async fn input_ended() -> Result<()> {
    let (told, ended) = oneshot::channel();
    std::thread::spawn(move || {
        // Whatever it says, and however it ends, it is over.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = told.send(());
    });
    Ok(ended.await?)
}

/// Writes what is due since the beginning, and never waits for an answer.
async fn send(stream: &TcpStream, begun: Instant) -> Result<()> {
    let body = [7; BODY];
    let mut out = Vec::new();
    let mut sent = 0_u32;
    loop {
        let due = (begun.elapsed().as_secs_f64() * PER_SECOND) as u32;
        while sent < due {
            let raw = Raw { headers: false, bytes: &body };
            encode(&Frame::Send(RawOutgoing::new(sent, 0, raw)), &mut out);
            sent += 1;
        }
        let mut written = 0;
        while written < out.len() {
            match stream.try_write(&out[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => stream.writable().await?,
                Err(error) => return Err(error.into()),
            }
        }
        out.clear();
        tokio::time::sleep(TICK).await;
    }
}

async fn count(mut producer: Link, stored: &Cell<u64>) -> Result<()> {
    loop {
        let refused = Cell::new(None);
        producer
            .receive(|header, _, _| match Kind::from_number(header.kind) {
                Some(Kind::Stored) => stored.set(stored.get() + 1),
                _ => refused.set(Some(header.word)),
            })
            .await?;
        if let Some(number) = refused.get() {
            bail!("a durable send ended with {}", name_of(number));
        }
    }
}

async fn consume(mut consumer: Link) -> Result<()> {
    loop {
        consumer.flush().await?;
        consumer
            .receive(|header, _, out| {
                if let Some(Kind::Deliver) = Kind::from_number(header.kind) {
                    encode(&Frame::Ack { delivery: Delivery { index: header.word, stamp: header.seq } }, out);
                }
            })
            .await?;
    }
}
