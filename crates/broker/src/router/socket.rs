//! The two halves of a socket, TCP or Unix.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

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
