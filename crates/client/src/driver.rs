//! The driver: a task that connects the core with its socket and clock.
//!
//! It decides nothing: commands, bytes and time go in, bytes and events come out. Everything that gathered
//! since the last wake-up goes out in one write.

mod draining;
mod events;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{Interest, Ready};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until};
use turno_proto::model::{Mono, limits};
use turno_proto::native::Config;

use crate::command::{Cancels, Command, Sink};
use crate::core::{Core, Registration, Ticket};
use crate::running_deliveries::{Control, CoreRequest, RunningDeliveries};
use crate::stream::Stream;
use crate::{Address, Error, Options};

use self::draining::{DrainingConnections, ReturnedCall};

/// Commands taken before the socket gets its turn again.
const COMMANDS_PER_TURN: usize = 256;
/// Bytes waiting for a broker that does not read beyond which no command is taken.
const UNSENT_BYTES_PAUSE: usize = 4 * 1024 * 1024;
/// The timer when nothing is due.
const IDLE: Duration = Duration::from_secs(3_600);

/// The driver's ends of the channels.
pub(crate) struct DriverChannels {
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) cancels: Arc<Cancels>,
    pub(crate) ready: oneshot::Sender<Result<(), Error>>,
}

type Dial = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

enum Connection {
    None,
    Dialling(Dial),
    Up(Stream),
}

enum Wake {
    Command(Option<Command>),
    Cancels,
    Control(Control),
    Dialled(io::Result<Stream>),
    Ready(io::Result<Ready>),
    Timer,
    Back(ReturnedCall),
}

pub(crate) struct Driver {
    core: Core,
    origin: Instant,
    commands: mpsc::Receiver<Command>,
    cancels: Arc<Cancels>,
    /// Told once: connected, or not.
    ready: Option<oneshot::Sender<Result<(), Error>>>,
    config: watch::Sender<Arc<Config>>,
    cache: Option<PathBuf>,
    cached: Vec<Address>,
    sinks: HashMap<Ticket, Sink>,
    connection: Connection,
    /// Bytes for the socket; those before `written` are written.
    out: Vec<u8>,
    written: usize,
    running_deliveries: Option<RunningDeliveries>,
    /// The error of the connection that was lost last, until the core has said what is lost with it.
    failed: Option<io::Error>,
    /// Why each broker was left last; no more than the core knows brokers.
    causes: HashMap<Address, Arc<io::Error>>,
    /// Why the last connection was lost.
    lost: Option<Arc<io::Error>>,
    /// The broker greeted last, for the worker's owner.
    greeted: Option<(Address, String)>,
    /// Callers of `close`; dropping these tells them.
    closers: Vec<oneshot::Sender<()>>,
    /// There are no callers any more.
    orphaned: bool,
    farewell: Option<JoinHandle<()>>,
    /// Connections to brokers that close and still have calls of ours.
    draining: DrainingConnections,
}

impl Driver {
    pub(crate) fn new(
        options: &Options,
        wiring: DriverChannels,
        worker: Option<(RunningDeliveries, Registration)>,
    ) -> Result<(Self, watch::Receiver<Arc<Config>>), Error> {
        let mut core = Core::new(Mono::ZERO, options.settings()?);
        let running_deliveries = worker.map(|(running_deliveries, registration)| {
            core.register(Mono::ZERO, registration);
            running_deliveries
        });
        let (config, configured) = watch::channel(Arc::new(core.config().clone()));
        let driver = Self {
            core,
            origin: Instant::now(),
            commands: wiring.commands,
            cancels: wiring.cancels,
            ready: Some(wiring.ready),
            config,
            cache: options.cache_file().cloned(),
            cached: Vec::new(),
            sinks: HashMap::new(),
            connection: Connection::None,
            out: Vec::new(),
            written: 0,
            running_deliveries,
            failed: None,
            causes: HashMap::new(),
            lost: None,
            greeted: None,
            closers: Vec::new(),
            orphaned: false,
            farewell: None,
            draining: DrainingConnections::default(),
        };
        Ok((driver, configured))
    }

    pub(crate) async fn run(mut self) {
        let mut inbox = vec![0; limits::READ_BYTES];
        let mut timer = Box::pin(sleep_until(self.origin));
        loop {
            self.pump();
            if self.core.closed() && self.flushed() {
                // Handlers may still be stopping; the broker need not wait for them.
                self.hang_up();
            }
            if self.over() {
                break;
            }
            self.arm(timer.as_mut());
            let taking = !self.orphaned && (self.flushed() || self.core.unsent_bytes() < UNSENT_BYTES_PAUSE);
            let interest = if self.flushed() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            let wake = tokio::select! {
                wake = await_connection(&mut self.connection, interest) => wake,
                command = self.commands.recv(), if taking => Wake::Command(command),
                () = self.cancels.some.notified() => Wake::Cancels,
                control = await_control(self.running_deliveries.as_mut()) => Wake::Control(control),
                () = timer.as_mut() => Wake::Timer,
                back = self.draining.returned() => Wake::Back(back),
            };
            self.handle(wake, &mut inbox);
        }
        self.end().await;
    }

