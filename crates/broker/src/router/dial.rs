//! Connections that this broker dials: links and members of the ring.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tracing::debug;
use turno_proto::model::{Code, limits};

use super::accept::Stream;
use super::reader::read;
use super::socket::{ReadEnd, WriteEnd};
use super::{Router, Upstream};
use crate::connections::{Dial, RingDial};

/// Where a broker listens if nobody says otherwise.
const PORT: u16 = 7460;

/// A broker that the engine wants reached.
enum Wanted {
    Link(Dial),
    Member(RingDial),
}

/// Dials whatever the engine wants dialled. Each on its own: one that takes long keeps no other waiting.
pub(super) async fn dial_for_ever<U: Upstream>(router: Rc<Router<U>>) {
    loop {
        router.dials.notified().await;
        let links = router.state().connections.take_dials();
        let members = router.state().connections.take_ring_dials();
        for wanted in links.into_iter().map(Wanted::Link).chain(members.into_iter().map(Wanted::Member)) {
            router.tasks.spawn(reach(Rc::clone(&router), wanted));
        }
    }
}

async fn reach<U: Upstream>(router: Rc<Router<U>>, wanted: Wanted) {
    let now = router.state().clock.now();
    let (address, limit_ms) = match &wanted {
        Wanted::Link(dial) => (&dial.address, limits::LINK_DIAL_MS),
        Wanted::Member(dial) => (&dial.address, dial.until.millis_left(now)),
    };
    let reached = connect_within(address, limit_ms).await;
    match reached.and_then(|(stream, peer)| Ok((stream.split()?, peer))) {
        Ok((ends, peer)) => router.dialled(&wanted, ends, peer),
        Err(error) => {
            debug!(address, %error, "cannot reach a broker");
            router.not_reached(&wanted);
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
    /// The greeting begins.
    fn dialled(self: &Rc<Self>, wanted: &Wanted, (read_end, write_end): (ReadEnd, WriteEnd), address: String) {
        let mut state = self.state();
        let now = state.clock.now();
        let begun = match wanted {
            Wanted::Link(dial) => state.connections.dial(now, dial.target, address),
            Wanted::Member(dial) => state.connections.dial_ring(now, dial, address),
        };
        if let Some(id) = begun {
            self.open.fetch_add(1, Ordering::Relaxed);
            let reader = self.tasks.spawn(read(Rc::clone(self), id, read_end));
            state.add_socket(id, write_end, reader);
        }
        self.settle(state);
    }

    fn not_reached(&self, wanted: &Wanted) {
        let mut state = self.state();
        let now = state.clock.now();
        match wanted {
            Wanted::Link(dial) => state.connections.dial_failed(now, dial.target, Code::LinkDown),
            Wanted::Member(dial) => state.connections.ring_dial_failed(now, dial.target, Code::RingDown),
        }
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
