//! Rules about what a finished change leaves behind: debugging aids, marks, tests put to sleep.

use super::{Breach, may_be_searched};
use crate::ledger::number::Number;
use crate::source::Source;
use crate::tree::{File, Tree};
use crate::word::{find_word, find_words};

const DEBUG_MACROS: [(&str, &str); 3] = [
    ("dbg!(", "use `tracing`, or an assertion in a test"),
    ("todo!(", "write it, or return an error that says what is missing"),
    ("unimplemented!(", "write it, or return an error that says what is missing"),
];

/// Kinds of files in which a mark is a note to a developer. In documents it may be a word.
const MARKED_FILES: [&str; 5] = ["rs", "toml", "sh", "py", "yml"];

pub(super) fn debug_macro(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| may_be_searched(file)) {
        for (number, line) in source.numbered() {
            for (forbidden, instead) in DEBUG_MACROS {
                if find_word(&line.code, forbidden).is_some() {
                    let advice = format!("{forbidden}…): {instead}");
                    breaches.push(Breach::new(&file.path, number, advice));
                }
            }
        }
    }
    breaches
}

pub(super) fn work_mark(tree: &Tree) -> Vec<Breach> {
    let marked = |file: &&File| may_be_searched(file) && file.has_extension(&MARKED_FILES);
    let mut breaches = Vec::new();
    for file in tree.files().filter(marked) {
        for (number, line) in (1..).zip(marked_lines(file)) {
            for mark in ["FIXME", "XXX"] {
                if find_word(&line, mark).is_some() {
                    let advice = format!("{mark}: fix it now, or write TODO(#12) with an issue's number");
                    breaches.push(Breach::new(&file.path, number, advice));
                }
            }
            let mut todos = find_words(&line, "TODO");
            if todos.any(|at| !has_number(&line[at + "TODO".len()..])) {
                let advice = "TODO without a number: write TODO(#12) or TODO(S2.24), or do it now";
                breaches.push(Breach::new(&file.path, number, advice));
            }
        }
    }
    breaches
}

/// The lines in which marks count: of Rust files code and comments, but not strings.
fn marked_lines(file: &File) -> Vec<String> {
    match &file.source {
        Some(source) => source.lines().iter().map(|line| format!("{} {}", line.code, line.comment)).collect(),
        None => file.text.lines().map(str::to_owned).collect(),
    }
}

/// Whether what follows a mark is `(#12)` or `(S2.24)`.
fn has_number(rest: &str) -> bool {
    let inner = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or("", |(inner, _)| inner);
    let issue = inner.strip_prefix('#').unwrap_or_default();
    let is_issue = !issue.is_empty() && issue.chars().all(|c| c.is_ascii_digit());
    is_issue || Number::parse(inner).is_some()
}

pub(super) fn ignored_test(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| may_be_searched(file)) {
        for number in ignoring_lines(source) {
            let advice = "an ignored test proves nothing: fix it, make it quick, or delete it";
            breaches.push(Breach::new(&file.path, number, advice));
        }
    }
    breaches
}

fn ignoring_lines(source: &Source) -> impl Iterator<Item = usize> {
    let ignores = |code: &str| {
        find_word(code, "#[ignore").is_some() || (code.contains("#[cfg_attr(") && find_word(code, "ignore").is_some())
    };
    source.numbered().filter(move |(_, line)| ignores(&line.code)).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn debug_macros_are_found() {
        let bad = "fn f() {\n    dbg!(1);\n    todo!();\n    unimplemented!(\"x\");\n}\n";
        assert_eq!(places(debug_macro, &[("a.rs", bad)]), ["a.rs:2", "a.rs:3", "a.rs:4"]);
        let good = "// dbg!(1)\nfn f() { g(\"todo!()\"); my_dbg!(1); }\n";
        assert!(places(debug_macro, &[("a.rs", good)]).is_empty());
    }

    #[test]
    fn marks_without_numbers_are_found() {
        for bad in ["// FIXME later", "/// XXX", "// TODO: x", "// TODO(ann)", "// TODO(#)", "// TODO(S2)"] {
            assert_eq!(places(work_mark, &[("a.rs", bad)]), ["a.rs:1"], "{bad}");
        }
        assert_eq!(places(work_mark, &[("a.sh", "x # TODO")]), ["a.sh:1"]);
        for good in ["// TODO(#12): x", "// TODO(S2.24) x", "let x = \"FIXME\";", "// XXXX TODOS"] {
            assert!(places(work_mark, &[("a.rs", good)]).is_empty(), "{good}");
        }
        assert!(places(work_mark, &[("a.md", "The word TODO.")]).is_empty());
    }

    #[test]
    fn ignored_tests_are_found() {
        for bad in ["#[ignore]", "#[ignore = \"slow\"]", "#[cfg_attr(unix, ignore)]"] {
            assert_eq!(places(ignored_test, &[("a.rs", bad)]), ["a.rs:1"], "{bad}");
        }
        for good in ["// #[ignore]", "#[ignored_fields]", "fn ignore() {}"] {
            assert!(places(ignored_test, &[("a.rs", good)]).is_empty(), "{good}");
        }
    }
}
