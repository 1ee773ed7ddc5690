//! The start of a connection: accepted, checked and given to a router.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use tokio::net::{TcpStream, UnixStream};
use tracing::{debug, warn};
use turno_proto::model::Code;
use turno_proto::native::{Frame, encode};

use super::reader::read;
use super::socket::{ReadEnd, WriteEnd, split_tcp, split_unix};
use super::{Router, Upstream};
use crate::connections::ListenerKind;
use crate::keepalive::keep_alive;
use crate::log_limit::{self, LogKind};

/// A connection that was just accepted, on the thread that will keep it.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// An accepted connection on its way to another thread.
#[derive(Debug)]
pub(crate) enum AcceptedStream {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Stream {
    pub(crate) fn pack(self) -> io::Result<AcceptedStream> {
        Ok(match self {
            Self::Tcp(stream) => AcceptedStream::Tcp(stream.into_std()?),
            Self::Unix(stream) => AcceptedStream::Unix(stream.into_std()?),
        })
    }

    /// One too many: it is told, as far as one write goes.
    pub(crate) fn turn_away(self, kind: ListenerKind) {
        match self.split() {
            Ok((_, write_end)) => turn_away(&write_end, kind),
            Err(error) => debug!(%error, "a refused connection was already closed"),
        }
    }

    fn ready_for(self, kind: ListenerKind) -> io::Result<Self> {
        if let (Self::Tcp(stream), ListenerKind::Foreman) = (&self, kind) {
            keep_alive(stream)?;
        }
        Ok(self)
    }

    pub(super) fn split(self) -> io::Result<(ReadEnd, WriteEnd)> {
        match self {
            Self::Tcp(stream) => split_tcp(stream),
            Self::Unix(stream) => Ok(split_unix(stream)),
        }
    }
}

impl AcceptedStream {
    pub(super) fn unpack(self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            Self::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

impl<U: Upstream> Router<U> {
    /// Takes a connection in. The caller has counted it.
    pub(crate) fn welcome(self: &Rc<Self>, stream: io::Result<Stream>, address: String, kind: ListenerKind) {
        let (read_end, write_end) = match stream.and_then(|stream| stream.ready_for(kind)).and_then(Stream::split) {
            Ok(ends) => ends,
            Err(error) => {
                log_limit::connection_lost(&error);
                self.open.fetch_sub(1, Ordering::Relaxed);
                return;
            }
        };
        let mut state = self.state();
        let now = state.clock.now();
        if let Some(id) = state.connections.accept(now, address, kind) {
            let reader = self.tasks.spawn(read(Rc::clone(self), id, read_end));
            state.add_socket(id, write_end, reader);
        } else {
            turn_away(&write_end, kind);
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        self.settle(state);
    }
}

fn turn_away(write_end: &WriteEnd, kind: ListenerKind) {
    if log_limit::admits(LogKind::TurnedAway) {
        warn!("refused a connection: limits.connections reached");
    }
    if matches!(kind, ListenerKind::Foreman | ListenerKind::Zmq(_)) {
        // Their protocols have no word for that; the peer comes again.
        return;
    }
    let code = Code::TooManyConnections;
    let mut bytes = Vec::new();
    encode(&Frame::Error { seq: 0, code, fatal: true, detail: code.text().what }, &mut bytes);
    if let Err(error) = write_end.try_write(&bytes) {
        debug!(%error, "could not send the refusal to a connection");
    }
}
