//! Rust source as the rules see it: code apart from comments and strings, tests apart from
//! production code. A scanner and not a parser: it needs to be right for formatted, compiling code.

mod imports;
mod mask;

use crate::word::{find_word, is_ident};
pub(crate) use imports::Import;

/// One Rust file, line by line.
pub(crate) struct Source {
    lines: Vec<Line>,
    imports: Vec<Import>,
    test_modules: Vec<String>,
}

/// One line, with comments and the contents of strings blanked out of `code`.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) code: String,
    /// The text of comments, with their `//`, `///` or `//!`.
    pub(crate) comment: String,
    /// Compiled for tests only.
    pub(crate) is_test: bool,
}

impl Source {
    pub(crate) fn read(text: &str) -> Self {
        let mut lines = mask::mask(text);
        let code: String = lines.iter().flat_map(|line| [&line.code, "\n"]).collect();
        let regions = test_regions(&code);
        let mut test_modules = Vec::new();
        for region in &regions {
            let first = line_of(&code, region.start);
            let last = line_of(&code, region.end.saturating_sub(1));
            for line in &mut lines[first - 1..last] {
                line.is_test = true;
            }
            if let Some(name) = declared_module(&code[region.clone()]) {
                test_modules.push(name.to_owned());
            }
        }
        Self { imports: imports::read(&code), lines, test_modules }
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Lines with their numbers, counted from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines)
    }

    /// Every imported name with its full path.
    pub(crate) fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// Names of the modules that live in files of their own and are compiled for tests only.
    pub(super) fn test_modules(&self) -> &[String] {
        &self.test_modules
    }

    pub(super) fn mark_as_test(&mut self) {
        for line in &mut self.lines {
            line.is_test = true;
        }
    }
}

impl Line {
    /// The text of a `///` comment that has the line to itself.
    pub(crate) fn outer_doc(&self) -> Option<&str> {
        let comment = self.comment.trim();
        let doc = comment.strip_prefix("///")?;
        (self.code.trim().is_empty() && !doc.starts_with('/')).then_some(doc)
    }

    /// The text of a `//!` comment.
    pub(crate) fn inner_doc(&self) -> Option<&str> {
        self.comment.trim().strip_prefix("//!")
    }
}

/// The first whole attribute at the start of `code` and what follows it; nothing if the attribute
/// does not end here.
pub(crate) fn split_attribute(code: &str) -> Option<(&str, &str)> {
    let open = code.find('[')?;
    let end = closing(code, open)?;
    Some((&code[..=end], &code[end + 1..]))
}

/// Number of the line in which the byte at `offset` stands.
fn line_of(code: &str, offset: usize) -> usize {
    let end = offset.min(code.len());
    code.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Byte ranges of the items that only tests compile, from their attribute to their end.
fn test_regions(code: &str) -> Vec<std::ops::Range<usize>> {
    let mut regions = Vec::new();
    for (start, opening) in code.match_indices("#[cfg(").chain(code.match_indices("#![cfg(")) {
        let Some((attribute, rest)) = split_attribute(&code[start..]) else {
            continue;
        };
        if !wants_test(attribute) {
            continue;
        }
        let end = if opening.starts_with("#!") {
            code.len()
        } else {
            let after = code.len() - rest.len();
            after + item_len(rest)
        };
        let begin = if opening.starts_with("#!") { 0 } else { start };
        regions.push(begin..end);
    }
    for (start, _) in code.match_indices("mod tests {") {
        regions.push(start..start + item_len(&code[start..]));
    }
    regions
}

/// Whether a `cfg` attribute holds in test builds only. `any(test, …)` also holds elsewhere.
fn wants_test(attribute: &str) -> bool {
    find_word(attribute, "test").is_some()
        && find_word(attribute, "any").is_none()
        && find_word(attribute, "not").is_none()
}

/// Length of the item at the start of `code`: up to its closing brace or its semicolon.
fn item_len(code: &str) -> usize {
    let mut at = 0;
    while let Some((offset, c)) = code[at..].char_indices().find(|(_, c)| matches!(c, '{' | '(' | '[' | ';')) {
        let here = at + offset;
        match (c, closing(code, here)) {
            (';', _) => return here + 1,
            ('{', Some(end)) => return end + 1,
            (_, Some(end)) => at = end + 1,
            (_, None) => return code.len(),
        }
    }
    code.len()
}

/// Where the bracket that opens at `open` is closed.
fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, c) in code[open..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(open + offset);
                }
            }
            _ => {}
        }
    }
    None
}

/// The name in `… mod name;`.
fn declared_module(item: &str) -> Option<&str> {
    let at = find_word(item, "mod")?;
    let name = item[at + "mod".len()..].trim_start();
    let end = name.find(|c| !is_ident(c))?;
    name[end..].trim_start().starts_with(';').then_some(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_lines(text: &str) -> Vec<usize> {
        let source = Source::read(text);
        source.numbered().filter(|(_, line)| line.is_test).map(|(number, _)| number).collect()
    }

    #[test]
    fn test_modules_are_marked_to_their_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n";
        assert_eq!(test_lines(text), [2, 3, 4, 5]);
    }

    #[test]
    fn test_items_of_every_kind_are_marked() {
        assert_eq!(test_lines("#[cfg(test)]\nuse a::b;\nfn c() {}\n"), [1, 2]);
        assert_eq!(
            test_lines("#[cfg(test)]\n#[derive(Debug)]\nfn f(\n    a: [u8; 2],\n) {\n}\nfn g() {}\n"),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(test_lines("#![cfg(test)]\nfn a() {}\n"), [1, 2]);
        assert_eq!(test_lines("#[cfg(all(test, unix))]\nfn a() {}\n"), [1, 2]);
    }

    #[test]
    fn other_configurations_are_production() {
        assert!(test_lines("#[cfg(not(test))]\nfn a() {}\n").is_empty());
        assert!(test_lines("#[cfg(any(test, unix))]\nfn a() {}\n").is_empty());
        assert!(test_lines("#[cfg(unix)]\nfn test() {}\n").is_empty());
    }

    #[test]
    fn test_modules_in_other_files_are_named() {
        let source = Source::read("#[cfg(test)]\nmod order;\n#[cfg(test)]\nmod tests {}\nmod a;\n");
        assert_eq!(source.test_modules(), ["order"]);
    }

    #[test]
    fn doc_comments() {
        let source = Source::read("//! head\n/// doc\n//// rule\n// plain\nfn f() {} /// tail\n");
        let outer: Vec<_> = source.lines().iter().map(Line::outer_doc).collect();
        assert_eq!(outer, [None, Some(" doc"), None, None, None]);
        assert_eq!(source.lines()[0].inner_doc(), Some(" head"));
    }
}
