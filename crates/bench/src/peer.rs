//! The load's ends of connections: they speak just enough of the wire, and batch as well as anyone can.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use turno_proto::model::{Delivery, Slots};
use turno_proto::native::{Connect, Frame, Header, Kind, Raw, Register, VERSION, encode, flags, split};

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Turno,
    Relay,
}

/// Bytes that DELIVER holds before deadline and payload.
const DELIVER_FIXED: usize = 24;
const DEADLINE_BYTES: usize = 4;

pub(crate) struct Peer {
    stream: TcpStream,
    inbox: Vec<u8>,
    start: usize,
    pub(crate) out: Vec<u8>,
}

impl Peer {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, inbox: Vec::with_capacity(128 * 1024), start: 0, out: Vec::new() })
    }

    /// A client with its queue open as handle 0.
    pub(crate) async fn client(system: System, address: SocketAddr) -> Result<Self> {
        let mut peer = Self::connect(address).await?;
        if system == System::Turno {
            peer.greet().await?;
            encode(&Frame::Open { seq: 3, handle: 0, name: b"bench" }, &mut peer.out);
            peer.expect(1).await?;
        }
        Ok(peer)
    }

    /// A worker of that queue.
    pub(crate) async fn worker(system: System, address: SocketAddr, slots: u32) -> Result<Self> {
        let mut peer = Self::client(system, address).await?;
        encode(&Frame::Register { seq: 4, register: Register::new(Slots::Limited(slots), "bench") }, &mut peer.out);
        if system == System::Turno {
            encode(&Frame::Consume { seq: 5, handle: 0 }, &mut peer.out);
            peer.expect(2).await?;
        } else {
            peer.flush().await?;
        }
        Ok(peer)
    }

    pub(crate) async fn greet(&mut self) -> Result<()> {
        let connect = Connect { version: VERSION, name: String::new(), program: "bench".into(), heartbeat_ms: 60_000 };
        encode(&Frame::Connect { seq: 1, connect }, &mut self.out);
        encode(&Frame::Ping { seq: 2 }, &mut self.out);
        self.expect(2).await
    }

    pub(crate) async fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// Writes what waits and takes so many answers, whatever they say.
    async fn expect(&mut self, mut count: usize) -> Result<()> {
        self.flush().await?;
        while count > 0 {
            match self.next() {
                Some((header, _)) if header.kind == Kind::Error.number() => bail!("refused: {}", header.word),
                Some(_) => count -= 1,
                None => self.read().await?,
            }
        }
        Ok(())
    }

    /// Waits for more bytes.
    pub(crate) async fn read(&mut self) -> Result<()> {
        if self.start > 0 {
            self.inbox.drain(..self.start);
            self.start = 0;
        }
        self.inbox.reserve(64 * 1024);
        match self.stream.read_buf(&mut self.inbox).await? {
            0 => bail!("the server closed the connection"),
            _ => Ok(()),
        }
    }

    /// The next whole frame of what was read.
    pub(crate) fn next(&mut self) -> Option<(Header, std::ops::Range<usize>)> {
        let piece = split(&self.inbox[self.start..], usize::MAX).ok()??;
        let end = self.start + piece.used;
        let range = end - piece.rest.len()..end;
        let header = piece.header;
        self.start = end;
        Some((header, range))
    }

    /// Answers a delivery with its own body.
    pub(crate) fn echo(&mut self, header: &Header, range: std::ops::Range<usize>) {
        let skip = match Kind::from_number(header.kind) {
            Some(Kind::Deliver) if header.flags & flags::DEADLINE != 0 => DELIVER_FIXED + DEADLINE_BYTES,
            Some(Kind::Deliver) => DELIVER_FIXED,
            _ => 0,
        };
        let body = &self.inbox[range.start + skip..range.end];
        let raw = Raw { headers: false, bytes: body };
        encode(&Frame::Reply { seq: header.seq, word: header.word, more: false, raw }, &mut self.out);
    }

    pub(crate) fn ack(&mut self, header: &Header) {
        encode(&Frame::Ack { delivery: Delivery { index: header.word, stamp: header.seq } }, &mut self.out);
    }
}

impl Peer {
    /// Sends so many messages and waits until all are stored.
    pub(crate) async fn send_many(&mut self, count: usize, body: usize) -> Result<()> {
        let body = vec![7; body];
        let (mut sent, mut stored) = (0, 0);
        while stored < count {
            while sent < count && sent - stored < 256 {
                let seq = u32::try_from(sent % 1_000_000)?;
                let message = turno_proto::native::Outgoing::new(seq, 0, Raw { headers: false, bytes: &body });
                encode(&Frame::Send(message), &mut self.out);
                sent += 1;
            }
            self.flush().await?;
            self.read().await?;
            while let Some((header, _)) = self.next() {
                match Kind::from_number(header.kind) {
                    Some(Kind::Stored) => stored += 1,
                    _ => bail!("a send was refused: {}", header.word),
                }
            }
        }
        Ok(())
    }
}
