//! What a client or worker needs to know before it connects.

use std::path::PathBuf;
use std::time::Duration;

use turno_proto::model::limits;

use crate::core::Settings;
use crate::{Address, Error, cache};

/// Brokers and how to talk to them.
#[derive(Clone, Debug)]
pub struct Options {
    addresses: Vec<Address>,
    name: String,
    program: String,
    heartbeat: Option<Duration>,
    connect_timeout: Duration,
    cache: Option<PathBuf>,
    keep_trying: bool,
    stay: bool,
    come_back: bool,
}

impl Options {
    /// Brokers in order: the first is preferred, the others stand in for it.
    pub fn new(addresses: impl IntoIterator<Item = Address>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
            name: String::new(),
            program: concat!("turno-client ", env!("CARGO_PKG_VERSION")).to_owned(),
            heartbeat: None,
            connect_timeout: Duration::from_millis(limits::GREETING_MS_MAX),
            cache: None,
            keep_trying: false,
            stay: false,
            come_back: true,
        }
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
    pub const fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// Time for connecting to one broker, greeting included; 5 s if not set.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// A file in which to keep the brokers that the broker told of, and to find more of them next time.
    #[must_use]
    pub fn cache(mut self, file: impl Into<PathBuf>) -> Self {
        self.cache = Some(file.into());
        self
    }

    /// At the start, go round the brokers until one answers instead of failing after one round.
    #[must_use]
    pub const fn keep_trying(mut self, keep_trying: bool) -> Self {
        self.keep_trying = keep_trying;
        self
    }

    /// Stay with a broker that closes or is drained until it ends the connection, instead of moving to the next. For
    /// programs that only ask about that broker.
    #[must_use]
    pub const fn stay(mut self, stay: bool) -> Self {
        self.stay = stay;
        self
    }

    /// Whether a worker that was dropped from a queue, because deliveries expired at it, asks for that queue again after
    /// a pause; it does if not set. Without it the worker gets nothing more of that queue on this connection and goes on
    /// with its others: for programs that would rather end, or be looked at, than be given a probe. [`WorkerEvent`]
    /// tells of the drop either way.
    ///
    /// [`WorkerEvent`]: crate::WorkerEvent::Dropped
    #[must_use]
    pub const fn come_back(mut self, come_back: bool) -> Self {
        self.come_back = come_back;
        self
    }

    /// The brokers given, in order.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    pub(crate) const fn cache_file(&self) -> Option<&PathBuf> {
        self.cache.as_ref()
    }

    /// What the core needs; the brokers of the cache file stand behind the given ones (S1.4).
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        if self.addresses.is_empty() {
            return Err(Error::NoBroker);
        }
        let cached = self.cache.as_deref().map(cache::load).unwrap_or_default();
        Ok(Settings {
            brokers: self.addresses.iter().cloned().chain(cached).collect(),
            name: self.name.clone(),
            program: self.program.clone(),
            heartbeat_ms: self.heartbeat.map_or(0, crate::message::millis),
            connect_timeout_ms: u64::from(crate::message::millis(self.connect_timeout)),
            keep_trying: self.keep_trying,
            stay: self.stay,
            come_back: self.come_back,
        })
    }
}

impl From<Address> for Options {
    fn from(address: Address) -> Self {
        Self::new([address])
    }
}

impl TryFrom<&str> for Options {
    type Error = Error;

    /// Reads one address, or several parted by commas.
    fn try_from(text: &str) -> Result<Self, Error> {
        let addresses: Result<Vec<Address>, Error> = text.split(',').map(str::parse).collect();
        addresses.map(Self::new)
    }
}

impl TryFrom<&String> for Options {
    type Error = Error;

    fn try_from(text: &String) -> Result<Self, Error> {
        Self::try_from(text.as_str())
    }
}

impl TryFrom<String> for Options {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::try_from(text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S1.3: without an address there is nothing to connect to.
    #[test]
    fn at_least_one_broker_is_needed() {
        assert_eq!(Options::new([]).settings().err(), Some(Error::NoBroker));
        assert_eq!(Options::try_from("").err(), Some(Error::BadAddress(String::new())));
        let two = Options::try_from("turno://a:1, b").expect("two addresses");
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
