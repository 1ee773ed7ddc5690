//! Time limits for retries while the broker is busy or away.

use std::time::{Duration, Instant};

use turno_client::Error;
use turno_proto::model::{Code, limits};

/// How long to go on asking for one thing.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { until: Instant::now() + longest, pause: Duration::from_millis(limits::OUTBOX_AGAIN_MS) }
    }

    /// Whether to ask again after this answer; if so, after a pause.
    pub(crate) async fn bears(&mut self, error: &Error) -> bool {
        if !is_passing(error.code()) || Instant::now() >= self.until {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (2 * self.pause).min(Duration::from_millis(limits::OUTBOX_AGAIN_MS_MAX));
        true
    }
}

/// Whether the same call may be answered well a moment later.
pub(super) const fn is_passing(code: Code) -> bool {
    matches!(
        code,
        Code::ArchiveBusy
            | Code::ConnectionLost
            | Code::CannotConnect
            | Code::TimedOut
            | Code::Closing
            | Code::TooManyInFlight
    )
}
