//! Rules about documents that stay short: the change log has one line an entry, and the page for authors of clients is read
//! in one sitting.

use super::Breach;
use crate::tree::Tree;

const CHANGES: &str = "CHANGELOG.md";
/// An entry that is longer has two facts, or explains what a page should.
const ENTRY_CHARS_MAX: usize = 160;

/// Four screens of 50 lines.
const CLIENT_PAGE: (&str, usize) = ("docs/how-to/write-a-client.md", 200);

pub(super) fn changelog_lines(tree: &Tree) -> Vec<Breach> {
    let Some(file) = tree.file(CHANGES) else { return Vec::new() };
    let mut breaches = Vec::new();
    let first = file.text.lines().position(|line| line.starts_with("## ")).unwrap_or_default();
    for (number, line) in (1..).zip(file.text.lines()).skip(first) {
        let is_entry = line.starts_with("- ");
        if !is_entry && !line.is_empty() && !line.starts_with('#') {
            breaches.push(Breach::new(CHANGES, number, "one line an entry, which begins with `- `: join or delete it"));
        } else if is_entry && line.chars().count() > ENTRY_CHARS_MAX {
            let advice = format!("more than {ENTRY_CHARS_MAX} characters: one fact an entry, details in docs/");
            breaches.push(Breach::new(CHANGES, number, advice));
        }
    }
    breaches
}

pub(super) fn client_page(tree: &Tree) -> Vec<Breach> {
    let (path, lines_max) = CLIENT_PAGE;
    let is_long = tree.file(path).is_some_and(|file| file.text.lines().count() > lines_max);
    let advice = || format!("more than {lines_max} lines, four screens: move details to docs/reference/protocol");
    is_long.then(|| Breach::new(path, lines_max + 1, advice())).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn entries_of_two_lines_and_long_ones_are_found() {
        let long = format!("- {}", "x".repeat(ENTRY_CHARS_MAX));
        let text =
            format!("# Changelog\n\nOne line a change.\n\n## Unreleased\n\n### Added\n\n- A\n  and more\n{long}\n");
        assert_eq!(places(changelog_lines, &[(CHANGES, &text)]), ["CHANGELOG.md:10", "CHANGELOG.md:11"]);
        assert!(places(changelog_lines, &[(CHANGES, "# Changelog\n\nText.\n\n## 1.0\n\n- A\n- B\n")]).is_empty());
        assert!(places(changelog_lines, &[]).is_empty());
    }

    #[test]
    fn a_long_page_for_authors_of_clients_is_found() {
        let (path, lines_max) = CLIENT_PAGE;
        assert_eq!(places(client_page, &[(path, &"\n".repeat(lines_max + 1))]), [format!("{path}:{}", lines_max + 1)]);
        assert!(places(client_page, &[(path, &"\n".repeat(lines_max))]).is_empty());
    }
}
