//! Expands `use` declarations, so that `use std::{fs, io}` counts as naming `std::fs`.

use super::line_of;
use crate::word::is_ident;

/// One imported name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The full path, as in `std::collections::BTreeMap`; a rename is dropped.
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// Reads the imports from code whose comments and strings are blanked.
pub(super) fn read(code: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    for (at, _) in code.match_indices("use") {
        let start = at + "use".len();
        let stands_alone = !code[..at].ends_with(is_ident) && code[start..].starts_with(char::is_whitespace);
        let Some(len) = code[start..].find(';').filter(|_| stands_alone) else {
            continue;
        };
        expand(code, "", start, start + len, &mut imports);
    }
    imports
}

/// Expands the use tree between `start` and `end`, which hangs below `prefix`.
fn expand(code: &str, prefix: &str, start: usize, end: usize, imports: &mut Vec<Import>) {
    let tree = &code[start..end];
    if let Some(brace) = tree.find('{') {
        let prefix = format!("{prefix}{}", tree[..brace].trim());
        let inner_end = tree.rfind('}').map_or(end, |close| start + close);
        for (from, to) in branches(code, start + brace + 1, inner_end) {
            expand(code, &prefix, from, to, imports);
        }
        return;
    }
    let name = tree.split_whitespace().next().unwrap_or_default();
    if !name.is_empty() {
        let path = format!("{prefix}{name}");
        let lead = tree.len() - tree.trim_start().len();
        imports.push(Import { path: path.trim_end_matches("::self").to_owned(), line: line_of(code, start + lead) });
    }
}

/// Ranges of the comma-separated branches between `start` and `end`.
fn branches(code: &str, start: usize, end: usize) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut depth = 0_usize;
    let mut from = start;
    for (offset, c) in code[start..end].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                ranges.push((from, start + offset));
                from = start + offset + 1;
            }
            _ => {}
        }
    }
    ranges.push((from, end));
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<(usize, String)> {
        let pair = |import: Import| (import.line, import.path);
        read(code).into_iter().map(pair).collect()
    }

    #[test]
    fn plain_and_renamed() {
        assert_eq!(
            paths("use std::fs;\npub(crate) use a::b as c;\n"),
            [(1, "std::fs".to_owned()), (2, "a::b".to_owned())]
        );
    }

    #[test]
    fn groups_are_expanded() {
        assert_eq!(
            paths("use std::{\n    collections::{BTreeMap, HashMap as Map},\n    fs::{self},\n};\n"),
            [
                (2, "std::collections::BTreeMap".to_owned()),
                (2, "std::collections::HashMap".to_owned()),
                (3, "std::fs".to_owned()),
            ]
        );
    }

    #[test]
    fn other_uses_of_the_letters_are_no_imports() {
        assert_eq!(paths("fn f() -> impl Send + use<'a> {}\nlet reuse = because;\n"), []);
    }
}
