//! Requests as in W2, alone and beside the cancelling of many other messages.

use std::net::SocketAddr;
use std::rc::Rc;

use anyhow::{Result, bail};
use turno_proto::native::Kind;

use super::canceller::{CancelWay, Canceller};
use super::figures::RuleSample;
use crate::link::Link;
use crate::native::echo;
use crate::overload::clients::{ClientGroup, Interval};
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::tasks::{Failure, block_on};

/// As W2 has them, with the ten clients of the clients.
const WORKERS: usize = 10;
const SLOTS: u32 = 10;
const IN_FLIGHT: usize = 10;
const DEADLINE_MS: u32 = 30_000;
const WARM_UP: f64 = 0.3;
const ALONE: f64 = 1.0;
/// One connection has them all.
const WAITING_MAX: (&str, u32) = ("TURNO_LIMITS__IN_FLIGHT", 1_000_000);

/// The requests' p99 while others are cancelled, and in the second that this begins with, beside that of the second
/// before.
pub(super) fn measure(way: CancelWay, router_count: usize) -> Result<RuleSample> {
    let settings = [routers(router_count), (WAITING_MAX.0, WAITING_MAX.1.to_string())];
    let server = Server::start(System::Turno, false, Keeps::Memory, &settings)?;
    block_on(drive(way, server.address))
}

async fn drive(way: CancelWay, address: SocketAddr) -> Result<RuleSample> {
    let mut canceller = Canceller::start(way, address).await?;
    let failure = Rc::new(Failure::default());
    let clients = ClientGroup::gather(address, DEADLINE_MS).await?;
    for _ in 0..WORKERS {
        let worker = Link::worker(System::Turno, address, &clients.scratch, 0..1, SLOTS).await?;
        let failure = Rc::clone(&failure);
        tokio::task::spawn_local(async move { failure.keep(work(worker).await) });
    }
    clients.keep_asking(IN_FLIGHT);
    clients.watch(WARM_UP).await?;
    let alone = clients.watch(ALONE).await?;
    let (during, beside, seconds) = clients.watch_during(canceller.cancel(), ALONE).await?;
    let (control, _, ()) = clients.watch_during(canceller.spin(), 0.0).await?;
    failure.check()?;
    sample(&Intervals { alone, during, beside, control }, seconds)
}

/// The stretches that are compared.
struct Intervals {
    /// The second before.
    alone: Interval,
    /// While others are cancelled.
    during: Interval,
    /// The second that this begins with.
    beside: Interval,
    /// As long as it took, with a process that does nothing but use a core: so much of it is not the broker's doing.
    control: Interval,
}

fn sample(Intervals { alone, during, beside, control }: &Intervals, seconds: f64) -> Result<RuleSample> {
    for stretch in [alone, during, beside, control] {
        if stretch.replies == 0 || !stretch.refusals.is_empty() {
            bail!("{} replies, and without one {:?}", stretch.replies, stretch.refusals);
        }
    }
    let p99_us = [alone, during, beside, control].map(Interval::p99_us);
    Ok(RuleSample(vec![
        ("p99 meanwhile / alone", p99_us[1] / p99_us[0]),
        ("p99 in that second / alone", p99_us[2] / p99_us[0]),
        ("p99 beside a busy loop / alone", p99_us[3] / p99_us[0]),
        ("p99 us alone", p99_us[0]),
        ("p99 us meanwhile", p99_us[1]),
        ("requests/s alone", alone.rate()),
        ("requests/s meanwhile", during.rate()),
        ("requests/s beside a busy loop", control.rate()),
        ("ms until all were cancelled", seconds * 1e3),
    ]))
}

async fn work(mut worker: Link) -> Result<()> {
    loop {
        worker.flush().await?;
        worker
            .receive(|header, rest, out| {
                if header.kind == Kind::Deliver.number() {
                    echo(&header, rest, out);
                }
            })
            .await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_one_round_and_refusals_spoil_it() {
        let stretch =
            |p99_us| Interval { seconds: 1.0, asked: 5, replies: 5, micros: vec![p99_us], ..Interval::default() };
        let of = |alone, during| Intervals { alone, during, beside: stretch(600), control: stretch(800) };
        let good = sample(&of(stretch(400), stretch(1_000)), 0.25).unwrap();
        assert_eq!(good.0[0], ("p99 meanwhile / alone", 2.5));
        assert_eq!(good.0[1], ("p99 in that second / alone", 1.5));
        assert_eq!(good.0[2], ("p99 beside a busy loop / alone", 2.0));
        assert_eq!(good.0[8], ("ms until all were cancelled", 250.0));
        let refused = Interval { refusals: [("timed_out".to_owned(), 1)].into(), ..stretch(1) };
        assert!(sample(&of(stretch(1), refused), 1.0).is_err());
        assert!(sample(&of(Interval::default(), stretch(1)), 1.0).is_err());
    }
}
