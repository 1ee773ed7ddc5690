//! Addresses of brokers.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The port of the native listener when an address names none.
pub const PORT: u16 = 7460;

/// Where a broker listens. Written `turno://host:port`, `host:port` or `unix:/path`; without a port it is 7460.
///
/// ```
/// use turno_client::Address;
///
/// let address: Address = "broker.example".parse()?;
/// assert_eq!(address.to_string(), "turno://broker.example:7460");
/// # Ok::<(), turno_client::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Address {
    /// `host:port`, the host as a name, an IPv4 address or an IPv6 address in brackets.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

/// The text is not an address of a broker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address of a broker: write turno://host:port, host:port or unix:/path")]
pub struct AddressError {
    text: String,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let bad = || AddressError { text: text.to_owned() };
        let rest = text.trim();
        if let Some(path) = rest.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(bad()) } else { Ok(Self::Unix(path.into())) };
        }
        let rest = rest.strip_prefix("turno://").unwrap_or(rest);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() || rest.chars().any(|c| c.is_whitespace() || c.is_control() || "/@?#,".contains(c)) {
            return Err(bad());
        }
        let (host, port) = split_port(rest).ok_or_else(bad)?;
        let port = match port {
            Some(digits) => digits.parse::<u16>().map_err(|_| bad())?,
            None => PORT,
        };
        Ok(Self::Tcp(format!("{host}:{port}")))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address.to_string())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(place) => write!(f, "turno://{place}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Host and port, if one is named. A bare IPv6 address is ambiguous, so its brackets are a must.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if text.starts_with('[') {
        let end = text.find(']')? + 1;
        let (host, rest) = text.split_at_checked(end)?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        Some((host, port)) => (!host.is_empty() && !port.contains(':')).then_some((host, Some(port))),
        None => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_typed() {
        let tcp = |place: &str| Some(Address::Tcp(place.to_owned()));
        let table: &[(&str, Option<Address>)] = &[
            ("turno://broker:7000", tcp("broker:7000")),
            ("turno://broker:7000/", tcp("broker:7000")),
            ("turno://broker", tcp("broker:7460")),
            ("10.0.0.7:1", tcp("10.0.0.7:1")),
            (" localhost ", tcp("localhost:7460")),
            ("[::1]:7000", tcp("[::1]:7000")),
            ("[::1]", tcp("[::1]:7460")),
            ("unix:/run/turno.sock", Some(Address::Unix("/run/turno.sock".into()))),
            ("unix:///run/turno.sock", Some(Address::Unix("/run/turno.sock".into()))),
            ("unix:", None),
            ("", None),
            ("turno://", None),
            (":7460", None),
            ("::1", None),
            ("[::1", None),
            ("[::1]x", None),
            ("host:", None),
            ("host:99999", None),
            ("host:port", None),
            ("http://host:80", None),
            ("a b", None),
        ];
        for (text, expected) in table {
            let parsed = text.parse::<Address>().ok();
            assert_eq!(parsed, *expected, "{text:?}");
            if let Some(address) = parsed {
                assert_eq!(address.to_string().parse(), Ok(address), "{text:?}");
            }
        }
    }
}
