//! Numbers in sentences, and texts in one line.

/// A number with the words that go with it: for one, or for any other number.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let words = if number == 1 { one } else { many };
    format!("{number} {words}")
}

/// A text of several lines in one: each run of white space is a blank. Printing escapes the rest.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
}
