//! What an operator asks: calls, views, explanations and counts.

pub(crate) mod calls;
pub(crate) mod explain;
pub(crate) mod page;
pub(crate) mod stats;
mod watch;
