//! Errors of opening a log. Nothing is changed on the disk then.

use std::io;

use thiserror::Error;

use crate::disk::is_full;

/// Why a directory could not be opened as a store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// An operation of the system failed.
    #[error("cannot {doing} {file}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file's name in the directory.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Bytes that were committed are not there any more. Nothing is skipped and nothing is deleted: put the directory
    /// back from a copy, or let somebody look at it.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Damaged {
        /// The file's name in the directory.
        file: String,
        /// Where the damage begins.
        offset: u64,
        /// The kind of damage.
        what: DamageKind,
    },
    /// A newer broker wrote this.
    #[error("{file} has format {found}; this version supports formats up to {known}")]
    Newer {
        /// The file's name in the directory.
        file: String,
        /// The format it has.
        found: u32,
        /// The newest format this program knows.
        known: u32,
    },
}

/// The kind of damage of a file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DamageKind {
    /// The first bytes are not a header of a segment.
    #[error("no valid header")]
    Header,
    /// Batches follow that were written after this one was synced, yet this one is not whole.
    #[error("a batch is incomplete, but later batches follow")]
    Batch,
    /// The batches end here, yet the log goes on in another file.
    #[error("the segment ends before it was completed")]
    Unfinished,
    /// The file is shorter than its last whole batch says: what followed may be gone with its end.
    #[error("the file was truncated here; it had {0} bytes")]
    Cut(u64),
    /// A whole batch with the number or the owner of another.
    #[error("a batch is out of order")]
    Order,
    /// A segment between the first and the last one is not in the directory.
    #[error("segment {0} of the log is missing")]
    Missing(u64),
    /// Two files say they are the same part of the log.
    #[error("two files are segment {0} of the log")]
    Twice(u64),
}

impl OpenError {
    pub(super) fn io(doing: &'static str, file: &str) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |source| Self::Io { doing, file, source }
    }

    pub(super) fn damaged(file: &str, offset: u64, what: DamageKind) -> Self {
        Self::Damaged { file: file.to_owned(), offset, what }
    }
}

/// A failed file operation of a log.
#[derive(Debug)]
pub(super) struct Failed {
    doing: &'static str,
    file: String,
    source: io::Error,
}

impl Failed {
    pub(super) fn to(doing: &'static str, file: &str) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |source| Self { doing, file, source }
    }

    pub(super) fn is_full(&self) -> bool {
        is_full(&self.source)
    }

    pub(super) fn why(&self) -> String {
        format!("cannot {} {}: {}", self.doing, self.file, self.source)
    }
}

impl From<Failed> for OpenError {
    fn from(Failed { doing, file, source }: Failed) -> Self {
        Self::Io { doing, file, source }
    }
}

/// Why a batch did not get into the log.
#[derive(Debug)]
pub(super) enum AppendError {
    /// No room; nothing of it counts, and the log is as good as before.
    Full(Failed),
    /// The log is dead; nothing of the batch counts.
    Broken(Failed),
    /// The log is dead; the batch may be there.
    Unsynced(Failed),
}

impl AppendError {
    /// The meaning of a failed operation that may fail for lack of room.
    pub(super) fn of(failed: Failed) -> Self {
        if failed.is_full() { Self::Full(failed) } else { Self::Broken(failed) }
    }

    pub(super) fn into_failed(self) -> Failed {
        match self {
            Self::Full(failed) | Self::Broken(failed) | Self::Unsynced(failed) => failed,
        }
    }
}
