//! The modules of a folder, as their heads describe them.

use std::collections::BTreeMap;

use super::Drawn;
use crate::tree::{File, Tree};

/// Longest first sentence of a module's head, in characters: it has to fit into a row.
const SENTENCE_MAX: usize = 120;

/// Adds a table: a row for each file directly in the folder, and one for each folder below it, with its files.
pub(super) fn draw(tree: &Tree, folder: &str, drawn: &mut Drawn) {
    let mut modules = BTreeMap::new();
    for file in tree.files() {
        if let Some(module) = module(file, folder) {
            modules.insert(module, sentence(file, drawn));
        }
    }
    let is_folder = |module: &str| modules.keys().any(|other| parent(other) == Some(module));
    let is_row = |module: &str| parent(module).is_none() || is_folder(module);
    drawn.push("| module | purpose |");
    drawn.push("|---|---|");
    for (module, sentence) in modules.iter().filter(|(module, _)| is_row(module)) {
        let files = modules.iter().filter(|(file, _)| parent(file) == Some(module) && !is_row(file));
        let files: String = files.map(|(file, sentence)| format!("<br>`{}`: {sentence}", last(file))).collect();
        let slash = if is_folder(module) { "/" } else { "" };
        drawn.push(&format!("| `{module}{slash}` | {sentence}{files} |"));
    }
}

/// The module of a file that ships, as a path from the folder; nothing for the crate's own root.
fn module<'a>(file: &'a File, folder: &str) -> Option<&'a str> {
    let inner = file.path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let source = file.source.as_ref()?;
    let is_test_only = source.lines().iter().all(|line| line.is_test);
    (inner != "lib" && !is_test_only).then(|| inner.strip_suffix("/mod").unwrap_or(inner))
}

fn parent(module: &str) -> Option<&str> {
    module.rsplit_once('/').map(|(parent, _)| parent)
}

fn last(module: &str) -> &str {
    module.rsplit('/').next().unwrap_or(module)
}

/// The first sentence of a module's head, as it stands in a table.
fn sentence(file: &File, drawn: &mut Drawn) -> String {
    let docs = file.source.iter().flat_map(|source| source.lines()).map_while(|line| line.inner_doc());
    let head = docs.map(str::trim).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let ends_here = |at: &usize| !head[at + 1..].trim_start().starts_with(char::is_lowercase);
    let ends = head.match_indices(". ").map(|(at, _)| at).find(ends_here);
    let sentence = head[..ends.unwrap_or(head.len())].trim_end_matches('.');
    if sentence.is_empty() {
        drawn.fault(&file.path, 1, "begin the file with `//!` and a sentence that says what it is for");
    } else if sentence.chars().count() > SENTENCE_MAX {
        let advice =
            format!("the first sentence goes into a table: at most {SENTENCE_MAX} characters, then a full stop");
        drawn.fault(&file.path, 1, advice);
    }
    sentence.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::super::draw;
    use crate::tree::Tree;

    const PAGE: &str = "Modules:\n<!-- modules of crates/x/src -->\nold\n<!-- end -->\nafter\n";

    #[test]
    fn a_row_for_each_file_and_for_each_folder_with_its_files() {
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", "//! All.\n#[cfg(test)]\nmod tests;\n"),
            ("crates/x/src/tests.rs", "fn f() {}\n"),
            ("crates/x/src/a.rs", "//! One [`Thing`], e.g. this\n//! or `|`. More.\n"),
            ("crates/x/src/b/mod.rs", "//! A folder.\n\n//! Not this.\n"),
            ("crates/x/src/b/c.rs", "//! In it.\n"),
            ("crates/x/src/b/d.rs", "//! A folder in it.\n"),
            ("crates/x/src/b/d/e.rs", "//! Deep.\n"),
            ("crates/xy/src/f.rs", "//! Elsewhere.\n"),
        ]);
        let drawn = draw(&tree, PAGE);
        let wanted = "Modules:\n<!-- modules of crates/x/src -->\n| module | purpose |\n|---|---|\n\
                      | `a` | One `Thing`, e.g. this or `\\|` |\n\
                      | `b/` | A folder<br>`c`: In it |\n\
                      | `b/d/` | A folder in it<br>`e`: Deep |\n<!-- end -->\nafter\n";
        assert_eq!(drawn.text, wanted);
        assert_eq!((drawn.folders, drawn.faults.len()), (vec!["crates/x/src".to_owned()], 0));
        assert_eq!(draw(&tree, wanted).text, wanted);
    }

    #[test]
    fn a_head_that_does_not_fit_is_a_fault() {
        let long = format!("//! {}.\n", "x".repeat(121));
        let tree = Tree::of(&[("crates/x/src/a.rs", "fn f() {}\n"), ("crates/x/src/b.rs", &long)]);
        let faults = draw(&tree, PAGE).faults;
        assert_eq!(
            faults.iter().map(|fault| fault.path.as_str()).collect::<Vec<_>>(),
            ["crates/x/src/a.rs", "crates/x/src/b.rs"]
        );
    }
}
