//! W7: a worker that holds messages is killed; how long until all of them are at another worker.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::line::Connection;
use crate::memory::fill;
use crate::protocol::{ConnectionEnd, Role, Seen};
use crate::report::Figures;
use crate::spread::median;
use crate::system::System;
use crate::tasks::block_on;

const HELD: u32 = 10;
/// Kills of one round, of which the median counts.
const KILLS: usize = 5;
const SETTLE: Duration = Duration::from_millis(30);
const KILL_MAX: Duration = Duration::from_secs(30);

/// The worker that will be killed: says so once it holds all it can, and waits for its end.
pub(crate) fn hold(system: System, address: SocketAddr) -> Result<()> {
    block_on(async {
        let mut line = Connection::open(
            system,
            address,
            ConnectionEnd { role: Role::Holder, number: 1, slots: HELD, durable: false },
        )
        .await?;
        println!("ready");
        take_all(&mut line).await?;
        println!("holding");
        loop {
            line.turn().await?;
        }
    })
}

pub(crate) fn run(system: System, address: SocketAddr) -> Result<Figures> {
    block_on(async {
        let mut millis = Vec::new();
        for _ in 0..KILLS {
            let one = tokio::time::timeout(KILL_MAX, kill_one(system, address)).await;
            millis.push(one.context("the messages did not come to another worker")??);
        }
        Ok(Figures { takeover_ms: Some(median(&millis)), ..Figures::default() })
    })
}

/// Milliseconds from the kill to the last of the messages.
async fn kill_one(system: System, address: SocketAddr) -> Result<f64> {
    let mut holder = Command::new(std::env::current_exe()?)
        .args(["hold", system.name(), &address.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut said = BufReader::new(holder.stdout.take().context("piped")?).lines();
    said.next_line().await?.context("the worker to be killed did not start")?;
    let mut producer = Connection::open(
        system,
        address,
        ConnectionEnd { role: Role::Producer, number: 0, slots: HELD, durable: false },
    )
    .await?;
    fill(&mut producer, HELD, HELD).await?;
    said.next_line().await?.context("the worker to be killed did not take its messages")?;
    let mut other = Connection::open(
        system,
        address,
        ConnectionEnd { role: Role::Consumer, number: 2, slots: HELD, durable: false },
    )
    .await?;
    // It asks for work, is told that there is none, and waits like a worker of an ordinary day.
    let idle = async {
        loop {
            other.turn().await?;
        }
    };
    if let Ok(broken) = tokio::time::timeout(SETTLE, idle).await {
        return broken;
    }
    let begun = kill(&mut holder)?;
    take_all(&mut other).await?;
    let millis = begun.elapsed().as_secs_f64() * 1e3;
    // The last settlement must be confirmed before the next worker comes.
    other.flush().await?;
    holder.wait().await?;
    Ok(millis)
}

fn kill(holder: &mut Child) -> Result<Instant> {
    let begun = Instant::now();
    holder.start_kill()?;
    Ok(begun)
}

async fn take_all(line: &mut Connection) -> Result<()> {
    let mut taken = 0;
    loop {
        taken += line.seen.drain(..).filter(|seen| *seen == Seen::Taken).count();
        if taken >= HELD as usize {
            return Ok(());
        }
        line.turn().await?;
    }
}
