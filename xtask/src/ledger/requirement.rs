//! The list of requirements, as docs/reference/requirements.md has it.

use super::number::Number;

/// One item: `- **S0.1** text` or `- **S0.4** (no test owed) text`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) number: Number,
    /// Some items describe and demand nothing.
    pub(crate) owes_test: bool,
    pub(crate) text: String,
    pub(crate) line: usize,
}

const NO_TEST_OWED: &str = "(no test owed)";

/// All items of the document, in its order. A text may go on in indented lines.
pub(super) fn read(markdown: &str) -> Vec<Requirement> {
    let mut items: Vec<Requirement> = Vec::new();
    let mut is_open = false;
    for (line, text) in (1..).zip(markdown.lines()) {
        if let Some(item) = read_item(line, text) {
            items.push(item);
            is_open = true;
        } else if let Some(item) = items.last_mut().filter(|_| is_open && text.starts_with("  ")) {
            item.text.push(' ');
            item.text.push_str(text.trim());
        } else {
            is_open = false;
        }
    }
    items
}

fn read_item(line: usize, text: &str) -> Option<Requirement> {
    let (number, rest) = text.strip_prefix("- **")?.split_once("**")?;
    let rest = rest.trim();
    let (owes_test, text) = match rest.strip_prefix(NO_TEST_OWED) {
        Some(text) => (false, text.trim_start()),
        None => (true, rest),
    };
    Some(Requirement { number: Number::parse(number)?, owes_test, text: text.to_owned(), line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read() {
        let text = "# Requirements\n\n- **S0.1** Three roles.\n- **S0.4** (no test owed) State.\n\
                    - **Note** no item\n- **I9** In flight.\n  More of it.\n\n  Other\n";
        let read: Vec<_> = read(text)
            .into_iter()
            .map(|item| (item.number.to_string(), item.owes_test, item.text, item.line))
            .collect();
        let wanted = [
            ("S0.1", true, "Three roles.", 3),
            ("S0.4", false, "State.", 4),
            ("I9", true, "In flight. More of it.", 6),
        ];
        let wanted = wanted.map(|(number, owes, text, line)| (number.to_owned(), owes, text.to_owned(), line));
        assert_eq!(read, wanted);
    }
}
