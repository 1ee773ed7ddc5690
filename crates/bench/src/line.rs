//! A connection of the load: one read, all that follows from it, one write.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::protocol::{ConnectionEnd, Seen, SystemProtocol, SystemProtocols, talk};
use crate::system::System;

const READ_BYTES: usize = 64 * 1024;
/// How long an opening may take; RabbitMQ's is the slowest.
const OPEN_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Connection {
    stream: TcpStream,
    talk: Box<dyn SystemProtocol>,
    inbox: Vec<u8>,
    out: Vec<u8>,
    /// Events that were not looked at yet.
    pub(crate) seen: Vec<Seen>,
}

impl Connection {
    /// Connects and goes through the opening.
    pub(crate) async fn open(system: System, address: SocketAddr, seat: ConnectionEnd) -> Result<Self> {
        Self::open_by(&|seat| talk(system, seat), address, seat).await.with_context(|| system.to_string())
    }

    /// The same, in the words of the caller.
    pub(crate) async fn open_by(talks: SystemProtocols<'_>, address: SocketAddr, seat: ConnectionEnd) -> Result<Self> {
        let opening = async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let talk = talks(seat);
            let mut line = Self { stream, talk, inbox: Vec::new(), out: Vec::new(), seen: Vec::new() };
            line.talk.open(&mut line.out, &mut line.seen);
            loop {
                if let Some(at) = line.seen.iter().position(|seen| *seen == Seen::Ready) {
                    line.seen.remove(at);
                    // It asks for nothing yet: a client that waited for replies now could not ask any more.
                    line.write().await?;
                    return Ok(line);
                }
                line.write().await?;
                line.read().await?;
            }
        };
        let opened: Result<Self> =
            tokio::time::timeout(OPEN_MAX, opening).await.context("the opening took too long")?;
        opened.with_context(|| format!("{:?} number {}", seat.role, seat.number))
    }

    pub(crate) fn put(&mut self, tag: u32, body: &[u8]) {
        self.talk.put(tag, body, &mut self.out);
    }

    /// Writes what waits, waits for bytes, and takes what they hold.
    pub(crate) async fn turn(&mut self) -> Result<()> {
        self.flush().await?;
        self.read().await
    }

    async fn read(&mut self) -> Result<()> {
        self.inbox.reserve(READ_BYTES);
        if self.stream.read_buf(&mut self.inbox).await? == 0 {
            bail!("the server closed the connection");
        }
        let used = self.talk.take(&self.inbox, &mut self.out, &mut self.seen)?;
        self.inbox.drain(..used);
        Ok(())
    }

    /// Writes what waits, and what asks for more.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        self.talk.pause(&mut self.out);
        self.write().await
    }

    async fn write(&mut self) -> Result<()> {
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// Gives its buffers back; for ends that have nothing to say for long.
    pub(crate) fn rest(&mut self) {
        self.inbox.shrink_to_fit();
        self.out.shrink_to_fit();
        self.seen.shrink_to_fit();
    }
}
