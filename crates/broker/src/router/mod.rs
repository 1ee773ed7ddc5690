//! A router: the connections of one thread. It reads, parses, encodes and writes; the engine is on the same thread,
//! or gets its inputs by batches.
//!
//! Tasks borrow the state for as long as they compute and never across a wait.

mod accept;
mod dial;
mod flush;
mod reader;
mod socket;
mod sweep;
mod thread;
mod upstream;

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use turno_engine::{Input, PeerEffect};
use turno_proto::model::{ConnId, limits};

use self::flush::flush;
use self::socket::WriteEnd;
use super::clock::Clock;
use super::connections::{Connections, ListenerKind, LocalEngine};
use super::tasks::Tasks;
use super::timer::Timer;
use super::turn::Turn;

pub(super) use self::accept::Stream;
pub(super) use self::dial::connect_within;
pub(super) use self::thread::{RouterCommand, RouterContext, RouterThread};
pub(super) use self::upstream::Upstream;

/// How long the last answers may take to be written after the drain.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The state, and what wakes the tasks that work on it.
#[derive(Debug)]
pub(super) struct Router<U = LocalEngine> {
    state: RefCell<RouterState<U>>,
    /// Something waits to be written, or to be handed over.
    dirty: Notify,
    /// The engine wants links or members of the ring dialled.
    dials: Notify,
    /// For the engine, if it is here.
    pub(super) timer: Timer,
    /// The engine, if it is here, said that the drain is over.
    pub(super) drained: Notify,
    /// The node of the ring, if it is here, has a report for the broker's operator.
    pub(super) ring: Notify,
    pub(super) tasks: Tasks,
    /// How many connections there are, and are on their way here.
    open: Arc<AtomicUsize>,
}

#[derive(Debug)]
pub(super) struct RouterState<U> {
    clock: Clock,
    pub(super) connections: Connections<U>,
    /// The sockets, by the place of their connection.
    sockets: Vec<Option<Socket>>,
    /// Read into by whichever connection's turn it is.
    read_buffer: Vec<u8>,
}

/// The socket of a connection.
#[derive(Debug)]
struct Socket {
    id: ConnId,
    /// `None` once everything was said.
    write_end: Option<Rc<WriteEnd>>,
    /// The peer takes no more for now; this task waits until it does.
    blocked: Option<AbortHandle>,
    /// The reader waits for this while too much waits to be written.
    resumed: Option<Rc<Notify>>,
    reader: AbortHandle,
}

impl<U: Upstream> Router<U> {
    /// Starts the tasks that every router has.
    pub(super) fn start(clock: Clock, connections: Connections<U>, open: Arc<AtomicUsize>) -> Rc<Self> {
        let read_buffer = vec![0; limits::READ_BYTES];
        let state = RouterState { clock, connections, sockets: Vec::new(), read_buffer };
        let (dirty, dials, drained, ring) = (Notify::new(), Notify::new(), Notify::new(), Notify::new());
        let (timer, tasks) = (Timer::default(), Tasks::default());
        let router = Rc::new(Self { state: RefCell::new(state), dirty, dials, timer, drained, ring, tasks, open });
        router.tasks.spawn(flush::flush_for_ever(Rc::clone(&router)));
        router.tasks.spawn(sweep::sweep_for_ever(Rc::clone(&router)));
        router.tasks.spawn(dial::dial_for_ever(Rc::clone(&router)));
        router
    }

