//! Durable messages: changes that must be on disk before anyone is told, and recovery.

pub(crate) mod durable;
pub(in crate::messages) mod pending_writes;
pub(crate) mod persist;
mod recover;