    fn handle(&mut self, wake: Wake, inbox: &mut [u8]) {
        let now = self.now();
        match wake {
            Wake::Command(Some(command)) => self.handle_commands(now, command),
            Wake::Command(None) => {
                self.orphaned = true;
                self.core.close(now);
            }
            Wake::Cancels => {
                for ticket in self.cancels.take() {
                    self.core.cancel(ticket);
                    self.forget_subscription(ticket);
                    self.draining.cancel(ticket);
                }
            }
            Wake::Control(control) => {
                let wish = self
                    .running_deliveries
                    .as_mut()
                    .map_or(CoreRequest::Nothing, |running_deliveries| running_deliveries.obey(control));
                self.grant(wish);
            }
            Wake::Dialled(Ok(stream)) => {
                self.connection = Connection::Up(stream);
                self.core.handle_connected(now);
            }
            Wake::Dialled(Err(error)) | Wake::Ready(Err(error)) => self.disconnected(now, error),
            Wake::Ready(Ok(ready)) => self.read(now, ready, inbox),
            Wake::Back(ReturnedCall::Call(returned, sink)) => {
                if self.accept(returned.ticket, sink) {
                    self.core.adopt(*returned);
                }
            }
            Wake::Back(ReturnedCall::Cancel(held, reason)) => {
                if let Some(running_deliveries) = &self.running_deliveries {
                    running_deliveries.cancel(held, reason);
                }
            }
            Wake::Timer => {
                self.core.handle_timeout(now);
                let wish = self.running_deliveries.as_mut().map_or(CoreRequest::Nothing, RunningDeliveries::check);
                self.grant(wish);
            }
        }
    }

    fn handle_commands(&mut self, now: Mono, first: Command) {
        self.handle_command(now, first);
        for _ in 1..COMMANDS_PER_TURN {
            let Ok(command) = self.commands.try_recv() else { return };
            self.handle_command(now, command);
        }
    }

    fn handle_command(&mut self, now: Mono, command: Command) {
        match command {
            Command::Request { ticket, ask, sink } => {
                if self.accept(ticket, sink) {
                    self.core.request(now, ticket, ask);
                }
            }
            Command::Send { ticket, ask, sink } => {
                if self.accept(ticket, sink) {
                    self.core.send(now, ticket, ask);
                }
            }
            Command::Broadcast { ticket, ask, sink } => {
                if self.accept(ticket, sink) {
                    self.core.broadcast(now, ticket, ask);
                }
            }
            Command::Publish { ticket, topic, payload, confirm, sink } => {
                if self.accept(ticket, sink) {
                    self.core.publish(now, ticket, topic, payload, confirm);
                }
            }
            Command::Subscribe { ticket, filters, or_close, sink } => {
                if self.accept(ticket, sink) {
                    self.core.subscribe_all(ticket, filters, or_close);
                }
            }
            Command::Admin { ticket, call, sink } => {
                if self.accept(ticket, sink) {
                    self.core.admin(now, ticket, call);
                }
            }
            Command::Resize { ticket, slots, sink } => {
                if self.accept(ticket, sink) {
                    self.core.resize(now, ticket, slots);
                }
            }
            Command::Settle { held, wants_reply, outcome } => {
                let gives_back = self
                    .running_deliveries
                    .as_ref()
                    .is_some_and(|running_deliveries| running_deliveries.gives_back(&outcome));
                if !gives_back && self.core.is_here(held) {
                    self.core.settle(held, outcome.into_settlement(wants_reply));
                } else if !gives_back {
                    self.draining.pass_on(|| Command::Settle { held, wants_reply, outcome: outcome.clone() });
                }
                self.core.ended_elsewhere(held);
                let wish = self.running_deliveries.as_mut().map_or(CoreRequest::Nothing, |running_deliveries| {
                    running_deliveries.finished(held);
                    running_deliveries.check()
                });
                self.grant(wish);
            }
            Command::Piece { held, payload } if !self.core.is_here(held) => {
                self.draining.pass_on(|| Command::Piece { held, payload: payload.clone() });
            }
            Command::Progress { held, payload } if !self.core.is_here(held) => {
                self.draining.pass_on(|| Command::Progress { held, payload: payload.clone() });
            }
            Command::Extend { held, lease_ms } if !self.core.is_here(held) => {
                self.draining.pass_on(|| Command::Extend { held, lease_ms });
            }
            // Whether the delivery is still wanted its handler learns from its cancellation.
            Command::Piece { held, payload } => drop(self.core.piece(held, &payload)),
            Command::Progress { held, payload } => drop(self.core.progress(held, &payload)),
            Command::Extend { held, lease_ms } => drop(self.core.extend(held, lease_ms)),
            Command::Close { done } => {
                self.closers.push(done);
                self.core.close(now);
            }
        }
    }

    /// Notes where the end of a call goes. False if nobody waits for it any more.
    fn accept(&mut self, ticket: Ticket, sink: Sink) -> bool {
        let wanted = !sink.closed();
        if wanted {
            self.sinks.insert(ticket, sink);
        }
        wanted
    }

