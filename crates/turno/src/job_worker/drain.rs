//! The end of a worker: in order, or not.

use std::time::Duration;

use tokio::time::Instant;

/// How long ends that were cut may take to be told, TERM and KILL included.
const LAST_WORDS: Duration = Duration::from_secs(15);
/// The same where the end is to be at once.
const LAST_WORDS_NOW: Duration = Duration::from_secs(2);

/// Why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
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
    /// Who answers at the foreman's place is no foreman.
    NotGreeted(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Works,
    /// What runs may finish until then.
    Drains {
        until: Option<Instant>,
    },
    /// What ran is told to end; the last words may take until then.
    Cuts {
        until: Instant,
    },
}

/// Where a worker is on its way to its end.
#[derive(Debug)]
pub(crate) struct Drain {
    phase: Phase,
    end: End,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// What runs has had its time.
    Cut,
    /// Nothing is waited for any more.
    Leave,
}

impl Drain {
    pub(crate) const fn new() -> Self {
        Self { phase: Phase::Works, end: End::Asked }
    }

    pub(crate) fn works(&self) -> bool {
        self.phase == Phase::Works
    }

    /// Takes nothing new from now on. Returns whether that is news.
    pub(crate) fn begin(&mut self, now: Instant, end: End, within: Option<Duration>) -> bool {
        let is_news = self.works();
        if is_news {
            let until = within.and_then(|within| now.checked_add(within));
            (self.phase, self.end) = (Phase::Drains { until }, end);
        }
        is_news
    }

    /// What runs is ended.
    pub(crate) fn cut(&mut self, now: Instant) {
        self.phase = Phase::Cuts { until: now + LAST_WORDS };
    }

    /// The same, at once.
    pub(crate) fn cut_now(&mut self, now: Instant, end: End) {
        (self.phase, self.end) = (Phase::Cuts { until: now + LAST_WORDS_NOW }, end);
    }

    pub(crate) const fn at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Works => None,
            Phase::Drains { until } => until,
            Phase::Cuts { until } => Some(until),
        }
    }

    pub(crate) fn due(&self, now: Instant) -> Due {
        match self.phase {
            Phase::Drains { until: Some(until) } if until <= now => Due::Cut,
            Phase::Cuts { until } if until <= now => Due::Leave,
            _ => Due::Nothing,
        }
    }

    pub(crate) const fn reason(&self) -> &End {
        &self.end
    }

    pub(crate) fn end(self) -> End {
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
        assert!(drain.begin(now, End::Idle, Some(Duration::from_secs(10))));
        assert!(!drain.begin(now, End::Asked, None), "the first reason counts");
        assert_eq!(drain.due(now), Due::Nothing);
        let later = now + Duration::from_secs(10);
        assert_eq!((drain.at(), drain.due(later)), (Some(later), Due::Cut));
        drain.cut(later);
        assert_eq!(drain.due(later), Due::Nothing);
        assert_eq!((drain.due(later + LAST_WORDS), drain.end()), (Due::Leave, End::Idle));
    }

    #[test]
    fn a_second_word_counts_more_than_the_first() {
        let mut drain = Drain::new();
        drain.begin(Instant::now(), End::Asked, None);
        let later = Instant::now() + Duration::from_secs(1_000_000);
        assert_eq!(drain.due(later), Due::Nothing, "without a limit it takes as long as it takes");
        drain.cut_now(later, End::Cut(143));
        assert_eq!((drain.due(later + LAST_WORDS_NOW), drain.end()), (Due::Leave, End::Cut(143)));
    }
}
