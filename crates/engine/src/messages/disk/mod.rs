//! What must be on disk before anyone is told, and what outlived the last run.

pub(crate) mod durable;
pub(in crate::messages) mod pending_writes;
pub(crate) mod persist;
