//! "Did you mean": the known word that is nearest to what was typed.

/// The nearest of `known`, if one is near enough to be what was meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = typed.chars().count();
    let far = letters.div_ceil(3).max(1);
    known
        .into_iter()
        // What differs that much in length alone need not be compared, and may be a megabyte long.
        .filter(|word| word.chars().count().abs_diff(letters) <= far)
        .map(|word| (distance(typed, word), word))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// How many letters must be put in, taken out, exchanged or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut best = (above[j] + usize::from(a != b)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_edits() {
        let table =
            [("", "", 0), ("abc", "abc", 0), ("abc", "ab", 1), ("abc", "acb", 1), ("abc", "xyz", 3), ("", "ab", 2)];
        for (left, right, expected) in table {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
    }

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
