//! A port that stays a test's own while nobody listens there.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};

/// A port bound by a socket that does not listen. A dial is refused; a listener that is given its number may
/// (with `SO_REUSEADDR`, as brokers do), and nobody is given it as a free one.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Port {
    /// A free port of this machine.
    pub fn reserve() -> Self {
        Self::reserve_at(IpAddr::from([127, 0, 0, 1]))
    }

    /// A free port of an address of this machine, in the network of this thread.
    pub fn reserve_at(ip: IpAddr) -> Self {
        Self::hold(SocketAddr::new(ip, 0))
    }

    pub(crate) fn hold(address: SocketAddr) -> Self {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket(family, SocketType::STREAM, None).expect("a socket");
        sockopt::set_socket_reuseaddr(&socket, true).expect("our own socket");
        bind(&socket, &address).unwrap_or_else(|error| panic!("{address} cannot be had: {error}"));
        let address = getsockname(&socket).expect("a bound socket").try_into().expect("an address of its family");
        Self { address, _socket: socket }
    }

    /// Where it is.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL.
    pub fn url(&self) -> String {
        format!("turno://{}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn nobody_answers_until_somebody_listens_and_after_it() {
        let port = Port::reserve();
        for _ in 0..3 {
            let refused = TcpStream::connect(port.address()).expect_err("nobody listens");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            let listener = TcpListener::bind(port.address()).expect("it is ours");
            TcpStream::connect(port.address()).expect("somebody listens");
            drop(listener);
        }
    }

    #[test]
    fn it_is_not_given_to_others() {
        let port = Port::reserve();
        for _ in 0..200 {
            let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
            assert_ne!(other.local_addr().expect("bound"), port.address());
        }
    }
}
