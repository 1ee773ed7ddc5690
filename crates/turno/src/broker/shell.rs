//! The engine and its routers, whichever threads they are on.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use turno_engine::{Engine, Input, Settings as EngineSettings};
use turno_proto::native::Config;

use super::clock::Clock;
use super::dispatcher::Dispatcher;
use super::router::{Router, Stream, Workplace};
use super::switchboard::{Drained, Switchboard};

/// A running broker.
#[derive(Clone, Debug)]
pub(super) enum Shell {
    /// One router, on the engine's own thread.
    One(Rc<Router>),
    /// Routers with threads of their own.
    Many(Rc<Dispatcher>),
}

impl Shell {
    pub(super) fn start(settings: EngineSettings, config: Config, routers: usize) -> io::Result<Self> {
        let clock = Clock::start();
        let shell = if routers <= 1 {
            let switchboard = Switchboard::new(clock.now(), settings, config);
            Self::One(Router::start(clock, switchboard, Arc::new(AtomicUsize::new(0))))
        } else {
            let limits = settings.limits.clone();
            let bits = usize::BITS - (routers - 1).leading_zeros();
            let accepted = Arc::new(AtomicU32::new(0));
            let workplace = Workplace { clock, limits, config, bits, accepted };
            Self::Many(Dispatcher::start(Engine::new(settings, clock.now()), workplace, routers)?)
        };
        shell.keep_time(clock);
        Ok(shell)
    }

    /// A new connection.
    pub(super) fn place(&self, stream: Stream, address: String) {
        match self {
            Self::One(router) => router.place(stream, address),
            Self::Many(dispatcher) => dispatcher.place(stream, address),
        }
    }

    /// Something that no connection said.
    pub(super) fn handle(&self, input: Input) {
        match self {
            Self::One(router) => router.handle(input),
            Self::Many(dispatcher) => dispatcher.handle(input),
        }
    }

    /// Waits for the end of a drain.
    pub(super) async fn drained(&self) -> Drained {
        loop {
            let (drained, notified) = match self {
                Self::One(router) => (router.state().switchboard.drained(), router.drained.notified()),
                Self::Many(dispatcher) => (dispatcher.drained(), dispatcher.drained.notified()),
            };
            if let Some(drained) = drained {
                return drained;
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
            Self::One(router) => look(router.state().switchboard.engine()),
            Self::Many(dispatcher) => dispatcher.with_engine(look),
        }
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
