//! How long a failed send waits before its next attempt: longer with each failure, up to a limit, and not all equally long.

use turno_proto::model::view::QueueSettings;
use turno_proto::model::{Again, Mono, Seconds, limits};

use crate::messages::Messages;
use crate::messages::retry::AttemptFailure;
use crate::messages::table::message::{Message, Wants};

/// The waits of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDelay {
    /// Before the second attempt; 0: none at all.
    pub first_ms: u64,
    /// The longest.
    pub most_ms: u64,
}

impl Default for RetryDelay {
    fn default() -> Self {
        Self { first_ms: limits::RETRY_DELAY_MS, most_ms: limits::RETRY_DELAY_MAX_MS }
    }
}

impl RetryDelay {
    /// No waits.
    pub const NONE: Self = Self { first_ms: 0, most_ms: 0 };

    /// These, with the ones of a queue's own instead. A longest wait that is not its own never shortens its own first one.
    pub(in crate::messages) fn changed_by(self, settings: Option<QueueSettings>) -> Self {
        let Some(settings) = settings else { return self };
        let first_ms = settings.retry_delay_seconds.map_or(self.first_ms, Seconds::as_millis);
        let most_ms = settings.retry_delay_max_seconds.map_or_else(|| self.most_ms.max(first_ms), Seconds::as_millis);
        Self { first_ms: first_ms.min(most_ms), most_ms }
    }

    /// The wait after so many attempts, at least one: twice the one before, up to the longest; of that three quarters to all, which
    /// depends on the message and the attempt alone.
    fn after(self, attempts: u16, serial: u64) -> u64 {
        let doublings = u32::from(attempts.saturating_sub(1)).min(u64::BITS - 1);
        let whole = self.first_ms.saturating_mul(1 << doublings).min(self.most_ms);
        whole - scatter(serial, attempts) % (whole / 4 + 1)
    }
}

/// A number that looks random, the same for the same message and attempt.
const fn scatter(serial: u64, attempts: u16) -> u64 {
    let mut bits = (serial.rotate_left(16) ^ attempts as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    bits ^ (bits >> 32)
}

impl Messages {
    /// The waits of a queue.
    pub(in crate::messages) fn retry_delay(&self, queue: u32) -> RetryDelay {
        self.settings.retry_delay.changed_by(self.queues.at(queue).settings())
    }

    /// When the next attempt of a message may begin whose last one ended so. At once: requests, and what a lost worker held.
    pub(in crate::messages) fn next_attempt_at(&self, index: u32, cause: &AttemptFailure) -> Mono {
        let Message { wants, queue, attempts, serial, .. } = self.messages[index];
        if wants != Wants::Settling {
            return self.now;
        }
        let waits = self.retry_delay(queue);
        let wait_ms = match cause {
            AttemptFailure::WorkerLost | AttemptFailure::NotPinned => 0,
            AttemptFailure::Failed { again: Again::After(ms) | Again::Uncounted(Some(ms)), .. } => u64::from(*ms),
            AttemptFailure::Failed { again: Again::Uncounted(None), .. } => waits.after(1, serial),
            AttemptFailure::Failed { again: Again::AsSet | Again::Never, .. } | AttemptFailure::LeaseExpired => {
                waits.after(attempts, serial)
            }
        };
        match wait_ms {
            0 => self.now,
            wait_ms => self.whole_ms(wait_ms.min(limits::RETRY_DELAY_MS_MAX)),
        }
    }

    /// So many milliseconds from now, or a little later: a whole number of them, as it is stored.
    pub(in crate::messages) fn whole_ms(&self, wait_ms: u64) -> Mono {
        Mono::from_millis(self.now.as_micros().div_ceil(1_000) + wait_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each wait is at least three quarters of twice the one before, up to the longest, and never longer than that.
    #[test]
    fn waits_double_up_to_the_longest() {
        let waits = RetryDelay::default();
        for serial in [0, 1, 77, u64::MAX] {
            for (attempts, whole) in
                [(1, 1_000), (2, 2_000), (3, 4_000), (9, 256_000), (10, 300_000), (u16::MAX, 300_000)]
            {
                let wait = waits.after(attempts, serial);
                assert!((whole * 3 / 4..=whole).contains(&wait), "{serial} {attempts}: {wait}");
            }
        }
        assert_eq!((1..70).map(|attempts| RetryDelay::NONE.after(attempts, 7)).max(), Some(0));
    }

    /// The waits of messages that failed together are spread over a quarter of their length.
    #[test]
    fn waits_differ_between_messages() {
        let mut all: Vec<u64> = (0..1_000).map(|serial| RetryDelay::default().after(1, serial) / 25).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, (30..=40).collect::<Vec<_>>());
    }

    /// A queue's own waits replace those of the broker, each by itself.
    #[test]
    fn a_queue_has_waits_of_its_own() {
        let seconds = |ms: Option<u64>| ms.map(Seconds::from_millis);
        let rows = [
            (None, None, 1_000, 300_000),
            (Some(0), None, 0, 300_000),
            (Some(600_000), None, 600_000, 600_000),
            (None, Some(500), 500, 500),
            (Some(2_000), Some(3_000), 2_000, 3_000),
        ];
        for (first, most, first_ms, most_ms) in rows {
            let settings = QueueSettings {
                retry_delay_seconds: seconds(first),
                retry_delay_max_seconds: seconds(most),
                ..QueueSettings::default()
            };
            assert_eq!(RetryDelay::default().changed_by(Some(settings)), RetryDelay { first_ms, most_ms });
        }
    }
}
