//! Broadcasts that want no reply, to many consumers; counted where they arrive.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use tokio::sync::Notify;
use turno_proto::native::{Frame, Kind, Raw, RawBroadcast, encode};

use super::figures::RuleSample;
use crate::link::{Link, name_of, scratch};
use crate::memory::BODY;
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::tasks::{Failure, block_on};
use crate::works::relay_requests;

pub(super) const CONSUMERS: u64 = 1_000;
/// Broadcasts that are not with all consumers yet.
const IN_FLIGHT: u64 = 8;
const WARM_UP: Duration = Duration::from_millis(300);
const COUNTED: Duration = Duration::from_millis(1_500);

/// Deliveries beside the relay's requests, in any order.
pub(super) fn measure(router_count: usize, dice: &mut Rng) -> Result<RuleSample> {
    let relay = || relay_requests()?.rate_per_s.context("a rate of the relay");
    let (deliveries, requests) = if dice.bool() {
        let requests = relay()?;
        (deliveries(router_count)?, requests)
    } else {
        (deliveries(router_count)?, relay()?)
    };
    let ratio = deliveries / requests;
    Ok(RuleSample(vec![
        ("deliveries / relay's requests", ratio),
        ("deliveries/s", deliveries),
        ("relay's requests/s", requests),
    ]))
}

fn deliveries(router_count: usize) -> Result<f64> {
    let server = Server::start(System::Turno, false, Keeps::ByDefault, &[routers(router_count)])?;
    block_on(drive(server.address))
}

#[derive(Default)]
struct BroadcastTally {
    sent: Cell<u64>,
    received: Cell<u64>,
    room: Notify,
    failure: Failure,
}

impl BroadcastTally {
    fn has_room(&self) -> bool {
        self.sent.get() * CONSUMERS <= self.received.get() + (IN_FLIGHT - 1) * CONSUMERS
    }
}

async fn drive(address: SocketAddr) -> Result<f64> {
    let tally = Rc::new(BroadcastTally::default());
    let scratch = scratch();
    for _ in 0..CONSUMERS {
        let consumer = Link::worker(System::Turno, address, &scratch, 0..1, 1).await?;
        let tally = Rc::clone(&tally);
        tokio::task::spawn_local(async move { tally.failure.keep(take(consumer, &tally).await) });
    }
    let client = Link::client(System::Turno, address, &scratch, 0..1).await?;
    let sender = Rc::clone(&tally);
    tokio::task::spawn_local(async move { sender.failure.keep(send(client, &sender).await) });
    tokio::time::sleep(WARM_UP).await;
    let (begun, before) = (Instant::now(), tally.received.get());
    tokio::time::sleep(COUNTED).await;
    let rate = (tally.received.get() - before) as f64 / begun.elapsed().as_secs_f64();
    tally.failure.check().context("the load broke off")?;
    if rate == 0.0 {
        bail!("nothing was delivered");
    }
    Ok(rate)
}

async fn take(mut consumer: Link, tally: &BroadcastTally) -> Result<()> {
    loop {
        let mut came = 0;
        consumer.receive(|header, _, _| came += u64::from(header.kind == Kind::Deliver.number())).await?;
        tally.received.set(tally.received.get() + came);
        if tally.has_room() {
            tally.room.notify_one();
        }
    }
}

/// Keeps so many in flight. That one is over for the broker says nothing yet about its consumers.
async fn send(mut client: Link, tally: &BroadcastTally) -> Result<()> {
    let body = [7; BODY];
    loop {
        while tally.has_room() {
            let raw = Raw { headers: false, bytes: &body };
            let seq = u32::try_from(tally.sent.get() & u64::from(u32::MAX))?;
            let frame =
                RawBroadcast { seq, handle: 0, deadline_ms: None, no_reply: true, skip_self: false, payload: raw };
            encode(&Frame::Broadcast(frame), &mut client.out);
            tally.sent.set(tally.sent.get() + 1);
        }
        client.flush().await?;
        let refused = Cell::new(None);
        tokio::select! {
            came = client.receive(|header, _, _| {
                if header.kind != Kind::BroadcastEnd.number() {
                    refused.set(Some(header.word));
                }
            }) => drop(came?),
            () = tally.room.notified() => {}
        }
        if let Some(number) = refused.get() {
            bail!("a broadcast ended with {}", name_of(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_one_waits_until_the_oldest_is_with_all() {
        let tally = BroadcastTally::default();
        tally.sent.set(IN_FLIGHT);
        tally.received.set(CONSUMERS - 1);
        assert!(!tally.has_room());
        tally.received.set(CONSUMERS);
        assert!(tally.has_room());
    }
}
