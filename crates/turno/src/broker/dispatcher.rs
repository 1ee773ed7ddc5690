//! The dispatcher: the one owner of the engine and of every connection's buffers.
//!
//! All of it runs on one thread. Tasks borrow the state for as long as they compute and never across a wait.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::Notify;
use tracing::debug;
use turno_engine::{Engine, Input};
use turno_proto::model::{Code, ConnId, Limits, Mono, limits};
use turno_proto::native::{Config, Fault, Step};

use super::clock::Clock;
use super::inward::input_of;
use super::lines::{Line, Lines, Phase};
use super::socket::WriteEnd;

/// How long a connection that was given up may take to read its last words.
const FAREWELL_MS: u64 = 1_000;

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
    pub(super) engine: Engine,
    pub(super) lines: Lines,
    pub(super) limits: Limits,
    pub(super) config: Config,
    /// Read into by whichever connection's turn it is.
    pub(super) read_buffer: Vec<u8>,
    /// Connections in the greeting, oldest first; some may be past it.
    greetings: VecDeque<ConnId>,
    /// When the timer task will wake by itself.
    pub(super) armed: Option<Mono>,
}

impl Dispatcher {
    pub(super) fn new(clock: Clock, engine: Engine, limits: Limits, config: Config) -> Rc<Self> {
        let state = State {
            clock,
            engine,
            lines: Lines::new(&limits),
            limits,
            config,
            read_buffer: vec![0; limits::READ_BYTES],
            greetings: VecDeque::new(),
            armed: None,
        };
        let (flush, rearm, drained) = (Notify::new(), Notify::new(), Notify::new());
        Rc::new(Self { state: RefCell::new(state), flush, rearm, drained })
    }

    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    /// Wakes whoever has something to do after the state changed. Called at the end of each turn.
    pub(super) fn settle(&self, mut state: RefMut<'_, State>) {
        state.close_overrun();
        let nearer = match (state.engine.next_deadline(), state.armed) {
            (Some(next), Some(armed)) => next < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if nearer {
            self.rearm.notify_one();
        }
        if state.lines.has_dirty() {
            self.flush.notify_one();
        }
        if state.lines.drained.is_some() {
            self.drained.notify_one();
        }
    }

    pub(super) fn handle(&self, input: Input) {
        let mut state = self.state();
        state.handle(input);
        self.settle(state);
    }
}

impl State {
    pub(super) fn handle(&mut self, input: Input) {
        let now = self.clock.now();
        self.engine.handle(now, input, &mut self.lines);
    }

    /// A new connection, unless there are too many; then the end to write the refusal to comes back.
    pub(super) fn accept(&mut self, address: String, write_end: WriteEnd) -> Result<ConnId, WriteEnd> {
        if self.lines.len() >= self.limits.connections_max {
            return Err(write_end);
        }
        let id = self.lines.insert(self.clock.now(), address, write_end);
        self.greetings.push_back(id);
        while self.greetings.len() > limits::GREETINGS_MAX {
            if let Some(oldest) = self.greetings.pop_front()
                && self.lines.get_mut(oldest).is_some_and(|line| line.phase == Phase::Greeting)
            {
                self.give_up(oldest, Code::GreetingTimeout);
            }
        }
        Ok(id)
    }

    /// The first `count` bytes of the read buffer came from `id`.
    pub(super) fn take_bytes(&mut self, id: ConnId, count: usize) {
        let now = self.clock.now();
        let Some(line) = self.lines.get_mut(id) else { return };
        if matches!(line.phase, Phase::Doomed { .. }) {
            return;
        }
        line.session.heard(now);
        if line.partial.is_empty() {
            let buffer = std::mem::take(&mut self.read_buffer);
            let used = self.take_frames(id, &buffer[..count]);
            if let Some(line) = self.lines.get_mut(id) {
                line.partial.extend_from_slice(&buffer[used..count]);
            }
            self.read_buffer = buffer;
        } else {
            line.partial.extend_from_slice(&self.read_buffer[..count]);
            let mut partial = std::mem::take(&mut line.partial);
            let used = self.take_frames(id, &partial);
            if used < partial.len()
                && let Some(line) = self.lines.get_mut(id)
            {
                partial.drain(..used);
                line.partial = partial;
            }
        }
    }

