//! "Did you mean": the known word nearest to a mistyped one.

/// The nearest of `known`, if one is near enough to be what was meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = typed.chars().count();
    let far = letters.div_ceil(3).max(1);
    known
        .into_iter()
        // Texts that differ that much in length need not be compared, and may be a megabyte long.
        .filter(|word| word.chars().count().abs_diff(letters) <= far)
        .map(|word| (strsim::osa_distance(typed, word), word))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_offered() {
        let known = ["listen.native", "limits.memory", "heartbeat"];
        let table = [
            ("listen.nativ", Some("listen.native")),
            ("limits.memroy", Some("limits.memory")),
            ("hartbeat", Some("heartbeat")),
            ("colour", None),
            ("heartbeat.heartbeat.heartbeat", None),
        ];
        for (typed, expected) in table {
            assert_eq!(nearest(typed, known), expected, "{typed}");
        }
        assert_eq!(nearest(&"x".repeat(1 << 20), known), None);
    }
}
