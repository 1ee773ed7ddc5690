//! Runs the terminal blocks of the documents and compares what they print.
//!
//! A block marked `console` is a terminal: lines that begin with `$ ` are typed into one shell, the lines below are
//! what it prints (both streams); below `turno sub` also what it prints because of the commands that follow. A line `...`
//! stands for any number of lines. All blocks of a document share one directory and one broker; a command that ends in `&`
//! goes on in the background until the document ends. Other languages on a block (`text`, `rust`, `toml`) are not terminals.
//!
//! Readers see an example of output that differs from run to run, such as an id or a duration. A comment names these
//! texts, and any text within a line is accepted in their place in all blocks after it: `<!-- varies: 1.2s | node-7 -->`.

use std::fmt::Write as _;

/// One command of a block, and what the document says that it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line of the document.
    pub line: usize,
    /// The typed command.
    pub command: String,
    /// The printed lines.
    pub expected: Vec<String>,
}

/// Stands for any text within a line.
const ANY: &str = "[..]";
const VARIES: &str = "<!-- varies: ";

/// The commands of all `console` blocks of a document, in order.
pub fn steps_of(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut varying: Vec<&str> = Vec::new();
    let mut in_console = false;
    let mut block_begins = false;
    for (number, line) in (1..).zip(document.lines()) {
        if let Some(texts) = line.strip_prefix(VARIES).and_then(|rest| rest.strip_suffix(" -->")) {
            varying.extend(texts.split(" | "));
            // A text that is part of another one is replaced after it.
            varying.sort_by_key(|text| std::cmp::Reverse(text.len()));
        } else if let Some(language) = line.strip_prefix("```") {
            in_console = !in_console && language.trim() == "console";
            block_begins = in_console;
        } else if in_console {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step { line: number, command: command.to_owned(), expected: Vec::new() });
                block_begins = false;
            } else {
                assert!(!block_begins, "line {number}: a console block begins with a `$ ` line");
                let step = steps.last_mut().expect("a command comes before what it prints");
                match (step.command.ends_with('\\'), line.strip_prefix("> ")) {
                    (true, Some(more)) => {
                        step.command.push('\n');
                        step.command.push_str(more);
                    }
                    _ => step.expected.push(varying.iter().fold(line.to_owned(), |line, text| line.replace(text, ANY))),
                }
            }
        }
    }
    steps
}

/// Says how what was printed differs from what the document says; `None` if it does not.
pub fn difference(expected: &[String], printed: &str) -> Option<String> {
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    // Where something differs from run to run, so may the width of its column: gaps between columns are all as wide.
    let varies = expected.iter().any(|line| line.contains(ANY));
    let even = |line: &str| if varies { narrow(line.trim_end()) } else { line.trim_end().to_owned() };
    let wanted: Vec<String> = expected.iter().map(|line| even(line)).collect();
    let found: Vec<String> = printed.iter().map(|line| even(line)).collect();
    if lines_match(&wanted, &found) {
        return None;
    }
    let mut report = String::new();
    for line in expected {
        let _ = writeln!(report, "  document | {line}");
    }
    for line in printed {
        let _ = writeln!(report, "  printed  | {line}");
    }
    Some(report)
}

fn lines_match(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..]))
        }
        Some((first, rest)) => match printed.split_first() {
            Some((line, printed)) => text_matches(first, line) && lines_match(rest, printed),
            None => false,
        },
    }
}

/// With two blanks in place of more.
fn narrow(line: &str) -> String {
    let mut line = line.to_owned();
    while line.contains("   ") {
        line = line.replace("   ", "  ");
    }
    line
}

fn text_matches(pattern: &str, line: &str) -> bool {
    let Some((before, after)) = pattern.split_once(ANY) else { return pattern == line };
    let Some(rest) = line.strip_prefix(before) else { return false };
    (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| text_matches(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_they_print_are_found() {
        let document = "text\n```console\n$ echo a\na\n$ false\n```\n```rust\n$ no\n```\n";
        let steps = steps_of(document);
        assert_eq!(steps.len(), 2);
        assert_eq!(steps[0], Step { line: 3, command: "echo a".into(), expected: vec!["a".into()] });
        assert_eq!(steps[1].command, "false");
    }

    #[test]
    fn texts_that_vary_are_named_in_a_comment() {
        let document = "```console\n$ a\n12ab\n```\n<!-- varies: 12 | 12ab -->\n```console\n$ b\n12ab or 12\n```\n";
        let expected: Vec<_> = steps_of(document).into_iter().map(|step| step.expected).collect();
        assert_eq!(expected, [["12ab"], ["[..] or [..]"]]);
    }

    #[test]
    fn wildcards_match_what_they_should_and_no_more() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(difference(&lines("id [..] memory"), "id 12ab memory\n"), None);
        assert_eq!(difference(&lines("[..] ago  crossed"), "64ms ago   crossed\n"), None, "another width of a column");
        assert!(difference(&lines("ago  crossed"), "ago   crossed\n").is_some());
        assert_eq!(difference(&lines("NAME  N\n[..]  1"), "NAME     N\nnode-17  1\n"), None, "the head of that column");
        assert_eq!(difference(&lines("a\n...\nz"), "a\nb\nc\nz\n"), None);
        assert!(difference(&lines("id [..] memory"), "id 12ab disk\n").is_some());
        assert!(difference(&lines("a"), "a\nb\n").is_some());
        assert!(difference(&lines("a\nb"), "a\n").is_some());
        assert!(difference(&[], "noise\n").is_some());
    }
}
