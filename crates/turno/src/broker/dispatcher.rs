//! The dispatcher: the one owner of the switchboard and of every socket.
//!
//! All of it runs on one thread. Tasks borrow the state for as long as they compute and never across a wait.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use turno_engine::Input;
use turno_proto::model::{ConnId, Mono, limits};

use super::clock::Clock;
use super::socket::WriteEnd;
use super::switchboard::Switchboard;

/// The state, and what wakes the tasks that work on it.
#[derive(Debug)]
pub(super) struct Dispatcher {
    state: RefCell<State>,
    /// Something waits to be written.
    pub(super) flush: Notify,
    /// The engine's next deadline moved nearer.
    pub(super) rearm: Notify,
    /// The engine said that the drain is over.
    pub(super) drained: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) clock: Clock,
    pub(super) switchboard: Switchboard,
    /// The sockets, by the index of their connection.
    sockets: Vec<Option<Socket>>,
    /// Read into by whichever connection's turn it is.
    pub(super) read_buffer: Vec<u8>,
    /// When the timer task will wake by itself.
    pub(super) armed: Option<Mono>,
}

/// What a connection has beside its line.
#[derive(Debug)]
pub(super) struct Socket {
    id: ConnId,
    /// `None` once everything was said.
    pub(super) write_end: Option<Rc<WriteEnd>>,
    /// The peer takes no more for now; this task waits until it does.
    pub(super) blocked: Option<AbortHandle>,
    /// The reader waits for this while too much waits to be written.
    pub(super) resumed: Option<Rc<Notify>>,
    reader: AbortHandle,
}

impl Dispatcher {
    pub(super) fn new(clock: Clock, switchboard: Switchboard) -> Rc<Self> {
        let read_buffer = vec![0; limits::READ_BYTES];
        let state = State { clock, switchboard, sockets: Vec::new(), read_buffer, armed: None };
        let (flush, rearm, drained) = (Notify::new(), Notify::new(), Notify::new());
        Rc::new(Self { state: RefCell::new(state), flush, rearm, drained })
    }

    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    /// Closes what is over and wakes whoever has something to do. Called at the end of each turn.
    pub(super) fn settle(&self, mut state: RefMut<'_, State>) {
        state.close_gone();
        let nearer = match (state.switchboard.next_deadline(), state.armed) {
            (Some(next), Some(armed)) => next < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if nearer {
            self.rearm.notify_one();
        }
        if state.switchboard.has_dirty() {
            self.flush.notify_one();
        }
        if state.switchboard.drained().is_some() {
            self.drained.notify_one();
        }
    }

    pub(super) fn handle(&self, input: Input) {
        let mut state = self.state();
        let now = state.clock.now();
        state.switchboard.handle(now, input);
        self.settle(state);
    }
}

impl State {
    pub(super) fn add_socket(&mut self, id: ConnId, write_end: WriteEnd, reader: AbortHandle) {
        let at = id.index as usize;
        if self.sockets.len() <= at {
            self.sockets.resize_with(at + 1, || None);
        }
        let write_end = Some(Rc::new(write_end));
        self.sockets[at] = Some(Socket { id, write_end, blocked: None, resumed: None, reader });
    }

    pub(super) fn socket(&mut self, id: ConnId) -> Option<&mut Socket> {
        self.sockets.get_mut(id.index as usize)?.as_mut().filter(|socket| socket.id == id)
    }

    /// The first `count` bytes of the read buffer came from `id`.
    pub(super) fn take(&mut self, id: ConnId, count: usize) {
        let now = self.clock.now();
        self.switchboard.take(now, id, &self.read_buffer[..count]);
    }

    pub(super) fn hang_up(&mut self, id: ConnId) {
        let now = self.clock.now();
        self.switchboard.hang_up(now, id);
    }

    /// Lets a paused reader go on, if it may.
    pub(super) fn resume(&mut self, id: ConnId) {
        if self.switchboard.wants_reading(id)
            && let Some(resumed) = self.socket(id).and_then(|socket| socket.resumed.take())
        {
            resumed.notify_one();
        }
    }

    fn close_gone(&mut self) {
        for id in self.switchboard.take_gone() {
            let place = self.sockets.get_mut(id.index as usize);
            if let Some(socket) = place.and_then(|place| place.take_if(|socket| socket.id == id)) {
                socket.reader.abort();
                if let Some(blocked) = socket.blocked {
                    // It holds the write end, which would stay open for as long as the peer reads nothing.
                    blocked.abort();
                }
            }
        }
    }
}
