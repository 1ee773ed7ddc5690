//! What can go wrong, each with exactly one code.

use std::convert::Infallible;

use turno_proto::headers::HeadersError;
use turno_proto::model::{Code, DedupIdError, NameError, Payload, TopicError};

use crate::Address;

/// Why a call, a connection or a worker ended without what was wanted. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The broker or the worker said no.
    #[error("{}", said(.code, .detail))]
    Refused {
        /// Why.
        code: Code,
        /// What the worker or the broker said about it, bytes that are no text replaced; may be empty.
        detail: String,
    },
    /// Every broker was tried once and none answered.
    #[error("no broker answers: {}", attempts(.tried))]
    CannotConnect {
        /// The brokers in the order of trying, each with the reason.
        tried: Vec<(Address, String)>,
    },
    /// The connection was lost before the answer came; whether the request was worked on, or the send stored, is
    /// unknown.
    #[error("the connection to the broker was lost before the answer came")]
    ConnectionLost,
    /// The deadline passed.
    #[error("the deadline passed before there was an answer")]
    TimedOut,
    /// The client or worker was closed on this side.
    #[error("the client is closed")]
    Closed,
    /// Not a queue's name.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// Not a topic, or not a filter.
    #[error("{0}")]
    BadTopic(#[from] TopicError),
    /// Not a dedup id.
    #[error(transparent)]
    BadDedupId(#[from] DedupIdError),
    /// A request with a dedup id: only sends have one.
    #[error("a dedup id is for sends only: a request is answered by whoever did it")]
    DedupRequest,
    /// A broadcast with an option that only other messages have.
    #[error("a broadcast has no retries, priority, cost, dedup id or fail-fast: it goes to everyone once, at once")]
    BroadcastOption,
    /// The headers cannot be written or read.
    #[error(transparent)]
    Headers(#[from] HeadersError),
    /// Not a broker's address.
    #[error("{0:?} is no address of a broker: turno://host:port, host:port or unix:/path")]
    BadAddress(String),
    /// No address of a broker was given (S1.3).
    #[error("the address of at least one broker is needed")]
    NoBroker,
    /// A worker without queues would never get work.
    #[error("a worker needs at least one queue")]
    NoQueue,
    /// This machine failed: no thread, no runtime.
    #[error("{0}")]
    Io(String),
}

impl Error {
    /// The code that programs and exit statuses go by.
    pub const fn code(&self) -> Code {
        match self {
            Self::Refused { code, .. } => *code,
            Self::CannotConnect { .. } => Code::CannotConnect,
            Self::ConnectionLost | Self::Closed => Code::ConnectionLost,
            Self::TimedOut => Code::TimedOut,
            Self::BadName(_) => Code::BadName,
            Self::BadTopic(_) => Code::BadTopic,
            Self::Headers(_) | Self::BadDedupId(_) | Self::DedupRequest | Self::BroadcastOption => Code::BadOption,
            Self::BadAddress(_) | Self::NoBroker | Self::NoQueue => Code::BadUsage,
            Self::Io(_) => Code::Io,
        }
    }

    /// The error for a call that ended with a code and perhaps some words about it.
    pub(crate) fn from_end(code: Code, payload: &Payload) -> Self {
        match code {
            Code::TimedOut => Self::TimedOut,
            Code::ConnectionLost => Self::ConnectionLost,
            _ => Self::Refused { code, detail: String::from_utf8_lossy(&payload.split().1).into_owned() },
        }
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

fn said(code: &Code, detail: &str) -> String {
    let what = code.text().what;
    // One line: what a worker wrote may have many.
    let line = detail.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.is_empty() || line == what { what.to_owned() } else { format!("{what}: {line}") }
}

fn attempts(tried: &[(Address, String)]) -> String {
    let lines: Vec<String> = tried.iter().map(|(address, reason)| format!("{address}: {reason}")).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_one_line_and_has_its_code() {
        let table = [
            (
                Error::Refused { code: Code::Failed, detail: "\n no such file\nat line 3".to_owned() },
                Code::Failed,
                "the worker said that it failed: no such file",
            ),
            (
                Error::Refused { code: Code::NoResponder, detail: String::new() },
                Code::NoResponder,
                "nobody consumes that queue",
            ),
            (
                Error::CannotConnect { tried: vec![(Address::Tcp("a:1".to_owned()), "refused".to_owned())] },
                Code::CannotConnect,
                "no broker answers: turno://a:1: refused",
            ),
            (Error::NoBroker, Code::BadUsage, "the address of at least one broker is needed"),
        ];
        for (error, code, text) in table {
            assert_eq!(error.code(), code);
            assert_eq!(error.to_string(), text);
        }
    }
}
