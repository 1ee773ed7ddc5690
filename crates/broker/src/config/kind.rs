//! The kinds of configuration values, with their parsers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use turno_proto::model::{QueueName, limits, units};
use turno_proto::native::Secret;

use super::ring::{Next, is_host};
use super::value::{RawValue, Value};

/// The sort of a key's value. Ranges include both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Text that is not empty.
    Text,
    /// The name of a queue.
    Queue,
    /// A place in the file system.
    Path,
    /// Addresses to listen on; an empty list, or `none`: nowhere.
    Listen,
    /// One address to listen on.
    Address,
    /// Addresses of brokers, in order of preference.
    Urls,
    /// Names, in order of preference.
    Names,
    /// A secret, which is never shown.
    Secret,
    /// Bytes.
    Size {
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
    /// A number of things.
    Count {
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
    /// `true` or `false`.
    Switch,
    /// A number in a ring, or `auto`.
    Sid,
    /// A member of a ring.
    Member,
    /// A name or address of a machine.
    Host,
    /// A length of time.
    Duration {
        /// The shortest, in milliseconds.
        min_ms: u64,
        /// The longest, in milliseconds.
        max_ms: u64,
    },
    /// A length of time, or `none`.
    OptionalDuration,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Which log lines are wanted.
    LogFilter,
}

impl ValueKind {
    /// Reads a value; the error says what is expected.
    pub fn read(self, raw: &RawValue) -> Result<Value, String> {
        self.parse(raw).ok_or_else(|| self.expected())
    }

    fn parse(self, raw: &RawValue) -> Option<Value> {
        match (self, raw) {
            (Self::Listen | Self::Urls | Self::Names, raw) => self.parse_list(&items(raw)?),
            (Self::Size { .. }, RawValue::Integer(number)) => self.size(u64::try_from(*number).ok()?),
            (Self::Sid, RawValue::Integer(number)) => sid(u64::try_from(*number).ok()?),
            (Self::Switch, RawValue::Switch(on)) => Some(Value::Switch(*on)),
            (Self::Count { .. }, RawValue::Integer(number)) => self.count(u64::try_from(*number).ok()?),
            (_, RawValue::Text(text)) => self.parse_text(text),
            _ => None,
        }
    }

    fn parse_text(self, text: &str) -> Option<Value> {
        match self {
            Self::Text if text.trim().is_empty() => None,
            Self::Text => Some(Value::Text(text.to_owned())),
            Self::Queue => text.parse::<QueueName>().ok().map(|name| Value::Text(name.as_str().to_owned())),
            Self::Path if text.is_empty() => None,
            Self::Path => Some(Value::Path(PathBuf::from(text))),
            Self::Listen | Self::Urls | Self::Names => self.parse_list(&items(&RawValue::Text(text.to_owned()))?),
            Self::Address => parse_listen(text).map(|address| Value::Listen(vec![address])),
            Self::Switch => text.parse().ok().map(Value::Switch),
            Self::Sid if text == "auto" => Some(Value::Text(text.to_owned())),
            Self::Sid => sid(units::parse_count(text).ok()?),
            Self::Member => text.parse::<Next>().ok().map(|next| Value::Text(next.to_string())),
            Self::Host => is_host(text).then(|| Value::Text(text.to_owned())),
            Self::Secret => Secret::new(text.as_bytes()).map(Value::Secret),
            Self::Size { .. } => self.size(units::parse_size(text).ok()?),
            Self::Count { .. } => self.count(units::parse_count(text).ok()?),
            Self::Duration { min_ms, max_ms } => {
                let duration = units::parse_duration(text).ok()?;
                let range = Duration::from_millis(min_ms)..=Duration::from_millis(max_ms);
                range.contains(&duration).then_some(Value::Duration(duration))
            }
            Self::OptionalDuration if text == "none" => Some(Value::None),
            Self::OptionalDuration => {
                let duration = units::parse_duration(text).ok()?;
                (!duration.is_zero()).then_some(Value::Duration(duration))
            }
            Self::Choice(words) => words.contains(&text).then(|| Value::Text(text.to_owned())),
            Self::LogFilter => {
                let fits = !text.trim().is_empty() && EnvFilter::try_new(text).is_ok();
                fits.then(|| Value::Text(text.to_owned()))
            }
        }
    }

    fn parse_list(self, items: &[String]) -> Option<Value> {
        if self == Self::Names {
            return Some(Value::List(items.to_vec()));
        }
        if self == Self::Urls {
            return items.iter().all(|item| is_url(item)).then(|| Value::List(items.to_vec()));
        }
        if items == ["none"] {
            return Some(Value::Listen(Vec::new()));
        }
        let addresses: Option<Vec<SocketAddr>> = items.iter().map(|item| parse_listen(item)).collect();
        addresses.map(Value::Listen)
    }

    fn size(self, bytes: u64) -> Option<Value> {
        let Self::Size { min, max } = self else { return None };
        (min..=max).contains(&bytes).then_some(Value::Size(bytes))
    }

    fn count(self, number: u64) -> Option<Value> {
        let Self::Count { min, max } = self else { return None };
        (min..=max).contains(&number).then_some(Value::Count(number))
    }

    /// The form of a value, for the end of "expected …".
    pub fn expected(self) -> String {
        let duration = |ms| units::format_duration(Duration::from_millis(ms));
        match self {
            Self::Text => "text".to_owned(),
            Self::Queue => "the name of a queue, without white space".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Listen => "addresses like [\"127.0.0.1:7460\"], or [] for none".to_owned(),
            Self::Address => "an address like \"10.0.0.7:8003\"".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::Sid => format!("a number from 0 to {}, or \"auto\"", u16::MAX),
            Self::Member => Next::EXPECTED.to_owned(),
            Self::Host => "a name, an IPv4 address, or an IPv6 address in brackets".to_owned(),
            Self::Urls => "addresses like [\"turno://127.0.0.1:7460\", \"unix:/path\"]".to_owned(),
            Self::Names => "names like [\"rb-1\", \"rb-2\"]".to_owned(),
            Self::Secret => {
                let (min, max) = (limits::LINK_SECRET_BYTES_MIN, limits::LINK_SECRET_BYTES_MAX);
                format!("{min} to {max} random bytes, for example from `openssl rand -hex 32`")
            }
            Self::Size { min, max } => {
                format!("a size like \"64KiB\", from {} to {}", units::format_size(min), units::format_size(max))
            }
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Duration { min_ms, max_ms } => {
                format!("a duration like \"30s\", from {} to {}", duration(min_ms), duration(max_ms))
            }
            Self::OptionalDuration => "a duration like \"30s\", or \"none\"".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::LogFilter => {
                "a level (error, warn, info, debug, trace) or a comma-separated list of target=level".to_owned()
            }
        }
    }
}

fn sid(number: u64) -> Option<Value> {
    u16::try_from(number).ok().map(|number| Value::Count(number.into()))
}

/// Reads `127.0.0.1:7460`, `[::1]:7460` and `localhost:7460`; other names would make the meaning depend on
/// a name server.
fn parse_listen(text: &str) -> Option<SocketAddr> {
    if let Some(port) = text.strip_prefix("localhost:") {
        return Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?));
    }
    text.parse().ok()
}

