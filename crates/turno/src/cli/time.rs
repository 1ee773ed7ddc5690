//! Times and durations in human-readable form.

use std::time::Duration;

use clap::ValueEnum;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use turno_proto::model::Moment;
pub(crate) use turno_proto::model::text::short;

/// How moments are shown to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeStyle {
    /// Relative to now
    #[default]
    Relative,
    /// Local date and time
    Local,
    /// Date and time in UTC
    Utc,
    /// Seconds since 1970
    Unix,
}

/// The time that moments are compared with: that of the question, since a command may wait.
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
    pub(crate) fn since(&self, moment: Moment) -> Duration {
        self.now().duration_since(moment.timestamp()).try_into().unwrap_or_default()
    }

    /// A moment for people, in the style that was asked for; without blanks, so that `awk` counts right.
    pub(crate) fn cell(&self, moment: Moment) -> String {
        let timestamp = moment.timestamp();
        match self.style {
            TimeStyle::Relative => {
                let span = timestamp.duration_since(self.now());
                let text = short(span.unsigned_abs());
                if span.is_positive() { format!("+{text}") } else { text }
            }
            TimeStyle::Local => timestamp.to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            TimeStyle::Utc => moment.to_string(),
            TimeStyle::Unix => timestamp.as_second().to_string(),
        }
    }

    /// The same within a sentence.
    pub(crate) fn phrase(&self, moment: Moment) -> String {
        let text = self.cell(moment);
        match (self.style, text.strip_prefix('+')) {
            (TimeStyle::Relative, Some(ahead)) => format!("in {ahead}"),
            (TimeStyle::Relative, None) => format!("{text} ago"),
            _ => text,
        }
    }

    /// A moment ahead as the end of a wait: the time of day, or the style that was asked for.
    pub(crate) fn until(&self, moment: Moment) -> String {
        match self.style {
            TimeStyle::Relative => moment.timestamp().to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string(),
            _ => self.cell(moment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_794_744_000_000;

    #[test]
    fn moments_in_each_style() {
        let (before, after) = (Moment::from_unix_ms(NOON - 90_000), Moment::from_unix_ms(NOON + 5_000));
        let show = |style| {
            let clock = Clock::at("2026-11-15T12:00:00Z", style);
            (clock.cell(before), clock.cell(after))
        };
        assert_eq!(show(TimeStyle::Relative), ("1m30s".to_owned(), "+5.0s".to_owned()));
        assert_eq!(
            show(TimeStyle::Utc),
            ("2026-11-15T11:58:30.000Z".to_owned(), "2026-11-15T12:00:05.000Z".to_owned())
        );
        assert_eq!(show(TimeStyle::Unix), ("1794743910".to_owned(), "1794744005".to_owned()));
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
        assert_eq!(clock.phrase(before), "1m30s ago");
        assert_eq!(clock.phrase(after), "in 5.0s");
        assert!(show(TimeStyle::Local).0.starts_with("2026-11-1"));
        assert_eq!((clock.since(before), clock.since(after)), (Duration::from_secs(90), Duration::ZERO));
    }

    #[test]
    fn a_silly_moment_is_no_panic() {
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Utc);
        assert!(clock.cell(Moment::from_unix_ms(u64::MAX)).starts_with("9999-"));
    }
}
