//! Moments and lengths of time, as people and programs read them.

use std::time::Duration;

use clap::ValueEnum;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How moments are shown to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeStyle {
    /// How long ago, or in how long
    #[default]
    Relative,
    /// Date and time of this machine's zone
    Local,
    /// Date and time in UTC
    Utc,
    /// Seconds since 1970
    Unix,
}

/// What the broker's "so long ago" is reckoned against: the moment of the question, since a command may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// A moment that stands still, for tests.
    fixed: Option<Timestamp>,
    style: TimeStyle,
}

impl Clock {
    pub(crate) const fn new(style: TimeStyle) -> Self {
        Self { fixed: None, style }
    }

    #[cfg(test)]
    pub(crate) fn at(now: &str, style: TimeStyle) -> Self {
        Self { fixed: Some(now.parse().unwrap()), style }
    }

    fn now(&self) -> Timestamp {
        self.fixed.unwrap_or_else(Timestamp::now)
    }

    /// How long ago that was; nothing for a moment to come.
    pub(crate) fn since(&self, moment: Timestamp) -> Duration {
        self.now().duration_since(moment).try_into().unwrap_or_default()
    }

    /// The moment so many milliseconds ago.
    pub(crate) fn ago(&self, ms: u64) -> Timestamp {
        self.shift(ms, Timestamp::checked_sub)
    }

    /// The moment in so many milliseconds.
    pub(crate) fn ahead(&self, ms: u64) -> Timestamp {
        self.shift(ms, Timestamp::checked_add)
    }

    fn shift(&self, ms: u64, step: fn(Timestamp, SignedDuration) -> Result<Timestamp, jiff::Error>) -> Timestamp {
        let span = SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
        let now = self.now();
        step(now, span).unwrap_or(now)
    }

    /// A moment for people, in the style that was asked for; without blanks, so that `awk` counts right.
    pub(crate) fn cell(&self, moment: Timestamp) -> String {
        match self.style {
            TimeStyle::Relative => {
                let span = moment.duration_since(self.now());
                let text = short(span.unsigned_abs());
                if span.is_positive() { format!("+{text}") } else { text }
            }
            TimeStyle::Local => moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            TimeStyle::Utc => rfc3339(moment),
            TimeStyle::Unix => moment.as_second().to_string(),
        }
    }

    /// The same within a sentence.
    pub(crate) fn phrase(&self, moment: Timestamp) -> String {
        let text = self.cell(moment);
        match (self.style, text.strip_prefix('+')) {
            (TimeStyle::Relative, Some(ahead)) => format!("in {ahead}"),
            (TimeStyle::Relative, None) => format!("{text} ago"),
            _ => text,
        }
    }

    /// A moment ahead as the end of a wait: the time of day, or the style that was asked for.
    pub(crate) fn until(&self, moment: Timestamp) -> String {
        match self.style {
            TimeStyle::Relative => moment.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string(),
            _ => self.cell(moment),
        }
    }
}

/// A moment for programs: RFC 3339 in UTC, to the millisecond.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// A length of time for people: the two largest units, blanks left out.
pub(crate) fn short(duration: Duration) -> String {
    let ms = duration.as_millis();
    let (days, hours, minutes) = (ms / 86_400_000, ms / 3_600_000 % 24, ms / 60_000 % 60);
    let seconds = ms / 1_000 % 60;
    match (days, hours, minutes) {
        (0, 0, 0) if ms < 1_000 => format!("{ms}ms"),
        (0, 0, 0) if ms < 10_000 => format!("{seconds}.{}s", ms / 100 % 10),
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{seconds}s"),
        (0, _, _) => format!("{hours}h{minutes}m"),
        _ => format!("{days}d{hours}h"),
    }
}

/// Milliseconds as seconds, for programs.
#[expect(clippy::cast_precision_loss, reason = "a length of time, not an id")]
pub(crate) fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// Microseconds as seconds, for programs.
#[expect(clippy::cast_precision_loss, reason = "a length of time, not an id")]
pub(crate) fn micros(us: u64) -> f64 {
    us as f64 / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        let table = [
            (0, "0ms"),
            (999, "999ms"),
            (1_250, "1.2s"),
            (42_900, "42s"),
            (61_000, "1m1s"),
            (7_260_000, "2h1m"),
            (180_000_000, "2d2h"),
        ];
        for (ms, expected) in table {
            assert_eq!(short(Duration::from_millis(ms)), expected);
        }
    }

    #[test]
    fn moments_in_each_style() {
        let show = |style| {
            let clock = Clock::at("2026-11-15T12:00:00Z", style);
            (clock.cell(clock.ago(90_000)), clock.cell(clock.ahead(5_000)))
        };
        assert_eq!(show(TimeStyle::Relative), ("1m30s".to_owned(), "+5.0s".to_owned()));
        assert_eq!(
            show(TimeStyle::Utc),
            ("2026-11-15T11:58:30.000Z".to_owned(), "2026-11-15T12:00:05.000Z".to_owned())
        );
        assert_eq!(show(TimeStyle::Unix), ("1794743910".to_owned(), "1794744005".to_owned()));
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
        assert_eq!(clock.phrase(clock.ago(90_000)), "1m30s ago");
        assert_eq!(clock.phrase(clock.ahead(5_000)), "in 5.0s");
        assert!(show(TimeStyle::Local).0.starts_with("2026-11-1"));
    }

    #[test]
    fn a_silly_age_is_no_panic() {
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Utc);
        assert_eq!(clock.cell(clock.ago(u64::MAX)), "2026-11-15T12:00:00.000Z");
    }
}
