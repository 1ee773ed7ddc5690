//! Signals that end a running command.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::Failure;

/// The signals that ask for the end, each with the exit status it gives.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> Result<Self, Failure> {
        let caught = |kind| signal(kind).map_err(|error| Failure::system("cannot catch signals", &error));
        Ok(Self { terminate: caught(SignalKind::terminate())?, interrupt: caught(SignalKind::interrupt())? })
    }

    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.interrupt.recv() => 130,
        }
    }
}
