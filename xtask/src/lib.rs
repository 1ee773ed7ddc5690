//! What the project's commands and its benchmark share.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

pub mod packages;
