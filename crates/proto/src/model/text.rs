//! Text helpers for messages to users.

use std::time::Duration;

/// A number with the words that go with it: for one, or for any other number.
pub fn count(number: u64, one: &str, many: &str) -> String {
    let words = if number == 1 { one } else { many };
    format!("{number} {words}")
}

/// A text of several lines in one: each run of white space is a blank. Printing escapes the rest.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A length of time: the two largest units, without blanks.
pub fn short(duration: Duration) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let said = [0, 1, 2].map(|number| count(number, "message waits", "messages wait"));
        assert_eq!(said, ["0 messages wait", "1 message waits", "2 messages wait"]);
    }

    #[test]
    fn several_lines_are_one() {
        assert_eq!(one_line(" a\r\n\tb  ü "), "a b ü");
    }

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
}
