//! A connection's two ends, whatever it runs over.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

/// The end bytes come from.
#[derive(Debug)]
pub(super) enum ReadEnd {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
}

/// The end bytes go to. Dropping it tells the peer that no more will come.
#[derive(Debug)]
pub(super) enum WriteEnd {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

/// Silence after which the system asks whether the other host is still there, and how often it asks again.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(5), 3);

/// The foreman's protocol has no signs of life: the system looks for a host that vanished.
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let (idle, interval, count) = KEEPALIVE;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, idle)?;
    sockopt::set_tcp_keepintvl(stream, interval)?;
    sockopt::set_tcp_keepcnt(stream, count)?;
    Ok(())
}

pub(super) fn split_tcp(stream: TcpStream) -> io::Result<(ReadEnd, WriteEnd)> {
    stream.set_nodelay(true)?;
    let (read, write) = stream.into_split();
    Ok((ReadEnd::Tcp(read), WriteEnd::Tcp(write)))
}

pub(super) fn split_unix(stream: UnixStream) -> (ReadEnd, WriteEnd) {
    let (read, write) = stream.into_split();
    (ReadEnd::Unix(read), WriteEnd::Unix(write))
}

impl ReadEnd {
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(end) => Pin::new(end).poll_read(context, buffer),
            Self::Unix(end) => Pin::new(end).poll_read(context, buffer),
        }
    }
}

impl WriteEnd {
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(end) => end.try_write(bytes),
            Self::Unix(end) => end.try_write(bytes),
        }
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(end) => end.writable().await,
            Self::Unix(end) => end.writable().await,
        }
    }
}
