//! Codes of refusals: the subtype of ERROR.

use std::fmt;

/// The code of an ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Too many requests wait already; arg0 is how many. Send it again a little later.
    Overflow,
    /// Not enough processors; arg0 is the worker's pair of counts.
    NoProcs,
    /// The number has the wrong parity, is not new, or is kept for RESET; arg0 is the last one that was taken.
    BadSeq,
    /// None of the named tasks runs here.
    NoSuchJob,
    /// The body cannot be read, or the type is not this end's to send, or not now.
    BadMessage,
    /// A code of another version.
    Other(u8),
}

impl ErrorCode {
    /// Every code that has a meaning, by number.
    pub const ALL: &[Self] = &[Self::Overflow, Self::NoProcs, Self::BadSeq, Self::NoSuchJob, Self::BadMessage];

    /// The subtype in the header.
    pub const fn number(self) -> u8 {
        match self {
            Self::Overflow => 1,
            Self::NoProcs => 2,
            Self::BadSeq => 3,
            Self::NoSuchJob => 4,
            Self::BadMessage => 5,
            Self::Other(number) => number,
        }
    }

    /// The code with that number.
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Overflow,
            2 => Self::NoProcs,
            3 => Self::BadSeq,
            4 => Self::NoSuchJob,
            5 => Self::BadMessage,
            other => Self::Other(other),
        }
    }

    /// Its name in the documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::NoProcs => "no_procs",
            Self::BadSeq => "bad_seq",
            Self::NoSuchJob => "no_such_job",
            Self::BadMessage => "bad_message",
            Self::Other(_) => "other",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(number) => write!(f, "error {number}"),
            known => f.write_str(known.name()),
        }
    }
}
