//! A raw connection, over TCP or a Unix socket.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn tcp(address: SocketAddr) -> Self {
        Self::from(TcpStream::connect(address).expect("the broker accepts"))
    }

    pub(crate) fn unix(path: &Path) -> Self {
        Self::Unix(UnixStream::connect(path).expect("the broker accepts"))
    }

    pub(crate) fn patience(&self, time: Duration) {
        let set = match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(time)),
            Self::Unix(stream) => stream.set_read_timeout(Some(time)),
        };
        set.expect("our own socket");
    }

    /// How long a write may find no room before it gives up.
    pub(crate) fn push(&self, time: Duration) {
        let set = match self {
            Self::Tcp(stream) => stream.set_write_timeout(Some(time)),
            Self::Unix(stream) => stream.set_write_timeout(Some(time)),
        };
        set.expect("our own socket");
    }
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a TCP socket");
        Self::Tcp(stream)
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
        }
    }
}
