//! A worker for jobs.

pub(crate) mod outbox;