    /// Works through all whole frames of a buffer; returns the bytes they took.
    fn take_frames(&mut self, id: ConnId, buffer: &[u8]) -> usize {
        let now = self.clock.now();
        let mut used = 0;
        while let Some(Line { session, phase: Phase::Greeting | Phase::Open, .. }) = self.lines.get_mut(id) {
            // The session writes into a buffer of its own and rarely: most frames are the engine's.
            let mut said = Vec::new();
            let step = session.step(&buffer[used..], &self.config, &mut said);
            if !said.is_empty()
                && let Some(out) = self.lines.outbox(id)
            {
                out.extend_from_slice(&said);
            }
            match step {
                Ok((Step::NeedMore, _)) => return used,
                Ok((step, taken)) => {
                    used += taken;
                    self.take_step(now, id, step);
                }
                Err(fault) => {
                    debug!(conn = id.index, code = %fault.code, "closing a connection for what it sent");
                    self.part(id);
                    return buffer.len();
                }
            }
        }
        buffer.len()
    }

    fn take_step(&mut self, now: Mono, id: ConnId, step: Step<'_>) {
        let input = match step {
            Step::NeedMore | Step::Done | Step::Refused(_) => return,
            Step::Opened(connect) => {
                let Some(line) = self.lines.get_mut(id) else { return };
                line.phase = Phase::Open;
                let address = line.address.clone();
                let name = if connect.name.is_empty() { address.clone() } else { connect.name };
                Input::Connected { conn: id, name, address }
            }
            Step::Ready => Input::Ready { conn: id },
            Step::Frame(frame) => match input_of(id, frame) {
                Ok(input) => input,
                Err(fault) => return self.refuse(id, fault),
            },
        };
        self.engine.handle(now, input, &mut self.lines);
    }

    /// The inside of a frame made no sense: the peer is told, and goes on unless that is fatal.
    fn refuse(&mut self, id: ConnId, Fault { code, seq, fatal }: Fault) {
        if let Some(out) = self.lines.outbox(id) {
            let detail = code.text().what;
            turno_proto::native::encode(&turno_proto::native::Frame::Error { seq, code, fatal, detail }, out);
        }
        if fatal {
            self.part(id);
        }
    }

    /// Tells a connection why it ends, and ends it.
    pub(super) fn give_up(&mut self, id: ConnId, code: Code) {
        debug!(conn = id.index, %code, "giving a connection up");
        self.lines.say_last(id, code);
        self.part(id);
    }

    /// Nothing more is taken from the connection; what waits for it may still be read for a moment.
    fn part(&mut self, id: ConnId) {
        let now = self.clock.now();
        let until = now.plus_millis(FAREWELL_MS);
        let Some(line) = self.lines.get_mut(id) else { return };
        let before = std::mem::replace(&mut line.phase, Phase::Doomed { until });
        line.partial = Vec::new();
        if let Some(resumed) = line.resumed.take() {
            resumed.notify_one();
        }
        self.lines.mark_dirty(id);
        if before == Phase::Open {
            self.engine.handle(now, Input::Disconnected { conn: id }, &mut self.lines);
        }
    }

    /// The connection is over on both sides: forget it.
    pub(super) fn forget(&mut self, id: ConnId) {
        let Some(line) = self.lines.remove(id) else { return };
        if let Some(reader) = line.reader {
            reader.abort();
        }
        if line.phase == Phase::Open {
            self.handle(Input::Disconnected { conn: id });
        }
    }

    /// Connections that let too much pile up are given up; what they held goes to others.
    fn close_overrun(&mut self) {
        while let Some(id) = self.lines.take_overrun() {
            debug!(conn = id.index, code = %Code::SlowReader, "giving a connection up");
            self.part(id);
        }
    }
}
