//! Rules about plain text: length, blanks, and paths of one machine.

use super::{Breach, may_be_searched};
use crate::tree::{File, Tree};
use crate::word::is_ident;

const FILE_LINES_MAX: usize = 500;

/// Folders at the root of a machine in which only one person's things are.
const PERSONAL_FOLDERS: [&str; 3] = ["home", "root", "Users"];

pub(super) fn file_length(tree: &Tree) -> Vec<Breach> {
    let breach = |file: &File| {
        let lines = file.text.lines().count();
        let advice =
            format!("{lines} lines, at most {FILE_LINES_MAX}: split by what changes together, one noun per file");
        (lines > FILE_LINES_MAX).then(|| Breach::new(&file.path, FILE_LINES_MAX + 1, advice))
    };
    let rust = tree.files().filter(|file| file.has_extension(&["rs"]));
    rust.filter_map(breach).collect()
}

pub(super) fn machine_path(tree: &Tree) -> Vec<Breach> {
    let searched = tree.files().filter(|file| may_be_searched(file) && file.path != "Cargo.lock");
    let mut breaches = Vec::new();
    for file in searched {
        for (number, line) in (1..).zip(file.text.lines()) {
            let folders = PERSONAL_FOLDERS.map(|name| format!("/{name}/"));
            if let Some(folder) = folders.iter().find(|folder| is_absolute_in(line, folder)) {
                let advice = format!(
                    "a path under {folder} exists on one machine only: write it from the project's \
                     root, or take it from the environment"
                );
                breaches.push(Breach::new(&file.path, number, advice));
            }
        }
    }
    breaches
}

/// Whether `folder` stands in the line at the start of a path, and not as a part of a longer one.
fn is_absolute_in(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| is_ident(c) || matches!(c, '.' | '-' | '~' | '}' | ')' | '>' | '*'))
    })
}

pub(super) fn whitespace(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files().filter(|file| file.has_extension(&["rs", "md", "toml"])) {
        for (number, line) in (1..).zip(file.text.split('\n')) {
            if line.contains('\t') {
                let advice = "a tab: indent with spaces, write \\t in a string";
                breaches.push(Breach::new(&file.path, number, advice));
            }
            if line.ends_with([' ', '\t', '\r']) {
                let advice = "blanks at the end of the line: delete them";
                breaches.push(Breach::new(&file.path, number, advice));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn long_files_are_found() {
        let (fits, long) = ("\n".repeat(500), "\n".repeat(501));
        let files = [("a.rs", fits.as_str()), ("b.rs", &long), ("c.md", &long)];
        assert_eq!(places(file_length, &files), ["b.rs:501"]);
    }

    #[test]
    fn machine_paths_are_found() {
        for bad in ["cd /home/ann", "`/Users/ann`", "x=\"/home/.cargo\"", "file:///home/a", "/home/"] {
            assert_eq!(places(machine_path, &[(".ci/run", bad)]), [".ci/run:1"], "{bad}");
        }
    }

    #[test]
    fn paths_that_only_look_similar_are_left() {
        for good in [
            "crates/home/src",
            "./home/x ../home/y",
            "https://example.org/home/",
            "$HOME/home/ ${DIR}/home/ ~/home/",
            "/homeless /worker/x",
        ] {
            assert!(places(machine_path, &[("a.md", good)]).is_empty(), "{good}");
        }
        assert!(places(machine_path, &[("Cargo.lock", "/home/x")]).is_empty());
    }

    #[test]
    fn tabs_and_trailing_blanks_are_found() {
        let bad = [("a.md", "x \ny\n"), ("b.toml", "\tx\n"), ("c.rs", "x\r\n")];
        assert_eq!(places(whitespace, &bad), ["a.md:1", "b.toml:1", "c.rs:1"]);
        let good = [("a.md", "x\n\n  y\n"), ("Makefile", "\tx\n"), ("b.py", "x \n")];
        assert!(places(whitespace, &good).is_empty());
    }
}
