//! The socket, TCP or Unix.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, Ready};
use tokio::net::{TcpStream, UnixStream};

use crate::Address;

/// How long a connection that is left may take for its last bytes.
const FAREWELL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(crate) async fn dial(address: Address) -> io::Result<Self> {
        match address {
            Address::Tcp(place) => {
                let stream = TcpStream::connect(place).await?;
                // Frames are gathered here; the kernel has no reason to wait for more.
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Address::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
        }
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await,
            Self::Unix(stream) => stream.ready(interest).await,
        }
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(buffer),
            Self::Unix(stream) => stream.try_read(buffer),
        }
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Writes the last bytes and waits for the other side to hang up: closing a socket with unread bytes makes
    /// the kernel reset the connection, and the reset may overtake what was written.
    pub(crate) async fn farewell(self, bytes: Vec<u8>) {
        let all = async {
            match self {
                Self::Tcp(stream) => flush(stream, bytes).await,
                Self::Unix(stream) => flush(stream, bytes).await,
            }
        };
        // Nobody waits for the result: what was to be answered has been.
        let _ = tokio::time::timeout(FAREWELL, all).await;
    }
}

async fn flush(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, bytes: Vec<u8>) -> io::Result<()> {
    stream.write_all(&bytes).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
