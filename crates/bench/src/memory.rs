//! W6: what idle connections and waiting messages cost a server in memory.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::line::Connection;
use crate::process;
use crate::protocol::{ConnectionEnd, Role, Seen, SystemProtocols, talk};
use crate::report::Figures;
use crate::system::System;
use crate::tasks::block_on;

const CONNECTIONS: u32 = 10_000;
const MESSAGES: u32 = 400_000;
pub(crate) const BODY: usize = 256;
const IN_FLIGHT: u32 = 256;
const ALL_MAX: Duration = Duration::from_secs(300);
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const LOOKS_MAX: u32 = 100;
/// So many looks in a row that differ by less than a two-hundredth are enough.
const CALM_LOOKS: u32 = 5;
const CALM_PART: u64 = 200;

/// Opens connections that say nothing, and looks at the server's memory before and after.
pub(crate) fn connections(system: System, address: SocketAddr, pids: &[u32]) -> Result<Figures> {
    idle(&|seat| talk(system, seat), address, pids, CONNECTIONS).with_context(|| system.to_string())
}

/// So many of them, in the words of the caller.
pub(crate) fn idle(talks: SystemProtocols<'_>, address: SocketAddr, pids: &[u32], count: u32) -> Result<Figures> {
    process::raise_file_limit(u64::from(count))?;
    in_time(async {
        let before = settled(pids).await;
        let mut idle = Vec::new();
        for number in 0..count {
            let seat = ConnectionEnd { role: Role::Idle, number, slots: 1, durable: false };
            let mut line = Connection::open_by(talks, address, seat).await?;
            line.rest();
            idle.push(line);
        }
        let bytes = per(settled(pids).await, before, count);
        Ok(Figures { connection_bytes: Some(bytes), ..Figures::default() })
    })
}

/// Fills a queue that nobody takes from, and looks at the server's memory before and after.
pub(crate) fn messages(system: System, address: SocketAddr, pids: &[u32]) -> Result<Figures> {
    in_time(async {
        let seat = ConnectionEnd { role: Role::Producer, number: 0, slots: IN_FLIGHT, durable: false };
        let mut line = Connection::open(system, address, seat).await?;
        let before = settled(pids).await;
        fill(&mut line, MESSAGES, IN_FLIGHT).await?;
        let bytes = per(settled(pids).await, before, MESSAGES);
        Ok(Figures { message_bytes: Some(bytes), ..Figures::default() })
    })
}

fn in_time(work: impl Future<Output = Result<Figures>>) -> Result<Figures> {
    block_on(async { tokio::time::timeout(ALL_MAX, work).await.context("it took too long")? })
}

/// Sends messages, with so many in flight, and waits until all are stored.
pub(crate) async fn fill(line: &mut Connection, count: u32, in_flight: u32) -> Result<()> {
    let body = [7; BODY];
    let (mut sent, mut stored) = (0, 0);
    while stored < count {
        while sent < count && sent - stored < in_flight {
            line.put(sent, &body);
            sent += 1;
        }
        line.turn().await?;
        for seen in line.seen.drain(..) {
            match seen {
                Seen::Done(_) => stored += 1,
                Seen::Refused(_) => bail!("a message was refused after {stored}"),
                Seen::Ready | Seen::Taken => {}
            }
        }
    }
    Ok(())
}

/// The server's memory once it stays as it is: what was told to a server keeps it busy for a while, and some give back
/// much of what they took at first.
pub(crate) async fn settled(pids: &[u32]) -> u64 {
    let mut last = process::memory_bytes(pids);
    let mut calm = 0;
    for _ in 0..LOOKS_MAX {
        tokio::time::sleep(LOOK_AGAIN).await;
        let now = process::memory_bytes(pids);
        calm = if now.abs_diff(last) <= last / CALM_PART { calm + 1 } else { 0 };
        last = now;
        if calm == CALM_LOOKS {
            break;
        }
    }
    last
}

pub(crate) fn per(more: u64, less: u64, count: u32) -> f64 {
    more.saturating_sub(less) as f64 / f64::from(count)
}
