//! Turno: one broker for requests, queues, topics and jobs.
//!
//! This is the library behind the `turno` binary. [`embedded::Broker`] runs a broker inside another program;
//! [`broker`] is its shell, [`config`] its configuration, [`cli`] the command line.

pub mod broker;
pub mod cli;
pub mod config;
pub mod embedded;
mod hand;
mod keepalive;
mod process;
