//! An exclusive queue whose holder is killed: how long until its standby's program has the first message.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use turno_proto::model::view::QueueView;
use turno_proto::native::{Frame, Raw, RawOutgoing, encode};

use super::admin;
use super::figures::RuleSample;
use crate::link::{Link, name_of, queue_name, scratch};
use crate::server::{Keeps, Server, routers};
use crate::spread::median;
use crate::system::System;
use crate::tasks::block_on;

/// Kills of one round, of which the median counts.
const KILLS: usize = 5;
const RETRIES: u8 = 9;
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Is the program of both workers: says when it began, and with which token its worker has the queue.
pub(crate) fn stamp() -> Result<()> {
    let began = now()?;
    println!("{began} {}", std::env::var("TURNO_FENCE").unwrap_or_default());
    Ok(())
}

/// The times that the program printed.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    began: u128,
    token: Option<u64>,
}

impl Stamp {
    fn parse(said: &[u8]) -> Result<Self> {
        let said = std::str::from_utf8(said)?;
        let (began, token) = said.trim_end_matches('\n').split_once(' ').context("the program said something else")?;
        let token = if token.is_empty() { None } else { Some(token.parse()?) };
        Ok(Self { began: began.parse()?, token })
    }
}

/// Nanoseconds that two processes of one machine can compare.
fn now() -> Result<u128> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())
}

fn millis(earlier: u128, later: u128) -> f64 {
    later.saturating_sub(earlier) as f64 / 1e6
}

pub(super) fn measure(router_count: usize) -> Result<RuleSample> {
    let server = Server::start(System::Turno, false, Keeps::Memory, &[routers(router_count)])?;
    block_on(async {
        tokio::time::timeout(PATIENCE, kills(server.address)).await.context("the standby did not take over")?
    })
}

async fn kills(address: SocketAddr) -> Result<RuleSample> {
    let queue = queue_name(0);
    let scratch = scratch();
    let mut link = Link::client(System::Turno, address, &scratch, 0..1).await?;
    let (mut takeovers, mut starts, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    let mut holder = Worker::start(address, &queue, false)?;
    for _ in 0..KILLS {
        let held = wait(&mut link, &queue, |view| view.exclusive.is_some() && view.waiters == 0).await?;
        let standby = Worker::start(address, &queue, true)?;
        wait(&mut link, &queue, |view| view.waiters == 1).await?;
        let start = program_start()?;
        let killed = now()?;
        holder.end()?;
        let first = first_delivery(&mut link).await?;
        if first.token <= held.exclusive.map(|held| held.token.0) {
            bail!("the one that was killed has answered");
        }
        let takeover = millis(killed, first.began);
        holder = standby;
        takeovers.push(takeover);
        starts.push(start);
        beyond.push(takeover - start);
    }
    Ok(RuleSample(vec![
        ("ms beyond the program's start", median(&beyond)),
        ("ms in all", median(&takeovers)),
        ("ms of the program's start alone", median(&starts)),
    ]))
}

/// A worker of the queue that has it to itself, or waits for that. Ended when dropped.
struct Worker(Child);

impl Worker {
    fn start(address: SocketAddr, queue: &str, standby: bool) -> Result<Self> {
        let own = std::env::current_exe()?;
        let mut command = Command::new(own.with_file_name("turno"));
        command.args(["work", queue, "--exclusive", "--url", &format!("turno://{address}")]);
        if standby {
            command.arg("--standby");
        }
        command.arg("--").arg(own).arg("stamp");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Self(child.context("cannot start a worker")?))
    }

    /// As a kill -9 does. Its end is looked at when it is dropped.
    fn end(&mut self) -> Result<()> {
        self.0.kill().context("cannot kill the holder")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to be done about either.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Milliseconds until the program runs when nobody is killed.
fn program_start() -> Result<f64> {
    let begun = now()?;
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.arg("stamp").stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    Ok(millis(begun, Stamp::parse(&output.stdout)?.began))
}

async fn wait(link: &mut Link, queue: &str, is_so: impl Fn(&QueueView) -> bool) -> Result<QueueView> {
    loop {
        let view = admin::queue(link, queue).await?;
        if is_so(&view) {
            return Ok(view);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Asks, and says what the program that answers said. The broker may still give it to the one that is dead.
async fn first_delivery(link: &mut Link) -> Result<Stamp> {
    let raw = Raw { headers: false, bytes: b"" };
    let message = RawOutgoing { retries: Some(RETRIES), ..RawOutgoing::new(1, 0, raw) };
    encode(&Frame::Request(message), &mut link.out);
    link.flush().await?;
    let mut said = None;
    while said.is_none() {
        link.receive(|header, rest, _| {
            said = Some(match admin::whole(header, rest) {
                Ok(Frame::Reply { raw, .. }) => Stamp::parse(raw.bytes),
                Ok(_) => Err(anyhow::anyhow!("the request ended with {}", name_of(header.word))),
                Err(error) => Err(error),
            });
        })
        .await?;
    }
    match said {
        Some(said) => said,
        None => bail!("nothing was said"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_back() {
        let stamp = |token| Stamp { began: 1_500_000, token };
        assert_eq!(Stamp::parse(b"1500000 7\n").unwrap(), stamp(Some(7)));
        assert_eq!(Stamp::parse(b"1500000 \n").unwrap(), stamp(None));
        assert!(Stamp::parse(b"").is_err());
        assert_eq!((millis(500_000, 1_500_000), millis(2, 1)), (1.0, 0.0));
    }
}
