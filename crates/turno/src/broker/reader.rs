//! One task per connection that reads: at most one full buffer a turn, then the others have theirs.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use tokio::io::ReadBuf;
use tokio::sync::Notify;
use turno_proto::model::{ConnId, limits};

use super::dispatcher::Dispatcher;
use super::socket::ReadEnd;

/// Reads until the connection ends, from either side.
pub(super) async fn read(dispatcher: Rc<Dispatcher>, id: ConnId, mut end: ReadEnd) {
    loop {
        if let Some(resumed) = paused(&dispatcher, id) {
            resumed.notified().await;
        }
        match read_once(&dispatcher, id, &mut end).await {
            Ok(0) | Err(_) => break,
            // More is likely there: let the others have their turn first.
            Ok(limits::READ_BYTES) => tokio::task::yield_now().await,
            Ok(_) => {}
        }
    }
    let mut state = dispatcher.state();
    state.hang_up(id);
    dispatcher.settle(state);
}

/// What to wait for before reading on, if too much waits to be written to this peer.
fn paused(dispatcher: &Dispatcher, id: ConnId) -> Option<Rc<Notify>> {
    let mut state = dispatcher.state();
    if state.switchboard.wants_reading(id) {
        return None;
    }
    Some(Rc::clone(state.socket(id)?.resumed.get_or_insert_default()))
}

async fn read_once(dispatcher: &Dispatcher, id: ConnId, end: &mut ReadEnd) -> io::Result<usize> {
    poll_fn(|context| {
        let mut state = dispatcher.state();
        let mut buffer = ReadBuf::new(&mut state.read_buffer);
        match end.poll_read(context, &mut buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                let count = buffer.filled().len();
                if count > 0 {
                    state.take(id, count);
                    dispatcher.settle(state);
                }
                Poll::Ready(Ok(count))
            }
        }
    })
    .await
}
