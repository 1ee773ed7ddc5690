//! Numbers in sentences, and what strangers say in one line.

/// A number with the words that go with it: for one, or for any other number.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let words = if number == 1 { one } else { many };
    format!("{number} {words}")
}

/// What a stranger said in one line: blanks of every kind are one blank, and what would steer a terminal or turn the
/// direction of text is a mark.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().map(|letter| if steers(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Whether a letter is none: control characters, and those that turn the direction of text.
pub(crate) fn steers(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
    fn what_strangers_say_steers_nothing() {
        assert_eq!(one_line(" a\r\n\tb \x1b[2J\u{202e}c\u{7f}\u{9b}ü "), "a b \u{fffd}[2J\u{fffd}c\u{fffd}\u{fffd}ü");
    }
}
