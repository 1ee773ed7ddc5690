//! The store's promises, held against every backend, and against power cuts.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test, in its setting up too")]

mod archive;
mod archive_crash;
mod archive_damage;
mod backends;
mod committer;
mod compaction;
mod conformance;
mod crash;
mod creation;
mod damage;
mod document;
mod faults;
mod fixture;
mod inspect;
mod model;
mod properties;
