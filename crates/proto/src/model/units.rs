//! Durations, sizes and counts as people type them: `250ms`, `1h30m`, `64KiB`, `10_000`.

use std::time::Duration;

/// Why a text is not a duration, size or count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a duration.
    #[error("invalid duration: expected a value like 250ms, 30s, 5m, 2h, 7d or 1h30m")]
    Duration,
    /// Not a size.
    #[error("invalid size: expected a value like 512, 64KiB, 10MB or 1GiB")]
    Size,
    /// Not a count.
    #[error("invalid count: expected a value like 10 or 10_000")]
    Count,
    /// A number that does not fit.
    #[error("the number is too large")]
    TooLarge,
}

const DURATION_UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Reads `250ms`, `30s`, `1h30m`; a bare `0` is zero.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total_ms: u64 = 0;
    while !rest.is_empty() {
        let (number, tail) = leading_number(rest).ok_or(UnitError::Duration)?;
        let unit_len = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at_checked(unit_len).ok_or(UnitError::Duration)?;
        let factor = factor_of(DURATION_UNITS, unit).ok_or(UnitError::Duration)?;
        let part = number?.checked_mul(factor).ok_or(UnitError::TooLarge)?;
        total_ms = total_ms.checked_add(part).ok_or(UnitError::TooLarge)?;
        rest = tail;
    }
    if text.is_empty() { Err(UnitError::Duration) } else { Ok(Duration::from_millis(total_ms)) }
}

/// Reads `512`, `64KiB`, `10MB`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = leading_number(text).ok_or(UnitError::Size)?;
    let factor = factor_of(SIZE_UNITS, unit).ok_or(UnitError::Size)?;
    number?.checked_mul(factor).ok_or(UnitError::TooLarge)
}

/// Reads `10`, `10_000`.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    match leading_number(text) {
        Some((number, "")) => number,
        _ => Err(UnitError::Count),
    }
}

/// Writes a duration as [`parse_duration`] reads it, without losing a millisecond.
pub fn format_duration(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if left == 0 {
        return "0".to_owned();
    }
    let mut text = String::new();
    for (unit, factor) in DURATION_UNITS.iter().rev() {
        let amount = left / factor;
        if amount > 0 {
            text.push_str(&amount.to_string());
            text.push_str(unit);
        }
        left %= factor;
    }
    text
}

/// Writes a size in the largest binary unit that loses nothing.
pub fn format_size(bytes: u64) -> String {
    for (unit, factor) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes > 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

/// The digits at the start (with `_` between them) and what follows; `None` if there are none.
fn leading_number(text: &str) -> Option<(Result<u64, UnitError>, &str)> {
    let len = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'_').count();
    let (digits, rest) = text.split_at_checked(len)?;
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || digits.ends_with('_') {
        return None;
    }
    Some((digits.replace('_', "").parse().map_err(|_| UnitError::TooLarge), rest))
}

fn factor_of(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_as_typed() {
        let table: &[(&str, Result<u64, UnitError>)] = &[
            ("250ms", Ok(250)),
            ("30s", Ok(30_000)),
            ("5m", Ok(300_000)),
            ("2h", Ok(7_200_000)),
            ("7d", Ok(604_800_000)),
            ("1h30m", Ok(5_400_000)),
            ("0", Ok(0)),
            ("", Err(UnitError::Duration)),
            ("30", Err(UnitError::Duration)),
            ("s", Err(UnitError::Duration)),
            ("-1s", Err(UnitError::Duration)),
            ("1.5s", Err(UnitError::Duration)),
            ("1 s", Err(UnitError::Duration)),
            ("1w", Err(UnitError::Duration)),
            ("99999999999999999999s", Err(UnitError::TooLarge)),
            ("18446744073709551615d", Err(UnitError::TooLarge)),
        ];
        for (text, expected) in table {
            assert_eq!(parse_duration(text), expected.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn sizes_and_counts_as_typed() {
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("10MB"), Ok(10_000_000));
        assert_eq!(parse_size("512"), Ok(512));
        assert_eq!(parse_size("1XB"), Err(UnitError::Size));
        assert_eq!(parse_size("KiB"), Err(UnitError::Size));
        assert_eq!(parse_count("10_000"), Ok(10_000));
        assert_eq!(parse_count("10_"), Err(UnitError::Count));
        assert_eq!(parse_count("1e3"), Err(UnitError::Count));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0..u64::MAX / 1_000, size in any::<u64>(), noise in "\\PC{0,20}") {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
            prop_assert_eq!(parse_size(&format_size(size)), Ok(size));
            let _ = (parse_duration(&noise), parse_size(&noise), parse_count(&noise));
        }
    }
}
