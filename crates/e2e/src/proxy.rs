//! A way to a broker that is as bad as a test wants it to be, and changes while bytes are on it.

mod carry;
mod state;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use turno_proto::native::Kind;

use crate::door::Door;
use crate::port::Port;
pub use state::{Cut, Way};
use state::{State, TICK, Trap};

/// How long the target may take to accept. Longer: the dialler is disconnected.
const DIAL: Duration = Duration::from_secs(5);

/// Listens at an address of its own and passes bytes on, both ways, to another. Two threads carry each way of a
/// connection; at most 256 KiB of a way wait inside.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// On a free port, in front of that address.
    pub fn to(target: SocketAddr) -> Self {
        Self::start(Port::reserve(), target, Door::default(), None)
    }

    /// In the network behind that door, on a port reserved there.
    pub(crate) fn behind(door: Door, port: Port, target: SocketAddr) -> Self {
        Self::start(port, target, door, None)
    }

    /// One that cuts once: in place of a frame of that kind, the `nth` (from 1) of its connection that goes that way.
    /// Before STORED on the way back the broker has the message, and its sender does not hear of it.
    pub fn cutting(target: SocketAddr, way: Way, kind: Kind, nth: usize) -> Self {
        Self::start(Port::reserve(), target, Door::default(), Some(Trap { way, kind, nth }))
    }

    fn start(port: Port, target: SocketAddr, door: Door, trap: Option<Trap>) -> Self {
        let (address, state) = (port.address(), Arc::new(State::new(trap)));
        let listener = listen(&door, address);
        let shared = Arc::clone(&state);
        let acceptor = thread::spawn(move || accept(&port, listener, target, &door, &shared));
        Self { address, state, acceptor: Some(acceptor) }
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL.
    pub fn url(&self) -> String {
        format!("turno://{}", self.address)
    }

    /// Bytes that come from now on arrive so much later.
    pub fn delay(&self, way: Way, time: Duration) {
        self.state.change(|switches| switches.delay[way.index()] = time);
    }

    /// Takes bytes and passes none on, until [`Proxy::flow`]: the other end is there and hears nothing.
    pub fn stall(&self, way: Way) {
        self.state.change(|switches| switches.stalled[way.index()] = true);
    }

    /// Passes on again, first what waits.
    pub fn flow(&self, way: Way) {
        self.state.change(|switches| switches.stalled[way.index()] = false);
    }

    /// Passes on at most so many bytes with each write.
    pub fn pieces(&self, way: Way, bytes: usize) {
        self.state.change(|switches| switches.piece[way.index()] = bytes.max(1));
    }

    /// Ends every connection that there is now. What waits inside is lost; new ones are taken.
    pub fn cut(&self, how: Cut) {
        let all = self.state.change(|switches| {
            switches.cuts += 1;
            switches.how = how;
            switches.taken
        });
        self.state.until(|switches| switches.taken - switches.open >= all);
    }

    /// Refuses every dial from now on, as if nobody listened. Connections stay.
    pub fn refuse(&self) {
        self.state.change(|switches| switches.refusing = true);
        self.state.until(|switches| switches.closed);
    }

    /// Takes connections again.
    pub fn accept(&self) {
        self.state.change(|switches| switches.refusing = false);
        self.state.until(|switches| !switches.closed);
    }

    /// Connections taken so far.
    pub fn taken(&self) -> usize {
        self.state.look(|switches| switches.taken)
    }

    /// Connections now.
    pub fn open(&self) -> usize {
        self.state.look(|switches| switches.open)
    }

    /// Bytes passed on so far.
    pub fn passed(&self, way: Way) -> u64 {
        self.state.look(|switches| switches.passed[way.index()])
    }

    /// Bytes taken so far, whether passed on or not.
    pub fn heard(&self, way: Way) -> u64 {
        self.state.look(|switches| switches.heard[way.index()])
    }

    /// Whether one of [`Proxy::cutting`] did what it is for.
    pub fn has_cut(&self) -> bool {
        self.state.look(|switches| switches.sprung)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.change(|switches| switches.over = true);
        if let Some(acceptor) = self.acceptor.take() {
            // It panics only if its port cannot be had, and then the test hears of it by other means.
            let _ = acceptor.join();
        }
    }
}

fn listen(door: &Door, address: SocketAddr) -> TcpListener {
    let listener = door.within(|| TcpListener::bind(address)).expect("a port of our own");
    listener.set_nonblocking(true).expect("our own socket");
    listener
}

fn accept(port: &Port, first: TcpListener, target: SocketAddr, door: &Door, state: &Arc<State>) {
    let mut listener = Some(first);
    loop {
        let (over, refusing) = state.look(|switches| (switches.over, switches.refusing));
        if over {
            return;
        }
        match (&listener, refusing) {
            // Connections that wait to be accepted are reset with it.
            (Some(_), true) => listener = None,
            (None, false) => listener = Some(listen(door, port.address())),
            _ => {}
        }
        state.change(|switches| switches.closed = listener.is_none());
        match listener.as_ref().map(TcpListener::accept) {
            Some(Ok((peer, _))) => take(peer, target, door.clone(), Arc::clone(state)),
            Some(Err(error)) if error.kind() != ErrorKind::WouldBlock => panic!("the proxy cannot accept: {error}"),
            _ => state.rest(TICK),
        }
    }
}

/// Dials on a thread of its own, since that may take long.
fn take(peer: TcpStream, target: SocketAddr, door: Door, state: Arc<State>) {
    let born = state.enter();
    thread::spawn(move || {
        match door.within(|| TcpStream::connect_timeout(&target, DIAL)) {
            Ok(target) => carry::carry(&peer, &target, born, &state),
            // A broker that is down is to the peer as one that hangs up.
            Err(_) => carry::reset(&peer),
        }
        drop(peer);
        state.leave();
    });
}
