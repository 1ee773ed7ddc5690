//! The life of a broker: its start from settings, and its end by a signal.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::{error, info, warn};
use turno_engine::{Engine, Input, Settings as EngineSettings};
use turno_proto::model::limits;
use turno_proto::model::link::BrokerId;
use turno_proto::native::{Config, GreetingCredentials, Identity};

use super::archive::ArchiveHandle;
use super::clock::Clock;
use super::connections::{LinkSettings, ListenerKind, LocalEngine, Nonces, RingWireSettings};
use super::data::DataDirectory;
use super::error::ServeError;
use super::listen::{self, accept_tcp, accept_unix};
use super::ring::{self, RingEnd};
use super::settings::{IfTaken, Settings};
use super::storage::{self, DiskStorage};
use super::threads::BrokerThreads;
use crate::files::{raise_file_limit, too_few_files};
use crate::zmq::{Endpoints, ZmqAddress, ZmqPlace, ZmqRole};

/// Connections the system may hold for us before we accept them.
const BACKLOG: u32 = 1_024;

/// Where a broker really listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// TCP addresses, with the ports the system chose.
    pub native: Vec<SocketAddr>,
    /// TCP addresses for job workers.
    pub foreman: Vec<SocketAddr>,
    /// Addresses for ZeroMQ programs, in the order of the endpoints.
    pub zmq: Vec<ZmqAddress>,
    /// Those of them that are for LMQ programs alone.
    pub lmq: Vec<ZmqAddress>,
    /// The Unix socket.
    pub unix: Option<PathBuf>,
    /// The TCP address for other members of the ring.
    pub ring: Option<SocketAddr>,
}

impl Bound {
    /// Addresses for ZeroMQ programs that do not speak LMQ.
    pub fn plain_zmq(&self) -> impl Iterator<Item = &ZmqAddress> {
        self.zmq.iter().filter(|address| !self.lmq.contains(address))
    }
}

/// How a broker ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Waiting requests that were given back to their callers.
    pub returned: u64,
    /// Deliveries cut short.
    pub cut: u64,
    /// Messages in memory that ended with the broker.
    pub lost: u64,
    /// The second signal, if one cut the drain short.
    pub cut_by: Option<i32>,
}

/// The event that ends a broker.
pub(crate) enum EndCause {
    /// SIGTERM, SIGINT or SIGHUP (the terminal went away) drains, a second one ends at once.
    Signal,
    /// The other end is used, or dropped.
    Told(oneshot::Receiver<()>),
}

/// Runs a broker on this thread until a signal ends it. `ready` is called once it listens.
pub fn run(settings: Settings, ready: impl FnOnce(&Settings, &Bound)) -> Result<Ended, ServeError> {
    serve(settings, EndCause::Signal, ready)
}

pub(crate) fn serve(
    settings: Settings,
    until: EndCause,
    ready: impl FnOnce(&Settings, &Bound),
) -> Result<Ended, ServeError> {
    in_runtime(async {
        // Signals are caught before anything is taken, so that none can leave half a broker behind.
        let mut stop = Stop::new(until)?;
        serve_here(settings, &mut stop, ready).await
    })?
}

/// Runs a broker's life in a runtime of its own, which ends with it and takes along whatever still runs.
pub(super) fn in_runtime<T>(life: impl Future<Output = T>) -> Result<T, ServeError> {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .map_err(|source| ServeError::System { doing: "start the runtime", source })?;
    Ok(runtime.block_on(life))
}

