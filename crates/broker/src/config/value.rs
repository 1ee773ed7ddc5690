//! Configuration values: raw and checked.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use turno_proto::model::units;
use turno_proto::native::Secret;

/// A raw value of a file, a variable or a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawValue {
    /// Text. Where a list is wanted, its items are separated by commas.
    Text(String),
    /// A whole number; only files have them.
    Integer(i64),
    /// Whether; files have them, and flags without a value.
    Switch(bool),
    /// A list of texts; files and repeated flags have them.
    List(Vec<String>),
    /// Something no key takes, described.
    Other(&'static str),
}

impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Switch(on) => write!(f, "{on}"),
            Self::List(items) => write!(f, "{items:?}"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing is set.
    None,
    /// Text.
    Text(String),
    /// A place in the file system.
    Path(PathBuf),
    /// Texts in order.
    List(Vec<String>),
    /// Addresses to listen on.
    Listen(Vec<SocketAddr>),
    /// Bytes.
    Size(u64),
    /// A number of things.
    Count(u64),
    /// `true` or `false`.
    Switch(bool),
    /// A length of time.
    Duration(Duration),
    /// A secret, which is never shown.
    Secret(Secret),
}

/// The text in place of a secret.
const HIDDEN: &str = "(hidden)";

/// As people write it, and, but for a secret, as it can be read back.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Text(text) => f.write_str(text),
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::List(items) => f.write_str(&items.join(",")),
            Self::Listen(addresses) if addresses.is_empty() => f.write_str("none"),
            Self::Listen(addresses) => {
                f.write_str(&addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
            }
            Self::Size(bytes) => f.write_str(&units::format_size(*bytes)),
            Self::Count(number) => write!(f, "{number}"),
            Self::Switch(on) => write!(f, "{on}"),
            Self::Duration(duration) => f.write_str(&units::format_duration(*duration)),
            Self::Secret(_) => f.write_str(HIDDEN),
        }
    }
}
