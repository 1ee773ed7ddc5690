//! What an operator asks: calls, views and counts.

pub(crate) mod calls;
pub(crate) mod memory;
pub(crate) mod page;
mod watch;
