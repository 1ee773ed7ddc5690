//! Numbers in sentences.

/// A number with the words that go with it: for one, or for any other number.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let words = if number == 1 { one } else { many };
    format!("{number} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let said = [0, 1, 2].map(|number| count(number, "message waits", "messages wait"));
        assert_eq!(said, ["0 messages wait", "1 message waits", "2 messages wait"]);
    }
}
