//! A router on a thread of its own.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use tokio::sync::oneshot;
use tracing::warn;
use turno_engine::{Input, PeerEffect};
use turno_proto::model::Limits;
use turno_proto::native::Config;

use super::Router;
use super::accept::AcceptedStream;
use super::upstream::InputBatch;
use crate::clock::Clock;
use crate::connections::{Connections, LinkSettings, ListenerKind, Nonces, NumberAllocation, RingWireSettings};
use crate::mailbox::Mailbox;
use crate::memory::MemoryMeter;
use crate::zmq::Endpoints;

/// A command of the dispatcher to a router.
#[derive(Debug)]
pub(crate) enum RouterCommand {
    /// To be done.
    Effect(PeerEffect),
    /// A new connection, with its address and the listener that accepted it.
    Welcome(AcceptedStream, String, ListenerKind),
    /// Write what waits, and end.
    Finish,
    /// Fail, to show what that does.
    #[cfg(test)]
    Panic,
}

/// State that all routers of a broker share.
#[derive(Clone, Debug)]
pub(crate) struct RouterContext {
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) config: Config,
    pub(crate) links: LinkSettings,
    pub(crate) ring: Option<RingWireSettings>,
    pub(crate) zmq: Endpoints,
    /// Bits of a connection's index that name its router.
    pub(crate) bits: u32,
    /// Counts connections, through all routers and their successors.
    pub(crate) accepted: Arc<AtomicU32>,
    /// The memory of all of them, and of the engine.
    pub(crate) meter: Arc<MemoryMeter>,
}

/// The dispatcher's handle of a router.
#[derive(Debug)]
pub(crate) struct RouterThread {
    pub(crate) commands: Arc<Mailbox<RouterCommand>>,
    pub(crate) inputs: Arc<Mailbox<Input>>,
    /// How many connections it has, and are on their way to it.
    pub(crate) open: Arc<AtomicUsize>,
}

impl RouterThread {
    /// Starts router number `number`. The receiver hears of its end: nothing but a drop, if it panicked.
    pub(crate) fn start(number: u32, context: &RouterContext) -> io::Result<(Self, oneshot::Receiver<()>)> {
        let (commands, inputs) = (Arc::new(Mailbox::new()), Arc::new(Mailbox::new()));
        let open = Arc::new(AtomicUsize::new(0));
        let (tell, ended) = oneshot::channel();
        let RouterContext { clock, limits, config, links, ring, zmq, bits, accepted, meter } = context.clone();
        let numbers = NumberAllocation { router: number, bits, accepted };
        let router = Self { commands, inputs, open };
        let (commands, inputs, open) =
            (Arc::clone(&router.commands), Arc::clone(&router.inputs), Arc::clone(&router.open));
        std::thread::Builder::new().name(format!("turno-router-{number}")).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(tokio::runtime::LocalOptions::default());
            // The dispatcher hears of the end, and tries again.
            let runtime = runtime.inspect_err(|error| warn!(%error, "cannot start a router's runtime"));
            let Ok(runtime) = runtime else { return };
            let mut connections = Connections::with_engine_handle(InputBatch::new(inputs), limits, config, numbers);
            connections.set_meter(meter);
            connections.set_links(links);
            connections.set_zmq(zmq, Nonces::System);
            if let Some(ring) = ring {
                connections.set_ring(ring);
            }
            runtime.block_on(async {
                let router = Router::start(clock, connections, open);
                tokio::select! {
                    () = keep(&router, &commands) => {
                        // Nobody listens only if the broker was told to end at once.
                        let _ = tell.send(());
                    }
                    () = router.tasks.broken() => {}
                }
            });
        })?;
        Ok((router, ended))
    }
}

/// Executes commands, until the last one.
async fn keep(router: &Rc<Router<InputBatch>>, commands: &Mailbox<RouterCommand>) {
    let mut taken = Vec::new();
    loop {
        commands.arrived().await;
        commands.take(&mut taken);
        let mut finish = false;
        let mut effects = Vec::new();
        for command in taken.drain(..) {
            match command {
                RouterCommand::Effect(effect) => effects.push(effect),
                RouterCommand::Welcome(stream, address, kind) => router.welcome(stream.unpack(), address, kind),
                RouterCommand::Finish => finish = true,
                #[cfg(test)]
                RouterCommand::Panic => panic!("told to"),
            }
        }
        router.carry_out(effects.into_iter());
        if finish {
            return router.finish().await;
        }
    }
}
