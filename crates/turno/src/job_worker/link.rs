//! The way to the foreman: found, dialled, and fixed for ever. Tasks go on while there is none.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use turno_client::{Address, AdminAnswer, AdminCall, Client, ConnectAttempt, Error, ErrorKind, Options};
use turno_proto::model::Code;
use turno_proto::model::limits::{JOB_WORKER_DIAL_MS, JOB_WORKER_REDIAL_MS_MAX, JOB_WORKER_REDIAL_MS_MIN};

use turno_broker::keepalive::keep_alive;

/// How this program names itself to brokers.
const PROGRAM: &str = concat!("turno ", env!("CARGO_PKG_VERSION"));
/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// Where the foreman is.
#[derive(Clone, Debug)]
pub(crate) enum Finder {
    /// There.
    At(String),
    /// These brokers know.
    Ask(Options),
}

/// Where the foreman was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForemanPlace {
    pub(crate) foreman: String,
    /// The broker that told, if one was asked.
    pub(crate) broker: Option<Address>,
}

/// Failures to connect to the foreman.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectFailure {
    #[error(transparent)]
    Broker(#[from] Error),
    #[error("the broker at {0} has no job worker listener")]
    NoListener(Address),
    #[error("cannot reach the job worker listener at {place}: {why}")]
    Unreachable { place: String, why: String },
}

impl Finder {
    /// Finds the foreman and connects to it.
    async fn dial(self) -> Result<(TcpStream, ForemanPlace), ConnectFailure> {
        let place = match self {
            Self::At(foreman) => ForemanPlace { foreman, broker: None },
            Self::Ask(options) => ask(&options).await?,
        };
        let unreachable = |why: String| ConnectFailure::Unreachable { place: place.foreman.clone(), why };
        let dialled = timeout(Duration::from_millis(JOB_WORKER_DIAL_MS), TcpStream::connect(&place.foreman)).await;
        let stream = dialled
            .map_err(|_| unreachable("it does not answer".to_owned()))?
            .and_then(|stream| stream.set_nodelay(true).and_then(|()| keep_alive(&stream)).map(|()| stream))
            .map_err(|error| unreachable(error.to_string()))?;
        Ok((stream, place))
    }
}

/// Asks the brokers in turn where their foreman is; the first that answers counts.
pub(crate) async fn ask(options: &Options) -> Result<ForemanPlace, ConnectFailure> {
    let mut tried = Vec::new();
    for address in options.addresses() {
        let asked = timeout(Duration::from_millis(JOB_WORKER_DIAL_MS), async {
            let client =
                Client::connect(Options::new([address.clone()]).program(PROGRAM).stay_while_draining()).await?;
            client.admin_call(AdminCall::Status).await
        });
        match asked.await.unwrap_or_else(|_| Err(Error::from_code(Code::TimedOut, ""))) {
            Ok(AdminAnswer::Status { broker }) => {
                let bound = broker.foreman.as_deref().and_then(|foreman| foreman.parse().ok());
                let foreman = bound.map(|bound| seen_from(address, bound));
                let foreman = foreman.ok_or_else(|| ConnectFailure::NoListener(address.clone()))?;
                return Ok(ForemanPlace { foreman, broker: Some(address.clone()) });
            }
            Ok(_) => return Err(ConnectFailure::NoListener(address.clone())),
            Err(error) if error.kind() == ErrorKind::CannotConnect => tried.extend_from_slice(error.attempts()),
            Err(error) => tried.push(ConnectAttempt::new(address.clone(), error.to_string())),
        }
    }
    Err(Error::cannot_connect(tried).into())
}

/// A listener at an address of the broker's own host is reached at the host of the broker's address.
fn seen_from(broker: &Address, bound: std::net::SocketAddr) -> String {
    let is_own = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    match broker {
        Address::Tcp(place) if is_own(bound.ip()) => {
            let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
            format!("{host}:{}", bound.port())
        }
        Address::Unix(_) if bound.ip().is_unspecified() => format!("127.0.0.1:{}", bound.port()),
        _ => bound.to_string(),
    }
}

type Dial = Pin<Box<dyn Future<Output = Result<(TcpStream, ForemanPlace), ConnectFailure>> + Send>>;

enum ForemanLinkState {
    Rests { until: Instant },
    Dials(Dial),
    Open(TcpStream),
}

/// An event of the link.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// There is a connection.
    Open { place: ForemanPlace },
    /// Bytes came; they are in [`Link::bytes`].
    Bytes,
    /// The connection is lost.
    Lost { reason: String },
    /// There is no way now; it is tried again.
    NoWay(ConnectFailure),
}

/// The link.
pub(crate) struct Link {
    finder: Finder,
    state: ForemanLinkState,
    /// The next rest.
    rest: Duration,
    bytes: Vec<u8>,
    out: Vec<u8>,
}

