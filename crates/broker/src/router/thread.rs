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
use super::accept::Parcel;
use super::upstream::Mail;
use crate::clock::Clock;
use crate::connections::{Connections, Door, LinkSettings, Nonces, RingWireSettings, Seat};
use crate::mailbox::Mailbox;
use crate::memory::Meter;
use crate::zmq::Endpoints;

/// A letter of the dispatcher to a router.
#[derive(Debug)]
pub(crate) enum Letter {
    /// To be done.
    Effect(PeerEffect),
    /// A new connection, where it comes from, and by which door.
    Welcome(Parcel, String, Door),
    /// Write what waits, and end.
    Finish,
    /// Fail, to show what that does.
    #[cfg(test)]
    Panic,
}

/// State that all routers of a broker share.
#[derive(Clone, Debug)]
pub(crate) struct Workplace {
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
    pub(crate) meter: Arc<Meter>,
}

/// The dispatcher's hold of a router.
#[derive(Debug)]
pub(crate) struct RouterThread {
    pub(crate) letters: Arc<Mailbox<Letter>>,
    pub(crate) inputs: Arc<Mailbox<Input>>,
    /// How many connections it has, and are on their way to it.
    pub(crate) open: Arc<AtomicUsize>,
}

impl RouterThread {
    /// Starts router number `number`. The receiver hears of its end: nothing but a drop, if it panicked.
    pub(crate) fn start(number: u32, workplace: &Workplace) -> io::Result<(Self, oneshot::Receiver<()>)> {
        let (letters, inputs) = (Arc::new(Mailbox::new()), Arc::new(Mailbox::new()));
        let open = Arc::new(AtomicUsize::new(0));
        let (tell, ended) = oneshot::channel();
        let Workplace { clock, limits, config, links, ring, zmq, bits, accepted, meter } = workplace.clone();
        let seat = Seat { router: number, bits, accepted };
        let router = Self { letters, inputs, open };
        let (letters, inputs, open) =
            (Arc::clone(&router.letters), Arc::clone(&router.inputs), Arc::clone(&router.open));
        std::thread::Builder::new().name(format!("turno-router-{number}")).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(tokio::runtime::LocalOptions::default());
            // The dispatcher hears of the end, and tries again.
            let runtime = runtime.inspect_err(|error| warn!(%error, "cannot start a router's runtime"));
            let Ok(runtime) = runtime else { return };
            let mut connections = Connections::with_engine_handle(Mail::new(inputs), limits, config, seat);
            connections.set_meter(meter);
            connections.set_links(links);
            connections.set_zmq(zmq, Nonces::System);
            if let Some(ring) = ring {
                connections.set_ring(ring);
            }
            runtime.block_on(async {
                let router = Router::start(clock, connections, open);
                tokio::select! {
                    () = keep(&router, &letters) => {
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

/// Does what the letters say, until the last one.
async fn keep(router: &Rc<Router<Mail>>, letters: &Mailbox<Letter>) {
    let mut taken = Vec::new();
    loop {
        letters.arrived().await;
        letters.take(&mut taken);
        let mut finish = false;
        let mut effects = Vec::new();
        for letter in taken.drain(..) {
            match letter {
                Letter::Effect(effect) => effects.push(effect),
                Letter::Welcome(parcel, address, door) => router.welcome(parcel.unpack(), address, door),
                Letter::Finish => finish = true,
                #[cfg(test)]
                Letter::Panic => panic!("told to"),
            }
        }
        router.carry_out(effects.into_iter());
        if finish {
            return router.finish().await;
        }
    }
}
