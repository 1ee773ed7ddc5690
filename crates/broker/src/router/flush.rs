//! The flush after each tick: one write for each connection with pending output. What was read goes to the engine's
//! thread, if it has its own, and each connection gets one write of everything the engine had for it since the last
//! one.

use std::io;
use std::rc::Rc;

use turno_proto::model::ConnId;

use super::{Router, RouterState, Upstream};

/// Writes whenever something waits. Woken once a tick, after the connections that were ready had their turn.
pub(super) async fn flush_for_ever<U: Upstream>(router: Rc<Router<U>>) {
    loop {
        router.dirty.notified().await;
        flush(&router);
    }
}

/// Hands over what waits for the engine, and writes what waits for every connection that has something new.
pub(super) fn flush<U: Upstream>(router: &Rc<Router<U>>) {
    let mut state = router.state();
    state.connections.engine_handle_mut().post();
    for id in state.connections.take_dirty() {
        match state.write(id) {
            WriteOutcome::All => {}
            WriteOutcome::Some => wait_until_writable(router, &mut state, id),
            WriteOutcome::Broken => state.hang_up(id),
        }
    }
    router.settle(state);
}

enum WriteOutcome {
    All,
    Some,
    Broken,
}

impl<U: Upstream> RouterState<U> {
    fn write(&mut self, id: ConnId) -> WriteOutcome {
        let now = self.clock.now();
        let Some(socket) = self.socket(id).filter(|socket| socket.blocked.is_none()) else { return WriteOutcome::All };
        let Some(write_end) = socket.write_end.clone() else { return WriteOutcome::All };
        let unwritten = self.connections.unwritten(id);
        let all = unwritten.len();
        let count = match if all == 0 { Ok(0) } else { write_end.try_write(unwritten) } {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => return WriteOutcome::Broken,
        };
        self.connections.wrote(now, id, count);
        self.resume(id);
        if count < all {
            return WriteOutcome::Some;
        }
        if self.connections.said_all(id)
            && let Some(socket) = self.socket(id)
        {
            // Dropping the end tells the peer that this was all; its reader waits for the peer to close.
            socket.write_end = None;
        }
        WriteOutcome::All
    }
}

/// The peer takes no more for now: look again when it does.
fn wait_until_writable<U: Upstream>(router: &Rc<Router<U>>, state: &mut RouterState<U>, id: ConnId) {
    let Some(socket) = state.socket(id) else { return };
    let Some(write_end) = socket.write_end.clone() else { return };
    let waiter = Rc::clone(router);
    socket.blocked = Some(router.tasks.spawn(async move {
        // An error shows again at the write itself, where it is dealt with.
        let _ = write_end.writable().await;
        let mut state = waiter.state();
        if let Some(socket) = state.socket(id) {
            socket.blocked = None;
        }
        state.connections.mark_dirty(id);
        waiter.settle(state);
    }));
}
