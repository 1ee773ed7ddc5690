//! Queues: the messages of a broker from the moment they are let in until they end.

pub(crate) mod backlog;
pub(crate) mod broadcast;
pub(crate) mod cancel;
pub(crate) mod chain;
pub(crate) mod chores;
pub(crate) mod cold;
pub(crate) mod dead;
pub(crate) mod dedup;
pub(crate) mod dispatch;
pub(crate) mod exclusive;
pub(crate) mod expiry;
pub(crate) mod intake;
pub(crate) mod line;
pub(crate) mod losses;
pub(crate) mod message;
pub(crate) mod numbered;
pub(crate) mod owned;
pub(crate) mod pending;
pub(crate) mod queue;
pub(crate) mod retry;
pub(crate) mod service;
pub(crate) mod timers;
pub(crate) mod upkeep;
