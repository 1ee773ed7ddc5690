//! Words as a shell reads them.

/// A word that a shell reads back as it is.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@[]%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_would_misread_them() {
        let table = [("./sim", "./sim"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$HOME", "'$HOME'")];
        for (word, expected) in table {
            assert_eq!(quoted(word), expected);
        }
    }
}
