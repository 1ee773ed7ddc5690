//! The threads of a broker: the engine and its routers, on one or several.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use turno_engine::{Engine, Input};
use turno_proto::model::Limits;
use turno_proto::native::Config;

use super::archive::ArchiveHandle;
use super::clock::Clock;
use super::connections::{
    Connections, Drained, LinkSettings, ListenerKind, LocalEngine, Nonces, RingReport, RingWireSettings,
};
use super::dispatcher::Dispatcher;
use super::error::StoreError;
use super::memory::MemoryMeter;
use super::operator_log;
use super::router::{Router, RouterContext, Stream};
use super::storage::DiskStorage;
use super::zmq::Endpoints;

/// A running broker.
#[derive(Clone, Debug)]
pub(super) enum BrokerThreads {
    /// One router, on the engine's own thread.
    One(Rc<Router>),
    /// Routers with threads of their own.
    Many(Rc<Dispatcher>),
}

impl BrokerThreads {
    #[expect(clippy::too_many_arguments, reason = "each is a part of a broker that is there once")]
    pub(super) fn start(
        clock: Clock,
        engine_handle: LocalEngine,
        limits: Limits,
        config: Config,
        links: LinkSettings,
        ring: Option<RingWireSettings>,
        zmq: Endpoints,
        routers: usize,
    ) -> io::Result<Self> {
        let shell = if routers <= 1 {
            let mut connections = Connections::with_engine(engine_handle, limits, config);
            connections.set_links(links);
            connections.set_zmq(zmq, Nonces::System);
            if let Some(ring) = ring {
                connections.set_ring(ring);
            }
            Self::One(Router::start(clock, connections, Arc::new(AtomicUsize::new(0))))
        } else {
            let bits = usize::BITS - (routers - 1).leading_zeros();
            let accepted = Arc::new(AtomicU32::new(0));
            let meter = MemoryMeter::new(&limits);
            let context = RouterContext { clock, limits, config, links, ring, zmq, bits, accepted, meter };
            Self::Many(Dispatcher::start(engine_handle, context, routers)?)
        };
        shell.keep_time(clock);
        shell.hear_archive();
        shell.spawn({
            let shell = shell.clone();
            async move {
                loop {
                    tokio::time::sleep(operator_log::LOOK).await;
                    shell.keep_diary();
                }
            }
        });
        Ok(shell)
    }

    /// A new connection.
    pub(super) fn place(&self, stream: Stream, address: String, kind: ListenerKind) {
        match self {
            Self::One(router) => router.place(stream, address, kind),
            Self::Many(dispatcher) => dispatcher.place(stream, address, kind),
        }
    }

    /// Something that no connection said.
    pub(super) fn handle(&self, input: Input) {
        self.handle_all(vec![input]);
    }

    fn handle_all(&self, inputs: Vec<Input>) {
        match self {
            Self::One(router) => router.handle(inputs),
            Self::Many(dispatcher) => dispatcher.handle_all(inputs.into_iter()),
        }
    }

    /// Waits for the end of a drain.
    pub(super) async fn drained(&self) -> Drained {
        loop {
            let (drained, notified) = match self {
                Self::One(router) => (router.state().connections.drained(), router.drained.notified()),
                Self::Many(dispatcher) => (dispatcher.drained(), dispatcher.drained.notified()),
            };
            if let Some(drained) = drained {
                return drained;
            }
            notified.await;
        }
    }

    /// Waits for reports of the ring's node for the broker's operator; in order.
    pub(super) async fn ring_reports(&self) -> Vec<RingReport> {
        loop {
            let (reports, notified) = match self {
                Self::One(router) => (router.state().connections.take_ring_reports(), router.ring.notified()),
                Self::Many(dispatcher) => (dispatcher.take_ring_reports(), dispatcher.ring.notified()),
            };
            if !reports.is_empty() {
                return reports;
            }
            notified.await;
        }
    }

    /// Lets the last answers be written, for a moment.
    pub(super) async fn finish(&self) {
        match self {
            Self::One(router) => router.finish().await,
            Self::Many(dispatcher) => dispatcher.finish().await,
        }
    }

    /// Looks at the engine.
    pub(super) fn with_engine<R>(&self, look: impl FnOnce(&Engine) -> R) -> R {
        match self {
            Self::One(router) => look(router.state().connections.engine()),
            Self::Many(dispatcher) => dispatcher.with_engine(look),
        }
    }

    fn with_storage<R>(&self, with: impl FnOnce(&mut Option<DiskStorage>) -> R) -> R {
        match self {
            Self::One(router) => with(router.state().connections.storage_mut()),
            Self::Many(dispatcher) => dispatcher.with_engine_handle(|engine_handle| with(&mut engine_handle.storage)),
        }
    }

    /// Tells the engine what the store has to say. Returns only if the store failed, with the reason.
    pub(super) async fn hear_store(&self) -> StoreError {
        let Some(news) = self.with_storage(|storage| storage.as_ref().map(|storage| Arc::clone(&storage.news))) else {
            return std::future::pending().await;
        };
        loop {
            news.notified().await;
            match self.with_storage(|storage| storage.as_mut().map_or(Ok(Vec::new()), DiskStorage::take)) {
                Ok(inputs) => self.handle_all(inputs),
                Err(error) => return error,
            }
        }
    }

    fn with_archivist<R>(&self, with: impl FnOnce(&mut ArchiveHandle) -> R) -> R {
        match self {
            Self::One(router) => with(router.state().connections.archive_mut()),
            Self::Many(dispatcher) => dispatcher.with_engine_handle(|engine_handle| with(&mut engine_handle.archive)),
        }
    }

    /// Tells the engine what the archive has to say, for ever.
    fn hear_archive(&self) {
        let Some(news) = self.with_archivist(|archive| archive.news()) else { return };
        let shell = self.clone();
        self.spawn(async move {
            loop {
                news.notified().await;
                let answers = shell.with_archivist(ArchiveHandle::take);
                shell.handle_all(answers);
            }
        });
    }

    /// Logs what has changed since the last look.
    pub(super) fn keep_diary(&self) {
        match self {
            Self::One(router) => router.state().connections.keep_diary(),
            Self::Many(dispatcher) => dispatcher.with_engine_handle(LocalEngine::keep_diary),
        }
    }

    /// Writes down what the engine said last.
    pub(super) fn close_store(&self) -> Result<(), StoreError> {
        self.with_storage(Option::take).map_or(Ok(()), DiskStorage::close)
    }

    /// Runs a task that the broker cannot do without.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        match self {
            Self::One(router) => router.tasks.spawn(task),
            Self::Many(dispatcher) => dispatcher.tasks.spawn(task),
        };
    }

    /// Waits until something went wrong that must not.
    pub(super) async fn broken(&self) {
        match self {
            Self::One(router) => router.tasks.broken().await,
            Self::Many(dispatcher) => dispatcher.tasks.broken().await,
        }
    }

    fn keep_time(&self, clock: Clock) {
        let shell = self.clone();
        self.spawn(async move {
            let timer = match &shell {
                Self::One(router) => &router.timer,
                Self::Many(dispatcher) => &dispatcher.timer,
            };
            timer.keep(clock, || shell.with_engine(Engine::next_deadline), || shell.handle(Input::Tick)).await;
        });
    }
}
