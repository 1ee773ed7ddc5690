//! Accepting connections.

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tracing::warn;

use super::log_limit::{self, Kind};
use super::router::Stream;
use super::shell::Shell;
use super::switchboard::Door;

/// How long to wait when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn accept_tcp(shell: Shell, listener: TcpListener, door: Door) {
    loop {
        let accepted = listener.accept().await;
        welcome(&shell, accepted.map(|(stream, peer)| (Stream::Tcp(stream), peer.to_string())), door).await;
    }
}

pub(super) async fn accept_unix(shell: Shell, listener: UnixListener) {
    loop {
        let accepted = listener.accept().await;
        let accepted = accepted.map(|(stream, _)| {
            let process = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
            let address = process.map_or_else(|| "unix".to_owned(), |process| format!("unix:{process}"));
            (Stream::Unix(stream), address)
        });
        welcome(&shell, accepted, Door::Native).await;
    }
}

async fn welcome(shell: &Shell, accepted: io::Result<(Stream, String)>, door: Door) {
    match accepted {
        Ok((stream, address)) => shell.place(stream, address, door),
        Err(error) => {
            if log_limit::admits(Kind::Accept) {
                let advice = advice(&error);
                warn!(%error, advice, "cannot accept a connection");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// What helps, where something does.
fn advice(error: &io::Error) -> Option<&'static str> {
    let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
        .then_some("raise the open-file limit: ulimit -n, or LimitNOFILE= in a systemd unit")
}
