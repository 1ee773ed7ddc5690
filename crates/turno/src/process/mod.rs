//! Programs that others wrote: how they run beside us, and how they end.

mod ending;
mod group;

pub(crate) use ending::{Ending, GRACE, at};
pub(crate) use group::{Group, group_of, is_alive, processes};
