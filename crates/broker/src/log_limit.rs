//! Rate limit for log lines that peers can cause: a few of each kind, then a count.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tracing::warn;
use turno_proto::model::limits::{LOG_LINES_MAX, LOG_WINDOW_MS};

/// A kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    Accept,
    Link,
    LinkQueue,
    LinkRefused,
    Lost,
    Memory,
    Protocol,
    RingRefused,
    TurnedAway,
}

const KINDS: [(LogKind, &str); 9] = [
    (LogKind::Accept, "cannot accept a connection"),
    (LogKind::Link, "a link came up or went down"),
    (LogKind::LinkQueue, "cannot open a queue over a link"),
    (LogKind::LinkRefused, "a link was refused"),
    (LogKind::Lost, "a connection was lost immediately"),
    (LogKind::Memory, "closed a connection: memory limit reached"),
    (LogKind::Protocol, "closed a connection after a protocol error"),
    (LogKind::RingRefused, "the ring refused a connection"),
    (LogKind::TurnedAway, "refused a connection"),
];

/// The lines of one kind.
#[derive(Debug)]
struct LogLines {
    /// When the first of the present window was written.
    since_ms: AtomicU64,
    written: AtomicU64,
    left_out: AtomicU64,
}

static LINES: [LogLines; KINDS.len()] = [const { LogLines::new() }; KINDS.len()];

impl LogLines {
    const fn new() -> Self {
        Self { since_ms: AtomicU64::new(0), written: AtomicU64::new(0), left_out: AtomicU64::new(0) }
    }

    /// Whether one more may be written. Routers that ask at once may be a line apart.
    fn admit(&self, now_ms: u64) -> bool {
        if now_ms.saturating_sub(self.since_ms.load(Ordering::Relaxed)) >= LOG_WINDOW_MS {
            self.since_ms.store(now_ms, Ordering::Relaxed);
            self.written.store(0, Ordering::Relaxed);
        }
        let admitted = self.written.fetch_add(1, Ordering::Relaxed) < LOG_LINES_MAX;
        if !admitted {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    /// How many were left out in a window that is over. Told once.
    fn take_left_out(&self, now_ms: u64) -> u64 {
        let over = now_ms.saturating_sub(self.since_ms.load(Ordering::Relaxed)) >= LOG_WINDOW_MS;
        if over && self.left_out.load(Ordering::Relaxed) > 0 { self.left_out.swap(0, Ordering::Relaxed) } else { 0 }
    }
}

fn now_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let up = START.get_or_init(Instant::now).elapsed();
    // Never 0: the first window begins with the first line.
    u64::try_from(up.as_millis()).unwrap_or(u64::MAX).saturating_add(LOG_WINDOW_MS)
}

/// Whether a line of that kind may be written now. Ask before making it.
pub(super) fn admits(kind: LogKind) -> bool {
    LINES[kind as usize].admit(now_ms())
}

/// A connection was gone before anything came over it.
pub(super) fn connection_lost(error: &io::Error) {
    if admits(LogKind::Lost) {
        warn!(%error, "a connection was lost immediately");
    }
}

/// Tells of lines that were left out. Due a few times a second.
pub(super) fn tell_left_out() {
    let now_ms = now_ms();
    for ((_, what), lines) in KINDS.iter().zip(&LINES) {
        let more = lines.take_left_out(now_ms);
        if more > 0 {
            warn!(more, what, "similar log lines suppressed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_where_their_lines_are() {
        for (at, (kind, _)) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
        }
    }

    /// A flood is a few lines and one count, whenever it ends; then lines are written again.
    #[test]
    fn a_flood_is_a_few_lines_and_a_count() {
        let lines = LogLines::new();
        let start = LOG_WINDOW_MS;
        let written = (0..1_244).filter(|at| lines.admit(start + at)).count() as u64;
        assert_eq!(written, LOG_LINES_MAX);
        assert_eq!(lines.take_left_out(start + 1_244), 0, "the window goes on");
        assert_eq!(lines.take_left_out(start + LOG_WINDOW_MS), 1_244 - LOG_LINES_MAX);
        assert_eq!(lines.take_left_out(start + LOG_WINDOW_MS), 0, "told once");
        assert!(lines.admit(start + LOG_WINDOW_MS));
    }
}
