//! Rule about the names of types: within a crate each name stands for one type, so that errors, searches and imports say
//! which one is meant.

use std::collections::BTreeMap;

use super::{Breach, crate_folder};
use crate::tree::Tree;
use crate::word::{find_words, is_ident};

/// Keywords that the name of a type follows.
const KEYWORDS: [&str; 4] = ["struct", "enum", "trait", "type"];

pub(super) fn type_names(tree: &Tree) -> Vec<Breach> {
    let mut first: BTreeMap<(&str, &str), (&str, usize)> = BTreeMap::new();
    let mut breaches = Vec::new();
    for (file, source) in tree.sources() {
        let Some(crate_name) = crate_of(&file.path) else { continue };
        for (number, line) in source.numbered().filter(|(_, line)| !line.is_test) {
            let Some(name) = declared(&line.code) else { continue };
            let (path, at) = *first.entry((crate_name, name)).or_insert((&file.path, number));
            if (path, at) != (file.path.as_str(), number) {
                let advice = format!("{path}:{at} is also a `{name}`: name each after what it is, like `Ring{name}`");
                breaches.push(Breach::new(&file.path, number, advice));
            }
        }
    }
    breaches
}

/// The crate that a source file belongs to. Tests, examples and further programs are crates of their own, and small.
fn crate_of(path: &str) -> Option<&str> {
    let (_, inside) = path.split_once("/src/")?;
    let folder = crate_folder(path).or_else(|| path.split('/').next());
    folder.filter(|_| !inside.starts_with("bin/"))
}

/// The name of the type that a line declares. An indented `type` is not one: it belongs to an implementation, a trait or
/// the body of a function.
fn declared(code: &str) -> Option<&str> {
    let is_visibility =
        |text: &str| text.is_empty() || text == "pub" || text.starts_with("pub(") && text.ends_with(')');
    KEYWORDS.into_iter().find_map(|keyword| {
        let at = find_words(code, keyword).find(|at| is_visibility(code[..*at].trim()))?;
        let is_inner = keyword == "type" && code.starts_with(char::is_whitespace);
        let name = code[at + keyword.len()..].trim_start();
        let name = &name[..name.find(|c| !is_ident(c)).unwrap_or(name.len())];
        (!name.is_empty() && !is_inner).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const A: &str = "crates/engine/src/a.rs";
    const B: &str = "crates/engine/src/jobs/b.rs";

    #[test]
    fn a_second_type_of_the_same_name_is_found() {
        for bad in [
            "struct Line;\n",
            "pub enum Line {\n}\n",
            "pub(crate) trait Line {}\n",
            "pub(in crate::jobs) struct Line<'a>(&'a str);\n",
            "type Line = u32;\n",
            "words! {\n    pub enum Line { A = \"a\" }\n}\n",
        ] {
            let place = if bad.starts_with("words") { 2 } else { 1 };
            let files = [(A, "/// A line.\nstruct Line {\n}\n"), (B, bad)];
            assert_eq!(places(type_names, &files), [format!("{B}:{place}")], "{bad}");
        }
        assert_eq!(places(type_names, &[(A, "struct Line;\nmod b {\n    enum Line {}\n}\n")]), [format!("{A}:3")]);
        assert_eq!(
            places(type_names, &[("xtask/src/a.rs", "enum A {}\n"), ("xtask/src/b.rs", "enum A {}\n")]).len(),
            1
        );
    }

    #[test]
    fn tests_other_crates_and_other_uses_of_a_name_are_left() {
        for good in [
            (B, "#[cfg(test)]\nmod tests {\n    struct Line;\n}\n"),
            ("crates/engine/tests/engine/b.rs", "struct Line;\n"),
            ("crates/engine/examples/b.rs", "struct Line;\n"),
            ("crates/engine/src/bin/b.rs", "struct Line;\n"),
            ("crates/store/src/b.rs", "struct Line;\n"),
            (B, "impl A for B {\n    type Line = u32;\n}\n"),
            (B, "struct LineCount;\n// struct Line;\nconst A: &str = \"struct Line;\";\n"),
            (B, "use super::Line;\nimpl Line {}\nenum Kind {\n    Line,\n}\n"),
        ] {
            assert!(places(type_names, &[(A, "struct Line;\n"), good]).is_empty(), "{good:?}");
        }
    }
}
