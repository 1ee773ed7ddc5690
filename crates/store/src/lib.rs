//! Durable records of bytes, without knowledge of their meaning.
//!
//! A [`Store`] takes [`Batch`]es of operations, all or nothing, one after the other, each under its number. Two kinds of
//! records: *numbered* ones (messages: many, found by the number the caller gave them) and *keyed* ones (settings,
//! dead-letter history, dedup ids: small tables). Backends: [`Mem`] for simulations, with faults on request, and
//! [`Embedded`], a log on a [`Disk`](disk::Disk). [`Committer`] is the group commit on a thread of its own.
//!
//! Nothing here reads a clock, and files are touched in `disk/fs.rs` only. No byte from a disk can make it panic, or
//! allocate more than the disk really holds.
#![warn(missing_docs)]
#![warn(clippy::indexing_slicing, clippy::cast_possible_truncation)]

pub mod archive;
mod batch;
mod committer;
pub mod disk;
mod embedded;
mod error;
pub mod limits;
mod mem;
mod record;
mod store;

pub use batch::{Batch, Op, Ops};
pub use committer::{Committer, Done, Loaded, Stepper, Ticket, Turn};
pub use embedded::{
    Contents, Damage, DamageKind, DamagedPart, Embedded, FORMAT, Inspection, Log, OpenError, Recovered, Settings,
    check_record, inspect, inspect_headers, inspect_with,
};
pub use error::{CommitError, ReadError, Retry};
pub use mem::{Mem, MemFault, MemMedium};
pub use store::{Capacity, CommitNo, Epoch, Item, RecordNo, Space, Store, Stored, Usage};
