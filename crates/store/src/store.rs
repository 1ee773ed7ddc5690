//! The contract of every store. Nothing above this trait may know which one runs.
//!
//! It is synchronous: the one caller is the committer, an OS thread of its own, because a commit on a busy runtime took
//! twenty times as long. One that speaks to a server blocks on its socket there.
//!
//! **Numbered records, not places.** The caller numbers its records (a message's serial will do) and deletes and reads
//! by that number. A place in a file would change whenever compaction moves a record, and the caller would have to be
//! told, with deletes of the old place already on their way; it also means nothing to a database. The embedded log
//! keeps number → place in about 10 bytes a record, so that nobody above needs to keep a place at all, and a scan can
//! give records back in the order of their numbers, however often they were moved.

use std::fmt;

use crate::batch::Batch;
use crate::error::{CommitError, ReadError};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Which owner of the records this is; one more at every opening.
    Epoch
}
number! {
    /// The number of a commit: 1, 2, 3 …
    CommitNo
}
number! {
    /// The caller's number of a record. Any order is right; rising numbers are cheap.
    RecordNo
}

impl CommitNo {
    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Which table a record belongs to. Part of a keyed record's key; a mark on a numbered one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(pub u8);

/// A live record, as a scan finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A keyed record.
    Keyed {
        /// The space of the record.
        space: Space,
        /// The key of the record.
        key: &'a [u8],
        /// The value that was put.
        value: &'a [u8],
    },
    /// A numbered record.
    Numbered {
        /// The space of the record.
        space: Space,
        /// The number of the record.
        record: RecordNo,
        /// The value that was put.
        value: &'a [u8],
    },
}

/// A numbered record's mark and its bytes.
pub type Stored<'a> = (Space, &'a [u8]);

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes of a batch, as [`Batch::len`] counts them. More: `TooLarge`.
    pub batch_bytes_max: usize,
}

/// How much is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Numbered records that live.
    pub numbered: u64,
    /// Keyed records that live.
    pub keyed: u64,
    /// Bytes of live records.
    pub live_bytes: u64,
    /// Bytes the store takes from its disk.
    pub disk_bytes: u64,
    /// Only batches without puts are taken until there is room.
    pub is_tight: bool,
}

/// Durable records of bytes with one owner at a time.
pub trait Store: Send {
    /// The epoch this owner was given when it opened the store.
    fn epoch(&self) -> Epoch;

    /// The last commit that is surely there. An error means that nobody can tell now.
    fn last_commit(&mut self) -> Result<CommitNo, CommitError>;

    /// The highest record number ever put, dead ones included, so that a number need never be used twice.
    fn last_record(&self) -> RecordNo;

    /// The limits of the store.
    fn capacity(&self) -> Capacity;

    /// The only write: all operations of the batch in their order, or none. When it returns, they are durable. `no` is
    /// [`last_commit`](Self::last_commit) and one. The batch is as before afterwards, to be sent again or cleared.
    fn commit(&mut self, epoch: Epoch, no: CommitNo, batch: &mut Batch) -> Result<(), CommitError>;

    /// Visits every live record: keyed ones by space and key, then numbered ones by number. For recovery.
    fn scan(&mut self, visit: &mut dyn FnMut(Item<'_>)) -> Result<(), ReadError>;

    /// Reads numbered records, in the order asked for; `None` if there is none of that number.
    fn read(
        &mut self,
        records: &[RecordNo],
        visit: &mut dyn FnMut(RecordNo, Option<Stored<'_>>),
    ) -> Result<(), ReadError>;

    /// Reads one keyed record.
    fn read_key(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError>;

    /// Does a small piece of housekeeping while nothing else is to do. Whether there is more.
    fn compact(&mut self) -> Result<bool, CommitError>;

    /// How much is used.
    fn usage(&self) -> Usage;
}
