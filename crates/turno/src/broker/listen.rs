//! Accepting connections.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tracing::{debug, warn};
use turno_proto::model::Code;
use turno_proto::native::{Frame, encode};

use super::dispatcher::Dispatcher;
use super::reader::read;
use super::socket::{ReadEnd, WriteEnd, split_tcp, split_unix};

/// How long to wait when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn accept_tcp(dispatcher: Rc<Dispatcher>, listener: TcpListener) {
    loop {
        let accepted = listener.accept().await;
        let ends = accepted.and_then(|(stream, peer)| Ok((split_tcp(stream)?, peer.to_string())));
        welcome(&dispatcher, ends).await;
    }
}

pub(super) async fn accept_unix(dispatcher: Rc<Dispatcher>, listener: UnixListener) {
    loop {
        let accepted = listener.accept().await;
        let ends = accepted.map(|(stream, _)| {
            let process = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
            let address = process.map_or_else(|| "unix".to_owned(), |process| format!("unix:{process}"));
            (split_unix(stream), address)
        });
        welcome(&dispatcher, ends).await;
    }
}

async fn welcome(dispatcher: &Rc<Dispatcher>, ends: io::Result<((ReadEnd, WriteEnd), String)>) {
    let ((read_end, write_end), address) = match ends {
        Ok(ends) => ends,
        Err(error) => {
            warn!(%error, "cannot accept a connection");
            tokio::time::sleep(PAUSE).await;
            return;
        }
    };
    let mut state = dispatcher.state();
    let now = state.clock.now();
    match state.switchboard.accept(now, address) {
        Some(id) => {
            let reader = tokio::task::spawn_local(read(Rc::clone(dispatcher), id, read_end));
            state.add_socket(id, write_end, reader.abort_handle());
        }
        None => turn_away(&write_end),
    }
    dispatcher.settle(state);
}

/// One too many: it is told, as far as one write goes.
fn turn_away(write_end: &WriteEnd) {
    let code = Code::TooManyConnections;
    let mut bytes = Vec::new();
    encode(&Frame::Error { seq: 0, code, fatal: true, detail: code.text().what }, &mut bytes);
    if let Err(error) = write_end.try_write(&bytes) {
        debug!(%error, "a connection that was turned away did not hear why");
    }
}
