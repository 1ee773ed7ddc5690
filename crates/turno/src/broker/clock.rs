//! The one place where the broker looks at a clock.

use std::time::{Duration, Instant};

use turno_proto::model::Mono;

/// Time since the broker started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    zero: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { zero: Instant::now() }
    }

    pub(super) fn now(self) -> Mono {
        Mono::ZERO + self.zero.elapsed()
    }

    /// The same point on the system's clock.
    pub(super) fn instant(self, at: Mono) -> Instant {
        let since = Duration::from_micros(at.as_micros());
        // A point beyond what the system's clock can name is as good as a year from now.
        self.zero.checked_add(since).unwrap_or_else(|| Instant::now() + Duration::from_secs(31_536_000))
    }
}
