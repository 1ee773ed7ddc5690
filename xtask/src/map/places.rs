//! Where a rule stands: the file that defines an item is looked up, so that it can move without the page lying.

use super::{Drawn, MAP};
use crate::source::Source;
use crate::tree::{File, Tree};
use crate::word::find_word;

/// Adds a row of the table, with its third column anew. The two rows of the table's head stay.
pub(super) fn draw(tree: &Tree, number: usize, row: &str, drawn: &mut Drawn) {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let (Some(question), Some(item)) = (cells.first(), cells.get(1).and_then(|cell| cell.split('`').nth(1))) else {
        return drawn.push(row);
    };
    let files = defined_in(tree, item);
    match files.as_slice() {
        [file] => return drawn.push(&format!("| {question} | `{item}` | `{}` |", file.path)),
        [] => drawn.fault(MAP, number, format!("nothing is called `{item}`: name what answers \"{question}\"")),
        several => {
            let paths: Vec<&str> = several.iter().map(|file| file.path.as_str()).collect();
            let advice = format!("`{item}` is in {}: name it with its type", paths.join(", "));
            drawn.fault(MAP, number, advice);
        }
    }
    drawn.push(row);
}

/// Files that define the item; with an owner only the owner's: a type of that name, or a module.
fn defined_in<'a>(tree: &'a Tree, item: &str) -> Vec<&'a File> {
    let (owner, name) = item.rsplit_once("::").map_or((None, item), |(owner, name)| (Some(owner), name));
    let all = tree.sources().filter(|(_, source)| defines(source, name)).map(|(file, _)| file);
    let is_owners = |file: &File| owner.is_none_or(|owner| is_module(file, owner) || has_impl(file, owner));
    all.filter(|file| is_owners(file)).collect()
}

fn is_module(file: &File, owner: &str) -> bool {
    let path = format!("/{}", owner.replace("::", "/"));
    let module = file.path.trim_end_matches(".rs");
    module.trim_end_matches("/mod").ends_with(&path)
}

fn has_impl(file: &File, owner: &str) -> bool {
    let code = file.source.iter().flat_map(Source::lines).map(|line| line.code.as_str());
    code.filter(|code| code.starts_with("impl")).any(|code| find_word(code, owner).is_some())
}

fn defines(source: &Source, name: &str) -> bool {
    let is_definition = |code: &str| {
        ["fn", "struct", "enum", "trait", "const", "static"].iter().any(|kind| {
            let after = find_word(code, kind).map(|at| code[at + kind.len()..].trim_start());
            after.is_some_and(|after| find_word(after, name) == Some(0))
        })
    };
    source.lines().iter().any(|line| !line.is_test && is_definition(&line.code))
}

#[cfg(test)]
mod tests {
    use super::super::draw;
    use crate::tree::Tree;

    fn drawn(item: &str) -> (String, usize) {
        let tree = Tree::of(&[
            (
                "crates/x/src/rota.rs",
                "impl<T> Rota<T> {\n    pub(crate) const fn pick(&self) {}\n}\nconst MAX: u8 = 1;\n",
            ),
            ("crates/x/src/lock.rs", "fn pick() {}\n// fn other\n#[cfg(test)]\nmod tests {\n    fn other() {}\n}\n"),
        ]);
        let page = format!(
            "<!-- places -->\n| where is | item | file |\n|---|---|---|\n| who | `{item}` | old |\n<!-- end -->\n"
        );
        let drawn = draw(&tree, &page);
        let row = drawn.text.lines().nth(3).unwrap();
        (row.rsplit('|').nth(1).unwrap().trim().to_owned(), drawn.faults.len())
    }

    #[test]
    fn the_file_is_where_the_item_is_defined() {
        assert_eq!(drawn("MAX"), ("`crates/x/src/rota.rs`".to_owned(), 0));
        assert_eq!(drawn("Rota::pick").0, "`crates/x/src/rota.rs`");
        assert_eq!(drawn("lock::pick").0, "`crates/x/src/lock.rs`");
    }

    #[test]
    fn an_item_that_is_nowhere_or_not_clear_is_a_fault() {
        for item in ["other", "pick", "Rota::other", "ick"] {
            assert_eq!(drawn(item), ("old".to_owned(), 1), "{item}");
        }
    }
}
