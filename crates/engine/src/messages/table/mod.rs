//! The table of messages, the lists threaded through it, and their timers.

pub(crate) mod chain;
pub(in crate::messages) mod message;
pub(in crate::messages) mod numbered;
pub(in crate::messages) mod owned;
pub(in crate::messages) mod timers;
