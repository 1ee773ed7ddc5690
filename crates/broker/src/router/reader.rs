//! The read task of a connection. It takes at most one full buffer a turn, and of that no more than [`Turn`] allows,
//! then the others have theirs.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use tokio::io::ReadBuf;
use tokio::sync::Notify;
use turno_engine::Input;
use turno_proto::model::{ConnId, limits};

use super::socket::ReadEnd;
use super::{Router, Upstream};
use crate::mailbox::Mailbox;
use crate::turn::Turn;

/// Reads until the connection ends, from either side.
pub(super) async fn read<U: Upstream>(router: Rc<Router<U>>, id: ConnId, mut end: ReadEnd) {
    let mut last = Turn::Done;
    let reset = loop {
        if let Some(resumed) = paused(&router, id) {
            resumed.notified().await;
        }
        if let Some(mailbox) = crowded(&router) {
            // Boxed: nearly always nobody waits here, and every connection would pay for the place.
            Box::pin(async move { mailbox.room(limits::MAIL_BYTES_MAX).await }).await;
        }
        let (count, turn) = match last {
            Turn::Cut => (0, go_on(&router, id)),
            Turn::Done => match read_once(&router, id, &mut end).await {
                Ok((0, _)) => break false,
                // A peer that closes with bytes unread resets the connection.
                Err(error) => break error.kind() == io::ErrorKind::ConnectionReset,
                Ok(read) => read,
            },
        };
        if turn == Turn::Cut || count == limits::READ_BYTES {
            // More is there, or likely: let the others have their turn first.
            tokio::task::yield_now().await;
        }
        last = turn;
    };
    let mut state = router.state();
    if reset {
        state.reset(id);
    } else {
        state.hang_up(id);
    }
    router.settle(state);
}

/// The notice to wait for before reading on, if too much waits to be written to this peer.
fn paused<U: Upstream>(router: &Router<U>, id: ConnId) -> Option<Rc<Notify>> {
    let mut state = router.state();
    if state.connections.wants_reading(id) {
        return None;
    }
    Some(Rc::clone(state.socket(id)?.resumed.get_or_insert_default()))
}

/// The mailbox to wait for before reading on, if too much waits in it for the engine.
fn crowded<U: Upstream>(router: &Router<U>) -> Option<Arc<Mailbox<Input>>> {
    let state = router.state();
    state
        .connections
        .engine_handle()
        .mailbox()
        .filter(|mailbox| !mailbox.has_room(limits::MAIL_BYTES_MAX))
        .map(Arc::clone)
}

fn go_on<U: Upstream>(router: &Router<U>, id: ConnId) -> Turn {
    let mut state = router.state();
    let turn = state.go_on(id);
    router.settle(state);
    turn
}

/// How many bytes came, and how the turn ended that they were.
async fn read_once<U: Upstream>(router: &Router<U>, id: ConnId, end: &mut ReadEnd) -> io::Result<(usize, Turn)> {
    poll_fn(|context| {
        let mut state = router.state();
        let most = state.connections.read_bytes();
        let mut buffer = ReadBuf::new(&mut state.read_buffer[..most]);
        match end.poll_read(context, &mut buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                let count = buffer.filled().len();
                if count == 0 {
                    return Poll::Ready(Ok((0, Turn::Done)));
                }
                let turn = state.take(id, count);
                router.settle(state);
                Poll::Ready(Ok((count, turn)))
            }
        }
    })
    .await
}