/// Whether it may be a broker's address. The client library decides; here obvious mistakes are reported with
/// file and line.
fn is_url(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "{}\"'".contains(c);
    match text.strip_prefix("unix:") {
        Some(path) => !path.is_empty(),
        None => {
            let place = text.strip_prefix("turno://").unwrap_or(text);
            !place.is_empty() && !place.contains("://") && !place.chars().any(odd)
        }
    }
}

fn items(raw: &RawValue) -> Option<Vec<String>> {
    let list: Vec<String> = match raw {
        RawValue::Text(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
        RawValue::List(items) => {
            items.iter().flat_map(|item| item.split(',')).map(|item| item.trim().to_owned()).collect()
        }
        RawValue::Integer(_) | RawValue::Switch(_) | RawValue::Other(_) => return None,
    };
    (!list.iter().any(String::is_empty)).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> RawValue {
        RawValue::Text(text.to_owned())
    }

    #[test]
    fn each_kind_reads_its_own_and_nothing_else() {
        let size = ValueKind::Size { min: 4096, max: 1 << 30 };
        let count = ValueKind::Count { min: 1, max: 100 };
        let duration = ValueKind::Duration { min_ms: 250, max_ms: 60_000 };
        let word = ValueKind::Choice(&["lru", "fill"]);
        let table = [
            (size, text("64KiB"), Some(Value::Size(65_536))),
            (size, RawValue::Integer(4096), Some(Value::Size(4096))),
            (size, text("1KiB"), None),
            (size, RawValue::Integer(-1), None),
            (count, text("1_0"), Some(Value::Count(10))),
            (count, RawValue::Integer(101), None),
            (count, text("ten"), None),
            (duration, text("5s"), Some(Value::Duration(Duration::from_secs(5)))),
            (duration, text("100ms"), None),
            (duration, RawValue::Integer(5), None),
            (ValueKind::OptionalDuration, text("none"), Some(Value::None)),
            (ValueKind::OptionalDuration, text("2m"), Some(Value::Duration(Duration::from_secs(120)))),
            (ValueKind::OptionalDuration, text("0"), None),
            (word, text("fill"), Some(Value::Text("fill".to_owned()))),
            (word, text("random"), None),
            (
                ValueKind::LogFilter,
                text("info,turno::link=debug"),
                Some(Value::Text("info,turno::link=debug".to_owned())),
            ),
            (ValueKind::LogFilter, text("turno=loud"), None),
            (ValueKind::Text, text(" "), None),
            (ValueKind::Queue, text("orders.eu"), Some(Value::Text("orders.eu".to_owned()))),
            (ValueKind::Queue, text("two words"), None),
            (ValueKind::Names, text("rb-1, rb-2"), Some(Value::List(vec!["rb-1".to_owned(), "rb-2".to_owned()]))),
            (ValueKind::Names, text("rb-1,"), None),
            (ValueKind::Secret, text("sixteen bytes ok"), Secret::new(b"sixteen bytes ok").map(Value::Secret)),
            (ValueKind::Secret, text("too short"), None),
            (ValueKind::Secret, RawValue::Integer(1_234_567_890_123_456), None),
            (ValueKind::Text, RawValue::Other("a table"), None),
            (ValueKind::Text, RawValue::Switch(true), None),
            (ValueKind::Switch, RawValue::Switch(true), Some(Value::Switch(true))),
            (ValueKind::Switch, text("false"), Some(Value::Switch(false))),
            (ValueKind::Switch, text("yes"), None),
            (ValueKind::Sid, text("3"), Some(Value::Count(3))),
            (ValueKind::Sid, RawValue::Integer(65_535), Some(Value::Count(65_535))),
            (ValueKind::Sid, RawValue::Integer(65_536), None),
            (ValueKind::Sid, text("auto"), Some(Value::Text("auto".to_owned()))),
            (ValueKind::Sid, text("next"), None),
            (ValueKind::Member, text("3@rb-1"), Some(Value::Text("3@rb-1:8003".to_owned()))),
            (ValueKind::Member, text("rb-1"), None),
            (ValueKind::Host, text("rb-1"), Some(Value::Text("rb-1".to_owned()))),
            (ValueKind::Host, text("[fd00::1]"), Some(Value::Text("[fd00::1]".to_owned()))),
            (ValueKind::Host, text("rb-1:8003"), None),
            (ValueKind::Host, text("fd00::1"), None),
            (ValueKind::Address, text("0.0.0.0:8003"), Some(Value::Listen(vec!["0.0.0.0:8003".parse().unwrap()]))),
            (ValueKind::Address, text("127.0.0.1:1,127.0.0.1:2"), None),
        ];
        for (kind, raw, expected) in table {
            assert_eq!(kind.read(&raw).ok(), expected, "{kind:?} {raw}");
        }
    }

    #[test]
    fn addresses_of_brokers() {
        for good in ["turno://a:1", "a:1,b", "unix:/run/t.sock", "turno://[::1]:7460/"] {
            assert!(ValueKind::Urls.read(&text(good)).is_ok(), "{good}");
        }
        for bad in ["", "a:1,", "http://a", "unix:", "turno://", "a b"] {
            assert!(ValueKind::Urls.read(&text(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_to_listen_on() {
        let table = [
            ("127.0.0.1:7460", Some(1)),
            ("127.0.0.1:0, [::1]:7460", Some(2)),
            ("localhost:7460", Some(1)),
            ("0.0.0.0:7460", Some(1)),
            ("7460", None),
            ("example.org:7460", None),
            ("127.0.0.1:7460,", None),
            ("", None),
            ("none", Some(0)),
            ("none,127.0.0.1:7460", None),
        ];
        for (typed, count) in table {
            let list = match ValueKind::Listen.read(&text(typed)) {
                Ok(Value::Listen(list)) => Some(list.len()),
                _ => None,
            };
            assert_eq!(list, count, "{typed}");
        }
    }
}
