//! Points in time and durations of views. Nothing here reads a clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time by the broker's clock, in Unix milliseconds. Text by RFC 3339 in formats for people, such as JSON; the
/// number in others, such as MessagePack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    unix_ms: u64,
}

impl Moment {
    /// So many milliseconds after 1970 began.
    pub const fn from_unix_ms(unix_ms: u64) -> Self {
        Self { unix_ms }
    }

    /// Milliseconds since 1970 began.
    pub const fn unix_ms(self) -> u64 {
        self.unix_ms
    }

    /// How long from `earlier` to this; nothing if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Seconds {
        Seconds::from_millis(self.unix_ms.saturating_sub(earlier.unix_ms))
    }

    /// The same for calendars. A moment that none has is the last one that they have.
    pub fn timestamp(self) -> jiff::Timestamp {
        let moment = i64::try_from(self.unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        moment.unwrap_or(jiff::Timestamp::MAX)
    }
}

/// RFC 3339 in UTC, to the millisecond.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").fmt(f)
    }
}

/// Why a text is not a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a moment is a date and a time by RFC 3339, not before 1970")]
pub struct MomentError;

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let moment: jiff::Timestamp = text.parse().map_err(|_| MomentError)?;
        u64::try_from(moment.as_millisecond()).map(Self::from_unix_ms).map_err(|_| MomentError)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { to.serialize_u64(self.unix_ms) }
    }
}

/// Either form, whatever the format: serde loses sight of the format inside tagged enums.
impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NumberOrText {
            expected: "Unix milliseconds or a moment by RFC 3339",
            of: Self::from_unix_ms,
        })
    }
}

/// A length of time, to the microsecond. A number of seconds in every format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds {
    micros: u64,
}

impl Seconds {
    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self { micros: millis.saturating_mul(1_000) }
    }

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros }
    }

    /// From a start to an end; `None` if one of them is missing.
    pub fn between(start: Option<Moment>, end: Option<Moment>) -> Option<Self> {
        Some(end?.since(start?))
    }

    /// Whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.micros / 1_000
    }

    /// The same as the standard library has it.
    pub const fn duration(self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// The number of seconds.
    #[expect(clippy::cast_precision_loss, reason = "a length of time, not an id")]
    pub const fn as_f64(self) -> f64 {
        self.micros as f64 / 1_000_000.0
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Seconds {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "neither negative nor infinite")]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(from)?;
        if !seconds.is_finite() || seconds < 0.0 {
            return Err(de::Error::custom("a length of time is a number of seconds, 0 or more"));
        }
        Ok(Self { micros: (seconds * 1_000_000.0).round() as u64 })
    }
}

/// Reads a value that is a number in some formats and text in others.
pub(in crate::model) struct NumberOrText<T> {
    pub(in crate::model) expected: &'static str,
    pub(in crate::model) of: fn(u64) -> T,
}

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for NumberOrText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Ok((self.of)(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(feature = "schema")]
mod schema {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::{Moment, Seconds};

    impl JsonSchema for Moment {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Moment".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string", "format": "date-time" })
        }
    }

    impl JsonSchema for Seconds {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Seconds".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            f64::json_schema(generator)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_text_for_people_and_a_number_for_programs() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_794_744_000_250, "2026-11-15T12:00:00.250Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"),
        ];
        for (unix_ms, text) in table {
            let moment = Moment::from_unix_ms(unix_ms);
            assert_eq!(serde_json::to_string(&moment).unwrap(), format!("{text:?}"));
            assert_eq!(rmp_serde::to_vec(&moment).unwrap(), rmp_serde::to_vec(&unix_ms).unwrap());
            assert_eq!(serde_json::from_str::<Moment>(&format!("{text:?}")).unwrap(), moment);
            assert_eq!(serde_json::from_str::<Moment>(&unix_ms.to_string()).unwrap(), moment);
            assert_eq!(rmp_serde::from_slice::<Moment>(&rmp_serde::to_vec(&unix_ms).unwrap()).unwrap(), moment);
        }
        for bad in ["yesterday", "", "1969-12-31T23:59:59Z", "2026-11-15"] {
            assert_eq!(bad.parse::<Moment>(), Err(MomentError), "{bad}");
        }
    }

    #[test]
    fn a_moment_beyond_the_calendar_is_its_last() {
        assert!(Moment::from_unix_ms(u64::MAX).to_string().starts_with("9999-"));
    }

    #[test]
    fn lengths_of_time_are_seconds_and_come_back_exactly() {
        let table = [(0, "0.0"), (1_500_000, "1.5"), (60_500_000, "60.5"), (2_650, "0.00265"), (1_100_000, "1.1")];
        for (micros, text) in table {
            let length = Seconds::from_micros(micros);
            assert_eq!(serde_json::to_string(&length).unwrap(), text);
            assert_eq!(serde_json::from_str::<Seconds>(text).unwrap(), length);
            assert_eq!(rmp_serde::from_slice::<Seconds>(&rmp_serde::to_vec(&length).unwrap()).unwrap(), length);
        }
        let century = Seconds::from_millis(100 * 365 * 86_400_000 + 1);
        assert_eq!(rmp_serde::from_slice::<Seconds>(&rmp_serde::to_vec(&century).unwrap()).unwrap(), century);
        assert_eq!(serde_json::from_str::<Seconds>("3").unwrap(), Seconds::from_millis(3_000));
        assert!(serde_json::from_str::<Seconds>("-1").is_err());
        assert_eq!(Seconds::from_millis(u64::MAX).as_millis(), u64::MAX / 1_000);
    }
}
