//! W6, durable: what a message that waits on disk costs in memory, how long a broker with many of them takes to start
//! again after a kill, and what its disk holds once most of them are done with.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::line::Connection;
use crate::memory::{BODY, fill, per, settled};
use crate::plain_log::message_bytes;
use crate::protocol::{ConnectionEnd, Role, Seen};
use crate::report::Figures;
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::tasks::block_on;
use crate::works::load_on;

const IN_FLIGHT: u32 = 1_024;
const SLOTS: u32 = 256;
/// Of so many messages one is left by the drain.
const LEFT_OF: u32 = 10;
/// For a million messages, or fewer.
const MILLION_MAX: Duration = Duration::from_secs(300);
/// Housekeeping of the store is over when so many looks in a row find the same.
const CALM_LOOKS: u32 = 10;
const LOOKS_MAX: u32 = 300;
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const BLOCK_BYTES: u64 = 512;

/// Fills a durable queue, kills the broker, starts it again, and drains most of the queue.
pub(crate) fn measure(count: u32, router_count: usize) -> Result<Figures> {
    let settings = [routers(router_count)];
    let mut server = Server::start(System::Turno, false, Keeps::Disk, &settings)?;
    let filled = load_on(&server, "pending", System::Turno, false, Some(&count.to_string()))?;
    let restart = server.restart(Keeps::Disk, &settings).context("the broker does not start again")?;
    let left = count / LEFT_OF;
    load_on(&server, "drain", System::Turno, false, Some(&(count - left).to_string()))?;
    let live = u64::from(left) * message_bytes(BODY) as u64;
    let disk = settled_disk(&server.data.join("store"))?;
    Ok(Figures {
        pending: Some(f64::from(count)),
        restart_s: Some(restart.as_secs_f64()),
        disk_spare_bytes: Some(disk as f64 - 2.0 * live as f64),
        ..filled
    })
}

/// Sends so many messages that nobody takes, and looks at the server's memory before and after.
pub(crate) fn pending(address: SocketAddr, pids: &[u32], count: u32) -> Result<Figures> {
    in_time(count, async {
        let mut line = Connection::open(System::Turno, address, seat(Role::Producer, 0)).await?;
        let before = settled(pids).await;
        fill(&mut line, count, IN_FLIGHT).await?;
        let bytes = per(settled(pids).await, before, count);
        Ok(Figures { durable_message_bytes: Some(bytes), ..Figures::default() })
    })
}

/// Takes and acks so many messages.
pub(crate) fn drain(address: SocketAddr, count: u32) -> Result<Figures> {
    in_time(count, async {
        let mut line = Connection::open(System::Turno, address, seat(Role::Consumer, 0)).await?;
        let mut taken = 0;
        while taken < count {
            line.turn().await?;
            for seen in line.seen.drain(..) {
                match seen {
                    Seen::Taken => taken += 1,
                    other => bail!("not a message: {other:?}"),
                }
            }
        }
        line.flush().await?;
        Ok(Figures::default())
    })
}

const fn seat(role: Role, number: u32) -> ConnectionEnd {
    ConnectionEnd { role, number, slots: SLOTS, durable: true }
}

fn in_time(count: u32, work: impl Future<Output = Result<Figures>>) -> Result<Figures> {
    let most = MILLION_MAX * count.div_ceil(1_000_000);
    block_on(async { tokio::time::timeout(most, work).await.context("it took too long")? })
}

/// Bytes of a folder's files on the disk, once they stay as they are.
fn settled_disk(folder: &Path) -> Result<u64> {
    let (mut last, mut calm) = (disk_bytes(folder)?, 0);
    for _ in 0..LOOKS_MAX {
        std::thread::sleep(LOOK_AGAIN);
        let now = disk_bytes(folder)?;
        calm = if now == last { calm + 1 } else { 0 };
        last = now;
        if calm == CALM_LOOKS {
            break;
        }
    }
    Ok(last)
}

fn disk_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        match entry?.metadata() {
            Ok(metadata) => bytes += metadata.blocks() * BLOCK_BYTES,
            // The store removes files while we look.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}