    /// Nobody reads it any more.
    fn forget_subscription(&mut self, ticket: Ticket) {
        if let Some(Sink::Subscribed { .. }) = self.sinks.get(&ticket) {
            self.sinks.remove(&ticket);
        }
    }

    fn grant(&mut self, wish: CoreRequest) {
        match wish {
            CoreRequest::Nothing => {}
            CoreRequest::Deregister => {
                self.core.deregister();
                let wish = self.running_deliveries.as_mut().map_or(CoreRequest::Nothing, RunningDeliveries::check);
                self.grant(wish);
            }
            CoreRequest::Close => {
                self.core.close(self.now());
                // Perhaps no handler runs that the end would have to wait for.
                let _ = self.running_deliveries.as_mut().map(RunningDeliveries::check);
            }
        }
    }

    fn read(&mut self, now: Mono, ready: Ready, inbox: &mut [u8]) {
        let Connection::Up(stream) = &self.connection else { return };
        if !ready.is_readable() && !ready.is_read_closed() {
            return;
        }
        match stream.try_read(inbox) {
            Ok(0) => {
                let end = io::Error::new(io::ErrorKind::UnexpectedEof, "the broker closed the connection");
                self.disconnected(now, end);
            }
            Ok(count) => self.core.handle_bytes(now, inbox.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => self.disconnected(now, error),
        }
    }

    fn disconnected(&mut self, now: Mono, error: io::Error) {
        self.connection = Connection::None;
        let reason = error.to_string();
        self.failed = Some(error);
        self.core.handle_disconnected(now, reason);
    }

    /// Hands out events and writes until neither has more to do.
    fn pump(&mut self) {
        loop {
            while let Some(event) = self.core.poll_event() {
                self.handle_event(event);
            }
            self.part_ways();
            if !self.write() {
                return;
            }
        }
    }

    /// Writes what there is. True if it is worth looking for more.
    fn write(&mut self) -> bool {
        let now = self.now();
        if self.flushed() {
            self.out.clear();
            self.out.shrink_to(4 * limits::READ_BYTES);
            self.written = 0;
            self.core.poll_transmit(now, &mut self.out);
            if self.out.is_empty() {
                // Taking nothing may still have ended a connection that was being left.
                return self.take_next_event();
            }
        }
        let Connection::Up(stream) = &self.connection else {
            // Nobody to write to: the core has closed, or is about to learn that its connection is gone.
            self.out.clear();
            self.written = 0;
            return self.take_next_event();
        };
        match stream.try_write(self.out.get(self.written..).unwrap_or_default()) {
            Ok(count) => {
                self.written += count;
                count > 0
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.take_next_event(),
            Err(error) => {
                self.disconnected(now, error);
                true
            }
        }
    }

    fn take_next_event(&mut self) -> bool {
        let Some(event) = self.core.poll_event() else { return false };
        self.handle_event(event);
        true
    }

    /// Sets the timer. It is only ever moved forward: one that goes off early costs a wake-up now and then, one
    /// that is moved with every call costs a timer operation with every call.
    fn arm(&self, mut timer: Pin<&mut Sleep>) {
        let core = self.core.next_deadline().map(|at| self.origin + Duration::from_micros(at.as_micros()));
        let running_deliveries = self.running_deliveries.as_ref().and_then(RunningDeliveries::next_deadline);
        let next = [core, running_deliveries].into_iter().flatten().min().unwrap_or_else(|| Instant::now() + IDLE);
        if timer.is_elapsed() || next < timer.deadline() {
            timer.as_mut().reset(next);
        }
    }

    fn hang_up(&mut self) {
        if let Connection::Up(stream) = std::mem::replace(&mut self.connection, Connection::None) {
            self.farewell = Some(tokio::spawn(stream.farewell(Vec::new())));
        }
    }

    fn over(&self) -> bool {
        let gone = matches!(self.connection, Connection::None);
        self.core.closed() && gone && self.running_deliveries.as_ref().is_none_or(RunningDeliveries::is_over)
    }

    async fn end(self) {
        // Callers that are still here learn of the end from their dropped channels.
        let Self { farewell, running_deliveries, closers, sinks, commands, draining, .. } = self;
        drop((commands, sinks));
        draining.end().await;
        if let Some(farewell) = farewell {
            let _ = farewell.await;
        }
        if let Some(running_deliveries) = running_deliveries {
            running_deliveries.end();
        }
        drop(closers);
    }

    const fn flushed(&self) -> bool {
        self.written >= self.out.len()
    }

    fn now(&self) -> Mono {
        let micros = self.origin.elapsed().as_micros();
        Mono::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

async fn await_connection(connection: &mut Connection, interest: Interest) -> Wake {
    match connection {
        Connection::None => std::future::pending().await,
        Connection::Dialling(dial) => Wake::Dialled(dial.await),
        Connection::Up(stream) => Wake::Ready(stream.ready(interest).await),
    }
}

async fn await_control(running_deliveries: Option<&mut RunningDeliveries>) -> Control {
    match running_deliveries {
        Some(running_deliveries) => running_deliveries.control().await,
        None => std::future::pending().await,
    }
}
