//! W5: one publisher, many subscribers of one topic. What is counted is deliveries, where they arrive.
//!
//! Both systems get the same: batches that were encoded once, no answer to a publication, and as many of them in flight.

mod wire;

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use self::wire::{Wire, open};
use crate::process;
use crate::report::Figures;
use crate::spread::median;
use crate::system::System;
use crate::tasks::{Failure, block_on};

/// Subscribers, in one load after the other.
pub(crate) const SUBSCRIBERS: [usize; 3] = [1, 10, 100];

/// Publications in one write.
const BATCH: usize = 32;
/// Batches that are not with all subscribers yet.
const IN_FLIGHT: usize = 16;
const READ_BYTES: usize = 64 * 1024;
/// Publications that are timed one by one, and those before them that are not.
const ONES: usize = 7_000;
const WARM_UP_ONES: usize = 700;
const WARM_UP: Duration = Duration::from_millis(300);
const COUNTED: Duration = Duration::from_millis(1_500);

/// Events that arrived, and batches on their way.
struct FanoutTally {
    received: Cell<u64>,
    /// How many subscribers have each batch that is on its way; its place is its number, taken round.
    arrived: RefCell<[usize; IN_FLIGHT]>,
    /// Batches that all of them have.
    done: Cell<usize>,
    subscribers: usize,
    room: Notify,
    failure: Failure,
}

impl FanoutTally {
    fn new(subscribers: usize) -> Self {
        let (received, done) = (Cell::new(0), Cell::new(0));
        let (arrived, room, failure) = (RefCell::new([0; IN_FLIGHT]), Notify::new(), Failure::default());
        Self { received, arrived, done, subscribers, room, failure }
    }

    /// A subscriber has all of a batch.
    fn has(&self, batch: usize) {
        let mut arrived = self.arrived.borrow_mut();
        let count = &mut arrived[batch % IN_FLIGHT];
        *count += 1;
        if *count == self.subscribers {
            *count = 0;
            self.done.set(self.done.get() + 1);
            self.room.notify_one();
        }
    }
}

/// Runs the load; `pids` are the server's, for its CPU time.
pub(crate) fn run(system: System, address: SocketAddr, pids: &[u32], subscribers: usize) -> Result<Figures> {
    run_apart(system, address, &vec![address; subscribers], pids)
}

/// The same with subscribers at other servers than the publisher.
pub(crate) fn run_apart(system: System, publisher: SocketAddr, at: &[SocketAddr], pids: &[u32]) -> Result<Figures> {
    block_on(async {
        let wire = Rc::new(Wire::of(system)?);
        let tally = Rc::new(FanoutTally::new(at.len()));
        let scratch = Rc::new(RefCell::new(vec![0; READ_BYTES]));
        for address in at {
            let stream = open(*address, &wire.subscriber).await?;
            let (wire, tally, scratch) = (Rc::clone(&wire), Rc::clone(&tally), Rc::clone(&scratch));
            tokio::task::spawn_local(async move {
                tally.failure.keep(subscribe(&stream, &wire, &scratch, &tally).await);
            });
        }
        let stream = open(publisher, &wire.publisher).await?;
        let sender = Rc::clone(&tally);
        tokio::task::spawn_local(async move {
            sender.failure.keep(publish(&stream, &wire.publication.repeat(BATCH), &sender).await);
        });
        tokio::time::sleep(WARM_UP).await;
        let (cpu, begun, before) = (process::cpu_seconds(pids), Instant::now(), tally.received.get());
        tokio::time::sleep(COUNTED).await;
        let (received, seconds) = ((tally.received.get() - before) as f64, begun.elapsed().as_secs_f64());
        let cpu = process::cpu_seconds(pids) - cpu;
        tally.failure.check().context("the load broke off")?;
        if received == 0.0 {
            bail!("nothing was delivered");
        }
        Ok(Figures { rate_per_s: Some(received / seconds), cpu_us: Some(cpu * 1e6 / received), ..Figures::default() })
    })
}

/// Every byte is compared with what must come.
async fn subscribe(stream: &TcpStream, wire: &Wire, scratch: &RefCell<Vec<u8>>, tally: &FanoutTally) -> Result<()> {
    let length = wire.event.len();
    let expected = wire.event.repeat(READ_BYTES / length + 2);
    // Bytes of the event that is not all there, and events.
    let (mut at, mut events) = (0, 0);
    loop {
        stream.readable().await?;
        let mut scratch = scratch.borrow_mut();
        let count = match stream.try_read(&mut scratch) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        };
        if scratch[..count] != expected[at..at + count] {
            bail!("a subscriber got something else than the next event");
        }
        let came = (at + count) / length;
        at = (at + count) % length;
        tally.received.set(tally.received.get() + came as u64);
        for batch in events / BATCH..(events + came) / BATCH {
            tally.has(batch);
        }
        events += came;
    }
}

/// Microseconds from a publication to each subscriber, one publication at a time: of each the median.
pub(crate) fn delays(publisher: SocketAddr, at: &[SocketAddr]) -> Result<Vec<f64>> {
    block_on(async {
        let wire = Wire::of(System::Turno)?;
        let mut subscribers = Vec::new();
        for address in at {
            subscribers.push(open(*address, &wire.subscriber).await?);
        }
        let mut stream = open(publisher, &wire.publisher).await?;
        let mut delays = vec![Vec::new(); at.len()];
        let mut buffer = vec![0; wire.event.len()];
        for round in 0..WARM_UP_ONES + ONES {
            // The first subscriber that is waited for must not make the others look late: in each round one is timed.
            let timed = round % at.len();
            let begun = Instant::now();
            stream.write_all(&wire.publication).await?;
            subscribers[timed].read_exact(&mut buffer).await?;
            let micros = begun.elapsed().as_secs_f64() * 1e6;
            for (number, subscriber) in subscribers.iter_mut().enumerate() {
                if number != timed {
                    subscriber.read_exact(&mut buffer).await?;
                }
                if buffer != wire.event {
                    bail!("a subscriber got something else than the event");
                }
            }
            if round >= WARM_UP_ONES {
                delays[timed].push(micros);
            }
        }
        Ok(delays.iter().map(|delays| median(delays)).collect())
    })
}

async fn publish(stream: &TcpStream, batch: &[u8], tally: &FanoutTally) -> Result<()> {
    let mut sent = 0;
    loop {
        while sent == tally.done.get() + IN_FLIGHT {
            tally.room.notified().await;
        }
        let mut written = 0;
        while written < batch.len() {
            match stream.try_write(&batch[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => stream.writable().await?,
                Err(error) => return Err(error.into()),
            }
        }
        sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_done_when_all_have_it() {
        let tally = FanoutTally::new(2);
        for (batch, done) in [(0, 0), (1, 0), (0, 1), (2, 1), (1, 2), (2, 3)] {
            tally.has(batch);
            assert_eq!(tally.done.get(), done, "after {batch}");
        }
    }
}