pub(super) async fn serve_here(
    settings: Settings,
    stop: &mut Stop,
    ready: impl FnOnce(&Settings, &Bound),
) -> Result<Ended, ServeError> {
    // First, since a second broker with its number is told by that what is wrong; directory and other ports follow from it.
    let members = settings.ring.as_ref().map(ring::listen).transpose()?;
    let mut directory = settings.data.as_deref().map(DataDirectory::take).transpose()?;
    let unix = directory.as_mut().map(DataDirectory::listen).transpose()?.flatten();
    let tcp = settings.listen.iter().map(|address| listen_on(*address)).collect::<Result<Vec<_>, _>>()?;
    let workers = listen_for_workers(&settings)?;
    let zmq = listen::listen_for_zmq(&settings.zmq)?;
    let addresses =
        |listeners: &[TcpListener]| listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let is_lmq = |place: u16| settings.zmq.get(usize::from(place)).is_some_and(|one| one.role == ZmqRole::Lmq);
    let bound = Bound {
        native: addresses(&tcp),
        foreman: addresses(&workers),
        zmq: zmq.iter().map(|(_, listener)| listener.address().clone()).collect(),
        lmq: zmq.iter().filter(|(place, _)| is_lmq(*place)).map(|(_, listener)| listener.address().clone()).collect(),
        unix: directory.as_ref().and_then(DataDirectory::socket).map(ToOwned::to_owned),
        ring: members.as_ref().and_then(|listener| listener.local_addr().ok()),
    };
    if let (Some(directory), true) = (&settings.data, bound.native.is_empty() && bound.unix.is_none()) {
        return Err(ServeError::Unreachable { directory: directory.clone() });
    }
    let clock = Clock::start();
    let store = directory.as_ref().map(DataDirectory::store).transpose()?;
    let archive = directory.as_ref().map(DataDirectory::archive).transpose()?;
    let run = random();
    let (engine_handle, ring) = engine_handle_of(&settings, run, &bound, store.as_deref(), archive.as_deref(), clock)?;
    let endpoints = endpoints_of(&settings, &bound);
    let shell = shell_of(&settings, run, &bound, clock, engine_handle, ring, endpoints.clone())?;
    accept_at(&shell, members, ListenerKind::Ring);
    let opens = || {
        accept_at(&shell, tcp, ListenerKind::Native);
        accept_at(&shell, workers, ListenerKind::Foreman);
        for (place, listener) in zmq {
            shell.spawn(listener.accept(shell.clone(), ListenerKind::Zmq(place)));
        }
        for (place, endpoint) in endpoints.that_connect() {
            shell.spawn(listen::dial_zmq(shell.clone(), endpoint, place));
        }
        if let Some(listener) = unix {
            shell.spawn(accept_unix(shell.clone(), listener, ListenerKind::Native));
        }
        ready(&settings, &bound);
        // After the banner: the log has its own writer, and two writers would mix their lines.
        log_ready(&settings, &bound);
        if let Some((files, wanted)) = too_few_files(settings.limits.connections_max as u64) {
            warn!(
                files,
                wanted,
                "the open-file limit is too low for limits.connections: raise `ulimit -n` (LimitNOFILE= in a \
                     systemd unit), or lower limits.connections"
            );
        }
    };
    let mut opens = Some(opens);
    let mut open = || opens.take().map_or((), |opens| opens());
    // A joining broker is not ready before the ring has accepted it: another member may have its number.
    if settings.ring.as_ref().is_none_or(|ring| ring.next.is_none()) {
        open();
    }
    let failed = |source| ServeError::StoreFailed { directory: store.clone().unwrap_or_default(), source };
    let ended = tokio::select! {
        ended = until_stopped(&shell, stop, &settings, open) => ended,
        source = shell.hear_store() => return Err(logged(failed(source))),
        () = shell.broken() => return Err(logged(ServeError::Broken)),
    };
    shell.keep_diary();
    shell.close_store().map_err(failed).map_err(logged)?;
    // Why it is not in its ring any more is in the log already.
    if let Ok(Ended { returned, cut, lost, .. }) = &ended {
        info!(returned, cut, lost, "the broker is stopping");
    }
    ended
}

/// The log says where the broker is.
fn log_ready(settings: &Settings, bound: &Bound) {
    let version = env!("CARGO_PKG_VERSION");
    let list = |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let Bound { native, foreman, zmq, unix, ring, lmq: _ } = bound;
    let zmq = zmq.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let (listen, foreman, ring) = (list(native), list(foreman), list(ring.as_slice()));
    let (data, unix) = (path(&settings.data), path(unix));
    info!(name = settings.name, version, data, listen, foreman, zmq, unix, ring, "ready");
}

/// A broker that worked ends for that.
fn logged(error: ServeError) -> ServeError {
    error!(%error, "the broker is stopping");
    error
}

/// Accepts all connections there.
fn accept_at(shell: &BrokerThreads, listeners: impl IntoIterator<Item = TcpListener>, kind: ListenerKind) {
    for listener in listeners {
        shell.spawn(accept_tcp(shell.clone(), listener, kind));
    }
}

