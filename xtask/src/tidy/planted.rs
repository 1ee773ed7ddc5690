//! Rule about planted bugs: a patch that no longer fits proves nothing, and nobody would notice for weeks.

use super::Breach;
use crate::tree::Tree;

pub(super) fn planted_fits(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files() {
        if !file.path.starts_with("planted/") || !file.has_extension(&["patch"]) {
            continue;
        }
        for hunk in hunks(&file.text) {
            let fits = tree.file(&hunk.path).is_some_and(|target| holds(&target.text, &hunk.before));
            if !fits {
                let advice = format!("{} has changed: make the patch anew, and see that the bug is caught", hunk.path);
                breaches.push(Breach::new(&file.path, hunk.line, advice));
            }
        }
    }
    breaches
}

/// A piece of a patch.
struct Hunk<'a> {
    path: String,
    /// Where it begins in the patch.
    line: usize,
    /// Lines that must stand in the file: those that the patch keeps and those that it takes away.
    before: Vec<&'a str>,
}

fn hunks(patch: &str) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut path = String::new();
    let mut inside = false;
    for (at, line) in patch.lines().enumerate() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            name.clone_into(&mut path);
        } else if line.starts_with("@@ ") {
            hunks.push(Hunk { path: path.clone(), line: at + 1, before: Vec::new() });
            inside = true;
        } else if line.starts_with("diff --git ") {
            inside = false;
        } else if inside
            && let Some(hunk) = hunks.last_mut()
            && let Some(kept) = line.strip_prefix([' ', '-'])
        {
            hunk.before.push(kept);
        }
    }
    hunks
}

fn holds(text: &str, wanted: &[&str]) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    lines.windows(wanted.len().max(1)).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const PATCH: &str = "Why.\n\ndiff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@ fn\n a\n-b\n+c\n";

    #[test]
    fn a_patch_that_fits_is_left() {
        assert!(places(planted_fits, &[("planted/01-x.patch", PATCH), ("x.rs", "0\na\nb\n")]).is_empty());
    }

    #[test]
    fn a_patch_that_no_longer_fits_is_found() {
        for text in ["a\nd\n", "a\n", "", "b\na\n"] {
            assert_eq!(
                places(planted_fits, &[("planted/01-x.patch", PATCH), ("x.rs", text)]),
                ["planted/01-x.patch:6"]
            );
        }
        assert_eq!(places(planted_fits, &[("planted/01-x.patch", PATCH)]), ["planted/01-x.patch:6"], "no such file");
    }
}
