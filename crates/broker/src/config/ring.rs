//! Ring settings: sid, the member to join at, and the defaults that follow from the sid.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use turno_proto::model::limits::RING_ADDRESS_BYTES_MAX;
use turno_proto::model::ring::Sid;
use turno_proto::native::Secret;

use super::value::Value;
use super::{Config, Environment, Origin};
use crate::settings::{IfUnreachable, RingLinks, RingOrder, RingTiming};

/// Added to a sid: where members listen for each other.
const RING_BASE: u16 = 8_000;
/// Added to a sid: the native listener.
const NATIVE_BASE: u16 = 8_100;
/// Added to a sid: the listener for job workers.
const FOREMAN_BASE: u16 = 8_400;
/// Sids from here on have no usual ports: those of one kind would run into those of the next.
const SIDS_WITH_PORTS: u16 = 100;

/// The wanted sid of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidWanted {
    /// That number.
    Number(Sid),
    /// One that is free: the member to join at says which.
    Auto,
}

/// A member of a ring and where it is: `SID@HOST` or `SID@HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// The sid of the member.
    pub sid: Sid,
    /// HOST:PORT where it listens for other members.
    pub address: String,
}

impl Next {
    /// Its form, for the end of "expected …".
    pub const EXPECTED: &'static str = "a member like 3@10.0.0.7 or 300@10.0.0.7:9000; a sid above 99 requires a port";
}

impl FromStr for Next {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).filter(|next| next.address.len() <= RING_ADDRESS_BYTES_MAX).ok_or(Self::EXPECTED)
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.sid, self.address)
    }
}

fn parse(text: &str) -> Option<Next> {
    let (sid, place) = text.split_once('@')?;
    let sid: Sid = sid.parse().ok()?;
    // After the host comes nothing, or a port. The colons of an IPv6 address stand in brackets.
    let host_end = match place.strip_prefix('[') {
        Some(inside) => inside.find(']')? + 2,
        None => place.find(':').unwrap_or(place.len()),
    };
    let (host, port) = place.split_at_checked(host_end)?;
    if !is_host(host) {
        return None;
    }
    let port: u16 = match port {
        "" => usual_port(sid)?,
        port => port.strip_prefix(':')?.parse().ok().filter(|port| *port > 0)?,
    };
    Some(Next { sid, address: format!("{host}:{port}") })
}

/// A name, an IPv4 address, or an IPv6 address in brackets.
pub(super) fn is_host(text: &str) -> bool {
    match text.strip_prefix('[') {
        Some(inside) => inside.strip_suffix(']').is_some_and(|inside| inside.parse::<std::net::Ipv6Addr>().is_ok()),
        None => !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_')),
    }
}

/// Where a member with that sid listens for others, unless it was told otherwise.
pub fn usual_port(sid: Sid) -> Option<u16> {
    (sid.get() < SIDS_WITH_PORTS).then(|| RING_BASE + sid.get())
}

/// The keys about the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingKeys {
    /// `ring.sid`; `None`: the broker is in no ring.
    pub sid: Option<SidWanted>,
    /// `ring.next`.
    pub next: Option<Next>,
    /// `ring.wait`.
    pub if_unreachable: IfUnreachable,
    /// `ring.port`.
    pub port: Option<u16>,
    /// `ring.listen`.
    pub listen: Option<SocketAddr>,
    /// `ring.advertise`.
    pub advertise: Option<String>,
    /// `ring.secret`.
    pub secret: Option<Secret>,
    /// `ring.secret-file`.
    pub secret_file: Option<PathBuf>,
    /// `ring.sorted`.
    pub order: RingOrder,
    /// `ring.fast`.
    pub timing: RingTiming,
    /// `ring.links`.
    pub links: RingLinks,
}