    pub(super) fn state(&self) -> RefMut<'_, RouterState<U>> {
        self.state.borrow_mut()
    }

    /// Closes connections that are over and wakes tasks that have something to do. Called at the end of each turn.
    fn settle(&self, mut state: RefMut<'_, RouterState<U>>) {
        let closed = state.close_gone();
        if closed > 0 {
            self.open.fetch_sub(closed, Ordering::Relaxed);
        }
        if state.connections.has_dirty() || state.connections.engine_handle().has_unsent() {
            self.dirty.notify_one();
        }
        for id in state.connections.take_granted() {
            state.resume(id);
        }
        if state.connections.take_eased() {
            state.resume_all();
        }
        if state.connections.has_dials() || state.connections.has_ring_dials() {
            self.dials.notify_one();
        }
        self.timer.look(state.connections.engine_handle().next_deadline());
        if state.connections.engine_handle().is_drained() {
            self.drained.notify_one();
        }
        if state.connections.engine_handle().has_ring_reports() {
            self.ring.notify_one();
        }
    }

    /// Carries out effects of an engine on its own thread.
    fn carry_out(&self, effects: impl Iterator<Item = PeerEffect>) {
        let mut state = self.state();
        let now = state.clock.now();
        for effect in effects {
            state.connections.carry_out(now, effect);
        }
        self.settle(state);
    }

    /// Lets the last answers be written, for a moment.
    pub(super) async fn finish(self: &Rc<Self>) {
        let deadline = tokio::time::Instant::now() + LAST_WORDS;
        while self.state().connections.has_unwritten() && tokio::time::Instant::now() < deadline {
            flush(self);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Router {
    /// A new connection.
    pub(super) fn place(self: &Rc<Self>, stream: Stream, address: String, kind: ListenerKind) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.welcome(Ok(stream), address, kind);
    }

    /// Something that no connection said: time passed, or the broker is to end.
    pub(super) fn handle(&self, inputs: Vec<Input>) {
        let mut state = self.state();
        let now = state.clock.now();
        for input in inputs {
            state.connections.handle(now, input);
        }
        self.settle(state);
    }
}

impl<U: Upstream> RouterState<U> {
    fn add_socket(&mut self, id: ConnId, write_end: WriteEnd, reader: AbortHandle) {
        let at = self.connections.place(id);
        if self.sockets.len() <= at {
            self.sockets.resize_with(at + 1, || None);
        }
        let write_end = Some(Rc::new(write_end));
        self.sockets[at] = Some(Socket { id, write_end, blocked: None, resumed: None, reader });
    }

    fn socket(&mut self, id: ConnId) -> Option<&mut Socket> {
        let at = self.connections.place(id);
        self.sockets.get_mut(at)?.as_mut().filter(|socket| socket.id == id)
    }

    /// The first `count` bytes of the read buffer came from `id`.
    fn take(&mut self, id: ConnId, count: usize) -> Turn {
        let now = self.clock.now();
        self.connections.engine_handle_mut().took(count);
        self.connections.take(now, id, &self.read_buffer[..count])
    }

    /// The last turn of `id` was cut.
    fn go_on(&mut self, id: ConnId) -> Turn {
        let now = self.clock.now();
        self.connections.go_on(now, id)
    }

    fn hang_up(&mut self, id: ConnId) {
        let now = self.clock.now();
        self.connections.hang_up(now, id);
    }

    /// The same, and the peer left bytes unread.
    fn reset(&mut self, id: ConnId) {
        let now = self.clock.now();
        self.connections.reset(now, id);
    }

    /// Lets a paused reader go on, if it may.
    fn resume(&mut self, id: ConnId) {
        if self.connections.wants_reading(id)
            && let Some(resumed) = self.socket(id).and_then(|socket| socket.resumed.take())
        {
            resumed.notify_one();
        }
    }

    /// The same for all of them.
    fn resume_all(&mut self) {
        let waits = |socket: &Socket| socket.resumed.is_some().then_some(socket.id);
        let paused: Vec<ConnId> = self.sockets.iter().flatten().filter_map(waits).collect();
        for id in paused {
            self.resume(id);
        }
    }

    /// Returns how many there were.
    fn close_gone(&mut self) -> usize {
        let gone = self.connections.take_gone();
        let count = gone.len();
        for id in gone {
            let at = self.connections.place(id);
            if let Some(socket) = self.sockets.get_mut(at).and_then(|place| place.take_if(|socket| socket.id == id)) {
                socket.reader.abort();
                if let Some(blocked) = socket.blocked {
                    // It holds the write end, which would stay open for as long as the peer reads nothing.
                    blocked.abort();
                }
            }
        }
        count
    }
}
