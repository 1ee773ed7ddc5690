//! Several hosts for one test: network namespaces, or loopback addresses where the machine allows none.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use crate::door::Door;
use crate::netns::Namespaces;
use crate::place::Place;
use crate::port::Port;
use crate::proxy::{Proxy, Way};

/// Set to anything, no namespaces are made, as on a machine that allows none.
const LOOPBACK: &str = "TURNO_TEST_LOOPBACK";

/// Hosts that reach each other, until a cable is pulled.
///
/// On loopback there are no cables: there each host reaches the others through proxies, which stall instead. So peers
/// of a host must dial what [`Net::way`] says.
#[derive(Debug)]
pub struct Net {
    hosts: Vec<Host>,
    namespaces: Result<Namespaces, String>,
    ways: Mutex<HashMap<(usize, usize), Arc<Proxy>>>,
}

impl Net {
    /// As many hosts as that. Says on standard error which kind of network it is, and why.
    pub fn new(hosts: usize) -> Self {
        let unwanted = std::env::var_os(LOOPBACK).is_some();
        let net = Self::of(hosts, if unwanted { Err(format!("{LOOPBACK} is set")) } else { Namespaces::make(hosts) });
        // Not the macro: a test's output is shown only if it fails.
        let _ = writeln!(std::io::stderr(), "network of this test: {}", net.kind());
        net
    }

    /// The kind that any machine allows.
    pub fn on_loopback(hosts: usize) -> Self {
        Self::of(hosts, Err("asked for".to_owned()))
    }

    fn of(hosts: usize, namespaces: Result<Namespaces, String>) -> Self {
        let hosts = (0..hosts).map(|at| match &namespaces {
            Ok(made) => Host::new(made.ip(at), made.door(at).expect("it was open before"), made.under(at)),
            Err(_) => Host::new(loopback(at), Door::default(), Vec::new()),
        });
        Self { hosts: hosts.collect(), namespaces, ways: Mutex::default() }
    }

    /// Whether the hosts are namespaces of their own.
    pub const fn has_namespaces(&self) -> bool {
        self.namespaces.is_ok()
    }

    /// Its kind, as text.
    pub fn kind(&self) -> String {
        match &self.namespaces {
            Ok(_) => format!("{} network namespaces", self.hosts.len()),
            Err(why) => format!("{} addresses of loopback, no namespaces ({why})", self.hosts.len()),
        }
    }

    /// One of the hosts.
    pub fn host(&self, at: usize) -> &Host {
        &self.hosts[at]
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.hosts.len()
    }

    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Where a host reaches the broker of another.
    pub fn way(&self, from: usize, to: usize) -> SocketAddr {
        if self.has_namespaces() || from == to {
            return self.hosts[to].address();
        }
        let mut ways = self.ways.lock().expect("nobody panics with the ways in hand");
        ways.entry((from, to)).or_insert_with(|| Arc::new(self.proxy(from, to))).address()
    }

    /// The same as a URL.
    pub fn url(&self, from: usize, to: usize) -> String {
        format!("turno://{}", self.way(from, to))
    }

    /// A proxy on one host in front of the broker of another, for what a cable cannot do.
    pub fn proxy(&self, from: usize, to: usize) -> Proxy {
        let host = &self.hosts[from];
        let port = host.within(|| Port::reserve_at(host.ip));
        Proxy::behind(host.door.clone(), port, self.hosts[to].address())
    }

    /// Pulls a host's cable: nobody hears it, and it hears nobody. No connection is told.
    pub fn unplug(&self, host: usize) {
        match &self.namespaces {
            Ok(made) => made.cable(host, false),
            Err(_) => self.ways_at(host, |proxy, way| proxy.stall(way)),
        }
    }

    /// Puts the cable back.
    pub fn plug(&self, host: usize) {
        match &self.namespaces {
            Ok(made) => made.cable(host, true),
            Err(_) => self.ways_at(host, |proxy, way| proxy.flow(way)),
        }
    }

    /// Nothing that one host says to another arrives there any more; what the other says does.
    pub fn mute(&self, from: usize, to: usize) {
        match &self.namespaces {
            Ok(made) => made.mute(from, to),
            Err(_) => self.ways_between(from, to, |proxy, way| proxy.stall(way)),
        }
    }

    /// It arrives again.
    pub fn unmute(&self, from: usize, to: usize) {
        match &self.namespaces {
            Ok(made) => made.unmute(from, to),
            Err(_) => self.ways_between(from, to, |proxy, way| proxy.flow(way)),
        }
    }

    fn ways_at(&self, host: usize, act: impl Fn(&Proxy, Way)) {
        for other in (0..self.len()).filter(|other| *other != host) {
            self.ways_between(host, other, &act);
            self.ways_between(other, host, &act);
        }
    }

    /// Those by which something said by one host gets to another.
    fn ways_between(&self, from: usize, to: usize, act: impl Fn(&Proxy, Way)) {
        let ways = self.ways.lock().expect("nobody panics with the ways in hand");
        for (pair, way) in [((from, to), Way::There), ((to, from), Way::Back)] {
            if let Some(proxy) = ways.get(&pair) {
                act(proxy, way);
            }
        }
    }
}

fn loopback(host: usize) -> IpAddr {
    [127, 77, 0, u8::try_from(host + 1).expect("one network has 250 hosts at most")].into()
}

/// One host: an address, and a port there for its broker, which stays its own over restarts.
#[derive(Debug)]
pub struct Host {
    ip: IpAddr,
    port: Port,
    door: Door,
    under: Vec<String>,
}

impl Host {
    fn new(ip: IpAddr, door: Door, under: Vec<String>) -> Self {
        let port = door.within(|| Port::reserve_at(ip));
        Self { ip, port, door, under }
    }

    /// Its address.
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Where its broker listens.
    pub const fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The same as a URL.
    pub fn url(&self) -> String {
        self.port.url()
    }

    /// A fresh place whose commands run on this host.
    pub fn place(&self) -> Place {
        Place::under(self.under.clone())
    }

    /// Does something with the sockets of this host, such as `Peer::client`; they stay there.
    pub fn within<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.door.within(what)
    }
}
