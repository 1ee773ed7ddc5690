//! The dispatcher's thread, if routers have threads of their own. It has the engine, takes inputs by batches and sends
//! effects by batches. It knows no sockets and no bytes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tracing::{error, warn};
use turno_engine::{BorrowedPayload, Deliver, Drained, Engine, Event, Input, Listener, PeerEffect, PeerSink};
use turno_proto::model::{Code, ConnId, limits};

use super::connections::{EngineHandle as _, ListenerKind, LocalEngine, RingReport};
use super::log_limit;
use super::ring_routes::{RingRoutes, dials_for};
use super::router::{RouterCommand, RouterContext, RouterThread, Stream};
use super::storage::Storage as _;
use super::tasks::Tasks;
use super::timer::Timer;
use super::turn::{Budget, Turn, work_of, work_of_copies, work_of_events};

/// How long routers may take to end after they were told to.
const FINISH: Duration = Duration::from_secs(3);
/// How long to wait when the system has no room for another thread.
const PAUSE: Duration = Duration::from_millis(100);

/// The engine, and the way to the routers.
#[derive(Debug)]
pub(super) struct Dispatcher {
    state: RefCell<DispatcherState>,
    context: RouterContext,
    pub(super) timer: Timer,
    /// The engine said that the drain is over.
    pub(super) drained: Notify,
    /// The node of the ring has a report for the broker's operator.
    pub(super) ring: Notify,
    /// A router ended as it was told to.
    finished: Notify,
    pub(super) tasks: Tasks,
}

#[derive(Debug)]
struct DispatcherState {
    engine_handle: LocalEngine,
    out: RouterOutput,
    routers: Vec<RouterThread>,
    running: usize,
}

/// Effects on their way to the routers.
#[derive(Debug)]
struct RouterOutput {
    by_router: Vec<CommandBatch>,
    mask: u32,
    /// Copies of events since the last look.
    copies: u32,
    /// Targets of links that a router was told to dial, and nobody has heard of what came of it.
    dialling: BTreeSet<u32>,
    ring: RingRoutes,
}

/// Commands for one router.
#[derive(Debug, Default)]
pub(super) struct CommandBatch {
    pub(super) commands: Vec<RouterCommand>,
    pub(super) bytes: usize,
}

impl Dispatcher {
    /// Starts so many routers.
    pub(super) fn start(engine_handle: LocalEngine, context: RouterContext, routers: usize) -> io::Result<Rc<Self>> {
        let mask = (1 << context.bits) - 1;
        let by_router = (0..routers).map(|_| CommandBatch::default()).collect();
        let (dialling, ring) = (BTreeSet::new(), RingRoutes::default());
        let out = RouterOutput { by_router, mask, copies: 0, dialling, ring };
        let state = DispatcherState { engine_handle, out, routers: Vec::new(), running: routers };
        let (timer, tasks) = (Timer::default(), Tasks::default());
        let dispatcher = Rc::new(Self {
            state: RefCell::new(state),
            context,
            timer,
            drained: Notify::new(),
            ring: Notify::new(),
            finished: Notify::new(),
            tasks,
        });
        for number in 0..routers {
            let number = u32::try_from(number).expect("routers are few");
            let (router, ended) = RouterThread::start(number, &dispatcher.context)?;
            dispatcher.state.borrow_mut().routers.push(router);
            dispatcher.tasks.spawn(Rc::clone(&dispatcher).keep(number, ended));
        }
        Ok(dispatcher)
    }

    /// Takes what a router sends until it ends as it should; replaces it if it does not.
    async fn keep(self: Rc<Self>, number: u32, mut ended: oneshot::Receiver<()>) {
        let mut taken = Vec::new();
        let mut heard = false;
        loop {
            let inputs = Arc::clone(&self.state.borrow().routers[number as usize].inputs);
            let end = tokio::select! {
                () = async { self.room().await; inputs.arrived().await } => None,
                end = &mut ended => Some(end),
            };
            inputs.take(&mut taken);
            heard |= !taken.is_empty();
            let mut left = taken.drain(..);
            while self.handle_turn(&mut left) == Turn::Cut {
                // The other routers have theirs.
                tokio::task::yield_now().await;
                self.room().await;
            }
            drop(left);
            match end {
                // Timers, signals and new connections have their turn too.
                None => tokio::task::yield_now().await,
                Some(Ok(())) => break,
                Some(Err(_)) => {
                    if !heard {
                        // It failed at the start: the system may lack what it needs for a while.
                        tokio::time::sleep(PAUSE).await;
                    }
                    heard = false;
                    ended = self.replace(number).await;
                }
            }
        }
        self.state.borrow_mut().running -= 1;
        self.finished.notify_one();
    }