impl Link {
    /// Connects for the first time.
    pub(crate) async fn open(finder: Finder) -> Result<(Self, ForemanPlace), ConnectFailure> {
        let (stream, place) = finder.clone().dial().await?;
        let rest = Duration::from_millis(JOB_WORKER_REDIAL_MS_MIN);
        Ok((Self { finder, state: ForemanLinkState::Open(stream), rest, bytes: Vec::new(), out: Vec::new() }, place))
    }

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.state, ForemanLinkState::Open(_))
    }

    /// Received bytes that were not used.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn used(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }

    /// The bytes to write, in order.
    pub(crate) const fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// The foreman is content: the next time it is tried again soon.
    pub(crate) const fn greeted(&mut self) {
        self.rest = Duration::from_millis(JOB_WORKER_REDIAL_MS_MIN);
    }

    /// Closes the connection; the next is dialled after a rest.
    pub(crate) fn close(&mut self) {
        self.bytes = Vec::new();
        self.out.clear();
        let half = self.rest / 2;
        let until = Instant::now() + half + half.mul_f64(chance());
        self.state = ForemanLinkState::Rests { until };
        self.rest = (self.rest * 2).min(Duration::from_millis(JOB_WORKER_REDIAL_MS_MAX));
    }

    /// Writes what there is; may be dropped at any time. `Ok` when all is written.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while let ForemanLinkState::Open(stream) = &self.state
            && !self.out.is_empty()
        {
            stream.writable().await?;
            let wrote = write(stream, &mut self.out)?;
            if wrote == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Goes on: dials, reads and writes. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> LinkEvent {
        loop {
            match &mut self.state {
                ForemanLinkState::Rests { until } => {
                    sleep_until(*until).await;
                    self.state = ForemanLinkState::Dials(Box::pin(self.finder.clone().dial()));
                }
                ForemanLinkState::Dials(dial) => {
                    return match dial.as_mut().await {
                        Ok((stream, place)) => {
                            self.state = ForemanLinkState::Open(stream);
                            LinkEvent::Open { place }
                        }
                        Err(error) => {
                            self.close();
                            LinkEvent::NoWay(error)
                        }
                    };
                }
                ForemanLinkState::Open(stream) => match turn(stream, &mut self.bytes, &mut self.out).await {
                    Ok(true) => return LinkEvent::Bytes,
                    Ok(false) => {}
                    Err(error) => {
                        self.close();
                        return LinkEvent::Lost { reason: error.to_string() };
                    }
                },
            }
        }
    }
}

/// Writes what can be written, and reads what is there. True if something came.
async fn turn(stream: &TcpStream, bytes: &mut Vec<u8>, out: &mut Vec<u8>) -> io::Result<bool> {
    let interest = if out.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
    let ready = stream.ready(interest).await?;
    if ready.is_writable() {
        write(stream, out)?;
    }
    if !ready.is_readable() {
        return Ok(false);
    }
    bytes.reserve(READ_BYTES);
    match stream.try_read_buf(bytes) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the broker closed it")),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes once what can be written without waiting.
fn write(stream: &TcpStream, out: &mut Vec<u8>) -> io::Result<usize> {
    if out.is_empty() {
        return Ok(0);
    }
    match stream.try_write(out) {
        Ok(count) => {
            out.drain(..count);
            Ok(count)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error),
    }
}

/// Between 0 and 1, so that workers that lost their broker together do not come back together.
fn chance() -> f64 {
    let bits = u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(u32::MAX);
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_foreman_is_where_its_broker_is() {
        let table = [
            ("turno://10.0.0.7:7460", "127.0.0.1:5429", "10.0.0.7:5429"),
            ("turno://build.example:7460", "0.0.0.0:9", "build.example:9"),
            ("turno://10.0.0.7:7460", "10.0.0.8:5429", "10.0.0.8:5429"),
            ("turno://[::1]:7460", "[::]:9", "[::1]:9"),
            ("turno://127.0.0.1:1", "127.0.0.1:5429", "127.0.0.1:5429"),
            ("unix:/run/t.sock", "127.0.0.1:5429", "127.0.0.1:5429"),
            ("unix:/run/t.sock", "0.0.0.0:5429", "127.0.0.1:5429"),
        ];
        for (broker, bound, place) in table {
            assert_eq!(seen_from(&broker.parse().unwrap(), bound.parse().unwrap()), place, "{broker} {bound}");
        }
    }

    #[test]
    fn rests_differ_and_stay_between_none_and_all() {
        let some: Vec<f64> = (0..100).map(|_| chance()).collect();
        assert!(some.iter().all(|chance| (0.0..=1.0).contains(chance)));
        assert!(some.iter().any(|chance| (chance - some[0]).abs() > 0.01));
    }
}
