//! A broker inside another program, such as a test.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::ServeError;
use crate::run::{Bound, EndCause, Ended, serve};
use crate::settings::{RingConfig, Settings};

/// A broker on a thread of its own. Dropping it drains and ends it.
///
/// ```
/// use std::time::Duration;
/// use turno_broker::Broker;
///
/// let broker = Broker::builder().name("test").drain_timeout(Duration::from_secs(1)).start()?;
/// println!("connect to {}", broker.url());
/// broker.stop()?;
/// # Ok::<(), turno_broker::ServeError>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it ends the broker"]
pub struct Broker {
    bound: Bound,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<Ended, ServeError>>>,
}

/// A broker that is not started yet: on loopback, at a free port, with nothing on disk, unless it is told otherwise.
/// [`Settings`] has everything that can be set.
#[derive(Clone, Debug, Default)]
#[must_use = "a broker runs when it is started"]
pub struct BrokerBuilder {
    settings: Settings,
}

impl BrokerBuilder {
    /// A name for people.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Listen on this address for clients and workers; port 0 is a free one. The first call replaces loopback, each
    /// further one adds an address.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        if self.settings.listen == Settings::default().listen {
            self.settings.listen.clear();
        }
        self.settings.listen.push(address);
        self
    }

    /// Keep messages and jobs in this directory, so that they outlive the broker. It also gets a Unix socket.
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.settings.data = Some(directory.into());
        self
    }

    /// How long running work may take to finish when the broker stops; 30 s if not set.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.settings.drain_timeout = timeout;
        self
    }

    /// Threads for connections; 1 if not set, which is the engine's own thread.
    pub fn routers(mut self, routers: usize) -> Self {
        self.settings.routers = routers;
        self
    }

    /// A place in a ring of brokers.
    pub fn ring(mut self, ring: RingConfig) -> Self {
        self.settings.ring = Some(ring);
        self
    }

    /// Starts the broker and returns once it listens.
    pub fn start(self) -> Result<Broker, ServeError> {
        Broker::start(self.settings)
    }
}

impl Broker {
    /// A broker to start.
    pub fn builder() -> BrokerBuilder {
        BrokerBuilder::default()
    }

    /// Starts a broker with these settings and returns once it listens.
    pub fn start(settings: Settings) -> Result<Self, ServeError> {
        let (stop, told) = oneshot::channel();
        let (tell, bound) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("turno-dispatcher".to_owned())
            .spawn(move || {
                serve(settings, EndCause::Told(told), |_, bound| {
                    // Nobody waits only if the starter is gone, and then the broker is about to end too.
                    let _ = tell.send(bound.clone());
                })
            })
            .map_err(|source| ServeError::System { doing: "start a thread", source })?;
        match bound.recv() {
            Ok(bound) => Ok(Self { bound, stop: Some(stop), thread: Some(thread) }),
            Err(_) => Err(match join(thread) {
                Err(error) => error,
                Ok(_) => ServeError::System {
                    doing: "start the broker",
                    source: std::io::Error::other("it ended before it listened"),
                },
            }),
        }
    }

    /// Starts a broker on loopback, at a free port, with nothing on disk: for tests.
    pub fn start_loopback() -> Result<Self, ServeError> {
        Self::start(Settings::default())
    }

    /// The addresses that it listens on, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.bound.native
    }

    /// The address that it listens on for other members of its ring.
    pub fn ring(&self) -> Option<SocketAddr> {
        self.bound.ring
    }

    /// The address for clients and workers: `turno://HOST:PORT`, or `unix:/PATH` if it listens on no port.
    pub fn url(&self) -> String {
        match (self.bound.native.first(), &self.bound.unix) {
            (Some(address), _) => format!("turno://{address}"),
            (None, Some(path)) => format!("unix:{}", path.display()),
            (None, None) => String::new(),
        }
    }

    /// Drains the broker and waits for its end. [`ServeError::Broken`] if it has panicked.
    pub fn stop(mut self) -> Result<Ended, ServeError> {
        drop(self.stop.take());
        self.ended()
    }

    /// Waits until the broker ends by itself: because its ring ends, or refuses it, or because it fails.
    /// [`ServeError::Broken`] if it has panicked.
    pub fn wait(mut self) -> Result<Ended, ServeError> {
        self.ended()
    }

    fn ended(&mut self) -> Result<Ended, ServeError> {
        self.thread.take().map_or_else(|| Ok(Ended::default()), join)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.stop.take());
        // Without `stop` nobody asked how it ended; the log says why a broker failed.
        let _ = self.ended();
    }
}

/// Waits for the broker's thread. A panic is its end as much as an error.
fn join(thread: JoinHandle<Result<Ended, ServeError>>) -> Result<Ended, ServeError> {
    thread.join().unwrap_or(Err(ServeError::Broken))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(life: impl FnOnce() -> Result<Ended, ServeError> + Send + 'static) -> Broker {
        let (stop, _) = oneshot::channel();
        Broker { bound: Bound::default(), stop: Some(stop), thread: Some(std::thread::spawn(life)) }
    }

    /// Neither call says that all is well with a broker whose thread has panicked.
    #[test]
    fn a_panic_of_the_broker_is_an_error() {
        for end in [Broker::stop, Broker::wait] {
            let broken = end(broker(|| panic!("a panic of this test")));
            assert!(matches!(broken, Err(ServeError::Broken)), "{broken:?}");
            let ended = Ended { lost: 3, ..Ended::default() };
            assert_eq!(end(broker(move || Ok(ended))).expect("a good end"), ended);
        }
    }
}
