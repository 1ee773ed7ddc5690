//! The end of a worker: in order, or not.

use std::time::Duration;

use tokio::time::Instant;

/// How long ends that were cut may take to be told, TERM and KILL included.
const LAST_WORDS: Duration = Duration::from_secs(15);
/// The same where the end is to be at once.
const LAST_WORDS_NOW: Duration = Duration::from_secs(2);

/// Why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobWorkerEnd {
    /// It was asked to, and had time for it.
    Asked,
    /// The broker asked for it.
    Stopped {
        /// At once.
        now: bool,
    },
    /// It had nothing to do.
    Idle,
    /// Asked for the second time, with that exit status.
    Cut(u8),
    /// Its worker of queues cannot go on.
    Queues(turno_client::Error),
    /// The peer at the foreman's address is no foreman.
    NotGreeted(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrainPhase {
    Works,
    /// Running tasks may finish until then.
    Drains {
        until: Option<Instant>,
    },
    /// Running tasks are told to end; their last reports may take until then.
    Cuts {
        until: Instant,
    },
}

/// Where a worker is on its way to its end.
#[derive(Debug)]
pub(crate) struct Drain {
    phase: DrainPhase,
    end: JobWorkerEnd,
}

/// A step that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// Running tasks have had their time.
    Cut,
    /// Nothing is waited for any more.
    Leave,
}

impl Drain {
    pub(crate) const fn new() -> Self {
        Self { phase: DrainPhase::Works, end: JobWorkerEnd::Asked }
    }

    pub(crate) fn works(&self) -> bool {
        self.phase == DrainPhase::Works
    }

    /// Takes nothing new from now on. Returns whether that is news.
    pub(crate) fn begin(&mut self, now: Instant, end: JobWorkerEnd, within: Option<Duration>) -> bool {
        let is_news = self.works();
        if is_news {
            let until = within.and_then(|within| now.checked_add(within));
            (self.phase, self.end) = (DrainPhase::Drains { until }, end);
        }
        is_news
    }

    /// Ends the running tasks.
    pub(crate) fn cut(&mut self, now: Instant) {
        self.phase = DrainPhase::Cuts { until: now + LAST_WORDS };
    }

    /// The same, at once.
    pub(crate) fn cut_now(&mut self, now: Instant, end: JobWorkerEnd) {
        (self.phase, self.end) = (DrainPhase::Cuts { until: now + LAST_WORDS_NOW }, end);
    }

    pub(crate) const fn at(&self) -> Option<Instant> {
        match self.phase {
            DrainPhase::Works => None,
            DrainPhase::Drains { until } => until,
            DrainPhase::Cuts { until } => Some(until),
        }
    }

    pub(crate) fn due(&self, now: Instant) -> Due {
        match self.phase {
            DrainPhase::Drains { until: Some(until) } if until <= now => Due::Cut,
            DrainPhase::Cuts { until } if until <= now => Due::Leave,
            _ => Due::Nothing,
        }
    }

    pub(crate) const fn reason(&self) -> &JobWorkerEnd {
        &self.end
    }

    pub(crate) fn end(self) -> JobWorkerEnd {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_is_cut_and_then_left() {
        let now = Instant::now();
        let mut drain = Drain::new();
        assert_eq!((drain.at(), drain.due(now)), (None, Due::Nothing));
        assert!(drain.begin(now, JobWorkerEnd::Idle, Some(Duration::from_secs(10))));
        assert!(!drain.begin(now, JobWorkerEnd::Asked, None), "the first reason counts");
        assert_eq!(drain.due(now), Due::Nothing);
        let later = now + Duration::from_secs(10);
        assert_eq!((drain.at(), drain.due(later)), (Some(later), Due::Cut));
        drain.cut(later);
        assert_eq!(drain.due(later), Due::Nothing);
        assert_eq!((drain.due(later + LAST_WORDS), drain.end()), (Due::Leave, JobWorkerEnd::Idle));
    }

    #[test]
    fn a_second_word_counts_more_than_the_first() {
        let mut drain = Drain::new();
        drain.begin(Instant::now(), JobWorkerEnd::Asked, None);
        let later = Instant::now() + Duration::from_secs(1_000_000);
        assert_eq!(drain.due(later), Due::Nothing, "without a limit it takes as long as it takes");
        drain.cut_now(later, JobWorkerEnd::Cut(143));
        assert_eq!((drain.due(later + LAST_WORDS_NOW), drain.end()), (Due::Leave, JobWorkerEnd::Cut(143)));
    }
}
