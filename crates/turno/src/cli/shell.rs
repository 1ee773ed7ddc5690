//! Shell words: splitting and quoting.

/// A word that a shell reads back as it is.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@[]%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The words of a line as a shell parts them, without anything being put in for `$`, `*` and the like. `None` if a quote
/// has no end, or a backslash nothing behind it.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => word.get_or_insert_default().push_str(&until_quote(&mut rest)?),
            '"' => word.get_or_insert_default().push_str(&until_double_quote(&mut rest)?),
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

fn until_quote(rest: &mut std::str::Chars<'_>) -> Option<String> {
    let (inside, behind) = rest.as_str().split_once('\'')?;
    *rest = behind.chars();
    Some(inside.to_owned())
}

/// A backslash keeps only what would mean something inside of double quotes.
fn until_double_quote(rest: &mut std::str::Chars<'_>) -> Option<String> {
    let mut inside = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(inside),
            '\\' => match rest.next()? {
                c @ ('"' | '\\' | '$' | '`') => inside.push(c),
                c => inside.extend(['\\', c]),
            },
            c => inside.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parted_as_a_shell_does() {
        let table: [(&str, Option<&[&str]>); 10] = [
            ("", Some(&[])),
            ("  --array 1-3\t--hold ", Some(&["--array", "1-3", "--hold"])),
            ("--name 'a  b'c", Some(&["--name", "a  bc"])),
            ("--env \"A=$x \\\"y\\\" \\n\"", Some(&["--env", "A=$x \"y\" \\n"])),
            ("a\\ b \\'", Some(&["a b", "'"])),
            ("'' \"\"", Some(&["", ""])),
            ("it's", None),
            ("\"open", None),
            ("end\\", None),
            ("'a\\'", Some(&["a\\"])),
        ];
        for (line, expected) in table {
            let words = split(line);
            let words: Option<Vec<&str>> = words.as_ref().map(|words| words.iter().map(String::as_str).collect());
            assert_eq!(words.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn what_is_quoted_is_read_back() {
        for word in ["plain", "", "a b", "it's", "$HOME \"x\" \\", "ä\n"] {
            assert_eq!(split(&quoted(word)), Some(vec![word.to_owned()]));
        }
    }

    #[test]
    fn words_are_quoted_only_where_a_shell_would_misread_them() {
        let table = [("./sim", "./sim"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$HOME", "'$HOME'")];
        for (word, expected) in table {
            assert_eq!(quoted(word), expected);
        }
    }
}
