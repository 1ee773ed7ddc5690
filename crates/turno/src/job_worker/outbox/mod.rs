//! Output of tasks, on its way to the broker or into files.
//!
//! `core` decides what is sent when, without a connection and a clock; `driver` has both. A task whose output goes to a
//! directory of this machine has nothing to do with them: `out_dir`.

mod attempt;
mod core;
mod driver;
mod event;
mod out_dir;
mod patience;
mod recorder;
mod stream_buffer;
#[cfg(test)]
mod tests;

pub(crate) use driver::Outbox;
pub(crate) use patience::Patience;
pub(crate) use recorder::Recorder;
