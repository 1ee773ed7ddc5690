//! Sizes in human-readable form.

/// Three digits and a binary unit: `512B`, `1.50KiB`, `11.8GiB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn short(bytes: u64) -> String {
    const UNITS: &[&str] = &["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut amount = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while amount >= 1024.0 {
        amount /= 1024.0;
        unit = units.next().or(unit);
    }
    let digits = match amount {
        amount if amount < 10.0 => 2,
        amount if amount < 100.0 => 1,
        _ => 0,
    };
    format!("{amount:.digits$}{}", unit.copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_enough() {
        let table = [
            (0, "0B"),
            (1023, "1023B"),
            (1536, "1.50KiB"),
            (10 << 20, "10.0MiB"),
            (12_637_396_992, "11.8GiB"),
            (900 << 30, "900GiB"),
            (u64::MAX, "16.0EiB"),
        ];
        for (bytes, expected) in table {
            assert_eq!(short(bytes), expected);
        }
    }
}
