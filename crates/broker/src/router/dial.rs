//! Links and members of the ring that this broker dials: found, reached, and then connections like those that were accepted.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tracing::debug;
use turno_proto::model::{Code, limits};

use super::accept::Stream;
use super::reader::read;
use super::{Router, Upstream};
use crate::switchboard::{Dial, RingDial};

/// Where a broker listens if nobody says otherwise.
const PORT: u16 = 7460;

/// Dials whatever the engine wants dialled. Each on its own: one that takes long keeps no other waiting.
pub(super) async fn dial_for_ever<U: Upstream>(router: Rc<Router<U>>) {
    loop {
        router.dials.notified().await;
        let dials = router.state().switchboard.take_dials();
        for dial in dials {
            router.tasks.spawn(reach(Rc::clone(&router), dial));
        }
        let dials = router.state().switchboard.take_ring_dials();
        for dial in dials {
            router.tasks.spawn(reach_member(Rc::clone(&router), dial));
        }
    }
}

async fn reach<U: Upstream>(router: Rc<Router<U>>, Dial { target, address }: Dial) {
    match connect_within(&address, limits::LINK_DIAL_MS).await {
        Ok((stream, peer)) => router.dialled(target, stream, peer),
        Err(error) => {
            debug!(address, %error, "cannot reach a broker that a link is wanted to");
            router.not_reached(target, Code::LinkDown);
        }
    }
}

async fn reach_member<U: Upstream>(router: Rc<Router<U>>, dial: RingDial) {
    let now = router.state().clock.now();
    match connect_within(&dial.address, dial.until.millis_left(now)).await {
        Ok((stream, peer)) => router.member_dialled(&dial, stream, peer),
        Err(error) => {
            debug!(address = dial.address, %error, "cannot reach a member of the ring");
            router.member_not_reached(dial.target);
        }
    }
}

/// A connection, and where its other end is.
pub(crate) async fn connect_within(address: &str, limit_ms: u64) -> io::Result<(Stream, String)> {
    let reached = tokio::time::timeout(Duration::from_millis(limit_ms), connect(address, limit_ms)).await;
    reached.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn connect(address: &str, limit_ms: u64) -> io::Result<(Stream, String)> {
    if let Some(path) = address.strip_prefix("unix:") {
        return Ok((Stream::Unix(UnixStream::connect(path).await?), "unix".to_owned()));
    }
    let found: Vec<_> = lookup_host(place_of(address)).await?.collect();
    let share = limit_ms / (found.len() as u64).max(1);
    let mut last = io::ErrorKind::NotFound.into();
    for place in found {
        match tokio::time::timeout(Duration::from_millis(share), TcpStream::connect(place)).await {
            Ok(Ok(stream)) => return Ok((Stream::Tcp(stream), place.to_string())),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// HOST:PORT of an address, with the usual port if it names none.
fn place_of(address: &str) -> String {
    let place = address.strip_prefix("turno://").unwrap_or(address).trim_end_matches('/');
    // The colons inside of brackets are an IPv6 address's own.
    let after_host = place.rsplit(']').next().unwrap_or(place);
    if after_host.contains(':') { place.to_owned() } else { format!("{place}:{PORT}") }
}

impl<U: Upstream> Router<U> {
    /// The greeting of a link begins.
    fn dialled(self: &Rc<Self>, target: u32, stream: Stream, address: String) {
        let (read_end, write_end) = match stream.split() {
            Ok(ends) => ends,
            Err(error) => {
                debug!(address, %error, "a connection was lost as soon as it was made");
                return self.not_reached(target, Code::LinkDown);
            }
        };
        let mut state = self.state();
        let now = state.clock.now();
        if let Some(id) = state.switchboard.dial(now, target, address) {
            self.open.fetch_add(1, Ordering::Relaxed);
            let reader = self.tasks.spawn(read(Rc::clone(self), id, read_end));
            state.add_socket(id, write_end, reader);
        }
        self.settle(state);
    }

    /// The greeting of a member begins.
    fn member_dialled(self: &Rc<Self>, dial: &RingDial, stream: Stream, address: String) {
        let (read_end, write_end) = match stream.split() {
            Ok(ends) => ends,
            Err(error) => {
                debug!(address, %error, "a connection was lost as soon as it was made");
                return self.member_not_reached(dial.target);
            }
        };
        let mut state = self.state();
        let now = state.clock.now();
        if let Some(id) = state.switchboard.dial_ring(now, dial, address) {
            self.open.fetch_add(1, Ordering::Relaxed);
            let reader = self.tasks.spawn(read(Rc::clone(self), id, read_end));
            state.add_socket(id, write_end, reader);
        }
        self.settle(state);
    }

    fn member_not_reached(&self, target: u32) {
        let mut state = self.state();
        let now = state.clock.now();
        state.switchboard.ring_dial_failed(now, target, Code::RingDown);
        self.settle(state);
    }

    fn not_reached(&self, target: u32, code: Code) {
        let mut state = self.state();
        let now = state.clock.now();
        state.switchboard.dial_failed(now, target, code);
        self.settle(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        let table = [
            ("rb-1:7461", "rb-1:7461"),
            ("rb-1", "rb-1:7460"),
            ("turno://rb-1", "rb-1:7460"),
            ("turno://rb-1:7461/", "rb-1:7461"),
            ("[::1]", "[::1]:7460"),
            ("[::1]:7461", "[::1]:7461"),
            ("turno://10.0.0.1", "10.0.0.1:7460"),
        ];
        for (address, place) in table {
            assert_eq!(place_of(address), place);
        }
    }
}
