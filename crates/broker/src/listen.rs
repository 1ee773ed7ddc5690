//! Listening sockets, and the tasks that accept their connections.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tracing::{info, warn};
use turno_proto::model::limits::LINK_DIAL_MS;

use super::connections::ListenerKind;
use super::error::ServeError;
use super::log_limit::{self, LogKind};
use super::router::{Stream, connect_within};
use super::run::listen_on;
use super::settings::IfTaken;
use super::threads::BrokerThreads;
use super::zmq::{Endpoint, ZmqAddress, ZmqEndpoint};

/// How long to wait before a ZeroMQ program is dialled: at first, at most, and after it was reached.
const DIAL_PAUSE: Duration = Duration::from_millis(100);
const DIAL_PAUSE_MAX: Duration = Duration::from_secs(2);
const DIALLED_PAUSE: Duration = Duration::from_secs(1);
/// How long to wait when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn accept_tcp(shell: BrokerThreads, listener: TcpListener, kind: ListenerKind) {
    loop {
        let accepted = listener.accept().await;
        welcome(&shell, accepted.map(|(stream, peer)| (Stream::Tcp(stream), peer.to_string())), kind).await;
    }
}

pub(super) async fn accept_unix(shell: BrokerThreads, listener: UnixListener, kind: ListenerKind) {
    loop {
        let accepted = listener.accept().await;
        let accepted = accepted.map(|(stream, _)| {
            let process = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
            let address = process.map_or_else(|| "unix".to_owned(), |process| format!("unix:{process}"));
            (Stream::Unix(stream), address)
        });
        welcome(&shell, accepted, kind).await;
    }
}

/// Where ZeroMQ programs connect.
pub(super) struct ZmqListener {
    address: ZmqAddress,
    socket: ZmqSocket,
}

enum ZmqSocket {
    Tcp(TcpListener),
    Ipc(UnixListener),
}

impl ZmqListener {
    /// The address that it really has.
    pub(super) const fn address(&self) -> &ZmqAddress {
        &self.address
    }

    /// Lets everybody in who comes.
    pub(super) async fn accept(self, shell: BrokerThreads, kind: ListenerKind) {
        match self.socket {
            ZmqSocket::Tcp(listener) => accept_tcp(shell, listener, kind).await,
            ZmqSocket::Ipc(listener) => accept_unix(shell, listener, kind).await,
        }
    }
}

/// Listens at each endpoint that does, by its place in the table. The usual address may be another broker's: then a free port takes its place.
pub(super) fn listen_for_zmq(endpoints: &[ZmqEndpoint]) -> Result<Vec<(u16, ZmqListener)>, ServeError> {
    let listens = |(place, endpoint): (u16, &ZmqEndpoint)| {
        let address = endpoint.place.listen()?;
        Some(zmq_listener(address, endpoint.if_taken).map(|listener| (place, listener)))
    };
    (0..).zip(endpoints).filter_map(listens).collect()
}

fn zmq_listener(address: &ZmqAddress, if_taken: IfTaken) -> Result<ZmqListener, ServeError> {
    let socket = match address {
        ZmqAddress::Tcp(address) => {
            let listener = match listen_on(*address) {
                Err(ServeError::Listen { source, .. })
                    if if_taken == IfTaken::FreePort && source.kind() == io::ErrorKind::AddrInUse =>
                {
                    listen_on(SocketAddr::new(address.ip(), 0))
                }
                result => result,
            }?;
            let bound = listener.local_addr().unwrap_or(*address);
            return Ok(ZmqListener { address: ZmqAddress::Tcp(bound), socket: ZmqSocket::Tcp(listener) });
        }
        ZmqAddress::Ipc(path) => {
            let failed = |source| ServeError::Data { doing: "listen on", path: path.clone(), source };
            ZmqSocket::Ipc(ipc_listener(path).map_err(failed)?)
        }
    };
    Ok(ZmqListener { address: address.clone(), socket })
}

/// A socket that a broker which was killed left behind is replaced; one that somebody listens on is not.
fn ipc_listener(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let refused = std::os::unix::net::UnixStream::connect(path).err();
            if refused.is_none_or(|refused| refused.kind() != io::ErrorKind::ConnectionRefused) {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        result => result,
    }
}

/// Connects to a program that listens, again whenever the connection is over.
pub(super) async fn dial_zmq(shell: BrokerThreads, endpoint: Arc<Endpoint>, place: u16) {
    let address = endpoint.settings().place.to_string();
    let target = match address.strip_prefix("ipc://") {
        Some(path) => format!("unix:{path}"),
        None => address.trim_start_matches("tcp://").to_owned(),
    };
    let mut pause = DIAL_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        if endpoint.is_connected() {
            pause = DIAL_PAUSE;
            continue;
        }
        match connect_within(&target, LINK_DIAL_MS).await {
            Ok((stream, peer)) => {
                shell.place(stream, peer, ListenerKind::Zmq(place));
                pause = DIALLED_PAUSE;
            }
            Err(error) => {
                if pause < DIAL_PAUSE_MAX {
                    info!(address, %error, "cannot connect to a ZeroMQ program; retrying");
                }
                pause = (2 * pause).min(DIAL_PAUSE_MAX);
            }
        }
    }
}

async fn welcome(shell: &BrokerThreads, accepted: io::Result<(Stream, String)>, kind: ListenerKind) {
    match accepted {
        Ok((stream, address)) => shell.place(stream, address, kind),
        Err(error) => {
            if log_limit::admits(LogKind::Accept) {
                let advice = advice(&error);
                warn!(%error, advice, "cannot accept a connection");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The advice, if there is one.
fn advice(error: &io::Error) -> Option<&'static str> {
    let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
        .then_some("raise the open-file limit: ulimit -n, or LimitNOFILE= in a systemd unit")
}
