//! Child processes: their start and their end.

mod ending;
mod exit_status;
mod group;
mod secrets;
#[cfg(test)]
pub(crate) mod wait;

pub(crate) use ending::{Ending, GRACE, at};
pub(crate) use exit_status::Exit;
pub(crate) use group::{ProcessGroup, group_of, is_alive, processes};
pub(crate) use secrets::without_secrets;
