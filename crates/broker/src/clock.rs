//! The clock of a broker: the only module that reads the time.

use std::time::{Duration, Instant, SystemTime};

use turno_proto::model::Mono;

/// Time that only goes forward. It starts at what the wall clock says, so that the age and the deadline of a message
/// mean the same in the broker's next run; from then on the wall clock may jump as it likes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
    /// The start, since 1970.
    unix: Duration,
}

impl Clock {
    pub(super) fn start() -> Self {
        // A wall clock that was never set counts from 1970 too.
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), unix }
    }

    pub(super) fn now(self) -> Mono {
        Mono::ZERO + self.unix + self.start.elapsed()
    }

    /// The same point on the system's clock.
    pub(super) fn instant(self, at: Mono) -> Instant {
        let since = Duration::from_micros(at.as_micros()).saturating_sub(self.unix);
        // A point beyond what the system's clock can name is as good as a year from now.
        self.start.checked_add(since).unwrap_or_else(|| Instant::now() + Duration::from_secs(31_536_000))
    }
}
