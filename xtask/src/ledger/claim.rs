//! Lines in which a test says what it proves: the doc comment of a test function, or the head of an
//! integration test file. A number anywhere else is talk, not proof.

use crate::source::{Source, split_attribute};
use crate::tree::{File, Tree};
use crate::word::find_word;

/// One line of a test's own words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) text: String,
}

pub(super) fn read(tree: &Tree) -> Vec<Claim> {
    tree.files().flat_map(read_file).collect()
}

fn read_file(file: &File) -> Vec<Claim> {
    let lines = match &file.source {
        Some(source) if is_ours(&file.path) => {
            let mut lines = if is_integration_test(&file.path) { head(source) } else { Vec::new() };
            lines.extend(test_docs(source));
            lines
        }
        None if is_test_script(file) => script_lines(&file.text),
        _ => Vec::new(),
    };
    let claim = |(line, text)| Claim { path: file.path.clone(), line, text };
    lines.into_iter().map(claim).collect()
}

fn is_ours(path: &str) -> bool {
    path.starts_with("crates/") || path.starts_with("xtask/")
}

fn is_integration_test(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.nth(1) == Some("tests")
}

fn is_test_script(file: &File) -> bool {
    let is_in_tests = file.path.split('/').any(|part| part == "tests");
    file.has_extension(&["py", "sh"]) && (is_in_tests || file.stem().starts_with("test"))
}

/// The `//!` lines before the first code.
fn head(source: &Source) -> Vec<(usize, String)> {
    source
        .numbered()
        .take_while(|(_, line)| line.code.trim().is_empty() || line.code.starts_with("#!["))
        .filter_map(|(number, line)| Some((number, line.inner_doc()?.to_owned())))
        .collect()
}

/// The doc comments of test functions. Doc lines and attributes may stand in any order before the
/// function, with blank lines and plain comments between them, just as for the compiler.
fn test_docs(source: &Source) -> Vec<(usize, String)> {
    let mut claims = Vec::new();
    let mut docs = Vec::new();
    let mut is_test = false;
    let mut pending = String::new();
    for (number, line) in source.numbered() {
        if let Some(doc) = line.outer_doc() {
            docs.push((number, doc.to_owned()));
        }
        pending.push_str(line.code.trim());
        while pending.starts_with("#[") {
            let Some((attribute, rest)) = split_attribute(&pending) else {
                break;
            };
            is_test |= is_test_attribute(attribute);
            pending = rest.trim_start().to_owned();
        }
        if pending.is_empty() || pending.starts_with("#[") {
            continue;
        }
        if is_test && find_word(&pending, "fn").is_some() {
            claims.append(&mut docs);
        }
        docs.clear();
        pending.clear();
        is_test = false;
    }
    claims
}

/// `#[test]`, `#[tokio::test(…)]`, `#[test_case(…)]`, but not `#[cfg(test)]`.
fn is_test_attribute(attribute: &str) -> bool {
    let path = attribute.trim_start_matches("#[");
    let end = path.find(['(', '=', ']']).unwrap_or(path.len());
    path[..end].contains("test")
}

/// Comment lines at the head of a script, and those right above a function called `test…`.
fn script_lines(text: &str) -> Vec<(usize, String)> {
    let mut claims = Vec::new();
    let mut block: Vec<(usize, String)> = Vec::new();
    let mut is_head = true;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            if !comment.starts_with('!') {
                block.push((number, comment.to_owned()));
            }
            continue;
        }
        let is_decorator = line.starts_with('@');
        if (is_head && !block.is_empty()) || is_test_function(line) {
            claims.append(&mut block);
        }
        if !is_decorator {
            block.clear();
        }
        is_head = false;
    }
    claims
}

fn is_test_function(line: &str) -> bool {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let python = line.strip_prefix("def ");
    let shell = line.split_once("()").map(|(name, _)| name.trim_start_matches("function "));
    python.or(shell).is_some_and(|name| name.starts_with("test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(path: &str, text: &str) -> Vec<(usize, String)> {
        let claims = read(&Tree::of(&[(path, text)]));
        claims.into_iter().map(|claim| (claim.line, claim.text.trim().to_owned())).collect()
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        claims(path, text).into_iter().map(|(line, _)| line).collect()
    }

    const UNIT: &str = "crates/engine/src/rota.rs";

    #[test]
    fn docs_of_test_functions_are_claims() {
        let text = "/// S0.1\n/// and S0.2\n#[test]\nfn a() {}\n";
        assert_eq!(claims(UNIT, text), [(1, "S0.1".to_owned()), (2, "and S0.2".to_owned())]);
        for text in [
            "/// S0.1\n#[tokio::test(flavor = \"current_thread\")]\nasync fn a() {}\n",
            "#[test]\n/// S0.1\nfn a() {}\n",
            "/// S0.1\n\n// plain\n#[cfg(unix)]\n#[test]\npub(crate) fn a() {}\n",
            "/// S0.1\n#[test] fn a() {}\n",
            "/// S0.1\n#[test_case(\n    1\n)]\nfn a() {}\n",
            "proptest! {\n    /// S0.1\n    #[test]\n    fn a(x in 0..3) {}\n}\n",
        ] {
            assert_eq!(claims(UNIT, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn docs_of_other_things_are_no_claims() {
        for text in [
            "/// S0.1\nfn a() {}\n",
            "/// S0.1\n#[cfg(test)]\nfn a() {}\n",
            "/// S0.1\nstruct A;\n#[test]\nfn a() {}\n",
            "// S0.1\n#[test]\nfn a() {}\n",
            "//! S0.1\n#[test]\nfn a() {}\n",
            "#[test]\nfn a() {\n    f(\"\n/// S0.1\n#[test]\nfn b() {}\n\");\n}\n",
        ] {
            assert!(claims(UNIT, text).is_empty(), "{text}");
        }
        assert!(lines("fuzz/a.rs", "/// S0.1\n#[test]\nfn a() {}\n").is_empty());
    }

    #[test]
    fn heads_of_integration_tests_are_claims() {
        let text = "//! S0.1\n//! more\n#![cfg(unix)]\n\nuse a::b;\nmod x { //! S0.2\n}\n";
        assert_eq!(lines("crates/e2e/tests/rota.rs", text), [1, 2]);
        assert_eq!(lines("crates/e2e/tests/suites/rota.rs", text), [1, 2]);
        assert!(lines(UNIT, text).is_empty());
    }

    #[test]
    fn comments_of_test_scripts_are_claims() {
        let python = "#!/usr/bin/env python3\n# S0.1\nimport x\n# S0.2\nx = 1\n# S0.3\n@y\nasync def test_a():\n    # S0.4\n    pass\n";
        assert_eq!(lines("python/tests/test_a.py", python), [2, 6]);
        assert!(lines("python/turno/a.py", python).is_empty());
        assert_eq!(lines("tests/a.sh", "x=1\n# S0.1\ntest_a() {\n}\n"), [2]);
    }
}
