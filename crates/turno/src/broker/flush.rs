//! One write per connection per tick: everything the engine had for it since the last one.

use std::io;
use std::rc::Rc;

use turno_proto::model::ConnId;

use super::dispatcher::{Dispatcher, State};
use super::lines::Phase;

/// Writes whenever something waits. Woken once a tick, after the connections that were ready had their turn.
pub(super) async fn flush_for_ever(dispatcher: Rc<Dispatcher>) {
    loop {
        dispatcher.flush.notified().await;
        flush(&dispatcher);
    }
}

/// Writes what waits for every connection that has something new.
pub(super) fn flush(dispatcher: &Rc<Dispatcher>) {
    let mut state = dispatcher.state();
    for id in state.lines.take_dirty() {
        match state.write(id) {
            Wrote::All => {}
            Wrote::Some => wait_until_writable(dispatcher, &mut state, id),
            Wrote::Broken => state.forget(id),
        }
    }
    dispatcher.settle(state);
}

enum Wrote {
    All,
    Some,
    Broken,
}

impl State {
    fn write(&mut self, id: ConnId) -> Wrote {
        let now = self.clock.now();
        let pause = self.limits.out_bytes_pause;
        let Some(line) = self.lines.get_mut(id) else { return Wrote::All };
        let Some(write_end) = line.write_end.clone() else { return Wrote::All };
        let result = if line.waiting() == 0 { Ok(0) } else { write_end.try_write(line.unwritten()) };
        match result {
            Ok(bytes) => {
                line.wrote(bytes);
                if bytes > 0 {
                    line.stalled = None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Wrote::Broken,
        }
        if line.waiting() <= pause
            && let Some(resumed) = line.resumed.take()
        {
            resumed.notify_one();
        }
        if line.waiting() > 0 {
            line.stalled.get_or_insert(now);
            return Wrote::Some;
        }
        if matches!(line.phase, Phase::Doomed { .. }) {
            // Dropping the end tells the peer that this was all; its reader waits for the peer to close.
            line.write_end = None;
        }
        Wrote::All
    }
}

/// The peer takes no more for now: look again when it does.
fn wait_until_writable(dispatcher: &Rc<Dispatcher>, state: &mut State, id: ConnId) {
    let Some(line) = state.lines.get_mut(id) else { return };
    let Some(write_end) = line.write_end.clone() else { return };
    line.blocked = true;
    let dispatcher = Rc::clone(dispatcher);
    tokio::task::spawn_local(async move {
        // An error shows again at the write itself, where it is dealt with.
        let _ = write_end.writable().await;
        let mut state = dispatcher.state();
        if let Some(line) = state.lines.get_mut(id) {
            line.blocked = false;
        }
        state.lines.mark_dirty(id);
        dispatcher.settle(state);
    });
}
