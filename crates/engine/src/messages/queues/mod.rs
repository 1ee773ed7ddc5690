//! Queues: their backlogs, consumers and settings.

pub(in crate::messages) mod backlog;
pub(in crate::messages) mod cold;
pub(in crate::messages) mod dead;
pub(in crate::messages) mod dedup;
pub(in crate::messages) mod delayed;
pub(in crate::messages) mod exclusive;
pub(in crate::messages) mod priority_level;
pub(in crate::messages) mod queue;
pub(in crate::messages) mod service_time;
mod settings;
mod view;