/// The engine with what it had when it last ended, and the way to the disk.
fn engine_handle_of(
    settings: &Settings,
    run: u64,
    bound: &Bound,
    store: Option<&Path>,
    archive: Option<&Path>,
    clock: Clock,
) -> Result<(LocalEngine, Option<RingWireSettings>), ServeError> {
    let (engine, storage, ring) = engine_of(settings, run, bound, store, clock)?;
    let archive = ArchiveHandle::start(&settings.archive, archive, &engine, random(), clock).map_err(|source| {
        let directory = archive.map(Path::to_owned).unwrap_or_default();
        ServeError::Archive { directory, source }
    })?;
    Ok((LocalEngine::new(engine, storage, archive), ring))
}

fn engine_of(
    settings: &Settings,
    run: u64,
    bound: &Bound,
    store: Option<&Path>,
    clock: Clock,
) -> Result<(Engine, Option<DiskStorage>, Option<RingWireSettings>), ServeError> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let lease = settings.queue_defaults.lease.map(millis);
    let mut engine = EngineSettings {
        name: settings.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        foreman: bound.foreman.first().map(ToString::to_string),
        data: settings.data.as_ref().map(|data| data.display().to_string()),
        run,
        seed: random(),
        // The clock starts at Unix time.
        term: clock.now().as_millis(),
        limits: settings.limits.clone(),
        lease_ms: lease,
        policy: settings.queue_defaults.policy,
        drop_after: settings.queue_defaults.drop_after,
        retry_delay: settings.queue_defaults.retry_delay,
        output_per_task: settings.archive.output_per_task,
        keep_finished_ms: settings.keep_finished.map(millis),
        task_grace_ms: millis(settings.worker_grace),
        links: settings.links.to.clone(),
        link_order: settings.links.order.clone(),
        ..EngineSettings::default()
    };
    let Some(directory) = store else {
        let wire = ring::enter(settings, bound, &mut engine, clock.now());
        return Ok((Engine::new(engine, clock.now()), None, wire));
    };
    let failed = |source| ServeError::Store { directory: directory.to_owned(), source };
    let mut store = storage::open(directory, random()).map_err(failed)?;
    storage::begin(&mut store, &mut engine).map_err(failed)?;
    let wire = ring::enter(settings, bound, &mut engine, clock.now());
    let mut engine = Engine::new(engine, clock.now());
    storage::recover(&mut store, &mut engine).map_err(failed)?;
    let storage =
        DiskStorage::start(store).map_err(|source| ServeError::System { doing: "start the committer", source })?;
    Ok((engine, Some(storage), wire))
}

/// Waits for the signal; then tells everyone, waits for what runs (answering questions meanwhile; a new client
/// is sent on), and lets the last answers be written.
async fn until_stopped(
    shell: &BrokerThreads,
    stop: &mut Stop,
    settings: &Settings,
    settled: impl FnMut(),
) -> Result<Ended, ServeError> {
    let timeout = settings.drain_timeout;
    let why = tokio::select! {
        _ = stop.wait() => RingEnd::Asked,
        why = ring::ends(shell, settings.ring.as_ref(), settled) => why,
    };
    let within_seconds = timeout.as_secs_f64();
    info!(within_seconds, "draining: no new work; press Ctrl-C again to stop immediately");
    shell.handle(Input::Drain { within_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX) });
    let ended = tokio::select! {
        drained = shell.drained() => {
            shell.finish().await;
            Ended { returned: drained.returned, cut: drained.cut, lost: drained.lost, cut_by: None }
        }
        signal = stop.wait() => {
            let (cut, lost) = shell.with_engine(|engine| (engine.in_flight(), engine.held_in_memory()));
            warn!(cut, lost, "stopping immediately");
            Ended { returned: 0, cut, lost, cut_by: Some(signal) }
        }
    };
    match (why, &settings.ring) {
        (RingEnd::RingFailed(code), Some(ring)) => {
            let next = ring.next.as_ref().map(|(_, address)| address.clone());
            Err(ServeError::Ring { sid: ring.sid, next, code })
        }
        _ => Ok(ended),
    }
}

