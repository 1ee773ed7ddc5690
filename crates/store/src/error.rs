//! Errors of the store. The kinds stay apart because the answers differ: refuse the sender, ask again, or stop.

use thiserror::Error;

use crate::store::{CommitNo, Epoch};

/// Whether asking again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The store may come back.
    Later,
    /// This store will never work again in this process: stop.
    Never,
}

/// Why a batch was not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Somebody else owns the records now. Nothing was written; stop.
    #[error("another owner has the store (epoch {by})")]
    Fenced {
        /// The epoch that owns it.
        by: Epoch,
    },
    /// Nobody knows yet: it is there or it is not, whole in either case. Ask
    /// [`last_commit`](crate::Store::last_commit), then send it again under the same number or take it as done.
    #[error("the outcome of commit {0} is unknown")]
    Unknown(CommitNo),
    /// No room. Nothing was written. Batches without puts may still pass.
    #[error("the store is full")]
    Full,
    /// The batch can never fit. Nothing was written.
    #[error("the batch is too large for the store")]
    TooLarge,
    /// The store cannot be reached. Nothing was written.
    #[error("the store is not available: {why}")]
    Unavailable {
        /// Whether asking again can help.
        retry: Retry,
        /// The cause, for people.
        why: String,
    },
    /// The number is not the next one: a mistake of the caller, or a store that went back in time. Nothing was written.
    #[error("out of turn: the last commit is {last}")]
    OutOfTurn {
        /// The store's last commit.
        last: CommitNo,
    },
}

/// Why a record could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The store cannot be reached.
    #[error("the store is not available: {why}")]
    Unavailable {
        /// Whether asking again can help.
        retry: Retry,
        /// The cause, for people.
        why: String,
    },
    /// Committed data is missing or changed.
    #[error("{file} is damaged at byte {offset}: the record no longer has its checksum")]
    Damaged {
        /// The file's name in the store's directory.
        file: String,
        /// Where the record begins.
        offset: u64,
    },
}
