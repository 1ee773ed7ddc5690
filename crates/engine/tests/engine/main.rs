//! The engine seen from outside: inputs in, exact effects out.

mod desk;
mod seen;
mod views;

mod admin;
mod backlog;
mod broadcast;
mod cancel;
mod chores;
mod cold;
mod dead;
mod deadline;
mod dedup;
mod drain;
mod dropping;
mod durable;
mod exclusive;
mod exclusive_among;
mod explain;
mod fairness;
mod late;
mod lease;
mod limits;
mod overload;
mod property;
mod queues;
mod register;
mod requests;
mod retry;
mod roles;
mod sends;
mod settle;
mod turn;
mod upkeep;
mod weighted;
