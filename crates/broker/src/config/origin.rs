//! The origin of a configuration value: default, file, variable or flag.

use std::fmt;
use std::path::PathBuf;

/// The origin of a key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it is built in.
    Default,
    /// A configuration file.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// Nobody: it follows from the broker's number in its ring.
    Sid(u16),
    /// A flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Sid(sid) => write!(f, "default for sid {sid}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}