    /// Waits until every router has taken most of what is for it. Meanwhile nothing is taken from any of them, so that
    /// peers which send faster than others read are slowed down, not those others closed.
    async fn room(&self) {
        let full = |router: &RouterThread| {
            (!router.commands.has_room(limits::MAIL_BYTES_MAX)).then(|| Arc::clone(&router.commands))
        };
        loop {
            let Some(commands) = self.state.borrow().routers.iter().find_map(full) else { return };
            // A router that failed takes nothing any more; its successor has another mailbox.
            let _ = tokio::time::timeout(PAUSE, commands.room(limits::MAIL_BYTES_MAX)).await;
        }
    }

    /// A router panicked: its connections went with it, and a new one takes its place.
    async fn replace(&self, number: u32) -> oneshot::Receiver<()> {
        let mask = self.state.borrow().out.mask;
        let lost: Vec<ConnId> =
            self.state.borrow().engine_handle.engine.connections().filter(|conn| conn.index & mask == number).collect();
        error!(router = number, connections = lost.len(), "a network thread failed; its connections are closed");
        self.handle_all(lost.into_iter().map(|conn| Input::Disconnected { conn }));
        let dialled: Vec<u32> = {
            let DispatcherState { out, routers, .. } = &*self.state.borrow();
            let its = |target: &&u32| dials_for(**target, routers.len()) == number as usize;
            out.dialling.iter().filter(its).copied().collect()
        };
        self.handle_all(dialled.into_iter().map(|target| Input::DialFailed { target, code: Code::LinkDown }));
        let ring = {
            let DispatcherState { out, routers, .. } = &*self.state.borrow();
            out.ring.lost_with(number, mask, routers.len())
        };
        self.handle_all(ring.into_iter());
        loop {
            match RouterThread::start(number, &self.context) {
                Ok((router, ended)) => {
                    let DispatcherState { out, routers, .. } = &mut *self.state.borrow_mut();
                    router.commands.post(&mut out.ring.first_letters(), 0);
                    routers[number as usize] = router;
                    return ended;
                }
                Err(error) => warn!(%error, "cannot start a network thread"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(super) fn handle_all(&self, inputs: impl Iterator<Item = Input>) {
        self.handle_some(inputs, &mut Budget(u32::MAX));
    }

    /// Takes no more of a router's inputs than it may have done in one go.
    fn handle_turn(&self, inputs: &mut impl ExactSizeIterator<Item = Input>) -> Turn {
        self.handle_some(&mut *inputs, &mut Budget(limits::ROUTER_TURN_WORK));
        if inputs.len() > 0 { Turn::Cut } else { Turn::Done }
    }

    fn handle_some(&self, mut inputs: impl Iterator<Item = Input>, budget: &mut Budget) {
        let mut state = self.state.borrow_mut();
        let DispatcherState { engine_handle, out, routers, .. } = &mut *state;
        let now = self.context.clock.now();
        engine_handle.share_memory(&self.context.meter);
        while !budget.is_spent()
            && let Some(input) = inputs.next()
        {
            budget.spend(work_of(&input));
            if let Input::Linked { target: Some(target), .. } | Input::DialFailed { target, .. } = &input {
                out.dialling.remove(target);
            }
            if !out.ring.lets_in(&input, out.mask, &mut out.by_router) {
                continue;
            }
            engine_handle.put(now, input, out);
            budget.spend(work_of_events(std::mem::take(&mut out.copies), engine_handle.take_matches()));
        }
        engine_handle.share_memory(&self.context.meter);
        engine_handle.storage.post();
        for (router, CommandBatch { commands, bytes }) in routers.iter().zip(&mut out.by_router) {
            router.commands.post(commands, std::mem::take(bytes));
        }
        self.timer.look(engine_handle.engine.next_deadline());
        if engine_handle.drained().is_some() {
            self.drained.notify_one();
        }
        if engine_handle.has_ring_reports() {
            self.ring.notify_one();
        }
    }

    /// Reports of the ring's node for the broker's operator, since the last call.
    pub(super) fn take_ring_reports(&self) -> Vec<RingReport> {
        self.state.borrow_mut().engine_handle.take_ring_reports()
    }

    /// Gives a new connection to the router that has the fewest.
    pub(super) fn place(&self, stream: Stream, address: String, kind: ListenerKind) {
        let state = self.state.borrow();
        let open = |router: &RouterThread| router.open.load(Ordering::Relaxed);
        if state.routers.iter().map(open).sum::<usize>() >= self.context.limits.connections_max {
            return stream.turn_away(kind);
        }
        let Some(router) = state.routers.iter().min_by_key(|router| open(router)) else { return };
        match stream.pack() {
            Ok(stream) => {
                router.open.fetch_add(1, Ordering::Relaxed);
                router.commands.post(&mut vec![RouterCommand::Welcome(stream, address, kind)], 0);
            }
            Err(error) => log_limit::connection_lost(&error),
        }
    }

    pub(super) fn drained(&self) -> Option<Drained> {
        self.state.borrow().engine_handle.drained()
    }

    /// Looks at the engine.
    pub(super) fn with_engine<R>(&self, look: impl FnOnce(&Engine) -> R) -> R {
        look(&self.state.borrow().engine_handle.engine)
    }

    /// The engine with its storage and its archive.
    pub(super) fn with_engine_handle<R>(&self, with: impl FnOnce(&mut LocalEngine) -> R) -> R {
        with(&mut self.state.borrow_mut().engine_handle)
    }

    /// Lets every router write its last frames, and waits for their ends.
    pub(super) async fn finish(&self) {
        for router in &self.state.borrow().routers {
            router.commands.post(&mut vec![RouterCommand::Finish], 0);
        }
        let all = async {
            while self.state.borrow().running > 0 {
                self.finished.notified().await;
            }
        };
        if tokio::time::timeout(FINISH, all).await.is_err() {
            warn!("network threads took too long to stop");
        }
    }
}

impl RouterOutput {
    /// To the router that has the connection.
    fn post(&mut self, conn: ConnId, effect: PeerEffect) {
        if let Some(batch) = self.by_router.get_mut((conn.index & self.mask) as usize) {
            batch.bytes += effect.payload_bytes();
            batch.commands.push(RouterCommand::Effect(effect));
        }
    }

    /// An event goes to each router once, with those of its connections that it is for.
    fn spread(&mut self, event: &Arc<Event>, listeners: &[Listener]) {
        for (router, batch) in (0..).zip(&mut self.by_router) {
            let its = |listener: &&Listener| listener.conn.index & self.mask == router;
            let listeners: Vec<Listener> = listeners.iter().filter(its).copied().collect();
            if !listeners.is_empty() {
                let copies = u32::try_from(listeners.len()).unwrap_or(u32::MAX);
                self.copies = self.copies.saturating_add(copies);
                batch.bytes += event.payload.len() + work_of_copies(copies) as usize * limits::MAIL_WORK_BYTES;
                batch.commands.push(RouterCommand::Effect(PeerEffect::Event { event: Arc::clone(event), listeners }));
            }
        }
    }
}

impl PeerSink for RouterOutput {
    fn deliver(&mut self, deliver: Deliver<BorrowedPayload<'_>>) {
        self.post(deliver.conn, PeerEffect::Deliver(deliver.into_owned()));
    }

    fn peer(&mut self, effect: PeerEffect) {
        match effect {
            PeerEffect::Event { event, listeners } => self.spread(&event, &listeners),
            PeerEffect::Ring(effect) => self.ring.send(effect, self.mask, &mut self.by_router),
            PeerEffect::Dial { target, .. } => {
                self.dialling.insert(target);
                let router = dials_for(target, self.by_router.len());
                self.by_router[router].commands.push(RouterCommand::Effect(effect));
            }
            PeerEffect::Deliver(Deliver { conn, .. })
            | PeerEffect::Caller { conn, .. }
            | PeerEffect::Answer { conn, .. }
            | PeerEffect::Stop { conn, .. }
            | PeerEffect::Closing { conn, .. }
            | PeerEffect::Native { conn, .. }
            | PeerEffect::Link { conn, .. }
            | PeerEffect::Foreman { conn, .. } => self.post(conn, effect),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
    use turno_engine::Settings;
    use turno_proto::model::admin::AdminCall;
    use turno_proto::model::link::BrokerId;
    use turno_proto::model::{Limits, Payload};
    use turno_proto::native::{Config, Connect, Frame, GreetingCredentials, Identity, Kind, VERSION, encode, split};

    use super::*;
    use crate::archive::ArchiveHandle;
    use crate::clock::Clock;
    use crate::connections::{LinkSettings, Nonces};
    use crate::zmq::Endpoints;

    fn dispatcher(routers: usize) -> Rc<Dispatcher> {
        let config = Config {
            broker: "b".into(),
            frame_bytes_max: 1 << 20,
            request_deadline_ms: 1_000,
            ..Config::of(&Limits::default())
        };
        let clock = Clock::start();
        let (limits, accepted, zmq) = (Limits::default(), Arc::new(AtomicU32::new(0)), Endpoints::default());
        let meter = crate::memory::MemoryMeter::new(&limits);
        let context =
            RouterContext { clock, limits, config, links: links(), ring: None, zmq, bits: 1, accepted, meter };
        let engine = Engine::new(Settings::default(), clock.now());
        Dispatcher::start(LocalEngine::new(engine, None, ArchiveHandle::in_memory()), context, routers).unwrap()
    }

    fn links() -> LinkSettings {
        let (broker, name) = (BrokerId::new(1), "b".to_owned());
        let identity = Identity { broker, name, program: String::new(), frame_bytes_max: 1 << 20 };
        LinkSettings { credentials: GreetingCredentials::new(identity, None), nonces: Nonces::System }
    }

    fn runtime() -> LocalRuntime {
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap()
    }

    /// A peer that greeted: the broker answered CONFIG and PONG.
    async fn greeted(dispatcher: &Dispatcher, listener: &TcpListener) -> TcpStream {
        let (mut peer, accepted) =
            tokio::join!(async { TcpStream::connect(listener.local_addr().unwrap()).await.unwrap() }, async {
                listener.accept().await.unwrap()
            });
        dispatcher.place(Stream::Tcp(accepted.0), "here".to_owned(), ListenerKind::Native);
        let mut bytes = Vec::new();
        let connect = Connect { version: VERSION, name: String::new(), program: String::new(), heartbeat_ms: 0 };
        encode(&Frame::Connect { seq: 1, connect }, &mut bytes);
        peer.write_all(&bytes).await.unwrap();
        assert_eq!(heard(&mut peer).await, Some(Kind::Config));
        assert!(lives(&mut peer).await);
        peer
    }

    async fn lives(peer: &mut TcpStream) -> bool {
        let mut bytes = Vec::new();
        encode(&Frame::Ping { seq: 2 }, &mut bytes);
        peer.write_all(&bytes).await.is_ok() && heard(peer).await == Some(Kind::Pong)
    }

    /// The next frame's kind; `None` at the end.
    async fn heard(peer: &mut TcpStream) -> Option<Kind> {
        let mut bytes = Vec::new();
        loop {
            if let Some(piece) = split(&bytes, 1 << 20).unwrap() {
                assert_eq!(piece.used, bytes.len(), "one frame at a time");
                return Kind::from_number(piece.header.kind);
            }
            if peer.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// However much one router sends, the others have their turn before more than a part of it is done.
    #[test]
    fn a_routers_turn_is_short() {
        runtime().block_on(async {
            let dispatcher = dispatcher(2);
            let conn = ConnId { index: 0, generation: 1 };
            let calls = vec![Input::Admin { conn, seq: 1, call: AdminCall::Status }; 5_000];
            let mut left = calls.into_iter();
            assert_eq!(dispatcher.handle_turn(&mut left), Turn::Cut);
            let done = limits::ROUTER_TURN_WORK / limits::TURN_WORK_HEAVY;
            assert_eq!(left.len(), 5_000 - done as usize);
            let mut few = vec![Input::Ready { conn }; 3].into_iter();
            assert_eq!(dispatcher.handle_turn(&mut few), Turn::Done);
            dispatcher.finish().await;
        });
    }

    /// An event for many is more work than one for few.
    #[test]
    fn events_for_many_make_a_turn_shorter() {
        runtime().block_on(async {
            let dispatcher = dispatcher(2);
            let conn = |index| ConnId { index, generation: 1 };
            let many = 20 * limits::TURN_WORK_COPIES;
            dispatcher.handle_all((0..many).flat_map(|index| {
                let (conn, name, address) = (conn(index), String::new(), String::new());
                let filter = ">".parse().unwrap();
                [Input::Connected { conn, name, address }, Input::Subscribe { conn, seq: 1, filter, or_close: false }]
            }));
            let event = Event { topic: "t".parse().unwrap(), payload: Payload::default() };
            let publish = Input::Publish { conn: conn(0), seq: 2, confirm: false, event };
            let mut left = vec![publish; 5_000].into_iter();
            assert_eq!(dispatcher.handle_turn(&mut left), Turn::Cut);
            assert_eq!(left.len(), 5_000 - limits::ROUTER_TURN_WORK.div_ceil(1 + 20) as usize);
            dispatcher.finish().await;
        });
    }

    /// A router that fails while it dials takes the dial with it: the engine hears so, once, and not of those of others.
    #[test]
    fn a_router_that_fails_gives_its_dials_back() {
        runtime().block_on(async {
            let dispatcher = dispatcher(2);
            let put = |effect| dispatcher.state.borrow_mut().out.peer(effect);
            // Nobody greets there: the dials last until the test is over.
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            for target in 0..4 {
                put(PeerEffect::Dial { target, address: address.clone() });
            }
            let dialling = || dispatcher.state.borrow().out.dialling.iter().copied().collect::<Vec<u32>>();
            assert_eq!(dialling(), [0, 1, 2, 3]);
            let commands = Arc::clone(&dispatcher.state.borrow().routers[1].commands);
            commands.post(&mut vec![RouterCommand::Panic], 0);
            while dialling().len() > 2 {
                tokio::task::yield_now().await;
            }
            assert_eq!(dialling(), [0, 2]);
            dispatcher.finish().await;
        });
    }

    /// Proves S1.20: a router that panics takes its connections with it and is replaced; the other, and the engine, go on.
    #[test]
    fn a_router_that_fails_is_replaced() {
        runtime().block_on(async {
            let dispatcher = dispatcher(2);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut first = greeted(&dispatcher, &listener).await;
            let mut second = greeted(&dispatcher, &listener).await;
            let commands = Arc::clone(&dispatcher.state.borrow().routers[0].commands);
            commands.post(&mut vec![RouterCommand::Panic], 0);
            assert_eq!(heard(&mut first).await, None);
            assert!(lives(&mut second).await);
            while dispatcher.with_engine(|engine| engine.connections().count()) > 1 {
                tokio::task::yield_now().await;
            }
            // The empty one gets the next, under a number that nobody had before.
            let mut third = greeted(&dispatcher, &listener).await;
            assert!(lives(&mut third).await);
            let ids: Vec<ConnId> = dispatcher.with_engine(|engine| engine.connections().collect());
            assert_eq!(
                ids,
                [ConnId { index: 0, generation: 3 }, ConnId { index: 1, generation: 2 }],
                "router 0's connection, then router 1's"
            );
            dispatcher.with_engine(Engine::sanity_check);
            dispatcher.finish().await;
            assert_eq!(dispatcher.state.borrow().running, 0);
        });
    }
}
