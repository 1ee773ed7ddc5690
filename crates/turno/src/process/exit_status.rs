//! Exit statuses and their verdicts, the same for `work` and for job workers.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// How a program ended: by itself with a code, or by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl Exit {
    /// The result of waiting for a program; an error text if it has not ended, or nobody knows how.
    pub(crate) fn of(waited: Option<io::Result<ExitStatus>>) -> Result<Self, String> {
        match waited {
            Some(Ok(status)) => Ok(Self { code: status.code(), signal: status.signal() }),
            Some(Err(error)) => Err(format!("cannot wait for the program: {error}")),
            None => Err("killed, but still running".to_owned()),
        }
    }

    /// Only exit code 0 is a success.
    pub(crate) fn is_success(self) -> bool {
        self.code == Some(0)
    }

    /// The end, and what the program said of it, if anything.
    pub(crate) fn with(self, last_words: &str) -> String {
        if last_words.is_empty() { self.to_string() } else { format!("{self}: {last_words}") }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit {code}"),
            (None, Some(signal)) => write!(f, "killed by signal {signal}"),
            (None, None) => f.write_str("ended in an unknown way"),
        }
    }
}
