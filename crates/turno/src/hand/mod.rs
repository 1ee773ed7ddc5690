//! A worker for jobs.

pub(crate) mod files;
pub(crate) mod outbox;
mod scratch;
mod words;