/// The endpoints, with the addresses that they really have.
fn endpoints_of(settings: &Settings, bound: &Bound) -> Endpoints {
    let mut bound = bound.zmq.iter().cloned();
    let mut endpoints = settings.zmq.clone();
    for endpoint in endpoints.iter_mut().filter(|endpoint| endpoint.place.listen().is_some()) {
        endpoint.place = ZmqPlace::Listen(bound.next().expect("each that listens is bound"));
    }
    let ping_ms = settings.heartbeat_ms.clamp(limits::HEARTBEAT_MS_MIN, limits::HEARTBEAT_MS_MAX);
    Endpoints::new(&endpoints, settings.limits.frame_bytes_max, ping_ms)
}

fn shell_of(
    settings: &Settings,
    run: u64,
    bound: &Bound,
    clock: Clock,
    engine_handle: LocalEngine,
    ring: Option<RingWireSettings>,
    zmq: Endpoints,
) -> Result<BrokerThreads, ServeError> {
    let brokers = match settings.brokers.as_slice() {
        [] => bound.native.iter().map(|address| format!("turno://{address}")).collect(),
        brokers => brokers.to_vec(),
    };
    let config = Config {
        broker: settings.name.clone(),
        program: concat!("turno ", env!("CARGO_PKG_VERSION")).to_owned(),
        heartbeat_ms: settings.heartbeat_ms.clamp(limits::HEARTBEAT_MS_MIN, limits::HEARTBEAT_MS_MAX),
        brokers,
        ..Config::of(&settings.limits)
    };
    let routers = settings.routers.clamp(1, limits::ROUTERS_MAX);
    let limits = settings.limits.clone();
    let identity = Identity {
        broker: BrokerId::new(run),
        name: config.broker.clone(),
        program: config.program.clone(),
        frame_bytes_max: config.frame_bytes_max,
    };
    let credentials = GreetingCredentials::new(identity, settings.links.secret.clone());
    let links = LinkSettings { credentials, nonces: Nonces::System };
    BrokerThreads::start(clock, engine_handle, limits, config, links, ring, zmq, routers)
        .map_err(|source| ServeError::System { doing: "start the routers", source })
}

/// Where job workers find the foreman. Its usual address may be another broker's: then this one takes a free port.
fn listen_for_workers(settings: &Settings) -> Result<Vec<TcpListener>, ServeError> {
    let listen = |address: SocketAddr| match listen_on(address) {
        Err(ServeError::Listen { source, .. })
            if settings.foreman_if_taken == IfTaken::FreePort && source.kind() == io::ErrorKind::AddrInUse =>
        {
            listen_on(SocketAddr::new(address.ip(), 0))
        }
        result => result,
    };
    settings.foreman.iter().map(|address| listen(*address)).collect()
}

pub(super) fn listen_on(address: SocketAddr) -> Result<TcpListener, ServeError> {
    listener_on(address).map_err(|source| ServeError::Listen { address, source })
}

pub(super) fn listener_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Random bits from the system, by way of the standard library's own seeding of hash maps.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Waits for whatever ends the broker.
pub(super) enum Stop {
    Signals { terminate: Signal, interrupt: Signal, hangup: Signal },
    Told { told: oneshot::Receiver<()>, over: bool },
}

impl Stop {
    pub(super) fn new(until: EndCause) -> Result<Self, ServeError> {
        let caught = |kind| signal(kind).map_err(|source| ServeError::System { doing: "catch signals", source });
        Ok(match until {
            EndCause::Signal => Self::Signals {
                terminate: caught(SignalKind::terminate())?,
                interrupt: caught(SignalKind::interrupt())?,
                hangup: caught(SignalKind::hangup())?,
            },
            EndCause::Told(told) => Self::Told { told, over: false },
        })
    }

    /// Returns the number of the signal; 0 if it was none.
    pub(super) async fn wait(&mut self) -> i32 {
        match self {
            Self::Signals { terminate, interrupt, hangup } => {
                tokio::select! {
                    _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
                    _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
                    _ = hangup.recv() => SignalKind::hangup().as_raw_value(),
                }
            }
            Self::Told { over: true, .. } => std::future::pending().await,
            Self::Told { told, over } => {
                // A dropped sender means the same as a used one: the program that embeds the broker is gone.
                let _ = told.await;
                *over = true;
                0
            }
        }
    }
}
