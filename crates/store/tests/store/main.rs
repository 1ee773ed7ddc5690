//! The store's promises, held against every backend, and against power cuts.

mod backends;
mod committer;
mod compaction;
mod conformance;
mod crash;
mod damage;
mod document;
mod faults;
mod fixture;
mod model;
mod properties;
