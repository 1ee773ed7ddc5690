//! Settings of a queue as KEY=VALUE.

use std::time::Duration;

use turno_broker::config::nearest;
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{Code, Seconds, limits, units};

use crate::cli::error::Failure;

const KEYS: [&str; 5] = ["durable", "drop-after", "weight", "retry-delay", "retry-delay-max"];

/// One of them, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    key: &'static str,
    value: String,
}

/// A key that there is, and its value, which is checked later.
pub(super) fn parse(text: &str) -> Result<Pair, String> {
    let (typed, value) = text.split_once('=').ok_or("a setting is KEY=VALUE")?;
    match KEYS.into_iter().find(|key| *key == typed) {
        Some(key) => Ok(Pair { key, value: value.to_owned() }),
        None => Err(match nearest(typed, KEYS) {
            Some(key) => format!("unknown setting {typed:?}; did you mean {key}?"),
            None => format!("unknown setting {typed:?}; the settings are {}", KEYS.join(", ")),
        }),
    }
}

/// Puts them into the settings. Each can be given once.
pub(super) fn apply(pairs: &[Pair], settings: &mut QueueSettings) -> Result<(), Failure> {
    for Pair { key, value } in pairs {
        let wrong = |expected: String| {
            Failure::new(Code::BadUsage, format!("{key}={value} is not allowed")).why(format!("{key} is {expected}"))
        };
        let fresh = match *key {
            "durable" => set(&mut settings.durable, flag(value).ok_or_else(|| wrong("yes or no".to_owned()))?),
            "drop-after" => {
                let range = 0..=u64::from(limits::DROP_AFTER_MAX);
                let count = number(value, range).ok_or_else(|| wrong("a number from 0 to 1000".to_owned()))?;
                set(&mut settings.drop_after, count)
            }
            "weight" => {
                let range = 1..=u64::from(limits::WEIGHT_MAX);
                set(
                    &mut settings.weight,
                    number(value, range).ok_or_else(|| wrong("a number from 1 to 100".to_owned()))?,
                )
            }
            other => {
                let wait = wait(value).ok_or_else(|| wrong("a duration of at most 30d, such as 5s".to_owned()))?;
                let is_first = other == "retry-delay";
                set(
                    if is_first { &mut settings.retry_delay_seconds } else { &mut settings.retry_delay_max_seconds },
                    wait,
                )
            }
        };
        if !fresh {
            return Err(Failure::new(Code::BadUsage, format!("{key} is given twice")).fix("give each setting once"));
        }
    }
    check(settings)
}

/// The first wait is not longer than the longest.
fn check(settings: &QueueSettings) -> Result<(), Failure> {
    let waits = settings.retry_delay_seconds.zip(settings.retry_delay_max_seconds);
    match waits.filter(|(first, most)| first > most) {
        None => Ok(()),
        Some((first, most)) => {
            let [first, most] = [first, most].map(|wait| units::format_duration(wait.duration()));
            Err(Failure::new(Code::BadUsage, format!("retry-delay={first} contradicts retry-delay-max={most}"))
                .why("the first wait cannot be longer than the longest")
                .fix("use a shorter retry-delay or a longer retry-delay-max"))
        }
    }
}

/// False if it was set before.
fn set<T>(place: &mut Option<T>, value: T) -> bool {
    place.replace(value).is_none()
}

fn flag(value: &str) -> Option<bool> {
    match value {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

fn number<T: TryFrom<u64>>(value: &str, range: std::ops::RangeInclusive<u64>) -> Option<T> {
    let count = value.parse().ok().filter(|count| range.contains(count))?;
    T::try_from(count).ok()
}

fn wait(value: &str) -> Option<Seconds> {
    let wait = units::parse_duration(value).ok()?;
    let ms = u64::try_from(wait.as_millis()).ok().filter(|ms| *ms <= limits::RETRY_DELAY_MS_MAX)?;
    (Duration::from_millis(ms) == wait).then_some(Seconds::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(texts: &[&str]) -> Result<QueueSettings, String> {
        let pairs: Result<Vec<Pair>, String> = texts.iter().map(|text| parse(text)).collect();
        let mut settings = QueueSettings::default();
        apply(&pairs?, &mut settings).map_err(|failure| failure.what().to_owned())?;
        Ok(settings)
    }

    #[test]
    fn settings_are_read() {
        let all = applied(&["durable=no", "drop-after=5", "weight=3", "retry-delay=250ms", "retry-delay-max=1h"]);
        let expected = QueueSettings {
            durable: Some(false),
            drop_after: Some(5),
            weight: Some(3),
            retry_delay_seconds: Some(Seconds::from_millis(250)),
            retry_delay_max_seconds: Some(Seconds::from_millis(3_600_000)),
        };
        assert_eq!(all, Ok(expected));
    }

    /// Unknown settings are refused with the nearest name, and so are contradictory ones.
    #[test]
    fn bad_settings_are_refused() {
        let table: [(&[&str], &str); 8] = [
            (&["retry-dely=1s"], "unknown setting \"retry-dely\"; did you mean retry-delay?"),
            (
                &["x=1"],
                "unknown setting \"x\"; the settings are durable, drop-after, weight, retry-delay, retry-delay-max",
            ),
            (&["durable"], "a setting is KEY=VALUE"),
            (&["weight=0"], "weight=0 is not allowed"),
            (&["retry-delay=-1s"], "retry-delay=-1s is not allowed"),
            (&["retry-delay=31d"], "retry-delay=31d is not allowed"),
            (&["weight=1", "weight=2"], "weight is given twice"),
            (&["retry-delay=2m", "retry-delay-max=1m"], "retry-delay=2m contradicts retry-delay-max=1m"),
        ];
        for (texts, expected) in table {
            assert_eq!(applied(texts), Err(expected.to_owned()));
        }
    }
}
