//! Queues: what waits in each, on disk and in memory, who may have it, and its settings.

pub(in crate::messages) mod backlog;
pub(in crate::messages) mod cold;
pub(in crate::messages) mod dead;
pub(in crate::messages) mod dedup;
pub(in crate::messages) mod exclusive;
pub(in crate::messages) mod line;
pub(in crate::messages) mod queue;
pub(in crate::messages) mod service_time;
mod settings;
mod view;
