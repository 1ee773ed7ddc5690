//! The timer that wakes the engine at its next deadline.

use std::cell::Cell;

use tokio::sync::Notify;
use turno_proto::model::Mono;

use super::clock::Clock;

/// Sleeps until the engine's next deadline.
#[derive(Debug, Default)]
pub(super) struct Timer {
    /// When it will wake by itself.
    armed: Cell<Option<Mono>>,
    nearer: Notify,
}

impl Timer {
    /// The next deadline may have moved.
    pub(super) fn look(&self, next: Option<Mono>) {
        let nearer = match (next, self.armed.get()) {
            (Some(next), Some(armed)) => next < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if nearer {
            self.nearer.notify_one();
        }
    }

    /// Calls `tick` whenever a deadline has come.
    pub(super) async fn keep(&self, clock: Clock, next: impl Fn() -> Option<Mono>, tick: impl Fn()) {
        loop {
            self.armed.set(next());
            match self.armed.get() {
                None => self.nearer.notified().await,
                Some(at) => tokio::select! {
                    () = self.nearer.notified() => {}
                    () = tokio::time::sleep_until(tokio::time::Instant::from_std(clock.instant(at))) => tick(),
                },
            }
        }
    }
}
