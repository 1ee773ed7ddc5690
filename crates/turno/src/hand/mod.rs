//! A worker for jobs.

#[cfg(test)]
mod double;
pub(crate) mod files;
pub(crate) mod outbox;
mod scratch;
mod words;