impl RingKeys {
    pub(super) fn of(config: &Config) -> Self {
        let text = |name: &str| match config.value(name) {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let is_on = |name: &str| matches!(config.value(name), Value::Switch(true));
        Self {
            sid: wanted(config),
            next: text("ring.next").and_then(|next| next.parse().ok()),
            if_unreachable: if is_on("ring.wait") { IfUnreachable::Retry } else { IfUnreachable::Fail },
            port: match config.value("ring.port") {
                Value::Count(port) => u16::try_from(*port).ok(),
                _ => None,
            },
            listen: match config.value("ring.listen") {
                Value::Listen(addresses) => addresses.first().copied(),
                _ => None,
            },
            advertise: text("ring.advertise"),
            secret: match config.value("ring.secret") {
                Value::Secret(secret) => Some(secret.clone()),
                _ => None,
            },
            secret_file: match config.value("ring.secret-file") {
                Value::Path(path) => Some(path.clone()),
                _ => None,
            },
            order: if is_on("ring.sorted") { RingOrder::BySid } else { RingOrder::ByJoining },
            timing: if is_on("ring.fast") { RingTiming::Fast } else { RingTiming::Usual },
            links: if is_on("ring.links") { RingLinks::Neighbours } else { RingLinks::None },
        }
    }
}

fn wanted(config: &Config) -> Option<SidWanted> {
    match config.value("ring.sid") {
        Value::Count(sid) => u16::try_from(*sid).ok().map(|sid| SidWanted::Number(Sid::new(sid))),
        Value::Text(_) => Some(SidWanted::Auto),
        _ => None,
    }
}

impl Config {
    /// Several brokers of one ring may be on one machine, so what nobody set follows from the sid: a name, a directory and
    /// ports of its own (S3.47).
    pub(super) fn follow_sid(&mut self, world: &Environment) {
        let Some(SidWanted::Number(sid)) = wanted(self) else { return };
        let data = world.data_dir.as_ref().map(|dir| Value::Path(dir.join(format!("turno-{sid}"))));
        self.put_for_sid("name", Some(Value::Text(format!("{}-{sid}", world.host))), sid);
        self.put_for_sid("data", data, sid);
        let port = |base: u16| (sid.get() < SIDS_WITH_PORTS).then(|| base + sid.get());
        let listen = |base| port(base).map(|port| Value::Listen(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]));
        self.put_for_sid("listen.native", listen(NATIVE_BASE), sid);
        self.put_for_sid("listen.foreman", listen(FOREMAN_BASE), sid);
        if self.is_default("ring.listen") {
            self.put_for_sid("ring.port", usual_port(sid).map(|port| Value::Count(port.into())), sid);
        }
    }

    fn put_for_sid(&mut self, name: &str, value: Option<Value>, sid: Sid) {
        let setting = self.settings.iter_mut().find(|setting| setting.key.name == name);
        if let (Some(setting), Some(value)) = (setting, value)
            && setting.origin == Origin::Default
        {
            (setting.value, setting.origin) = (value, Origin::Sid(sid.get()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S3.8 and S3.48: small sids have ports, others must be told.
    #[test]
    fn members_as_typed() {
        let table = [
            ("3@10.0.0.7", Some("3@10.0.0.7:8003")),
            ("0@rb-1", Some("0@rb-1:8000")),
            ("99@localhost", Some("99@localhost:8099")),
            ("100@localhost", None),
            ("100@localhost:9000", Some("100@localhost:9000")),
            ("65535@[::1]:1", Some("65535@[::1]:1")),
            ("3@[::1]", Some("3@[::1]:8003")),
            ("65536@localhost:1", None),
            ("-1@localhost", None),
            ("3", None),
            ("3@", None),
            ("@localhost", None),
            ("3@localhost:", None),
            ("3@localhost:0", None),
            ("3@localhost:65536", None),
            ("3@::1", None),
            ("3@[::1", None),
            ("3@[::1]x", None),
            ("3@[]:1", None),
            ("3@a b", None),
            ("3@turno://localhost", None),
            ("3@4@localhost", None),
        ];
        for (typed, expected) in table {
            let read = typed.parse::<Next>().map(|next| next.to_string());
            assert_eq!(read.as_deref().ok(), expected, "{typed}");
        }
        assert!(format!("3@{}", "a".repeat(256)).parse::<Next>().is_ok());
        assert_eq!(format!("3@{}", "a".repeat(257)).parse::<Next>(), Err(Next::EXPECTED));
    }
}
