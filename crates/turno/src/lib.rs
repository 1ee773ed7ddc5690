//! Turno: one broker for requests, queues, topics and jobs.
//!
//! This is the library behind the `turno` binary: [`cli`] is the command line, and behind it is the job worker.
//! The broker itself, also for other programs, is the crate `turno-broker`.

pub mod cli;
mod job_worker;
mod process;
