//! The brokers, and how to connect to them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use turno_proto::model::limits;

use crate::core::Settings;
use crate::{Address, AddressError, Error, cache};

/// The brokers, and how to connect to them: the same for a [`Client`](crate::Client) and a [`Worker`](crate::Worker).
///
/// Text, an [`Address`] or a list of addresses converts into options, so `Options` is needed only to change a default. An
/// invalid address is reported when the connection is made.
///
/// ```
/// use std::time::Duration;
/// use turno_client::Options;
///
/// let options = Options::new("turno://broker-1, turno://broker-2")
///     .name("billing")
///     .connect_timeout(Duration::from_secs(2))
///     .retry_initial_connect();
/// assert_eq!(options.addresses().len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    addresses: Result<Vec<Address>, AddressError>,
    name: String,
    program: String,
    heartbeat: Option<Duration>,
    connect_timeout: Duration,
    cache: Option<PathBuf>,
    keep_trying: bool,
    stay: bool,
    /// Of a worker: ask again for a queue that the broker dropped it from.
    pub(crate) rejoin: bool,
}

impl Options {
    /// Brokers in order: the first is preferred, the others stand in for it.
    pub fn new(brokers: impl Into<Self>) -> Self {
        brokers.into()
    }

    /// A name for people, shown by the broker.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The program and its version, for people.
    #[must_use]
    pub fn program(mut self, program: impl Into<String>) -> Self {
        self.program = program.into();
        self
    }

    /// The heartbeat to ask for, 250 ms to 60 s; the broker's own if not set.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// Time for connecting to one broker, greeting included; 5 s if not set.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// A file that remembers the other brokers which a broker announced, so that they are tried too at the next start.
    #[must_use]
    pub fn cache(mut self, file: impl Into<PathBuf>) -> Self {
        self.cache = Some(file.into());
        self
    }

    /// At the start, try the brokers in turn until one answers, instead of failing after one round.
    #[must_use]
    pub fn retry_initial_connect(mut self) -> Self {
        self.keep_trying = true;
        self
    }

    /// Stay with a broker that shuts down or is drained until it closes the connection, instead of moving to the next
    /// one. For programs that ask about that broker.
    #[must_use]
    pub fn stay_while_draining(mut self) -> Self {
        self.stay = true;
        self
    }

    /// The brokers, in order; none if an address is invalid.
    pub fn addresses(&self) -> &[Address] {
        self.addresses.as_deref().unwrap_or_default()
    }

    fn of(addresses: Result<Vec<Address>, AddressError>) -> Self {
        Self {
            addresses,
            name: String::new(),
            program: concat!("turno-client ", env!("CARGO_PKG_VERSION")).to_owned(),
            heartbeat: None,
            connect_timeout: Duration::from_millis(limits::GREETING_MS_MAX),
            cache: None,
            keep_trying: false,
            stay: false,
            rejoin: true,
        }
    }

    pub(crate) const fn cache_file(&self) -> Option<&PathBuf> {
        self.cache.as_ref()
    }

    /// The settings of the core; the brokers of the cache file stand behind the given ones (S1.4).
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        let addresses = self.addresses.clone()?;
        if addresses.is_empty() {
            return Err(Error::no_broker());
        }
        let cached = self.cache.as_deref().map(cache::load).unwrap_or_default();
        Ok(Settings {
            brokers: addresses.into_iter().chain(cached).collect(),
            name: self.name.clone(),
            program: self.program.clone(),
            heartbeat_ms: self.heartbeat.map_or(0, crate::message::millis),
            connect_timeout_ms: u64::from(crate::message::millis(self.connect_timeout)),
            keep_trying: self.keep_trying,
            stay: self.stay,
            come_back: self.rejoin,
        })
    }
}

impl From<Address> for Options {
    fn from(address: Address) -> Self {
        Self::of(Ok(vec![address]))
    }
}

impl From<SocketAddr> for Options {
    fn from(address: SocketAddr) -> Self {
        Self::from(Address::from(address))
    }
}

impl From<Vec<Address>> for Options {
    fn from(addresses: Vec<Address>) -> Self {
        Self::of(Ok(addresses))
    }
}

impl From<&[Address]> for Options {
    fn from(addresses: &[Address]) -> Self {
        Self::of(Ok(addresses.to_vec()))
    }
}

impl<const N: usize> From<[Address; N]> for Options {
    fn from(addresses: [Address; N]) -> Self {
        Self::of(Ok(addresses.into()))
    }
}

/// One address, or several separated by commas.
impl From<&str> for Options {
    fn from(text: &str) -> Self {
        Self::of(text.split(',').map(str::parse).collect())
    }
}

impl From<&String> for Options {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Options {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Self> for Options {
    fn from(options: &Self) -> Self {
        options.clone()
    }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::Code;

    use super::*;

    /// Proves S1.3: without an address there is nothing to connect to.
    #[test]
    fn at_least_one_broker_is_needed() {
        assert_eq!(Options::new([]).settings().err(), Some(Error::no_broker()));
        let error = Options::new("").settings().err();
        assert_eq!(error.map(|error| error.code()), Some(Code::BadUsage));
        let two = Options::new("turno://a:1, b");
        assert_eq!(two.addresses(), [Address::Tcp("a:1".to_owned()), Address::Tcp("b:7460".to_owned())]);
    }

    /// Proves S1.4: the preferred broker first, the rest of the group after it.
    #[test]
    fn cached_brokers_stand_behind_the_given_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("brokers");
        let group = [Address::Tcp("b:1".to_owned()), Address::Tcp("c:1".to_owned())];
        cache::store(&file, &group).expect("written");
        let options = Options::from(Address::Tcp("a:1".to_owned())).cache(&file);
        let settings = options.settings().expect("an address is given");
        let list: Vec<String> = settings.brokers.iter().map(ToString::to_string).collect();
        assert_eq!(list, ["turno://a:1", "turno://b:1", "turno://c:1"]);
    }
}
